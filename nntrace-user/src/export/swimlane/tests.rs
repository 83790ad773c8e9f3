//! Sections of random shapes, zero lengths and equal times among them, as slices.

use std::{borrow::Cow, collections::BTreeMap, io};

use nntrace_common::{
    layer::{Layer, Phase, Tag},
    record::Record,
    stack::Class,
};
use proptest::prelude::*;

use super::{
    CounterValue, Encode, EventOfDevice, Label, ThreadTrack,
    by_begin::SectionsByBegin,
    hand_overs::HandOvers,
    sorter::{SectionSorter, Sorted},
};
use crate::model::{
    section::{Mark, Section},
    unfinished_sections::UnfinishedSection,
};

/// Events, as they came.
#[derive(Default)]
struct Kept {
    events: Vec<(u64, ThreadTrack, Kind)>,
    further: Vec<ThreadTrack>,
}

/// Kind of an event, with its name.
enum Kind {
    Begin(String),
    End,
    Instant(String),
}

impl Encode<io::Sink> for Kept {
    fn new(_: io::Sink, _: Option<&super::Clocks>) -> Self {
        Self::default()
    }

    fn further_track(&mut self, track: ThreadTrack) {
        self.further.push(track);
    }

    fn begin(&mut self, time: u64, track: ThreadTrack, label: &Label<'_>) {
        self.events.push((time, track, Kind::Begin(label.name.to_string())));
    }

    fn end(&mut self, time: u64, track: ThreadTrack) {
        self.events.push((time, track, Kind::End));
    }

    fn instant(&mut self, time: u64, track: ThreadTrack, label: &Label<'_>) {
        self.events.push((time, track, Kind::Instant(label.name.to_string())));
    }

    fn counter(&mut self, _: u64, _: &str, _: CounterValue) {}

    fn power(&mut self, _: &Record) {}

    fn device(&mut self, _: &EventOfDevice<'_>) {}

    fn finish(self) -> io::Result<io::Sink> {
        Ok(io::sink())
    }
}

/// Slice as viewers make it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slice {
    track: ThreadTrack,
    name: String,
    begin: u64,
    end: Option<u64>,
    /// Name of the slice around it.
    parent: Option<String>,
}

/// Reads slices as viewers do: events by time, those of one instant in the order of the file; an end is that of the
/// innermost open slice of its track.
fn slices(mut kept: Kept) -> Vec<Slice> {
    kept.events.sort_by_key(|(time, ..)| *time);
    let mut open: BTreeMap<ThreadTrack, Vec<usize>> = BTreeMap::new();
    let mut slices: Vec<Slice> = Vec::new();
    for (time, track, kind) in kept.events {
        let open = open.entry(track).or_default();
        let parent = || open.last().map(|&parent| slices[parent].name.clone());
        match kind {
            Kind::Begin(name) => {
                let slice = Slice { track, name, begin: time, end: None, parent: parent() };
                open.push(slices.len());
                slices.push(slice);
            }
            Kind::End => slices[open.pop().expect("an end without a begin")].end = Some(time),
            Kind::Instant(name) => {
                let slice = Slice { track, name, begin: time, end: Some(time), parent: parent() };
                slices.push(slice);
            }
        }
    }
    slices
}

fn section<'a>(name: impl Into<Cow<'a, str>>, begin_ns: u64, end_ns: u64, depth: u8) -> Section<'a> {
    Section {
        pid: 7,
        tid: 8,
        begin_ns,
        end_ns,
        own_ns: 0,
        exclusive_ns: 0,
        depth,
        tag: Tag::new(Layer::Runtime, Phase::Execution),
        class: Class::Section,
        path: 0,
        name: name.into(),
        attributes: Cow::Borrowed(""),
        is_provisional: false,
        in_itself: false,
        sequences: (0, 0),
    }
}

/// Section that is open; without a name where it is no section of ours.
struct Open {
    name: Option<String>,
    begin: u64,
    /// Name of the section of ours around it.
    parent: Option<String>,
}

/// Sections of a thread, as they end.
#[derive(Default)]
struct Thread {
    ended: Vec<Section<'static>>,
    unfinished: Vec<UnfinishedSection>,
    /// Slices that the sections are.
    expected: Vec<Slice>,
}

/// Step of a thread: it begins a section, of ours or not, or ends one.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begin,
    BeginOther,
    End,
}

