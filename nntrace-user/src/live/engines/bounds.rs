//! Begin and end of functions in stripped files: from the table of call frames, which exceptions need, or else from the
//! sizes of symbols.
//!
//! A compiler may place the parts of a function that seldom run, most of them for exceptions, far away from it. Such a
//! part has call frames of its own, and is not within the function's bounds. It is recognized by its frame: on a
//! function's first instruction the frame is empty, while on such a part's it is the one that the function has set up.
//! [`super::code`] follows jumps to these parts. The landing pads of exceptions among them are jumped to from pads
//! within the bounds, which GCC adds for that; those in distant parts that a compiler leads to from its exception table alone
//! are not found, so that a return in one of them is missed.

mod landing_pads;

use std::ops::Range;
use std::sync::OnceLock;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry, LittleEndian,
    ParsedEhFrameHdr, Register, UnwindContext, UnwindSection as _,
};
use thiserror::Error;

use super::image::{Image, Machine};

type Bytes<'data> = EndianSlice<'data, LittleEndian>;

/// Bytes of an entry of the table of call frames at least.
const SHORTEST_ENTRY: usize = 4;

/// Bounds of functions in a file.
pub(in crate::live) struct FunctionBounds<'image, 'data> {
    image: &'image Image<'data>,
    frames: Option<Frames<'data>>,
    /// Begins and ends by symbols, by address; filled when first needed.
    by_symbol: OnceLock<Vec<Range<u64>>>,
}

/// Begin and end of a function, or of a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) struct Bounds {
    /// Address of the first instruction.
    pub start: u64,
    /// Address after the last instruction.
    pub end: u64,
    /// Origin of the bounds.
    pub source: BoundsSource,
}

/// Origin of a function's bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) enum BoundsSource {
    /// Table of call frames.
    Frames,
    /// Address and size of a symbol.
    Symbol,
}

/// Reason why the bounds of a function are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(in crate::live) enum BoundsError {
    /// No call frame and no symbol covers the address.
    #[error("no call frame and no symbol of the file covers the address {0:#x}")]
    Unknown(u64),
    /// A function covers the address, but begins at another one.
    #[error("the function that covers the address {address:#x} begins at {start:#x}")]
    Within {
        /// Address looked for.
        address: u64,
        /// Begin of the function.
        start: u64,
    },
}

/// State of a function's call frame at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// As when the function is called, and when it returns.
    Empty,
    /// Something is on the stack.
    Set,
    /// The begin of the frame is computed from memory: in functions that align their stacks, something is on the stack;
    /// but also in code of the linker's, which calls functions of other files.
    Computed,
}

/// Table of call frames.
struct Frames<'data> {
    table: ParsedEhFrameHdr<Bytes<'data>>,
    section: EhFrame<Bytes<'data>>,
    /// Address of the section.
    start: u64,
    bases: BaseAddresses,
}

impl Bounds {
    pub(super) fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }
}

impl<'image, 'data> FunctionBounds<'image, 'data> {
    pub(in crate::live) fn of(image: &'image Image<'data>) -> Self {
        Self { image, frames: Frames::of(image), by_symbol: OnceLock::new() }
    }

    /// Returns the bounds of the function that begins at an address.
    ///
    /// # Errors
    /// When no function is known to begin there.
    pub(in crate::live) fn at(&self, address: u64) -> Result<Bounds, BoundsError> {
        let bounds = self.around(address)?;
        if bounds.start == address {
            Ok(bounds)
        } else {
            Err(BoundsError::Within { address, start: bounds.start })
        }
    }

    /// Returns the bounds of the function that covers an address.
    ///
    /// # Errors
    /// When none is known to.
    pub(in crate::live) fn around(&self, address: u64) -> Result<Bounds, BoundsError> {
        let by_frames = self.frames.as_ref().and_then(|frames| frames.around(address));
        let bounds = by_frames.or_else(|| self.symbol_around(address));
        bounds.filter(|bounds| self.is_code(bounds)).ok_or(BoundsError::Unknown(address))
    }

    /// Returns the state of the call frame at an instruction; `None` where it is unknown.
    pub(super) fn frame(&self, address: u64) -> Option<Frame> {
        self.frames.as_ref()?.frame(address, self.image.machine())
    }

