//! Marks in ftrace's own file as well, when the environment asks for it.

use std::fs::File;
use std::io::Write as _;
use std::sync::OnceLock;

/// Environment variable that sends marks there if it is 1.
const VARIABLE: &str = "NNTRACE_TO_FTRACE";
/// File of the kernel that takes marks.
const TRACE_MARKER: &str = "/sys/kernel/tracing/trace_marker";

/// The file, once it was asked for; it stays open until the program ends.
static SINK: OnceLock<Option<File>> = OnceLock::new();

/// Whether marks go to ftrace, or that is not yet known.
#[inline]
pub(super) fn may_be_open() -> bool {
    SINK.get().is_none_or(Option::is_some)
}

/// Whether marks go to ftrace.
pub(super) fn is_open() -> bool {
    sink().is_some()
}

/// Writes a mark to the file, if marks go there.
pub(super) fn write(text: &[u8]) {
    if let Some(mut file) = sink() {
        // ftrace may be switched off, and its file removed: the program continues.
        let _ = file.write(text);
    }
}

fn sink() -> Option<&'static File> {
    let open = || {
        if std::env::var_os(VARIABLE).is_none_or(|value| value != "1") {
            return None;
        }
        let opened = File::options().write(true).open(TRACE_MARKER);
        if let Err(error) = &opened {
            eprintln!(
                "nntrace: {VARIABLE}=1, but no marks go to ftrace: {TRACE_MARKER}: {error}; mount tracefs there and \
                 run as root"
            );
        }
        opened.ok()
    };
    SINK.get_or_init(open).as_ref()
}
