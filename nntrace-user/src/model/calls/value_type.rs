//! Types of arguments and results, as they are written in `--call`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Type of an argument or a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum ValueType {
    /// Value in a register or on the stack.
    Direct(Scalar),
    /// Value behind a pointer.
    Pointed(Scalar),
    /// Text that ends with a NUL, behind a pointer.
    Text,
    /// Bytes behind a pointer.
    Bytes(Length),
    /// Value that is not read, in registers of this kind.
    Skipped(Register),
}

/// Number of the bytes behind a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// Constant.
    Constant(u16),
    /// Value of an argument, by its number from 1.
    Argument(u8),
    /// Result.
    Result,
}

/// Kind of the registers that a value is passed in, while there are any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Register {
    /// For integers and pointers.
    General,
    /// For vectors and floating-point numbers.
    Vector,
}

macro_rules! scalars {
    ($($scalar:ident = $name:literal, $width:literal;)+) => {
        /// Type of one value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Scalar {
            $(#[doc = concat!("`", $name, "`.")] $scalar,)+
        }

        impl Scalar {
            /// All types.
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$scalar,)+];

            /// Returns the name.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$scalar => $name,)+
                }
            }

            /// Returns the size in bytes.
            pub(crate) const fn width(self) -> u8 {
                match self {
                    $(Self::$scalar => $width,)+
                }
            }

            fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$scalar),)+
                    _ => None,
                }
            }
        }
    };
}

scalars! {
    I8 = "i8", 1;
    U8 = "u8", 1;
    I16 = "i16", 2;
    U16 = "u16", 2;
    I32 = "i32", 4;
    U32 = "u32", 4;
    I64 = "i64", 8;
    U64 = "u64", 8;
    Pointer = "ptr", 8;
    Bool = "bool", 1;
    Char = "char", 1;
    F32 = "f32", 4;
    F64 = "f64", 8;
}

impl Scalar {
    /// Whether it is a floating-point number.
    pub(crate) const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Whether it is an integer.
    pub(crate) const fn is_integer(self) -> bool {
        !matches!(self, Self::Pointer | Self::Bool | Self::Char) && !self.is_float()
    }

    /// Whether it may be negative.
    pub(crate) const fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// Returns the kind of the registers that it is passed in.
    pub(crate) const fn register(self) -> Register {
        if self.is_float() { Register::Vector } else { Register::General }
    }
}

impl ValueType {
    /// Returns the kind of the registers that it is passed in.
    pub(crate) const fn register(self) -> Register {
        match self {
            Self::Direct(scalar) => scalar.register(),
            Self::Pointed(_) | Self::Text | Self::Bytes(_) => Register::General,
            Self::Skipped(register) => register,
        }
    }

    /// Whether it is behind a pointer.
    pub(crate) const fn is_in_memory(self) -> bool {
        matches!(self, Self::Pointed(_) | Self::Text | Self::Bytes(_))
    }
}

impl FromStr for ValueType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || {
            format!(
                "`{text}` is no type: there are i8 u8 i16 u16 i32 u32 i64 u64 ptr bool char f32 f64, *TYPE for one behind \
                 a pointer, str, bytes[N], bytes[argN], bytes[ret], and _ _f32 _f64 for what is not read"
            )
        };
        Ok(match text {
            "_" => Self::Skipped(Register::General),
            "_f32" | "_f64" => Self::Skipped(Register::Vector),
            "str" => Self::Text,
            _ => {
                if let Some(pointed) = text.strip_prefix('*') {
                    Self::Pointed(Scalar::from_name(pointed.trim_start()).ok_or_else(unknown)?)
                } else if let Some(length) = text.strip_prefix("bytes") {
                    Self::Bytes(Length::between(length).ok_or_else(|| {
                        format!(
                            "`{text}` has no length: bytes[16] is 16 bytes (1 to {}), bytes[arg2] as many as the second \
                             argument says, bytes[ret] as many as the result says",
                            u16::MAX
                        )
                    })?)
                } else {
                    Self::Direct(Scalar::from_name(text).ok_or_else(unknown)?)
                }
            }
        })
    }
}

