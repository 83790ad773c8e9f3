//! Events that the tracer dropped: their number, and the gaps that they leave.
//!
//! No format has the time of a loss. Its notice comes before the first event that the CPU recorded afterwards, so the
//! gap extends from the previous event of this CPU, or from the begin of the trace.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::MAX_CPU;

/// Notice of a loss in an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Events are missing before the next one of this CPU (`CPU:1 [LOST 9 EVENTS]`).
    Gap {
        /// CPU of the loss.
        cpu: u32,
        /// Number of events, if the notice has one.
        events: Option<u64>,
    },
    /// The next event of this CPU is the first in a ring that was overwritten (`##### CPU 1 buffer started ####`).
    Started {
        /// CPU of the ring.
        cpu: u32,
    },
    /// Events before the first remaining one of each CPU were overwritten (`entries-in-buffer/entries-written`).
    Overwritten {
        /// Number of events of all CPUs together.
        events: u64,
    },
    /// Events are missing that are of no CPU, or of none that is known: as many at least (packets of a program that
    /// Perfetto's recorder lost, events without a time).
    OfNoCpu {
        /// Number of events.
        events: u64,
    },
    /// All losses of a CPU, including those of its gaps (the statistics in a `trace.dat`).
    Total {
        /// CPU of the losses.
        cpu: u32,
        /// Number of events.
        events: u64,
    },
}

/// Time in which events of a CPU are missing, up to one of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Gap {
    /// Last event before the gap, ns; `None` without any.
    pub since: Option<u64>,
    /// CPU of the gap.
    pub cpu: u32,
}

/// Finder of gaps. Events and losses of each input come in order of time.
#[derive(Debug)]
pub(crate) struct Gaps {
    inputs: Vec<Rings>,
    /// Number of the current input.
    turn: usize,
    /// Gaps that have ended, except empty ones, in order of their ends.
    pub found: Vec<Gap>,
}

/// Rings of the CPUs of one input.
#[derive(Debug, Default)]
struct Rings {
    cpus: Vec<Ring>,
    are_overwritten: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    /// Time of the last event, ns.
    last: Option<u64>,
    missing: Missing,
}

/// State of a ring: whether events are missing before the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Missing {
    #[default]
    No,
    /// Missing if there is a next one.
    OfOverwritten,
    Yes,
}

impl Default for Gaps {
    fn default() -> Self {
        Self { inputs: vec![Rings::default()], turn: 0, found: Vec::new() }
    }
}

impl Gaps {
    /// Switches to an input, which the following events are from.
    pub(crate) fn turn(&mut self, input: usize) {
        if self.inputs.len() <= input {
            self.inputs.resize_with(input + 1, Rings::default);
        }
        self.turn = input;
    }

    /// Takes an event that a CPU recorded at `time` (ns). Returns the gap that it ends.
    #[inline]
    pub(crate) fn event(&mut self, cpu: u32, time: u64) -> Option<Gap> {
        let ring = self.ring(cpu)?;
        let gap = (ring.missing != Missing::No).then_some(Gap { since: ring.last, cpu });
        *ring = Ring { last: Some(time), missing: Missing::No };
        self.found.extend(gap.filter(|gap| gap.since != Some(time)));
        gap
    }

    /// Takes a loss. Returns the gap that it opens, if it is of one CPU.
    pub(crate) fn lost(&mut self, loss: Loss) -> Option<Gap> {
        match loss {
            Loss::Gap { cpu, .. } | Loss::Started { cpu } => {
                let ring = self.ring(cpu)?;
                ring.missing = Missing::Yes;
                Some(Gap { since: ring.last, cpu })
            }
            Loss::Overwritten { .. } => {
                let rings = &mut self.inputs[self.turn];
                rings.are_overwritten = true;
                rings.cpus.iter_mut().for_each(|ring| ring.missing = Missing::OfOverwritten);
                None
            }
            Loss::OfNoCpu { .. } | Loss::Total { .. } => None,
        }
    }

