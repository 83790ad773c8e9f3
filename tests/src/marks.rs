//! Texts of marks, for the helper `mark-raw`.

use std::{ffi::OsString, os::unix::ffi::OsStringExt as _};

/// A mark in an address range that is not mapped.
pub const UNMAPPED: &str = "@unmapped";
/// A mark whose text extends to a page that may not be read.
pub const UNTERMINATED: &str = "@unterminated";

/// A second in which nothing is marked.
pub const SLEEP: &str = "@sleep";

/// Returns the begin of a section.
#[must_use]
pub fn begin(tag: &str) -> OsString {
    format!("B|1|[NN_{tag}]work").into()
}

/// Returns the end of a section.
#[must_use]
pub fn end() -> OsString {
    "E|1".into()
}

/// Returns a whole section around others.
#[must_use]
pub fn around(tag: &str, inner: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    [begin(tag)].into_iter().chain(inner).chain([end()]).collect()
}

/// Returns a begin of this length in bytes, without its NUL.
#[must_use]
pub fn begin_of_length(tag: &str, bytes: usize) -> OsString {
    let mut text = begin(tag).into_vec();
    text.resize(bytes, b'x');
    OsString::from_vec(text)
}
