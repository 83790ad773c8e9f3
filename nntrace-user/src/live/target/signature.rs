//! Path of a function, and position of its text, from the name of its symbol.
//!
//! A C name has no arguments: the text is assumed to be the only one. A C++ name has them, but may be that of a
//! method or of a function in a namespace: `ns::f(char const*, int)` may take an object first, or not. It is taken
//! for a method, as the known public example `tracer_client::tracing_mark_write(char const*, int)` is one. Certain
//! are only `f() const`, a method, and `(anonymous namespace)::f()`, which is none. A Rust name has no arguments: a
//! `&str` or `&CStr` is assumed, an address and a length. `--symbol` corrects a wrong guess.

use super::argument_layout::Layout;
use crate::live::demangling;

/// Parsed name of a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// Demangled name, with arguments if it has them.
    pub(super) shown: String,
    /// Qualified name: no arguments, no return type, no template arguments of the last part.
    pub(super) path: String,
    /// Position of the text; none for a signature that no layout fits.
    pub(super) layout: Option<Layout>,
    /// Whether the layout could be another one.
    pub(super) guessed: bool,
}

impl Name {
    /// Parses a symbol's name, without its version.
    pub(super) fn read(symbol: &str) -> Self {
        rust(symbol).or_else(|| cxx(symbol)).unwrap_or_else(|| Self {
            shown: symbol.to_owned(),
            path: symbol.to_owned(),
            layout: Some(Layout::Buf),
            guessed: false,
        })
    }

    /// Whether this function has the wanted name: parts compared from the right, whole parts only.
    pub(super) fn is(&self, wanted: &str) -> bool {
        self.path == wanted || self.path.strip_suffix(wanted).is_some_and(|rest| rest.ends_with("::"))
    }
}

/// Returns the part of a name that every mangled form of it contains: `ns::mark(char const*)` gives `mark`.
pub(super) fn last_part(name: &str) -> &str {
    let path = without_generics(parts(name).map_or(name, |(path, ..)| path));
    path.rsplit("::").next().unwrap_or(path)
}

fn rust(symbol: &str) -> Option<Name> {
    let shown = demangling::rust(symbol)?;
    let path = without_generics(&shown).to_owned();
    Some(Name { shown, path, layout: Some(Layout::BufLen), guessed: true })
}

fn cxx(symbol: &str) -> Option<Name> {
    let shown = demangling::cxx(symbol)?;
    let Some((path, arguments, qualifiers)) = parts(&shown) else {
        // A thunk, a clone or the like: known by its text, but no function to probe.
        return Some(Name { path: shown.clone(), shown, layout: None, guessed: false });
    };
    let path = without_generics(path);
    let enclosing = path.rfind("::").map(|at| &path[..at]);
    let in_nothing = enclosing.is_none_or(|outer| outer.ends_with("(anonymous namespace)"));
    let method = !qualifiers.is_empty() || !in_nothing;
    let certain = !qualifiers.is_empty() || in_nothing;
    let layout = match (split(arguments).as_slice(), method) {
        ([text], false) if is_text(text) => Some(Layout::Buf),
        ([text], true) if is_text(text) => Some(Layout::ThisBuf),
        ([text, length], false) if is_text(text) && is_integer(length) => Some(Layout::BufLen),
        ([text, length], true) if is_text(text) && is_integer(length) => Some(Layout::ThisBufLen),
        _ => None,
    };
    let path = path.to_owned();
    Some(Name { path, layout, guessed: !certain, shown })
}

