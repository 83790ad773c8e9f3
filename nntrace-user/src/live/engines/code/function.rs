//! A function in all its parts, and the ways out of it.

use std::cell::OnceCell;

use rustc_hash::FxHashSet;

use super::listing::{Indirection, Jump, Listing};
use super::machine::{is_veneer, list};
use super::{MOST_CALLEES, MOST_PARTS, ShapeError, TailJump, TailJumps, UnclearJump};
use crate::live::engines::bounds::{Frame, FunctionBounds};
use crate::live::engines::image::Image;

/// Length at most of a function that is examined because another one jumps to it, in bytes.
const LONGEST_CALLEE: u64 = 1 << 16;

/// Function in all its parts.
pub(super) struct Function<'image, 'data> {
    image: &'image Image<'data>,
    bounds: &'image FunctionBounds<'image, 'data>,
    start: u64,
    /// The first one begins at the function's begin.
    parts: Vec<Listing>,
    tail_jumps: Vec<TailJump>,
    /// Targets of these.
    callees: FxHashSet<u64>,
    /// Targets of jumps that do not leave the function.
    dead_ends: FxHashSet<u64>,
    has_exact_frames: OnceCell<bool>,
}

/// Code outside of a function's bounds that it jumps to.
enum Outside {
    /// Part of the function.
    Part(Result<Listing, ShapeError>),
    /// Code that is never left, except by an exception or the end of the process, or that comes back at once.
    DeadEnd,
    /// Another function.
    Other,
}

impl<'image, 'data> Function<'image, 'data> {
    pub(super) fn read(
        image: &'image Image<'data>,
        bounds: &'image FunctionBounds<'image, 'data>,
        start: u64,
    ) -> Result<Self, ShapeError> {
        let parts = vec![list(image, bounds.at(start)?)?];
        let mut function = Self {
            image,
            bounds,
            start,
            parts,
            tail_jumps: Vec::new(),
            callees: FxHashSet::default(),
            dead_ends: FxHashSet::default(),
            has_exact_frames: OnceCell::new(),
        };
        let mut next = 0;
        while let Some(part) = function.parts.get(next) {
            next += 1;
            for jump in part.jumps.clone() {
                function.follow(jump)?;
            }
        }
        let is_astray = |target: u64| function.part_of(target).is_some_and(|part| !part.is_start(target));
        let astray = function.targets().find(|&target| is_astray(target));
        astray.map_or(Ok(function), |target| Err(ShapeError::NoInstruction(target)))
    }

    /// Returns the places that jumps of the function lead to.
    pub(super) fn targets(&self) -> impl Iterator<Item = u64> {
        self.parts.iter().flat_map(Listing::targets)
    }

    /// Returns the end of the first part.
    pub(super) fn end(&self) -> u64 {
        self.parts[0].bounds.end
    }

    /// Returns the addresses of some kind of return in all parts, in ascending order.
    pub(super) fn all(&self, returns: fn(&Listing) -> &Vec<u64>) -> Vec<u64> {
        let mut all: Vec<_> = self.parts.iter().flat_map(returns).copied().collect();
        all.sort_unstable();
        all
    }

    fn part_of(&self, address: u64) -> Option<&Listing> {
        self.parts.iter().find(|part| part.bounds.contains(address))
    }

    /// Adds the part of the function that a jump leads to, or the jump if it leads out of it.
    fn follow(&mut self, Jump { address, target }: Jump) -> Result<(), ShapeError> {
        let is_inside = target != self.start && self.part_of(target).is_some();
        if is_inside || self.dead_ends.contains(&target) {
            return Ok(());
        }
        if target != self.start && !self.callees.contains(&target) {
            let others = self.callees.len() + self.dead_ends.len();
            if others == MOST_CALLEES || self.parts.len() == MOST_PARTS {
                return Err(ShapeError::Scattered(self.start));
            }
            match self.outside(address, target) {
                Outside::Part(part) => {
                    self.parts.push(part?);
                    return Ok(());
                }
                Outside::DeadEnd => {
                    self.dead_ends.insert(target);
                    return Ok(());
                }
                Outside::Other => {
                    self.callees.insert(target);
                }
            }
        }
        self.tail_jumps.push(TailJump { address, target: Some(target) });
        Ok(())
    }

    /// Examines the code outside of the function's bounds that a jump leads to. It belongs to the function if the frame
    /// there is one that the function has set up, or if it jumps back.
    fn outside(&self, jump: u64, target: u64) -> Outside {
        if is_veneer(self.image, jump, target) {
            return Outside::DeadEnd;
        }
        let (Some(frame), Ok(bounds)) = (self.bounds.frame(target), self.bounds.around(target)) else {
            return Outside::Other;
        };
        if frame == Frame::Empty && bounds.end - bounds.start > LONGEST_CALLEE {
            return Outside::Other;
        }
        let listing = list(self.image, bounds);
        let jumps_back = |listing: &Listing| {
            let is_inside = |target: u64| target != self.start && self.part_of(target).is_some();
            listing.jumps.iter().any(|jump| is_inside(jump.target))
        };
        let is_part = match frame {
            Frame::Set => true,
            Frame::Computed => self.is_within_frame(jump),
            Frame::Empty => listing.as_ref().is_ok_and(jumps_back),
        };
        if is_part {
            Outside::Part(listing)
        } else if listing.is_ok_and(|listing| listing.is_dead_end()) {
            Outside::DeadEnd
        } else {
            Outside::Other
        }
    }

    /// Returns the jumps by which the function ends.
    pub(super) fn tail_jumps(&self) -> TailJumps {
        let mut known = self.tail_jumps.clone();
        for jump in self.parts.iter().flat_map(|part| &part.indirect) {
            match jump.kind {
                Indirection::Table(_) => {}
                _ if self.is_within_frame(jump.address) => {}
                Indirection::Pointer => known.push(TailJump { address: jump.address, target: None }),
                Indirection::Unknown => return TailJumps::Unclear(UnclearJump { address: jump.address }),
            }
        }
        known.sort_unstable();
        if known.is_empty() { TailJumps::None } else { TailJumps::Known(known) }
    }

    /// Whether the function's frame exists at an instruction for certain, so that a jump there does not leave it.
    fn is_within_frame(&self, address: u64) -> bool {
        matches!(self.bounds.frame(address), Some(Frame::Set | Frame::Computed)) && self.has_exact_frames()
    }

    /// Whether the frame is known to be empty at the returns. Some compilers do not record where a frame ends.
    fn has_exact_frames(&self) -> bool {
        *self.has_exact_frames.get_or_init(|| {
            let Listing { returns, refused_returns, .. } = &self.parts[0];
            let mut returns = returns.iter().chain(refused_returns).peekable();
            returns.peek().is_some() && returns.all(|&at| self.bounds.frame(at) == Some(Frame::Empty))
        })
    }
}
