//! Finding the program of a command, and explaining beforehand why it cannot be started.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::elf::Elf;
use super::elf_error::ElfErrorReason;
use super::examiner::{Examination, Folders, examine};
use super::launch::error::LaunchError;

/// Search path for programs when there is no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Length of a `#!` line that the kernel reads at most.
const LONGEST_SCRIPT_LINE: usize = 256;

/// Finds the file that a command's first word names, as a shell does.
pub(super) fn find(command: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, LaunchError> {
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    if command.is_empty() {
        return Err(LaunchError::NotFound { command: command.to_owned(), path: path.to_owned() });
    }
    if command.as_bytes().contains(&b'/') {
        return executable(PathBuf::from(command));
    }
    let mut refused = None;
    let candidates = std::env::split_paths(path).map(|dir| Path::new(".").join(dir).join(command));
    // A directory that we may not search is skipped, as a shell does.
    for candidate in candidates.filter(|candidate| candidate.exists()) {
        match executable(candidate) {
            Ok(program) => return Ok(program),
            Err(error @ LaunchError::NotExecutable { .. }) => refused = refused.or(Some(error)),
            Err(_) => {}
        }
    }
    Err(refused
        .unwrap_or_else(|| LaunchError::NotFound { command: command.to_owned(), path: path.to_owned() }))
}

fn executable(program: PathBuf) -> Result<PathBuf, LaunchError> {
    match std::fs::metadata(&program) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(LaunchError::NoFile { program }),
        Ok(file) if file.is_dir() => {
            Err(LaunchError::NotExecutable { program, why: "it is a directory: name the program in it" })
        }
        Ok(file) if file.permissions().mode() & 0o111 == 0 => Err(LaunchError::NotExecutable {
            program,
            why: "its mode has no x: `chmod +x` it, or start it by its interpreter",
        }),
        // A file that we may not see may still be visible to the command's user: the kernel decides.
        Ok(_) | Err(_) => Ok(program),
    }
}

/// Refuses files that the kernel would not run, and programs that would run but could not be traced.
///
/// The C library would hand a file of unknown format to `/bin/sh`, which then complains about the wrong thing.
pub(super) fn check_format(program: &Path) -> Result<(), LaunchError> {
    let Ok(start) = first_bytes(program) else {
        return Ok(());
    };
    if start.starts_with(b"#!") {
        return Ok(());
    }
    match examine(program, &Interpreter) {
        Ok(_) | Err(ElfErrorReason::Io(_) | ElfErrorReason::NotExamined(_)) => Ok(()),
        Err(ElfErrorReason::NotElf) => Err(LaunchError::Format {
            program: program.to_owned(),
            why: "neither an ELF file nor a script with a #! line; start it by its interpreter, as in `sh FILE`".to_owned(),
        }),
        Err(reason) => Err(LaunchError::Format { program: program.to_owned(), why: reason.to_string() }),
    }
}

/// Whether a program, or the one that runs it as a script, is loaded by a dynamic loader.
pub(in crate::live) fn has_interpreter(program: &Path) -> bool {
    interpreter(program).is_some()
}

/// Returns the other file needed to run a program: the interpreter of a script, the dynamic loader of an executable.
pub(super) fn interpreter(program: &Path) -> Option<OsString> {
    let start = first_bytes(program).ok()?;
    let name = if let Some(line) = start.strip_prefix(b"#!") {
        let line = line.split(|&byte| byte == b'\n').next()?.trim_ascii_start();
        line.split(u8::is_ascii_whitespace).next()?.to_vec()
    } else {
        examine(program, &Interpreter).ok()??
    };
    Some(OsStr::from_bytes(&name).to_owned())
}

/// Search for the interpreter that the kernel starts with a program.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::live) struct Interpreter;

impl Examination for Interpreter {
    type Findings = Option<Vec<u8>>;

    const NAME: &'static str = "interpreter";

    fn find(&self, bytes: &[u8], _: &dyn Folders) -> Result<Option<Vec<u8>>, ElfErrorReason> {
        Ok(Elf::parse(bytes)?.interpreter().map(<[u8]>::to_vec))
    }
}

fn first_bytes(program: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(program)?.take(LONGEST_SCRIPT_LINE as u64).read_to_end(&mut start)?;
    Ok(start)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::OpenOptionsExt;

    use super::*;

    fn write(path: &Path, mode: u32, content: &[u8]) {
        use std::io::Write;
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).mode(mode).open(path).unwrap().write_all(content).unwrap();
    }

    #[test]
    fn lookup() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        std::fs::create_dir_all(one.join("sub")).unwrap();
        std::fs::create_dir(&two).unwrap();
        write(&one.join("tool"), 0o644, b"#!/bin/sh\n");
        write(&two.join("tool"), 0o755, b"#!/bin/sh\n");
        write(&one.join("plain"), 0o644, b"#!/bin/sh\n");
        let path = std::env::join_paths([&one, &two]).unwrap();
        let find = |command: &OsStr| find(command, Some(&path));
        assert_eq!(find(OsStr::new("tool")).unwrap(), two.join("tool"), "the first that may be executed");
        let text = find(OsStr::new("none")).unwrap_err().to_string();
        assert!(
            text.contains("command \"none\" not found in PATH=") && text.contains(path.to_str().unwrap()),
            "{text}"
        );
        assert!(matches!(find(OsStr::new("plain")), Err(LaunchError::NotExecutable { .. })));
        assert!(matches!(find(OsStr::new("sub")), Err(LaunchError::NotExecutable { .. })));
        assert!(matches!(find(OsStr::new("")), Err(LaunchError::NotFound { .. })));
        assert!(matches!(find(one.join("gone").as_os_str()), Err(LaunchError::NoFile { .. })));
        assert_eq!(find(two.join("tool").as_os_str()).unwrap(), two.join("tool"));
    }

    #[test]
    fn formats_and_interpreters() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8]| {
            write(&dir.path().join(name), 0o755, content);
            dir.path().join(name)
        };
        let script = file("script", b"#! /no/such/sh -e\nexit 0\n");
        check_format(&script).unwrap();
        assert_eq!(interpreter(&script).unwrap(), "/no/such/sh");
        let text = check_format(&file("text", b"exit 0\n")).unwrap_err().to_string();
        assert!(text.contains("neither an ELF file nor a script"), "{text}");
        let text = check_format(&file("arm", b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x28\0"))
            .unwrap_err()
            .to_string();
        assert!(text.contains("a 32-bit file (arm)"), "{text}");
        let exe = std::env::current_exe().unwrap();
        check_format(&exe).unwrap();
        assert!(interpreter(&exe).is_none_or(|loader| Path::new(&loader).is_absolute()));
    }
}
