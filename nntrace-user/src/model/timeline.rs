//! The states of one CPU or cluster, stretch after stretch, in bounded memory.
//!
//! A timeline tiles its time without gap or overlap. One that has too many stretches is coarsened: it forgets in which order
//! things were within short stretches of time, and keeps for how long each of them was, to the nanosecond.

mod together;

use std::collections::BTreeMap;

pub(crate) use together::{longest, visit_together};

use super::frequency_limits::FrequencyLimits;

/// Stretches that are kept one by one, over all timelines: about 16 MB.
pub(crate) const MAX_STEPS: usize = 1 << 20;

/// The timelines of all clusters and CPUs in one window.
#[derive(Clone, Debug, Default)]
pub struct Timelines {
    /// By name, in the order of the topology.
    pub(crate) clusters: Vec<(String, Timeline)>,
    /// By CPU.
    pub(crate) cpus: BTreeMap<u32, Timeline>,
    /// Limits of frequencies, in order of time.
    pub(crate) limits: FrequencyLimits,
}

/// The state of a CPU or a cluster for a part of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum CpuState {
    /// Running at this many kHz, or at an unknown frequency.
    Running(Option<u32>),
    /// Idle in the state of that number.
    Idle(u32),
    /// Idle, no one knows how deep.
    IdleUnknown,
    /// Offline.
    Offline,
    /// Nothing known.
    Unknown,
}

/// Buckets of a coarsened timeline, at most; far more than a picture has columns.
const MAX_BUCKETS: usize = 8_192;

/// The states of one CPU or cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Timeline {
    begin: u64,
    end: u64,
    /// How many stretches are kept one by one.
    cap: usize,
    /// Ends of stretches, and what was done until then.
    steps: Vec<(u64, CpuState)>,
    /// Instead of `steps`, once there are too many.
    buckets: Option<Buckets>,
}

/// Equal stretches of time with the sum of each state in them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Buckets {
    width: u64,
    all: Vec<Parts>,
}

/// Times (ns) by what was done.
pub(crate) type Parts = Vec<(CpuState, u64)>;

/// A stretch of a timeline. The parts add up to its length; of one with several, the order is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// First instant, ns.
    pub begin: u64,
    /// Last one, ns.
    pub end: u64,
    /// Times by state.
    pub parts: Parts,
}

impl Timeline {
    /// A timeline that begins at `begin` (ns) and keeps at most `cap` stretches one by one.
    #[must_use]
    pub(crate) fn starting_at(begin: u64, cap: usize) -> Self {
        Self { begin, end: begin, cap: cap.max(1), steps: Vec::new(), buckets: None }
    }

    /// First instant, ns.
    #[must_use]
    pub(crate) fn begin(&self) -> u64 {
        self.begin
    }

    /// Resolution, ns; `None` when every stretch is kept.
    #[must_use]
    pub(crate) fn resolution(&self) -> Option<u64> {
        self.buckets.as_ref().map(|buckets| buckets.width)
    }

    /// Adds what was done from where it ends now until `end` (ns).
    pub(crate) fn push(&mut self, end: u64, state: CpuState) {
        if end <= self.end {
            return;
        }
        let begin = std::mem::replace(&mut self.end, end);
        if let Some(buckets) = &mut self.buckets {
            buckets.add(begin - self.begin, end - self.begin, state);
            return;
        }
        match self.steps.last_mut() {
            Some((until, last)) if *last == state => *until = end,
            _ => self.steps.push((end, state)),
        }
        if self.steps.len() > self.cap {
            self.coarsen();
        }
    }

    /// Replaces all of it, up to now, by one state.
    pub(crate) fn was(&mut self, state: CpuState) {
        let end = std::mem::replace(&mut self.end, self.begin);
        self.steps.clear();
        self.buckets = None;
        self.push(end, state);
    }

    fn coarsen(&mut self) {
        // Half of the buckets now, so that there is room to grow.
        let width = (self.end - self.begin).div_ceil(MAX_BUCKETS as u64 / 2);
        self.buckets = Some(self.in_buckets(width));
        self.steps = Vec::new();
    }

