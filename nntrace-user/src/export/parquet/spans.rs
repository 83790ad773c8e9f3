//! The table of sections.

use std::path::Path;

use nntrace_common::stack::Class;

use super::{
    ExportError, Label,
    schema::SPANS,
    table::{Table, Value},
};
use crate::model::section::Section;

/// Table of sections that is being written.
pub struct Spans {
    pub(super) table: Table,
    /// First failure; nothing is written after it.
    failure: Option<ExportError>,
}

impl Spans {
    /// Creates the table in a folder. One that is there is replaced.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(folder: &Path, label: &Label) -> Result<Self, ExportError> {
        Ok(Self { table: Table::create(folder, &SPANS, label)?, failure: None })
    }

    /// Adds a section. A failure shows at the end.
    pub fn add(&mut self, section: &Section<'_>) {
        if self.failure.is_some() {
            return;
        }
        let Section {
            pid,
            tid,
            begin_ns,
            end_ns,
            own_ns,
            exclusive_ns,
            depth,
            path,
            is_provisional,
            in_itself,
            ..
        } = *section;
        let row = [
            pid.into(),
            tid.into(),
            section.tag.layer().code().into(),
            section.tag.phase().code().into(),
            Value::Text(&section.name),
            Some(&*section.attributes).filter(|attributes| !attributes.is_empty()).into(),
            begin_ns.into(),
            end_ns.into(),
            own_ns.into(),
            exclusive_ns.into(),
            u32::from(depth).into(),
            section.class_name().unwrap_or(Class::Section.word()).into(),
            path.into(),
            is_provisional.into(),
            in_itself.into(),
        ];
        self.failure = self.table.push(&row).err();
    }

    /// Ends the table; returns the number of sections.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<u64, ExportError> {
        match self.failure {
            Some(failure) => Err(failure),
            None => self.table.finish(),
        }
    }
}
