//! Instructions of a function: where they begin, where they jump to, and where they return.

use rustc_hash::FxHashSet;

use crate::live::engines::bounds::Bounds;

/// Indirect jumps of a function that are examined at most.
const MOST_INDIRECT: usize = 1024;
/// Cases of a table of jumps that are read at most.
const MOST_CASES: usize = 4096;
/// Instructions that are examined at most to find out where a jump leads.
const MOST_EXAMINED: usize = 1024;
/// Bytes of an instruction at most.
const MOST_BYTES: u64 = 15;

/// Instructions of a function, or of a part of one.
pub(super) struct Listing {
    pub bounds: Bounds,
    /// Whether an instruction begins at the n-th unit of the code, 64 units in a word.
    starts: Vec<u64>,
    /// Bytes in a unit: the shortest instruction.
    unit: u64,
    /// Direct jumps, conditional or not, by target.
    pub jumps: Vec<Jump>,
    pub indirect: Vec<IndirectJump>,
    pub returns: Vec<u64>,
    /// Returns that no kernel lets probe.
    pub refused_returns: Vec<u64>,
    /// Instructions after which the code does not go on, in ascending order.
    pub stops: Vec<u64>,
    /// Jumps by their addresses, those by tables included.
    by_address: Vec<Jump>,
    /// As `starts`, for the instructions that are reached.
    reached: Vec<u64>,
}

/// Direct jump.
#[derive(Clone, Copy)]
pub(super) struct Jump {
    pub address: u64,
    pub target: u64,
}

/// Jump through a register or memory.
pub(super) struct IndirectJump {
    pub address: u64,
    pub kind: Indirection,
}

/// Origin of an indirect jump's target.
pub(super) enum Indirection {
    /// Table of places in the function.
    Table(Vec<u64>),
    /// Pointer that was loaded, passed or returned: to a function, as a rule.
    Pointer,
    /// Computed in a way that is not understood.
    Unknown,
}

impl Indirection {
    /// Combines the origins on several paths: a table is the only one.
    pub(super) fn of(mut origins: impl Iterator<Item = Self>) -> Self {
        match (origins.next(), origins.next()) {
            (None, _) => Self::Pointer,
            (Some(only), None) => only,
            (Some(Self::Pointer), Some(Self::Pointer))
                if origins.all(|other| matches!(other, Self::Pointer)) =>
            {
                Self::Pointer
            }
            _ => Self::Unknown,
        }
    }
}

/// Effect of an instruction at a function's begin.
pub(super) enum Step {
    /// A place for a cheap probe; the instruction itself has not run there.
    Emulated,
    /// The arguments stay in their registers, and the stack grows by this many bytes.
    Skippable { length: u64, pushed: i64 },
    /// Anything else.
    Other,
}

impl Listing {
    pub(super) fn new(bounds: Bounds, unit: u64) -> Self {
        let units = (bounds.end - bounds.start).div_ceil(unit);
        Self {
            bounds,
            starts: vec![0; units.div_ceil(64) as usize],
            stops: Vec::new(),
            by_address: Vec::new(),
            reached: vec![0; units.div_ceil(64) as usize],
            unit,
            jumps: Vec::new(),
            indirect: Vec::new(),
            returns: Vec::new(),
            refused_returns: Vec::new(),
        }
    }

    pub(super) fn add_start(&mut self, address: u64) {
        let unit = (address - self.bounds.start) / self.unit;
        self.starts[(unit / 64) as usize] |= 1 << (unit % 64);
    }

    /// Whether an instruction begins at an address.
    pub(super) fn is_start(&self, address: u64) -> bool {
        self.has(&self.starts, address)
    }

    /// Whether the code is known to come to an instruction.
    pub(super) fn is_reached(&self, address: u64) -> bool {
        self.has(&self.reached, address)
    }

    fn has(&self, bits: &[u64], address: u64) -> bool {
        let within = address.wrapping_sub(self.bounds.start);
        let unit = within / self.unit;
        self.bounds.contains(address)
            && within.is_multiple_of(self.unit)
            && bits[(unit / 64) as usize] >> (unit % 64) & 1 == 1
    }

