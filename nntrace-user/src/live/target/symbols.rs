//! Mark functions in one ELF file, and functions similar to them.

mod jumps;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use object::read::elf::Sym as _;
use object::{NativeEndian, elf};
use serde::{Deserialize, Serialize};

use super::argument_layout::{Layout, MARK_FUNCTION, Role, SymbolSpec};
use super::elf::{Elf, Symbol, SymbolTable};
use super::elf_error::{ElfError, ElfErrorReason};
use super::examiner::{Examination, Folders, examine_at};
use super::name_matching;
use super::probe_points::ProbePoints;
use super::signature::{Name, last_part};
use crate::live::demangling;

/// Similar functions listed for one file at most.
const MOST_NEAR: usize = 5;
/// Similar functions kept at most until the best of them are chosen.
const MOST_KEPT: usize = 1024;
/// Mark functions of one file at most. A header that defines one makes a copy in each of a program's hundreds of sources.
const MOST_FUNCTIONS: usize = 4096;
/// Usual parts of the names of functions that write marks.
const NEAR_PARTS: [&str; 8] = [
    "mark_write",
    "markwrite",
    "trace_mark",
    "tracemark",
    "write_mark",
    "atrace_begin",
    "trace_begin",
    "tracing_mark",
];

/// Mark function in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Name by which it was found.
    pub wanted: String,
    /// Symbol, without a version.
    pub symbol: String,
    /// Demangled name.
    pub demangled: String,
    /// Role of the function.
    pub(crate) role: Role,
    /// Offset in the file of its first instruction.
    pub offset: u64,
    /// Places where it can be probed.
    pub points: ProbePoints,
    /// Length in bytes; 0 where it is not in the file.
    pub length: u64,
    /// Whether it may end by a jump to another mark function.
    pub may_jump: bool,
    /// Position of its text.
    pub layout: Layout,
    /// Whether the layout is only likely: the name allows another.
    pub layout_guessed: bool,
}

/// Function that is not taken, but may be the one meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Near {
    /// Demangled name.
    pub demangled: String,
    /// Reason why it is not taken.
    pub why: NearReason,
}

/// Reason why a function is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum NearReason {
    /// The name is right, but no layout fits the arguments.
    Arguments,
    /// The name is right, but it is not an ordinary function in this file's code.
    NoFunction,
    /// The name is only similar.
    Name,
}

/// Function that offers lanes, by offsets in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LanePoint {
    /// First instruction.
    pub(crate) offset: u64,
    /// Semaphore.
    pub(crate) semaphore: u64,
}

/// Results of the search in one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSearch {
    /// Mark functions, each once however many names it has.
    pub functions: Vec<Found>,
    /// Functions that offer lanes.
    pub(crate) lanes: Vec<LanePoint>,
    /// If there are none: at most five functions whose names contain a name looked for.
    pub(crate) near: Vec<Near>,
    /// Number of functions that the file names.
    pub named_functions: usize,
    /// Number of functions whose names contain a name looked for and are damaged, or stand for a text without end.
    pub(crate) unread_names: usize,
    /// Number of functions beyond [`MOST_FUNCTIONS`].
    pub(crate) left_out: usize,
    /// Whether it lacks the full symbol table: it was stripped, and names only its exports.
    pub stripped: bool,
}

impl FileSearch {
    /// Returns what was left out, for the user.
    pub(crate) fn left_out(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.unread_names > 0 {
            notes.push(format!(
                "functions left out, as their names are damaged or stand for more than 32 KiB of text: {}",
                self.unread_names
            ));
        }
        if self.left_out > 0 {
            notes
                .push(format!("mark functions left out after the first {MOST_FUNCTIONS}: {}", self.left_out));
        }
        notes
    }
}

/// Searches a file for functions.
///
/// # Errors
/// When the file cannot be read, is no ELF file for this machine, or is damaged.
pub fn search_file(path: &Path, specs: &[SymbolSpec]) -> Result<FileSearch, ElfError> {
    examine_at(path, &MarkFunctions { specs: specs.to_vec() })
}

