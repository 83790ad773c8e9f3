//! Position of a mark function's text among its arguments, and its syntax in `--symbol`.

use std::fmt;
use std::str::FromStr;

use nntrace_common::nested_functions::FunctionKind;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Name of the function that libraries write marks with.
pub(crate) const MARK_FUNCTION: &str = "tracing_mark_write";

/// Functions that begin and end a section, with nothing but its name as an argument: libcutils' and the NDK's.
pub(crate) const SECTION_FUNCTIONS: [(FunctionKind, &str, &str); 2] = [
    (FunctionKind::Body, "atrace_begin_body", "atrace_end_body"),
    (FunctionKind::Ndk, "ATrace_beginSection", "ATrace_endSection"),
];

/// Role of a mark function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Role {
    /// Writes a mark, whose kind is given by its text.
    #[default]
    Mark,
    /// Begins the section that its text names.
    Begin,
    /// Ends the innermost section, without any argument.
    End,
}

/// Position of a mark function's text among its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Layout {
    /// `f(const char *text)`: ends at a NUL.
    Buf,
    /// `f(const char *text, integer length)`.
    BufLen,
    /// A method `f(const char *text)`: the object comes first.
    ThisBuf,
    /// A method `f(const char *text, integer length)`.
    ThisBufLen,
}

impl Layout {
    /// All layouts.
    pub(crate) const ALL: [Self; 4] = [Self::Buf, Self::BufLen, Self::ThisBuf, Self::ThisBufLen];

    const fn text(self) -> &'static str {
        match self {
            Self::Buf => "buf",
            Self::BufLen => "buf,len",
            Self::ThisBuf => "this,buf",
            Self::ThisBufLen => "this,buf,len",
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Syntax error in a `--symbol`.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// The name is missing.
    #[error("--symbol {0:?} names no function: write NAME or NAME=LAYOUT, as in my_mark_write=buf,len")]
    NoName(String),
    /// The layout is unknown.
    #[error("--symbol {spec:?}: unknown layout {layout:?}; choose buf, buf,len, this,buf or this,buf,len")]
    UnknownLayout {
        /// Whole argument.
        spec: String,
        /// Part that was taken for the layout.
        layout: String,
    },
}

/// Function to look for: `NAME[=buf|buf,len|this,buf|this,buf,len]`.
///
/// A name without `::` is any function's last part: `mark` also finds `ns::mark(char const*)`. With `::`, names are
/// compared from the right, whole parts only. A mangled name (`_Z..`), or one with its arguments
/// (`ns::mark(char const*)`), is compared as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolSpec {
    /// Name of the function.
    pub name: String,
    /// Layout given by the user; otherwise it is derived from the signature.
    pub layout: Option<Layout>,
    /// Role of the function.
    pub(crate) role: Role,
}

impl SymbolSpec {
    /// Specifies a function whose layout follows from its signature.
    #[must_use]
    pub(crate) fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), layout: None, role: Role::Mark }
    }

    /// Returns the name for messages on what was looked for; none for the other pairs, which are optional.
    pub(super) fn wanted(&self) -> Option<String> {
        (self.role == Role::Mark).then(|| self.name.clone())
    }

    /// Returns the functions looked for by default: `MARK_FUNCTION` and `SECTION_FUNCTIONS`.
    #[must_use]
    pub fn known() -> Vec<Self> {
        let pairs = SECTION_FUNCTIONS.into_iter().flat_map(|(_, begin, end)| {
            // An end takes no arguments, so no layout can be wrong.
            let end = Self { layout: Some(Layout::Buf), role: Role::End, ..Self::named(end) };
            [Self { role: Role::Begin, ..Self::named(begin) }, end]
        });
        std::iter::once(Self::default()).chain(pairs).collect()
    }
}

impl Default for SymbolSpec {
    /// Returns the spec of `MARK_FUNCTION`.
    fn default() -> Self {
        Self::named(MARK_FUNCTION)
    }
}

impl fmt::Display for SymbolSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.layout.map_or(Ok(()), |layout| write!(f, "={layout}"))
    }
}

impl FromStr for SymbolSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, layout) = match text.split_once('=') {
            Some((name, layout)) => (name, Some(layout)),
            None => (text, None),
        };
        let (name, layout) = (name.trim(), layout.map(str::trim));
        if name.is_empty() || name.ends_with("::") {
            return Err(SpecError::NoName(text.to_owned()));
        }
        let known =
            |layout: &str| Layout::ALL.into_iter().find(|known| known.text() == layout.replace(' ', ""));
        let layout = layout
            .map(|layout| {
                known(layout).ok_or_else(|| SpecError::UnknownLayout {
                    spec: text.to_owned(),
                    layout: layout.to_owned(),
                })
            })
            .transpose()?;
        Ok(Self { name: name.to_owned(), layout, role: Role::Mark })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_read_and_shown() {
        for (text, name, layout) in [
            ("mark", "mark", None),
            ("ns::mark=buf", "ns::mark", Some(Layout::Buf)),
            ("mark=buf,len", "mark", Some(Layout::BufLen)),
            ("mark=this,buf", "mark", Some(Layout::ThisBuf)),
            (" mark = this, buf, len ", "mark", Some(Layout::ThisBufLen)),
        ] {
            let spec: SymbolSpec = text.parse().unwrap();
            assert_eq!((spec.name.as_str(), spec.layout), (name, layout));
            assert_eq!(spec.to_string().parse(), Ok(spec));
        }
    }

    #[test]
    fn specs_refused() {
        for text in ["", "=buf", "ns::", " = "] {
            assert_eq!(text.parse::<SymbolSpec>(), Err(SpecError::NoName(text.to_owned())));
        }
        let error = "mark=len,buf".parse::<SymbolSpec>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "--symbol \"mark=len,buf\": unknown layout \"len,buf\"; choose buf, buf,len, this,buf or this,buf,len"
        );
        assert!("mark=".parse::<SymbolSpec>().is_err());
    }
}