    /// Ends the inputs. Returns the gaps that no event ends; they are also in `found`.
    pub(crate) fn end(&mut self) -> Vec<Gap> {
        let mut open = Vec::new();
        for (cpu, ring) in self.inputs.iter_mut().flat_map(|rings| (0..).zip(&mut rings.cpus)) {
            if std::mem::take(&mut ring.missing) == Missing::Yes {
                open.push(Gap { since: ring.last, cpu });
            }
        }
        self.found.extend(&open);
        open
    }

    #[inline]
    fn ring(&mut self, cpu: u32) -> Option<&mut Ring> {
        let rings = &mut self.inputs[self.turn];
        let place = cpu as usize;
        if place >= rings.cpus.len() {
            if cpu > MAX_CPU {
                return None;
            }
            let missing = if rings.are_overwritten { Missing::OfOverwritten } else { Missing::No };
            rings.cpus.resize(place + 1, Ring { last: None, missing });
        }
        rings.cpus.get_mut(place)
    }
}

/// Counts of lost events, by input.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<usize, OfInput>);

/// Losses of one input.
#[derive(Debug, Default)]
struct OfInput {
    gaps: BTreeMap<u32, OfGaps>,
    totals: BTreeMap<u32, u64>,
    overwritten: u64,
    /// Events of no CPU, as many at least.
    of_no_cpu: u64,
    /// Whether it has gaps that do not count.
    leaves_out: bool,
}

/// Gaps of a CPU.
#[derive(Debug, Default)]
struct OfGaps {
    /// Number of events, at least one for each gap without a number.
    events: u64,
    /// Whether some have no number.
    is_least: bool,
    /// Whether no loss is certain: the kernel marks the begin of every ring where one of them was overwritten.
    is_presumed: bool,
}

/// Numbers of lost events.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Total.
    pub events: u64,
    /// Numbers by CPU, as far as they are known.
    pub by_cpu: BTreeMap<u32, u64>,
    /// Whether there may have been more.
    pub at_least: bool,
}

impl Tally {
    /// Counts a loss of an input; `counts` if it concerns the window.
    pub(crate) fn add(&mut self, input: usize, loss: Loss, counts: bool) {
        let input = self.0.entry(input).or_default();
        match loss {
            Loss::Gap { .. } | Loss::Started { .. } if !counts => input.leaves_out = true,
            Loss::Gap { cpu, events } => {
                let gaps = input.gaps.entry(cpu).or_default();
                gaps.events = gaps.events.saturating_add(events.unwrap_or(1));
                gaps.is_least |= events.is_none();
            }
            Loss::Started { cpu } => input.gaps.entry(cpu).or_default().is_presumed = true,
            Loss::Overwritten { events } => input.overwritten = input.overwritten.saturating_add(events),
            Loss::OfNoCpu { events } => input.of_no_cpu = input.of_no_cpu.saturating_add(events),
            Loss::Total { cpu, events } => {
                let total = input.totals.entry(cpu).or_default();
                *total = total.saturating_add(events);
            }
        }
    }

