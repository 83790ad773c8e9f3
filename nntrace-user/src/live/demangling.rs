//! Demangling of names that anybody may have made: a name of two hundred bytes can stand for gigabytes of text.

use std::fmt::{self, Write};

use cpp_demangle::{BorrowedSymbol, DemangleOptions};

/// Bytes of a demangled name at most. Those of templates within templates have some thousands.
const LONGEST: usize = 32 << 10;

/// Text of bounded length: what does not fit is an error.
#[derive(Default)]
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// Demangles the name of a function of Rust; `None` for other names, and those that are too long.
pub(in crate::live) fn rust(symbol: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(symbol).ok()?;
    let mut shown = Bounded::default();
    write!(shown, "{name:#}").ok()?;
    Some(shown.0)
}

/// Demangles the name of a function of C++, without its return type; `None` for other names, and those that are too long.
pub(in crate::live) fn cxx(symbol: &str) -> Option<String> {
    cxx_with(symbol, DemangleOptions::new().no_return_type())
}

/// Demangles the name of a class, such as `N2ov4CoreE`; a name that is not mangled, or is too long, stays.
pub(in crate::live) fn class(name: &str) -> String {
    let demangled = cxx_with(&format!("_ZTI{name}"), DemangleOptions::new());
    let class = demangled.and_then(|text| Some(text.strip_prefix("typeinfo for ")?.to_owned()));
    class.unwrap_or_else(|| name.to_owned())
}

/// Demangles the name of a function of C++ or Rust, without its return type; `None` for other names, and those that are
/// too long.
pub(in crate::live) fn function(name: &str) -> Option<String> {
    rust(name).or_else(|| cxx(name))
}

/// Whether a name is mangled.
pub(in crate::live) fn is_mangled(name: &str) -> bool {
    name.starts_with("_Z") || name.starts_with("_R")
}

fn cxx_with(symbol: &str, options: DemangleOptions) -> Option<String> {
    if !symbol.starts_with("_Z") {
        return None;
    }
    let parsed = BorrowedSymbol::new(symbol.as_bytes()).ok()?;
    let mut shown = Bounded::default();
    parsed.structured_demangle(&mut shown, &options).ok()?;
    Some(shown.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_cxx_and_rust_are_demangled() {
        assert_eq!(function("_ZN2ov4Core4loadEi").as_deref(), Some("ov::Core::load(int)"));
        assert_eq!(function("_ZN1aI1bE1cIiEEiv").as_deref(), Some("a<b>::c<int>()"));
        assert_eq!(
            function("_RNvXs_NtC7mycrate3fooNtB4_3BarNtB4_3Baz4eval").as_deref(),
            Some("<mycrate::foo::Bar as mycrate::foo::Baz>::eval")
        );
        assert_eq!(function("llama_decode"), None);
        assert_eq!(function("_Z"), None);
    }

    #[test]
    fn classes_are_demangled() {
        assert_eq!(class("N11onnxruntime7contrib9NchwcConvE"), "onnxruntime::contrib::NchwcConv");
        assert_eq!(class("N1a4ConvIfEE"), "a::Conv<float>");
        assert_eq!(class("5Layer"), "Layer");
        assert_eq!(class("?"), "?");
    }

    /// Name in which each argument is made of three of the one before.
    fn growing(depth: usize) -> String {
        let arguments: String = (0..depth)
            .map(|at| match at {
                0 => "S_IS_S_S_E".to_owned(),
                at => format!(
                    "S{0}_IS{0}_S{0}_S{0}_E",
                    char::from_digit(at as u32 - 1, 36).unwrap().to_ascii_uppercase()
                ),
            })
            .collect();
        format!("_Z4mark1PIiiiE{arguments}")
    }

    #[test]
    fn a_name_that_grows_without_end_is_not_demangled() {
        assert!(function(&growing(3)).is_some_and(|shown| shown.starts_with("mark(P<")));
        let name = growing(30);
        assert!(name.len() < 1000);
        assert_eq!(function(&name), None);
        let class = class(&name[4..]);
        assert!(class.len() <= LONGEST);
    }
}
