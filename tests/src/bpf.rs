//! What the kernel holds of BPF, and for whom.

use std::{
    collections::BTreeSet,
    error::Error,
    fs,
    io::{self, ErrorKind},
    iter,
    path::PathBuf,
};

use anyhow::{Context as _, Result};

/// Programs, maps and links by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Programs.
    pub programs: BTreeSet<u32>,
    /// Maps.
    pub maps: BTreeSet<u32>,
    /// Links.
    pub links: BTreeSet<u32>,
}

impl Objects {
    /// What a process holds by its file descriptors.
    ///
    /// # Errors
    /// When it has ended.
    pub fn held_by(pid: u32) -> Result<Self> {
        let folder = format!("/proc/{pid}/fdinfo");
        let mut held = Self::default();
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {folder}"))? {
            // A descriptor may be closed meanwhile.
            let Ok(info) = fs::read_to_string(entry?.path()) else { continue };
            let number =
                |key: &str| info.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u32>().ok());
            match (number("link_id:"), number("map_id:"), number("prog_id:")) {
                // A link's information names its program too.
                (Some(link), ..) => _ = held.links.insert(link),
                (None, Some(map), _) => _ = held.maps.insert(map),
                (None, None, Some(program)) => _ = held.programs.insert(program),
                _ => {}
            }
        }
        Ok(held)
    }

    /// Those of them that the kernel still has.
    ///
    /// # Errors
    /// When the kernel does not list them.
    pub fn still_there(&self) -> Result<Self> {
        let mut found = Self::default();
        for program in aya::programs::loaded_programs().filter(is_not_gone) {
            found.programs.insert(program?.id());
        }
        for map in aya::maps::loaded_maps().filter(is_not_gone) {
            found.maps.insert(map?.id());
        }
        for link in aya::programs::loaded_links().filter(is_not_gone) {
            found.links.insert(link?.id());
        }
        Ok(Self {
            programs: &self.programs & &found.programs,
            maps: &self.maps & &found.maps,
            links: &self.links & &found.links,
        })
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether an object in the kernel's list is more than the number of one that somebody removed meanwhile.
pub fn is_not_gone<T, E: Error>(listed: &Result<T, E>) -> bool {
    let Err(error) = listed else { return true };
    let is_gone = |source: &(dyn Error + 'static)| {
        source.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::NotFound)
    };
    !iter::successors(error.source(), |&source| source.source()).any(is_gone)
}

/// Everything in the file system of pinned objects; nothing where it is not mounted.
#[must_use]
pub fn pinned() -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![PathBuf::from("/sys/fs/bpf")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
            found.insert(entry.path());
        }
    }
    found
}
