//! Events of one block after the other, for sums to which the order of streams does not matter.

use nntrace_common::record::{Record, SpanRecord};

use super::{
    contents::Contents,
    decode::{Event, EventReader, Unreadable},
    format::Stream,
    read::{Block, Files},
};
use crate::model::section_statistics::SectionTimes;

/// Consumer of the events of blocks.
pub(super) trait VisitBlocks {
    /// Takes a section, by its place among the sites of the block: the sections of a site are of one thread and name.
    fn section(&mut self, stream: Stream, site: usize, times: SectionTimes, reader: &EventReader);

    /// Takes another event.
    fn other(&mut self, stream: Stream, event: &Event, reader: &EventReader);

    /// Takes the end of a block: its sites are no more.
    fn end(&mut self, stream: Stream, reader: &EventReader);
}

/// Hands out the events of all blocks up to a number, blocks in the order of their first events; returns texts on what is
/// damaged.
pub(super) fn visit_blocks(files: &Files, until: u64, visitor: &mut impl VisitBlocks) -> Vec<String> {
    let mut blocks: Vec<Block> =
        files.blocks.iter().filter(|block| block.header.first <= until).copied().collect();
    blocks.sort_by_key(|block| block.header.first);
    let mut contents = Contents::read(files, blocks.clone());
    let mut damage = Vec::new();
    for block in &blocks {
        let stream = files.stream(block);
        let read = contents.next().and_then(|content| {
            let mut reader = EventReader::new(content, block.header.first);
            let read = visit(stream, &mut reader, until, visitor);
            visitor.end(stream, &reader);
            read.map_err(|unreadable| format!("stream {stream}: {unreadable}"))
        });
        damage.extend(read.err());
    }
    damage
}

fn visit(
    stream: Stream,
    reader: &mut EventReader,
    until: u64,
    visitor: &mut impl VisitBlocks,
) -> Result<(), Unreadable> {
    loop {
        // Most events are sections.
        while let Some((site, times)) = reader.next_times() {
            if reader.number() > until {
                return Ok(());
            }
            visitor.section(stream, site, times, reader);
        }
        let Some((number, event)) = reader.next()? else { return Ok(()) };
        if number > until {
            return Ok(());
        }
        match &event {
            // Sections after definitions.
            Event::Record(Record::Span(span)) | Event::SpanAnywhere(span) => {
                let SpanRecord { begin, end, own, exclusive, .. } = *span;
                let times = SectionTimes { begin, end, own, exclusive };
                visitor.section(stream, reader.site(), times, reader);
            }
            event => visitor.other(stream, event, reader),
        }
    }
}
