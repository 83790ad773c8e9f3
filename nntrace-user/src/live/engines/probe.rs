//! Probes of engines in one file, ready to be attached.
//!
//! [`resolve`](super::resolve) makes them of a map's entries and of a file's content. Nothing here depends on BPF.

use std::{fmt, sync::Arc};

use nntrace_common::{layer::Tag, mark::Prefix};
use serde::{Deserialize, Serialize};

/// Offsets of a name at most: pointers that are followed, the field at their end included.
pub(in crate::live) const LONGEST_CHAIN: usize = 4;

/// Line of an engine map, for messages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(in crate::live) struct MapLine {
    /// Path of the map; of a map that is compiled in, its path in the sources.
    #[serde(with = "shared_text")]
    pub(in crate::live) map: Arc<str>,
    /// Line, from 1.
    pub(in crate::live) line: u32,
}

impl fmt::Display for MapLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.map, self.line)
    }
}

/// A shared text as its letters.
mod shared_text {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
        String::deserialize(deserializer).map(Arc::from)
    }
}

/// Remark on something that is not probed, or not as the map wants it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::live) struct Note {
    /// Entry of the map that it concerns.
    pub(in crate::live) at: MapLine,
    /// Remark.
    pub(in crate::live) text: String,
    /// Whether it is for whoever writes the map: nothing is missing in a run.
    pub(in crate::live) is_for_author: bool,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.text)
    }
}

/// Level of detail, from the cheapest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::live) enum Level {
    /// Loading of models, whole runs: a handful of functions.
    #[default]
    Run,
    /// Each operator too: hundreds of functions.
    Op,
}

/// Kind of a probe: what one call of its function is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::live) enum Kind {
    /// A section from the begin of the call to its end.
    #[default]
    Section,
    /// The begin of a section that a call of another function ends, on the same thread. Its entry counts.
    BracketBegin,
    /// The end of that section. Its entry counts.
    BracketEnd,
    /// A call that starts an asynchronous execution.
    AsyncBegin {
        /// Argument register that holds the object by which begin and end pair, from 0; `sret` is applied already.
        argument: u8,
    },
    /// A call that waits for the end of that execution.
    AsyncEnd {
        /// As of the begin.
        argument: u8,
    },
}

/// End of a call: how it is seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::live) enum End {
    /// By probes at these file offsets, the function's return instructions.
    Returns(Vec<u64>),
    /// By probes at these file offsets on some ways; on the others it is over when a later event of the thread shows it.
    SomeReturns(Vec<u64>),
    /// By a return probe, as nothing in the function can be thrown, cancelled or jumped over.
    ReturnProbe,
    /// Not at all: it is over when a later event of the thread shows it, by the stack.
    StackPointer,
    /// Needless: the entry is all that counts.
    None,
}

/// Form of a name in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::live) enum NameForm {
    /// A `char *` to text that ends by a NUL.
    #[serde(rename = "cstr")]
    CString,
    /// An array of characters that ends by a NUL.
    Inline,
    /// A `std::string` of libstdc++: pointer, then length, both of eight bytes.
    StdString,
    /// A `std::string` of libc++: short texts in place after their length, longer ones behind a pointer.
    LibcxxString,
    /// A 32-bit number that stands for one of [`NameRecipe::values`].
    Enum,
    /// A 32-bit number of tokens, or a `std::vector` with an element for each of them.
    Tokens,
}

/// How to read a section's name at the entry of its function.
///
/// The chain leads from the argument to a field. Each offset but the last one is that of a pointer to follow; the last
/// one is that of the field, which has the recipe's form. With `[8, 40]` the field is at `*(argument + 8) + 40`. An
/// empty chain means the argument itself: the pointer of a C string, the number of an enum, the address of others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::live) struct NameRecipe {
    /// Argument register of the machine, from 0; `sret` is applied already. For an argument that is not in a register,
    /// [`IN_MEMORY`](nntrace_common::engine::IN_MEMORY).
    pub(in crate::live) argument: u8,
    /// Offsets in bytes; only the first [`length`](Self::length) count, the others are 0.
    pub(in crate::live) chain: [i32; LONGEST_CHAIN],
    /// Number of offsets.
    pub(in crate::live) length: u8,
    /// Form of the field.
    pub(in crate::live) form: NameForm,
    /// Names by number, for [`NameForm::Enum`]; empty where there is none.
    pub(in crate::live) values: Vec<String>,
    /// Bytes from the number to a `char *` to the name where [`values`](Self::values) have none; 0 without one.
    pub(in crate::live) other: i16,
    /// Size in bytes of the elements of a vector, for [`NameForm::Tokens`]; 0 where it is a number.
    pub(in crate::live) element: u8,
}

/// Function that may be hooked: the words that lead to it can be replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::live) struct Hook {
    /// Address of the function's first instruction, as linked.
    pub(in crate::live) address: u64,
    /// Addresses, as linked, of the words in the file's data that the loader makes point to it, ascending.
    pub(in crate::live) words: Vec<u64>,
}

/// Probe of one function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::live) struct EngineProbe {
    /// Function as people know it: its demangled name, or its class and slot.
    pub(in crate::live) function: String,
    /// Entry of the map.
    pub(in crate::live) map_line: MapLine,
    /// Level from which on it is probed.
    pub(in crate::live) level: Level,
    /// Prefix of its sections.
    pub(in crate::live) prefix: Prefix,
    /// Layer and phase of its sections.
    pub(in crate::live) tag: Tag,
    /// Source of the names of its sections, if they have any.
    pub(in crate::live) name: Option<NameRecipe>,
    /// Name where there is no recipe, or what it leads to is implausible.
    pub(in crate::live) fallback_name: String,
    /// File offset of the entry probe.
    pub(in crate::live) entry: u64,
    /// Bytes that the function has pushed before that instruction.
    pub(in crate::live) entry_sp_offset: u32,
    /// Whether all kernels emulate that instruction: no single step is needed.
    pub(in crate::live) entry_is_emulated: bool,
    /// End of a call.
    pub(in crate::live) end: End,
    /// Meaning of a call.
    pub(in crate::live) kind: Kind,
    /// Whether pool threads call it, inside of an execution of another thread.
    pub(in crate::live) on_workers: bool,
    /// Way to hook the function; `Some` where it may be hooked.
    pub(in crate::live) hook: Option<Hook>,
}

impl EngineProbe {
    /// Returns the number of places in the file that are probed for it.
    pub(in crate::live) fn places(&self) -> usize {
        1 + match &self.end {
            End::Returns(offsets) | End::SomeReturns(offsets) => offsets.len(),
            End::ReturnProbe => 1,
            End::StackPointer | End::None => 0,
        }
    }
}