    /// Follows the code from an instruction as long as it goes on, and adds the jumps on this way. Between functions' parts,
    /// and after their ends, there may be data.
    pub(super) fn walk(&mut self, from: u64, jumps: &mut Vec<Jump>) {
        let stop = self.stops.get(self.stops.partition_point(|&stop| stop < from)).copied();
        let mut jump = self.by_address.partition_point(|jump| jump.address < from);
        let mut next = Some(from);
        while let Some(address) = next.filter(|&address| !self.is_reached(address)) {
            let unit = (address - self.bounds.start) / self.unit;
            self.reached[(unit / 64) as usize] |= 1 << (unit % 64);
            while let Some(found) = self.by_address.get(jump).filter(|jump| jump.address <= address) {
                jumps.push(*found);
                jump += 1;
            }
            next = if Some(address) == stop { None } else { self.start_after(address) };
        }
    }

    /// Whether nothing leads out of the code.
    pub(super) fn is_dead_end(&self) -> bool {
        self.returns.is_empty()
            && self.refused_returns.is_empty()
            && self.indirect.is_empty()
            && self.jumps.iter().all(|jump| self.bounds.contains(jump.target))
    }

    /// Adds the jumps, of which the indirect ones are examined when all others are known.
    pub(super) fn add_jumps<T>(
        mut self,
        mut jumps: Vec<Jump>,
        indirect: Vec<(u64, T)>,
        examine: impl Fn(&Self, u64, T) -> Indirection,
    ) -> Self {
        jumps.sort_by_key(|jump| (jump.target, jump.address));
        self.jumps = jumps;
        let all = indirect.into_iter().enumerate();
        let examined = all.map(|(number, (address, jump))| {
            let kind =
                if number < MOST_INDIRECT { examine(&self, address, jump) } else { Indirection::Unknown };
            IndirectJump { address, kind }
        });
        self.indirect = examined.collect();
        let by_tables = self.indirect.iter().flat_map(|jump| {
            let targets = if let Indirection::Table(targets) = &jump.kind { &targets[..] } else { &[] };
            targets.iter().map(|&target| Jump { address: jump.address, target })
        });
        self.by_address = self.jumps.iter().copied().chain(by_tables).collect();
        self.by_address.sort_unstable_by_key(|jump| (jump.address, jump.target));
        self
    }

    /// Returns the targets in the code that leading entries of a table have.
    pub(super) fn targets_in_table(&self, entries: impl Iterator<Item = u64>) -> Indirection {
        // Compilers lead cases that cannot be to the end of the code.
        let is_case = |&target: &u64| self.is_start(target) || target == self.bounds.end;
        let mut targets: Vec<_> = entries.take(MOST_CASES).take_while(is_case).collect();
        targets.retain(|&target| target != self.bounds.end);
        // A single one may be by chance.
        if targets.len() > 1 { Indirection::Table(targets) } else { Indirection::Unknown }
    }

    /// Returns the instructions that set what another one finds in a register: the last ones before it on each path.
    /// Paths that begin outside of the code add none. `None` where the search takes too long.
    pub(super) fn origins(
        &self,
        user: u64,
        sets: impl Fn(u64) -> bool,
        goes_on: impl Fn(u64) -> bool,
    ) -> Option<Vec<u64>> {
        let (mut origins, mut seen) = (Vec::new(), FxHashSet::default());
        let mut ahead = vec![user];
        while let Some(address) = ahead.pop() {
            if seen.len() > MOST_EXAMINED {
                return None;
            }
            let before = self.start_before(address).filter(|&before| goes_on(before));
            let from = self.jumps.partition_point(|jump| jump.target < address);
            let jumps = self.jumps[from..].iter().take_while(|jump| jump.target == address);
            let jumps = jumps.map(|jump| jump.address);
            for source in before.into_iter().chain(jumps).filter(|&source| seen.insert(source)) {
                if sets(source) {
                    origins.push(source);
                } else {
                    ahead.push(source);
                }
            }
        }
        Some(origins)
    }

    /// Returns the address of the instruction after one.
    fn start_after(&self, address: u64) -> Option<u64> {
        let last = address.checked_add(MOST_BYTES)?.min(self.bounds.end - 1);
        (address + self.unit..=last).step_by(self.unit as usize).find(|&after| self.is_start(after))
    }

    /// Returns the address of the instruction before one.
    fn start_before(&self, address: u64) -> Option<u64> {
        let first = address.checked_sub(MOST_BYTES)?.max(self.bounds.start);
        (first..address).rev().find(|&before| self.is_start(before))
    }

    /// Returns the places that jumps of this code lead to.
    pub(super) fn targets(&self) -> impl Iterator<Item = u64> {
        let tables = self.indirect.iter().flat_map(|jump| match &jump.kind {
            Indirection::Table(targets) => &targets[..],
            Indirection::Pointer | Indirection::Unknown => &[],
        });
        self.jumps.iter().map(|jump| jump.target).chain(tables.copied())
    }
}
