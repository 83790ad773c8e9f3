//! The graph of a run.

use std::collections::{BTreeMap, BTreeSet};

use nntrace_common::{attributes::Handle, stamp::Stamp};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    collect::{Events, Handed, Span},
    component::Components,
    contention,
    graph::{Candidate, Edge, Graph, IterationPart, Kind, Trust, UNMARKED},
    queues::{self, Item},
    threads::{Drafts, Points},
    waits,
};
use crate::model::{
    Findings,
    causality::hand_overs::{HandOver, Source},
};

/// Input of a run from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// It comes at its recorded times, however fast it is worked on.
    Open,
    /// It comes as soon as the thread that takes it is ready.
    Closed,
}

/// Options of making a graph.
#[derive(Clone, Debug, Default)]
pub(in crate::analyze) struct BuildOptions<'a> {
    /// Input from outside; found out where it is not given.
    pub(in crate::analyze) arrivals: Option<Arrivals>,
    /// Function whose sections are iterations, in place of those with a number of their own.
    pub(in crate::analyze) iteration_root: Option<&'a str>,
}

/// Graph of a run, and what is known about it.
pub(in crate::analyze) struct Built<'a> {
    pub(in crate::analyze) graph: Graph,
    pub(in crate::analyze) components: &'a Components,
    pub(in crate::analyze) facts: Facts,
    /// Threads by number.
    pub(in crate::analyze) threads: Vec<Thread>,
    /// Points at which sections begin and end, by the number of the section.
    pub(in crate::analyze) spans: Vec<(u32, u32)>,
}

/// Thread of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::analyze) struct Thread {
    /// Its id.
    pub(in crate::analyze) tid: u32,
    /// Whether its context switches are known.
    pub(in crate::analyze) has_switches: bool,
}

/// Facts about a graph, for assumptions and confidence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::analyze) struct Facts {
    /// Threads with points.
    pub(in crate::analyze) threads: usize,
    /// Threads whose context switches are known.
    pub(in crate::analyze) switched: usize,
    /// Edges by kind and trust.
    pub(in crate::analyze) edges: BTreeMap<(Kind, Trust), u64>,
    /// Room of bounded queues: from marks, and inferred.
    pub(in crate::analyze) rooms: (Vec<usize>, Vec<usize>),
    /// Whether input from outside keeps its recorded times.
    pub(in crate::analyze) is_open: bool,
    /// Whether that was asked for.
    pub(in crate::analyze) arrivals_given: bool,
    /// Receipts of which no dispatch is known.
    pub(in crate::analyze) unmatched: u64,
    /// Receipts before their dispatches in the recording.
    pub(in crate::analyze) violations: u64,
    /// Length of sleeps that nothing explains, ns.
    pub(in crate::analyze) fixed: u64,
    /// Time of threads with context switches of which their state is not known, ns.
    pub(in crate::analyze) unknown: u64,
    /// CPUs that each thread ran on, by its number.
    pub(in crate::analyze) cpus: Vec<Vec<u32>>,
    /// CPUs of the host, as far as they are known.
    pub(in crate::analyze) host_cpus: u32,
    /// Longest wait for a CPU that a thread of the run had, ns.
    pub(in crate::analyze) longest_wait: u64,
}

/// Share of the time of a source thread that has to be pauses for its input to be from outside, percent.
const LEAST_PAUSES: u64 = 5;

/// Places of an edge: numbers of happenings.
type Draft = (u32, u32, Kind, Trust);

