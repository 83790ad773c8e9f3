//! Events of all streams in the order in which they were recorded.

use std::{cmp::Reverse, collections::BinaryHeap, iter::Peekable, vec};

use super::{
    contents::Contents,
    decode::{Event, EventReader},
    format::{BlockHeader, Stream},
    read::{Block, Files},
};

/// Consumer of the events of a recording.
pub(super) trait Visit {
    /// Takes an event, and the names that were not known before it.
    fn event(&mut self, stream: Stream, event: &Event, reader: &EventReader);

    /// Events of a stream are missing from here on, up to the end of a block where that is known. The reason is that of a
    /// block; places outside of blocks that are damaged are known before.
    fn missing(&mut self, stream: Stream, block: Option<&BlockHeader>, reason: Option<String>);
}

/// Events in their order, up to a number.
pub(super) struct Ordered<'a> {
    files: &'a Files,
    /// Blocks and damaged places that have not been reached, by the number at which they begin.
    begins: Peekable<vec::IntoIter<(u64, Begin)>>,
    open: Vec<Option<Open>>,
    /// Numbers of the next events of open blocks, with their places.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    /// Contents of the blocks, as they are reached.
    contents: Contents,
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

impl<'a> Ordered<'a> {
    /// Creates the order of the events up to a number, of which those from the first one on should be there.
    pub(super) fn new(files: &'a Files, first: u64, until: u64) -> Self {
        Self::of_blocks(files, first, until, |_| true)
    }

    /// Creates the order of the events of some blocks, up to a number.
    pub(super) fn of_blocks(
        files: &'a Files,
        first: u64,
        until: u64,
        is_wanted: impl Fn(&Block) -> bool,
    ) -> Self {
        let blocks = files.blocks.iter().zip(0..).filter(|(block, _)| is_wanted(block));
        let mut begins: Vec<(u64, Begin)> =
            blocks.map(|(block, place)| (block.header.first, Begin::Block(place))).collect();
        // Where none is missing, a cut or damaged place had none of them.
        if files.events_within(first, until) < until.saturating_sub(first.saturating_sub(1)) {
            let holes = files.holes.iter().zip(0..);
            let holes = holes.filter(|(hole, _)| hole.loses_events() && hole.after < until);
            begins.extend(holes.map(|(hole, place)| (hole.after + 1, Begin::Hole(place))));
        }
        begins.retain(|(number, _)| *number <= until);
        begins.sort_by_key(|(number, begin)| (*number, matches!(begin, Begin::Block(_))));
        let blocks = begins.iter().filter_map(|(_, begin)| match begin {
            Begin::Block(place) => Some(files.blocks[*place]),
            Begin::Hole(_) => None,
        });
        let contents = Contents::read(files, blocks.collect());
        let begins = begins.into_iter().peekable();
        Self { files, begins, open: Vec::new(), next: BinaryHeap::new(), contents }
    }

    /// Hands out the next events, up to a number.
    pub(super) fn visit(&mut self, until: u64, visitor: &mut impl Visit) {
        loop {
            let first = self.next.peek().map(|Reverse((number, _))| *number);
            let is_first = |number: u64| number <= until && first.is_none_or(|first| number <= first);
            if let Some((_, begin)) = self.begins.next_if(|(number, _)| is_first(*number)) {
                self.begin(begin, visitor);
            } else if first.is_some_and(|first| first <= until) {
                self.visit_block(until, visitor);
            } else {
                return;
            }
        }
    }

    fn begin(&mut self, begin: Begin, visitor: &mut impl Visit) {
        match begin {
            Begin::Hole(place) => {
                let hole = &self.files.holes[place];
                visitor.missing(self.files.stream_of_hole(hole), None, None);
            }
            Begin::Block(place) => {
                let content = self.contents.next();
                if let Some((number, block)) =
                    begin_block(self.files, &self.files.blocks[place], content, visitor)
                {
                    self.put(number, block);
                }
            }
        }
    }

    fn put(&mut self, number: u64, block: Open) {
        let free = self.open.iter().position(Option::is_none).unwrap_or(self.open.len());
        if free == self.open.len() {
            self.open.push(None);
        }
        self.open[free] = Some(block);
        self.next.push(Reverse((number, free)));
    }

    /// Hands out events of the block that has the next one, as long as no other block has an earlier one.
    fn visit_block(&mut self, until: u64, visitor: &mut impl Visit) {
        let Some(Reverse((mut number, place))) = self.next.pop() else { return };
        let Some(mut block) = self.open[place].take() else { return };
        let other = self.next.peek().map_or(u64::MAX, |Reverse((number, _))| *number);
        let other = self.begins.peek().map_or(other, |(begin, _)| other.min(*begin));
        // Most events follow others of their stream. In a damaged recording two may have one number: both are handed out.
        while number <= other && number <= until {
            visitor.event(block.stream, &block.event, &block.reader);
            match block.reader.next() {
                Ok(Some((after, event))) => (number, block.event) = (after, event),
                Ok(None) => return,
                Err(unreadable) => {
                    let reason = format!("stream {}: {unreadable}", block.stream);
                    visitor.missing(block.stream, None, Some(reason));
                    return;
                }
            }
        }
        self.open[place] = Some(block);
        self.next.push(Reverse((number, place)));
    }
}

/// Reads the first event of a block with this content.
fn begin_block(
    files: &Files,
    block: &Block,
    content: Result<Vec<u8>, String>,
    visitor: &mut impl Visit,
) -> Option<(u64, Open)> {
    let stream = files.stream(block);
    let read = content.and_then(|content| {
        let mut reader = EventReader::new(content, block.header.first);
        let first = reader.next().map_err(|unreadable| format!("stream {stream}: {unreadable}"))?;
        Ok(first.map(|(number, event)| (number, Open { stream, reader, event })))
    });
    match read {
        Ok(open) => open,
        Err(reason) => {
            visitor.missing(stream, Some(&block.header), Some(reason));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::made_up::{recorded, span};

    /// Count of events.
    struct Count(u64);

    impl Visit for Count {
        fn event(&mut self, _: Stream, _: &Event, _: &EventReader) {
            self.0 += 1;
        }

        fn missing(&mut self, _: Stream, _: Option<&BlockHeader>, reason: Option<String>) {
            panic!("{reason:?}");
        }
    }

    #[test]
    fn events_end_before_the_last_number_that_there_is() {
        let spans: Vec<_> = (1..100).map(|begin| span(7, begin, 5, 0, 1)).collect();
        let folder = recorded(&spans, &[]);
        let files = Files::open(&folder.path().join("run")).unwrap();
        let of = |until| {
            let mut count = Count(0);
            Ordered::of_blocks(&files, 0, until, |_| true).visit(until, &mut count);
            count.0
        };
        // A damaged block may say that it ends with the last number of all.
        assert_eq!(of(u64::MAX), of(files.last_event()));
    }
}
