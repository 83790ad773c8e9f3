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
//! A thread with many marks does not enter the kernel for them while the profiler is there: it writes them to a ring in
//! memory that both share, the express lane ([`crate::express`]).
//!
//! Features: `std` finds the process id itself, has the express lane, and lets marks go to ftrace as well when the
//! environment says `NNTRACE_TO_FTRACE=1`; `tracing` makes marks of spans.

mod events;
// For the second probed function.
#[macro_use]
mod probed;
#[cfg(all(
    feature = "std",
    target_os = "linux",
    target_endian = "little",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod lane;
#[cfg(not(all(
    feature = "std",
    target_os = "linux",
    target_endian = "little",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[path = "emit/no_lane.rs"]
mod lane;
mod payload;
mod section;
#[cfg(feature = "std")]
mod sink;
mod site;
#[cfg(feature = "tracing")]
mod spans;
mod write;

use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, Ordering};

pub use events::{counter, event, handle, instant, recv, send};
pub use payload::{CAPACITY, Payload};
pub use probed::tracing_mark_write;
pub use section::{Section, codes};
pub use site::Site;
#[cfg(feature = "tracing")]
pub use spans::MarkLayer;

/// Runs the examples of the documentation as tests.
#[cfg(all(doctest, feature = "tracing"))]
#[doc = include_str!("../docs/marking.md")]
mod marking {}

/// Process id in payloads. Informative only, so nothing depends on the order of its store and its loads.
static PID: AtomicU32 = AtomicU32::new(0);

/// Sets the process id that this process's payloads carry. They carry 0 until this is called, but for those that go to
/// ftrace's file by the feature `std`: these have the real one.
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
    probed::is_probed() || to_ftrace
}

/// Writes one mark unchanged.
pub fn mark(payload: &CStr) {
    tracing_mark_write(payload.as_ptr().cast());
    #[cfg(feature = "std")]
    sink::write(payload.to_bytes());
}

fn current_pid() -> u32 {
    #[cfg(feature = "std")]
    // In ftrace's file this is the only process id. A profiler knows it, and a program that confines itself may be killed
    // for the question.
    if sink::is_open() {
        return std::process::id();
    }
    PID.load(Ordering::Relaxed)
}
