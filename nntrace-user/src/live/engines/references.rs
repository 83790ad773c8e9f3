//! References in the code of a file: which functions refer to a text, and how many places call a function.
//!
//! Literals of messages stay in stripped files, and in the same function over many versions. A literal's address is in
//! the code of each function that uses it. All code is searched for that address, as if an instruction could begin
//! anywhere; what is found counts if the function around it, decoded from its start, has such an instruction there.

mod arm64;
mod x86_64;

use std::{cell::RefCell, ops::Range};

use rustc_hash::FxHashMap;

use super::{
    bounds::{Bounds, FunctionBounds},
    code::LONGEST,
    image::{Image, Machine, Target},
};

/// Parts of functions that are followed to what jumps to them: a part may be jumped to from another one.
const MOST_PARTS: usize = 4;
/// Functions that may refer to one text, and places that may be a reference, at most.
const MOST_FUNCTIONS: usize = 64;
const MOST_REFERENCES: usize = 1024;

/// Functions of a file whose callers are counted at most: each takes a look at all code.
const MOST_COUNTED: usize = 16;

/// Kind of a reference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reference {
    /// An address in memory.
    Data,
    /// The target of a jump, which is not a call.
    Jump,
}

/// Returns the addresses of the functions that refer to a literal, in ascending order.
pub(super) fn functions(image: &Image<'_>, bounds: &FunctionBounds<'_, '_>, text: &str) -> Vec<u64> {
    // Linkers let a literal be the end of a longer one, so whatever is before it does not matter.
    let literal = [text.as_bytes(), b"\0"].concat();
    let mut wanted: Vec<Range<u64>> =
        image.occurrences(&literal).into_iter().map(|address| address..address + 1).collect();
    let mut kind = Reference::Data;
    let mut found = Vec::new();
    for _ in 0..=MOST_PARTS {
        if wanted.is_empty() {
            break;
        }
        let referring = referring(image, bounds, &wanted, kind);
        let branches = branches(image, &referring);
        let (parts, whole): (Vec<Bounds>, Vec<Bounds>) = referring
            .into_iter()
            .partition(|function| bounds.is_part(function) || branches.contains(&function.start));
        found.extend(whole.into_iter().map(|function| function.start));
        // Compilers move code that seldom runs away from its function, which jumps there.
        (wanted, kind) = (parts.into_iter().map(|part| part.start..part.end).collect(), Reference::Jump);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the starts of the code that is reached by conditional jumps alone: a branch of the function that has them, moved
/// away from it before a frame is set up.
fn branches(image: &Image<'_>, found: &[Bounds]) -> Vec<u64> {
    let starts: Vec<u64> = found.iter().map(|code| code.start).collect();
    let callers = callers(image, &starts);
    let is_jumped_to = |places: &Places| places.conditional > 0 && places.others == 0;
    let mut branches: Vec<u64> = starts
        .into_iter()
        .zip(&callers)
        .filter(|(_, places)| is_jumped_to(places))
        .map(|(start, _)| start)
        .collect();
    if !branches.is_empty() {
        // Functions may be jumped to as well, instead of being called last.
        branches.retain(|start| image.symbols().all(|symbol| symbol.address != *start));
        image.for_each_pointer(|_, to| branches.retain(|start| to != Target::Address(*start)));
    }
    branches
}

/// Returns the functions, or parts of functions, that have a reference to one of these places.
fn referring(
    image: &Image<'_>,
    bounds: &FunctionBounds<'_, '_>,
    wanted: &[Range<u64>],
    kind: Reference,
) -> Vec<Bounds> {
    let mut found: Vec<Bounds> = Vec::new();
    let mut examined = 0;
    let mut examine = |address: u64| {
        let is_full = found.len() == MOST_FUNCTIONS || examined == MOST_REFERENCES;
        if is_full || found.iter().any(|function| function.contains(address)) {
            return;
        }
        let Ok(function) = bounds.around(address) else { return };
        // No function of this length is probed.
        if function.end - function.start > LONGEST {
            return;
        }
        // A jump within a part does not lead to it.
        let is_itself = kind == Reference::Jump && wanted.iter().any(|range| range.contains(&address));
        if is_itself {
            return;
        }
        examined += 1;
        let refers = match image.machine() {
            Machine::X86_64 => x86_64::refers(image, &function, address, wanted, kind),
            Machine::Arm64 => arm64::refers(image, function.end, address, wanted, kind),
        };
        if refers {
            found.push(function);
        }
    };
    for range in image.code_ranges() {
        let Some(code) = image.bytes(range.start, range.end - range.start) else { continue };
        match image.machine() {
            Machine::X86_64 => x86_64::candidates(image, code, range.start, wanted, &mut examine),
            Machine::Arm64 => arm64::candidates(image, code, range, wanted, kind, &mut examine),
        }
    }
    found
}

/// Places that lead to a function by a distance.
#[derive(Clone, Copy, Default)]
struct Places {
    /// Conditional jumps.
    conditional: usize,
    /// Calls, and other jumps.
    others: usize,
}

/// Returns the places that lead to each of some functions.
fn callers(image: &Image<'_>, functions: &[u64]) -> Vec<Places> {
    let mut places = vec![Places::default(); functions.len()];
    let (Some(&first), Some(&last)) = (functions.iter().min(), functions.iter().max()) else { return places };
    let mut found = |function: u64, is_conditional: bool| {
        if !(first..=last).contains(&function) {
            return;
        }
        for (_, places) in functions.iter().zip(&mut places).filter(|(other, _)| **other == function) {
            *(if is_conditional { &mut places.conditional } else { &mut places.others }) += 1;
        }
    };
    for range in image.code_ranges() {
        let code = image.bytes(range.start, range.end - range.start).unwrap_or_default();
        match image.machine() {
            Machine::X86_64 => x86_64::for_each_jump(code, range.start, &mut found),
            Machine::Arm64 => arm64::for_each_jump(code, range.start, &mut found),
        }
    }
    places
}

/// Numbers of places in a file that call functions, or jump to them.
pub(super) struct Callers<'image, 'data> {
    image: &'image Image<'data>,
    /// By function; each is counted once.
    known: RefCell<FxHashMap<u64, usize>>,
}

impl<'image, 'data> Callers<'image, 'data> {
    pub(super) fn of(image: &'image Image<'data>) -> Self {
        Self { image, known: RefCell::default() }
    }

    /// Returns about how many places call the function at an address, or jump to it, by a distance; `None` when too many
    /// functions were asked for.
    pub(super) fn count(&self, function: u64) -> Option<usize> {
        if let Some(count) = self.known.borrow().get(&function) {
            return Some(*count);
        }
        if self.known.borrow().len() == MOST_COUNTED {
            return None;
        }
        let count = callers(self.image, &[function]).iter().map(|it| it.conditional + it.others).sum();
        self.known.borrow_mut().insert(function, count);
        Some(count)
    }
}

/// Whether one of these places has an address.
fn has(wanted: &[Range<u64>], address: u64) -> bool {
    wanted.iter().any(|range| range.contains(&address))
}

/// Returns the range from the first to the last of these places.
fn hull(wanted: &[Range<u64>]) -> Range<u64> {
    let start = wanted.iter().map(|range| range.start).min().unwrap_or_default();
    let end = wanted.iter().map(|range| range.end).max().unwrap_or_default();
    start..end
}

#[cfg(test)]
mod tests;