/// Splits `path(arguments) qualifiers`; `None` if the name has another form.
fn parts(shown: &str) -> Option<(&str, &str, &str)> {
    let close = shown.rfind(')')?;
    let qualifiers = shown[close + 1..].trim();
    if !qualifiers.split(' ').all(|word| matches!(word, "" | "const" | "volatile" | "&" | "&&")) {
        return None;
    }
    let mut depth = 0_usize;
    let open = shown[..=close].char_indices().rev().find_map(|(at, c)| {
        match c {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })?;
    Some((&shown[..open], &shown[open + 1..close], qualifiers))
}

/// Returns the path without an ABI tag and template arguments of the last part: `a<b>::c<d>` becomes `a<b>::c`.
fn without_generics(path: &str) -> &str {
    let path =
        path.strip_suffix(']').and_then(|path| path.rsplit_once("[abi:")).map_or(path, |(path, _)| path);
    if !path.ends_with('>') {
        return path;
    }
    let mut depth = 0_usize;
    let open = path.char_indices().rev().find_map(|(at, c)| {
        match c {
            '>' => depth += 1,
            '<' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    });
    // Rust writes `c::<d>`.
    open.map_or(path, |open| path[..open].trim_end_matches("::"))
}

/// Splits the arguments at commas outside of brackets.
fn split(arguments: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0_usize, 0, Vec::new());
    for (at, c) in arguments.char_indices() {
        match c {
            '(' | '<' | '[' | '{' => depth += 1,
            ')' | '>' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.push(arguments[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(arguments[start..].trim());
    found
}

fn is_text(argument: &str) -> bool {
    let Some(pointee) = argument.strip_suffix('*') else {
        return false;
    };
    match pointee.strip_suffix(" const") {
        Some(base) => matches!(base, "char" | "signed char" | "unsigned char" | "char8_t" | "void"),
        None => matches!(pointee, "char" | "unsigned char"),
    }
}

fn is_integer(argument: &str) -> bool {
    let base = argument.strip_prefix("unsigned ").unwrap_or(argument);
    matches!(base, "short" | "int" | "long" | "long long")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_by_name() {
        use Layout::{Buf, BufLen, ThisBuf, ThisBufLen};
        for (symbol, path, layout, guessed) in [
            ("tracing_mark_write", "tracing_mark_write", Some(Buf), false),
            ("_Z18tracing_mark_writePKc", "tracing_mark_write", Some(Buf), false),
            ("_ZL18tracing_mark_writePKc", "tracing_mark_write", Some(Buf), false),
            ("_Z18tracing_mark_writePKci", "tracing_mark_write", Some(BufLen), false),
            ("_Z18tracing_mark_writePKcm", "tracing_mark_write", Some(BufLen), false),
            (
                "_ZN13tracer_client18tracing_mark_writeEPKci",
                "tracer_client::tracing_mark_write",
                Some(ThisBufLen),
                true,
            ),
            ("_ZN2nn18tracing_mark_writeEPKc", "nn::tracing_mark_write", Some(ThisBuf), true),
            ("_ZNK2nn18tracing_mark_writeEPKc", "nn::tracing_mark_write", Some(ThisBuf), false),
            (
                "_ZN12_GLOBAL__N_118tracing_mark_writeEPKcj",
                "(anonymous namespace)::tracing_mark_write",
                Some(BufLen),
                false,
            ),
            ("_Z18tracing_mark_writeIiEvPKc", "tracing_mark_write", Some(Buf), false),
            ("_Z18tracing_mark_writeB5cxx11PKc", "tracing_mark_write", Some(Buf), false),
            ("_Z18tracing_mark_writev", "tracing_mark_write", None, false),
            ("_Z18tracing_mark_writeiPKc", "tracing_mark_write", None, false),
            ("_Z18tracing_mark_writePKcPFvicE", "tracing_mark_write", None, false),
            (
                "_Z18tracing_mark_writeRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
                "tracing_mark_write",
                None,
                false,
            ),
            (
                "_ZN3app4mark18tracing_mark_write17h0123456789abcdefE",
                "app::mark::tracing_mark_write",
                Some(BufLen),
                true,
            ),
            ("_RNvCs1234_7mycrate18tracing_mark_write", "mycrate::tracing_mark_write", Some(BufLen), true),
        ] {
            let name = Name::read(symbol);
            assert_eq!(
                (name.path.as_str(), name.layout, name.guessed),
                (path, layout, guessed),
                "{symbol}: {name:?}"
            );
            assert!(name.is("tracing_mark_write"), "{symbol}");
            assert!(name.is(path), "{symbol}");
            assert!(!name.is("mark_write"), "{symbol}");
        }
    }

    #[test]
    fn last_parts() {
        for name in [
            "mark",
            "ns::mark",
            "a<b::c>::mark",
            "(anonymous namespace)::mark(a::b const*)",
            "mark<a::b>(int)",
        ] {
            assert_eq!(last_part(name), "mark", "{name}");
        }
    }

    #[test]
    fn what_only_mentions_the_name() {
        for symbol in [
            "_Z18tracing_mark_writePKci.constprop.0",
            "_Z18tracing_mark_writePKci.cold",
            "tracing_mark_write.cold",
            "_ZThn8_N1A18tracing_mark_writeEPKc",
            "_ZZ18tracing_mark_writePKcENKUliE_clEi",
            "_ZN18tracing_mark_write4openEv",
            "_Znonsense",
            "_Z",
            "_R",
            "",
        ] {
            assert!(!Name::read(symbol).is("tracing_mark_write"), "{symbol}: {:?}", Name::read(symbol));
        }
        assert!(Name::read("_ZN2ns1fILi3EEEvPKc").is("ns::f"));
        assert!(!Name::read("_ZN2ns1fEPKc").is("s::f"));
    }
}
