//! Things to probe: the processes, the files they map, and the mark functions in those. Nothing here depends on BPF.
//!
//! ```text
//!  --pid, --comm ─► process ─► objects (maps) ─► search ─► MarkFunction: file, offset, layout
//!  -- command ────► launch ──► held ──► process           (symbols ─ elf, signature, layout)
//! ```
//!
//! - `process`: selection by number or name; threads, descendants. `pidfd`: notification of their end.
//! - `maps`, `objects`: the files that a process executes, and a path by which we can open each.
//! - `elf`, `signature`, `layout`, `symbols`, `search`: the functions to probe, where they are, and what their
//!   arguments are; and the message if there are none. `points`: the instructions to probe; `jumps`: whether one
//!   function leads to another. `pairs`: functions that are of use only together.
//! - `pages`: literals that a probe can read only once they are in memory.
//! - `loader`: the function of the dynamic loader that is called when libraries are mapped.
//! - `run_as`, `command`, `launch`, `held`: starting a command that waits until the probes are in place.

mod begin_end_pairs;
mod command;
mod elf;
mod held_command;
mod jumps;
mod launch;
mod layout;
mod loader;
mod maps;
mod name_matching;
mod objects;
mod pages;
mod pidfd;
mod probe_points;
mod process;
mod run_as;
mod search;
mod signature;
mod symbols;

pub(crate) use begin_end_pairs::{kind, kind_of, take_unpaired};
pub(crate) use elf::{entry_offset, probe_points};
pub(crate) use held_command::HeldEvent;
pub use held_command::{Held, Running};
pub use launch::{ChildOutput, Launch};
pub(crate) use layout::Role;
pub use layout::{Layout, MARK_FUNCTION, SECTION_FUNCTIONS, SymbolSpec};
pub(crate) use loader::{Notification, loader_of, notification};
pub(crate) use maps::executable;
pub(crate) use objects::{Object, ObjectId, Objects};
pub(crate) use pages::touch_literals;
pub use pidfd::PidFd;
#[cfg(test)]
pub(crate) use probe_points::ProbePoints;
pub(crate) use process::ProcessError;
pub use process::{Process, Processes};
pub use run_as::RunAs;
pub(crate) use search::{MarkFunction, SearchReport};
pub use symbols::search_file;
