//! Fields of events, by their names.

/// Returns the word after `KEY:` or `KEY=`.
#[must_use]
pub(super) fn value<'a>(fields: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let words = fields.split(|byte| b" \t:=,()".contains(byte)).filter(|word| !word.is_empty());
    words.skip_while(|word| *word != key).nth(1)
}
