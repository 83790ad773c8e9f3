//! Decoding of numbers and texts from bytes that may be truncated or wrong.

use std::{
    fmt::Display,
    io::{self, ErrorKind, Read},
};

use thiserror::Error;

/// Bytes of a text at most (formats, `/proc/kallsyms`); a longer length is damage.
pub(crate) const LONGEST: u64 = 128 << 20;

/// Bytes of a name at most.
const LONGEST_NAME: usize = 4096;

/// Kind and place of damage.
#[derive(Debug, Error)]
#[error("at byte {offset}{inside}: {what}")]
pub struct Damage {
    offset: u64,
    /// Section, where the offset is one in its unpacked text.
    inside: String,
    what: String,
}

impl Damage {
    /// Creates the damage `what` at an offset of the file.
    pub(crate) fn new(offset: u64, what: impl Into<String>) -> Self {
        Self { offset, inside: String::new(), what: what.into() }
    }

    /// Creates the damage of an unexpected value at an offset of the file.
    pub(crate) fn unexpected(offset: u64, found: impl Display, expected: impl Display) -> Self {
        Self::new(offset, format!("{found}, where {expected} was expected"))
    }

    /// Moves the damage into the unpacked text of the section at `offset`.
    #[must_use]
    pub(crate) fn in_section(self, offset: u64) -> Self {
        Self { inside: format!(" of the section at byte {offset}"), ..self }
    }
}

/// Byte order of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Endian {
    /// Decodes four bytes at `at`; `None` where they are not all there.
    #[inline]
    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        })
    }

    /// Decodes eight bytes at `at`; `None` where they are not all there.
    #[inline]
    pub(crate) fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        })
    }

    /// Decodes two bytes at `at`; `None` where they are not all there.
    #[inline]
    pub(crate) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        })
    }
}

/// Place of a number in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// Offset of the first byte.
    pub offset: usize,
    /// Number of bytes.
    pub size: usize,
    /// Whether the number is signed.
    pub signed: bool,
}

impl Word {
    /// Decodes the number, sign-extended; `None` where it is not all there, or of an invalid size.
    #[inline]
    pub(crate) fn read(self, bytes: &[u8], endian: Endian) -> Option<u64> {
        let Self { offset, size, signed } = self;
        Some(match (size, signed) {
            (4, false) => endian.u32(bytes, offset)?.into(),
            (4, true) => i64::from(endian.u32(bytes, offset)?.cast_signed()).cast_unsigned(),
            (8, _) => endian.u64(bytes, offset)?,
            (2, false) => endian.u16(bytes, offset)?.into(),
            (2, true) => i64::from(endian.u16(bytes, offset)?.cast_signed()).cast_unsigned(),
            (1, false) => (*bytes.get(offset)?).into(),
            (1, true) => i64::from(bytes.get(offset)?.cast_signed()).cast_unsigned(),
            _ => return None,
        })
    }
}

/// Sequential decoder.
pub(crate) struct Reader<R> {
    source: R,
    /// Offset of the next byte.
    offset: u64,
    /// Byte order of numbers.
    pub endian: Endian,
}

impl<R: Read> Reader<R> {
    /// Creates a reader of the bytes from `offset` of the file on.
    pub(crate) fn new(source: R, offset: u64, endian: Endian) -> Self {
        Self { source, offset, endian }
    }

    /// Returns the offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads the next `size` bytes, called `what` in an error.
    pub(crate) fn bytes(&mut self, size: u64, what: &str) -> Result<Vec<u8>, Damage> {
        if size > LONGEST {
            return Err(Damage::unexpected(
                self.offset,
                format!("{size} bytes of {what}"),
                format!("{LONGEST} at most"),
            ));
        }
        let mut bytes = Vec::new();
        // The buffer grows with the bytes that exist, whatever the size.
        let read = self.source.by_ref().take(size).read_to_end(&mut bytes);
        if let Err(error) = read {
            return Err(self.failed(what, &error));
        }
        if (bytes.len() as u64) < size {
            let found = format!("the end after {} of {size} bytes of {what}", bytes.len());
            return Err(Damage::new(self.offset, found));
        }
        self.offset += size;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Damage> {
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes).map_err(|error| self.failed(what, &error))?;
        self.offset += N as u64;
        Ok(bytes)
    }

    /// Reads the next byte.
    pub(crate) fn u8(&mut self, what: &str) -> Result<u8, Damage> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    /// Reads the next two bytes.
    pub(crate) fn u16(&mut self, what: &str) -> Result<u16, Damage> {
        let bytes = self.array::<2>(what)?;
        Ok(if self.endian == Endian::Little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    }

    /// Reads the next four bytes.
    pub(crate) fn u32(&mut self, what: &str) -> Result<u32, Damage> {
        let bytes = self.array::<4>(what)?;
        Ok(if self.endian == Endian::Little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    /// Reads the next eight bytes.
    pub(crate) fn u64(&mut self, what: &str) -> Result<u64, Damage> {
        let bytes = self.array::<8>(what)?;
        Ok(if self.endian == Endian::Little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) })
    }

    /// Reads text up to a NUL.
    pub(crate) fn name(&mut self, what: &str) -> Result<Vec<u8>, Damage> {
        let start = self.offset;
        let mut name = Vec::new();
        loop {
            match self.u8(what)? {
                0 => return Ok(name),
                byte => name.push(byte),
            }
            if name.len() > LONGEST_NAME {
                return Err(Damage::new(start, format!("{what} does not end")));
            }
        }
    }

    /// Checks that the next bytes are `expected`.
    pub(crate) fn expect(&mut self, expected: &[u8]) -> Result<(), Damage> {
        let start = self.offset;
        let text = expected.escape_ascii();
        let found = self.bytes(expected.len() as u64, &format!("`{text}`"))?;
        if found == expected {
            return Ok(());
        }
        Err(Damage::unexpected(start, format!("`{}`", found.escape_ascii()), format!("`{text}`")))
    }

    fn failed(&self, what: &str, error: &io::Error) -> Damage {
        let why = if error.kind() == ErrorKind::UnexpectedEof { "the end".into() } else { error.to_string() };
        Damage::unexpected(self.offset, why, what)
    }
}
