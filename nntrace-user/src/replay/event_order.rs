//! Ordering of events by time, and of the records of one instant.
//!
//! A trace in order is accounted as it is read. Of any other, all events are kept, however little they are out of
//! place, and passed on sorted: that takes about 64 bytes for each, and its text. The sort is stable, so events of
//! one instant keep the order of the file.
//!
//! Records of one instant get an order of their own: what others depend on comes first, and else the
//! order of the trace holds.

use nntrace_common::record::Record;

use super::{
    declared::Declared,
    events::Visitor,
    ftrace::{Event, EventKind},
    losses::Loss,
};

/// Records of an instant, until it is over.
#[derive(Default)]
pub(crate) struct Order {
    waiting: Vec<Record>,
    /// The instant, ns.
    now: u64,
}

impl Order {
    /// Advances to `now` (ns), and passes on older records.
    #[inline]
    pub(crate) fn advance(&mut self, now: u64, sink: impl FnMut(&Record)) {
        if now > self.now {
            self.now = now;
            self.release(sink);
        }
    }

    /// Keeps a record of the current instant.
    #[inline]
    pub(crate) fn push(&mut self, record: Record) {
        self.waiting.push(record);
    }

    /// Returns the names of waiting sections.
    pub(crate) fn names(&self) -> impl Iterator<Item = u64> {
        self.waiting.iter().filter_map(|record| match record {
            Record::Span(span) => Some(span.name),
            Record::Begin(begin) => Some(begin.name),
            _ => None,
        })
    }

    /// Passes on all remaining records, in order.
    pub(crate) fn release(&mut self, sink: impl FnMut(&Record)) {
        if self.waiting.len() > 1 {
            // Stable: the records of one thread or CPU keep their order.
            self.waiting.sort_by_key(rank);
        }
        self.waiting.iter().for_each(sink);
        self.waiting.clear();
    }
}

/// Returns the rank within one instant: the records that sections are assigned by come before the sections.
fn rank(record: &Record) -> (u8, u32, u32) {
    match record {
        Record::TakesPart(thread) => (0, thread.tgid, thread.tid),
        Record::Begin(begin) => (1, begin.tgid, begin.tid),
        // What begins after a section is taken after its end.
        Record::Span(span) => (2, span.end_sequence, span.tid),
        Record::Lost { cpu, .. } => (3, *cpu, 0),
        Record::Idle(event) | Record::Frequency(event) | Record::Hotplug(event) => (3, event.cpu, 0),
        Record::Fork(process) | Record::Exec(process) | Record::Exit(process) | Record::Loader(process) => {
            (4, process.tgid, process.tid)
        }
        // In the order of the trace: of one thread that moves from CPU to CPU, or of one CPU.
        Record::Sched(_) => (5, 0, 0),
        // Nothing else depends on them.
        Record::FrequencyLimit(_) | Record::Cooling(_) | Record::Rival(_) => (6, 0, 0),
    }
}

/// Collector of events and losses in any order. Everything else goes to another visitor at once.
pub(crate) struct Sorter<'a, V> {
    other: &'a mut V,
    kept: Kept,
    /// Losses before an event that has not come yet.
    waiting: Vec<(usize, u32, Loss)>,
    turn: usize,
}

/// Events and losses in order of time.
#[derive(Default)]
pub(crate) struct Kept {
    items: Vec<Item>,
    text: Vec<u8>,
}

/// Event or loss; its texts are consecutive.
#[derive(Clone, Copy)]
struct Item {
    time: u64,
    text: usize,
    input: u32,
    comm: u32,
    tid: u32,
    tgid: Option<u32>,
    cpu: u32,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Mark { payload: u32 },
    CpuIdle { state: u32, cpu: u32 },
    CpuFrequency { khz: u32, cpu: u32 },
    Other { name: u32, fields: u32 },
    Lost(Loss),
}

impl<'a, V: Visitor> Sorter<'a, V> {
    /// Creates a sorter that passes everything but events and losses to `other`.
    pub(crate) fn new(other: &'a mut V) -> Self {
        Self { other, kept: Kept::default(), waiting: Vec::new(), turn: 0 }
    }

    /// Returns all events and losses, sorted.
    #[must_use]
    pub(crate) fn sorted(mut self) -> Kept {
        // Losses without a following event come last.
        for (input, cpu, loss) in std::mem::take(&mut self.waiting) {
            self.keep_loss(input, cpu, u64::MAX, loss);
        }
        self.kept.items.sort_by_key(|item| item.time);
        self.kept
    }

    fn keep_loss(&mut self, input: usize, cpu: u32, time: u64, loss: Loss) {
        let (input, kind) = (input as u32, Kind::Lost(loss));
        self.kept.items.push(Item { time, text: 0, input, comm: 0, tid: 0, tgid: None, cpu, kind });
    }

    /// Places the losses before an event of this CPU where the event goes.
    #[cold]
    fn place_losses(&mut self, cpu: u32, time: u64) {
        let turn = self.turn;
        let placed = self.waiting.extract_if(.., |(input, of, _)| (*input, *of) == (turn, cpu));
        for (input, cpu, loss) in placed.collect::<Vec<_>>() {
            self.keep_loss(input, cpu, time, loss);
        }
    }
}

