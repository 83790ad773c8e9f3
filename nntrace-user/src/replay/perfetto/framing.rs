//! Packets of a file, one by one, those in compressed packets too.
//!
//! A file is a sequence of messages, each after a key and its length; nothing else divides it. After a
//! key that is none, or a length beyond the end, no further packet can be found.

use std::io::{self, BufRead, BufReader, Read};

use bytes::{Buf as _, Bytes};
use flate2::read::ZlibDecoder;
use prost::{Message as _, encoding};
use ruzstd::decoding::StreamingDecoder;

use crate::perfetto_schema::{PACKET, TracePacket};

/// Bytes of a packet at most. The recorder writes some hundred KiB at once; larger ones hold symbols or pictures, and decoded
/// a packet may take some fifty times as much.
const LARGEST: u64 = 4 << 20;
/// Bytes of packed packets at most, unpacked.
const LARGEST_UNPACKED: u64 = 16 << 20;
/// Bytes of the first packet of a file at most, for it to be taken for a trace.
const LARGEST_FIRST: u64 = 1 << 30;
/// Bytes read at once.
const READ: usize = 128 << 10;
/// Wire type of messages and texts.
const LENGTH_DELIMITED: u8 = 2;

/// Packets of a file.
pub(super) struct Packets<R> {
    reader: BufReader<R>,
    /// Bytes read so far.
    offset: u64,
    /// Packets that were packed in one.
    unpacked: Bytes,
    ended: bool,
}

/// Next part of a file.
pub(super) enum Part {
    /// Packet.
    Packet(Box<TracePacket>),
    /// Packet that cannot be read, with the reason; others may follow.
    Damaged(String),
    /// The file ends early, or cannot be read further, for this reason.
    Cut(String),
    /// The file ends.
    End,
}

impl<R: Read> Packets<R> {
    /// Begins to read a file.
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader: BufReader::with_capacity(READ, reader),
            offset: 0,
            unpacked: Bytes::new(),
            ended: false,
        }
    }

    /// Reads the next part.
    pub(super) fn next(&mut self) -> Part {
        if self.unpacked.has_remaining() {
            return self.next_unpacked();
        }
        if self.ended {
            return Part::End;
        }
        let start = self.offset;
        match self.bytes() {
            Ok(Some(bytes)) => self.decode(bytes, start, true),
            Ok(None) => {
                self.ended = true;
                Part::End
            }
            Err(Failure::TooLong(length)) => too_long(length, start),
            Err(Failure::Other(what)) => {
                self.ended = true;
                Part::Cut(what)
            }
        }
    }

    /// Reads the bytes of the next packet; `None` at the end.
    fn bytes(&mut self) -> Result<Option<Bytes>, Failure> {
        let start = self.offset;
        loop {
            let Some(key) = self.varint()? else { return Ok(None) };
            if key == u64::from(PACKET) {
                break;
            }
            // A field that this version of the schema does not have.
            if key & 7 != u64::from(LENGTH_DELIMITED) || key >> 3 == 0 {
                return Err(Failure::Other(format!(
                    "at byte {start}: {key:#x}, where a packet was expected"
                )));
            }
            let length = self.length()?;
            self.skip(length)?;
        }
        let length = self.length()?;
        if length > LARGEST {
            self.skip(length)?;
            return Err(Failure::TooLong(length));
        }
        // The buffer grows as the bytes come: a length that is wrong takes no memory.
        let mut bytes = Vec::new();
        (&mut self.reader).take(length).read_to_end(&mut bytes)?;
        self.offset += bytes.len() as u64;
        if (bytes.len() as u64) < length {
            return Err(self.end_of_file(&format!("{} of {length} bytes of a packet", bytes.len())));
        }
        Ok(Some(bytes.into()))
    }

    fn length(&mut self) -> Result<u64, Failure> {
        let length = self.varint()?;
        length.ok_or_else(|| self.end_of_file("the key of a packet"))
    }

    fn skip(&mut self, length: u64) -> Result<(), Failure> {
        let skipped = io::copy(&mut (&mut self.reader).take(length), &mut io::sink())?;
        self.offset += skipped;
        if skipped < length {
            return Err(self.end_of_file(&format!("{skipped} of {length} bytes of a packet")));
        }
        Ok(())
    }

    fn end_of_file(&self, after: &str) -> Failure {
        Failure::Other(format!("at byte {}: the end of the file, after {after}", self.offset))
    }

    /// Reads a number; `None` at the end of the file.
    fn varint(&mut self) -> Result<Option<u64>, Failure> {
        let (start, mut value) = (self.offset, 0_u64);
        for shift in (0..64).step_by(7) {
            let byte = match self.reader.fill_buf()? {
                [] if shift == 0 => return Ok(None),
                [] => return Err(self.end_of_file("a part of a number")),
                [byte, ..] => *byte,
            };
            self.reader.consume(1);
            self.offset += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(Some(value));
            }
        }
        Err(Failure::Other(format!("at byte {start}: a number of more than 64 bits")))
    }

    /// Decodes a packet; `may_pack` if there may be others in it.
    fn decode(&mut self, bytes: Bytes, start: u64, may_pack: bool) -> Part {
        let packet = match TracePacket::decode(bytes) {
            Ok(packet) => packet,
            Err(error) => return Part::Damaged(format!("the packet at byte {start}: {error}")),
        };
        let unpacked = match (&packet.compressed_packets, &packet.zstd_compressed_packets) {
            (None, None) => return Part::Packet(Box::new(packet)),
            _ if !may_pack => Err("packed packets in packed packets".to_owned()),
            (Some(packed), _) => unpack(ZlibDecoder::new(&**packed)),
            (None, Some(packed)) => match StreamingDecoder::new(&**packed) {
                Ok(decoder) => unpack(decoder),
                Err(error) => Err(error.to_string()),
            },
        };
        match unpacked {
            Ok(unpacked) => {
                self.unpacked = unpacked;
                Part::Packet(Box::default())
            }
            Err(error) => Part::Damaged(format!("the packed packets at byte {start}: {error}")),
        }
    }

    fn next_unpacked(&mut self) -> Part {
        let mut take = || {
            let key = encoding::decode_varint(&mut self.unpacked).ok()?;
            let length = encoding::decode_varint(&mut self.unpacked).ok()?;
            let length =
                usize::try_from(length).ok().filter(|length| *length <= self.unpacked.remaining())?;
            (key == u64::from(PACKET)).then(|| self.unpacked.split_to(length))
        };
        let Some(bytes) = take() else {
            self.unpacked.clear();
            return Part::Damaged(format!(
                "the packed packets before byte {}: their end is missing",
                self.offset
            ));
        };
        match bytes.len() as u64 {
            length if length > LARGEST => too_long(length, self.offset),
            _ => self.decode(bytes, self.offset, false),
        }
    }
}

