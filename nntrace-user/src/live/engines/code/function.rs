//! A function in all its parts, and the ways out of it.

use std::cell::OnceCell;

use rustc_hash::FxHashSet;

use super::listing::{Indirection, Jump, Listing};
use super::machine::{is_veneer, list};
use super::{MOST_CALLEES, MOST_PARTS, ShapeError, TailJump, TailJumps, UnclearJump};
use crate::live::engines::bounds::{BoundsSource, Frame, FunctionBounds};
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
    /// Whether the code cannot be followed: all that looks like instructions is taken for such.
    is_all_code: bool,
}

/// Code outside of a function's bounds that it jumps to.
enum Outside {
    /// Part of the function.
    Part(Result<Box<Listing>, ShapeError>),
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
            is_all_code: false,
        };
        function.follow_from(start)?;
        Ok(function)
    }

    /// Follows the code of the function, and of parts of it that jumps lead to. What it does not come to may be data, but not
    /// where it cannot be followed.
    fn follow_from(&mut self, start: u64) -> Result<(), ShapeError> {
        let (mut jumps, mut ahead) = (Vec::new(), vec![start]);
        let mut parts = 0;
        loop {
            while let Some(part) = self.parts.get(parts) {
                match self.bounds.landing_pads(&part.bounds) {
                    Some(pads) => ahead.extend(pads.into_iter().filter(|&pad| part.is_start(pad))),
                    None => self.is_all_code = true,
                }
                parts += 1;
            }
            let Some(address) = ahead.pop() else { break };
            let Some(part) = self.parts.iter_mut().find(|part| part.bounds.contains(address)) else {
                continue;
            };
            if !part.is_start(address) {
                return Err(ShapeError::NoInstruction(address));
            }
            part.walk(address, &mut jumps);
            for jump in jumps.drain(..) {
                self.follow(jump)?;
                ahead.push(jump.target);
            }
        }
        // A table of jumps may have more cases than are known. Compilers, who describe call frames, put no data into code.
        let is_compiled = self.parts[0].bounds.source == BoundsSource::Frames;
        let is_led_on = |part: &Listing| part.indirect.iter().any(|jump| part.is_reached(jump.address));
        self.is_all_code |= is_compiled && self.parts.iter().any(is_led_on);
        if self.is_all_code { self.follow_all() } else { Ok(()) }
    }

    /// Follows whatever looks like a jump.
    fn follow_all(&mut self) -> Result<(), ShapeError> {
        let mut next = 0;
        while let Some(part) = self.parts.get(next) {
            next += 1;
            let jumps: Vec<Jump> =
                part.jumps.iter().filter(|jump| !part.is_reached(jump.address)).copied().collect();
            for jump in jumps {
                self.follow(jump)?;
            }
        }
        let is_astray = |target: u64| self.part_of(target).is_some_and(|part| !part.is_start(target));
        let astray = self.targets().find(|&target| is_astray(target));
        astray.map_or(Ok(()), |target| Err(ShapeError::NoInstruction(target)))
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
        let mut all: Vec<_> = self
            .parts
            .iter()
            .flat_map(|part| returns(part).iter().filter(|&&at| self.is_code(part, at)))
            .copied()
            .collect();
        all.sort_unstable();
        all
    }

    /// Whether an instruction of a part is one, and no data.
    fn is_code(&self, part: &Listing, address: u64) -> bool {
        self.is_all_code || part.is_reached(address)
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
                    self.parts.push(*part?);
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
            Outside::Part(listing.map(Box::new))
        } else if listing.is_ok_and(|listing| listing.is_dead_end()) {
            Outside::DeadEnd
        } else {
            Outside::Other
        }
    }

    /// Returns the jumps by which the function ends.
    pub(super) fn tail_jumps(&self) -> TailJumps {
        let mut known = self.tail_jumps.clone();
        let indirect = self.parts.iter().flat_map(|part| part.indirect.iter().map(move |jump| (part, jump)));
        for (_, jump) in indirect.filter(|(part, jump)| self.is_code(part, jump.address)) {
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
            let part = &self.parts[0];
            let returns = part.returns.iter().chain(&part.refused_returns);
            let mut returns = returns.filter(|&&at| self.is_code(part, at)).peekable();
            returns.peek().is_some() && returns.all(|&at| self.bounds.frame(at) == Some(Frame::Empty))
        })
    }
}
