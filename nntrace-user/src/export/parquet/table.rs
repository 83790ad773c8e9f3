//! One table that is being written: rows are gathered to row groups, so that memory is bounded.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use parquet::{
    basic::{Compression, Type as Physical},
    column::writer::ColumnWriterImpl,
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type},
    errors::{ParquetError, Result},
    file::{
        metadata::KeyValue,
        properties::{EnabledStatistics, WriterProperties},
        writer::{SerializedColumnWriter, SerializedFileWriter},
    },
    schema::types::ColumnPath,
};
use rustc_hash::FxHashMap;

use super::{
    ExportError, Label,
    schema::{Column, Schema, VERSION},
};
use crate::caller::FileRights;

/// Rows of a row group at most.
const MOST_ROWS: usize = 128 << 10;
/// Bytes of different texts in the columns of a row group from which it is written, however few rows it has.
const MOST_TEXT: usize = 16 << 20;
/// Program that writes the files, in the form that readers expect.
const CREATED_BY: &str = concat!("nntrace-bpf version ", env!("CARGO_PKG_VERSION"));

/// Value of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// Nothing.
    Null,
    /// Integer. One that is too large for its column becomes the largest there, but for hashes and their like.
    Integer(u64),
    /// Integer that may be below 0, of a column of such.
    Signed(i64),
    /// Text.
    Text(&'a str),
    /// Truth value.
    Flag(bool),
}

impl From<u64> for Value<'_> {
    fn from(value: u64) -> Self {
        Self::Integer(value)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Signed(value)
    }
}

impl From<u32> for Value<'_> {
    fn from(value: u32) -> Self {
        Self::Integer(value.into())
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Table that is being written.
pub(super) struct Table {
    path: PathBuf,
    label: Label,
    writer: SerializedFileWriter<File>,
    columns: Vec<Values>,
    /// Rows of the row group.
    rows: usize,
    /// Bytes of different texts in the row group.
    text: usize,
    /// Rows of the table.
    written: u64,
}

impl Table {
    /// Creates the file of a table in a folder.
    ///
    /// # Errors
    /// When it cannot be created.
    pub(super) fn create(folder: &Path, schema: &Schema, label: &Label) -> Result<Self, ExportError> {
        let path = folder.join(schema.name).with_extension("parquet");
        let error = |source| ExportError::new(&path, source);
        let rights = FileRights::of_caller().map_err(|source| error(source.into()))?;
        let file = File::create(&path).map_err(|source| error(source.into()))?;
        drop(rights);
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(CREATED_BY.to_owned())
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_key_value_metadata(Some(vec![
                KeyValue::new("nntrace.table".to_owned(), schema.name.to_owned()),
                KeyValue::new("nntrace.schema_version".to_owned(), VERSION.to_string()),
            ]));
        for column in schema.columns() {
            let place = ColumnPath::from(column.name);
            properties = properties
                .set_column_encoding(place.clone(), column.kind.encoding())
                .set_column_dictionary_enabled(place, column.kind.has_dictionary());
        }
        let writer = schema
            .parquet()
            .and_then(|schema| SerializedFileWriter::new(file, schema, Arc::new(properties.build())))
            .map_err(error)?;
        let columns = schema.columns().map(Values::new).collect();
        Ok(Self { path, label: label.clone(), writer, columns, rows: 0, text: 0, written: 0 })
    }

    /// Adds a row: the values of the columns after those of the label.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn push(&mut self, row: &[Value<'_>]) -> Result<(), ExportError> {
        let label = [Value::Text(&self.label.board), Value::Text(&self.label.run)];
        let values = label.iter().chain(row);
        let mut columns = 0;
        for (column, value) in self.columns.iter_mut().zip(values) {
            self.text += column.push(value).map_err(|source| ExportError::new(&self.path, source))?;
            columns += 1;
        }
        if columns != label.len() + row.len() || columns != self.columns.len() {
            return Err(ExportError::new(&self.path, misfit("another number of values")));
        }
        self.rows += 1;
        if self.rows >= MOST_ROWS || self.text >= MOST_TEXT { self.write_rows() } else { Ok(()) }
    }

    /// Returns how many rows are gathered, and the bytes of their different texts.
    #[cfg(test)]
    pub(super) fn gathered(&self) -> (usize, usize) {
        (self.rows, self.text)
    }

    /// Writes the rows that were gathered as a row group.
    fn write_rows(&mut self) -> Result<(), ExportError> {
        let Self { path, writer, columns, .. } = self;
        let mut write_group = || {
            let mut group = writer.next_row_group()?;
            for column in columns.iter_mut() {
                let mut writer = group.next_column()?.ok_or_else(|| misfit("fewer columns"))?;
                column.write(&mut writer)?;
                writer.close()?;
            }
            group.close().map(drop)
        };
        write_group().map_err(|source| ExportError::new(path, source))?;
        self.written += self.rows as u64;
        (self.rows, self.text) = (0, 0);
        Ok(())
    }

    /// Ends the file; returns the number of its rows.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn finish(mut self) -> Result<u64, ExportError> {
        if self.rows > 0 {
            self.write_rows()?;
        }
        let Self { path, writer, written, .. } = self;
        let file = writer.into_inner().map_err(|source| ExportError::new(&path, source))?;
        // Some file systems say only now that there was no room.
        file.sync_all().map_err(|source| ExportError::new(&path, source.into()))?;
        Ok(written)
    }
}

