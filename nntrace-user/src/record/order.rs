//! Events of all streams in the order in which they were recorded.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{
    decode::{Event, EventReader},
    format::{BlockHeader, Stream},
    read::{Block, Files},
};

/// Consumer of the events of a recording.
pub(super) trait Visit {
    /// Takes an event, and the names that were not known before it.
    fn event(&mut self, stream: Stream, event: &Event, reader: &EventReader);

    /// Events of a stream are missing from here on, up to the end of a block where that is known, by this reason.
    fn missing(&mut self, stream: Stream, block: Option<&BlockHeader>, reason: String);
}

/// Block whose events are handed out.
struct Open {
    stream: Stream,
    reader: EventReader,
    event: Event,
}

/// Point in the order at which something begins.
#[derive(Clone, Copy)]
enum Begin {
    Block(usize),
    Hole(usize),
}

/// Hands out all events up to a number, in their order.
pub(super) fn visit(files: &Files, until: u64, visitor: &mut impl Visit) {
    let mut begins: Vec<(u64, Begin)> = Vec::new();
    begins
        .extend(files.blocks.iter().zip(0..).map(|(block, place)| (block.header.first, Begin::Block(place))));
    let events: u64 = files
        .blocks
        .iter()
        .map(|block| &block.header)
        .filter(|header| header.last <= until)
        .map(|header| u64::from(header.events))
        .sum();
    // Where none is missing, a cut or damaged place had none of them.
    if events < until {
        let holes = files.holes.iter().zip(0..).filter(|(hole, _)| hole.loses_events() && hole.after < until);
        begins.extend(holes.map(|(hole, place)| (hole.after + 1, Begin::Hole(place))));
    }
    begins.sort_by_key(|(number, begin)| (*number, matches!(begin, Begin::Block(_))));
    let mut begins = begins.into_iter().take_while(|(number, _)| *number <= until).peekable();
    let mut open: Vec<Option<Open>> = Vec::new();
    let mut next: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    loop {
        let first = next.peek().map_or(u64::MAX, |Reverse((number, _))| *number);
        if let Some((_, begin)) = begins.next_if(|(number, _)| *number <= first) {
            match begin {
                Begin::Hole(place) => {
                    let hole = &files.holes[place];
                    visitor.missing(files.stream_of_hole(hole), None, files.describe(hole));
                }
                Begin::Block(place) => {
                    if let Some((number, block)) = begin_block(files, &files.blocks[place], visitor) {
                        let free = open.iter().position(Option::is_none).unwrap_or(open.len());
                        if free == open.len() {
                            open.push(None);
                        }
                        open[free] = Some(block);
                        next.push(Reverse((number, free)));
                    }
                }
            }
            continue;
        }
        let Some(Reverse((mut number, place))) = next.pop() else { return };
        let Some(mut block) = open[place].take() else { continue };
        let other = next.peek().map_or(u64::MAX, |Reverse((number, _))| *number);
        let other = begins.peek().map_or(other, |(begin, _)| other.min(*begin));
        // Most events follow others of their stream.
        let is_left = loop {
            if number > until {
                break false;
            }
            visitor.event(block.stream, &block.event, &block.reader);
            match block.reader.next() {
                Ok(Some((after, event))) => (number, block.event) = (after, event),
                Ok(None) => break false,
                Err(unreadable) => {
                    let reason = format!("stream {}: {unreadable}", block.stream);
                    visitor.missing(block.stream, None, reason);
                    break false;
                }
            }
            if number >= other {
                break true;
            }
        };
        if is_left {
            open[place] = Some(block);
            next.push(Reverse((number, place)));
        }
    }
}

/// Reads a block and its first event.
fn begin_block(files: &Files, block: &Block, visitor: &mut impl Visit) -> Option<(u64, Open)> {
    let stream = files.stream(block);
    let read = files.content(block).and_then(|content| {
        let mut reader = EventReader::new(content, block.header.first);
        let first = reader.next().map_err(|unreadable| format!("stream {stream}: {unreadable}"))?;
        Ok(first.map(|(number, event)| (number, Open { stream, reader, event })))
    });
    match read {
        Ok(open) => open,
        Err(reason) => {
            visitor.missing(stream, Some(&block.header), reason);
            None
        }
    }
}
