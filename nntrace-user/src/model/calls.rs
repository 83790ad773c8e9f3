//! Calls of functions, recorded one by one with their arguments and results. No finding is made of them: a model hands them
//! to its observer.

mod signature;
mod value_type;

use nntrace_common::calls::{CallEnd, MemoryState};
use serde::{Deserialize, Serialize};

pub(crate) use self::{
    signature::{Parameter, Signature},
    value_type::{Length, Register, Scalar, ValueType},
};

/// Function whose calls are recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallDefinition {
    /// Number by which calls refer to it.
    pub(crate) number: u32,
    /// File, as its processes name it.
    pub(crate) file: String,
    /// Name of the function, demangled.
    pub(crate) function: String,
    /// Arguments and result.
    #[serde(flatten)]
    pub(crate) signature: Signature,
}

/// Call of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// Number of the function's definition.
    pub(crate) definition: u32,
    /// Process.
    pub(crate) pid: u32,
    /// Thread.
    pub(crate) tid: u32,
    /// Begin, ns.
    pub(crate) begin: u64,
    /// End, ns; of an open call, the end of the run.
    pub(crate) end: u64,
    /// Way in which it ended.
    pub(crate) ended: CallEnd,
    /// Values of the arguments that are not skipped, in their order, and of the result.
    pub(crate) values: Vec<Captured<'a>>,
}

/// Value as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Captured<'a> {
    /// Word of a register or of the stack. Bits above those of its type mean nothing.
    Word(u64),
    /// Bytes behind a pointer.
    Memory {
        /// State; without bytes unless they were read.
        state: MemoryState,
        /// Bytes.
        bytes: &'a [u8],
    },
}
