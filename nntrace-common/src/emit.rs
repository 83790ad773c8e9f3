//! Guards that write marks: the layer and phase of a Rust program's sections, for the profiler.
//!
//! ```
//! use nntrace_common::{emit, mark};
//!
//! # let (frame, customer, job) = (7, "foo", emit::handle());
//! let execution = mark!(LR, PE, "execute", iter = frame, acct = customer);
//! {
//!     let transformation = mark!(LC, PTR, "to NHWC");
//!     // ... bring the input into the layout that the kernel wants ...
//!     let _computation = mark!(switch transformation; LC, PCO, "conv2d", channels = 32);
//!     // ... compute ...
//! } // both ends, in the right order
//! emit::send(job); // some other thread: mark!(LC, PE, "convert", h = job)
//! drop(execution);
//! ```
//!
//! A guard ends its section when it is dropped: at the end of its scope, at `return` and `?`, and in a panic that
//! unwinds.
//!
//! A mark is a call of [`tracing_mark_write`], on which the profiler puts a uprobe. While there is none ([`listens`]),
//! a section costs two loads: nothing is formatted, and the values given to [`mark!`](crate::mark!) are not even computed.
//!
//! Features: `std` finds the process id itself, and lets marks go to ftrace as well when the environment says
//! `NNTRACE_TO_FTRACE=1`; `tracing` makes marks of spans.

mod events;
mod payload;
mod section;
#[cfg(feature = "std")]
mod sink;
mod site;
#[cfg(feature = "tracing")]
mod spans;

use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, Ordering};

pub use events::{counter, handle, instant, recv, send};
pub use payload::{CAPACITY, Payload};
pub use section::{Section, codes};
pub use site::tracing_mark_write;
#[cfg(feature = "tracing")]
pub use spans::MarkLayer;

/// Runs the examples of the documentation as tests.
#[cfg(all(doctest, feature = "tracing"))]
#[doc = include_str!("../docs/marking.md")]
mod marking {}

/// Process id in payloads. Informative only, so nothing depends on the order of its store and its loads.
static PID: AtomicU32 = AtomicU32::new(0);

/// Sets the process id that this process's payloads carry. Only needed without the feature `std`: they carry 0 until
/// this is called.
///
/// The id is there for people who read payloads: the profiler pairs begins and ends by the kernel's thread id.
pub fn init(pid: u32) {
    PID.store(pid, Ordering::Relaxed);
}

/// Whether a mark would be received: a probe is in place, or marks go to ftrace. Before the first mark the answer may
/// be wrongly yes.
#[inline]
#[must_use]
pub fn listens() -> bool {
    #[cfg(feature = "std")]
    let to_ftrace = sink::may_be_open();
    #[cfg(not(feature = "std"))]
    let to_ftrace = false;
    site::is_probed() || to_ftrace
}

/// Writes one mark unchanged.
pub fn mark(payload: &CStr) {
    tracing_mark_write(payload.as_ptr().cast());
    #[cfg(feature = "std")]
    sink::write(payload.to_bytes());
}

/// Creates and writes a mark if anyone listens; returns whether it did.
#[inline]
fn write_if_heard(make: impl FnOnce() -> Payload) -> bool {
    listens() && write_now(make)
}

/// Creates and writes a mark if anyone listens. Kept out of the marking code, which mostly runs without it.
#[cold]
#[inline(never)]
fn write_now(make: impl FnOnce() -> Payload) -> bool {
    // The first mark determines whether marks go to ftrace.
    #[cfg(feature = "std")]
    let heard = sink::is_open() || site::is_probed();
    #[cfg(not(feature = "std"))]
    let heard = true;
    if heard {
        make().write();
    }
    heard
}

fn current_pid() -> u32 {
    let known = PID.load(Ordering::Relaxed);
    #[cfg(feature = "std")]
    // In ftrace's file this is the only process id, so it must be right in a forked child. A probe has the real one.
    if known == 0 || sink::is_open() {
        let pid = std::process::id();
        init(pid);
        return pid;
    }
    known
}