    /// Returns the largest certain numbers. Two notices of one input may be about the same loss: the larger number
    /// counts.
    #[must_use]
    pub(crate) fn lost(&self) -> Lost {
        let mut all = Lost::default();
        for input in self.0.values() {
            let mut sum = 0_u64;
            let (mut is_least, mut is_presumed) = (false, false);
            let totals = input.totals.iter().filter(|_| !input.leaves_out);
            let cpus = input.gaps.keys().chain(totals.clone().map(|(cpu, _)| cpu));
            for &cpu in cpus.collect::<BTreeSet<_>>() {
                let total = totals.clone().find(|(of, _)| **of == cpu).map(|(_, events)| *events);
                let gaps = input.gaps.get(&cpu);
                let of_gaps = gaps.map_or(0, |gaps| gaps.events);
                let events = of_gaps.max(total.unwrap_or(0));
                is_least |=
                    gaps.is_some_and(|gaps| gaps.is_least) && total.is_none_or(|total| total < of_gaps);
                is_presumed |= gaps.is_some_and(|gaps| gaps.is_presumed);
                if events > 0 {
                    let of_cpu = all.by_cpu.entry(cpu).or_default();
                    *of_cpu = of_cpu.saturating_add(events);
                }
                sum = sum.saturating_add(events);
            }
            let events = sum.max(input.overwritten).max(is_presumed.into());
            all.events = all.events.saturating_add(events).saturating_add(input.of_no_cpu);
            all.at_least |= input.of_no_cpu > 0;
            all.at_least |= match input.overwritten {
                0 => is_least || is_presumed,
                overwritten => overwritten < sum,
            };
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(cpu: u32, events: Option<u64>) -> Loss {
        Loss::Gap { cpu, events }
    }

    fn lost(losses: &[Loss]) -> (u64, bool) {
        let mut tally = Tally::default();
        for loss in losses {
            tally.add(0, *loss, true);
        }
        let Lost { events, at_least, .. } = tally.lost();
        (events, at_least)
    }

    #[test]
    fn a_gap_reaches_from_the_event_before_it_on_its_cpu() {
        let mut gaps = Gaps::default();
        assert_eq!(gaps.event(0, 10), None);
        assert_eq!(gaps.event(1, 20), None);
        gaps.lost(gap(0, Some(5)));
        assert_eq!(gaps.event(1, 30), None);
        assert_eq!(gaps.event(0, 40), Some(Gap { since: Some(10), cpu: 0 }));
        assert_eq!(gaps.event(0, 50), None);
        gaps.lost(gap(0, None));
        assert_eq!(gaps.event(0, 50), Some(Gap { since: Some(50), cpu: 0 }));
        gaps.lost(gap(2, None));
        assert_eq!(gaps.end(), [Gap { since: None, cpu: 2 }]);
        assert_eq!(gaps.end(), []);
        assert_eq!(gaps.found.len(), 2);
    }

    #[test]
    fn rings_of_an_input_that_was_overwritten_begin_with_a_gap() {
        let mut gaps = Gaps::default();
        gaps.lost(Loss::Overwritten { events: 9 });
        assert_eq!(gaps.event(3, 10), Some(Gap { since: None, cpu: 3 }));
        assert_eq!(gaps.event(3, 11), None);
        gaps.turn(1);
        assert_eq!(gaps.event(3, 12), None);
        assert_eq!(gaps.end(), []);
    }

    #[test]
    fn the_largest_number_that_is_certain_counts() {
        assert_eq!(lost(&[]), (0, false));
        assert_eq!(lost(&[gap(0, Some(5)), gap(0, Some(6)), gap(1, Some(1))]), (12, false));
        assert_eq!(lost(&[gap(0, Some(5)), gap(0, None)]), (6, true));
        assert_eq!(lost(&[Loss::Overwritten { events: 9 }, Loss::Started { cpu: 1 }]), (9, false));
        assert_eq!(lost(&[Loss::Overwritten { events: 9 }, gap(1, None)]), (9, false));
        assert_eq!(lost(&[Loss::Overwritten { events: 9 }, gap(1, Some(10))]), (10, true));
        assert_eq!(lost(&[Loss::Started { cpu: 1 }, Loss::Started { cpu: 2 }]), (1, true));
        assert_eq!(lost(&[gap(0, None), gap(0, None), Loss::Total { cpu: 0, events: 70 }]), (70, false));
        assert_eq!(lost(&[gap(0, None), gap(1, None), Loss::Total { cpu: 0, events: 70 }]), (71, true));
    }

    #[test]
    fn what_is_of_no_cpu_is_beside_what_cpus_lost() {
        let none = Loss::OfNoCpu { events: 2 };
        assert_eq!(lost(&[none]), (2, true));
        assert_eq!(lost(&[none, gap(0, Some(5)), none, Loss::Total { cpu: 0, events: 7 }]), (11, true));
        let mut gaps = Gaps::default();
        assert_eq!(gaps.lost(none), None);
        assert_eq!(gaps.event(0, 10), None);
    }

    #[test]
    fn a_total_of_all_time_is_none_of_a_part() {
        let mut tally = Tally::default();
        tally.add(0, gap(0, None), true);
        tally.add(0, gap(0, None), false);
        tally.add(0, Loss::Total { cpu: 0, events: 70 }, true);
        assert_eq!(tally.lost(), Lost { events: 1, by_cpu: [(0, 1)].into(), at_least: true });
    }
}
