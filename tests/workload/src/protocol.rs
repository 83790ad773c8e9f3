//! Messages between the runtime and the driver: a byte for the kind, four for the length, the content.
//!
//! Numbers are little-endian.

use std::io::{ErrorKind, Read, Write};

use anyhow::{Context as _, Result, bail, ensure};

/// Bytes before the content.
const HEADER: usize = 5;
/// Length limit of a message: a longer one belongs to another protocol.
const MAX_LENGTH: usize = 16 << 20;

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Compile the network for this seed.
    Prepare = 1,
    /// Run the network on this image; the reply holds the features.
    Execute = 2,
    /// Drop the network. Every connection but this one is closed by now.
    Release = 3,
    /// Report the counts; the reply is JSON.
    Report = 4,
    /// The reply to a request that was carried out.
    Done = 5,
    /// The reply to one that failed, with the reason.
    Failed = 6,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Prepare, Self::Execute, Self::Release, Self::Report, Self::Done, Self::Failed]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// Handles of the executions on one connection, by which marks show that work is handed over: both ends count them alike,
/// and no other process of the machine has the same.
#[derive(Debug)]
pub struct Handles {
    next: u64,
}

impl Handles {
    /// Creates the handles of a connection, by the process id of the application and the number of the connection.
    pub fn new(application: u32, connection: u32) -> Self {
        Self { next: u64::from(application) << 40 | u64::from(connection) << 32 }
    }

    /// Returns the handle of the next execution.
    pub fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// Message in a reused buffer.
#[derive(Debug)]
pub struct Message {
    /// Header and content, as sent.
    bytes: Vec<u8>,
}

impl Message {
    /// Creates an empty message, to be sent with [`Message::send`] or received into.
    pub fn new() -> Self {
        Self { bytes: vec![0; HEADER] }
    }

    /// Returns the content.
    pub fn content(&self) -> &[u8] {
        &self.bytes[HEADER..]
    }

    /// Replaces the content.
    pub fn set(&mut self, content: &[u8]) {
        self.bytes.truncate(HEADER);
        self.bytes.extend_from_slice(content);
    }

    /// Replaces the content by numbers.
    pub fn set_floats(&mut self, values: &[f32]) {
        self.bytes.resize(HEADER + size_of_val(values), 0);
        for (bytes, value) in self.bytes[HEADER..].chunks_exact_mut(4).zip(values) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
    }

    /// Reads the content as numbers, into a reused buffer.
    pub fn read_floats(&self, values: &mut Vec<f32>) -> Result<()> {
        let (chunks, rest) = self.content().as_chunks::<4>();
        ensure!(rest.is_empty(), "{} bytes are no whole number of values", self.content().len());
        values.clear();
        values.extend(chunks.iter().map(|bytes| f32::from_le_bytes(*bytes)));
        Ok(())
    }

    /// Sends the message in one piece.
    pub fn send(&mut self, kind: Kind, to: &mut impl Write) -> Result<()> {
        let length = u32::try_from(self.content().len()).context("the message is too long")?;
        self.bytes[0] = kind as u8;
        self.bytes[1..HEADER].copy_from_slice(&length.to_le_bytes());
        to.write_all(&self.bytes).with_context(|| format!("sending {kind:?}"))
    }

    /// Waits for a message and returns its kind; `None` when the other side has closed the connection.
    pub fn receive(&mut self, from: &mut impl Read) -> Result<Option<Kind>> {
        let mut header = [0; HEADER];
        let read = loop {
            match from.read(&mut header) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => break result.context("receiving a message")?,
            }
        };
        if read == 0 {
            return Ok(None);
        }
        from.read_exact(&mut header[read..]).context("receiving a header")?;
        let [kind, length @ ..] = header;
        let Some(kind) = Kind::from_byte(kind) else { bail!("{kind} is no kind of message") };
        let length = u32::from_le_bytes(length) as usize;
        ensure!(length <= MAX_LENGTH, "a message of {length} bytes is too long");
        self.bytes.resize(HEADER + length, 0);
        from.read_exact(&mut self.bytes[HEADER..]).context("receiving the content of a message")?;
        Ok(Some(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let mut wire = Vec::new();
        let mut sent = Message::new();
        sent.set_floats(&[1.5, -2.0]);
        sent.send(Kind::Execute, &mut wire).unwrap();
        sent.set(b"why");
        sent.send(Kind::Failed, &mut wire).unwrap();

        let mut wire = wire.as_slice();
        let mut received = Message::new();
        let mut floats = Vec::new();
        assert_eq!(received.receive(&mut wire).unwrap(), Some(Kind::Execute));
        received.read_floats(&mut floats).unwrap();
        assert_eq!(floats, [1.5, -2.0]);
        assert_eq!(received.receive(&mut wire).unwrap(), Some(Kind::Failed));
        assert_eq!(received.content(), b"why");
        assert!(received.read_floats(&mut floats).is_err());
        assert_eq!(received.receive(&mut wire).unwrap(), None);
    }

    #[test]
    fn refuses_what_is_no_message() {
        let refused = |mut wire: &[u8]| Message::new().receive(&mut wire).unwrap_err().to_string();
        assert_eq!(refused(&[77, 0, 0, 0, 0]), "77 is no kind of message");
        assert_eq!(refused(&[2, 0, 0, 0, 255]), "a message of 4278190080 bytes is too long");
        assert_eq!(refused(&[2, 9, 0]), "receiving a header");
        assert_eq!(refused(&[2, 9, 0, 0, 0, 1]), "receiving the content of a message");
    }
}
