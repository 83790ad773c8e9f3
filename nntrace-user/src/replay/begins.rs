//! What marks that begin a section say to the accounting of their thread.

use nntrace_common::{
    interface::{self, Meaning},
    mark::{self, Begin, HashedName, Label, Prefix},
};
use rustc_hash::FxHashMap;

use super::recall::Recall;
use crate::model::names::Names;

/// Marks that are remembered.
const TEXTS: usize = 1024;

/// Reads begins.
#[derive(Default)]
pub(crate) struct Begins {
    known: Recall<Said, TEXTS>,
    /// What untagged names mean, by hash.
    meanings: FxHashMap<u64, Meaning>,
}

/// What a begin says.
#[derive(Clone, Copy)]
pub(crate) struct Said {
    /// What stands before the tag.
    pub prefix: Prefix,
    /// The tag, or the one that an interface call stands for.
    pub label: Label,
    /// Hash of the name; 0 where no name matters.
    pub name: u64,
    /// Whether its thread takes part in the accounting from now on.
    pub takes_part: bool,
    /// Whether it matters beyond its thread.
    pub told: bool,
    /// Where its name starts.
    pub name_at: u16,
    /// Whether attributes follow the name of a tagged section.
    pub has_attributes: bool,
}

impl Default for Said {
    fn default() -> Self {
        Self {
            prefix: Prefix::None,
            label: Label::FOREIGN,
            name: 0,
            takes_part: false,
            told: false,
            name_at: 0,
            has_attributes: false,
        }
    }
}

impl Begins {
    /// Reads a payload of [`mark::Kind::Begin`]. A name that matters is put into `names`.
    #[inline]
    pub(crate) fn read(&mut self, payload: &[u8], names: &mut Names) -> Said {
        let Self { known, meanings } = self;
        known.get(payload, |payload| Some(read(payload, meanings, names))).unwrap_or_default()
    }
}

fn read(payload: &[u8], meanings: &mut FxHashMap<u64, Meaning>, names: &mut Names) -> Said {
    let Begin { name_at, prefix, label } = mark::begin(payload);
    let foreign = Said { prefix, label, name_at, ..Said::default() };
    if label.is_tagged() {
        let HashedName { hash: name, has_attributes } = mark::hashed_name(payload, name_at);
        names.insert(name, mark::name(payload, name_at));
        let told = label.is_application_phase();
        return Said { name, takes_part: true, told, has_attributes, ..foreign };
    }
    if label != Label::FOREIGN || !mark::may_be_interface_call(payload, name_at) {
        return foreign;
    }
    let name = mark::name_hash(payload, name_at);
    let meaning = *meanings.entry(name).or_insert_with(|| {
        let text = mark::name(payload, name_at);
        names.insert(name, text);
        interface::meaning(text)
    });
    Said { label: meaning.label, name, takes_part: meaning.driver != 0, told: meaning.told != 0, ..foreign }
}
