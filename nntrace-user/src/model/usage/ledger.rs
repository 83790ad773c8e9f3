//! Time of one thread that no section has taken yet, in its order.

use super::{Place, Usage, Wakes, clocks::Clocks};

/// Stretches of a thread that are kept one by one, less than 0.5 MB. Of more, older neighbours are summed, up to a thousandth of
/// the time: what the thread did in the rest of a sum in which a section began is not known.
const MOST: usize = 8_192;
/// Stretches that are kept of a thread that has had no section.
const MOST_WITHOUT_SECTIONS: usize = 512;

/// State of a thread for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// It ran on this CPU.
    OnCpu(u32),
    /// It waited for a CPU.
    Runnable,
    /// It slept so that signals wake it, or was stopped.
    Sleeping,
    /// It slept so that no signal wakes it.
    Uninterruptible,
    /// Not known.
    Unknown,
}

/// A thread was in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Thread.
    pub(super) tid: u32,
    /// Begin, ns.
    pub(super) begin: u64,
    /// End, ns.
    pub(super) end: u64,
    /// State.
    pub(super) doing: Doing,
    /// Whether it got the CPU at the begin, and if it was woken for that, when (ns).
    pub(super) woken: Option<u64>,
    /// Whether it leaves the CPU at the end.
    pub(super) leaves: bool,
}

#[derive(Clone, Debug)]
enum Content {
    Ran {
        cpu: u32,
        place: Place,
    },
    Runnable,
    Sleeping,
    Uninterruptible,
    Unknown,
    /// Taken by a section.
    Taken,
    /// A wake-up, of no length: CPU, state, time from it to the end of the state (ns).
    Wake(u32, Option<u32>, Option<u64>),
    /// Several stretches.
    Mixed(Box<Usage>),
}

impl Content {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ran { cpu, place }, Self::Ran { cpu: other_cpu, place: other }) => {
                cpu == other_cpu && place == other
            }
            (Self::Runnable, Self::Runnable)
            | (Self::Sleeping, Self::Sleeping)
            | (Self::Uninterruptible, Self::Uninterruptible)
            | (Self::Unknown, Self::Unknown)
            | (Self::Taken, Self::Taken) => true,
            _ => false,
        }
    }
}

#[derive(Clone, Debug)]
struct Stretch {
    begin: u64,
    end: u64,
    content: Content,
}

impl Stretch {
    /// Adds the next one, whose place in it is forgotten.
    fn absorb(&mut self, next: &Self) {
        if let Content::Mixed(mixed) = &mut self.content {
            next.add_to(mixed);
        } else {
            let mut mixed = Usage::default();
            self.add_to(&mut mixed);
            next.add_to(&mut mixed);
            self.content = Content::Mixed(Box::new(mixed));
        }
        self.end = next.end;
    }

    fn add_to(&self, usage: &mut Usage) {
        let ns = self.end - self.begin;
        match &self.content {
            Content::Ran { place, .. } => *usage.ran.entry(*place).or_default() += ns,
            Content::Runnable => usage.runnable += ns,
            Content::Sleeping => usage.sleeping += ns,
            Content::Uninterruptible => usage.uninterruptible += ns,
            Content::Unknown => usage.unknown += ns,
            Content::Taken => {}
            Content::Wake(cpu, state, latency) => {
                usage.wakes.entry((*cpu, *state)).or_default().add(&Wakes {
                    count: 1,
                    measured: u64::from(latency.is_some()),
                    latency: latency.unwrap_or(0),
                    longest: latency.unwrap_or(0),
                });
            }
            Content::Mixed(mixed) => usage.merge(mixed),
        }
    }
}

/// Ledger of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    stretches: Vec<Stretch>,
    has_sections: bool,
    /// Unknown time outside of sections that stands in no stretch, ns.
    unknown: u64,
}

