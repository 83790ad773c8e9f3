//! Functions whose calls are to be recorded: `LIB:SYMBOL(arguments)->result`.

use std::{fmt, path::PathBuf, str::FromStr};

use crate::model::calls::Signature;

/// Function whose calls are to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSpec {
    /// File with the function.
    pub(super) library: LibraryName,
    /// Name of the function, as in the file or demangled, with its arguments or without.
    pub(super) symbol: String,
    /// Arguments and result.
    pub(super) signature: Signature,
}

/// Name of a file that targets map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LibraryName {
    /// The executable of each process.
    Executable,
    /// File name or soname.
    Name(String),
    /// Path.
    Path(PathBuf),
}

impl FromStr for CallSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || {
            "expected LIB:SYMBOL(arguments)->result, such as libc.so.6:open(str,i32)->i32; without LIB, before the colon, \
             the function is in the executable"
                .to_owned()
        };
        // Names may have arrows, colons and brackets of their own, arguments and results have not.
        let (call, result) = text.rsplit_once("->").ok_or_else(form)?;
        let call = call.trim_end().strip_suffix(')').ok_or_else(form)?;
        let (name, parameters) = call.rsplit_once('(').ok_or_else(form)?;
        let colon = name.find(':').ok_or_else(form)?;
        let (library, symbol) = (name[..colon].trim(), name[colon + 1..].trim());
        if symbol.is_empty() {
            return Err(form());
        }
        if symbol.starts_with(':') {
            return Err(format!(
                "the first colon is the one after LIB: write :{} for the executable",
                name.trim()
            ));
        }
        let library = match library {
            "" => LibraryName::Executable,
            path if path.contains('/') => LibraryName::Path(path.into()),
            name => LibraryName::Name(name.to_owned()),
        };
        Ok(Self { library, symbol: symbol.to_owned(), signature: Signature::parse(parameters, result)? })
    }
}

impl fmt::Display for CallSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { library, symbol, signature } = self;
        write!(formatter, "{library}:{symbol}{signature}")
    }
}

impl fmt::Display for LibraryName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Executable => Ok(()),
            Self::Name(name) => formatter.write_str(name),
            Self::Path(path) => write!(formatter, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<CallSpec, String> {
        text.parse()
    }

    #[test]
    fn functions_are_named_by_file_and_symbol() {
        let name = |name: &str| LibraryName::Name(name.to_owned());
        for (text, library, symbol) in [
            ("libc.so.6:open(str,i32)->i32", name("libc.so.6"), "open"),
            (" libc.so.6 : open ( str ) -> i32 ", name("libc.so.6"), "open"),
            ("/opt/x/lib.so:f()->void", LibraryName::Path("/opt/x/lib.so".into()), "f"),
            ("./lib.so:f()->void", LibraryName::Path("./lib.so".into()), "f"),
            (":main(i32,_)->i32", LibraryName::Executable, "main"),
            (":ns::f(i32)->void", LibraryName::Executable, "ns::f"),
            ("lib.so:ns::f(int, char*)(i32,str)->void", name("lib.so"), "ns::f(int, char*)"),
            ("lib.so:a::operator->()(ptr)->ptr", name("lib.so"), "a::operator->()"),
            ("lib.so:a::operator()(int)(ptr,i32)->ptr", name("lib.so"), "a::operator()(int)"),
        ] {
            let spec = parse(text).unwrap();
            assert_eq!((spec.library, spec.symbol.as_str()), (library, symbol), "{text}");
        }
    }

    #[test]
    fn what_is_no_function_is_refused_with_the_form() {
        for text in [
            "",
            "open",
            "libc:open",
            "libc:open()",
            "libc:()->void",
            "libc:open->i32",
            "open()->void",
            "a:b)->i8",
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains("LIB:SYMBOL(arguments)->result"), "{text}: {error}");
        }
        assert!(parse("ns::f(i32)->void").unwrap_err().contains("write :ns::f"));
        assert!(parse("a:b(int)->void").unwrap_err().contains("argument 1: `int` is no type"));
    }

    proptest! {
        #[test]
        fn functions_are_read_as_they_are_shown(
            library in "([a-z][a-z0-9.]{0,8})?",
            symbol in "[a-z_][a-z0-9_]{0,8}(::[a-z]{1,4})?(\\([a-z*, ]{0,6}\\))?",
            signature in proptest::sample::select(vec!["()->void", "(i32, str)->i64", "(x:*f64, out:bytes[ret])->u32"]),
        ) {
            let text = format!("{library}:{symbol}{signature}");
            let spec = parse(&text).unwrap();
            prop_assert_eq!(spec.to_string(), text);
        }

        #[test]
        fn anything_is_survived(text in "\\PC*", mixed in "[a-c:()>,\\- \\[\\]*]{0,20}") {
            for text in [text, mixed] {
                if let Ok(spec) = parse(&text) {
                    prop_assert_eq!(parse(&spec.to_string()), Ok(spec));
                }
            }
        }
    }
}
