//! The kernel's format files: names of events, and places of their fields.
//!
//! ```text
//! name: cpu_idle
//! ID: 568
//! format:
//!     field:unsigned short common_type; offset:0; size:2; signed:0;
//!     ...
//! ```

use super::bytes::Word;

/// Format of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Name.
    pub name: Box<[u8]>,
    /// Number that begins its records.
    pub id: u16,
    /// Fields, including those common to all events.
    pub fields: Vec<Field>,
}

/// Field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// Name.
    pub name: Box<[u8]>,
    /// Place in the record.
    pub word: Word,
    /// Kind of its value.
    pub kind: Kind,
}

/// Kind of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number.
    Number,
    /// The address of a text in the kernel.
    Pointer,
    /// Text, up to a NUL; of size 0, up to the end of the record.
    Text,
    /// The place of a text: its offset in the lower, its size in the upper 16 bits.
    TextElsewhere {
        /// Whether the offset counts from the end of the field.
        is_relative: bool,
    },
    /// Several numbers.
    Array,
}

impl Format {
    /// Parses a format file; `None` if it is something else.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let (mut name, mut id, mut fields) = (None, None, Vec::new());
        for line in text.split(|&byte| byte == b'\n') {
            let line = line.trim_ascii();
            if let Some(rest) = line.strip_prefix(b"name:") {
                name = Some(rest.trim_ascii().into());
            } else if let Some(rest) = line.strip_prefix(b"ID:") {
                id = Some(number(rest)?.try_into().ok()?);
            } else if line.starts_with(b"field") {
                fields.push(Field::parse(line)?);
            } else if line.starts_with(b"print fmt") {
                break;
            }
        }
        Some(Self { name: name?, id: id?, fields })
    }

    /// Returns the field of that name.
    pub(crate) fn field(&self, name: &[u8]) -> Option<&Field> {
        self.fields.iter().find(|field| *field.name == *name)
    }

    /// Returns the place of the number of that name.
    pub(crate) fn number(&self, name: &[u8]) -> Option<Word> {
        Some(self.field(name)?.word).filter(|word| matches!(word.size, 1 | 2 | 4 | 8))
    }
}

impl Field {
    /// Parses `field:TYPE NAME; offset:N; size:N; signed:N;`.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let mut parts = line.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        // In old kernels, fields other than numbers begin with `field special:`.
        let declaration = after_colon(parts.next()?)?;
        let (mut offset, mut size, mut signed) = (None, None, None);
        for part in parts {
            let place = match part.split(|&byte| byte == b':').next()? {
                b"offset" => &mut offset,
                b"size" => &mut size,
                b"signed" => &mut signed,
                _ => continue,
            };
            *place = Some(number(after_colon(part)?)?);
        }
        let (declaration, is_array) = match declaration.iter().position(|&byte| byte == b'[') {
            // In `__data_loc char[] name`, the name comes last.
            Some(open) if declaration.ends_with(b"]") => (&declaration[..open], true),
            at => (declaration, at.is_some()),
        };
        let start = declaration.iter().rposition(|byte| b" \t*".contains(byte))? + 1;
        let (kind, name) = declaration.split_at(start);
        let is_text = contains(kind, b"char") && !contains(kind, b"unsigned");
        let kind = match kind {
            _ if kind.starts_with(b"__data_loc") && is_text => Kind::TextElsewhere { is_relative: false },
            _ if kind.starts_with(b"__rel_loc") && is_text => Kind::TextElsewhere { is_relative: true },
            _ if kind.starts_with(b"__") && contains(kind, b"_loc") => Kind::Array,
            _ if is_array && is_text => Kind::Text,
            _ if is_array => Kind::Array,
            _ if contains(kind, b"*") && is_text => Kind::Pointer,
            _ => Kind::Number,
        };
        let word = Word {
            offset: offset?.try_into().ok()?,
            size: size?.try_into().ok()?,
            signed: signed.is_some_and(|signed| signed != 0),
        };
        Some(Self { name: name.into(), word, kind })
    }
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(text, word).is_some()
}

fn after_colon(text: &[u8]) -> Option<&[u8]> {
    let colon = memchr::memchr(b':', text)?;
    Some(text[colon + 1..].trim_ascii())
}

fn number(text: &[u8]) -> Option<u32> {
    str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
}
