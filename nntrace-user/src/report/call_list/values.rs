//! Values of arguments and results as text and as JSON.

use std::fmt::Write as _;

use nntrace_common::calls::MemoryState;
use serde::Serialize;
use serde_json::Value;

use crate::model::calls::{Captured, Scalar, ValueType};

/// Value as JSON has it: a number, text, or bytes as hexadecimal digits; or why there is none.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct JsonValue {
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
}

/// Returns a value as text.
pub(super) fn text(value_type: ValueType, captured: Captured<'_>) -> String {
    let (state, bytes) = match (value_type, captured) {
        (ValueType::Direct(scalar), Captured::Word(word)) => return scalar_text(scalar, word),
        (_, Captured::Word(word)) => return format!("{word:#x}"),
        (_, Captured::Memory { state, bytes }) => (state, bytes),
    };
    let is_cut = match state {
        MemoryState::Unread => return "<not read>".to_owned(),
        MemoryState::Unreadable => return "<unreadable>".to_owned(),
        MemoryState::Null => return "null".to_owned(),
        MemoryState::Whole => false,
        MemoryState::Cut => true,
    };
    match value_type {
        ValueType::Text => format!("{}{}", quoted(bytes), if is_cut { "..." } else { "" }),
        ValueType::Pointed(scalar) if bytes.len() == usize::from(scalar.width()) => {
            scalar_text(scalar, word(bytes))
        }
        _ => {
            let mut words: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            words.extend(is_cut.then(|| "...".to_owned()));
            format!("[{}]", words.join(" "))
        }
    }
}

