//! Sections as spans. They come one thread after the other, in the order of their begins: twice where work was handed over,
//! since a link leads to a section that may come later.

use std::{borrow::Cow, collections::BTreeMap, rc::Rc};

use nntrace_common::{
    attributes::{Attributes, Reserved},
    stack::ON_NO_STACK,
};
use prost::Message as _;
use rustc_hash::FxHashMap;

use super::{
    Request, Resource,
    ids::SpanContext,
    links::Links,
    messages::{INTERNAL, KeyValue, ResourceSpans, ScopeSpans, Span, TracesRequest},
    resource::{number, scope, text},
};
use crate::{
    export::ThreadName,
    model::{Findings, section::Section},
};

/// Where receivers take spans.
const PATH: &str = "/v1/traces";
/// Spans of a request at most.
const MOST_SPANS: usize = 1_000;
/// Bytes of the spans of a request, from which on it is full: receivers take some MiB.
const FULL_BYTES: usize = 1 << 20;

/// Sections of a run that become spans.
pub struct Spans<'a> {
    findings: &'a Findings<'a>,
    resource: &'a Resource,
    /// Number of the run, which no other has.
    run: u64,
    /// `CLOCK_REALTIME` less `CLOCK_MONOTONIC`, ns.
    offset: i128,
    threads: FxHashMap<(u32, u32), &'a str>,
    links: Links,
    nesting: Nesting,
    /// Spans by process, to be sent.
    batch: BTreeMap<u32, Vec<Span>>,
    batched: usize,
    batched_bytes: usize,
    counts: SpanCounts,
}

/// Numbers of what was, and was not, made spans of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCounts {
    /// Spans.
    pub spans: u64,
    /// Links.
    pub links: u64,
    /// Hand-overs that no link shows.
    pub hand_overs_left_out: u64,
    /// Sections that had not ended.
    pub open: u64,
    /// Sections before 1970, by clocks that were set wrong.
    pub undated: u64,
}

impl<'a> Spans<'a> {
    /// Begins the spans of a recorded run with a number of its own, and clocks that were read at one instant: monotonic and
    /// real time, ns.
    #[must_use]
    pub fn new(
        findings: &'a Findings<'a>,
        resource: &'a Resource,
        run: u64,
        (monotonic_ns, realtime_ns): (u64, u64),
        threads: &'a [ThreadName],
    ) -> Self {
        Self {
            findings,
            resource,
            run,
            offset: i128::from(realtime_ns) - i128::from(monotonic_ns),
            threads: threads.iter().map(|thread| ((thread.pid, thread.tid), &*thread.name)).collect(),
            links: Links::of(findings),
            nesting: Nesting::default(),
            batch: BTreeMap::new(),
            batched: 0,
            batched_bytes: 0,
            counts: SpanCounts { open: findings.marks.open.len() as u64, ..SpanCounts::default() },
        }
    }

    /// Whether all sections are to be seen before they are taken.
    #[must_use]
    pub fn wants_all_before(&self) -> bool {
        !self.links.is_empty()
    }

    /// Sees a section before the first is taken.
    pub fn see(&mut self, section: &Section<'_>) {
        let context = self.nesting.enter(self.run, section).context;
        self.links.see(section, context);
    }

    /// Begins to take sections, the same in the same order as those that were seen.
    pub fn begin(&mut self) {
        self.nesting = Nesting::default();
    }

