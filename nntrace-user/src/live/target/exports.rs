//! Symbols that a file exports.

use std::path::Path;

use object::NativeEndian;
use object::read::elf::Sym as _;
use serde::{Deserialize, Serialize};

use super::elf::Elf;
use super::elf_error::{ElfError, ElfErrorReason};
use super::examiner::{Examination, Folders, examine_at};

/// Whether a file exports a symbol of this name, function or not.
///
/// # Errors
/// When the file cannot be read, is no ELF file for this machine, or is damaged.
pub(crate) fn exports(path: &Path, name: &str) -> Result<bool, ElfError> {
    examine_at(path, &Export { name: name.to_owned() })
}

/// Search for a symbol that a file exports.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::live) struct Export {
    name: String,
}

impl Examination for Export {
    type Findings = bool;

    const NAME: &'static str = "export";

    fn find(&self, bytes: &[u8], _: &dyn Folders) -> Result<bool, ElfErrorReason> {
        let tables = Elf::parse(bytes)?.symbol_tables()?;
        Ok(tables.iter().filter(|table| !table.is_full() && table.may_hold(&self.name)).any(|table| {
            let is_it = |symbol| table.name(symbol) == Some(&self.name);
            table.symbols.iter().any(|symbol| !symbol.is_undefined(NativeEndian) && is_it(symbol))
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn an_exported_variable_and_what_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("library.c");
        let text = "extern int imported; const int exported = 1; __attribute__((visibility(\"hidden\"))) int hidden;\n\
                    int *use(void) { return hidden ? &imported : &hidden; }";
        std::fs::write(&source, text).unwrap();
        for strip in [None, Some("-s")] {
            let library = dir.path().join("library.so");
            let mut compile = Command::new("cc");
            compile.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).args(strip);
            assert!(compile.status().unwrap().success());
            assert!(exports(&library, "exported").unwrap());
            for other in ["imported", "hidden", "exporte", "exported_not"] {
                assert!(!exports(&library, other).unwrap(), "{other}");
            }
        }
        assert!(exports(&source, "exported").is_err());
    }
}
