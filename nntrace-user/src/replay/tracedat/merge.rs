//! Merging of the streams of all CPUs in order of time; within one instant, in the order of the streams.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
};

use super::{cpu_data::Stream, pages::Lost};

/// All streams of a file.
pub(crate) struct Merge<'a> {
    streams: Vec<Stream<'a>>,
    /// Time (ns) of the next event of each stream, and its number.
    order: BinaryHeap<Reverse<(u64, usize)>>,
    /// Whether nothing was read yet.
    is_new: bool,
    /// Damage in streams that ended.
    damage: Vec<String>,
    /// Losses after the last event of a CPU.
    lost: Vec<(u32, Lost)>,
}

impl<'a> Merge<'a> {
    /// Creates the merge before the first event.
    pub(crate) fn new(streams: Vec<Stream<'a>>) -> Self {
        Self { streams, order: BinaryHeap::new(), is_new: true, damage: Vec::new(), lost: Vec::new() }
    }

    /// Advances to the next event; false at the end.
    #[inline]
    pub(crate) fn advance(&mut self) -> bool {
        if self.is_new {
            self.begin();
        } else if let Some(mut first) = self.order.peek_mut() {
            let number = first.0.1;
            let stream = &mut self.streams[number];
            if stream.advance() {
                first.0.0 = stream.time;
            } else {
                self.lost.extend(stream.take_lost().map(|lost| (stream.cpu, lost)));
                self.damage.extend(stream.damage());
                PeekMut::pop(first);
            }
        }
        !self.order.is_empty()
    }

    #[cold]
    fn begin(&mut self) {
        self.is_new = false;
        for (number, stream) in self.streams.iter_mut().enumerate() {
            if stream.advance() {
                self.order.push(Reverse((stream.time, number)));
            } else {
                self.lost.extend(stream.take_lost().map(|lost| (stream.cpu, lost)));
                self.damage.extend(stream.damage());
            }
        }
    }

    /// Returns the stream with the current event.
    #[inline]
    pub(crate) fn stream(&self) -> Option<&Stream<'a>> {
        self.order.peek().map(|first| &self.streams[first.0.1])
    }

    /// Takes the loss before the current event, and its CPU.
    #[inline]
    pub(crate) fn take_lost(&mut self) -> Option<(u32, Lost)> {
        let Some(first) = self.order.peek() else { return self.lost.pop() };
        let stream = &mut self.streams[first.0.1];
        Some((stream.cpu, stream.take_lost()?))
    }

    /// Takes the next message on damage.
    #[inline]
    pub(crate) fn take_damage(&mut self) -> Option<String> {
        self.damage.pop()
    }
}