impl<V: Visitor> Visitor for Sorter<'_, V> {
    fn turn(&mut self, input: usize) {
        self.turn = input;
        self.other.turn(input);
    }

    fn declared(&mut self, facts: &Declared) {
        self.other.declared(facts);
    }

    fn event(&mut self, event: &Event<'_>) -> bool {
        let Event { comm, tid, tgid, cpu, time, kind } = *event;
        if !self.waiting.is_empty() {
            self.place_losses(cpu, time);
        }
        let Kept { items, text } = &mut self.kept;
        let start = text.len();
        text.extend_from_slice(comm);
        // A line has 64 KiB at most.
        let kind = match kind {
            EventKind::Mark(payload) => {
                text.extend_from_slice(payload);
                Kind::Mark { payload: payload.len() as u32 }
            }
            EventKind::CpuIdle { state, cpu } => Kind::CpuIdle { state, cpu },
            EventKind::CpuFrequency { khz, cpu } => Kind::CpuFrequency { khz, cpu },
            EventKind::Other { name, fields } => {
                text.extend_from_slice(name);
                text.extend_from_slice(fields);
                Kind::Other { name: name.len() as u32, fields: fields.len() as u32 }
            }
        };
        let (input, comm) = (self.turn as u32, comm.len() as u32);
        items.push(Item { time, text: start, input, comm, tid, tgid, cpu, kind });
        true
    }

    fn lost(&mut self, loss: Loss) {
        match loss {
            Loss::Gap { cpu, .. } | Loss::Started { cpu } => self.waiting.push((self.turn, cpu, loss)),
            // Before anything that may follow.
            Loss::Overwritten { .. } | Loss::OfNoCpu { .. } | Loss::Total { .. } => {
                self.keep_loss(self.turn, 0, 0, loss);
            }
        }
    }

    fn header(&mut self, line: &[u8]) -> bool {
        self.other.header(line)
    }

    fn unreadable(&mut self, input: &str, number: u64, line: &[u8]) {
        self.other.unreadable(input, number, line);
    }

    fn cut(&mut self, input: &str, why: String) {
        self.other.cut(input, why);
    }
}

impl Kept {
    /// Passes everything to a visitor.
    pub(crate) fn visit(&self, visitor: &mut impl Visitor) {
        let mut turn = None;
        for item in &self.items {
            if turn.replace(item.input) != Some(item.input) {
                visitor.turn(item.input as usize);
            }
            if let Kind::Lost(loss) = item.kind {
                visitor.lost(loss);
            } else if let Some(event) = self.event(item)
                && !visitor.event(&event)
            {
                break;
            }
        }
    }

    fn event(&self, item: &Item) -> Option<Event<'_>> {
        let Item { time, text, comm, tid, tgid, cpu, kind, .. } = *item;
        let (comm, text) = self.text[text..].split_at(comm as usize);
        let kind = match kind {
            Kind::Mark { payload } => EventKind::Mark(&text[..payload as usize]),
            Kind::CpuIdle { state, cpu } => EventKind::CpuIdle { state, cpu },
            Kind::CpuFrequency { khz, cpu } => EventKind::CpuFrequency { khz, cpu },
            Kind::Other { name, fields } => {
                let (name, text) = text.split_at(name as usize);
                EventKind::Other { name, fields: &text[..fields as usize] }
            }
            Kind::Lost(_) => return None,
        };
        Some(Event { comm, tid, tgid, cpu, time, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{
        ftrace::{Parsed, parse},
        losses::Loss,
    };

    /// Log of the calls.
    #[derive(Default)]
    struct Words(Vec<String>);

    impl Visitor for Words {
        fn turn(&mut self, input: usize) {
            self.0.push(format!("input {input}"));
        }

        fn event(&mut self, event: &Event<'_>) -> bool {
            self.0.push(format!("{event:?}"));
            true
        }

        fn lost(&mut self, loss: Loss) {
            self.0.push(format!("{loss:?}"));
        }
    }

    fn shown(lines: &[(usize, &str)]) -> Vec<String> {
        let mut other = Words::default();
        let mut sorter = Sorter::new(&mut other);
        for (input, line) in lines {
            sorter.turn(*input);
            match parse(line.as_bytes()) {
                Parsed::Event(event) => _ = sorter.event(&event),
                Parsed::Lost(loss) => sorter.lost(loss),
                other => panic!("{other:?}"),
            }
        }
        let mut words = Words::default();
        sorter.sorted().visit(&mut words);
        words.0.into_iter().filter(|word| !word.starts_with("input")).collect()
    }

    #[test]
    fn everything_comes_in_order_and_as_it_was() {
        let lines = [
            "a b-7 (  5) [003] 9.0: tracing_mark_write: B|5|x y",
            "# entries-in-buffer/entries-written: 4/9   #P:4",
            "<idle>-0 [001] 7.0: cpu_idle: state=1 cpu_id=1",
            "CPU:1 [LOST 3 EVENTS]",
            "c-8 [000] 8.0: sched_waking: comm=d pid=9",
            "<idle>-0 [001] 5.0: cpu_frequency: state=7 cpu_id=1",
            "<idle>-0 [001] 5.0: cpu_idle: state=2 cpu_id=1",
            "CPU:1 [LOST EVENTS]",
        ];
        let order = [1, 3, 5, 6, 2, 4, 0, 7];
        let direct = |line: &str| match parse(line.as_bytes()) {
            Parsed::Event(event) => format!("{event:?}"),
            Parsed::Lost(loss) => format!("{loss:?}"),
            other => panic!("{other:?}"),
        };
        let wanted: Vec<String> = order.iter().map(|&number| direct(lines[number])).collect();
        assert_eq!(shown(&lines.map(|line| (0, line))), wanted);
    }

    #[test]
    fn a_loss_stays_before_the_event_of_its_own_input() {
        let (one, other) = ("<idle>-0 [000] 5.0: x", "<idle>-0 [000] 4.0: y");
        let shown = shown(&[(0, "CPU:0 [LOST EVENTS]"), (1, other), (0, one)]);
        assert!(shown[0].contains("time: 4000000000") && shown[1].starts_with("Gap"), "{shown:?}");
    }
}
