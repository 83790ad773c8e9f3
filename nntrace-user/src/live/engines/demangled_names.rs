//! Names of functions and classes for people.

/// Suffixes that compilers add to the names of functions that they divide or copy.
const CLONES: [&str; 7] = [".cold", ".part.", ".isra.", ".constprop.", ".lto_priv.", ".llvm.", ".localalias"];

/// Name of a symbol without the suffixes of a clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) struct SymbolName<'a> {
    /// Name as the source has it, mangled.
    pub(in crate::live) base: &'a str,
    /// Whether the function is only a part of that one, to which that one jumps.
    pub(in crate::live) is_part: bool,
    /// Whether its arguments may be others than the source's.
    pub(in crate::live) has_other_arguments: bool,
}

impl<'a> SymbolName<'a> {
    /// Splits a symbol's name.
    pub(in crate::live) fn of(name: &'a str) -> Self {
        let end = CLONES.iter().filter_map(|suffix| name.find(suffix)).min().unwrap_or(name.len());
        let (base, suffix) = name.split_at(end);
        Self {
            base,
            is_part: suffix.contains(".cold") || suffix.contains(".part."),
            has_other_arguments: suffix.contains(".isra.") || suffix.contains(".constprop."),
        }
    }
}

/// Returns the last part of a path, with its template arguments: `Conv<float>` of `onnxruntime::Conv<float>`.
pub(super) fn last_part(path: &str) -> &str {
    parts(path).last().copied().unwrap_or(path)
}

/// Shortens a demangled function to its class and name: `Core::compile_model` of
/// `ov::Core::compile_model(std::string const&) const`.
pub(super) fn short_function(demangled: &str) -> String {
    let parts = parts(demangled);
    let named: Vec<&str> =
        parts.iter().map(|part| without_arguments(part)).filter(|part| !part.is_empty()).collect();
    named[named.len().saturating_sub(2)..].join("::")
}

/// Splits a path at its colons outside of brackets.
fn parts(path: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start, mut at) = (Vec::new(), 0_usize, 0, 0);
    let bytes = path.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' | b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && bytes.get(at + 1) == Some(&b':') => {
                parts.push(&path[start..at]);
                start = at + 2;
                at += 1;
            }
            _ => {}
        }
        at += 1;
    }
    parts.push(&path[start..]);
    parts
}

/// Returns a part of a path up to its arguments; empty for an anonymous namespace.
fn without_arguments(part: &str) -> &str {
    // `operator<` and `operator()` are names.
    if part.starts_with("operator") {
        return part;
    }
    &part[..part.find(['<', '(', '[', ' ']).unwrap_or(part.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_are_known_by_their_suffix() {
        let of = |name| {
            let name = SymbolName::of(name);
            (name.base, name.is_part, name.has_other_arguments)
        };
        assert_eq!(of("_ZN1a1bEv"), ("_ZN1a1bEv", false, false));
        assert_eq!(of("_ZN1a1bEv.cold"), ("_ZN1a1bEv", true, false));
        assert_eq!(of("_ZN1a1bEv.constprop.0.cold.1"), ("_ZN1a1bEv", true, true));
        assert_eq!(of("run.isra.0"), ("run", false, true));
        assert_eq!(of("run.part.3"), ("run", true, false));
        assert_eq!(of("_RNvC1a1b.llvm.123"), ("_RNvC1a1b", false, false));
        let rust = "_ZN50_$LT$core..iter..Map$GT$4next17h0123456789abcdefE";
        assert_eq!(of(rust), (rust, false, false));
    }

    #[test]
    fn short_names_are_class_and_function() {
        for (long, short) in [
            ("ov::Core::compile_model(std::string const&) const", "Core::compile_model"),
            ("a<b::c>::d<e::f>(g::h)", "a::d"),
            ("run(int)", "run"),
            ("llama_decode", "llama_decode"),
            ("tflite::xnnpack::(anonymous namespace)::SubgraphInvoke(T*)", "xnnpack::SubgraphInvoke"),
            ("a::b::operator()(int)", "b::operator()(int)"),
            ("a::f(std::function<void () -> int>)::c", "f::c"),
            ("<a::B as c::D>::eval", "eval"),
        ] {
            assert_eq!(short_function(long), short);
        }
    }

    #[test]
    fn last_parts_keep_template_arguments() {
        for (path, last) in [
            ("onnxruntime::Softmax<float>", "Softmax<float>"),
            ("a::B<c::D, e::F>", "B<c::D, e::F>"),
            ("conv", "conv"),
            ("a::", ""),
        ] {
            assert_eq!(last_part(path), last);
        }
    }
}
