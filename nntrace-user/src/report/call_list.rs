//! Calls of functions, one a line: for people, and in JSON.

mod values;

use std::fmt::Write as _;

use nntrace_common::calls::CallEnd;
use serde::Serialize;

use super::{
    number_format,
    terminal_text::{self, Text, line},
};
use crate::model::{
    calls::{Call, CallDefinition, Captured, Parameter, ValueType},
    plurals::counted,
};

/// Adds a call to a text: when it began (s), its thread, how long it took, its function, arguments and result.
pub fn add_line(text: &mut Text, definition: Option<&CallDefinition>, call: &Call<'_>) {
    let (seconds, rest) = (call.begin / 1_000_000_000, call.begin % 1_000_000_000);
    let duration = match call.ended {
        CallEnd::Open => "not ended".into(),
        _ => number_format::duration_ns(call.end.saturating_sub(call.begin)),
    };
    line!(text, "{seconds:>7}.{rest:09} {:>7} {duration:>9} {}", call.tid, described(definition, call));
}

/// Returns a call as a line of JSON.
///
/// # Errors
/// When it cannot be written, which does not happen.
pub fn json(definition: Option<&CallDefinition>, call: &Call<'_>) -> serde_json::Result<Vec<u8>> {
    terminal_text::to_json(&Row::new(definition, call))
}

fn described(definition: Option<&CallDefinition>, call: &Call<'_>) -> String {
    let ended = match call.ended {
        CallEnd::Returned => None,
        CallEnd::Open => Some("<not ended>"),
        CallEnd::Jumped => Some("<ended by a jump to another function>"),
        CallEnd::Left => Some("<left without a return>"),
    };
    let Some(definition) = definition else {
        // Its definition is in a damaged part of the recording.
        let ended = ended.unwrap_or_default();
        return format!(
            "function {}, which is not known ({}) {ended}",
            call.definition,
            counted(call.values.len() as u64, "value")
        );
    };
    let (arguments, result) = split(definition, call);
    // Writing to a string cannot fail.
    let mut text = String::new();
    let _ = write!(text, "{}:{}(", file_name(definition), definition.function);
    for (place, (parameter, captured)) in arguments.into_iter().enumerate() {
        let comma = if place == 0 { "" } else { ", " };
        let direction = if parameter.is_out { "out:" } else { "" };
        let equals = if parameter.name.is_some() { "=" } else { "" };
        let name = parameter.name.as_deref().unwrap_or_default();
        let value =
            captured.map_or_else(|| "_".to_owned(), |captured| values::text(parameter.value_type, captured));
        let _ = write!(text, "{comma}{direction}{name}{equals}{value}");
    }
    text.push(')');
    match (ended, result) {
        (Some(ended), _) => {
            let _ = write!(text, " = {ended}");
        }
        (None, Some((value_type, captured))) => {
            let _ = write!(text, " = {}", values::text(value_type, captured));
        }
        (None, None) => {}
    }
    text
}

fn file_name(definition: &CallDefinition) -> &str {
    definition.file.rsplit('/').next().unwrap_or_default()
}

type Values<'a> = (Vec<(&'a Parameter, Option<Captured<'a>>)>, Option<(ValueType, Captured<'a>)>);

/// Returns the arguments, each with its value if it was to be read, and the result.
fn split<'a>(definition: &'a CallDefinition, call: &Call<'a>) -> Values<'a> {
    let signature = &definition.signature;
    let mut captured = call.values.iter().copied();
    let arguments = signature.parameters.iter().map(|parameter| {
        let is_skipped = matches!(parameter.value_type, ValueType::Skipped(_));
        (parameter, if is_skipped { None } else { captured.next() })
    });
    let arguments = arguments.collect();
    (arguments, signature.result.zip(captured.next()))
}

/// Call as JSON has it.
#[derive(Serialize)]
struct Row<'a> {
    begin_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_ns: Option<u64>,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    ended: &'static str,
    arguments: Vec<Argument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Argument<'a>>,
}

#[derive(Serialize)]
struct Argument<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(rename = "type")]
    value_type: ValueType,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    out: bool,
    #[serde(flatten)]
    value: values::JsonValue,
}