/// Makes the graph of what was collected and found.
///
/// # Errors
/// With the reason, when there is nothing to make a graph of.
pub(in crate::analyze) fn graph<'a>(
    events: &'a Events,
    findings: &Findings<'_>,
    options: &BuildOptions<'_>,
) -> Result<Built<'a>, String> {
    if events.spans.is_empty() {
        return Err("no section with a layer and a phase ended".into());
    }
    let mut drafts = Drafts::new(events);
    let mut facts = Facts::default();
    let (mut edges, items) = hand_overs(&mut drafts, &events.handed, &mut facts);
    interface_calls(&mut drafts, events, findings, &mut edges)?;
    locks(&events.spans, &mut edges);
    let (begin, end) = drafts.extent().unwrap_or_default();
    drafts.add_activities(begin, end);
    lives(&mut drafts, events, (begin, end), &mut edges);
    let wakes: Vec<(u32, u32, u64)> = events
        .wakes
        .iter()
        .filter(|wake| (begin..=end).contains(&wake.time))
        .filter_map(|wake| {
            let is_known = drafts.has(wake.tid, wake.time) && drafts.has(wake.by, wake.time);
            is_known.then(|| (drafts.anchor(wake.by, wake.time.into(), false), wake.tid, wake.time))
        })
        .collect();
    let mut points = drafts.finish();
    let place = |(from, to, kind, trust): &Draft| Candidate {
        from: points.of(*from),
        to: points.of(*to),
        kind: *kind,
        trust: *trust,
    };
    let mut candidates: Vec<Candidate> = edges.iter().map(place).collect();
    let joins = joins(&points, events, &candidates);
    candidates.extend(joins);
    let items: Vec<Item> = items
        .into_iter()
        .map(|item| Item { send: points.of(item.send), receive: points.of(item.receive), ..item })
        .collect();
    let bounds = queues::bounds(&points, &items);
    candidates.extend(bounds.candidates);
    facts.rooms = (bounds.known, bounds.inferred);
    let mut edges = waits::explain(&mut points, candidates);
    edges.extend(wake_ups(&mut points, &wakes));
    let is_open = arrivals(&mut points, &edges, options.arrivals);
    facts.is_open = is_open;
    facts.arrivals_given = options.arrivals.is_some();
    facts.threads = points.threads.len();
    facts.switched = points.has_switches.iter().filter(|has| **has).count();
    facts.fixed = points.all.iter().map(|point| point.fixed).sum();
    facts.unknown = points.unknown;
    facts.cpus = cpus(&points);
    let iterations = iterations(&points, events, options.iteration_root)?;
    let spans = (0..events.spans.len() as u32).map(|span| {
        let (begin, end) = Drafts::of_span(span);
        (points.of(begin), points.of(end))
    });
    let spans = spans.collect();
    let threads = points.threads.iter().zip(&points.has_switches);
    let threads = threads.map(|((tid, _), has_switches)| Thread { tid: *tid, has_switches: *has_switches });
    let threads = threads.collect();
    let seen = facts.cpus.iter().flatten().max().map_or(0, |last| last + 1);
    facts.host_cpus = findings.run.host.cpus.max(seen);
    facts.longest_wait = contention::split(&mut points.all, facts.host_cpus);
    let mut graph = Graph::new(points.all, edges);
    graph.iterations = iterations;
    graph.hand_overs = items.iter().map(|item| (item.send, item.receive)).collect();
    for edge in &graph.edges {
        *facts.edges.entry((edge.kind, edge.trust)).or_default() += 1;
    }
    facts.violations = graph.violations;
    Ok(Built { graph, components: &events.components, facts, threads, spans })
}

