//! The file `trace_marker`, in tracefs and in each of its instances: the processes that have it open.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use super::{target::Processes, tracefs};

/// Name of the file.
pub(super) const NAME: &str = "trace_marker";

/// Whether a process has `trace_marker` of any instance open.
#[must_use]
pub(super) fn has_marker_open(processes: &Processes, pid: u32) -> bool {
    let Some(device) = tracefs::mount_point().and_then(|mount| fs::metadata(mount).ok()).map(|at| at.dev())
    else {
        return false;
    };
    let is_marker = |link: &Path| {
        // The link gives the name, and its target the file system.
        fs::read_link(link).is_ok_and(|path| path.file_name().is_some_and(|name| name == NAME))
            && fs::metadata(link).is_ok_and(|file| file.dev() == device)
    };
    let open = fs::read_dir(processes.dir(pid).join("fd"));
    open.into_iter().flatten().flatten().any(|entry| is_marker(&entry.path()))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_marker_that_is_open_is_seen_and_its_like_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let _like = File::create(path).unwrap();
        let ours = || has_marker_open(&Processes::default(), std::process::id());
        assert!(!ours());
        let marker = tracefs::mount_point().map(|mount| File::options().write(true).open(mount.join(NAME)));
        if let Some(Ok(marker)) = marker {
            assert!(ours());
            drop(marker);
            assert!(!ours());
        }
    }
}
