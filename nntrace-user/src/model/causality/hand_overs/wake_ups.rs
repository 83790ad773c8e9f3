//! Wake-ups taken for hand-overs: a thread outside of all sections is woken by one in a section, and begins a section before it
//! sleeps again. That it does the other's work is inferred; where marks or the binder driver show what it took, they count.

use std::collections::BTreeMap;

use nntrace_common::{layer::Tag, record::SpanRecord};
use rustc_hash::FxHashMap;

use super::hand_over::{Function, HandOver, Moment, Source};

/// Wake-ups that wait on one thread for a section to end; of more, the oldest are over.
const MOST_WAITING: usize = 1 << 10;

/// Wake-up of a thread by another one.
#[derive(Clone, Copy, Debug)]
struct WakeUp {
    /// Thread that was woken.
    tid: u32,
    /// Thread that woke it.
    by: u32,
    /// Time, ns.
    time: u64,
    /// When the thread got a CPU, ns.
    runs: Option<u64>,
    /// Process and innermost section of the thread that woke it.
    from: Option<(u32, Tag)>,
    /// First section of the woken thread.
    work: Option<Work>,
    /// First wake-up in the other direction since: when, and when the thread ran again, ns.
    answer: Option<(u64, Option<u64>)>,
}

/// Section that a woken thread begins.
#[derive(Clone, Copy, Debug)]
struct Work {
    pid: u32,
    tag: Tag,
    name: u64,
    begin: u64,
    end: u64,
}

impl WakeUp {
    /// Returns the hand-over that it is; `None` where one of its sides was in no section.
    fn hand_over(&self) -> Option<HandOver> {
        let ((pid, from), work) = (self.from?, self.work?);
        // One that answers before the work begins answers something else.
        let answer = self.answer.filter(|(woken, _)| *woken >= work.begin);
        Some(HandOver {
            from: Some(from),
            to: Some(work.tag),
            function: Some(Function::Section(work.name)),
            dispatch: Some(Moment { pid, tid: self.by, time: self.time, sequence: 0 }),
            receive: self.runs.map(|time| Moment { pid: work.pid, tid: self.tid, time, sequence: 0 }),
            start: Some(work.begin.into()),
            end: Some(work.end.into()),
            finish: answer.and_then(|(_, runs)| runs),
            ..HandOver::new(Source::WakeUp)
        })
    }
}

/// Thread that is woken.
#[derive(Clone, Debug, Default)]
struct Sleeper {
    /// Numbers of its wake-ups since its last outermost section.
    woken: Vec<u64>,
    /// End of that section, ns.
    busy_until: u64,
}

/// Wake-ups that may be hand-overs.
#[derive(Clone, Debug)]
pub(super) struct WakeUps {
    most: usize,
    next: u64,
    /// Wake-ups about which something may still become known, by number.
    open: BTreeMap<u64, WakeUp>,
    sleepers: FxHashMap<u32, Sleeper>,
    /// Numbers of the wake-ups by a thread since its last outermost section.
    given: FxHashMap<u32, Vec<u64>>,
    /// Number of the last wake-up by a thread of another one.
    last: FxHashMap<(u32, u32), u64>,
}

/// Consumer of hand-overs.
type Take<'a> = &'a mut dyn FnMut(HandOver);

