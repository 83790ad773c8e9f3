//! Arguments and results of functions: `(count: i32, out:bytes[arg1]) -> i64`.

use std::fmt;

use nntrace_common::calls::MAX_ITEMS;
use serde::{Deserialize, Serialize};

use super::value_type::{Length, Register, Scalar, ValueType};

/// Registers of vectors in which both architectures pass arguments; further ones are on the stack.
const VECTOR_REGISTERS: usize = 8;

/// Arguments at most, those that are not read included.
const MOST_PARAMETERS: usize = 64;

/// Reason why floating-point numbers in registers cannot be recorded.
const NO_VECTORS: &str = "the kernel shows probes the general registers only, and not those of vectors: what is passed in \
                          these cannot be read";

/// Arguments and result of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Signature {
    /// Arguments.
    pub(crate) parameters: Vec<Parameter>,
    /// Result; `None` for void.
    pub(crate) result: Option<ValueType>,
}

/// Argument of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Parameter {
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) name: Option<String>,
    /// Type.
    #[serde(rename = "type")]
    pub(crate) value_type: ValueType,
    /// Whether it is read at the return.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub(crate) is_out: bool,
}

impl Signature {
    /// Reads arguments without their brackets, and the result.
    ///
    /// # Errors
    /// When something is no type, or cannot be read, with the reason.
    pub(crate) fn parse(parameters: &str, result: &str) -> Result<Self, String> {
        let words = parameters.split(',').map(str::trim);
        let words: Vec<&str> = if parameters.trim().is_empty() { Vec::new() } else { words.collect() };
        if words.len() > MOST_PARAMETERS {
            return Err(format!("{} arguments are more than {MOST_PARAMETERS}", words.len()));
        }
        let parameters = words.iter().zip(1..).map(|(word, number)| {
            Parameter::parse(word).map_err(|reason| format!("argument {number}: {reason}"))
        });
        let parameters = parameters.collect::<Result<Vec<_>, _>>()?;
        let result = match result.trim() {
            "void" => None,
            word => Some(word.parse::<ValueType>().map_err(|reason| format!("result: {reason}"))?),
        };
        let signature = Self { parameters, result };
        signature.check()?;
        Ok(signature)
    }

    /// Returns the arguments and the result that are read, in the order of their values.
    pub(crate) fn read(&self) -> impl Iterator<Item = ValueType> {
        let parameters = self.parameters.iter().map(|parameter| parameter.value_type);
        parameters.chain(self.result).filter(|value_type| !matches!(value_type, ValueType::Skipped(_)))
    }

    fn check(&self) -> Result<(), String> {
        let mut vectors = 0;
        for (parameter, number) in self.parameters.iter().zip(1..) {
            let value_type = parameter.value_type;
            vectors += usize::from(value_type.register() == Register::Vector);
            if let ValueType::Direct(scalar) = value_type
                && scalar.is_float()
                && vectors <= VECTOR_REGISTERS
            {
                let name = scalar.name();
                return Err(format!(
                    "argument {number}: {NO_VECTORS}. Write _{name} to leave it out, *{name} if it is behind a pointer; \
                     from the ninth {name} on they are on the stack, and read"
                ));
            }
            self.check_length(value_type).map_err(|reason| format!("argument {number}: {reason}"))?;
        }
        match self.result {
            Some(ValueType::Direct(scalar)) if scalar.is_float() => {
                return Err(format!("result: {NO_VECTORS}. Write void to leave it out"));
            }
            Some(ValueType::Skipped(_)) => return Err("result: write void to leave it out".to_owned()),
            Some(ValueType::Bytes(Length::Result)) => {
                return Err("result: it cannot be its own length".to_owned());
            }
            Some(value_type) => {
                self.check_length(value_type).map_err(|reason| format!("result: {reason}"))?;
            }
            None => {}
        }
        for (place, parameter) in self.parameters.iter().enumerate() {
            let is_same = |other: &Parameter| other.name.is_some() && other.name == parameter.name;
            if self.parameters[..place].iter().any(is_same) {
                let name = parameter.name.as_deref().unwrap_or_default();
                return Err(format!("two arguments are named {name}"));
            }
        }
        let count = self.read().count();
        if count > MAX_ITEMS {
            return Err(format!(
                "{count} values are more than {MAX_ITEMS}, which a call may have: skip some by _"
            ));
        }
        Ok(())
    }

    /// Checks that what says how many bytes there are is an integer that is read.
    fn check_length(&self, value_type: ValueType) -> Result<(), String> {
        let (of, name) = match value_type {
            ValueType::Bytes(Length::Argument(number)) => {
                let parameter = self.parameters.get(usize::from(number) - 1);
                let parameter =
                    parameter.ok_or_else(|| format!("{value_type}: there is no argument {number}"))?;
                (Some(parameter.value_type), format!("argument {number}"))
            }
            ValueType::Bytes(Length::Result) => (self.result, "the result".to_owned()),
            _ => return Ok(()),
        };
        match of {
            Some(ValueType::Direct(scalar)) if scalar.is_integer() => Ok(()),
            Some(other) => {
                Err(format!("{value_type}: {name} is of type {other}, and a length is an integer"))
            }
            None => Err(format!("{value_type}: {name} is void, and a length is an integer")),
        }
    }
}