    /// Takes a section; returns the spans to be sent, when there are enough.
    pub fn take(&mut self, section: &Section<'_>) -> Option<Request> {
        let nested = self.nesting.enter(self.run, section);
        let links = self.links.take(section);
        let times = self.real_time(section.begin_ns).zip(self.real_time(section.end_ns));
        let Some((start_time_unix_nano, end_time_unix_nano)) = times else {
            self.counts.undated += 1;
            return None;
        };
        self.counts.spans += 1;
        self.counts.links += links.len() as u64;
        let span = Span {
            trace_id: nested.context.trace.to_vec(),
            span_id: nested.context.span.to_vec(),
            parent_span_id: nested.parent.map(Vec::from).unwrap_or_default(),
            name: section.name.clone().into_owned(),
            kind: INTERNAL,
            start_time_unix_nano,
            end_time_unix_nano,
            attributes: self.attributes(section, &nested.inherited),
            links,
        };
        self.batched_bytes += span.encoded_len();
        self.batched += 1;
        self.batch.entry(section.pid).or_default().push(span);
        let is_full = self.batched >= MOST_SPANS || self.batched_bytes >= FULL_BYTES;
        is_full.then(|| self.flush()).flatten()
    }

    /// Ends the spans; returns the last to be sent, too.
    #[must_use]
    pub fn finish(mut self) -> (Option<Request>, SpanCounts) {
        let last = self.flush();
        let hand_overs_left_out = self.links.finish();
        (last, SpanCounts { hand_overs_left_out, ..self.counts })
    }

    fn real_time(&self, time: u64) -> Option<u64> {
        u64::try_from(i128::from(time) + self.offset).ok()
    }

    fn attributes(&self, section: &Section<'_>, inherited: &Inherited) -> Vec<KeyValue> {
        let mut attributes = vec![
            text("nntrace.layer", section.tag.layer().code()),
            text("nntrace.phase", section.tag.phase().code()),
            text("code.function.name", &section.name),
            number("thread.id", section.tid.into()),
        ];
        let thread = self.threads.get(&(section.pid, section.tid)).filter(|name| !name.is_empty());
        attributes.extend(thread.map(|name| text("thread.name", name)));
        attributes.extend(section.class_name().map(|class| text("nntrace.class", class)));
        attributes.extend(inherited.iteration.map(|iteration| number("nntrace.iteration", iteration)));
        attributes.extend(inherited.account.as_ref().map(|account| text("nntrace.account", account)));
        for (key, value) in Attributes::of(section.attributes.as_bytes(), 0) {
            if !matches!(key, b"iter" | b"acct") {
                let key = format!("nntrace.mark.{}", String::from_utf8_lossy(key));
                attributes.push(text(&key, &String::from_utf8_lossy(value)));
            }
        }
        attributes
    }

    fn flush(&mut self) -> Option<Request> {
        let items = std::mem::take(&mut self.batched) as u64;
        self.batched_bytes = 0;
        let resource_spans = std::mem::take(&mut self.batch).into_iter().map(|(pid, spans)| {
            let process = [
                number("process.pid", pid.into()),
                text("process.executable.name", &self.findings.process_name(pid)),
            ];
            ResourceSpans {
                resource: Some(self.resource.message(process)),
                scope_spans: vec![ScopeSpans { scope: Some(scope()), spans }],
            }
        });
        let request = TracesRequest { resource_spans: resource_spans.collect() };
        (items > 0).then(|| Request { path: PATH, body: request.encode_to_vec(), items })
    }
}

/// Open sections of all threads.
#[derive(Default)]
struct Nesting(FxHashMap<(u32, u32), ThreadNesting>);

/// Open sections of a thread, from the outside in.
#[derive(Default)]
struct ThreadNesting {
    open: Vec<Open>,
    /// Number of sections that have begun.
    begun: u64,
}

struct Open {
    end: u64,
    depth: u8,
    context: SpanContext,
    inherited: Inherited,
}

/// Values that a section without its own takes from the one around it.
#[derive(Clone, Default)]
struct Inherited {
    iteration: Option<u64>,
    account: Option<Rc<str>>,
}

/// Section in those around it.
struct Nested {
    context: SpanContext,
    parent: Option<[u8; 8]>,
    inherited: Inherited,
}

