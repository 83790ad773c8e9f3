//! Events of several inputs as one stream in order of time.

use super::{
    ftrace::{Columns, Event, Parsed},
    html::{self, Html},
    input::{Input, InputReader},
    lines::LineReader,
    losses::Loss,
    tracedat,
};

/// Receiver of events.
pub(crate) trait Visitor {
    /// Switches to an input, numbered from 0, that the following calls are about. The initial one is 0.
    fn turn(&mut self, _input: usize) {}
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
pub(crate) fn visit(inputs: &[Input], visitor: &mut impl Visitor) {
    let mut sources: Vec<_> = inputs.iter().map(AnySource::new).collect();
    if let [source] = &mut sources[..] {
        source.hand_all(visitor);
        return;
    }
    for (input, source) in sources.iter_mut().enumerate() {
        visitor.turn(input);
        source.peek(visitor);
    }
    let next = |sources: &mut [AnySource<'_>]| {
        let times = sources.iter().enumerate().filter_map(|(input, source)| Some((source.time()?, input)));
        times.min().map(|(_, input)| input)
    };
    while let Some(input) = next(&mut sources) {
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
    Dat(Dat<'a>),
}

impl<'a> AnySource<'a> {
    fn new(input: &'a Input) -> Self {
        match input.trace_dat() {
            Some(dat) => Self::Dat(Dat { name: input.name(), events: dat.events(), time: None }),
            None => Self::Text(Source::new(input)),
        }
    }

    /// Returns the time of the waiting event, ns.
    fn time(&self) -> Option<u64> {
        match self {
            Self::Text(source) => source.time,
            Self::Dat(source) => source.time,
        }
    }

    /// Reads the next event, which then waits.
    fn peek(&mut self, visitor: &mut impl Visitor) {
        match self {
            Self::Text(source) => source.peek(visitor),
            Self::Dat(source) => source.time = source.next(visitor).then(|| source.events.time()),
        }
    }

    /// Passes the waiting event to the visitor; false when the visitor stops.
    fn hand(&mut self, visitor: &mut impl Visitor) -> bool {
        match self {
            Self::Text(source) => match source.columns.parse(&source.line) {
                Parsed::Event(event) => visitor.event(&event),
                _ => true,
            },
            Self::Dat(source) => source.hand(visitor),
        }
    }

    /// Passes all events to the visitor.
    fn hand_all(&mut self, visitor: &mut impl Visitor) {
        match self {
            Self::Text(source) => {
                while source.next(visitor, |event, _, visitor| visitor.event(event)) == Step::Event {}
            }
            Self::Dat(source) => while source.next(visitor) && source.hand(visitor) {},
        }
    }
}

/// `trace.dat` being read.
struct Dat<'a> {
    name: &'a str,
    events: tracedat::Events<'a>,
    /// Time of the next event, where several inputs are merged, ns.
    time: Option<u64>,
}

impl Dat<'_> {
    /// Advances to the next event; false at the end.
    #[inline]
    fn next(&mut self, visitor: &mut impl Visitor) -> bool {
        loop {
            match self.events.advance() {
                tracedat::Step::Event => return true,
                tracedat::Step::Lost(loss) => visitor.lost(loss),
                tracedat::Step::Cut(why) => visitor.cut(self.name, why),
                tracedat::Step::End => return false,
            }
        }
    }

    /// Passes the current event to the visitor; false when the visitor stops.
    #[inline]
    fn hand(&mut self, visitor: &mut impl Visitor) -> bool {
        self.events.event().is_none_or(|event| visitor.event(&event))
    }
}

/// Result of a step through an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// An event, which more may follow.
    Event,
    /// The end, or the visitor has stopped.
    End,
}

/// Text being read.
struct Source<'a> {
    name: &'a str,
    lines: LineReader<InputReader>,
    /// Number of lines so far.
    number: u64,
    columns: Columns,
    /// Filter for the trace text in an HTML page.
    html: Option<Html>,
    /// Whether no event came yet.
    in_header: bool,
    /// Next event, where several inputs are merged, and its time, ns.
    line: Vec<u8>,
    time: Option<u64>,
}

impl<'a> Source<'a> {
    fn new(input: &'a Input) -> Self {
        let html = html::looks_like_html(input.head()).then(Html::default);
        Self {
            name: input.name(),
            lines: LineReader::new(input.reader()),
            number: 0,
            columns: Columns::default(),
            html,
            in_header: true,
            line: Vec::new(),
            time: None,
        }
    }

    /// Advances to the next event, and passes it to `take` with its line.
    #[inline]
    fn next<V: Visitor>(
        &mut self,
        visitor: &mut V,
        mut take: impl FnMut(&Event<'_>, &[u8], &mut V) -> bool,
    ) -> Step {
        loop {
            let line = match self.lines.next() {
                Ok(Some(line)) => line,
                Ok(None) => return Step::End,
                Err(error) => {
                    visitor.cut(self.name, error.to_string());
                    return Step::End;
                }
            };
            self.number += 1;
            let text = match &mut self.html {
                None => line,
                Some(html) => match html.feed(line) {
                    Some(text) => text,
                    None => continue,
                },
            };
            // By reference: a copy of a value that was just written in parts is slow.
            match &self.columns.parse(text) {
                Parsed::Event(event) => {
                    self.in_header = false;
                    return if take(event, text, visitor) { Step::Event } else { Step::End };
                }
                Parsed::Lost(loss) => visitor.lost(*loss),
                Parsed::Header | Parsed::Unreadable if self.in_header && visitor.header(text) => {}
                Parsed::Header => {}
                Parsed::Unreadable => visitor.unreadable(self.name, self.number, line),
            }
        }
    }

    /// Reads the next event, which then waits. It is parsed again later: an event cannot be kept beside the line that
    /// it borrows from.
    fn peek<V: Visitor>(&mut self, visitor: &mut V) {
        let (mut line, mut time) = (std::mem::take(&mut self.line), None);
        self.next(visitor, |event, text, _| {
            line.clear();
            line.extend_from_slice(text);
            time = Some(event.time);
            true
        });
        (self.line, self.time) = (line, time);
    }
}