fn too_long(length: u64, at: u64) -> Part {
    Part::Damaged(format!("a packet of {length} bytes at byte {at}, where {LARGEST} at most were expected"))
}

/// Failure to read a packet.
enum Failure {
    TooLong(u64),
    Other(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Other(error.to_string())
    }
}

/// Unpacks packets.
fn unpack(packed: impl Read) -> Result<Bytes, String> {
    let mut bytes = Vec::new();
    packed.take(LARGEST_UNPACKED + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST_UNPACKED {
        return Err(format!("more than {LARGEST_UNPACKED} bytes"));
    }
    Ok(bytes.into())
}

/// Fields of a packet that are numbers: flags, ids and times. All others of the schema are messages or texts.
const NUMBERS: [u64; 10] = [3, 8, 10, 13, 41, 42, 58, 79, 87, 98];
/// Largest number of a field that a packet has.
const LAST_FIELD: u64 = 1999;

/// Whether a file that begins with `head` is a trace of Perfetto: its first packet with a field, as far as it is here, has
/// fields as packets have them. The first byte is also that of a text that begins with a blank line.
#[must_use]
pub(crate) fn is_perfetto(head: &[u8]) -> bool {
    let mut rest = head;
    let mut fields = 0;
    while fields == 0 && !rest.is_empty() {
        let Some((key, length)) = key_and_length(&mut rest) else { break };
        if key != u64::from(PACKET) || length > LARGEST_FIRST {
            return false;
        }
        let is_whole = length <= rest.len() as u64;
        let (mut packet, behind) = rest.split_at(rest.len().min(length as usize));
        rest = behind;
        while !packet.is_empty() {
            match field(&mut packet) {
                Some(true) => fields += 1,
                // No letter of a text makes a length like that.
                Some(false) if !is_whole && packet.is_empty() => fields += u32::from(length >= 128),
                None if !is_whole => break,
                Some(false) | None => return false,
            }
        }
    }
    fields > 0
}

/// Takes a key and a length; `None` where the head ends before.
fn key_and_length(rest: &mut &[u8]) -> Option<(u64, u64)> {
    Some((encoding::decode_varint(rest).ok()?, encoding::decode_varint(rest).ok()?))
}

/// Takes a field; false where it is none of a packet, or its contents are longer than the packet, `None` where the packet
/// ends in its key.
fn field(packet: &mut &[u8]) -> Option<bool> {
    let key = encoding::decode_varint(packet).ok()?;
    let (number, wire_type) = (key >> 3, key & 7);
    if number == 0 || number > LAST_FIELD {
        packet.advance(packet.len().min(1));
        return Some(false);
    }
    if NUMBERS.contains(&number) {
        let is_number = wire_type == 0;
        return encoding::decode_varint(packet).ok().map(|_| is_number);
    }
    let length = encoding::decode_varint(packet).ok()?;
    let is_short = length <= packet.len() as u64;
    packet.advance(packet.len().min(usize::try_from(length).unwrap_or(usize::MAX)));
    Some(wire_type == u64::from(LENGTH_DELIMITED) && is_short)
}