    /// The timeline in at most this many pieces, in order of time: every stretch separately where that is possible, else equal
    /// stretches of time with what was done in each.
    #[must_use]
    pub(crate) fn pieces(&self, at_most: usize) -> Vec<Piece> {
        let at_most = at_most.max(1);
        let Some(buckets) = &self.buckets else {
            if self.steps.len() <= at_most {
                let piece = |(begin, end, state)| Piece { begin, end, parts: vec![(state, end - begin)] };
                return self.stretches().map(piece).collect();
            }
            let width = (self.end - self.begin).div_ceil(at_most as u64);
            return self.in_buckets(width).pieces(1, self.begin, self.end);
        };
        buckets.pieces(buckets.all.len().div_ceil(at_most).max(1), self.begin, self.end)
    }

    fn stretches(&self) -> impl Iterator<Item = (u64, u64, CpuState)> {
        let begins = std::iter::once(self.begin).chain(self.steps.iter().map(|(end, _)| *end));
        begins.zip(&self.steps).map(|(begin, &(end, state))| (begin, end, state))
    }

    fn in_buckets(&self, width: u64) -> Buckets {
        let mut buckets = Buckets { width: width.max(1), all: Vec::new() };
        for (begin, end, state) in self.stretches() {
            buckets.add(begin - self.begin, end - self.begin, state);
        }
        buckets
    }

    /// Times by state in `columns` equal parts of the time from `begin` to `end` (ns). Where the order
    /// within a piece is not known, its parts are spread over it evenly.
    #[must_use]
    pub(crate) fn columns(&self, begin: u64, end: u64, columns: usize) -> Vec<Parts> {
        let mut slots = vec![Parts::new(); columns];
        let length = u128::from(end.saturating_sub(begin));
        if length == 0 || columns == 0 {
            return slots;
        }
        let edge = |column: usize| begin + (length * column as u128 / columns as u128) as u64;
        self.visit(|first, last, parts| {
            let from = first.max(begin);
            let column = u128::from(from - begin) * columns as u128 / length;
            let mut column = usize::try_from(column).unwrap_or(columns);
            while column < columns && edge(column) < last {
                let overlap = last.min(edge(column + 1)).saturating_sub(from.max(edge(column)));
                for &(state, ns) in parts {
                    let part = u128::from(ns) * u128::from(overlap) / u128::from(last - first);
                    add(&mut slots[column], state, part as u64);
                }
                column += 1;
            }
        });
        slots
    }

    /// How long each thing was done, ns.
    #[must_use]
    pub(crate) fn totals(&self) -> Parts {
        let mut totals = Parts::new();
        self.visit(|_, _, parts| parts.iter().for_each(|&(state, ns)| add(&mut totals, state, ns)));
        totals.sort_unstable();
        totals
    }

    /// Shows every piece: first instant, last instant, parts.
    pub(crate) fn visit(&self, mut piece: impl FnMut(u64, u64, &[(CpuState, u64)])) {
        let Some(buckets) = &self.buckets else {
            for (begin, end, state) in self.stretches() {
                piece(begin, end, &[(state, end - begin)]);
            }
            return;
        };
        for bucket in buckets.pieces(1, self.begin, self.end) {
            piece(bucket.begin, bucket.end, &bucket.parts);
        }
    }
}

impl Buckets {
    /// Adds a stretch, whose ends are counted from the begin of the timeline.
    fn add(&mut self, mut begin: u64, end: u64, state: CpuState) {
        while end.div_ceil(self.width) > MAX_BUCKETS as u64 {
            self.widen();
        }
        while begin < end {
            let number = begin / self.width;
            let edge = ((number + 1) * self.width).min(end);
            let number = number as usize;
            if self.all.len() <= number {
                self.all.resize(number + 1, Parts::new());
            }
            add(&mut self.all[number], state, edge - begin);
            begin = edge;
        }
    }

    /// Makes one of every two.
    fn widen(&mut self) {
        self.width *= 2;
        self.all = self.all.chunks(2).map(sum).collect();
    }

