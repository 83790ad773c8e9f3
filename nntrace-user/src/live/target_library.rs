//! Libraries of ours that targets load: where they are installed, and whether their users may read them.

use std::{
    env,
    fs::File,
    io,
    path::{Path, PathBuf},
};

use crate::caller::RunAs;

/// Folder of the libraries in a package, from that of the program on.
const PACKAGED: &str = "../lib/nntrace-bpf";

/// Returns the path of a library: beside this program, as in an unpacked archive or a build, or in the package's folder.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    find_for(&env::current_exe().ok()?, name)
}

fn find_for(program: &Path, name: &str) -> Option<PathBuf> {
    let folder = program.parent()?;
    let paths = [folder.to_owned(), folder.join(PACKAGED)].map(|folder| folder.join(name));
    paths.into_iter().find_map(|path| path.canonicalize().ok())
}

/// Checks that a user may read a library, by default the one that we run as.
///
/// # Errors
/// When that user may not, with the name and the reason.
pub(super) fn check_readable(library: &Path, user: Option<&RunAs>) -> Result<(), (String, io::Error)> {
    match user {
        Some(user) => user.may_read(library).map_err(|reason| (user.name(), reason)),
        None => File::open(library).map(drop).map_err(|reason| ("the current user".to_owned(), reason)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_library_beside_the_program_comes_before_the_packaged_one() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let program = root.join("bin/nntrace-bpf");
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::create_dir_all(root.join("lib/nntrace-bpf")).unwrap();
        let name = "libnntrace-x.so";
        assert_eq!(find_for(&program, name), None);
        let packaged = root.join("lib/nntrace-bpf").join(name);
        fs::write(&packaged, "").unwrap();
        assert_eq!(find_for(&program, name), Some(packaged));
        let beside = root.join("bin").join(name);
        fs::write(&beside, "").unwrap();
        assert_eq!(find_for(&program, name), Some(beside));
    }
}