impl Length {
    /// Reads a length in brackets.
    fn between(text: &str) -> Option<Self> {
        let text = text.trim_start().strip_prefix('[')?.strip_suffix(']')?.trim();
        if text == "ret" {
            return Some(Self::Result);
        }
        let (number, is_argument) = match text.strip_prefix("arg") {
            Some(number) => (number, true),
            None => (text, false),
        };
        // No sign.
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        if is_argument {
            number.parse().ok().filter(|number| *number > 0).map(Self::Argument)
        } else {
            number.parse().ok().filter(|number| *number > 0).map(Self::Constant)
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct(scalar) => formatter.write_str(scalar.name()),
            Self::Pointed(scalar) => write!(formatter, "*{}", scalar.name()),
            Self::Text => formatter.write_str("str"),
            Self::Bytes(Length::Constant(length)) => write!(formatter, "bytes[{length}]"),
            Self::Bytes(Length::Argument(number)) => write!(formatter, "bytes[arg{number}]"),
            Self::Bytes(Length::Result) => formatter.write_str("bytes[ret]"),
            Self::Skipped(Register::General) => formatter.write_str("_"),
            Self::Skipped(Register::Vector) => formatter.write_str("_f64"),
        }
    }
}

impl TryFrom<String> for ValueType {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ValueType> for String {
    fn from(value_type: ValueType) -> Self {
        value_type.to_string()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any type.
    pub(in crate::model::calls) fn any_type() -> impl Strategy<Value = ValueType> {
        let scalar = || proptest::sample::select(Scalar::ALL);
        let length = prop_oneof![
            (1..=u16::MAX).prop_map(Length::Constant),
            (1..=u8::MAX).prop_map(Length::Argument),
            Just(Length::Result),
        ];
        prop_oneof![
            scalar().prop_map(ValueType::Direct),
            scalar().prop_map(ValueType::Pointed),
            Just(ValueType::Text),
            length.prop_map(ValueType::Bytes),
            Just(ValueType::Skipped(Register::General)),
            Just(ValueType::Skipped(Register::Vector)),
        ]
    }

    #[test]
    fn types_are_read() {
        for (text, expected) in [
            ("i8", ValueType::Direct(Scalar::I8)),
            ("* f64", ValueType::Pointed(Scalar::F64)),
            ("str", ValueType::Text),
            ("bytes[ 16 ]", ValueType::Bytes(Length::Constant(16))),
            ("bytes[arg3]", ValueType::Bytes(Length::Argument(3))),
            ("bytes[ret]", ValueType::Bytes(Length::Result)),
            ("_", ValueType::Skipped(Register::General)),
            ("_f32", ValueType::Skipped(Register::Vector)),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_type_is_refused_with_those_that_are() {
        for text in ["", "int", "u128", "I8", "**i8", "*str", "_i8", "strings"] {
            let error = text.parse::<ValueType>().unwrap_err();
            assert!(error.contains(&format!("`{text}`")) && error.contains("bytes[argN]"), "{error}");
        }
        for text in [
            "bytes",
            "bytes[]",
            "bytes[0]",
            "bytes[-1]",
            "bytes[+1]",
            "bytes[65536]",
            "bytes[arg0]",
            "bytes[arg]",
        ] {
            let error = text.parse::<ValueType>().unwrap_err();
            assert!(error.contains("has no length"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn types_are_read_as_they_are_shown(value_type in any_type()) {
            prop_assert_eq!(value_type.to_string().parse(), Ok(value_type));
        }

        #[test]
        fn anything_is_survived(text in "\\PC*", mixed in "[bytesargu_*\\[\\]0-9f ]{0,12}") {
            for text in [text, mixed] {
                if let Ok(value_type) = text.parse::<ValueType>() {
                    prop_assert_eq!(value_type.to_string().parse(), Ok(value_type));
                }
            }
        }
    }
}
