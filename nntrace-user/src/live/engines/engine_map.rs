//! Engine maps: which functions of an engine begin what, and how they are found in a file.
//!
//! A map is a TOML file with an `[[engine]]` for each engine and an `[[engine.probe]]` for each function or family of
//! functions; `docs/engines.md` describes the form. An entry that is wrong is left out, with file, line and what was
//! expected; the others work.

mod pattern;
mod toml_form;
mod versions;

use std::fmt;

use nntrace_common::{layer::Tag, mark::Prefix};
use serde::Deserialize;

pub(in crate::live) use pattern::Pattern;
pub(in crate::live) use toml_form::parse;
pub(in crate::live) use versions::{Requirement, Version};

use super::probe::{Kind, Level, MapLine, NameForm};

/// Map of one engine, or of one library of an engine that has several.
#[derive(Clone, Debug)]
pub(in crate::live) struct EngineMap {
    /// Name, as `--engine` takes it; the parts of an engine share one.
    pub(in crate::live) name: String,
    /// The engine in a few words.
    pub(in crate::live) about: String,
    /// Whether the project runs its tests on the real engine.
    pub(in crate::live) is_tested: bool,
    /// Whether it shows the same by ITT, in more detail: where a target has loaded the collector, that is enough.
    pub(in crate::live) shows_itt: bool,
    /// Place of the engine's entry.
    pub(in crate::live) line: MapLine,
    /// Signs of the engine in a file; one suffices.
    pub(in crate::live) evidence: Vec<Evidence>,
    /// Places of the version; the first that is found counts.
    pub(in crate::live) versions: Vec<VersionSource>,
    /// Functions to probe.
    pub(in crate::live) probes: Vec<ProbeEntry>,
}

impl EngineMap {
    /// Whether any entry is for operators that are executed.
    pub(in crate::live) fn has_operators(&self) -> bool {
        self.probes.iter().any(|entry| entry.level == Level::Op && entry.tag.phase().is_execution())
    }
}

/// Sign of an engine in a file's content: all of its parts that are given.
#[derive(Clone, Debug, Default)]
pub(in crate::live) struct Evidence {
    /// Exported functions or objects.
    pub(in crate::live) exports: Vec<Pattern>,
    /// Functions of any symbol table.
    pub(in crate::live) symbols: Vec<Pattern>,
    /// Classes.
    pub(in crate::live) classes: Vec<ClassName>,
    /// Functions that must not be there.
    pub(in crate::live) absent: Vec<Pattern>,
    /// Name of the file, in addition to one of the others.
    pub(in crate::live) file: Option<Pattern>,
}

impl Evidence {
    /// Whether it asks for anything in the content of the file.
    pub(in crate::live) fn is_of_content(&self) -> bool {
        !self.exports.is_empty() || !self.symbols.is_empty() || !self.classes.is_empty()
    }
}

/// Place of an engine's version.
#[derive(Clone, Debug)]
pub(in crate::live) enum VersionSource {
    /// The text that the second function of the table of this exported function returns, as with `OrtGetApiBase`.
    Table(String),
    /// Name of a file or folder beside the file or beside a folder that holds it, such as `foo-{version}.dist-info`.
    Beside(Affixes),
}

/// Text before and after a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::live) struct Affixes {
    /// Text before.
    pub(in crate::live) before: String,
    /// Text after.
    pub(in crate::live) after: String,
    /// Whether the numbers of the version are joined: `2641` for 2026.4.1.
    pub(in crate::live) is_joined: bool,
}

impl Affixes {
    /// Returns the version in a text of this form.
    pub(in crate::live) fn version_in(&self, text: &str) -> Option<Version> {
        let text = text.strip_prefix(self.before.as_str())?.strip_suffix(self.after.as_str())?;
        if self.is_joined { Version::of_joined(text) } else { Version::of(text) }
    }
}

/// Class, as the compiler names its type information, or a pattern for several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::live) struct ClassName {
    /// Name for people.
    pub(in crate::live) shown: String,
    /// Pattern for mangled names: `N2ov4CoreE`, `N2cv3dnn*5LayerE`.
    pub(in crate::live) mangled: Pattern,
}

impl ClassName {
    /// Takes a class as people write it, `ov::Core`, or as the compiler does, `N2ov4CoreE`.
    ///
    /// # Errors
    /// When the text is not a class or a pattern for classes: the message says what was expected.
    pub(in crate::live) fn parse(text: &str) -> Result<Self, String> {
        if text.contains(['?', '{', '\\']) {
            return Err(format!("expected a class, with `*` for any text, found {text:?}"));
        }
        let mangled = mangled_class(text);
        Ok(Self { shown: text.to_owned(), mangled: Pattern::parse(mangled.as_deref().unwrap_or(text))? })
    }
}

