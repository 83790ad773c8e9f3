//! Events of several inputs as one stream in order of time.

use std::thread::{self, Scope};

use super::{
    batch::{Batch, EventItem, Item},
    batches::{Batches, Division},
    declared::Declared,
    ftrace::Event,
    input::{Contents, Input, InputReader},
    losses::Loss,
    perfetto,
    step::{Step, Steps},
    tracedat,
};

/// Receiver of events.
pub(crate) trait Visitor {
    /// Switches to an input, numbered from 0, that the following calls are about. The initial one is 0.
    fn turn(&mut self, _input: usize) {}
    /// Takes the facts that an input declares, before its events.
    fn declared(&mut self, _facts: &Declared) {}
    /// Takes an event. Returns false to stop.
    fn event(&mut self, event: &Event<'_>) -> bool;
    /// Takes a loss of events by the tracer.
    fn lost(&mut self, loss: Loss);
    /// Takes a line before the first event of an input, which may describe the host. Returns whether it does.
    fn header(&mut self, _line: &[u8]) -> bool {
        false
    }
    /// Takes a line (numbered from 1) that is no event in any known format.
    fn unreadable(&mut self, _input: &str, _number: u64, _line: &[u8]) {}
    /// Takes the error of an input that could not be read to its end, after all that could be read.
    fn cut(&mut self, _input: &str, _why: String) {}
}

/// Passes the events of all inputs to a visitor: those of one input in its own order, of several the oldest first.
pub(crate) fn visit(inputs: &[Input], division: Division, visitor: &mut impl Visitor) {
    for input in inputs {
        if let Contents::Perfetto(trace) = input.contents() {
            visitor.declared(trace.declared());
        }
    }
    thread::scope(|scope| {
        let mut sources: Vec<_> = inputs.iter().map(|input| AnySource::new(input, division, scope)).collect();
        if let [source] = &mut sources[..] {
            source.hand_all(visitor);
        } else {
            merge(&mut sources, visitor);
        }
    });
}

/// Passes the events of several inputs to a visitor, the oldest first.
fn merge(sources: &mut [AnySource<'_>], visitor: &mut impl Visitor) {
    for (input, source) in sources.iter_mut().enumerate() {
        visitor.turn(input);
        source.peek(visitor);
    }
    let next = |sources: &[AnySource<'_>]| {
        let times = sources.iter().enumerate().filter_map(|(input, source)| Some((source.time()?, input)));
        times.min().map(|(_, input)| input)
    };
    while let Some(input) = next(sources) {
        let source = &mut sources[input];
        visitor.turn(input);
        if !source.hand(visitor) {
            break;
        }
        source.peek(visitor);
    }
}

/// Input of any kind.
enum AnySource<'a> {
    Text(Source<'a>),
    Dat(Binary<'a, tracedat::Events<'a>>),
    Perfetto(Box<Binary<'a, perfetto::Events<'a, InputReader>>>),
}

impl<'a> AnySource<'a> {
    fn new<'scope>(input: &'a Input, division: Division, scope: &'scope Scope<'scope, '_>) -> Self {
        let name = input.name();
        match input.contents() {
            Contents::Text => Self::Text(Source::new(input, Batches::new(input, division, scope))),
            Contents::Dat(dat) => Self::Dat(Binary { name, events: dat.events(), time: None }),
            Contents::Perfetto(trace) => {
                Self::Perfetto(Box::new(Binary { name, events: trace.events(input.reader()), time: None }))
            }
        }
    }

    /// Returns the time of the waiting event, ns.
    fn time(&self) -> Option<u64> {
        match self {
            Self::Text(source) => source.event().map(|event| event.time),
            Self::Dat(source) => source.time,
            Self::Perfetto(source) => source.time,
        }
    }

    /// Reads the next event, which then waits.
    fn peek(&mut self, visitor: &mut impl Visitor) {
        match self {
            Self::Text(source) => source.peek(visitor),
            Self::Dat(source) => source.peek(visitor),
            Self::Perfetto(source) => source.peek(visitor),
        }
    }

    /// Passes the waiting event to the visitor; false when the visitor stops.
    fn hand(&mut self, visitor: &mut impl Visitor) -> bool {
        match self {
            Self::Text(source) => source.hand(visitor),
            Self::Dat(source) => source.hand(visitor),
            Self::Perfetto(source) => source.hand(visitor),
        }
    }

    /// Passes all events to the visitor.
    fn hand_all(&mut self, visitor: &mut impl Visitor) {
        match self {
            Self::Text(source) => {
                source.peek(visitor);
                while source.hand(visitor) {
                    source.peek(visitor);
                }
            }
            Self::Dat(source) => source.hand_all(visitor),
            Self::Perfetto(source) => source.hand_all(visitor),
        }
    }
}

/// Binary file being read.
struct Binary<'a, E> {
    name: &'a str,
    events: E,
    /// Time of the next event, where several inputs are merged, ns.
    time: Option<u64>,
}

