//! A trace of Perfetto (`protos/perfetto/trace/trace.proto`): a tree of processes, then bundles of the events of a CPU.

use super::{Trace, Value};

/// Events in a bundle.
const BUNDLE: usize = 64;

/// Message of the wire format of protocol buffers.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 1 << 7 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(mut self, field: u32, value: i64) -> Self {
        self.varint(u64::from(field << 3));
        self.varint(value.cast_unsigned());
        self
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        self.varint(u64::from((field << 3) | 2));
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn message(self, field: u32, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }
}

fn event(event: &super::Event) -> Message {
    let description = event.kind.description();
    let mut fields = Message::default();
    for field in &description.fields {
        let Some(number) = field.number else { continue };
        fields = match &field.value {
            Value::Word(value) | Value::Long(value) => fields.number(number, *value),
            Value::Address(value) => fields.number(number, value.cast_signed()),
            Value::Name(text) | Value::Elsewhere(text) => fields.bytes(number, text.as_bytes()),
        };
    }
    Message::default()
        .number(1, event.time.cast_signed())
        .number(2, event.tid.into())
        .message(description.message, &fields)
}

/// Writes a trace.
#[must_use]
pub fn write(trace: &Trace) -> Vec<u8> {
    let mut tree = Message::default();
    for thread in &trace.threads {
        let of_thread = Message::default()
            .number(1, thread.tid.into())
            .bytes(2, thread.name.as_bytes())
            .number(3, thread.pid.into());
        tree = tree.message(2, &of_thread);
    }
    let mut file = Message::default().message(1, &Message::default().message(2, &tree));
    for cpu in 0..trace.cpus() {
        let events: Vec<_> = trace.events.iter().filter(|event| event.cpu == cpu).collect();
        for events in events.chunks(BUNDLE) {
            let mut bundle = Message::default().number(1, cpu.into());
            for one in events {
                bundle = bundle.message(2, &event(one));
            }
            file = file.message(1, &Message::default().number(10, 1).message(1, &bundle));
        }
    }
    file.0
}