impl Thread {
    fn of(steps: &[(u64, Step)]) -> Self {
        let mut thread = Self::default();
        let mut open: Vec<Open> = Vec::new();
        let mut now = 100;
        for (number, (pause, step)) in steps.iter().enumerate() {
            now += pause;
            match step {
                Step::End => {
                    let Some(Open { name, begin, parent }) = open.pop() else { continue };
                    let Some(name) = name else { continue };
                    thread.ended.push(section(name.clone(), begin, now, open.len() as u8));
                    thread.expected.push(slice(name, begin, Some(now), parent));
                }
                Step::Begin | Step::BeginOther => {
                    let name = matches!(step, Step::Begin).then(|| number.to_string());
                    let parent = open.iter().rev().find_map(|around| around.name.clone());
                    open.push(Open { name, begin: now, parent });
                }
            }
        }
        for Open { name, begin, parent } in open {
            let Some(name) = name else { continue };
            thread.expected.push(slice(name.clone(), begin, None, parent));
            thread.unfinished.push(UnfinishedSection {
                pid: Some(7),
                tid: 8,
                begin: begin.into(),
                name,
                tag: None,
                class: Class::Section,
                depth: 0,
            });
        }
        thread.expected.sort();
        thread
    }

    /// Writes them as they ended, sorted by way of a file.
    fn by_end(&self) -> Kept {
        let mut sorter = SectionSorter::with_together(7);
        for section in &self.ended {
            sorter.take(section);
        }
        let mut kept = Kept::default();
        let mut sections = SectionsByBegin::new(self.unfinished.clone(), HandOvers::default(), 0);
        sorter
            .sorted(|sorted| match sorted {
                Sorted::Section(section) => sections.take(section, None, &mut kept),
                Sorted::Mark(mark) => sections.mark(mark, None, &mut kept),
            })
            .unwrap();
        sections.finish(&mut kept);
        kept
    }

    fn by_begin(&self) -> Kept {
        let mut sorted = self.ended.clone();
        sorted.sort_by_key(|section| (section.begin_ns, section.depth));
        let mut kept = Kept::default();
        let mut sections = SectionsByBegin::new(self.unfinished.clone(), HandOvers::default(), 0);
        for section in &sorted {
            sections.take(section, None, &mut kept);
        }
        sections.finish(&mut kept);
        kept
    }
}

fn slice(name: String, begin: u64, end: Option<u64>, parent: Option<String>) -> Slice {
    Slice { track: ThreadTrack::own(7, 8), name, begin, end, parent }
}

fn sorted(kept: Kept, with_parents: bool) -> Vec<Slice> {
    let mut slices = slices(kept);
    if !with_parents {
        for slice in &mut slices {
            slice.parent = None;
        }
    }
    slices.sort();
    slices
}

fn steps(pauses: std::ops::Range<u64>, others: u32) -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![4 => Just(Step::Begin), others => Just(Step::BeginOther), 5 => Just(Step::End)];
    prop::collection::vec((pauses, step), 0..80)
}

proptest! {
    /// Every section is a slice of its length, on the track of its thread, whatever the times are.
    #[test]
    fn every_section_is_a_slice(steps in steps(0..3, 2)) {
        let thread = Thread::of(&steps);
        let mut expected = thread.expected.clone();
        for slice in &mut expected {
            slice.parent = None;
        }
        expected.sort();
        prop_assert_eq!(sorted(thread.by_end(), false), expected.clone());
        prop_assert_eq!(sorted(thread.by_begin(), false), expected);
    }

    /// Where times tell what contains what, each slice is in the one that its section was in.
    #[test]
    fn slices_nest_as_sections_do(steps in steps(1..3, 2)) {
        let thread = Thread::of(&steps);
        prop_assert_eq!(sorted(thread.by_end(), true), thread.expected.clone());
        prop_assert_eq!(sorted(thread.by_begin(), true), thread.expected);
    }
}

#[test]
fn sections_of_one_instant_nest_by_the_order_of_their_ends() {
    use Step::{Begin, End};
    // 0 begins with 1 in it, which begins with 2 in it, which has no length; 4 follows, and ends with all others.
    let steps = [(0, Begin), (0, Begin), (0, Begin), (0, End), (0, Begin), (5, End), (0, End), (0, End)];
    let thread = Thread::of(&steps);
    assert_eq!(thread.expected.len(), 4);
    assert_eq!(sorted(thread.by_end(), true), thread.expected);
    assert_eq!(sorted(thread.by_begin(), true), thread.expected);
}

