//! Trace files: from the bytes of a file to records, and through the same model as live records.
//!
//! `input` opens and unpacks files, `lines` splits them, `html` finds the trace in a page, `ftrace` parses a line,
//! `tracedat` reads trace-cmd's binary files, `header` and `markers` parse descriptions of the host and of the trace
//! itself, `events` merges several inputs into one stream; `order` puts events and their records into one order of
//! time; `survey` and `losses` find the window and the gaps, `cpu_survey` the CPUs; `thread_stacks` keeps a stack for
//! each thread; `pass` goes once through all events.

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
