//! Grammar of marks: the payloads of `tracing_mark_write`.
//!
//! Source: the mark contract, section 1. Every index is masked or checked, so that the kernel's verifier accepts the same
//! code that replay and tests run.

use crate::layer::{Layer, Phase, Tag};
use crate::verifier_bounds::{masked, word};

/// Bytes of a mark that the kernel programs read, the terminating NUL included. A power of two.
///
/// Longer marks are cut there and counted as `truncated_mark`.
pub const MARK_BYTES: usize = 256;

/// Size of the buffer that the kernel programs read a mark into: eight zeros follow it, so that a word can be read at
/// any byte of it.
pub const BUFFER_BYTES: usize = MARK_BYTES + 8;

/// Payload of a mark: bytes with an end.
pub trait Text {
    /// Returns the byte at `at`, 0 beyond the end.
    fn byte(&self, at: usize) -> u8;

    /// Returns the eight bytes from `at` on, the first one lowest; 0 beyond the end.
    fn word(&self, at: usize) -> u64;

    /// Returns the offset from which on all bytes are 0.
    fn zeros_at(&self) -> usize;
}

impl Text for [u8] {
    #[inline(always)]
    fn byte(&self, at: usize) -> u8 {
        self.get(at).copied().unwrap_or(0)
    }

    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        let rest = self.get(at..).unwrap_or_default();
        match (rest.first_chunk::<8>(), self.last_chunk::<8>()) {
            (Some(bytes), _) => u64::from_le_bytes(*bytes),
            // The upper bytes are the wanted ones; in two shifts, as one shift may not be by all 64 bits.
            (None, Some(last)) => u64::from_le_bytes(*last) >> (8 * (7 - rest.len())) >> 8,
            (None, None) => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        }
    }

    #[inline(always)]
    fn zeros_at(&self) -> usize {
        self.len()
    }
}

/// Payload in the fixed buffer that the kernel programs read into, with zeros after its end.
///
/// Zeros instead of a length, so that a position in the text is compared once: compared repeatedly, it would have
/// contradictory bounds for the verifier of older kernels, where newer ones see that the path is impossible.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Captured([u8; BUFFER_BYTES]);

impl Captured {
    /// Wraps a buffer with zeros after the end of the text.
    #[must_use]
    #[inline(always)]
    pub const fn of(bytes: &[u8; BUFFER_BYTES]) -> &Self {
        // SAFETY: the same type, transparently.
        unsafe { &*core::ptr::from_ref(bytes).cast() }
    }
}

impl Text for Captured {
    #[inline(always)]
    fn byte(&self, at: usize) -> u8 {
        if at < MARK_BYTES { self.0[masked(at, MARK_BYTES)] } else { 0 }
    }

    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        if at < MARK_BYTES { word(&self.0, masked(at, MARK_BYTES)) } else { 0 }
    }

    #[inline(always)]
    fn zeros_at(&self) -> usize {
        // The last byte is the NUL.
        MARK_BYTES - 1
    }
}

/// Kind of a payload's event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `B|`: a section begins on this thread.
    Begin,
    /// `E`, `E|`: the innermost section of this thread ends.
    End,
    /// `C|`: a counter value.
    Counter,
    /// `S|`: an asynchronous slice begins.
    AsyncBegin,
    /// `F|`: an asynchronous slice ends.
    AsyncEnd,
    /// `I|`: an instant.
    Instant,
    /// `N|`: an instant on a named track.
    TrackInstant,
    /// `G|`: a slice on a named track begins.
    TrackBegin,
    /// `H|`: a slice on a named track ends.
    TrackEnd,
}

/// Returns the kind of a payload; `None` for free text.
#[must_use]
#[inline(always)]
pub fn kind<T: Text + ?Sized>(text: &T) -> Option<Kind> {
    let (first, second) = (text.byte(0), text.byte(1));
    if first == b'E' && (second == b'|' || is_end(second)) {
        return Some(Kind::End);
    }
    if second != b'|' {
        return None;
    }
    Some(match first {
        b'B' => Kind::Begin,
        b'C' => Kind::Counter,
        b'S' => Kind::AsyncBegin,
        b'F' => Kind::AsyncEnd,
        b'I' => Kind::Instant,
        b'N' => Kind::TrackInstant,
        b'G' => Kind::TrackBegin,
        b'H' => Kind::TrackEnd,
        _ => return None,
    })
}

/// Prefix of a begin's tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum Prefix {
    /// Nothing.
    #[default]
    None,
    /// `[SW]`: the section replaces the one that is open.
    Switch,
    /// `[SUB]`: the section's time is subtracted from the ones around it.
    Subtract,
    /// Work that a thread does for an execution on another one, where nothing is open on the thread: a part of that
    /// execution. No text has it, functions of engines do ([`crate::engine`]).
    Handed,
    /// A call that starts an asynchronous execution, or waits for one: a part of that execution, which is counted as a whole
    /// ([`crate::async_runs`]). No text has it either.
    Part,
}

