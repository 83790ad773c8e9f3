//! Script of a run: its processes and threads, what each of them writes, and who starts whom.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use nntrace_common::{
    layer::Tag,
    mark::Label,
    stack::{Class, PathStep, ROOT_PATH},
    stamp::Stamp,
};
use rustc_hash::FxHashMap;

use super::{
    collect::{Annotations, Collection, ThreadEvents},
    error::EmitError,
    lives::{Life, Lives},
    nesting::{Edge, EdgeKind, Forest},
    ordering,
    steps::{Action, Differences, OpenAtEnd, Step, StepMaker, ThreadScript},
    texts::Texts,
};
use crate::{
    model::{
        marks::OpenSection,
        plurals::{counted, one_or_many},
    },
    record::{RecordedFacts, inputs},
};

/// Time by which a thread is started before its first mark, where nothing says when it was, ns.
const START_AHEAD: u64 = 1_000_000;

/// Script of a run.
#[derive(Debug, Default)]
pub struct Script {
    /// Processes by the times of their first steps.
    pub(super) processes: Vec<ProcessScript>,
    /// Threads of all processes.
    pub(super) threads: Vec<ThreadScript>,
    /// Texts of marks.
    pub(super) texts: Texts,
    /// Number of gates.
    pub(super) gates: u32,
    /// Time of the first step, ns.
    pub(super) begin: u64,
    differences: Differences,
    damage: Vec<String>,
}

/// Script of a process.
#[derive(Debug)]
pub(super) struct ProcessScript {
    /// Recorded process.
    pub(super) pid: u32,
    /// Name, if it is known.
    pub(super) name: Option<String>,
    /// Number of its main thread.
    pub(super) main: u32,
    /// Time of its first step, ns.
    pub(super) begin: u64,
}

impl Script {
    /// Makes the script of a recording.
    ///
    /// # Errors
    /// When it cannot be read, has no marks, or too many.
    pub fn of(recording: &Path) -> Result<Self, EmitError> {
        let script = Self::of_any(recording)?;
        if script.threads.is_empty() {
            return Err(EmitError::NoMarks(recording.to_owned()));
        }
        Ok(script)
    }

    /// Makes the script of a recording, which may have no marks.
    ///
    /// # Errors
    /// When it cannot be read, or has too many marks.
    pub fn of_any(recording: &Path) -> Result<Self, EmitError> {
        let mut collection = Collection::default();
        let mut is_full = false;
        let facts = inputs(recording, |input| {
            is_full = !collection.take(input);
            !is_full
        })?;
        if is_full {
            return Err(EmitError::TooManyMarks(recording.to_owned()));
        }
        Ok(Self::made(collection, facts))
    }

    /// Makes the script of collected inputs.
    pub(super) fn made(collection: Collection, facts: RecordedFacts) -> Self {
        let last_processes = collection.last_processes();
        let Collection { threads, forks, annotations, labels, mut texts, .. } = collection;
        let lives = Lives::of(&forks);
        let mut maker = StepMaker {
            names: &facts.names,
            annotations: &annotations,
            texts: &mut texts,
            differences: Differences::default(),
        };
        let mut cast = Cast::default();
        for ((pid, tid), events) in threads {
            let is_last = last_processes.get(&tid) == Some(&pid);
            let of_thread = facts.open.iter().filter(|open| is_last && open.tid == tid);
            let mut open: Vec<OpenSection> = of_thread.copied().collect();
            open.sort_by_key(|open| open.begin);
            for (life, events) in by_life(tid, events, &lives) {
                let ThreadEvents { sections, mut points } = events;
                points.sort_by_key(|point| point.at);
                let mut forest = Forest::grow(sections);
                let edges = forest.edges(|span| maker.is_switch(span));
                let of_life: Vec<OpenSection> =
                    open.iter().filter(|open| lives.at(tid, open.begin.time) == life).copied().collect();
                let at_end = tagged(&of_life, &edges, &labels, &facts.paths, maker.annotations);
                let steps = maker.make(&edges, &at_end, &points);
                let aside = forest.edges_aside(|span| maker.is_switch(span));
                let aside = aside.iter().map(|edges| maker.make(edges, &[], &[])).collect();
                cast.add(life, pid, steps, aside);
            }
        }
        let differences = maker.differences;
        cast.create(&lives);
        let (threads, processes) = cast.ended(&facts);
        let begin = processes.iter().map(|process| process.begin).min().unwrap_or(0);
        let mut script =
            Self { processes, threads, texts, gates: 0, begin, differences, damage: facts.damage };
        script.gates = ordering::gates(&mut script.threads, &script.texts);
        script
    }