/// Search for mark functions, and for functions that offer lanes.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::live) struct MarkFunctions {
    specs: Vec<SymbolSpec>,
}

impl Examination for MarkFunctions {
    type Findings = FileSearch;

    const NAME: &'static str = "mark functions";

    fn find(&self, bytes: &[u8], _: &dyn Folders) -> Result<FileSearch, ElfErrorReason> {
        search(bytes, &self.specs)
    }
}

/// Finds at most five functions of a file with similar names. This looks at every name: for use when nothing was
/// found.
///
/// # Errors
/// As [`search_file`].
pub(crate) fn similar_in_file(path: &Path, specs: &[SymbolSpec]) -> Result<Vec<Near>, ElfError> {
    examine_at(path, &SimilarFunctions { specs: specs.to_vec() })
}

/// Search for functions with similar names.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::live) struct SimilarFunctions {
    specs: Vec<SymbolSpec>,
}

impl Examination for SimilarFunctions {
    type Findings = Vec<Near>;

    const NAME: &'static str = "similar functions";

    fn find(&self, bytes: &[u8], _: &dyn Folders) -> Result<Vec<Near>, ElfErrorReason> {
        similar(bytes, &self.specs)
    }
}

pub(super) fn search(data: &[u8], specs: &[SymbolSpec]) -> Result<FileSearch, ElfErrorReason> {
    let elf = Elf::parse(data)?;
    let tables = elf.symbol_tables()?;
    let mut search =
        FileSearch { stripped: !tables.iter().any(SymbolTable::is_full), ..FileSearch::default() };
    // Index of the functions by probe offset: names of one function share a probe.
    let (mut by_offset, mut unread) = (HashMap::new(), HashSet::new());
    for table in &tables {
        let specs: Vec<_> = specs.iter().filter(|spec| table.may_hold(last_part(&spec.name))).collect();
        for symbol in table.symbols.iter().filter(|symbol| is_defined(symbol)) {
            search.named_functions += usize::from(is_function(symbol));
            let name = if specs.is_empty() { None } else { table.name(symbol) };
            match name.and_then(|name| judge(&elf, symbol, name, &specs)) {
                Some(Ok(_)) if search.functions.len() == MOST_FUNCTIONS => search.left_out += 1,
                Some(Ok(found)) => add(&mut search.functions, &mut by_offset, found),
                Some(Err(near)) => {
                    // Both tables have the functions that are exported.
                    if demangling::is_mangled(&near.demangled) && unread.insert(symbol.st_value(NativeEndian))
                    {
                        search.unread_names += 1;
                    }
                    keep(&mut search.near, near);
                }
                None => {}
            }
        }
    }
    for found in noted(&elf, specs)? {
        add(&mut search.functions, &mut by_offset, found);
    }
    for note in elf.lane_notes()? {
        if let (Some(offset), Some(semaphore)) =
            (elf.code_offset(note.address), elf.data_offset(note.semaphore))
        {
            let point = LanePoint { offset, semaphore };
            // A linker may keep the notes of several copies of the function, of which it keeps one.
            if !search.lanes.contains(&point) {
                search.lanes.push(point);
            }
        }
    }
    if search.functions.is_empty() {
        choose(&mut search.near);
    } else {
        search.near.clear();
    }
    jumps::note(&elf, &tables, &mut search.functions);
    Ok(search)
}

fn similar(data: &[u8], specs: &[SymbolSpec]) -> Result<Vec<Near>, ElfErrorReason> {
    let mut found = Vec::new();
    for table in Elf::parse(data)?.symbol_tables()? {
        let functions = table.symbols.iter().filter(|symbol| is_defined(symbol) && is_function(symbol));
        let names = functions.filter_map(|symbol| table.name(symbol)).filter(|name| is_similar(name, specs));
        names.for_each(|name| keep(&mut found, near(Name::read(name), NearReason::Name)));
    }
    choose(&mut found);
    Ok(found)
}

/// Adds one, and keeps no more than are worth it: a file may name millions.
fn keep(near: &mut Vec<Near>, one: Near) {
    if near.len() == MOST_KEPT {
        choose(near);
    }
    near.push(one);
}

