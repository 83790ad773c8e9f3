//! The events of several inputs as one stream in order of time.

use super::{
    ftrace::{Columns, Event, Parsed},
    html::{self, Html},
    input::{Input, InputReader},
    lines::LineReader,
    losses::Loss,
    tracedat,
};

/// Who takes the events.
pub trait Visitor {
    /// What comes next is of this input, numbered from 0. At first it is the first one's turn.
    fn turn(&mut self, _input: usize) {}
    /// An event. `false`: no more, please.
    fn event(&mut self, event: &Event<'_>) -> bool;
    /// The tracer dropped events.
    fn lost(&mut self, loss: Loss);
    /// A line before the first event of an input, which may describe the machine; whether it does.
    fn header(&mut self, _line: &[u8]) -> bool {
        false
    }
    /// A line (numbered from 1) that is no event in any format that is known.
    fn unreadable(&mut self, _input: &str, _number: u64, _line: &[u8]) {}
    /// An input could not be read to its end; what came before was taken.
    fn cut(&mut self, _input: &str, _why: String) {}
}

/// Hands the events of all inputs to a visitor: of each input in its own order, of several the oldest first.
pub fn visit(inputs: &[Input], visitor: &mut impl Visitor) {
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

/// One input of any kind.
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

    /// Time of the event that waits for its turn, ns.
    fn time(&self) -> Option<u64> {
        match self {
            Self::Text(source) => source.time,
            Self::Dat(source) => source.time,
        }
    }

    /// Keeps the next event for its turn.
    fn peek(&mut self, visitor: &mut impl Visitor) {
        match self {
            Self::Text(source) => source.peek(visitor),
            Self::Dat(source) => source.time = source.next(visitor).then(|| source.events.time()),
        }
    }

    /// Hands the event that waits to the visitor; false: it has had enough.
    fn hand(&mut self, visitor: &mut impl Visitor) -> bool {
        match self {
            Self::Text(source) => match source.columns.parse(&source.line) {
                Parsed::Event(event) => visitor.event(&event),
                _ => true,
            },
            Self::Dat(source) => source.hand(visitor),
        }
    }

    /// Hands all events to the visitor.
    fn hand_all(&mut self, visitor: &mut impl Visitor) {
        match self {
            Self::Text(source) => {
                while source.next(visitor, |event, _, visitor| visitor.event(event)) == Step::Event {}
            }
            Self::Dat(source) => while source.next(visitor) && source.hand(visitor) {},
        }
    }
}

/// A `trace.dat` that is being read.
struct Dat<'a> {
    name: &'a str,
    events: tracedat::Events<'a>,
    /// Of the next event, where several inputs are merged, ns.
    time: Option<u64>,
}

impl Dat<'_> {
    /// Goes on to the next event; false at the end.
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

    /// Hands the present event to the visitor; false: it has had enough.
    #[inline]
    fn hand(&mut self, visitor: &mut impl Visitor) -> bool {
        self.events.event().is_none_or(|event| visitor.event(&event))
    }
}

/// What a step through an input came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// An event, and more may come.
    Event,
    /// The end, or somebody has had enough.
    End,
}

/// One text that is being read.
struct Source<'a> {
    name: &'a str,
    lines: LineReader<InputReader>,
    /// Lines so far.
    number: u64,
    columns: Columns,
    /// Tells trace text from the rest of an HTML page.
    html: Option<Html>,
    /// No event came yet.
    in_header: bool,
    /// The next event, where several inputs are merged, and its time, ns.
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

    /// Goes on to the next event, and hands it to `take` with its line.
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
            // By reference: of what was just written in parts, a copy is slow.
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

    /// Keeps the next event for its turn. It is parsed once more then: an event cannot be kept beside the line that it
    /// points into.
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