    /// Returns the number of marks.
    #[must_use]
    pub fn marks(&self) -> u64 {
        let steps = self.threads.iter().flat_map(|thread| &thread.steps);
        steps.filter(|step| !matches!(step.action, Action::Start(_))).count() as u64
    }

    /// Returns the number of processes and of threads.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        (self.processes.len(), self.threads.len())
    }

    /// Returns notes on what is not as it was recorded.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let Differences { untagged, other_sections } = self.differences;
        let mut notes = self.damage.clone();
        notes.extend((untagged > 0).then(|| {
            format!(
                "{untagged} {} to executions that are counted elsewhere; marks cannot express that, so they are written without layer and phase",
                one_or_many(untagged, "section belongs", "sections belong")
            )
        }));
        notes.extend((other_sections > 0).then(|| {
            format!(
                "{} will be counted differently: something around {} is not in the recording",
                counted(other_sections, "section"),
                one_or_many(other_sections, "it", "them")
            )
        }));
        notes
    }
}

/// Divides the events of a thread id by the threads that had it.
fn by_life(tid: u32, events: ThreadEvents, lives: &Lives) -> BTreeMap<Life, ThreadEvents> {
    let mut divided: BTreeMap<Life, ThreadEvents> = BTreeMap::new();
    for span in events.sections {
        divided.entry(lives.at(tid, span.begin)).or_default().sections.push(span);
    }
    for point in events.points {
        divided.entry(lives.at(tid, point.at.time)).or_default().points.push(point);
    }
    divided
}

/// Returns the sections that were open at the end, with their layers and phases, as far as something shows them: what is in
/// them, or a record of their begins.
fn tagged(
    open: &[OpenSection],
    edges: &[Edge],
    labels: &FxHashMap<(u32, u64), Label>,
    paths: &FxHashMap<u64, PathStep>,
    annotations: &Annotations,
) -> Vec<OpenAtEnd> {
    let around = |path: u64| paths.get(&path).map(|step| step.parent).filter(|path| *path != ROOT_PATH);
    let mut tagged = Vec::with_capacity(open.len());
    let mut inner_path = None;
    let mut until = Stamp::new(u64::MAX, u32::MAX);
    for (depth, open) in open.iter().enumerate().rev() {
        // The outermost of what has ended in it: a section's own edges are balanced.
        let mut level = 0_u32;
        let inside = edges.iter().find_map(|edge| {
            let EdgeKind::Begin { span, .. } = edge.kind else {
                level = level.saturating_sub(1);
                return None;
            };
            level += 1;
            (level == 1 && (open.begin..until).contains(&span.begin_stamp())).then_some(span.path)
        });
        let path = inside.or(inner_path).and_then(around);
        let step = path.and_then(|path| paths.get(&path));
        let known = step.and_then(|step| {
            Some((Label::tagged(Tag::from_index(step.tag)?), Class::from_code(step.class)?))
        });
        let known = known.or_else(|| open.tag.map(|tag| (Label::tagged(tag), open.class)));
        let known =
            known.or_else(|| labels.get(&(open.tid, open.begin.time)).map(|label| (*label, Class::Section)));
        let depth = u8::try_from(depth).unwrap_or(u8::MAX);
        let annotation = annotations.at(open.tid, open.begin, depth);
        tagged.push(OpenAtEnd {
            begin: open.begin,
            tag: known,
            name: open.name,
            attributes: annotation.map(|annotation| annotation.attributes),
        });
        (inner_path, until) = (path, open.begin);
    }
    tagged.reverse();
    tagged
}

/// Threads that are being put together.
#[derive(Default)]
struct Cast {
    threads: Vec<Member>,
    /// By process and life.
    by_life: BTreeMap<(u32, Life), u32>,
    /// Main threads by process.
    mains: BTreeMap<u32, u32>,
}

/// Thread that is being put together.
struct Member {
    pid: u32,
    tid: u32,
    life: Option<Life>,
    lane: u32,
    steps: Vec<Step>,
    /// Threads that it starts, with the times.
    starts: Vec<(u64, u32)>,
}

