//! Tables of functions that an exported function returns, as growing C interfaces have them: ONNX Runtime exports
//! `OrtGetApiBase` alone, which returns a structure of two functions; the first one returns the table for a version of
//! the interface, and entries are only ever added at its end.
//!
//! The functions are not called: their instructions are followed on all paths, and the constants in the registers show
//! the addresses that they may return.

mod arm64;
mod x86_64;

use rustc_hash::FxHashSet;
use thiserror::Error;

use super::image::{Image, Machine};

/// Entries of a table at most.
const MOST_ENTRIES: usize = 4096;
/// Instructions that are followed in a function at most, on all paths together.
const MOST_INSTRUCTIONS: usize = 4096;
/// Length of a version's text at most.
const LONGEST_VERSION: usize = 64;

/// Table of functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::live) struct Table<'data> {
    /// Address of its first entry.
    pub address: u64,
    /// Version of the library, where a function beside the table's returns a constant text.
    pub version: Option<&'data str>,
    functions: Vec<u64>,
}

impl Table<'_> {
    /// Returns the number of entries, or more where other functions follow the table.
    pub(in crate::live) fn len(&self) -> usize {
        self.functions.len()
    }

    /// Returns the address of the function with an index.
    pub(in crate::live) fn entry(&self, index: usize) -> Option<u64> {
        self.functions.get(index).copied()
    }
}

/// Reason why an exported function returns no table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(in crate::live) enum TableError {
    /// The file does not export the function.
    #[error("the file exports no function {0}")]
    NotExported(String),
    /// The function returns no constant address of functions.
    #[error("{export} at {address:#x} returns no table of functions that its code shows")]
    NoTable {
        /// Name of the function.
        export: String,
        /// Address of the function that should return a table.
        address: u64,
    },
    /// The function may return several tables, none of which is the longest.
    #[error("{export} leads to several tables of {length} functions, at {first:#x} and {second:#x}")]
    Several {
        /// Name of the function.
        export: String,
        /// Number of entries.
        length: usize,
        /// Address of one of them.
        first: u64,
        /// Address of another one.
        second: u64,
    },
}

/// Returns the table of functions that an exported function returns, or that the first function of the returned one
/// returns. Of several, the longest is the newest version's.
///
/// # Errors
/// When the file has no such function, or the table cannot be found in its code.
pub(in crate::live) fn table_behind<'data>(
    image: &Image<'data>,
    export: &str,
) -> Result<Table<'data>, TableError> {
    let function = image.exported(export).filter(|symbol| image.is_code(symbol.address));
    let function = function.ok_or_else(|| TableError::NotExported(export.to_owned()))?.address;
    let outer = longest(image, export, function)?;
    let Some((&getter, others)) = outer.functions.split_first() else { return Ok(outer) };
    let version = others.first().and_then(|&other| version(image, other));
    match longest(image, export, getter) {
        Ok(table) => Ok(Table { version, ..table }),
        Err(TableError::NoTable { .. }) => Ok(outer),
        Err(error) => Err(error),
    }
}

/// Returns the longest table that a function may return.
fn longest<'data>(image: &Image<'data>, export: &str, function: u64) -> Result<Table<'data>, TableError> {
    let tables = returned(image, function).into_iter().map(|address| (functions(image, address), address));
    let mut tables: Vec<_> = tables.filter(|(functions, _)| !functions.is_empty()).collect();
    tables.sort_by_key(|(functions, address)| (functions.len(), *address));
    let Some((functions, address)) = tables.pop() else {
        return Err(TableError::NoTable { export: export.to_owned(), address: function });
    };
    match tables.pop() {
        Some((others, first)) if others.len() == functions.len() => Err(TableError::Several {
            export: export.to_owned(),
            length: functions.len(),
            first,
            second: address,
        }),
        _ => Ok(Table { address, version: None, functions }),
    }
}

/// Returns the functions of the table at an address; none where there is no table.
fn functions(image: &Image<'_>, table: u64) -> Vec<u64> {
    let entry = |number: usize| image.local_pointer(table.checked_add(8 * number as u64)?);
    (0..MOST_ENTRIES).map_while(entry).take_while(|&function| image.is_code(function)).collect()
}

/// Returns the text that a function returns, if it looks like a version.
fn version<'data>(image: &Image<'data>, function: u64) -> Option<&'data str> {
    let texts = returned(image, function).into_iter().filter_map(|address| image.text(address));
    let mut versions = texts.filter(|text| {
        text.len() <= LONGEST_VERSION
            && text.starts_with(|c: char| c.is_ascii_digit() || c == 'v')
            && text.bytes().all(|byte| byte.is_ascii_graphic())
    });
    let version = versions.next()?;
    versions.next().is_none().then_some(version)
}

/// Returns the constants that a function may return, in ascending order, zero left out.
fn returned(image: &Image<'_>, function: u64) -> Vec<u64> {
    match image.machine() {
        Machine::X86_64 => {
            follow(function, x86_64::State::default(), |state, at| x86_64::run(image, state, at))
        }
        Machine::Arm64 => follow(function, arm64::State::default(), |state, at| arm64::run(image, state, at)),
    }
}

/// Effect of an instruction.
enum Effect<State> {
    /// The function goes on at these addresses, with what is then known.
    GoOn(Vec<(u64, State)>),
    /// It returns this constant, if it is one.
    Return(Option<u64>),
    /// It goes on at an unknown place, or ends.
    End,
}

/// Follows a function's instructions on all paths.
fn follow<State: Clone + Eq + std::hash::Hash>(
    function: u64,
    begin: State,
    run: impl Fn(&State, u64) -> Effect<State>,
) -> Vec<u64> {
    let mut seen = FxHashSet::default();
    let mut ahead = vec![(function, begin)];
    let mut constants = Vec::new();
    while let Some((address, state)) = ahead.pop() {
        if seen.len() == MOST_INSTRUCTIONS {
            break;
        }
        if !seen.insert((address, state.clone())) {
            continue;
        }
        match run(&state, address) {
            Effect::GoOn(next) => ahead.extend(next),
            Effect::Return(value) => constants.extend(value.filter(|&value| value != 0)),
            Effect::End => {}
        }
    }
    constants.sort_unstable();
    constants.dedup();
    constants
}

#[cfg(test)]
mod tests;
