//! The library behind `nntrace-bpf`: from marks of neural-network stacks and power events of CPUs to results.
//!
//! Each module is a floor, and data flows down the stairs:
//!
//! ```text
//!   live: a running target, the kernel      replay: trace files
//!                   └─────────── records ───────────┘
//!                                   ▼
//!                     model: marks, causes, CPUs, energy
//!                                   │ findings
//!                                   ▼
//!                     report: the snapshot, and its tables
//!                                   │ snapshots, findings
//!                     ┌─────────────┼─────────────┐
//!                     ▼             ▼             ▼
//!                  export        analyze         tui
//! ```
//!
//! - [`live`] finds the functions that write marks, attaches the kernel programs and drains their rings. It is the only
//!   floor that knows BPF.
//! - [`replay`] reads trace files, and makes of their lines the records that a live run would have made.
//! - [`emit`] plays what [`record`] kept of a run: processes and threads that write its marks once more.
//! - [`model`] turns records into findings. It is pure: no input or output, no clock, no terminal.
//! - [`report`] turns findings into the [snapshot](report::snapshot::Snapshot), which `--json` writes, and into text.
//! - [`export`] writes results in the forms of other programs, [`analyze`] compares snapshots, [`tui`] shows them.
//!
//! `foreign_map` maps memory that others may take away. [`caller`] is in whose name files are opened and created. [`result_folder`] is how folders of results are written, whatever is in them; [`small_file`], how small files are read.
//!
//! Records, the grammar of marks and the accounting of stacks are in `nntrace-common`, which the kernel programs share.
//! A [live session](live::session::Session) and a [replay](replay::replay) feed the model and hand out its
//! [findings](model::Findings); the command, in `src/bin/nntrace-bpf`, reads arguments, and decides where results go.

#![warn(unreachable_pub)]

pub mod analyze;
pub mod caller;
pub mod emit;
pub mod export;
mod foreign_map;
pub mod live;
pub mod model;
mod perfetto_schema;
pub mod record;
pub mod replay;
pub mod report;
pub mod result_folder;
pub mod small_file;
pub mod tui;
