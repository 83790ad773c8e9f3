//! Patterns for names: `*` stands for any text, `?` for any one byte, `{name}` for the text that becomes a name, and `\*`
//! for the `*` of a C++ pointer.

use std::fmt;

use memchr::memmem;

/// A `*` of the name itself.
const LITERAL_STAR: &str = "\\*";
/// Wildcard that captures.
const CAPTURE: &str = "{name}";

/// Pattern for whole names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::live) struct Pattern {
    text: String,
    /// Text before the first wildcard.
    first: String,
    /// Each wildcard with the text after it.
    rest: Vec<(Wildcard, String)>,
}

/// Place in a pattern that stands for any text, the shortest that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wildcard {
    Any,
    Capture,
}

/// Outcome for a name that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::live) struct Match<'a> {
    /// Text in the place of `{name}`.
    pub(in crate::live) captured: Option<&'a str>,
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// When it is empty or has several `{name}`: the message says what was expected.
    pub(in crate::live) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("expected a name or a pattern, found an empty text".into());
        }
        if text.matches(CAPTURE).count() > 1 {
            return Err(format!("expected {{name}} once at most in a pattern, found {text:?}"));
        }
        let (mut texts, mut wildcards) = (vec![String::new()], Vec::new());
        let mut left = text;
        while let Some(c) = left.chars().next() {
            if let Some(behind) = left.strip_prefix(CAPTURE) {
                wildcards.push(Wildcard::Capture);
                texts.push(String::new());
                left = behind;
                continue;
            }
            if let (Some(behind), Some(text)) = (left.strip_prefix(LITERAL_STAR), texts.last_mut()) {
                text.push('*');
                left = behind;
                continue;
            }
            left = &left[c.len_utf8()..];
            match (c, texts.last_mut()) {
                ('*', _) => {
                    wildcards.push(Wildcard::Any);
                    texts.push(String::new());
                }
                (c, Some(text)) => text.push(c),
                (_, None) => {}
            }
        }
        let mut texts = texts.into_iter();
        let first = texts.next().unwrap_or_default();
        Ok(Self { text: text.to_owned(), first, rest: wildcards.into_iter().zip(texts).collect() })
    }

    /// Whether only one name fits.
    pub(in crate::live) fn is_exact(&self) -> bool {
        self.rest.is_empty() && !self.first.contains('?')
    }

    /// Returns the longest text that each name that fits contains, for a quick test.
    pub(in crate::live) fn needle(&self) -> &str {
        let texts = std::iter::once(&self.first).chain(self.rest.iter().map(|(_, text)| text));
        texts.flat_map(|text| text.split('?')).max_by_key(|text| text.len()).unwrap_or_default()
    }

    /// Returns the longest identifier that the mangled form of each demangled name that fits contains; empty where
    /// there is none. Mangling keeps identifiers whole, except those of [`ABBREVIATED`].
    pub(in crate::live) fn identifier(&self) -> &str {
        let texts = std::iter::once(&self.first).chain(self.rest.iter().map(|(_, text)| text));
        texts
            .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
            // A word beside a wildcard may be a part of a longer one.
            .filter(|word| !ABBREVIATED.iter().any(|other| other.contains(word)))
            .max_by_key(|word| word.len())
            .unwrap_or_default()
    }

    /// Matches a name.
    pub(in crate::live) fn matches<'a>(&self, name: &'a str) -> Option<Match<'a>> {
        let bytes = name.as_bytes();
        if !starts_with(bytes, self.first.as_bytes())
            || self.rest.is_empty() && bytes.len() > self.first.len()
        {
            return None;
        }
        let mut at = self.first.len();
        let mut captured = None;
        for (number, (wildcard, text)) in self.rest.iter().enumerate() {
            let is_last = number + 1 == self.rest.len();
            let end = if is_last {
                // The last text is at the end of the name.
                let end = bytes.len().checked_sub(text.len()).filter(|&end| end >= at)?;
                starts_with(&bytes[end..], text.as_bytes()).then_some(end)?
            } else {
                at + find(&bytes[at..], text.as_bytes())?
            };
            if *wildcard == Wildcard::Capture {
                captured = name.get(at..end);
            }
            at = end + text.len();
        }
        Some(Match { captured })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Words of demangled names that mangled ones abbreviate: types of the languages, a part of `std`, and what demanglers
/// add. Sources: the Itanium C++ ABI, section 5.1; Rust's RFC 2603.
const ABBREVIATED: [&str; 54] = [
    "allocator",
    "anonymous",
    "as",
    "auto",
    "basic_iostream",
    "basic_istream",
    "basic_ostream",
    "basic_string",
    "bool",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "char_traits",
    "closure",
    "const",
    "construction",
    "decltype",
    "delete",
    "double",
    "dyn",
    "extern",
    "f32",
    "f64",
    "false",
    "float",
    "fn",
    "for",
    "guard",
    "impl",
    "int",
    "iostream",
    "istream",
    "lambda",
    "long",
    "mut",
    "namespace",
    "new",
    "nullptr_t",
    "operator",
    "ostream",
    "shim",
    "short",
    "signed",
    "std",
    "string",
    "template",
    "thunk",
    "true",
    "typeinfo",
    "unsigned",
    "variable",
    "virtual",
    "vtable",
];