    /// Whether these are the bounds of a part that a compiler has moved away from its function: the frame is set up before
    /// the first instruction, or by one that does nothing, which GCC adds as no landing pad may be at a part's start.
    pub(super) fn is_part(&self, bounds: &Bounds) -> bool {
        let is_set = |address| matches!(self.frame(address), Some(Frame::Set | Frame::Computed));
        let nop: &[u8] = match self.image.machine() {
            Machine::X86_64 => &[0x90],
            Machine::Arm64 => &[0x1f, 0x20, 0x03, 0xd5],
        };
        let is_nop = self.image.rest(bounds.start).is_some_and(|code| code.starts_with(nop));
        is_set(bounds.start) || is_nop && is_set(bounds.start + nop.len() as u64)
    }

    /// Returns the landing pads of the function, or the part of one, that begins at an address; `None` where they are not
    /// known.
    pub(super) fn landing_pads(&self, bounds: &Bounds) -> Option<Vec<u64>> {
        if bounds.source == BoundsSource::Symbol {
            // Without call frames no exception can pass.
            return Some(Vec::new());
        }
        let entry = self.frames.as_ref()?.entry(bounds.start)?;
        match entry.lsda() {
            None => Some(Vec::new()),
            Some(area) => landing_pads::read(self.image.rest(area.direct().ok()?)?, bounds.start),
        }
    }

    /// Whether the instructions are in the file.
    fn is_code(&self, bounds: &Bounds) -> bool {
        bounds.start < bounds.end
            && self.image.is_code(bounds.start)
            && self.image.bytes(bounds.start, bounds.end - bounds.start).is_some()
    }

    fn symbol_around(&self, address: u64) -> Option<Bounds> {
        let symbols = self.by_symbol.get_or_init(|| {
            let sized = self.image.symbols().filter(|symbol| symbol.size > 0);
            let mut ranges: Vec<_> =
                sized.map(|symbol| symbol.address..symbol.address.saturating_add(symbol.size)).collect();
            ranges.sort_by_key(|range| (range.start, range.end));
            ranges.dedup();
            ranges
        });
        // Of several that begin at one address, the longest.
        let next = symbols.partition_point(|range| range.start <= address);
        let range = symbols.get(next.checked_sub(1)?).filter(|range| range.contains(&address))?;
        Some(Bounds { start: range.start, end: range.end, source: BoundsSource::Symbol })
    }
}

impl<'data> Frames<'data> {
    fn of(image: &Image<'data>) -> Option<Self> {
        let place = image.frames()?;
        let bytes = image.bytes(place.start, place.end - place.start)?;
        let bases = BaseAddresses::default().set_eh_frame_hdr(place.start);
        let table = EhFrameHdr::new(bytes, LittleEndian).parse(&bases, 8).ok()?;
        let start = table.eh_frame_ptr().direct().ok()?;
        let section = EhFrame::new(image.rest(start)?, LittleEndian);
        let bases = bases.set_eh_frame(start);
        // The search multiplies the number of entries, which is the file's, by their size.
        let (_, count) = table.table()?.iter(&bases).size_hint();
        let is_possible = count? <= bytes.len() / SHORTEST_ENTRY;
        is_possible.then_some(Self { table, section, start, bases })
    }

    fn entry(&self, address: u64) -> Option<FrameDescriptionEntry<Bytes<'data>>> {
        let place = self.table.table()?.lookup(address, &self.bases).ok()?.direct().ok()?;
        let offset = usize::try_from(place.checked_sub(self.start)?).ok()?;
        let entry =
            self.section.fde_from_offset(&self.bases, offset.into(), EhFrame::cie_from_offset).ok()?;
        entry.contains(address).then_some(entry)
    }

    fn around(&self, address: u64) -> Option<Bounds> {
        let entry = self.entry(address)?;
        Some(Bounds {
            start: entry.initial_address(),
            end: entry.end_address(),
            source: BoundsSource::Frames,
        })
    }

    fn frame(&self, address: u64, machine: Machine) -> Option<Frame> {
        let entry = self.entry(address)?;
        let mut context = UnwindContext::new();
        let row = entry.unwind_info_for_address(&self.section, &self.bases, &mut context, address).ok()?;
        // DWARF numbers of the stack pointer; a call on x86-64 has pushed the return address.
        let (stack_pointer, at_call) = match machine {
            Machine::X86_64 => (Register(7), 8),
            Machine::Arm64 => (Register(31), 0),
        };
        Some(match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                if *register == stack_pointer && *offset == at_call { Frame::Empty } else { Frame::Set }
            }
            CfaRule::Expression(_) => Frame::Computed,
        })
    }
}

#[cfg(test)]
mod tests;