impl<'a> Row<'a> {
    fn new(definition: Option<&'a CallDefinition>, call: &Call<'a>) -> Self {
        let (arguments, result) = definition.map(|definition| split(definition, call)).unwrap_or_default();
        let arguments = arguments.into_iter().map(|(parameter, captured)| Argument {
            name: parameter.name.as_deref(),
            value_type: parameter.value_type,
            out: parameter.is_out,
            value: captured.map(|captured| values::json(parameter.value_type, captured)).unwrap_or_default(),
        });
        let result = result.filter(|_| call.ended == CallEnd::Returned);
        let result = result.map(|(value_type, captured)| Argument {
            name: None,
            value_type,
            out: false,
            value: values::json(value_type, captured),
        });
        Self {
            begin_ns: call.begin,
            end_ns: (call.ended != CallEnd::Open).then_some(call.end),
            pid: call.pid,
            tid: call.tid,
            file: definition.map(|definition| definition.file.as_str()),
            function: definition.map(|definition| definition.function.as_str()),
            ended: match call.ended {
                CallEnd::Open => "open",
                CallEnd::Returned => "returned",
                CallEnd::Jumped => "jumped",
                CallEnd::Left => "left",
            },
            arguments: arguments.collect(),
            result,
        }
    }
}

#[cfg(test)]
mod tests {
    use nntrace_common::calls::MemoryState;

    use super::*;
    use crate::model::calls::Signature;

    fn definition(parameters: &str, result: &str) -> CallDefinition {
        CallDefinition {
            number: 0,
            file: "/usr/lib/libx.so".to_owned(),
            function: "f".to_owned(),
            signature: Signature::parse(parameters, result).unwrap(),
        }
    }

    fn call<'a>(values: &[Captured<'a>], ended: CallEnd) -> Call<'a> {
        let begin = 2_000_000_007;
        Call { definition: 0, pid: 1, tid: 2, begin, end: begin + 1_500, ended, values: values.to_vec() }
    }

    fn memory(state: MemoryState, bytes: &[u8]) -> Captured<'_> {
        Captured::Memory { state, bytes }
    }

    #[test]
    fn a_call_is_a_line_of_its_arguments_and_result() {
        let function = definition("fd:i32, _, buffer:out:bytes[ret], str", "i64");
        let values = [
            Captured::Word(0xdead_0000_ffff_ffff),
            memory(MemoryState::Whole, b"\x01\xff"),
            memory(MemoryState::Cut, b"a\x1b\"\xff\n"),
            Captured::Word(2),
        ];
        let mut text = Text::new();
        add_line(&mut text, Some(&function), &call(&values, CallEnd::Returned));
        let duration = number_format::duration_ns(1_500);
        let expected = format!(
            "      2.000000007       2 {duration:>9} libx.so:f(fd=-1, _, out:buffer=[01 ff], \"a\\x1b\\\"\\xff\\n\"...) = 2\n"
        );
        assert_eq!(&*text, expected);
        let line =
            String::from_utf8(json(Some(&function), &call(&values, CallEnd::Returned)).unwrap()).unwrap();
        let json: serde_json::Value = serde_json::from_str(&line).unwrap();
        let expected = serde_json::json!({
            "begin_ns": 2_000_000_007_u64, "end_ns": 2_000_001_507_u64, "pid": 1, "tid": 2,
            "file": "/usr/lib/libx.so", "function": "f", "ended": "returned",
            "arguments": [
                {"name": "fd", "type": "i32", "value": -1},
                {"type": "_"},
                {"name": "buffer", "type": "bytes[ret]", "out": true, "hex": "01ff"},
                {"type": "str", "hex": "611b22ff0a", "truncated": true},
            ],
            "result": {"type": "i64", "value": 2},
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn calls_without_a_return_have_no_result() {
        let function = definition("str", "i32");
        let unread = memory(MemoryState::Unread, b"");
        for (ended, shown, word) in [
            (CallEnd::Left, "= <left without a return>", "left"),
            (CallEnd::Jumped, "= <ended by a jump to another function>", "jumped"),
            (CallEnd::Open, "= <not ended>", "open"),
        ] {
            let call = call(&[memory(MemoryState::Null, b""), unread], ended);
            let text = described(Some(&function), &call);
            assert_eq!(text, format!("libx.so:f(null) {shown}"));
            let line: serde_json::Value =
                serde_json::from_slice(&json(Some(&function), &call).unwrap()).unwrap();
            assert_eq!((line["ended"].as_str(), line.get("result")), (Some(word), None));
            assert_eq!(line.get("end_ns").is_some(), ended != CallEnd::Open);
            assert_eq!(line["arguments"][0]["state"], "null");
        }
    }

    #[test]
    fn a_call_whose_function_is_not_known_is_shown_as_such() {
        let text = described(None, &call(&[Captured::Word(1)], CallEnd::Returned));
        assert_eq!(text.trim_end(), "function 0, which is not known (1 value)");
        assert!(json(None, &call(&[], CallEnd::Returned)).is_ok());
    }
}