/// Whether a name begins with a text in which `?` stands for any byte.
fn starts_with(name: &[u8], text: &[u8]) -> bool {
    name.len() >= text.len() && name.iter().zip(text).all(|(byte, wanted)| byte == wanted || *wanted == b'?')
}

/// Returns the place of such a text in a name.
fn find(name: &[u8], text: &[u8]) -> Option<usize> {
    if !text.contains(&b'?') {
        return memmem::find(name, text);
    }
    (0..=name.len().checked_sub(text.len())?).find(|&at| starts_with(&name[at..], text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(name).is_some()
    }

    fn captured<'a>(pattern: &str, name: &'a str) -> Option<&'a str> {
        Pattern::parse(pattern).unwrap().matches(name)?.captured
    }

    #[test]
    fn whole_names_fit() {
        for (pattern, name, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "a", true),
            ("*a", "ba", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
            ("a*a", "a", false),
            ("a??d", "abcd", true),
            ("a??d", "abd", false),
            ("*x?z*", "--xyz--", true),
            ("*", "", true),
            (r"f(A\*, B\*)", "f(A*, B*)", true),
            (r"f(A\*, B\*)", "f(A*, int, B*)", false),
            (r"f(\**)", "f(*, int)", true),
            ("_ZN2ov4Core13compile_modelE*", "_ZN2ov4Core13compile_modelERKSs", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn the_shortest_name_is_captured() {
        let eval = r"tflite::ops::builtin::{name}::*Eval*(TfLiteContext\*, TfLiteNode\*)";
        let name =
            "tflite::ops::builtin::conv::(anonymous namespace)::EvalFloat(TfLiteContext*, TfLiteNode*)";
        assert_eq!(captured(eval, name), Some("conv"));
        assert_eq!(captured("ggml_compute_forward_{name}", "ggml_compute_forward_mul_mat"), Some("mul_mat"));
        assert_eq!(captured("<{name} as a::B>::eval*", "<x::Y<z> as a::B>::eval_with"), Some("x::Y<z>"));
        assert_eq!(captured("f({name})", "f(x)"), Some("x"));
    }

    #[test]
    fn impossible_patterns_are_refused() {
        assert!(Pattern::parse("").is_err());
        assert!(Pattern::parse("{name}::{name}").is_err());
    }

    #[test]
    fn texts_for_a_quick_test() {
        let of = |text: &str| {
            let pattern = Pattern::parse(text).unwrap();
            (pattern.needle().to_owned(), pattern.identifier().to_owned(), pattern.is_exact())
        };
        let owned = |needle: &str, word: &str, exact| (needle.to_owned(), word.to_owned(), exact);
        assert_eq!(
            of("ov::Core::compile_model(*"),
            owned("ov::Core::compile_model(", "compile_model", false)
        );
        assert_eq!(of("<* as x::EvalOp>::eval"), owned(" as x::EvalOp>::eval", "EvalOp", false));
        assert_eq!(of("llama_decode"), owned("llama_decode", "llama_decode", true));
        assert_eq!(of("*"), owned("", "", false));
        assert_eq!(of("a::f(std::string const&)"), owned("a::f(std::string const&)", "", true));
    }

    proptest! {
        /// A slow matcher that tries every length for every wildcard.
        #[test]
        fn it_agrees_with_trying_everything(pattern in "[ab?*]{1,8}", name in "[ab]{0,10}") {
            fn slow(pattern: &[u8], name: &[u8]) -> bool {
                match pattern {
                    [] => name.is_empty(),
                    [b'*', rest @ ..] => (0..=name.len()).any(|taken| slow(rest, &name[taken..])),
                    [first, rest @ ..] => {
                        !name.is_empty() && (*first == b'?' || *first == name[0]) && slow(rest, &name[1..])
                    }
                }
            }
            let fast = Pattern::parse(&pattern).unwrap().matches(&name).is_some();
            prop_assert_eq!(fast, slow(pattern.as_bytes(), name.as_bytes()));
        }

        /// Each name that fits contains the text of the quick test.
        #[test]
        fn the_quick_test_loses_nothing(pattern in "[ab?*]{1,8}", name in "[ab]{0,10}") {
            let pattern = Pattern::parse(&pattern).unwrap();
            if pattern.matches(&name).is_some() {
                prop_assert!(name.contains(pattern.needle()));
            }
        }
    }
}