impl WakeUps {
    /// Creates the state without any wake-ups. When more than `most` are open, the oldest ends as it is.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            next: 0,
            open: BTreeMap::new(),
            sleepers: FxHashMap::default(),
            given: FxHashMap::default(),
            last: FxHashMap::default(),
        }
    }

    /// A thread wakes another one at `time` (ns). One that has not run since it was woken before is awake.
    pub(super) fn woken(&mut self, tid: u32, by: u32, time: u64, take: Take<'_>) {
        let sleeper = self.sleepers.entry(tid).or_default();
        let last = sleeper.woken.last().and_then(|number| self.open.get(number));
        if last.is_some_and(|last| last.runs.is_none()) {
            return;
        }
        let number = self.next;
        self.next += 1;
        wait(&mut sleeper.woken, number, &self.open);
        wait(self.given.entry(by).or_default(), number, &self.open);
        self.open.insert(number, WakeUp { tid, by, time, runs: None, from: None, work: None, answer: None });
        let asked = self.last.get(&(tid, by)).and_then(|number| self.open.get_mut(number));
        if let Some(asked) = asked.filter(|asked| asked.answer.is_none()) {
            asked.answer = Some((time, None));
        }
        if let Some(before) = self.last.insert((by, tid), number) {
            self.settle(before, take);
        }
        if self.open.len() > self.most
            && let Some((_, oldest)) = self.open.pop_first()
        {
            oldest.hand_over().into_iter().for_each(take);
            self.forget();
        }
    }

    /// A thread gets a CPU at `time` (ns).
    pub(super) fn runs(&mut self, tid: u32, time: u64) {
        let woken = self.sleepers.get(&tid).and_then(|sleeper| sleeper.woken.last());
        let Some(wake_up) = woken.and_then(|number| self.open.get_mut(number)) else { return };
        if wake_up.runs.is_some() {
            return;
        }
        wake_up.runs = Some(time);
        let (by, woken) = (wake_up.by, wake_up.time);
        let asked = self.last.get(&(tid, by)).and_then(|number| self.open.get_mut(number));
        match asked.and_then(|asked| asked.answer.as_mut()) {
            Some((at, runs)) if *at == woken => *runs = Some(time),
            _ => {}
        }
    }

    /// A section ends; those of one thread come in the order of their ends. `received` is when (ns) other evidence last showed
    /// its thread to take work.
    pub(super) fn section(&mut self, span: &SpanRecord, tag: Tag, received: Option<u64>, take: Take<'_>) {
        self.gives(span, tag, take);
        if span.is_outermost() {
            self.works(span, tag, received, take);
        }
    }

    /// Finds the wake-ups that were in a section.
    fn gives(&mut self, span: &SpanRecord, tag: Tag, take: Take<'_>) {
        let Some(given) = self.given.get_mut(&span.tid) else { return };
        let mut settled = Vec::new();
        given.retain(|number| {
            let Some(wake_up) = self.open.get_mut(number) else { return false };
            if (span.begin..=span.end).contains(&wake_up.time) {
                wake_up.from = Some((span.tgid, tag));
                settled.push(*number);
            } else if span.is_outermost() && wake_up.time < span.begin {
                // It was in none.
                self.open.remove(number);
            } else {
                return true;
            }
            false
        });
        if given.is_empty() {
            self.given.remove(&span.tid);
        }
        for number in settled {
            self.complete(number, take);
        }
    }

    /// Finds the wake-up that an outermost section follows.
    fn works(&mut self, span: &SpanRecord, tag: Tag, received: Option<u64>, take: Take<'_>) {
        let Some(sleeper) = self.sleepers.get_mut(&span.tid) else { return };
        let idle_since = std::mem::replace(&mut sleeper.busy_until, span.end);
        let mut found = None;
        for number in std::mem::take(&mut sleeper.woken) {
            let Some(wake_up) = self.open.get(&number) else { continue };
            let is_before = wake_up.time >= idle_since && wake_up.runs.is_some_and(|runs| runs <= span.begin);
            let other = if is_before { found.replace(number) } else { Some(number) };
            // Nothing came of it, or it is in the section.
            other.and_then(|number| self.open.remove(&number));
        }
        let Some((number, wake_up)) = found.and_then(|number| Some((number, self.open.get_mut(&number)?)))
        else {
            return;
        };
        if received.is_some_and(|received| received >= wake_up.time) {
            self.open.remove(&number);
            return;
        }
        wake_up.work = Some(Work { pid: span.tgid, tag, name: span.name, begin: span.begin, end: span.end });
        self.complete(number, take);
    }

    /// More is known of a wake-up: ends it if that is all.
    fn complete(&mut self, number: u64, take: Take<'_>) {
        let is_last = |wake_up: &WakeUp| self.last.get(&(wake_up.by, wake_up.tid)) == Some(&number);
        if self.open.get(&number).is_some_and(|wake_up| !is_last(wake_up)) {
            self.settle(number, take);
        }
    }

    /// Ends a wake-up of which all is known, as no answer is to come.
    fn settle(&mut self, number: u64, take: Take<'_>) {
        if let Some(hand_over) = self.open.get(&number).and_then(WakeUp::hand_over) {
            self.open.remove(&number);
            take(hand_over);
        }
    }

    /// Forgets the threads of which nothing is open.
    fn forget(&mut self) {
        let Some((&oldest, _)) = self.open.first_key_value() else { return };
        if self.sleepers.len() + self.given.len() + self.last.len() > 4 * self.most {
            self.sleepers.retain(|_, sleeper| sleeper.woken.last().is_some_and(|last| *last >= oldest));
            self.given.retain(|_, given| given.last().is_some_and(|last| *last >= oldest));
            self.last.retain(|_, last| *last >= oldest);
        }
    }

    /// Returns the name of the work of open ones.
    pub(super) fn names(&self) -> impl Iterator<Item = u64> {
        self.open.values().filter_map(|wake_up| wake_up.work.map(|work| work.name))
    }

    /// Returns the hand-overs among the open ones, as far as they are known.
    pub(super) fn into_open(self) -> impl Iterator<Item = HandOver> {
        self.open.into_values().filter_map(|wake_up| wake_up.hand_over())
    }
}

/// Lets a wake-up wait on a thread, which may never have a section.
fn wait(waiting: &mut Vec<u64>, number: u64, open: &BTreeMap<u64, WakeUp>) {
    if waiting.len() >= MOST_WAITING {
        waiting.retain(|number| open.contains_key(number));
        waiting.drain(..waiting.len().saturating_sub(MOST_WAITING / 2));
    }
    waiting.push(number);
}

#[cfg(test)]
mod tests;
