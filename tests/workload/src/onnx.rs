//! Writes networks in the ONNX format: the few parts of it that the network needs.
//!
//! ONNX is protocol buffers. A message is a sequence of fields, each with its number and its kind; numbers
//! are as in `onnx.proto`.

/// `TensorProto.DataType.FLOAT`, the type of everything here.
const FLOAT: u64 = 1;
/// `AttributeProto.AttributeType`.
const ATTRIBUTE_INT: u64 = 2;
const ATTRIBUTE_INTS: u64 = 7;

/// Message of protocol buffers.
#[derive(Clone, Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Adds a field with a number.
    fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    /// Adds a field with bytes.
    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Adds a field with another message.
    fn message(self, field: u64, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }
}

/// Builder of a network. Values are identified by their names.
#[derive(Clone, Debug, Default)]
pub struct Graph(Message);

/// Attribute of a node: its name and its value.
pub type Attribute<'a> = (&'a str, Value<'a>);

/// Value of an attribute.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// One integer.
    Int(u64),
    /// Several integers.
    Ints(&'a [usize]),
}

impl Graph {
    /// Adds a constant.
    pub fn constant(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        let mut tensor = Message::default();
        for &size in shape {
            tensor = tensor.number(1, size as u64);
        }
        let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let tensor = tensor.number(2, FLOAT).bytes(8, name.as_bytes()).bytes(9, &raw);
        self.add(5, &tensor);
    }

    /// Adds an operation, whose result gets the node's name.
    pub fn node(&mut self, name: &str, operation: &str, inputs: &[&str], attributes: &[Attribute<'_>]) {
        let mut node = Message::default();
        for input in inputs {
            node = node.bytes(1, input.as_bytes());
        }
        node = node.bytes(2, name.as_bytes()).bytes(3, name.as_bytes()).bytes(4, operation.as_bytes());
        for &(name, value) in attributes {
            let mut attribute = Message::default().bytes(1, name.as_bytes());
            attribute = match value {
                Value::Int(value) => attribute.number(3, value).number(20, ATTRIBUTE_INT),
                Value::Ints(values) => {
                    for &value in values {
                        attribute = attribute.number(8, value as u64);
                    }
                    attribute.number(20, ATTRIBUTE_INTS)
                }
            };
            node = node.message(5, &attribute);
        }
        self.add(1, &node);
    }

    /// Declares the input of the network.
    pub fn input(&mut self, name: &str, shape: &[usize]) {
        self.add(11, &value_info(name, shape));
    }

    /// Declares the output of the network.
    pub fn output(&mut self, name: &str, shape: &[usize]) {
        self.add(12, &value_info(name, shape));
    }

    /// Returns the contents of an ONNX file with this network.
    pub fn into_model(self, name: &str) -> Vec<u8> {
        // Version 8 of the format, with version 17 of the operators: what exporters have written for years.
        let operators = Message::default().bytes(1, b"").number(2, 17);
        let graph = self.0.bytes(2, name.as_bytes());
        Message::default().number(1, 8).message(8, &operators).message(7, &graph).0
    }

    fn add(&mut self, field: u64, message: &Message) {
        self.0 = std::mem::take(&mut self.0).message(field, message);
    }
}

/// Returns the declaration of a value: `ValueInfoProto`.
fn value_info(name: &str, shape: &[usize]) -> Message {
    let mut sizes = Message::default();
    for &size in shape {
        sizes = sizes.message(1, &Message::default().number(1, size as u64));
    }
    let tensor = Message::default().number(1, FLOAT).message(2, &sizes);
    Message::default().bytes(1, name.as_bytes()).message(2, &Message::default().message(1, &tensor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_protocol_buffers_specify() {
        // The two examples in the encoding's documentation.
        assert_eq!(Message::default().number(1, 150).0, [0x08, 0x96, 0x01]);
        assert_eq!(Message::default().bytes(2, b"testing").0, b"\x12\x07testing");
    }
}
