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

pub use elf::{ElfError, ElfErrorReason, entry_offset, probe_points};
pub use held::{Held, HeldEvent, Running};
pub use launch::{ChildOutput, Launch, LaunchError, shell_code};
pub use layout::{Layout, MARK_FUNCTION, Role, SECTION_FUNCTIONS, SpecError, SymbolSpec};
pub use loader::{Notification, loader_of, notification};
pub use maps::{Mapping, executable};
pub use objects::{Object, ObjectId, Objects, OpenError, Unopened};
pub use pages::touch_literals;
pub use pairs::{kind, kind_of, take_lonely};
pub use pidfd::PidFd;
pub use points::{Nop, ProbePoints};
pub use process::{Process, ProcessError, Processes};
pub use run_as::{RunAs, RunAsError};
pub use search::{Failed, MarkFunction, NearMatch, SearchReport, Searched};
pub use symbols::{FileSearch, Found, Near, NearReason, search_file, similar_in_file};
