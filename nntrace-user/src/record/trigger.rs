//! Triggers: what has the last seconds of a run written.
//!
//! `NAME > DURATION` or `NAME >= DURATION`, where the name of a section may have `*` and `?` in it, or is a layer and phase
//! such as `LR_PE`; or `lost`.

use std::str::FromStr;

use nntrace_common::{layer::Tag, record::SpanRecord};
use rustc_hash::FxHashMap;

use super::cause::Cause;
use crate::model::{
    condition::{self, ConditionError, Sign},
    function_names::Names,
    name_pattern::glob,
};

/// Triggers of a run at most.
pub const MOST_TRIGGERS: usize = 64;

/// Names whose triggers are remembered at most.
const MOST_NAMES: usize = 65_536;

/// Condition under which the last seconds of a run are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Text, as it was given.
    text: String,
    condition: Condition,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Condition {
    /// A section took so long, ns.
    Section { of: Sections, least: u64 },
    /// Records were lost.
    Lost,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Sections {
    /// Sections of a layer and phase.
    Tagged(Tag),
    /// Sections whose names match a pattern.
    Named(String),
}

const COMPARISON: &str = "> or >= and a duration behind the name, such as 'compute > 20ms', or the word lost";
const NAME: &str =
    "the name of a section in front of the >, such as ANeuralNetworksExecution_compute, *_compute or LR_PE";
const DURATION: &str = "a duration behind the >, such as 20ms, 500us or 1s";

impl FromStr for Trigger {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let whole = text.trim();
        if whole == "lost" {
            return Ok(Self { text: whole.to_owned(), condition: Condition::Lost });
        }
        let comparison = || ConditionError::new(text, text.trim_end().len(), COMPARISON);
        let parts = condition::Condition::split(text).ok_or_else(comparison)?;
        let is_inclusive = match parts.sign {
            Sign::Over => false,
            Sign::AtLeast => true,
            Sign::Under | Sign::AtMost => return Err(comparison()),
        };
        if parts.name.is_empty() {
            return Err(parts.name_error(NAME));
        }
        let ns = condition::duration_ns(parts.value).ok_or_else(|| parts.value_error(DURATION))?;
        let of = parts.name.parse().map_or_else(|_| Sections::Named(parts.name.to_owned()), Sections::Tagged);
        let least = if is_inclusive { ns } else { ns.saturating_add(1) };
        Ok(Self { text: whole.to_owned(), condition: Condition::Section { of, least } })
    }
}

/// Triggers as they are evaluated: in constant time and without allocation, but for names that are new.
pub(super) struct Triggers {
    all: Vec<Trigger>,
    /// Shortest duration for which any of them fires, ns.
    least: u64,
    /// Triggers of each layer and phase, by number: one bit each.
    by_tag: [u64; Tag::COUNT],
    /// Triggers of names, as far as these were met.
    by_name: FxHashMap<u64, u64>,
    waits_for_losses: bool,
}

impl Triggers {
    /// Creates the evaluation of triggers; of more than [`MOST_TRIGGERS`] the first ones.
    pub(super) fn new(mut triggers: Vec<Trigger>) -> Self {
        triggers.truncate(MOST_TRIGGERS);
        let mut by_tag = [0; Tag::COUNT];
        let mut least = u64::MAX;
        for (number, trigger) in triggers.iter().enumerate() {
            let Condition::Section { of, least: duration } = &trigger.condition else { continue };
            least = least.min(*duration);
            if let Sections::Tagged(tag) = of {
                by_tag[usize::from(tag.index())] |= 1 << number;
            }
        }
        let waits_for_losses = triggers.iter().any(|trigger| trigger.condition == Condition::Lost);
        Self { all: triggers, least, by_tag, by_name: FxHashMap::default(), waits_for_losses }
    }

    /// Whether losses are waited for.
    pub(super) fn wait_for_losses(&self) -> bool {
        self.waits_for_losses
    }

    /// Returns the trigger that a section fires.
    #[inline]
    pub(super) fn fired_by(&mut self, span: &SpanRecord, names: &Names) -> Option<&Trigger> {
        if span.end.saturating_sub(span.begin) < self.least {
            return None;
        }
        self.fired_by_long(span, names)
    }