impl Prefix {
    /// Returns its number in a record.
    #[must_use]
    #[inline(always)]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the prefix with this number.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::None,
            1 => Self::Switch,
            2 => Self::Subtract,
            3 => Self::Handed,
            4 => Self::Part,
            _ => return None,
        })
    }
}

/// Tag of a begin, if it has one.
///
/// One byte that is always written: an enum with a tag in it would leave that byte unwritten in the other cases, and
/// the verifier refuses to copy unwritten bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "user",
    derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)
)]
#[repr(transparent)]
pub struct Label(u8);

impl Label {
    /// No tag: a foreign section.
    pub const FOREIGN: Self = Self(0x80);
    /// A tag with letters that are not in the contract: a diagnostic, and the section is foreign.
    pub const UNKNOWN: Self = Self(0x81);

    /// Returns the label with this tag.
    #[must_use]
    pub const fn tagged(tag: Tag) -> Self {
        Self(tag.index())
    }

    /// Returns the label of a record's byte; `None` for an invalid byte.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match Self(byte) {
            Self::FOREIGN => Some(Self::FOREIGN),
            Self::UNKNOWN => Some(Self::UNKNOWN),
            _ => match Tag::from_index(byte) {
                Some(tag) => Some(Self::tagged(tag)),
                None => None,
            },
        }
    }

    /// Returns the byte of a record.
    #[must_use]
    pub const fn byte(self) -> u8 {
        self.0
    }

    /// Whether it is a tag of the contract.
    #[must_use]
    #[inline(always)]
    pub const fn is_tagged(self) -> bool {
        self.0 & 0x80 == 0
    }

    /// Returns the tag; `None` when there is none.
    #[must_use]
    pub const fn tag(self) -> Option<Tag> {
        if self.is_tagged() { Some(Tag::from_trusted_index(self.0)) } else { None }
    }

    /// Whether it is one of the runtime's layer.
    #[must_use]
    #[inline(always)]
    pub const fn is_of_runtime(self) -> bool {
        self.is_tagged() && self.0 >> 4 == Layer::Runtime as u8
    }

    /// Whether it is one of the driver's layer.
    #[must_use]
    #[inline(always)]
    pub const fn is_of_driver(self) -> bool {
        self.is_tagged() && self.0 >> 4 == Layer::Driver as u8
    }

    /// Whether begins with this label matter beyond their thread: overall, warm-up and benchmark of the application.
    #[must_use]
    #[inline(always)]
    pub const fn is_application_phase(self) -> bool {
        // The first three tags: layer 0, phases 0 to 2.
        self.0 <= Tag::new(Layer::Application, Phase::Benchmark).index()
    }

    /// Returns the code of the begin's [`AppChange`](crate::app_events::AppChange); `None` when it is none.
    #[must_use]
    #[inline(always)]
    pub const fn app_change(self) -> Option<u32> {
        if self.is_application_phase() { Some(self.0 as u32) } else { None }
    }

    /// Returns the [`Tag::index`] of the tag; meaningless when there is none.
    #[inline(always)]
    pub(crate) const fn tag_index(self) -> u8 {
        self.0
    }
}

/// Parsed begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Begin {
    /// Offset of the name in the payload.
    pub name_at: u16,
    /// Prefix of the tag.
    pub prefix: Prefix,
    /// Tag, if any.
    pub label: Label,
}

/// Returns the process id in a payload: the writer's own, which may be of another namespace. `None` when there is
/// none.
#[must_use]
pub fn pid(payload: &[u8]) -> Option<u32> {
    let digits = payload.get(2..)?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    core::str::from_utf8(&digits[..end]).ok()?.parse().ok().filter(|&pid| pid != 0)
}

/// Decimal digits of the largest process id, and the separator after them.
const PID_DIGITS: usize = 11;

/// Parses a payload of [`Kind::Begin`].
#[must_use]
#[inline(always)]
pub fn begin<T: Text + ?Sized>(text: &T) -> Begin {
    let mut at = 2;
    let mut digits = 0;
    while digits < PID_DIGITS {
        let byte = text.byte(2 + digits);
        digits += 1;
        if byte == b'|' {
            at = 2 + digits;
            break;
        }
        if !byte.is_ascii_digit() {
            break;
        }
    }
    section(text, at)
}

