//! Bounded queues: who sends waits until there is room.

use std::collections::BTreeMap;

use nntrace_common::stamp::Stamp;

use super::{
    graph::{Candidate, Kind, Trust},
    threads::Points,
};

/// Room of a queue that is looked for at most.
const MOST_ROOM: usize = 1 << 10;
/// Dispatches of which one may contradict the room that is inferred: the marks of both sides are written beside the queue.
const EXCEPTIONS: usize = 50;
/// Dispatches that waited for room, at least, as one in this many.
const LEAST_WAITS: usize = 10;
/// Parts of the time between two marks of which one may lie between the end of a wait for room and what follows it.
const LEAST_WAIT: u64 = 4;

/// Work that went through a queue.
#[derive(Clone, Copy, Debug)]
pub(in crate::analyze) struct Item {
    /// Point of its dispatch.
    pub(in crate::analyze) send: u32,
    /// Point of its receipt.
    pub(in crate::analyze) receive: u32,
    /// Number of the queue, where the dispatch names it.
    pub(in crate::analyze) queue: Option<u32>,
    /// Room of the queue, where the dispatch has it.
    pub(in crate::analyze) room: Option<u32>,
}

/// Queue by its name, or by the threads at its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Queue {
    Named(u32),
    Between(u32, u32),
}

/// Bounds that were found.
#[derive(Clone, Debug, Default)]
pub(in crate::analyze) struct Bounds {
    /// Waits for room.
    pub(in crate::analyze) candidates: Vec<Candidate>,
    /// Room of queues whose marks have it.
    pub(in crate::analyze) known: Vec<usize>,
    /// Room that was inferred.
    pub(in crate::analyze) inferred: Vec<usize>,
}

/// Where a sender waits for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the mark of the dispatch.
    Before,
    /// Between it and the next mark.
    Behind,
}

/// A dispatch: points of the last mark before it, of it, and of the next one.
struct Dispatch {
    before: Stamp,
    send: u32,
    at: Stamp,
    next: Option<(u32, Stamp)>,
}

/// Finds the bounds of all queues.
pub(in crate::analyze) fn bounds(points: &Points, items: &[Item]) -> Bounds {
    let mut queues: BTreeMap<Queue, Vec<Item>> = BTreeMap::new();
    for item in items {
        let thread = |point: u32| points.all[point as usize].thread;
        let between = || Queue::Between(thread(item.send), thread(item.receive));
        queues.entry(item.queue.map_or_else(between, Queue::Named)).or_default().push(*item);
    }
    let mut bounds = Bounds::default();
    for items in queues.values() {
        let mut dispatches: Vec<Dispatch> = items.iter().map(|item| dispatch(points, item.send)).collect();
        dispatches.sort_by_key(|dispatch| (dispatch.at, dispatch.send));
        let mut receipts: Vec<u32> = items.iter().map(|item| item.receive).collect();
        receipts.sort_by_key(|receipt| (points.stamp(*receipt), *receipt));
        let known = items.iter().filter_map(|item| item.room).max();
        let (room, place, trust) = match known {
            Some(room) => {
                let room = (room as usize).max(1);
                bounds.known.push(room);
                let place = place(points, &dispatches, &receipts, room);
                (room, place, Trust::Explicit)
            }
            None => match inferred(points, &dispatches, &receipts) {
                Some((room, place)) => {
                    bounds.inferred.push(room);
                    (room, place, Trust::Inferred)
                }
                None => continue,
            },
        };
        for (dispatch, &receipt) in dispatches.iter().skip(room).zip(&receipts) {
            let to = match place {
                Place::Before => Some(dispatch.send),
                Place::Behind => dispatch.next.map(|(next, _)| next),
            };
            let to = to.filter(|_| trust == Trust::Explicit || is_kept(points, dispatch, receipt, place));
            let candidate = |to| Candidate { from: receipt, to, kind: Kind::BackPressure, trust };
            bounds.candidates.extend(to.map(candidate));
        }
    }
    bounds
}

fn dispatch(points: &Points, send: u32) -> Dispatch {
    let next = points.next_mark(send).map(|next| (next, points.stamp(next)));
    let before = points.last_mark(send).map_or(Stamp::default(), |last| points.stamp(last));
    Dispatch { before, send, at: points.stamp(send), next }
}

/// Whether a dispatch waits for room after this receipt, or has it.
fn is_kept(points: &Points, dispatch: &Dispatch, receipt: u32, place: Place) -> bool {
    match place {
        Place::Before => points.stamp(receipt) <= dispatch.at,
        Place::Behind => dispatch.next.is_none_or(|(_, at)| points.stamp(receipt) <= at),
    }
}

/// Whether a receipt came while the sender waited for it, as it seems.
fn is_tight(points: &Points, dispatch: &Dispatch, receipt: u32, place: Place) -> bool {
    let end = dispatch.next.map_or(dispatch.at, |(_, at)| at);
    let (since, until) =
        if place == Place::Before { (dispatch.before, dispatch.at) } else { (dispatch.at, end) };
    ends_wait(since, points.stamp(receipt), until)
}

/// Whether what came seems to have ended a wait between two other moments: nearly all of it was over then.
pub(in crate::analyze) fn ends_wait(since: Stamp, came: Stamp, until: Stamp) -> bool {
    let is_late = || (until.time - came.time).saturating_mul(LEAST_WAIT) <= until.time - since.time;
    since < came && came <= until && is_late()
}

/// Returns how many dispatches waited for room, if it is so much.
fn waits(points: &Points, dispatches: &[Dispatch], receipts: &[u32], room: usize, place: Place) -> usize {
    let pairs = dispatches.iter().skip(room).zip(receipts);
    pairs.filter(|(dispatch, receipt)| is_tight(points, dispatch, **receipt, place)).count()
}

/// Returns where senders wait for room.
fn place(points: &Points, dispatches: &[Dispatch], receipts: &[u32], room: usize) -> Place {
    let count = |place| waits(points, dispatches, receipts, room, place);
    if count(Place::Before) >= count(Place::Behind) { Place::Before } else { Place::Behind }
}

/// Returns the room of a queue, if senders waited for it often enough that it shows.
fn inferred(points: &Points, dispatches: &[Dispatch], receipts: &[u32]) -> Option<(usize, Place)> {
    let count = dispatches.len();
    let is_valid = |room: usize, place: Place| {
        let pairs = dispatches.iter().skip(room).zip(receipts);
        let exceptions = pairs.filter(|(dispatch, receipt)| !is_kept(points, dispatch, **receipt, place));
        exceptions.take(count / EXCEPTIONS + 1).count() <= count / EXCEPTIONS
    };
    for room in 1..count.min(MOST_ROOM) {
        for place in [Place::Before, Place::Behind] {
            if is_valid(room, place) {
                let found = waits(points, dispatches, receipts, room, place);
                if found >= (count / LEAST_WAITS).max(3) {
                    return Some((room, place));
                }
            }
        }
    }
    None
}
