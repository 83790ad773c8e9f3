//! Player of recordings: processes and threads that write the marks of a recorded run once more, at their times, for any
//! consumer: a live run, bpftrace, ftrace.
//!
//! ```text
//! collect   inputs of the recorded model, by thread
//! nesting   which section was in which
//! steps     what a thread writes: begins, ends, events, in order of time, checked against the contract's accounting
//! script    processes and threads, and who starts whom
//! ordering  which marks come after which of other threads, however late they are
//! player    a child for each process, a thread for each thread
//! systrace  the same marks as the text of ftrace
//! ```
//!
//! `docs/emit.md` says what is the same in the second run, and what is not.

mod collect;
mod error;
mod lives;
mod nesting;
mod ordering;
mod outlet;
mod pace;
mod player;
mod script;
mod shared;
mod steps;
pub mod systrace;
mod texts;
mod thread;

pub use error::EmitError;
pub use outlet::OutletKind;
pub use pace::Speed;
pub use player::{Played, play};
pub use script::Script;

#[cfg(test)]
mod tests;