impl Nesting {
    /// Opens a section in those of its thread that are still open.
    fn enter(&mut self, run: u64, section: &Section<'_>) -> Nested {
        let thread = (section.pid, section.tid);
        let ThreadNesting { open, begun } = self.0.entry(thread).or_default();
        let is_on_stack = section.depth != ON_NO_STACK;
        // What ends earlier is over, or not around it: of a thread whose records were lost, or whose id came again.
        while is_on_stack
            && open.last().is_some_and(|last| last.depth >= section.depth || last.end < section.end_ns)
        {
            open.pop();
        }
        let around = open.iter().rfind(|last| is_on_stack || last.end >= section.end_ns);
        let context = SpanContext::new(run, thread, *begun, around.map(|around| &around.context));
        *begun += 1;
        let own = Reserved::read(Attributes::of(section.attributes.as_bytes(), 0));
        let account = own.account.map(String::from_utf8_lossy);
        let outer = around.map(|around| around.inherited.clone()).unwrap_or_default();
        let inherited = Inherited {
            iteration: own.iteration.or(outer.iteration),
            account: account.map(|account| Rc::from(Cow::into_owned(account))).or(outer.account),
        };
        let parent = around.map(|around| around.context.span);
        if is_on_stack {
            let inherited = inherited.clone();
            open.push(Open { end: section.end_ns, depth: section.depth, context, inherited });
        }
        Nested { context, parent, inherited }
    }
}

#[cfg(test)]
mod tests {
    use nntrace_common::{
        layer::{Layer, Phase, Tag},
        stack::Class,
    };
    use proptest::prelude::*;

    use super::*;

    fn section(begin_ns: u64, end_ns: u64, depth: u8, attributes: &str) -> Section<'_> {
        Section {
            pid: 7,
            tid: 7,
            begin_ns,
            end_ns,
            own_ns: 0,
            exclusive_ns: 0,
            depth,
            tag: Tag::new(Layer::Runtime, Phase::Execution),
            class: Class::Section,
            path: 0,
            name: "f".into(),
            attributes: attributes.into(),
            is_provisional: false,
            in_itself: false,
            sequences: (0, 0),
        }
    }

    /// Sections as a program makes them: of each step, one begins or the innermost ends, and time goes on or does not.
    fn sections(steps: &[(bool, u64)]) -> Vec<(u64, u64, u8, Option<usize>)> {
        let (mut open, mut all, mut time) = (Vec::<usize>::new(), Vec::new(), 0);
        for &(begins, ns) in steps.iter().chain(std::iter::repeat_n(&(false, 1), steps.len())) {
            time += ns;
            if begins && open.len() < 60 {
                all.push((time, u64::MAX, open.len() as u8, open.last().copied()));
                open.push(all.len() - 1);
            } else if let Some(ended) = open.pop() {
                all[ended].1 = time;
            }
        }
        all
    }

    proptest! {
        #[test]
        fn the_parent_is_the_section_around(steps in prop::collection::vec((any::<bool>(), 0..3_u64), 0..200)) {
            let mut nesting = Nesting::default();
            let mut ids = Vec::new();
            for (begin, end, depth, parent) in sections(&steps) {
                let nested = nesting.enter(1, &section(begin, end, depth, ""));
                prop_assert_eq!(nested.parent, parent.map(|parent: usize| ids[parent]));
                ids.push(nested.context.span);
            }
            let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
            prop_assert_eq!(distinct.len(), ids.len());
        }
    }

    #[test]
    fn iterations_and_accounts_are_those_around() {
        let mut nesting = Nesting::default();
        let mut enter = |begin, end, depth, attributes| {
            let nested = nesting.enter(1, &section(begin, end, depth, attributes)).inherited;
            (nested.iteration, nested.account.as_deref().map(str::to_owned))
        };
        assert_eq!(enter(0, 90, 0, "#iter=3#acct=a"), (Some(3), Some("a".into())));
        // One that is no section of the contract is between them.
        assert_eq!(enter(10, 50, 2, "#acct=b#img=x"), (Some(3), Some("b".into())));
        assert_eq!(enter(60, 70, 1, "#iter=4"), (Some(4), Some("a".into())));
        assert_eq!(enter(90, 95, 0, ""), (None, None));
    }
}