impl<E: Steps> Binary<'_, E> {
    /// Advances to the next event; false at the end.
    #[inline]
    fn next(&mut self, visitor: &mut impl Visitor) -> bool {
        loop {
            match self.events.advance() {
                Step::Event => return true,
                Step::Lost(loss) => visitor.lost(loss),
                Step::Cut(why) => visitor.cut(self.name, why),
                Step::End => return false,
            }
        }
    }

    /// Reads the next event, which then waits.
    fn peek(&mut self, visitor: &mut impl Visitor) {
        self.time = self.next(visitor).then(|| self.events.time());
    }

    /// Passes all events to the visitor.
    fn hand_all(&mut self, visitor: &mut impl Visitor) {
        while self.next(visitor) && self.hand(visitor) {}
    }

    /// Passes the current event to the visitor; false when the visitor stops.
    #[inline]
    fn hand(&mut self, visitor: &mut impl Visitor) -> bool {
        self.events.event().is_none_or(|event| visitor.event(&event))
    }
}

/// Text being read.
struct Source<'a> {
    name: &'a str,
    batches: Batches,
    batch: Batch,
    /// Number of items of the batch that were passed on.
    passed: usize,
    /// Number of lines in the batches before.
    lines: u64,
    /// Whether no event came yet.
    in_header: bool,
}

impl<'a> Source<'a> {
    fn new(input: &'a Input, batches: Batches) -> Self {
        let batch = Batch::default();
        Self { name: input.name(), batches, batch, passed: 0, lines: 0, in_header: true }
    }

    /// Returns the waiting event.
    #[inline]
    fn event(&self) -> Option<&EventItem> {
        match self.batch.items.get(self.passed) {
            Some(Item::Event(event)) => Some(event),
            _ => None,
        }
    }

    /// Advances to the next event, which then waits. There is none after the last one.
    #[inline]
    fn peek(&mut self, visitor: &mut impl Visitor) {
        while self.event().is_none() && self.pass_other(visitor) {}
    }

    /// Passes on an item that is no event, or reads the next batch after the last item; false when there is none.
    fn pass_other(&mut self, visitor: &mut impl Visitor) -> bool {
        let Some(item) = self.batch.items.get(self.passed) else { return self.next_batch(visitor) };
        let all = self.batch.text.bytes();
        match *item {
            Item::Lost(loss) => visitor.lost(loss),
            Item::Other { text, .. } if self.in_header && visitor.header(text.from(all)) => {}
            Item::Other { number, line, is_comment: false, .. } => {
                visitor.unreadable(self.name, self.lines + number, line.from(all));
            }
            Item::Other { .. } | Item::Event(_) => {}
        }
        self.passed += 1;
        true
    }

    /// Reads the next batch; false when there is none.
    fn next_batch(&mut self, visitor: &mut impl Visitor) -> bool {
        self.lines += std::mem::take(&mut self.batch.lines);
        self.batch.items.clear();
        self.passed = 0;
        match self.batches.next(&mut self.batch) {
            Ok(()) => true,
            Err(error) => {
                if let Some(error) = error {
                    visitor.cut(self.name, error);
                }
                false
            }
        }
    }

    /// Passes the waiting event to the visitor; false when the visitor stops, or there is none.
    #[inline]
    fn hand(&mut self, visitor: &mut impl Visitor) -> bool {
        let Some(Item::Event(event)) = self.batch.items.get(self.passed) else { return false };
        self.in_header = false;
        self.passed += 1;
        visitor.event(&event.event(self.batch.text.bytes()))
    }
}