/// Values of a column in a row group.
struct Values {
    /// Whether each row has a value, as 1 or 0; `None` for a column that always has one.
    levels: Option<Vec<i16>>,
    is_signed: bool,
    list: List,
}

enum List {
    Long(Vec<i64>),
    Number(Vec<i32>),
    Text(Texts),
    Flag(Vec<bool>),
}

impl Values {
    fn new(column: &Column) -> Self {
        let list = match column.kind.physical() {
            Physical::INT64 => List::Long(Vec::new()),
            Physical::INT32 => List::Number(Vec::new()),
            Physical::BOOLEAN => List::Flag(Vec::new()),
            _ => List::Text(Texts::default()),
        };
        let is_signed = column.kind.is_signed();
        Self { levels: column.is_optional.then(Vec::new), is_signed, list }
    }

    /// Adds a value; returns the bytes of text that it adds.
    #[inline]
    fn push(&mut self, value: &Value<'_>) -> Result<usize> {
        if let Some(levels) = &mut self.levels {
            levels.push(i16::from(*value != Value::Null));
            if *value == Value::Null {
                return Ok(0);
            }
        }
        match (&mut self.list, *value) {
            (List::Long(list), Value::Integer(value)) => list.push(if self.is_signed {
                i64::try_from(value).unwrap_or(i64::MAX)
            } else {
                value.cast_signed()
            }),
            (List::Long(list), Value::Signed(value)) if self.is_signed => list.push(value),
            (List::Number(list), Value::Integer(value)) => {
                list.push(u32::try_from(value).unwrap_or(u32::MAX).cast_signed());
            }
            (List::Flag(list), Value::Flag(value)) => list.push(value),
            (List::Text(texts), Value::Text(text)) => return Ok(texts.push(text)),
            _ => return Err(misfit("a value of another type")),
        }
        Ok(0)
    }

    /// Writes the values, and forgets them.
    fn write(&mut self, writer: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let levels = self.levels.as_deref();
        match &mut self.list {
            List::Long(list) => write(writer.typed::<Int64Type>(), list, levels)?,
            List::Number(list) => write(writer.typed::<Int32Type>(), list, levels)?,
            List::Flag(list) => write(writer.typed::<BoolType>(), list, levels)?,
            List::Text(texts) => {
                write(writer.typed::<ByteArrayType>(), &mut texts.list, levels)?;
                texts.known.clear();
            }
        }
        if let Some(levels) = &mut self.levels {
            levels.clear();
        }
        Ok(())
    }
}

fn write<T: DataType>(
    writer: &mut ColumnWriterImpl<'_, T>,
    list: &mut Vec<T::T>,
    levels: Option<&[i16]>,
) -> Result<()> {
    writer.write_batch(list, levels, None)?;
    list.clear();
    Ok(())
}

/// Texts of a column, equal ones in one place.
#[derive(Default)]
struct Texts {
    list: Vec<ByteArray>,
    known: FxHashMap<Box<str>, ByteArray>,
}

impl Texts {
    /// Adds a text; returns its bytes if it is new.
    fn push(&mut self, text: &str) -> usize {
        if let Some(last) = self.list.last().filter(|last| last.data() == text.as_bytes()) {
            self.list.push(last.clone());
        } else if let Some(known) = self.known.get(text) {
            self.list.push(known.clone());
        } else {
            let new = ByteArray::from(text.as_bytes().to_vec());
            self.known.insert(text.into(), new.clone());
            self.list.push(new);
            return 2 * text.len();
        }
        0
    }
}

/// Returns the error of a row that does not fit the columns, which only a wrong program has.
fn misfit(what: &str) -> ParquetError {
    ParquetError::General(format!("a row has {what} than the table: this is a bug, please report it"))
}
