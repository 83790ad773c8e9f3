//! Things to probe: the processes, the files they map, and the mark functions in those. Nothing here depends on BPF.
//!
//! ```text
//!  --pid, --comm ─► process ─► objects (maps) ─► search ─► MarkFunction: file, offset, layout
//!  -- command ────► launch ──► held ──► process           (symbols ─ elf, signature, layout)
//! ```
//!
//! - `process`: selection by number or name; threads, descendants. `pidfd`: notification of their end.
//! - `maps`, `objects`: the files that a process executes, and a path by which we can open each.
//! - `process_files`: all files that a process has mapped.
//! - `elf`, `signature`, `layout`, `symbols`, `search`: the functions to probe, where they are, and what their
//!   arguments are; and the message if there are none. `points`: the instructions to probe; `jumps`: whether one
//!   function leads to another. `pairs`: functions that are of use only together. `exports`: other symbols.
//! - `examiner`: parsing of files, in this process or in one without privileges.
//! - `pages`: literals that a probe can read only once they are in memory.
//! - `loader`: the function of the dynamic loader that is called when libraries are mapped.
//! - `command`, `launch`, `held`: starting a command that waits until the probes are in place. `preloading`: whether a library
//!   can be preloaded into it.

mod argument_layout;
mod begin_end_pairs;
mod command_lookup;
mod elf;
mod elf_error;
pub(in crate::live) mod examiner;
mod exports;
mod function_search;
mod held_command;
mod inherited_signals;
mod launch;
mod loader;
mod mapped_files;
mod name_matching;
mod object_id;
mod pidfd;
mod pinned_file;
mod prefault;
mod preloading;
mod probe_points;
mod proc_maps;
mod process;
mod process_files;
mod signature;
mod symbols;
mod tail_calls;

pub(crate) use argument_layout::Role;
pub use argument_layout::{Layout, SymbolSpec};
pub(crate) use begin_end_pairs::{kind, kind_of, take_unpaired};
pub(in crate::live) use command_lookup::{Interpreter, has_interpreter};
pub(in crate::live) use elf::{EntryOffset, PointsAt, check_identity};
pub(crate) use elf::{entry_offset, probe_points};
pub(in crate::live) use elf_error::ElfErrorReason;
pub(in crate::live) use exports::Export;
pub(crate) use exports::exports;
pub(crate) use function_search::{LaneFunction, MarkFunction, SearchReport};
pub(crate) use held_command::HeldEvent;
pub use held_command::{Held, Running};
pub use launch::{ChildOutput, Launch};
pub(crate) use loader::{Notification, loader_of, notification};
pub(crate) use mapped_files::{KnownMappings, Object, Objects};
pub(crate) use object_id::{FileState, ObjectId, SeenFiles};
pub use pidfd::PidFd;
pub(crate) use pinned_file::PinnedFile;
pub(in crate::live) use pinned_file::{Content, content, present_name};
pub(crate) use prefault::touch_literals;
pub(in crate::live) use preloading::{Obstacle, obstacle as obstacle_to_preloading};
#[cfg(test)]
pub(crate) use probe_points::ProbePoints;
pub(in crate::live) use probe_points::{PAGE, is_emulated_on_arm64, is_emulated_on_x86_64};
pub(crate) use proc_maps::{executable, own_writable};
pub(crate) use process::ProcessError;
pub use process::{Process, Processes};
pub(in crate::live) use process_files::mapped;
pub use symbols::search_file;
pub(in crate::live) use symbols::{LanePoint, MarkFunctions, SimilarFunctions};
pub(in crate::live) use tail_calls::{arm64_target, is_indirect_on_arm64};
