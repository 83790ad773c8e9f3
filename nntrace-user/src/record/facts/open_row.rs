//! Sections that are open, as the state of a recording has them.

use nntrace_common::{layer::Tag, stack::Class};
use serde::{Deserialize, Serialize};

use crate::{model::marks::OpenSection, record::hex};

/// Section that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::record) struct OpenRow {
    /// Process; `None` where it is not known, and in recordings before version 1.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    tid: u32,
    begin_ns: u64,
    #[serde(with = "hex")]
    name: u64,
    slot: u16,
    /// Number of the layer and the phase; `None` where they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tag: Option<u8>,
    /// `None` for a usual section, and in recordings before version 1.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<u8>,
}

impl OpenRow {
    pub(super) fn new(section: &OpenSection) -> Self {
        let OpenSection { pid, tid, begin, name, slot, tag, class } = *section;
        let class = (class != Class::Section).then_some(class as u8);
        Self { pid, tid, begin_ns: begin.time, name, slot, tag: tag.map(Tag::index), class }
    }

    pub(super) fn section(&self) -> OpenSection {
        let Self { pid, tid, begin_ns, name, slot, tag, class } = *self;
        let class = class.and_then(Class::from_code).unwrap_or(Class::Section);
        OpenSection {
            pid,
            tid,
            begin: begin_ns.into(),
            name,
            tag: tag.and_then(Tag::from_index),
            class,
            slot,
        }
    }
}
