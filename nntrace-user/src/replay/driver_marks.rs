//! Marks that drivers write by events of their own, which are called `tracing_mark_write` as the kernel's function.
//!
//! Their fields differ, and so do Perfetto's messages for them. In the text of a trace they look as other marks do.
//!
//! Source: `protos/perfetto/trace/ftrace/{mdss,sde,dpu,g2d,mali,lwis,samsung}.proto` of Perfetto; the format files of
//! vendors' kernels.

use std::io::Write as _;

use crate::perfetto_schema::ftrace::EventMessage;

/// Name of these events.
pub(crate) const NAME: &[u8] = b"tracing_mark_write";

/// Perfetto's messages for them.
const MESSAGES: [EventMessage; 7] = [
    EventMessage { number: 80, fields: &[(1, PID), (2, "trace_name"), (3, BEGIN)] },
    EventMessage {
        number: 333,
        fields: &[(1, PID), (2, "trace_name"), (3, "trace_type"), (4, VALUE), (5, BEGIN)],
    },
    EventMessage { number: 348, fields: &[(1, PID), (2, "trace_name"), (3, "type"), (4, VALUE)] },
    EventMessage { number: 349, fields: &[(1, PID), (4, "name"), (5, "type"), (6, VALUE)] },
    EventMessage { number: 350, fields: &[(1, "name"), (2, PID), (3, "type"), (4, VALUE)] },
    EventMessage { number: 467, fields: &[(1, PID), (2, "trace_name"), (3, BEGIN), (6, "type"), (7, VALUE)] },
    EventMessage {
        number: 484,
        fields: &[(1, PID), (2, "trace_name"), (3, BEGIN), (4, "trace_type"), (5, VALUE)],
    },
];

const PID: &str = "pid";
const BEGIN: &str = "trace_begin";
const VALUE: &str = "value";

/// Value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// A number.
    Number(i64),
    /// A text.
    Text(&'a [u8]),
}

/// Returns Perfetto's message for such an event, by its number.
pub(crate) fn message(number: u32) -> Option<&'static EventMessage> {
    MESSAGES.iter().find(|message| message.number == number)
}

/// Appends the mark that an event stands for, by the values of its fields. Returns `None`, and appends nothing, where a
/// field is missing.
pub(crate) fn write<'a>(out: &mut Vec<u8>, value: impl Fn(&str) -> Option<Value<'a>>) -> Option<()> {
    let number = |name: &str| match value(name)? {
        Value::Number(number) => Some(number),
        Value::Text(_) => None,
    };
    let text = |name: &str| match value(name)? {
        Value::Text(text) => Some(text),
        Value::Number(_) => None,
    };
    let pid = number(PID)?;
    let name = text("trace_name").or_else(|| text("name"))?;
    // Several drivers have both: then the letter counts, where there is one.
    let letter = number("trace_type").or_else(|| number("type")).filter(|letter| *letter != 0);
    let letter = match letter {
        Some(letter) => u8::try_from(letter).ok().filter(u8::is_ascii_uppercase)?,
        None if number(BEGIN)? != 0 => b'B',
        None => b'E',
    };
    let value = if letter == b'C' { Some(number(VALUE)?) } else { None };
    out.push(letter);
    // Memory is always written.
    let _ = write!(out, "|{pid}|");
    out.extend_from_slice(name);
    if let Some(value) = value {
        let _ = write!(out, "|{value}");
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(fields: &[(&str, Value<'static>)]) -> Option<String> {
        let mut out = Vec::new();
        write(&mut out, |name| fields.iter().find(|field| field.0 == name).map(|field| field.1))?;
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn all_forms_are_marks() {
        use Value::{Number, Text};
        let (pid, name) = (("pid", Number(7)), ("trace_name", Text(b"[NN_LD_PE]submit")));
        let begin = Some("B|7|[NN_LD_PE]submit".into());
        assert_eq!(mark(&[pid, name, ("trace_begin", Number(1))]), begin);
        assert_eq!(mark(&[pid, name, ("trace_begin", Number(0))]), Some("E|7|[NN_LD_PE]submit".into()));
        assert_eq!(mark(&[pid, name, ("trace_type", Number(66)), ("value", Number(0))]), begin);
        assert_eq!(mark(&[pid, name, ("trace_type", Number(0)), ("trace_begin", Number(1))]), begin);
        let counter = [pid, ("name", Text(b"clock")), ("type", Number(67)), ("value", Number(-5))];
        assert_eq!(mark(&counter), Some("C|7|clock|-5".into()));
        for incomplete in [&[pid, name][..], &[pid, ("trace_begin", Number(1))], &counter[..3]] {
            assert_eq!(mark(incomplete), None);
        }
    }
}
