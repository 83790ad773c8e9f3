//! Places where a function can be probed: one at its begin, and its returns.
//!
//! Returns are probed one by one, since a probe of the kernel's own kind on returns (a return probe) ends a C++ program
//! when an exception passes through the function. That is complete only if the function ends in no other way: a jump to
//! another function (a tail call) leaves it without a return.

mod arm64;
mod entry;
mod function;
mod listing;
mod machine;
mod x86_64;

use std::fmt;

use thiserror::Error;

pub(super) use self::arm64::words;
pub(in crate::live) use self::entry::entry_point;
use self::function::Function;
pub(super) use self::x86_64::written as written_on_x86_64;
use super::bounds::{BoundsError, FunctionBounds};
use super::image::Image;

/// Length of a function, or of a part of one, at most, in bytes.
pub(super) const LONGEST: u64 = 1 << 20;
/// Parts of a function at most, and other functions that it jumps to.
const MOST_PARTS: usize = 16;
const MOST_CALLEES: usize = 256;

/// Places of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::live) struct Shape {
    /// Place for the probe at its begin.
    pub entry: EntryPoint,
    /// Addresses of its returns, in ascending order, those of its distant parts included.
    pub returns: Vec<u64>,
    /// Addresses of returns that no kernel lets probe: those of arm64 with pointer authentication.
    pub refused_returns: Vec<u64>,
    /// Jumps by which it ends.
    pub tail_jumps: TailJumps,
}

/// Place at a function's begin, where its arguments are still in their registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) struct EntryPoint {
    /// Address of the instruction.
    pub address: u64,
    /// Bytes that the function has put on the stack before it: to be added to the stack pointer for that at the entry.
    pub sp_offset: u64,
    /// Whether all kernels emulate the instruction, which is cheaper than a single step.
    pub is_emulated: bool,
}

/// Jumps by which a function ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::live) enum TailJumps {
    /// There are none: it ends by its returns, exceptions, or not at all.
    None,
    /// These, by address.
    Known(Vec<TailJump>),
    /// Some jump may or may not lead out of it.
    Unclear(UnclearJump),
}

/// Jump to another function, or to the function's own begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::live) struct TailJump {
    /// Address of the instruction.
    pub address: u64,
    /// Address of the other function; `None` if it is in a variable.
    pub target: Option<u64>,
}

/// Indirect jump whose targets are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) struct UnclearJump {
    /// Address of the instruction.
    pub address: u64,
}

impl fmt::Display for UnclearJump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the indirect jump at {:#x} may lead into the function or out of it", self.address)
    }
}

/// Reason why the places of a function are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(in crate::live) enum ShapeError {
    /// Its bounds are unknown.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// It is longer than any function should be.
    #[error("the function at {start:#x} has {length} bytes, of which at most {LONGEST} are examined")]
    Long {
        /// Begin of the function.
        start: u64,
        /// Length in bytes.
        length: u64,
    },
    /// Its bytes are no sequence of instructions.
    #[error("no instruction at {0:#x}, where one should be")]
    NoInstruction(u64),
    /// It consists of too many parts, or jumps to too many places.
    #[error(
        "the function at {0:#x} has more than {MOST_PARTS} parts, or jumps to more than {MOST_CALLEES} places"
    )]
    Scattered(u64),
    /// No kernel lets its first instructions be probed.
    #[error("the kernel refuses probes on the first instructions of the function at {0:#x}")]
    Refused(u64),
}

/// Returns the places of the function that begins at an address.
///
/// # Errors
/// When its bounds are unknown, or its bytes are no sequence of instructions.
pub(in crate::live) fn shape<'image, 'data>(
    image: &'image Image<'data>,
    bounds: &'image FunctionBounds<'image, 'data>,
    address: u64,
) -> Result<Shape, ShapeError> {
    let function = Function::read(image, bounds, address)?;
    Ok(Shape {
        entry: entry::entry(image, Some(&function), address)?,
        returns: function.all(|part| &part.returns),
        refused_returns: function.all(|part| &part.refused_returns),
        tail_jumps: function.tail_jumps(),
    })
}

#[cfg(test)]
mod tests;
