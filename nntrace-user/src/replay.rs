//! Trace files: from the bytes of a file to records, and through the same model as live records.
//!
//! `input` opens and unpacks, `lines` splits, `html` finds the trace in a page, `ftrace` reads a line, `tracedat` reads
//! trace-cmd's binary files, `header` and `markers` what a trace says of the machine and of itself, `events` puts several
//! inputs into one stream; `order` puts events and what comes of them into one order of time; `survey` and
//! `losses` find where the window is and where events are missing, `cpu_survey` which CPUs there are; `thread_stacks` keeps a
//! stack for each thread; `pass` goes once through everything.

mod begins;
mod cpu_survey;
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
