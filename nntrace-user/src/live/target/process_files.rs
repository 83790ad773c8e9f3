//! All files that a process has mapped, executable or not.

use std::{collections::BTreeSet, path::PathBuf};

use super::{proc_maps, process::Processes};

/// Returns the paths of the files that a process has mapped, each once, in the order of their addresses; none of a process that
/// has ended.
pub(in crate::live) fn mapped(processes: &Processes, pid: u32) -> Vec<PathBuf> {
    let maps = processes.maps(pid).unwrap_or_default();
    let mut seen = BTreeSet::new();
    proc_maps::all(&maps).map(|mapping| mapping.path).filter(|path| seen.insert(path.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_executable_is_there_once() {
        let mapped = mapped(&Processes::default(), std::process::id());
        let executable = std::env::current_exe().unwrap();
        assert_eq!(mapped.iter().filter(|path| **path == executable).count(), 1, "{mapped:?}");
    }
}