    #[cold]
    fn fired_by_long(&mut self, span: &SpanRecord, names: &Names) -> Option<&Trigger> {
        let of_tag = self.by_tag.get(usize::from(span.tag)).copied().unwrap_or(0);
        let mut candidates = of_tag | self.of_name(span.name, names);
        let duration = span.end.saturating_sub(span.begin);
        while candidates != 0 {
            let number = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            if matches!(self.all[number].condition, Condition::Section { least, .. } if duration >= least) {
                return self.all.get(number);
            }
        }
        None
    }

    fn of_name(&mut self, hash: u64, names: &Names) -> u64 {
        if let Some(known) = self.by_name.get(&hash) {
            return *known;
        }
        // One whose text has not come yet is looked at again.
        let Some(name) = names.get(hash) else { return 0 };
        let matching = self.all.iter().enumerate().filter(|(_, trigger)| match &trigger.condition {
            Condition::Section { of: Sections::Named(pattern), .. } => glob(pattern, &name.text),
            _ => false,
        });
        let found = matching.fold(0, |found, (number, _)| found | 1 << number);
        if self.by_name.len() >= MOST_NAMES {
            self.by_name.clear();
        }
        self.by_name.insert(hash, found);
        found
    }
}

/// Watch over the sections of a run. Of those that fire within the time that was written with the last one, only the number
/// is kept.
pub(super) struct Watch {
    triggers: Triggers,
    /// Time that a recording covers, ns.
    covered: u64,
    /// First section that fired since the last recording.
    fired: Option<Cause>,
    /// Time up to which others are only counted, ns.
    quiet_until: u64,
    /// Records that were lost when they were last looked at.
    lost: u64,
    /// Firings without a recording of their own.
    repeated: u64,
}

impl Watch {
    /// Creates the watch of triggers, each of whose recordings covers a time (ns).
    pub(super) fn new(triggers: Vec<Trigger>, covered: u64) -> Self {
        let triggers = Triggers::new(triggers);
        Self { triggers, covered, fired: None, quiet_until: 0, lost: 0, repeated: 0 }
    }

    /// Takes a section that ended.
    #[inline]
    pub(super) fn section(&mut self, span: &SpanRecord, names: &Names) {
        if let Some(trigger) = self.triggers.fired_by(span, names) {
            let trigger = &trigger.text;
            if self.fired.is_some() || span.end < self.quiet_until {
                self.repeated += 1;
                return;
            }
            self.fired = Some(Cause::Section {
                trigger: trigger.clone(),
                name: names.text(span.name),
                tid: span.tid,
                end_ns: span.end,
                duration_ns: span.end.saturating_sub(span.begin),
            });
            self.quiet_until = span.end.saturating_add(self.covered);
        }
    }

    /// Takes the number of records that were lost by a time (ns).
    pub(super) fn losses(&mut self, lost: u64, now: u64) {
        if self.triggers.wait_for_losses() && lost > self.lost {
            if self.fired.is_some() || now < self.quiet_until {
                self.repeated += 1;
            } else {
                self.fired = Some(Cause::Lost { records: lost });
                self.quiet_until = now.saturating_add(self.covered);
            }
        }
        self.lost = lost;
    }

    /// Takes what fired.
    pub(super) fn take(&mut self) -> Option<Cause> {
        self.fired.take()
    }

    /// Returns the number of firings without a recording of their own.
    pub(super) fn repeated(&self) -> u64 {
        self.repeated
    }
}

#[cfg(test)]
mod tests {
    use nntrace_common::{
        layer::{Layer, Phase},
        mark,
        record::RecordKind,
        stack::Adds,
    };

    use super::*;

    fn trigger(text: &str) -> Trigger {
        text.parse().unwrap()
    }

    fn least(text: &str) -> Option<u64> {
        match trigger(text).condition {
            Condition::Section { least, .. } => Some(least),
            Condition::Lost => None,
        }
    }

    #[test]
    fn durations_are_compared_to_the_nanosecond() {
        assert_eq!(least("compute > 20ms"), Some(20_000_001));
        assert_eq!(least("compute>=20ms"), Some(20_000_000));
        assert_eq!(least("  a b  >  1s 500us "), Some(1_000_500_001));
        assert_eq!(least(" lost "), None);
        assert_eq!(least("lost > 1us"), Some(1_001), "a section of that name");
    }

