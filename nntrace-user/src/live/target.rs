//! What to probe: the processes, the files they map, and the mark functions in those. Nothing here knows BPF.
//!
//! ```text
//!  --pid, --comm ─► process ─► objects (maps) ─► search ─► MarkFunction: file, offset, layout
//!  -- command ────► launch ──► held ──► process           (symbols ─ elf, signature, layout)
//! ```
//!
//! - `process`: by number or name; threads, descendants. `pidfd`: learning their end.
//! - `maps`, `objects`: which files a process executes, and by which path we can open each.
//! - `elf`, `signature`, `layout`, `symbols`, `search`: which functions are to be probed, where, and what their
//!   arguments are; and what to say if there are none. `points`: which of their instructions; `jumps`: whether one
//!   leads to another. `pairs`: functions that are of use only together.
//! - `pages`: what a probe can read only once somebody has read it.
//! - `loader`: where the dynamic loader tells that it maps libraries.
//! - `run_as`, `command`, `launch`, `held`: starting a command that waits until the probes are in place.

mod command;
mod elf;
mod held;
mod jumps;
mod launch;
mod layout;
mod loader;
mod maps;
mod names;
mod objects;
mod pages;
mod pairs;
mod pidfd;
mod points;
mod process;
mod run_as;
mod search;
mod signature;
mod symbols;

pub(crate) use elf::{entry_offset, probe_points};
pub(crate) use held::HeldEvent;
pub use held::{Held, Running};
pub use launch::{ChildOutput, Launch};
pub(crate) use layout::Role;
pub use layout::{Layout, MARK_FUNCTION, SECTION_FUNCTIONS, SymbolSpec};
pub(crate) use loader::{Notification, loader_of, notification};
pub(crate) use maps::executable;
pub(crate) use objects::{Object, ObjectId, Objects};
pub(crate) use pages::touch_literals;
pub(crate) use pairs::{kind, kind_of, take_unpaired};
pub use pidfd::PidFd;
#[cfg(test)]
pub(crate) use points::ProbePoints;
pub(crate) use process::ProcessError;
pub use process::{Process, Processes};
pub use run_as::RunAs;
pub(crate) use search::{MarkFunction, SearchReport};
pub use symbols::search_file;