/// Parses prefix, tag and name of a begin from `at` on. For functions whose only argument is the name of a section,
/// as `ATrace_beginSection`, that is the whole text.
#[must_use]
#[inline(always)]
pub fn section<T: Text + ?Sized>(text: &T, mut at: usize) -> Begin {
    let mut prefix = Prefix::None;
    if text.byte(at) == b'[' && text.byte(at + 1) == b'S' {
        if text.byte(at + 2) == b'W' && text.byte(at + 3) == b']' {
            prefix = Prefix::Switch;
            at += 4;
        } else if text.byte(at + 2) == b'U' && text.byte(at + 3) == b'B' && text.byte(at + 4) == b']' {
            prefix = Prefix::Subtract;
            at += 5;
        }
    }
    let (label, length) = label(text, at);
    if !label.is_tagged() {
        // The prefix has a meaning only before a tag.
        prefix = Prefix::None;
    }
    Begin { name_at: (at + length) as u16, prefix, label }
}

/// Parses the tag at `at`; returns it and its length in bytes.
#[inline(always)]
fn label<T: Text + ?Sized>(text: &T, at: usize) -> (Label, usize) {
    let opens = text.byte(at) == b'['
        && text.byte(at + 1) == b'N'
        && text.byte(at + 2) == b'N'
        && text.byte(at + 3) == b'_';
    if !opens {
        return (Label::FOREIGN, 0);
    }
    if text.byte(at + 4) != b'L' || text.byte(at + 6) != b'_' || text.byte(at + 7) != b'P' {
        return (Label::UNKNOWN, 0);
    }
    let (third, length) = match (text.byte(at + 9), text.byte(at + 10)) {
        (b']', _) => (0, 10),
        (third, b']') => (third, 11),
        _ => return (Label::UNKNOWN, 0),
    };
    match Tag::from_letters(text.byte(at + 5), text.byte(at + 8), third) {
        Some(tag) => (Label::tagged(tag), length),
        None => (Label::UNKNOWN, 0),
    }
}

/// Name, as far as the kernel programs use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashedName {
    /// 64-bit hash of the name.
    pub hash: u64,
    /// Whether attributes follow the name ([`crate::attributes`]).
    pub has_attributes: bool,
}

/// Hashes the name that starts at `name_at` and extends to the first `#`, newline or the end; at most [`MARK_BYTES`]
/// bytes of it. Eight bytes at a time: a name is hashed for every begin.
#[must_use]
#[inline(always)]
pub fn hashed_name<T: Text + ?Sized>(text: &T, name_at: u16) -> HashedName {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut at = name_at as usize;
    // Two bounds: the verifier of older kernels understands the count alone; that of newer ones also sees `at` pass the
    // end of the text, and stops there sooner.
    for _ in 0..MARK_BYTES / 8 {
        if at > text.zeros_at() {
            break;
        }
        let word = text.word(at);
        let attributes = zero_bytes(word ^ every(b'#'));
        let ends = zero_bytes(word) | zero_bytes(word ^ every(b'\n')) | attributes;
        if ends != 0 {
            // The lowest bit of all is a true one: false ones are only above a true one of their own kind.
            let first = ends & ends.wrapping_neg();
            let name = word & first.wrapping_sub(1) >> 7;
            return HashedName { hash: mixed(hash, name), has_attributes: attributes & first != 0 };
        }
        hash = mixed(hash, word);
        at += 8;
    }
    HashedName { hash, has_attributes: false }
}

/// Mixes eight more bytes into a hash.
#[inline(always)]
const fn mixed(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ hash >> 32
}

/// Returns the hash of a name alone; see [`hashed_name`].
#[must_use]
#[inline(always)]
pub fn name_hash<T: Text + ?Sized>(text: &T, name_at: u16) -> u64 {
    hashed_name(text, name_at).hash
}

/// Repeats a byte eight times.
const fn every(byte: u8) -> u64 {
    byte as u64 * 0x0101_0101_0101_0101
}

/// Returns the top bit of every zero byte. Above the lowest zero byte there may be false ones.
#[inline(always)]
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(every(1)) & !word & every(0x80)
}

/// Whether the text at `name_at` may be an interface call ([`crate::hidl_calls`]): it starts with `HIDL` or `AIDL`.
#[must_use]
#[inline(always)]
pub fn may_be_interface_call<T: Text + ?Sized>(text: &T, name_at: u16) -> bool {
    let at = name_at as usize;
    let first = text.byte(at);
    (first == b'H' || first == b'A')
        && text.byte(at + 1) == b'I'
        && text.byte(at + 2) == b'D'
        && text.byte(at + 3) == b'L'
}

/// Returns the name that starts at `name_at`: the bytes that [`name_hash`] covers.
#[must_use]
pub fn name(payload: &[u8], name_at: u16) -> &[u8] {
    let rest = payload.get(usize::from(name_at)..).unwrap_or_default();
    let end = rest.iter().take(MARK_BYTES).position(|&b| b == b'#' || is_end(b));
    &rest[..end.unwrap_or(rest.len().min(MARK_BYTES))]
}

/// Whether a byte ends a payload: a NUL, as beyond the text, or the newline that some writers add.
#[inline(always)]
const fn is_end(byte: u8) -> bool {
    byte == 0 || byte == b'\n'
}

#[cfg(test)]
mod tests;
