//! Parsing of marks that begin a section, each text once.

use nntrace_common::{
    hidl_calls::{self, Meaning},
    mark,
    section_begin::{BeginName, ParsedBegin},
};
use rustc_hash::FxHashMap;

use super::{function_names::Names, parse_cache::ParseCache};

/// Number of marks in the cache.
const TEXTS: usize = 1024;

/// Parser of begins.
#[derive(Default)]
pub(crate) struct Begins {
    known: ParseCache<ParsedBegin, TEXTS>,
    /// Meanings of untagged names, by hash.
    meanings: FxHashMap<u64, Meaning>,
}

impl Begins {
    /// Parses a payload of [`mark::Kind::Begin`]. A name that matters is added to `names`.
    #[inline]
    pub(crate) fn read(&mut self, payload: &[u8], names: &mut Names) -> ParsedBegin {
        let Self { known, meanings } = self;
        known.get(payload, |payload| Some(read(payload, meanings, names))).unwrap_or_default()
    }
}

fn read(payload: &[u8], meanings: &mut FxHashMap<u64, Meaning>, names: &mut Names) -> ParsedBegin {
    let begin = mark::begin(payload);
    match BeginName::read(payload, begin) {
        BeginName::Tagged(name) => {
            names.insert(name.hash, mark::name(payload, begin.name_at));
            ParsedBegin::tagged(begin, name)
        }
        BeginName::Call(name) => {
            let meaning = *meanings.entry(name).or_insert_with(|| {
                let text = mark::name(payload, begin.name_at);
                names.insert(name, text);
                hidl_calls::meaning(text)
            });
            ParsedBegin::call(begin, name, meaning)
        }
        BeginName::Foreign => ParsedBegin::foreign(begin),
    }
}