/// Returns a value as JSON.
pub(super) fn json(value_type: ValueType, captured: Captured<'_>) -> JsonValue {
    let (state, bytes) = match (value_type, captured) {
        (ValueType::Direct(scalar), Captured::Word(word)) => {
            return JsonValue { value: Some(scalar_json(scalar, word)), ..JsonValue::default() };
        }
        (_, Captured::Word(word)) => return JsonValue { value: Some(word.into()), ..JsonValue::default() },
        (_, Captured::Memory { state, bytes }) => (state, bytes),
    };
    let without = |state| JsonValue { state: Some(state), ..JsonValue::default() };
    let truncated = match state {
        MemoryState::Unread => return without("not read"),
        MemoryState::Unreadable => return without("unreadable"),
        MemoryState::Null => return without("null"),
        MemoryState::Whole => false,
        MemoryState::Cut => true,
    };
    match value_type {
        ValueType::Pointed(scalar) if bytes.len() == usize::from(scalar.width()) => {
            JsonValue { value: Some(scalar_json(scalar, word(bytes))), ..JsonValue::default() }
        }
        ValueType::Text if let Ok(text) = str::from_utf8(bytes) => {
            JsonValue { text: Some(text.to_owned()), truncated, ..JsonValue::default() }
        }
        _ => JsonValue { hex: Some(hex(bytes)), truncated, ..JsonValue::default() },
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns the value of up to eight bytes, the lowest first, as both architectures have them.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn scalar_text(scalar: Scalar, word: u64) -> String {
    match scalar {
        Scalar::Pointer => format!("{word:#x}"),
        Scalar::Char => character(word as u8),
        // As code has them: 1.0, 1e300, NaN, -inf.
        Scalar::F32 => format!("{:?}", f32::from_bits(word as u32)),
        Scalar::F64 => format!("{:?}", f64::from_bits(word)),
        _ => scalar_json(scalar, word).to_string(),
    }
}

fn character(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        _ => format!("'{}'", byte.escape_ascii()),
    }
}

fn scalar_json(scalar: Scalar, word: u64) -> Value {
    match scalar {
        Scalar::I8 => (word as i8).into(),
        Scalar::U8 | Scalar::Char => (word as u8).into(),
        Scalar::I16 => (word as i16).into(),
        Scalar::U16 => (word as u16).into(),
        Scalar::I32 => (word as i32).into(),
        Scalar::U32 => (word as u32).into(),
        Scalar::I64 => word.cast_signed().into(),
        Scalar::U64 | Scalar::Pointer => word.into(),
        Scalar::Bool => (word as u8 != 0).into(),
        Scalar::F32 => {
            float(f32::from_bits(word as u32).into(), || format!("{:?}", f32::from_bits(word as u32)))
        }
        Scalar::F64 => float(f64::from_bits(word), || format!("{:?}", f64::from_bits(word))),
    }
}

/// JSON has no infinity and no NaN: those are texts.
fn float(value: f64, text: impl FnOnce() -> String) -> Value {
    serde_json::Number::from_f64(value).map_or_else(|| text().into(), Value::Number)
}

/// Returns bytes as a literal of text: UTF-8 as it is, all else escaped.
fn quoted(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => text.extend(['\\', character]),
                _ if character.is_ascii_control() => {
                    text.extend((character as u8).escape_ascii().map(char::from));
                }
                _ => text.push(character),
            }
        }
        text.extend(chunk.invalid().escape_ascii().map(char::from));
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_have_the_width_and_sign_of_their_type() {
        let word = 0xffff_ffff_ffff_ff80;
        for (scalar, shown) in [
            (Scalar::I8, "-128"),
            (Scalar::U8, "128"),
            (Scalar::I16, "-128"),
            (Scalar::U16, "65408"),
            (Scalar::I32, "-128"),
            (Scalar::U32, "4294967168"),
            (Scalar::I64, "-128"),
            (Scalar::U64, "18446744073709551488"),
            (Scalar::Pointer, "0xffffffffffffff80"),
            (Scalar::Bool, "true"),
            (Scalar::Char, "'\\x80'"),
        ] {
            assert_eq!(text(ValueType::Direct(scalar), Captured::Word(word)), shown);
        }
        let character = |byte: u8| text(ValueType::Direct(Scalar::Char), Captured::Word(byte.into()));
        assert_eq!(
            [b'a', b'\'', b'"', b'\n', 0].map(character),
            ["'a'", "'\\''", "'\"'", "'\\n'", "'\\x00'"]
        );
        assert_eq!(text(ValueType::Direct(Scalar::Bool), Captured::Word(0xff00)), "false");
    }

    #[test]
    fn numbers_behind_pointers_are_numbers() {
        let behind = |scalar, bytes: &[u8]| {
            let captured = Captured::Memory { state: MemoryState::Whole, bytes };
            let value_type = ValueType::Pointed(scalar);
            (text(value_type, captured), json(value_type, captured).value)
        };
        assert_eq!(behind(Scalar::F64, &1.5_f64.to_le_bytes()), ("1.5".to_owned(), Some(1.5.into())));
        assert_eq!(behind(Scalar::F32, &0.1_f32.to_le_bytes()).0, "0.1");
        assert_eq!(behind(Scalar::F32, &f32::NAN.to_le_bytes()), ("NaN".to_owned(), Some("NaN".into())));
        assert_eq!(behind(Scalar::F64, &f64::NEG_INFINITY.to_le_bytes()).1, Some("-inf".into()));
        assert_eq!(behind(Scalar::I16, &[0xfe, 0xff]), ("-2".to_owned(), Some((-2).into())));
        assert_eq!(behind(Scalar::I16, &[1]).0, "[01]", "cut off by the room of a call");
    }

    #[test]
    fn texts_are_literals() {
        assert_eq!(quoted(b"plain"), "\"plain\"");
        assert_eq!(quoted("é\u{7f}\t\0\\\"'\u{fffd}".as_bytes()), "\"é\\x7f\\t\\x00\\\\\\\"'\u{fffd}\"");
        assert_eq!(quoted(b"a\xc3"), "\"a\\xc3\"");
    }

    proptest! {
        #[test]
        fn different_texts_are_different_literals(
            one in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\\'), Just(b'x'), Just(b'0')], 0..12),
            other in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\\'), Just(b'x'), Just(b'0')], 0..12),
        ) {
            prop_assert_eq!(quoted(&one) == quoted(&other), one == other);
        }
    }
}
