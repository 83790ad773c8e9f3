//! Progress of what takes long, on stderr while that is a terminal.

use std::io::Write;

use indicatif::{ProgressBar, ProgressBarIter, ProgressFinish, ProgressStyle};

/// Writer that shows how much was written to it, and how fast.
pub type Shown<W> = ProgressBarIter<W>;

/// Form of the line that shows it.
const LINE: &str = "nntrace-bpf: {msg}{binary_bytes} written, {binary_bytes_per_sec}, {elapsed}";

/// Returns a writer that shows how much was written to it, after the name of what that is. Its line is gone when it is dropped:
/// messages come after that.
pub fn shown<W: Write>(out: W, what: &'static str) -> Shown<W> {
    let bar = ProgressBar::new_spinner().with_message(what).with_finish(ProgressFinish::AndClear);
    if let Ok(style) = ProgressStyle::with_template(LINE) {
        bar.set_style(style);
    }
    bar.wrap_write(out)
}