/// Keeps the best ones, each once.
pub(super) fn choose(near: &mut Vec<Near>) {
    near.sort_by(|a, b| (a.why, &a.demangled).cmp(&(b.why, &b.demangled)));
    near.dedup();
    near.truncate(MOST_NEAR);
}

fn is_function(symbol: &Symbol) -> bool {
    symbol.st_type() == elf::STT_FUNC
}

fn is_defined(symbol: &Symbol) -> bool {
    let code =
        matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC | elf::STT_NOTYPE | elf::STT_OBJECT);
    code && !symbol.is_undefined(NativeEndian)
}

/// Returns a function that has a name looked for, or why a similar one is not taken, or `None`.
fn judge(elf: &Elf<'_>, symbol: &Symbol, name: &str, specs: &[&SymbolSpec]) -> Option<Result<Found, Near>> {
    // A file may name a million functions: only those that contain a name looked for are demangled.
    if !specs.iter().any(|spec| name.contains(last_part(&spec.name))) {
        return None;
    }
    let read = Name::read(name);
    let asked = |spec: &&&SymbolSpec| spec.name == name || read.is(&spec.name) || read.shown == spec.name;
    let Some(spec) = specs.iter().find(asked) else {
        return is_function(symbol).then(|| Err(near(read, NearReason::Name)));
    };
    let Some(offset) = elf.code_offset(symbol.st_value(NativeEndian)).filter(|_| is_function(symbol)) else {
        return Some(Err(near(read, NearReason::NoFunction)));
    };
    let Some(layout) = spec.layout.or(read.layout) else {
        return Some(Err(near(read, NearReason::Arguments)));
    };
    Some(Ok(Found {
        wanted: spec.name.clone(),
        symbol: name.to_owned(),
        demangled: read.shown,
        role: spec.role,
        offset,
        points: elf.probe_points(offset),
        length: symbol.st_size(NativeEndian),
        may_jump: false,
        layout,
        layout_guessed: spec.layout.is_none() && read.guessed,
    }))
}

/// Returns the mark functions in the file's notes, if such are looked for, even in stripped files.
fn noted(elf: &Elf<'_>, specs: &[SymbolSpec]) -> Result<Vec<Found>, ElfErrorReason> {
    let Some(spec) = specs.iter().find(|spec| spec.name == MARK_FUNCTION) else {
        return Ok(Vec::new());
    };
    let offsets = elf.mark_notes()?.into_iter().filter_map(|note| elf.code_offset(note.address));
    let found = offsets.map(|offset| Found {
        wanted: spec.name.clone(),
        symbol: MARK_FUNCTION.to_owned(),
        demangled: MARK_FUNCTION.to_owned(),
        offset,
        points: elf.probe_points(offset),
        // The function of `nntrace.h` returns: it does not end by a jump.
        length: 0,
        may_jump: false,
        layout: spec.layout.unwrap_or(Layout::Buf),
        layout_guessed: false,
        role: spec.role,
    });
    Ok(found.collect())
}

/// Adds a function; of two names of one function, the one with a certain layout is kept.
fn add(functions: &mut Vec<Found>, by_offset: &mut HashMap<u64, usize>, found: Found) {
    match by_offset.entry(found.offset) {
        Entry::Vacant(entry) => {
            entry.insert(functions.len());
            functions.push(found);
        }
        Entry::Occupied(entry) => {
            let known = &mut functions[*entry.get()];
            if known.layout_guessed && !found.layout_guessed {
                *known = found;
            }
        }
    }
}

fn near(name: Name, why: NearReason) -> Near {
    Near { demangled: name.shown, why }
}

fn is_similar(name: &str, specs: &[SymbolSpec]) -> bool {
    let holds_part = || {
        let name = name.to_ascii_lowercase();
        NEAR_PARTS.iter().any(|part| name.contains(part))
    };
    // All these parts contain one of these two, which most names do not: a quick test.
    let may_hold_part = name.contains("ark") || name.contains("race");
    may_hold_part && holds_part()
        || specs.iter().any(|spec| name_matching::alike(name, last_part(&spec.name)))
}

#[cfg(test)]
mod tests;
