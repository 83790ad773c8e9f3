//! Target architecture of the kernel programs.
//!
//! The registers of a function's arguments are compiled into the programs. An object for another architecture would
//! load, attach and fire, but read garbage: therefore the object names its architecture, which is checked first.

use std::env::consts::ARCH;

use object::{Object as _, ObjectSection as _};
use thiserror::Error;

/// Section with the name of the object's architecture, written by `nntrace-ebpf`.
const SECTION: &str = "nntrace.arch";

/// Mismatch of the architectures of the embedded object and of this program.
#[derive(Debug, Error)]
#[error(
    "the kernel programs that were built in are for {found}, and this program is for {ARCH}: what they would read of marks is \
     garbage; build again with cargo build --target {ARCH}-unknown-linux-gnu"
)]
pub struct WrongArchitecture {
    /// The object's architecture.
    found: String,
}

/// Checks that the programs are for the architecture of this program.
///
/// # Errors
/// When they are for another one, or name none.
pub(super) fn check(object: &[u8]) -> Result<(), WrongArchitecture> {
    let found = named(object).unwrap_or_else(|| "machines that they do not name".into());
    if found == ARCH { Ok(()) } else { Err(WrongArchitecture { found }) }
}

/// Returns the architecture that the object names, spelled as in Rust.
fn named(object: &[u8]) -> Option<String> {
    let file = object::File::parse(object).ok()?;
    let data = file.section_by_name(SECTION)?.data().ok()?;
    Some(str::from_utf8(data).ok()?.trim_end_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::kernel::object::OBJECT;

    /// Returns the object with another architecture in the place of ours.
    fn for_other(name: [u8; 8]) -> Vec<u8> {
        let mut ours = [0; 8];
        ours[..ARCH.len()].copy_from_slice(ARCH.as_bytes());
        let file = object::File::parse(OBJECT).unwrap();
        let (at, len) = file.section_by_name(SECTION).unwrap().file_range().unwrap();
        let mut object = OBJECT.to_vec();
        let place = &mut object[at as usize..(at + len) as usize];
        assert_eq!(place, ours);
        place.copy_from_slice(&name);
        object
    }

    #[test]
    fn the_object_that_was_built_in_is_for_this_machine() {
        assert!(check(OBJECT).is_ok());
    }

    #[test]
    fn an_object_for_another_machine_is_refused_by_name() {
        let text = check(&for_other(*b"riscv64\0")).unwrap_err().to_string();
        assert!(text.contains("are for riscv64, and this program is for"), "{text}");
    }

    #[test]
    fn an_object_that_names_none_is_refused() {
        let text = check(b"\x7fELF").unwrap_err().to_string();
        assert!(text.contains("machines that they do not name"), "{text}");
    }
}