impl Cast {
    /// Adds a thread, and in threads of their own the sections that overlap with others of it.
    fn add(&mut self, life: Life, pid: u32, steps: Vec<Step>, aside: Vec<Vec<Step>>) {
        self.put(pid, life.0, 0, Some(life), steps);
        // Each goes after the first one that has ended by then.
        let mut lanes: Vec<Vec<Step>> = Vec::new();
        for steps in aside {
            let begin = steps.first().map_or(0, |step| step.time);
            let free = lanes.iter_mut().find(|lane| lane.last().is_none_or(|step| step.time <= begin));
            match free {
                Some(lane) => lane.extend(steps),
                None => lanes.push(steps),
            }
        }
        for (steps, lane) in lanes.into_iter().zip(1..) {
            self.put(pid, life.0, lane, None, steps);
        }
    }

    fn put(&mut self, pid: u32, tid: u32, lane: u32, life: Option<Life>, steps: Vec<Step>) -> u32 {
        let number = self.threads.len() as u32;
        self.by_life.extend(life.map(|life| ((pid, life), number)));
        self.threads.push(Member { pid, tid, life, lane, steps, starts: Vec::new() });
        number
    }

    /// Says who starts whom: the thread that did, or else the main thread of the process. Those that are needed for it
    /// alone are added.
    fn create(&mut self, lives: &Lives) {
        let pids: BTreeSet<u32> = self.threads.iter().map(|member| member.pid).collect();
        for pid in pids {
            let mut with_its_id = self.by_life.range((pid, (pid, 0))..=(pid, (pid, u32::MAX)));
            let main = with_its_id.next().map(|(_, number)| *number);
            let main = main.unwrap_or_else(|| self.put(pid, pid, 0, Some((pid, 0)), Vec::new()));
            self.mains.insert(pid, main);
        }
        let mut number = 0;
        while let Some(member) = self.threads.get(number as usize) {
            let (pid, tid) = (member.pid, member.tid);
            let first = member.steps.first().map(|step| step.time);
            let birth = member.life.and_then(|life| lives.birth(life)).filter(|birth| birth.pid == pid);
            let main = self.mains.get(&pid).copied().unwrap_or(number);
            if number != main {
                let (time, by) = match birth {
                    Some(birth) if birth.by != tid => {
                        let creator = lives.at(birth.by, birth.time);
                        let creator = match self.by_life.get(&(pid, creator)).copied() {
                            Some(known) => known,
                            None if birth.by == pid => main,
                            None => self.put(pid, birth.by, 0, Some(creator), Vec::new()),
                        };
                        (birth.time, creator)
                    }
                    _ => (first.unwrap_or(0).saturating_sub(START_AHEAD), main),
                };
                self.threads[by as usize].starts.push((time, number));
            }
            number += 1;
        }
    }

    /// Returns the threads, and the processes by their begins.
    fn ended(self, facts: &RecordedFacts) -> (Vec<ThreadScript>, Vec<ProcessScript>) {
        let mut processes: BTreeMap<u32, ProcessScript> = BTreeMap::new();
        let mut threads = Vec::with_capacity(self.threads.len());
        for (pid, main) in self.mains {
            let name = facts.processes.get(&pid).cloned();
            processes.insert(pid, ProcessScript { pid, name, main, begin: u64::MAX });
        }
        for Member { pid, tid, lane, steps, starts, .. } in self.threads {
            let steps = merged(steps, starts);
            if let (Some(process), Some(first)) = (processes.get_mut(&pid), steps.first()) {
                process.begin = process.begin.min(first.time);
            }
            let name = facts.threads.get(&(pid, tid)).cloned();
            threads.push(ThreadScript { pid, tid, lane, name, steps });
        }
        let mut processes: Vec<ProcessScript> = processes.into_values().collect();
        processes.sort_by_key(|process| process.begin);
        (threads, processes)
    }
}

/// Adds the starts of other threads to steps.
fn merged(steps: Vec<Step>, mut starts: Vec<(u64, u32)>) -> Vec<Step> {
    if starts.is_empty() {
        return steps;
    }
    starts.sort_unstable();
    let mut merged = Vec::with_capacity(steps.len() + starts.len());
    let mut starts = starts.into_iter().peekable();
    let start = |(time, number): (u64, u32)| Step::new(time.into(), Action::Start(number));
    for step in steps {
        while let Some(before) = starts.next_if(|(time, _)| *time < step.time) {
            merged.push(start(before));
        }
        merged.push(step);
    }
    merged.extend(starts.map(start));
    merged
}
