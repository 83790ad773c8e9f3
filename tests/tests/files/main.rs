//! Traces and recordings: read, written, damaged and converted.

mod emitted;
mod flight;
mod fuzz_corpus;
mod packs;
mod perfetto_read;
mod recorded_files;
mod recording_decoder;
mod recording_format;
mod recordings;
mod recordings_damaged;
mod recordings_shown;
mod replay_inputs;
mod replay_losses;
mod trace_containers;
mod trace_dat;