#[test]
fn sections_come_back_by_thread_and_begin_as_they_were() {
    let mut sorter = SectionSorter::with_together(3);
    let of = |tid, begin_ns, end_ns, depth, name: &'static str| Section {
        tid,
        attributes: Cow::Borrowed("#a=b"),
        class: Class::Subtract,
        ..section(name, begin_ns, end_ns, depth)
    };
    let all = [
        of(9, 5, 6, 1, "late"),
        of(8, 7, 7, 1, "empty, with another in it"),
        of(9, 1, 8, 0, "around"),
        of(8, 2, 9, 0, "first"),
        of(8, 9, 9, 0, "last"),
    ];
    for section in &all {
        sorter.take(section);
    }
    assert_eq!(sorter.threads().len(), 2);
    let mut found = Vec::new();
    let text = |sorted: Sorted<'_>| match sorted {
        Sorted::Section(section) => format!("{section:?}"),
        Sorted::Mark(mark) => format!("{mark:?}"),
    };
    sorter.sorted(|sorted| found.push(text(sorted))).unwrap();
    assert_eq!(found, [3, 1, 4, 2, 0].map(|place: usize| format!("{:?}", all[place])));
}

#[test]
fn sections_that_overlap_are_on_tracks_of_their_own() {
    let mut kept = Kept::default();
    let mut sections = SectionsByBegin::new(Vec::new(), HandOvers::default(), 0);
    for (name, begin, end) in [("a", 0, 10), ("b", 5, 15), ("c", 6, 8), ("d", 12, 20), ("e", 20, 21)] {
        sections.take(&section(name, begin, end, 0), None, &mut kept);
    }
    sections.finish(&mut kept);
    let lane = |lane| ThreadTrack { pid: 7, tid: 8, lane };
    assert_eq!(kept.further, [lane(1), lane(2)]);
    let mut found = slices(kept);
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let expected = [
        ("a", lane(0), 0, 10),
        ("b", lane(1), 5, 15),
        ("c", lane(2), 6, 8),
        ("d", lane(0), 12, 20),
        ("e", lane(0), 20, 21),
    ];
    let found = found.iter().map(|slice| (&*slice.name, slice.track, slice.begin, slice.end.unwrap()));
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn what_never_ends_is_not_in_what_ends() {
    let mut kept = Kept::default();
    let unfinished = |begin: u64, name: &str| UnfinishedSection {
        pid: Some(7),
        tid: 8,
        begin: begin.into(),
        name: name.into(),
        tag: None,
        class: Class::Section,
        depth: 0,
    };
    let mut sections = SectionsByBegin::new(
        vec![unfinished(5, "cannot be"), unfinished(10, "open")],
        HandOvers::default(),
        0,
    );
    for (name, begin, end) in [("a", 0, 10), ("b", 6, 7), ("c", 10, 11)] {
        sections.take(&section(name, begin, end, u8::from(name != "a")), None, &mut kept);
    }
    sections.finish(&mut kept);
    let found = slices(kept);
    let found = found.iter().map(|slice| (&*slice.name, slice.end, slice.parent.as_deref()));
    let expected = [
        ("a", Some(10), None),
        ("b", Some(7), Some("a")),
        ("open", None, None),
        ("c", Some(11), Some("open")),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn sections_without_length_and_instants_show() {
    // 0 has 1 in it, which has no length; a mark is in it, one in what is empty, and one after all.
    let mut kept = Kept::default();
    let mut sections = SectionsByBegin::new(Vec::new(), HandOvers::default(), 0);
    let mark = |time, depth, payload: &'static str| Mark {
        pid: 7,
        tid: 8,
        time,
        sequence: 0,
        depth,
        payload: payload.into(),
    };
    sections.take(&section("0", 5, 9, 0), None, &mut kept);
    sections.take(&section("1", 7, 7, 1), None, &mut kept);
    sections.mark(&mark(7, 2, "I|7|in 1#h=2"), None, &mut kept);
    sections.mark(&mark(8, 1, "N|7|fence|of 0"), None, &mut kept);
    sections.mark(&mark(9, 0, "I|7|behind"), None, &mut kept);
    sections.finish(&mut kept);
    let found = slices(kept);
    let found = found.iter().map(|slice| (&*slice.name, slice.begin, slice.end, slice.parent.as_deref()));
    let expected = [
        ("0", 5, Some(9), None),
        ("1", 7, Some(7), Some("0")),
        ("in 1", 7, Some(7), Some("1")),
        ("fence|of 0", 8, Some(8), Some("0")),
        ("behind", 9, Some(9), None),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}