/// Pairs dispatches and receipts of one handle: each receipt with the latest dispatch before it.
fn hand_overs(drafts: &mut Drafts<'_>, handed: &[Handed], facts: &mut Facts) -> (Vec<Draft>, Vec<Item>) {
    let mut order: Vec<&Handed> = handed.iter().collect();
    // Of one instant, what is given comes first.
    order.sort_by_key(|handed| (handed.at, !handed.is_send, handed.tid));
    let mut sent: FxHashMap<(u32, Handle), (u32, &Handed)> = FxHashMap::default();
    let mut early: FxHashMap<(u32, Handle), Vec<u32>> = FxHashMap::default();
    let (mut edges, mut items) = (Vec::new(), Vec::new());
    for handed in order {
        let place = drafts.anchor(handed.tid, handed.at, true);
        if handed.is_send {
            // Taken before: the order is wrong, and counted.
            for receive in early.remove(&handed.key).into_iter().flatten() {
                edges.push((place, receive, Kind::HandOver, Trust::Explicit));
                items.push(Item { send: place, receive, queue: handed.queue, room: handed.room });
            }
            sent.insert(handed.key, (place, handed));
        } else if let Some((from, send)) = sent.get(&handed.key) {
            if send.tid != handed.tid {
                edges.push((*from, place, Kind::HandOver, Trust::Explicit));
                items.push(Item { send: *from, receive: place, queue: send.queue, room: send.room });
            }
        } else {
            early.entry(handed.key).or_default().push(place);
        }
    }
    facts.unmatched = early.values().map(|places| places.len() as u64).sum();
    (edges, items)
}

/// Adds calls between processes, as marks of both sides or the binder driver show them.
fn interface_calls(
    drafts: &mut Drafts<'_>,
    events: &Events,
    findings: &Findings<'_>,
    edges: &mut Vec<Draft>,
) -> Result<(), String> {
    let Some(found) = &findings.marks.causality.hand_overs else { return Ok(()) };
    if found.left_out() > 0 {
        return Err(format!(
            "{} hand-overs are too many to be kept: give more room with --memory",
            found.left_out()
        ));
    }
    let ends = SpanEnds::new(&events.spans);
    let is_call = |call: &HandOver| matches!(call.source, Source::Interface | Source::Binder);
    for call in found.results().list.iter().filter(|call| is_call(call)) {
        let trust = if call.source == Source::Binder { Trust::Explicit } else { Trust::Inferred };
        let (Some(dispatch), Some(receive)) = (call.dispatch, call.receive) else { continue };
        let receive = call.received_first.map_or(receive, |first| receive.at(first));
        if dispatch.tid == receive.tid {
            continue;
        }
        let from = drafts.anchor(dispatch.tid, dispatch.stamp(), true);
        let to = drafts.anchor(receive.tid, receive.stamp(), true);
        edges.push((from, to, Kind::HandOver, trust));
        let Some(finish) = call.finish else { continue };
        // A callback reports to another thread, and is a hand-over of its own.
        let waits = ends.of(dispatch.tid, dispatch.stamp(), finish).map(|span| Drafts::of_span(span).1);
        let Some(to) = waits else { continue };
        let end =
            ends.until(receive.tid, receive.stamp(), finish).or(call.end).filter(|end| end.time <= finish);
        if let Some(end) = end {
            let from = drafts.anchor(receive.tid, end, true);
            edges.push((from, to, Kind::Reply, trust));
        }
    }
    Ok(())
}

/// Ends of sections, and their numbers, by thread and begin.
struct SpanEnds(FxHashMap<(u32, Stamp), Vec<(Stamp, u32)>>);

impl SpanEnds {
    fn new(spans: &[Span]) -> Self {
        let mut ends: FxHashMap<(u32, Stamp), Vec<(Stamp, u32)>> = FxHashMap::default();
        for (number, span) in (0..).zip(spans) {
            ends.entry((span.tid, span.begin)).or_default().push((span.end, number));
        }
        Self(ends)
    }

    /// Returns the section that begins then and ends at a time (ns), the outermost of several.
    fn of(&self, tid: u32, begin: Stamp, end: u64) -> Option<u32> {
        let ends = self.0.get(&(tid, begin))?.iter();
        ends.filter(|(other, _)| other.time == end).map(|(_, number)| *number).max()
    }

    /// Returns the end of the longest section that begins then and ends by a time (ns).
    fn until(&self, tid: u32, begin: Stamp, last: u64) -> Option<Stamp> {
        self.0.get(&(tid, begin))?.iter().map(|(end, _)| *end).filter(|end| end.time <= last).max()
    }
}

