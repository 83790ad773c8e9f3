//! Folders of recordings, for subcommands that read nothing else.

use std::{fs, path::Path};

use anyhow::{Result, bail};
use nntrace_user::record;

use crate::output::run_input::cannot_open;

/// Checks that a path is the folder of a recording; `reader` names the subcommand or option that needs one.
///
/// # Errors
/// When it is not: with what it is instead, and what to name.
pub(super) fn check(path: &Path, reader: &str) -> Result<()> {
    if record::is_recording(path) {
        return Ok(());
    }
    let what = match fs::metadata(path) {
        Ok(found) if found.is_dir() => "no run.nnt is in it",
        Ok(_) => "it is not a folder",
        Err(reason) => return Err(cannot_open(path, reason)),
    };
    bail!(
        "{} is not a recording: {what}; {reader} reads folders that `nntrace-bpf record -o DIR` has written, and \
         `nntrace-bpf replay FILE` shows trace files",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_says_what_is_there_instead() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let refusal = |path: &Path| check(path, "`calls`").unwrap_err().to_string();
        assert!(refusal(path).contains("is not a recording: no run.nnt is in it; `calls` reads folders"));
        let file = path.join("trace.txt");
        fs::write(&file, "text").unwrap();
        assert!(refusal(&file).contains("trace.txt is not a recording: it is not a folder; "));
        let missing = refusal(&path.join("nosuch"));
        assert!(missing.contains("nosuch: No such file or directory"), "{missing}");
        assert!(missing.ends_with("check the path and its permissions"), "{missing}");
        fs::write(path.join("run.nnt"), "").unwrap();
        assert!(check(path, "`calls`").is_ok());
    }
}