    #[test]
    fn what_is_no_trigger_is_refused_with_the_place() {
        let place = |text: &str| {
            let error = text.parse::<Trigger>().unwrap_err();
            (error.place, error.expected)
        };
        assert_eq!(place("compute"), (8, COMPARISON));
        assert_eq!(place(""), (1, COMPARISON));
        assert_eq!(place("> 20ms"), (1, NAME));
        assert_eq!(place("é > "), (5, DURATION));
        assert_eq!(place("compute > soon"), (11, DURATION));
        assert_eq!(place("compute > 20"), (11, DURATION), "a unit is needed");
        assert_eq!(place("compute >= -1ms"), (12, DURATION));
        assert!("x > 5".parse::<Trigger>().unwrap_err().to_string().starts_with("at character 5: expected"));
    }

    #[test]
    fn layers_and_phases_are_known_by_their_letters() {
        let of = |text: &str| match trigger(text).condition {
            Condition::Section { of, .. } => of,
            Condition::Lost => panic!("{text}"),
        };
        assert_eq!(of("LR_PE > 1ms"), Sections::Tagged(Tag::new(Layer::Runtime, Phase::Execution)));
        assert_eq!(of("LA_PWU > 1ms"), Sections::Tagged(Tag::new(Layer::Application, Phase::WarmUp)));
        assert_eq!(of("LX_PE > 1ms"), Sections::Named("LX_PE".into()));
        assert_eq!(of("f<A> > 1ms"), Sections::Named("f<A>".into()));
    }

    fn span(names: &mut Names, name: &str, end: u64, duration: u64) -> SpanRecord {
        let hash = mark::name_hash(name.as_bytes(), 0);
        names.insert(hash, name.as_bytes());
        SpanRecord {
            kind: RecordKind::Span as u32,
            tid: 1,
            tgid: 1,
            tag: Tag::new(Layer::Runtime, Phase::Execution).index(),
            class: 0,
            depth: 0,
            adds: Adds::from_bits(0),
            begin: end - duration,
            end,
            own: 0,
            exclusive: 0,
            path: 0,
            name: hash,
            begin_sequence: 0,
            end_sequence: 0,
        }
    }

    #[test]
    fn any_of_several_triggers_fires() {
        let texts = ["*compute > 100ns", "LR_PE >= 500ns", "wait? > 10ns"];
        let mut triggers = Triggers::new(texts.map(trigger).into());
        let mut names = Names::default();
        for (name, duration, expected) in [
            ("graph_compute", 100, None),
            ("graph_compute", 101, Some(texts[0])),
            ("graph_compute", 101, Some(texts[0])),
            ("compute_graph", 499, None),
            ("compute_graph", 500, Some(texts[1])),
            ("wait", 11, None),
            ("wait1", 11, Some(texts[2])),
        ] {
            let span = span(&mut names, name, 10_000, duration);
            let fired = triggers.fired_by(&span, &names).map(|trigger| trigger.text.as_str());
            assert_eq!(fired, expected, "{name}, {duration} ns");
        }
    }

    #[test]
    fn a_name_whose_text_comes_later_is_looked_at_again() {
        let mut triggers = Triggers::new(vec![trigger("f > 1ns")]);
        let mut names = Names::default();
        let span = span(&mut names, "f", 100, 10);
        assert!(triggers.fired_by(&span, &Names::default()).is_none());
        assert!(triggers.fired_by(&span, &names).is_some());
    }

    #[test]
    fn firings_within_the_covered_time_are_counted_only() {
        let mut watch = Watch::new(vec![trigger("f > 1ns"), trigger("lost")], 1_000);
        let mut names = Names::default();
        for (end, fires) in [(100, true), (200, false), (1_099, false), (1_100, true)] {
            watch.section(&span(&mut names, "f", end, 10), &names);
            assert_eq!(watch.take().is_some(), fires, "at {end}");
        }
        assert_eq!(watch.repeated(), 2);
        watch.losses(3, 5_000);
        assert_eq!(watch.take(), Some(Cause::Lost { records: 3 }));
        watch.losses(3, 9_000);
        assert_eq!((watch.take(), watch.repeated()), (None, 2));
    }
}