/// Adds the creations of threads between two times, ns.
fn lives(drafts: &mut Drafts<'_>, events: &Events, (begin, end): (u64, u64), edges: &mut Vec<Draft>) {
    for (time, by, child) in events.created.iter().filter(|(time, ..)| (begin..=end).contains(time)) {
        if drafts.has(*child, *time) && drafts.has(*by, *time) {
            let from = drafts.anchor(*by, (*time).into(), false);
            let to = drafts.anchor(*child, (*time).into(), false);
            edges.push((from, to, Kind::Create, Trust::Explicit));
        }
    }
}

/// Adds the order in which locks were held.
fn locks(spans: &[Span], edges: &mut Vec<Draft>) {
    let mut held: BTreeMap<u32, Vec<(Stamp, Stamp, u32)>> = BTreeMap::new();
    for (number, span) in (0..).zip(spans) {
        if let Some(lock) = span.lock {
            held.entry(lock).or_default().push((span.begin, span.end, number));
        }
    }
    for mut holders in held.into_values() {
        holders.sort_unstable();
        for pair in holders.windows(2) {
            let [(_, _, first), (_, _, second)] = pair else { continue };
            if spans[*first as usize].tid != spans[*second as usize].tid {
                let (_, release) = Drafts::of_span(*first);
                let (acquire, _) = Drafts::of_span(*second);
                edges.push((release, acquire, Kind::Lock, Trust::Explicit));
            }
        }
    }
}

/// Returns the ends of threads that who created them seems to have waited for: its next mark comes after. Where context
/// switches are known, wake-ups show it.
fn joins(points: &Points, events: &Events, candidates: &[Candidate]) -> Vec<Candidate> {
    let last_of = |thread: u32| points.all.partition_point(|point| point.thread <= thread).checked_sub(1);
    let mut found = Vec::new();
    for creation in candidates.iter().filter(|candidate| candidate.kind == Kind::Create) {
        let (creator, child) = (&points.all[creation.from as usize], points.all[creation.to as usize].thread);
        let (tid, _) = points.threads[child as usize];
        let is_over = events.ended.iter().any(|(time, ended)| *ended == tid && *time >= creator.time);
        let Some(last) = last_of(child).filter(|_| is_over) else { continue };
        if points.has_switches[creator.thread as usize] {
            continue;
        }
        let end = points.all[last].time;
        let behind = |next: &u32| points.time(*next) >= end;
        let next = std::iter::successors(points.next_mark(creation.from), |next| points.next_mark(*next))
            .find(behind);
        found.extend(next.map(|to| Candidate {
            from: last as u32,
            to,
            kind: Kind::Join,
            trust: Trust::Inferred,
        }));
    }
    found
}

/// Returns edges from who woke a thread to the end of its sleep, where nothing else explains that.
fn wake_ups(points: &mut Points, wakes: &[(u32, u32, u64)]) -> Vec<Edge> {
    let mut ends: FxHashMap<(u32, u64), u32> = FxHashMap::default();
    for (number, point) in (0..).zip(&points.all) {
        if points.slept[number as usize] && point.fixed > 0 {
            ends.insert((points.threads[point.thread as usize].0, point.time), number);
        }
    }
    let mut edges = Vec::new();
    for (from, tid, time) in wakes {
        let Some(to) = ends.remove(&(*tid, *time)) else { continue };
        points.all[to as usize].fixed = 0;
        edges.push(Edge {
            from: points.of(*from),
            to,
            latency: 0,
            has_waited: true,
            kind: Kind::WakeUp,
            trust: Trust::Inferred,
        });
    }
    edges
}