    /// This many buckets as one piece each.
    fn pieces(&self, together: usize, begin: u64, end: u64) -> Vec<Piece> {
        let width = self.width * together as u64;
        let pieces = (0..).zip(self.all.chunks(together)).map(|(number, buckets)| Piece {
            begin: begin + number * width,
            end: (begin + (number + 1) * width).min(end),
            parts: sum(buckets),
        });
        pieces.collect()
    }
}

fn sum(all: &[Parts]) -> Parts {
    let mut sum = Parts::new();
    all.iter().flatten().for_each(|&(state, ns)| add(&mut sum, state, ns));
    sum
}

fn add(parts: &mut Parts, state: CpuState, ns: u64) {
    if ns == 0 {
        return;
    }
    match parts.iter_mut().find(|(other, _)| *other == state) {
        Some((_, sum)) => *sum += ns,
        None => parts.push((state, ns)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: CpuState = CpuState::Running(Some(500));
    const B: CpuState = CpuState::Idle(1);

    #[test]
    fn stretches_of_one_state_are_one_and_of_no_length_are_none() {
        let mut timeline = Timeline::starting_at(100, 10);
        for (end, state) in [(100, B), (150, A), (150, B), (200, A), (260, B)] {
            timeline.push(end, state);
        }
        assert_eq!(
            timeline.pieces(10),
            [
                Piece { begin: 100, end: 200, parts: vec![(A, 100)] },
                Piece { begin: 200, end: 260, parts: vec![(B, 60)] }
            ]
        );
        assert_eq!(timeline.resolution(), None);
        timeline.was(CpuState::Unknown);
        assert_eq!(timeline.totals(), [(CpuState::Unknown, 160)]);
    }

    #[test]
    fn columns_share_what_lies_on_their_edges() {
        let mut timeline = Timeline::starting_at(0, 10);
        timeline.push(15, A);
        timeline.push(40, B);
        let columns = timeline.columns(0, 40, 4);
        assert_eq!(columns, [vec![(A, 10)], vec![(A, 5), (B, 5)], vec![(B, 10)], vec![(B, 10)]]);
        assert_eq!(timeline.columns(0, 0, 2), [vec![], vec![]]);
    }

    proptest! {
        /// Whatever the cap, and however few pieces are asked for: nothing is lost, and the pieces tile the time.
        #[test]
        fn coarse_or_not_the_sums_are_exact(
            stretches in prop::collection::vec((0_u64..2_000, 0_u32..4), 1..400),
            cap in 1_usize..50,
            at_most in 1_usize..60,
        ) {
            let mut exact = Timeline::starting_at(7, usize::MAX);
            let mut coarse = Timeline::starting_at(7, cap);
            let mut end = 7;
            for (ns, state) in stretches {
                end += ns;
                for timeline in [&mut exact, &mut coarse] {
                    timeline.push(end, CpuState::Idle(state));
                }
            }
            prop_assert_eq!(exact.totals(), coarse.totals());
            for timeline in [&exact, &coarse] {
                let pieces = timeline.pieces(at_most);
                prop_assert!(pieces.len() <= at_most);
                let mut at = 7;
                for piece in &pieces {
                    prop_assert_eq!(piece.begin, at);
                    let sum: u64 = piece.parts.iter().map(|(_, ns)| ns).sum();
                    prop_assert_eq!(sum, piece.end - piece.begin);
                    at = piece.end;
                }
                prop_assert_eq!(at, end);
            }
        }
    }

    #[test]
    fn a_long_lane_stays_small() {
        let mut timeline = Timeline::starting_at(0, 1_000);
        for step in 0..200_000 {
            timeline.push((step + 1) * 1_000, if step % 2 == 0 { A } else { B });
        }
        assert!(timeline.pieces(usize::MAX).len() <= MAX_BUCKETS);
        assert_eq!(timeline.totals(), [(A, 100_000_000), (B, 100_000_000)]);
        assert!(timeline.resolution().is_some_and(|ns| ns <= 200_000_000 / (MAX_BUCKETS as u64 / 4)));
    }
}
