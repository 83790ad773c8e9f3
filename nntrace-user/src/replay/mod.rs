//! Trace files: from the bytes of a file to records, and through the same model as live records.
//!
//! `input` opens and unpacks, `lines` splits, `html` finds the trace in a page, `ftrace` reads a line, `tracedat` reads
//! trace-cmd's binary files, `header` and `markers` what a trace says of the machine and of itself, `events` puts several
//! inputs into one stream; `order` puts events and what comes of them into one order of time; `survey` and
//! `losses` find where the window is and where events are missing; `accounts` keeps a stack for each thread, `cpus` a
//! machine for each CPU; `pass` goes once through everything.

mod begins;
mod cpus;
mod diagnostics;
pub mod events;
mod file_cursor;
pub mod ftrace;
mod header;
mod hotplug;
mod html;
pub mod input;
pub mod lines;
pub mod losses;
mod markers;
mod order;
mod parse_cache;
mod pass;
mod run;
mod sched;
mod survey;
mod tasks;
mod thread_stacks;
mod tracedat;

pub use run::{Options, Replayed, TimeRange, replay};

#[cfg(test)]
mod tests;