impl Ledger {
    /// The thread was in a state.
    pub(super) fn step(&mut self, step: &Step, clocks: &mut Clocks) {
        let &Step { begin, end, doing, woken, leaves, .. } = step;
        let content = match doing {
            Doing::OnCpu(cpu) => {
                if let Some(woken) = woken
                    && let Some(stay) = clocks.idle_before(cpu, begin)
                    && woken >= stay.begin
                {
                    let wake = Content::Wake(cpu, stay.state, stay.end.checked_sub(woken));
                    self.push(begin, begin, wake);
                }
                clocks.visit(cpu, begin, end, |begin, end, place| {
                    self.push(begin, end, Content::Ran { cpu, place });
                });
                if leaves {
                    clocks.leave(cpu, end);
                }
                return;
            }
            Doing::Runnable => Content::Runnable,
            Doing::Sleeping => Content::Sleeping,
            Doing::Uninterruptible => Content::Uninterruptible,
            Doing::Unknown => Content::Unknown,
        };
        self.push(begin, end, content);
    }

    fn push(&mut self, begin: u64, end: u64, content: Content) {
        if let Some(last) = self.stretches.last_mut()
            && last.end == begin
            && last.content.is_same(&content)
        {
            last.end = end;
            return;
        }
        self.stretches.push(Stretch { begin, end, content });
        if self.stretches.len() > if self.has_sections { MOST } else { MOST_WITHOUT_SECTIONS } {
            self.sum_older();
        }
    }

    /// Sums neighbours among the older ones, as long as they are short against all of the thread's time.
    #[cold]
    fn sum_older(&mut self) {
        let count = self.stretches.len();
        let (Some(first), Some(last)) = (self.stretches.first(), self.stretches.last()) else { return };
        let longest = (last.end - first.begin) / count as u64 * 8;
        let newer = self.stretches.split_off(count / 4 * 3);
        let mut summed: Vec<Stretch> = Vec::with_capacity(count);
        for stretch in self.stretches.drain(..) {
            match summed.last_mut() {
                Some(last) if stretch.end - last.begin <= longest => last.absorb(&stretch),
                _ => summed.push(stretch),
            }
        }
        summed.extend(newer);
        self.stretches = summed;
    }

    /// A section, or a part of one, from `begin` to `end` (ns), takes what it is made of: so much (ns) without the sections in it.
    pub(super) fn claim(&mut self, begin: u64, end: u64, exclusive: u64) -> Usage {
        self.has_sections = true;
        let mut usage = Usage::default();
        while let Some(last) = self.stretches.pop() {
            if last.begin >= begin {
                last.add_to(&mut usage);
                continue;
            }
            if last.end <= begin {
                self.stretches.push(last);
                break;
            }
            if let Content::Mixed(mixed) = &last.content {
                // No one knows which part of it is whose.
                let inside = last.end - begin;
                self.unknown += mixed.total().saturating_sub(inside);
                usage.unknown += inside.min(mixed.total());
            } else {
                let first = Stretch { end: begin, ..last.clone() };
                Stretch { begin, ..last }.add_to(&mut usage);
                self.stretches.push(first);
            }
            break;
        }
        if begin < end {
            self.push(begin, end, Content::Taken);
        }
        let known = usage.total();
        if known > exclusive {
            // Sections that were lost on the way are in it.
            self.unknown += known - exclusive;
            return Usage { unknown: exclusive, ..Usage::default() };
        }
        usage.unknown += exclusive - known;
        usage
    }

    /// Makes unknown all that it did since then (ns), but that it ran on other CPUs than this one.
    pub(super) fn doubt(&mut self, since: u64, but_on_others_than: Option<u32>) {
        let first = self.stretches.partition_point(|stretch| stretch.end <= since);
        for stretch in self.stretches.split_off(first) {
            let is_certain = match stretch.content {
                Content::Taken | Content::Mixed(_) => true,
                Content::Ran { cpu, .. } => but_on_others_than.is_some_and(|lost| lost != cpu),
                _ => false,
            };
            if is_certain {
                self.stretches.push(stretch);
                continue;
            }
            let from = stretch.begin.max(since);
            if stretch.begin < from {
                self.push(stretch.begin, from, stretch.content);
            }
            if from < stretch.end {
                self.push(from, stretch.end, Content::Unknown);
            }
        }
    }

    /// Returns the time until `end` (ns) that no section has taken.
    pub(super) fn rest(&self, end: u64) -> Usage {
        let mut usage = Usage { unknown: self.unknown, ..Usage::default() };
        for stretch in &self.stretches {
            if stretch.end <= end {
                stretch.add_to(&mut usage);
            } else if stretch.begin < end {
                Stretch { end, ..stretch.clone() }.add_to(&mut usage);
            }
        }
        usage
    }
}