impl fmt::Display for ClassName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Mangles the name of a class in namespaces, without templates; `None` for other texts, as mangled ones. A `*` stays one;
/// as the mangled name has the length of each part before it, a part with a `*` in it gets another one there.
fn mangled_class(text: &str) -> Option<String> {
    let part = |part: &str| match part {
        "(anonymous namespace)" => Some("12_GLOBAL__N_1".to_owned()),
        part => {
            let is_name =
                part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'*'))
                    && part.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
            let prefix = || match part {
                _ if part.starts_with('*') => String::new(),
                _ if part.contains('*') => "*".to_owned(),
                _ => part.len().to_string(),
            };
            is_name.then(|| format!("{}{part}", prefix()))
        }
    };
    let parts: Vec<String> = text.split("::").map(part).collect::<Option<_>>()?;
    match &parts[..] {
        [space, class] if space == "3std" => Some(format!("St{class}")),
        // `N2ov4CoreE` is an identifier as well.
        [_] if text.starts_with('N')
            && text.ends_with('E')
            && text.contains(|c: char| c.is_ascii_digit()) =>
        {
            None
        }
        [only] => Some(only.clone()),
        parts => Some(format!("N{}E", parts.concat())),
    }
}

/// Functions to probe, and the section that a call of them is.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own")]
pub(in crate::live) struct ProbeEntry {
    /// Place of the entry.
    pub(in crate::live) line: MapLine,
    /// Where its functions are; all that are found are probed.
    pub(in crate::live) places: Vec<FunctionPlace>,
    /// Names of functions and classes to leave out.
    pub(in crate::live) except: Vec<Pattern>,
    /// Prefix of its sections.
    pub(in crate::live) prefix: Prefix,
    /// Layer and phase of its sections.
    pub(in crate::live) tag: Tag,
    /// Level from which on it is probed.
    pub(in crate::live) level: Level,
    /// Sources of its sections' names; the first that is for the engine's version counts.
    pub(in crate::live) names: Vec<NameEntry>,
    /// Name of its sections where there is no other.
    pub(in crate::live) label: Option<String>,
    /// Whether it returns an object in memory that the caller provides.
    pub(in crate::live) returns_in_memory: bool,
    /// Number of its arguments in the source, where all of them are in registers, one each: it may be hooked then.
    pub(in crate::live) arguments: Option<u8>,
    /// Whether nothing in it can be thrown, cancelled or jumped over.
    pub(in crate::live) is_nothrow: bool,
    /// Whether pool threads call it.
    pub(in crate::live) on_workers: bool,
    /// Versions of the engine that it is for.
    pub(in crate::live) versions: Option<Requirement>,
    /// Whether it is usual that nothing is found for it: no note is taken then.
    pub(in crate::live) is_optional: bool,
    /// Meaning of a call; arguments are those of the source.
    pub(in crate::live) kind: Kind,
}

/// Way to find functions.
#[derive(Clone, Debug)]
pub(in crate::live) enum FunctionPlace {
    /// By the names of exported symbols.
    Export(Pattern),
    /// By the names of symbols of all tables.
    Symbol(Pattern),
    /// By demangled names.
    Demangled(Pattern),
    /// By a place in the table of functions that an exported function leads to.
    Table {
        /// Exported function.
        export: String,
        /// Number of the function in the table, from 0.
        index: u32,
    },
    /// By a literal that their code refers to.
    Text {
        /// The literal.
        text: String,
        /// Whether all functions that refer to it are meant, and not just one that alone does.
        all: bool,
    },
    /// By a place in the tables of virtual functions of a class and of those derived from it.
    Rtti {
        /// The base class.
        class: ClassName,
        /// Number of the virtual function, from 0.
        slot: u32,
        /// Whether the base class's own function is meant as well, which other classes may share.
        with_base: bool,
    },
}

/// Name of a section, by the arguments of its function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::live) struct NameEntry {
    /// Argument as in the source, from 0, where `this` is the first one of methods.
    pub(in crate::live) argument: u8,
    /// Offsets to the field.
    pub(in crate::live) chain: Vec<i32>,
    /// Form of the field.
    pub(in crate::live) form: NameForm,
    /// Names by number; empty where there is none.
    pub(in crate::live) values: Vec<String>,
    /// Bytes from the number to a `char *` to the name where [`values`](Self::values) have none; 0 without one.
    pub(in crate::live) other: i16,
    /// Size in bytes of the elements of a vector of tokens; 0 where it is a number of them.
    pub(in crate::live) element: u8,
    /// Whether the argument is a structure passed by value that is larger than two words.
    pub(in crate::live) is_by_value: bool,
    /// Versions of the engine that it is for.
    pub(in crate::live) versions: Option<Requirement>,
    /// Architecture that it is for.
    pub(in crate::live) machine: Option<MachineName>,
}

/// Architecture, where offsets differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(in crate::live) enum MachineName {
    /// 64-bit x86.
    #[serde(rename = "x86-64")]
    X86_64,
    /// 64-bit ARM.
    #[serde(rename = "arm64")]
    Arm64,
}

/// Entry of a map that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::live) struct MapError {
    /// Place.
    pub(in crate::live) at: MapLine,
    /// Fault, what was expected, and what becomes of the entry.
    pub(in crate::live) what: String,
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.what)
    }
}

#[cfg(test)]
mod tests;