/// Lets input from outside keep its recorded times, if it is such; returns whether it does. It comes to threads that hand work
/// over, and wait for nobody.
fn arrivals(points: &mut Points, edges: &[Edge], given: Option<Arrivals>) -> bool {
    let thread = |point: u32| points.all[point as usize].thread;
    let waiting: FxHashSet<u32> =
        edges.iter().filter(|edge| edge.kind != Kind::Create).map(|edge| thread(edge.to)).collect();
    let giving: BTreeSet<u32> =
        edges.iter().filter(|edge| edge.kind == Kind::HandOver).map(|edge| thread(edge.from)).collect();
    let mut pauses: Vec<(usize, usize)> = Vec::new();
    let (mut paused, mut all) = (0, 0);
    for source in giving.into_iter().filter(|thread| !waiting.contains(thread)) {
        let first = points.all.partition_point(|point| point.thread < source);
        let last = points.all.partition_point(|point| point.thread <= source);
        let marks: Vec<usize> = (first..last).filter(|point| points.all[*point].is_marked).collect();
        for pair in marks.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let length = points.all[to].time - points.all[from].time;
            all += length;
            let is_pause = points.all[from + 1..=to].iter().all(|point| point.component == UNMARKED);
            if is_pause && length > 0 {
                paused += length;
                pauses.push((from, to));
            }
        }
    }
    let is_open = match given {
        Some(arrivals) => arrivals == Arrivals::Open,
        None => paused * 100 > all * LEAST_PAUSES,
    };
    if is_open {
        for (from, to) in pauses {
            for point in &mut points.all[from + 1..=to] {
                (point.run, point.fixed, point.queued) = (0, 0, 0);
            }
            points.all[to].is_arrival = true;
        }
    }
    is_open
}

/// Returns the CPUs that each thread ran on.
fn cpus(points: &Points) -> Vec<Vec<u32>> {
    let mut cpus: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); points.threads.len()];
    for point in points.all.iter().filter(|point| point.run > 0) {
        cpus[point.thread as usize].extend(point.cpu);
    }
    cpus.into_iter().map(|cpus| cpus.into_iter().collect()).collect()
}

/// Returns the sections of iterations: those of the function that was named, each on its own, else those with a number of their own
/// that are in no other such, together with those of the same number on other threads.
fn iterations(points: &Points, events: &Events, root: Option<&str>) -> Result<Vec<IterationPart>, String> {
    let mut parts = Vec::new();
    let part = |number: u32, iteration: u64| {
        let (begin, end) = Drafts::of_span(number);
        IterationPart { iteration, begin: points.of(begin), end: points.of(end) }
    };
    if let Some(root) = root {
        let is_root: FxHashSet<u32> = events
            .components
            .iter()
            .filter(|(_, component)| component.function == root)
            .map(|(number, _)| number)
            .collect();
        let mut spans: Vec<(Stamp, u32, u32)> = (0..)
            .zip(&events.spans)
            .filter(|(_, span)| is_root.contains(&span.component))
            .map(|(number, span)| (span.begin, span.tid, number))
            .collect();
        if spans.is_empty() {
            return Err(format!("no section of {root}, which --iteration-root names, ended in the run"));
        }
        spans.sort_unstable();
        parts.extend((0..).zip(spans).map(|(iteration, (_, _, number))| part(number, iteration)));
        return Ok(parts);
    }
    let mut by_thread: BTreeMap<u32, Vec<(Stamp, u8, u32)>> = BTreeMap::new();
    for (number, span) in (0..).zip(&events.spans).filter(|(_, span)| span.iteration.is_some()) {
        by_thread.entry(span.tid).or_default().push((span.begin, span.depth, number));
    }
    for mut spans in by_thread.into_values() {
        spans.sort_unstable();
        let mut until: Option<Stamp> = None;
        for (begin, _, number) in spans {
            let span = &events.spans[number as usize];
            if until.is_none_or(|until| begin >= until) {
                parts.extend(span.iteration.map(|iteration| part(number, iteration)));
                until = Some(span.end);
            }
        }
    }
    parts.sort_unstable();
    Ok(parts)
}
