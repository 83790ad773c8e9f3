//! Whether a library can be preloaded into a program (`LD_PRELOAD`), as far as its file says.

use std::{
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    command_lookup::{self, interpreter},
    elf::Elf,
    elf_error::ElfErrorReason,
    examiner::{Examination, Folders, examine},
};

/// Scripts that run one another at most.
const MOST_SCRIPTS: usize = 4;

/// Libraries that refuse to run unless they are the first that is loaded.
const FIRST_ONLY: [&str; 2] = ["libasan.so", "libclang_rt.asan"];

/// Returns the reason why nothing is preloaded into the program of a command, or the one that runs it as a script; `None` if
/// something can be, and for what cannot be read, which is not started either.
pub(in crate::live) fn obstacle(command: &std::ffi::OsStr) -> Option<String> {
    let mut program = command_lookup::find(command, std::env::var_os("PATH").as_deref()).ok()?;
    for _ in 0..MOST_SCRIPTS {
        if !is_script(&program) {
            return of_executable(&program);
        }
        program = PathBuf::from(interpreter(&program)?);
    }
    None
}

fn is_script(program: &Path) -> bool {
    let mut start = [0; 2];
    let read = fs::File::open(program).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut start));
    read.is_ok() && start == *b"#!"
}

/// Reason of an ELF file.
fn of_executable(program: &Path) -> Option<String> {
    let reason = match examine(program, &Obstacle) {
        Ok(reason) => reason?,
        Err(
            ElfErrorReason::Class32(_)
            | ElfErrorReason::ForeignEndian
            | ElfErrorReason::ForeignMachine { .. },
        ) => "is built for another machine".to_owned(),
        Err(_) => return None,
    };
    Some(format!("{} {reason}", program.file_name().unwrap_or(program.as_os_str()).display()))
}

/// Search for the reason why nothing is preloaded into an ELF file.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::live) struct Obstacle;

impl Examination for Obstacle {
    type Findings = Option<String>;

    const NAME: &'static str = "obstacle to preloading";

    fn find(&self, bytes: &[u8], _: &dyn Folders) -> Result<Option<String>, ElfErrorReason> {
        let elf = Elf::parse(bytes)?;
        let Some(loader) = elf.interpreter() else { return Ok(Some("is statically linked".to_owned())) };
        if Path::new(std::ffi::OsStr::from_bytes(loader))
            .file_name()
            .is_some_and(|name| name.as_bytes().starts_with(b"ld-musl"))
        {
            return Ok(Some("uses musl, with which hooks have not been tested".to_owned()));
        }
        // The names of needed libraries are among those of the symbols.
        let tables = elf.symbol_tables()?;
        let is_needed = |name: &&&str| tables.iter().any(|table| !table.is_full() && table.may_hold(name));
        Ok(FIRST_ONLY
            .iter()
            .find(is_needed)
            .map(|name| format!("is built with AddressSanitizer ({name}), which has to be loaded first")))
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt as _, process::Command};

    use super::*;

    fn compiled(folder: &Path, name: &str, arguments: &[&str]) -> PathBuf {
        let source = folder.join("program.c");
        fs::write(&source, "int main(void) { return 0; }").unwrap();
        let program = folder.join(name);
        let mut compile = Command::new("cc");
        assert!(compile.args(arguments).arg("-o").arg(&program).arg(&source).status().unwrap().success());
        program
    }

    #[test]
    fn programs_that_load_nothing_and_those_that_load_their_own_first() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let reason = |program: &Path| obstacle(program.as_os_str());
        assert_eq!(reason(&compiled(folder, "plain", &[])), None);
        let fixed = compiled(folder, "fixed", &["-static"]);
        assert_eq!(reason(&fixed).as_deref(), Some("fixed is statically linked"));
        let musl = compiled(folder, "musl", &["-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"]);
        assert!(reason(&musl).is_some_and(|reason| reason.starts_with("musl uses musl")));
        let checked = compiled(folder, "checked", &["-fsanitize=address"]);
        assert!(reason(&checked).is_some_and(|reason| reason.contains("AddressSanitizer")));
        let mut narrow = fs::read(folder.join("plain")).unwrap();
        narrow[4] = 1;
        let other = folder.join("narrow");
        fs::write(&other, narrow).unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(reason(&other).as_deref(), Some("narrow is built for another machine"));
        // Of a script it is the interpreter that counts.
        let script = folder.join("script");
        fs::write(&script, format!("#!{}\n", fixed.display())).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(reason(&script), reason(&fixed));
        assert_eq!(reason(Path::new("sh")), None);
        assert_eq!(reason(&folder.join("nothing")), None);
    }
}
