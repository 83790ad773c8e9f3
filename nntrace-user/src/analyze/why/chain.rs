//! Chains: what the time of an execution went by with, on its thread and those that it waits for.

use super::cpu_use::Turn;
use crate::analyze::run_graph::{
    build::Thread,
    graph::{Edge, Graph, Kind, Point, Trust},
};

/// Threads that wait for each other, and are followed at most.
const DEEPEST: usize = 16;

/// Reason why a thread's time is in that of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Via {
    /// Kind of what was waited for.
    pub(super) kind: Kind,
    /// Trust in that.
    pub(super) trust: Trust,
    /// Number of the lock, if it is one.
    pub(super) lock: Option<u32>,
}

/// Activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// It ran on this CPU; `None` where its context switches are not known, and it may have waited.
    Ran(Option<u32>),
    /// It waited for a CPU.
    Waited(Turn),
    /// It slept, for what is not known.
    Slept,
    /// Latency of a hand-over: given, and not there yet.
    Passed,
    /// Not known.
    Unknown,
}

/// Stretch of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// Begin, ns.
    pub(super) begin: u64,
    /// End, ns.
    pub(super) end: u64,
    /// Number of the thread.
    pub(super) thread: u32,
    /// Function that it was in.
    pub(super) component: u32,
    /// Reason why it is in the chain; `None` for the thread of the execution.
    pub(super) via: Option<Via>,
    /// Activity.
    pub(super) doing: Doing,
}

/// Walker of chains.
pub(super) struct Walker<'a> {
    graph: &'a Graph,
    threads: &'a [Thread],
    /// First point of each thread, and one more at the end.
    first: Vec<usize>,
    /// Number of the lock that is released at a point.
    lock_at: &'a dyn Fn(u32) -> Option<u32>,
    /// Whether a thread that slept between two times (ns) was woken by a device, on behalf of another thread.
    was_woken_by_device: &'a dyn Fn(u32, u32, (u64, u64)) -> bool,
}

impl<'a> Walker<'a> {
    /// Creates a walker of the chains of a graph. `lock_at` returns the lock that is released at a point, `was_woken_by_device`
    /// whether a thread that slept between two times (ns) was woken by a device, on behalf of another thread.
    pub(super) fn new(
        graph: &'a Graph,
        threads: &'a [Thread],
        lock_at: &'a dyn Fn(u32) -> Option<u32>,
        was_woken_by_device: &'a dyn Fn(u32, u32, (u64, u64)) -> bool,
    ) -> Self {
        let first = |thread: usize| graph.points.partition_point(|point| (point.thread as usize) < thread);
        Self { graph, threads, first: (0..=threads.len()).map(first).collect(), lock_at, was_woken_by_device }
    }

    /// Shows the links that the time of a thread between two times (ns) consists of, the last first. They tile it.
    pub(super) fn walk(&self, thread: u32, begin: u64, end: u64, take: &mut dyn FnMut(Link)) {
        self.go(&mut vec![thread], begin, end, None, take);
    }

    /// Walks the last thread of these, which wait for each other.
    fn go(&self, waiting: &mut Vec<u32>, begin: u64, end: u64, via: Option<Via>, take: &mut dyn FnMut(Link)) {
        let Some(&thread) = waiting.last() else { return };
        let points = &self.graph.points[self.first[thread as usize]..self.first[thread as usize + 1]];
        let behind = points.partition_point(|point| point.time < end);
        let mut at = (behind < points.len()).then_some((self.first[thread as usize] + behind) as u32);
        let mut until = end;
        while until > begin {
            let Some(point) = at else {
                let component = points.last().map_or(0, |point| point.component);
                take(Link { begin, end: until, thread, component, via, doing: Doing::Unknown });
                return;
            };
            at = self.graph.before(point);
            let since = at.map_or(begin, |before| self.graph.points[before as usize].time.max(begin));
            if since < until {
                self.interval(waiting, point, (since, until), via, take);
                until = since;
            }
        }
    }

