//! Recordings: everything that a run's model takes, on disk, and the same run again from there.
//!
//! A recording is a folder with a file for each stream of events: the run, each CPU, each thread with many events, and one
//! for all others. Streams are blocks, which need no other one to be read; events have numbers across all streams, so that
//! the order in which the model took them is known. About once a second the state of the run is written beside them: the
//! sums that the kernel programs keep, and all other facts that no event shows. `docs/format.md` is the format, byte by
//! byte.

mod ancestry;
mod block;
mod cause;
mod clocks;
mod cpu_states;
mod cuts;
mod decode;
mod disk;
mod early;
mod encode;
mod error;
mod facts;
mod files;
mod flight;
mod flight_recorder;
mod folder;
mod format;
mod initial_host;
mod kept;
mod kind;
mod order;
mod read;
mod recorded;
mod recorder;
mod sections;
mod streams;
#[cfg(test)]
mod tests;
mod trigger;
mod varint;
mod writer;

pub use cause::Cause;
pub use clocks::ClockReading;
pub use error::{ReadError, RecordError};
pub use facts::RunDescription;
pub use flight_recorder::{FlightOptions, FlightRecorder};
pub use format::is_recording;
pub use recorded::{Recorded, ReplayOptions, replay};
pub use recorder::{MostSize, Progress, Recorder};
pub use sections::sections;
pub use trigger::{MOST_TRIGGERS, Trigger, TriggerError};