impl Parameter {
    fn parse(word: &str) -> Result<Self, String> {
        let mut name = None;
        let mut is_out = false;
        let mut parts = word.split(':').map(str::trim);
        let last = parts.next_back().unwrap_or_default();
        for part in parts {
            if part == "out" && !is_out {
                is_out = true;
            } else if name.is_none() && !is_out && is_name(part) {
                name = Some(part.to_owned());
            } else {
                return Err(format!("`{word}` is not of the form NAME:TYPE, out:TYPE or NAME:out:TYPE"));
            }
        }
        let value_type: ValueType = last.parse()?;
        if is_out && !value_type.is_in_memory() {
            return Err(format!(
                "`{word}`: the function can write only what is behind a pointer, such as out:bytes[16] or out:*i32"
            ));
        }
        if !is_out && value_type == ValueType::Bytes(Length::Result) {
            return Err(format!("`{word}`: the result is known at the return only; write out:{value_type}"));
        }
        Ok(Self { name, value_type, is_out })
    }
}

fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.bytes().all(is_letter) && text.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

impl fmt::Display for Signature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(")?;
        for (place, parameter) in self.parameters.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(formatter, "{comma}{parameter}")?;
        }
        match self.result {
            Some(result) => write!(formatter, ")->{result}"),
            None => formatter.write_str(")->void"),
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(formatter, "{name}:")?;
        }
        write!(formatter, "{}{}", if self.is_out { "out:" } else { "" }, self.value_type)
    }
}

impl Scalar {
    /// Returns the width of its word for the kernel programs.
    pub(crate) const fn item_width(self) -> u8 {
        self.width() | if self.is_signed() { nntrace_common::calls::SIGNED } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::value_type::tests::any_type, *};

    fn parse(parameters: &str, result: &str) -> Result<String, String> {
        Signature::parse(parameters, result).map(|signature| signature.to_string())
    }

    #[test]
    fn arguments_have_names_and_directions() {
        for (parameters, result, shown) in [
            ("", "void", "()->void"),
            (" fd : i32 ,buffer:out:bytes[ret], u64", "i64", "(fd:i32, buffer:out:bytes[ret], u64)->i64"),
            ("str, _, bytes[arg4], u8", "str", "(str, _, bytes[arg4], u8)->str"),
            ("out: * i32", "bytes[8]", "(out:*i32)->bytes[8]"),
            ("n:i32", "bytes[arg1]", "(n:i32)->bytes[arg1]"),
        ] {
            assert_eq!(parse(parameters, result).as_deref(), Ok(shown));
        }
    }

    #[test]
    fn numbers_in_vector_registers_are_refused_with_the_reason() {
        for (parameters, result) in [("f64", "void"), ("i32, f32", "void"), ("", "f64")] {
            let error = parse(parameters, result).unwrap_err();
            assert!(error.contains("not those of vectors"), "{error}");
        }
        let error = parse("i32, f32", "void").unwrap_err();
        assert!(
            error.starts_with("argument 2: ") && error.contains("_f32") && error.contains("*f32"),
            "{error}"
        );
        assert_eq!(parse("_f64, *f64", "*f32").as_deref(), Ok("(_f64, *f64)->*f32"));
        let eight = ["_f64"; 8].join(",");
        assert!(parse(&format!("{eight},f64"), "void").is_ok(), "the ninth is on the stack");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (parameters, result, expected) in [
            ("i32,,i32", "void", "argument 2: `` is no type"),
            ("i32", "", "result: `` is no type"),
            ("i32", "_", "result: write void"),
            ("a:b:i32", "void", "`a:b:i32` is not of the form"),
            ("out:a:*i32", "void", "is not of the form"),
            ("1a:i32", "void", "is not of the form"),
            ("out:i32", "void", "behind a pointer"),
            ("a:i32,a:i32", "void", "two arguments are named a"),
            ("bytes[arg2]", "void", "there is no argument 2"),
            ("bytes[arg2], str", "void", "argument 2 is of type str"),
            ("bytes[arg2], _", "void", "argument 2 is of type _"),
            ("bytes[arg2], ptr", "void", "and a length is an integer"),
            ("bytes[ret]", "i32", "write out:bytes[ret]"),
            ("out:bytes[ret]", "void", "the result is void"),
            ("", "bytes[ret]", "its own length"),
        ] {
            let error = parse(parameters, result).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let many = ["i32"; MAX_ITEMS].join(",");
        assert!(parse(&many, "void").is_ok());
        assert!(parse(&many, "i32").unwrap_err().contains("more than 16"));
        assert!(parse(&["_"; 65].join(","), "void").unwrap_err().contains("more than 64"));
    }

    proptest! {
        #[test]
        fn signatures_are_read_as_they_are_shown(
            types in proptest::collection::vec((any_type(), any::<bool>(), any::<bool>()), 0..12),
            result in proptest::option::of(any_type()),
        ) {
            let parameters = types.into_iter().enumerate().map(|(place, (value_type, is_named, is_out))| Parameter {
                name: is_named.then(|| format!("a{place}")),
                value_type,
                is_out: is_out && value_type.is_in_memory(),
            });
            let signature = Signature { parameters: parameters.collect(), result };
            let shown = signature.to_string();
            let (parameters, result) = shown[1..].split_once(")->").unwrap();
            // Not each of them can be.
            if let Ok(read) = Signature::parse(parameters, result) {
                prop_assert_eq!(&read, &signature);
                let json = serde_json::to_string(&signature).unwrap();
                prop_assert_eq!(serde_json::from_str::<Signature>(&json).unwrap(), signature);
            } else {
                prop_assert!(signature.check().is_err() || shown.contains("bytes[ret]"), "{}", shown);
            }
        }

        #[test]
        fn anything_is_survived(parameters in "[a-z0-9:_*,\\[\\] ]{0,40}", result in "\\PC{0,10}") {
            let _ = Signature::parse(&parameters, &result);
        }
    }
}