    /// Shows what a thread did in a part of the time before one of its points.
    fn interval(
        &self,
        waiting: &mut Vec<u32>,
        number: u32,
        (begin, end): (u64, u64),
        via: Option<Via>,
        take: &mut dyn FnMut(Link),
    ) {
        let point = &self.graph.points[number as usize];
        let thread = point.thread;
        let has_switches = self.threads[thread as usize].has_switches;
        let doing = if self.graph.before(number).is_none() {
            Doing::Unknown
        } else if point.queued > 0 {
            Doing::Waited(self.turn(number))
        } else if point.fixed > 0 {
            Doing::Slept
        } else if point.run > 0 {
            if point.cpu.is_none() && has_switches { Doing::Unknown } else { Doing::Ran(point.cpu) }
        } else {
            // Something in the graph explains the wait.
            if self.follow(waiting, number, (begin, end), via, take) {
                return;
            }
            Doing::Slept
        };
        take(Link { begin, end, thread, component: point.component, via, doing });
    }

    /// Shows what the threads did that a thread waited for; `false` if it waited for none that can be followed.
    fn follow(
        &self,
        waiting: &mut Vec<u32>,
        number: u32,
        (begin, end): (u64, u64),
        via: Option<Via>,
        take: &mut dyn FnMut(Link),
    ) -> bool {
        let edges = self.graph.edges_to(number).iter().filter(|edge| edge.has_waited);
        // Who ran where a thread was woken from has not always woken it: that does not lead further than from the execution
        // itself, or from another such.
        let is_wake_up = |kind| kind == Kind::WakeUp;
        let may_lead = via.is_none_or(|via| is_wake_up(via.kind));
        // The interrupt of a device wakes on behalf of whatever runs there.
        let thread = self.graph.points[number as usize].thread;
        let woken = self.graph.points[number as usize].time;
        let slept =
            (self.graph.before(number).map_or(begin, |at| self.graph.points[at as usize].time), woken);
        let is_of_device = |from: u32| {
            let waker = self.graph.points[from as usize].thread;
            (self.was_woken_by_device)(thread, waker, slept)
        };
        let leads = |edge: &Edge| !is_wake_up(edge.kind) || may_lead && !is_of_device(edge.from);
        let edge = edges.filter(|edge| leads(edge)).max_by_key(|edge| {
            let from = &self.graph.points[edge.from as usize];
            (from.stamp(), edge.from)
        });
        let Some(edge) = edge else { return false };
        let from = &self.graph.points[edge.from as usize];
        if waiting.contains(&from.thread) || waiting.len() >= DEEPEST {
            return false;
        }
        let lock = (self.lock_at)(edge.from).filter(|_| edge.kind == Kind::Lock);
        let via = Some(Via { kind: edge.kind, trust: edge.trust, lock });
        // Its mark was before: it had not given anything yet.
        let since = self.graph.before(number).map(|before| &self.graph.points[before as usize]);
        let is_behind = match since.filter(|since| since.time == begin) {
            Some(since) => since.is_before(from),
            None => from.time > begin,
        };
        let given = if is_behind { from.time.min(end) } else { end };
        if given < end {
            let (thread, component) = (from.thread, from.component);
            take(Link { begin: given, end, thread, component, via, doing: Doing::Passed });
        }
        waiting.push(from.thread);
        self.go(waiting, begin, given, via, take);
        waiting.pop();
        true
    }

    /// Returns the CPUs that a wait for one is about.
    fn turn(&self, number: u32) -> Turn {
        let points = &self.graph.points;
        let thread = points[number as usize].thread;
        let of_thread = |place: &u32| points.get(*place as usize).is_some_and(|point| point.thread == thread);
        let mut behind = (number + 1..).take_while(of_thread).map(|place| &points[place as usize]);
        let mut before = (0..number).rev().take_while(of_thread).map(|place| &points[place as usize]);
        let is_other = |point: &&Point| point.queued == 0;
        Turn {
            next: behind.find(is_other).and_then(|point| point.cpu),
            last: before.find(is_other).and_then(|point| point.cpu),
        }
    }
}
