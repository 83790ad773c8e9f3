//! Fields of events, by their names.

use memchr::memmem;

/// Returns the word after `KEY:` or `KEY=`.
#[must_use]
pub(super) fn value<'a>(fields: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let words = fields.split(|byte| b" \t:=,()".contains(byte)).filter(|word| !word.is_empty());
    words.skip_while(|word| *word != key).nth(1)
}

/// Returns the value of a field, up to a comma or to the next field. It may have blanks.
#[must_use]
pub(super) fn text<'a>(fields: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let is_value = |at: &usize| {
        let before = at.checked_sub(1).map(|before| fields[before]);
        before.is_none_or(|before| before == b' ') && matches!(fields.get(at + key.len()), Some(b'=' | b':'))
    };
    let at = memmem::find_iter(fields, key).find(is_value)?;
    let rest = &fields[at + key.len() + 1..];
    let rest = &rest[..memmem::find(rest, b", ").unwrap_or(rest.len())];
    let end = memchr::memchr(b'=', rest).map_or(rest.len(), |equal| {
        // The blank before the next key.
        memchr::memrchr(b' ', &rest[..equal]).unwrap_or(equal)
    });
    Some(rest[..end].trim_ascii())
}

/// Parses a number, in decimal or `0x`.
#[must_use]
pub(super) fn number(fields: &[u8], key: &[u8]) -> Option<u64> {
    let word = text(fields, key)?.split(|byte| *byte == b' ').next()?;
    match word.strip_prefix(b"0x") {
        Some(digits) => hexadecimal(digits),
        None => decimal(word),
    }
}

/// Parses decimal digits.
#[must_use]
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    str::from_utf8(digits).ok()?.parse().ok()
}

/// Parses hexadecimal digits.
#[must_use]
pub(super) fn hexadecimal(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}
