//! BPF objects in the kernel, and their owners.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fs,
    io::{self, ErrorKind},
    iter,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd},
    path::PathBuf,
};

use anyhow::{Context as _, Result, ensure};
use aya::programs::ProgramType;

/// Ids of programs, maps and links.
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
    /// Returns the objects that a process holds by its file descriptors.
    ///
    /// # Errors
    /// When it has ended.
    pub fn held_by(pid: u32) -> Result<Self> {
        let folder = format!("/proc/{pid}/fdinfo");
        let mut held = Self::default();
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {folder}"))? {
            // A descriptor may have been closed in the meantime.
            let Ok(info) = fs::read_to_string(entry?.path()) else { continue };
            let number =
                |key: &str| info.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u32>().ok());
            match (number("link_id:"), number("map_id:"), number("prog_id:")) {
                // A link's information also has its program.
                (Some(link), ..) => _ = held.links.insert(link),
                (None, Some(map), _) => _ = held.maps.insert(map),
                (None, None, Some(program)) => _ = held.programs.insert(program),
                _ => {}
            }
        }
        Ok(held)
    }

    /// Returns those of the objects that the kernel still has.
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

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether an object in the kernel's list still exists, and was not removed in the meantime.
pub fn is_not_gone<T, E: Error>(listed: &Result<T, E>) -> bool {
    let Err(error) = listed else { return true };
    let is_gone = |source: &(dyn Error + 'static)| {
        source.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::NotFound)
    };
    !iter::successors(error.source(), |&source| source.source()).any(is_gone)
}

/// Returns the machine code of those of these programs that are on functions, by name.
///
/// # Errors
/// When there is none for any, or the kernel does not expose it.
pub fn images_on_functions(held: &Objects) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut images = BTreeMap::new();
    for program in aya::programs::loaded_programs().filter(is_not_gone) {
        let program = program?;
        if held.programs.contains(&program.id()) && program.program_type() == ProgramType::KProbe.into() {
            let name = program.name_as_str().context("a name that is no text")?.to_owned();
            images.insert(name, code(program.fd()?.as_fd(), Form::Machine)?);
        }
    }
    ensure!(!images.is_empty(), "there are no programs on functions");
    Ok(images)
}

/// Returns the names of those of these programs whose instructions, as the verifier left them, load the address of this
/// map, and how many instructions all of these programs have.
///
/// # Errors
/// When the kernel does not hand the instructions out.
pub fn programs_that_use(held: &Objects, map: u32) -> Result<(BTreeSet<String>, usize)> {
    /// Bytes of an instruction.
    const LENGTH: usize = 8;
    /// `BPF_LD | BPF_IMM | BPF_DW`, the first half of a load of eight bytes.
    const LOAD: u8 = 0x18;
    /// `BPF_PSEUDO_MAP_FD`: what is loaded is a map, which the kernel names by its id.
    const OF_MAP: u8 = 1;
    let (mut users, mut total) = (BTreeSet::new(), 0);
    for program in aya::programs::loaded_programs().filter(is_not_gone) {
        let program = program?;
        if held.programs.contains(&program.id()) {
            let code = code(program.fd()?.as_fd(), Form::Translated)?;
            let loads = |code: &[u8]| {
                code[0] == LOAD && code[1] >> 4 == OF_MAP && code[4..LENGTH] == map.to_ne_bytes()
            };
            if code.chunks_exact(LENGTH).any(loads) {
                users.insert(program.name_as_str().context("a name that is no text")?.to_owned());
            }
            total += code.len() / LENGTH;
        }
    }
    ensure!(total > 0, "there are no programs");
    Ok((users, total))
}

/// Representation of a program's code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The machine's instructions.
    Machine,
    /// BPF's, as the verifier left them.
    Translated,
}

/// The code of a program.
fn code(program: BorrowedFd<'_>, form: Form) -> Result<Vec<u8>> {
    /// The number of the command `BPF_OBJ_GET_INFO_BY_FD`.
    const GET_INFO: i32 = 15;
    /// The fields of `struct bpf_prog_info` up to the instructions, and of the command's part of `union bpf_attr`.
    #[repr(C)]
    #[derive(Default)]
    struct Info {
        before: [u64; 2],
        lengths: [u32; 2],
        codes: [u64; 2],
    }
    #[repr(C)]
    struct Request {
        program: u32,
        length: u32,
        info: u64,
    }
    let ask = |info: &mut Info| {
        let mut request = Request {
            program: program.as_raw_fd().cast_unsigned(),
            length: size_of::<Info>() as u32,
            info: (&raw mut *info).addr() as u64,
        };
        // SAFETY: the command takes a request of this form, and writes only the memory given in it.
        unsafe { command(GET_INFO, &mut request) }.map(drop).context("the kernel does not describe a program")
    };
    let mut info = Info::default();
    ask(&mut info)?;
    let which = form as usize;
    let mut code = vec![0_u8; info.lengths[which] as usize];
    let mut wanted = Info::default();
    wanted.lengths[which] = info.lengths[which];
    wanted.codes[which] = code.as_mut_ptr().addr() as u64;
    ask(&mut wanted)?;
    ensure!(code.iter().any(|&byte| byte != 0), "the kernel does not hand out the code of a program");
    Ok(code)
}

/// Calls `bpf(2)` with the part of `union bpf_attr` that a command reads.
///
/// # Safety
/// The request is in the form of the command, and what it points to is there.
pub(crate) unsafe fn command<T>(number: i32, request: &mut T) -> io::Result<i32> {
    // SAFETY: the kernel checks everything but what the caller answers for.
    let result = unsafe {
        nix::libc::syscall(nix::libc::SYS_bpf, number, std::ptr::from_mut(request), size_of::<T>())
    };
    Ok(nix::errno::Errno::result(result)? as i32)
}

/// Returns the files in the file system of pinned objects; none where it is not mounted.
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
