//! Kernel events that are read by the table of events alone, from their messages.

use bytes::Buf as _;
use prost::encoding::{self, DecodeContext, WireType};

use super::queue::{Place, Queue, append};
use crate::{
    perfetto_schema::ftrace::EventMessage,
    replay::{
        driver_marks::{self, Value},
        ftrace::EventKind,
        kernel_events,
    },
};

/// Bytes of the text of a field at most.
const LONGEST_TEXT: usize = 4096;

/// Adds an event by its number and its message.
pub(super) fn take(number: u32, message: &[u8], place: Place<'_>, queue: &mut Queue) {
    if let Some((row, layout)) = kernel_events::row_of_message(number) {
        let fields = fields(message, layout);
        queue.other(place, row.name.as_bytes(), |out| {
            for (name, value) in fields {
                match value {
                    Value::Number(number) => append(out, format_args!(" {name}={number}")),
                    Value::Text(text) => {
                        append(out, format_args!(" {name}="));
                        out.extend_from_slice(text);
                    }
                }
            }
        });
    } else if let Some(layout) = driver_marks::message(number) {
        let fields = fields(message, layout);
        driver_mark(place, queue, |name| fields.iter().find(|field| field.0 == name).map(|field| field.1));
    } else {
        queue.event_of(place, EventKind::Other { name: b"", fields: b"" });
    }
}

/// Adds the mark of a driver.
pub(super) fn driver_mark<'a>(
    place: Place<'_>,
    queue: &mut Queue,
    value: impl Fn(&str) -> Option<Value<'a>>,
) {
    let mut text = Vec::new();
    match driver_marks::write(&mut text, value) {
        Some(()) => queue.mark(place, |out| out.extend_from_slice(&text)),
        None => queue.other(place, driver_marks::NAME, |_| {}),
    }
}

/// Returns the fields of a message that its layout names; of a damaged one, those before the damage.
fn fields<'a>(message: &'a [u8], layout: &EventMessage) -> Vec<(&'static str, Value<'a>)> {
    let mut found = Vec::new();
    let mut rest = message;
    while let Some((number, value)) = field(&mut rest) {
        if let (Some((_, name)), Some(value)) = (layout.fields.iter().find(|field| field.0 == number), value)
        {
            found.push((*name, value));
        }
    }
    found
}

/// Splits off a field: its number and its value, if it is of a kind that events have.
fn field<'a>(rest: &mut &'a [u8]) -> Option<(u32, Option<Value<'a>>)> {
    if rest.is_empty() {
        return None;
    }
    let (number, wire_type) = encoding::decode_key(rest).ok()?;
    let value = match wire_type {
        WireType::Varint => Some(Value::Number(encoding::decode_varint(rest).ok()?.cast_signed())),
        WireType::LengthDelimited => {
            let length = usize::try_from(encoding::decode_varint(rest).ok()?).ok()?;
            let text = rest.get(..length)?;
            rest.advance(length);
            Some(Value::Text(&text[..length.min(LONGEST_TEXT)]))
        }
        _ => {
            encoding::skip_field(wire_type, number, rest, DecodeContext::default()).ok()?;
            None
        }
    };
    Some((number, value))
}
