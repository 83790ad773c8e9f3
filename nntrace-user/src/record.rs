//! Recordings: everything that a run's model takes, on disk, and the same run again from there.
//!
//! A recording is a folder with a file for each stream of events: the run, each CPU, each thread with many events, and one
//! for all others. Streams are blocks, which need no other one to be read; events have numbers across all streams, so that
//! the order in which the model took them is known. About once a second the state of the run is written beside them: the
//! sums that the kernel programs keep, and all other facts that no event shows. `docs/format.md` is the format, byte by
//! byte.

mod ancestry;
mod block;
mod blocks;
mod call_entry;
mod calls;
mod cause;
mod clocks;
mod contents;
mod cpu_states;
mod cuts;
mod decode;
mod disk;
mod early;
mod encode;
mod error;
mod facts;
mod file_identity;
mod files;
mod flight;
mod flight_recorder;
mod folder;
mod format;
mod hex;
mod initial_host;
mod inputs;
mod kept;
mod kind;
mod limit_entry;
#[cfg(test)]
mod made_up;
mod order;
mod ordered_sections;
mod pack;
mod read;
mod recorded;
mod recorder;
mod rival_entry;
mod sections;
mod statistics;
mod stream_files;
mod streams;
mod summary;
#[cfg(test)]
mod tests;
mod threads;
mod trigger;
mod unpack;
mod varint;
mod writer;

pub use calls::{Calls, calls};
pub use cause::Cause;
pub use clocks::ClockReading;
pub use error::{ReadError, RecordError};
pub use facts::RunDescription;
pub use file_identity::FileIdentity;
pub use flight_recorder::{FlightOptions, FlightRecorder};
pub use format::is_recording;
pub use inputs::power_events;
pub(crate) use inputs::{RecordedFacts, inputs};
pub use ordered_sections::{OrderedSections, SectionOrMark};
pub use pack::{PackError, PackOptions, Packed, pack};
pub use recorded::{Recorded, ReplayOptions, play, replay, replay_with_observer};
pub use recorder::{MostSize, Progress, Recorder};
pub use sections::sections;
pub use statistics::{RecordedStatistics, statistics};
pub use summary::{StreamSummary, Summary};
pub use threads::{NamedThread, Threads};
pub use trigger::{MOST_TRIGGERS, Trigger};
pub use unpack::{UnpackError, Unpacked, unpack};
