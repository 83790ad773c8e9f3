//! Tasks of Intel's Instrumentation and Tracing Technology (ITT), which oneDNN and others show to a collector: the library
//! that makes marks of them, and the variable by which a program finds it.
//!
//! The library is compiled from `nntrace-common/itt`; `docs/itt.md` has what is seen through it.

use std::{
    env, io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::{target::exports, target_library};
use crate::caller::RunAs;

/// Variable by which the static part of ITT in a 64-bit library finds a collector.
pub const VARIABLE: &str = "INTEL_LIBITTNOTIFY64";
/// Variable by which our collector finds the detail that is wanted: `run` leaves operators and primitives out.
pub const LEVEL: &str = "NNTRACE_ITT";
/// File name of our collector.
const LIBRARY: &str = "libnntrace-itt.so";
/// Symbol that it alone exports.
const SYMBOL: &str = "nntrace_itt_collector";

/// Library that the user of a command may not read.
#[derive(Debug, Error)]
#[error(
    "what OpenVINO and others show by ITT is not seen: {} cannot be read by {user} ({reason}); install it where everybody may \
     read it",
    .library.display()
)]
pub struct Unreadable {
    /// Path of the library.
    library: PathBuf,
    /// User that the command runs as.
    user: String,
    /// Reason.
    reason: io::Error,
}

/// Returns the path of the library for the environment of a command that runs as `user`, by default as ourselves.
/// `None` if it is not enabled, if the environment names a collector already, or if there is no library.
///
/// # Errors
/// When that user may not read the library.
pub fn environment(enabled: bool, user: Option<&RunAs>) -> Result<Option<PathBuf>, Unreadable> {
    if !enabled || env::var_os(VARIABLE).is_some() {
        return Ok(None);
    }
    let Some(library) = target_library::find(LIBRARY) else { return Ok(None) };
    match target_library::check_readable(&library, user) {
        Ok(()) => Ok(Some(library)),
        Err((user, reason)) => Err(Unreadable { library, user, reason }),
    }
}

/// Whether a file is this library, whatever its name. One that cannot be read is not.
pub(crate) fn is_collector(path: &Path) -> bool {
    exports(path, SYMBOL).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_set_unless_it_is_enabled() {
        assert!(environment(false, None).unwrap().is_none());
    }

    #[test]
    fn a_program_is_no_collector() {
        assert!(!is_collector(&env::current_exe().unwrap()));
        assert!(!is_collector(Path::new("/no/such/file")));
    }
}
