//! Trace files: from the bytes of a file to records, and through the same model as live records.
//!
//! `input` opens and unpacks files, `lines` splits them, `html` finds the trace in a page, `ftrace` parses a line,
//! `batch` holds many parsed lines, `batches` has them parsed by other threads; `tracedat` and `perfetto` read
//! binary files, in `step`s, `header` and `markers` parse descriptions of the host and of the trace itself, `events` merges several inputs
//! into one stream; `order` puts events and their records into one order of
//! time; `declared` is what a trace declares, `survey` and `losses` find the window and the gaps, `cpu_survey` the CPUs; `thread_stacks` keeps a stack for
//! each thread; `pass` goes once through all events.

mod accounting_pass;
mod batch;
mod batches;
mod binder;
mod cpu_survey;
mod declared;
mod device_clocks;
mod device_events;
mod driver_marks;
mod event_fields;
mod event_order;
pub(crate) mod events;
mod file_cursor;
mod fork_exit;
mod frequency_limits;
pub mod ftrace;
mod header;
mod hotplug;
mod html;
pub(crate) mod input;
mod json_text;
mod kernel_events;
pub mod lines;
pub(crate) mod losses;
mod perfetto;
mod recognition;
mod run;
mod sched;
mod step;
mod thread_stacks;
mod trace_survey;
mod tracedat;
mod window_markers;

pub use run::{Options, Replayed, TimeRange, replay, replay_with_observer, replay_with_sections};

#[cfg(test)]
mod tests;
