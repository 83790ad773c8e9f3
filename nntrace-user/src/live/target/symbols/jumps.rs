//! Mark functions that may end by a jump to another one.

use std::collections::BTreeSet;

use object::{NativeEndian, read::elf::Sym as _};

use super::{Found, is_defined, is_function};
use crate::live::target::elf::{Elf, SymbolTable};

/// Notes which mark functions may end by a jump to another one: to one of this file, or to a place without a symbol in
/// this file, as where the linker leads to other files. The symbols are looked at once, however many jumps there are.
pub(super) fn note(elf: &Elf<'_>, tables: &[SymbolTable<'_>], functions: &mut [Found]) {
    let jumps: Vec<_> = functions.iter().map(|found| elf.jumps(found.offset, found.length)).collect();
    let mut unknown: BTreeSet<u64> = jumps.iter().flat_map(|jumps| &jumps.targets).copied().collect();
    let symbols = tables.iter().flat_map(|table| table.symbols);
    for symbol in symbols.filter(|symbol| is_function(symbol) && is_defined(symbol)) {
        if unknown.is_empty() {
            break;
        }
        let start = symbol.st_value(NativeEndian);
        let end = start.saturating_add(symbol.st_size(NativeEndian));
        while let Some(&target) = unknown.range(start..end).next() {
            unknown.remove(&target);
        }
    }
    let marks: BTreeSet<u64> = functions.iter().map(|found| found.offset).collect();
    let is_mark = |target: &u64| elf.code_offset(*target).is_some_and(|offset| marks.contains(&offset));
    for (found, jumps) in functions.iter_mut().zip(&jumps) {
        found.may_jump = jumps.is_indirect
            || jumps.doubtful.iter().any(is_mark)
            || jumps.targets.iter().any(|target| is_mark(target) || unknown.contains(target));
    }
}
