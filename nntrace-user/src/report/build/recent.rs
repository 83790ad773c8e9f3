//! What happened lately on each thread.

use std::collections::BTreeMap;

use nntrace_common::layer::Tag;
use rustc_hash::FxHashMap;

use crate::{
    model::{
        findings::Findings,
        recent_sections::RecentSection,
        scheduling::{Activity, History, Scheduling},
    },
    report::snapshot::{RecentActivity, RecentSectionRow, RecentState, RecentThread, Snapshot},
};

/// States over all threads at most: 2 MB.
const MOST_STATES: usize = 65_536;

impl Snapshot {
    /// Adds what happened lately on each thread. Sections that have not ended are taken from the snapshot's list of them.
    #[must_use]
    pub fn with_recent_activity(mut self, found: &Findings<'_>) -> Self {
        let recent = &found.marks.recent;
        let (begin, until_ns) = found.window();
        let since_ns = recent.complete_from().max(begin).min(until_ns);
        let mut threads: BTreeMap<(u32, u32), RecentThread> = BTreeMap::new();
        let mut names = Names { numbers: FxHashMap::default(), texts: Vec::new() };
        for section in recent.iter() {
            let RecentSection { pid, tid, begin, end, exclusive, name, tag, depth } = *section;
            threads.entry((pid, tid)).or_default().sections.push(RecentSectionRow {
                begin_ns: begin,
                end_ns: end,
                exclusive_ns: Some(exclusive),
                name: names.number(name, |hash| found.marks.names.text(hash)),
                depth,
                tag,
            });
        }
        for open in &self.unfinished {
            let Some((layer, phase)) = open.layer.zip(open.phase) else { continue };
            let thread = threads.entry((open.pid.unwrap_or(open.tid), open.tid)).or_default();
            thread.sections.push(RecentSectionRow {
                begin_ns: open.begin_ns,
                end_ns: until_ns,
                exclusive_ns: None,
                name: names.add(open.name.clone()),
                depth: open.depth,
                tag: Tag::new(layer, phase),
            });
        }
        if let Some(scheduling) = found.scheduling {
            for thread in found.run.threads.iter() {
                threads.entry((thread.pid, thread.tid)).or_default();
            }
            let most = MOST_STATES / threads.len().max(1);
            for (&(pid, tid), thread) in &mut threads {
                thread.states = states(scheduling, (pid, tid), (since_ns, until_ns), most.max(1));
            }
        }
        let threads = threads.into_iter().filter_map(|((pid, tid), mut thread)| {
            // Of one instant, the outer ones have fewer around them.
            thread.sections.sort_by_key(|section| (section.begin_ns, section.depth));
            let has_run = thread.states.iter().any(|state| matches!(state.activity, Activity::OnCpu(_)));
            let is_shown = !thread.sections.is_empty() || has_run;
            is_shown.then_some(RecentThread { pid, tid, ..thread })
        });
        let threads = threads.collect();
        self.recent = Some(Box::new(RecentActivity { since_ns, until_ns, threads, names: names.texts }));
        self
    }
}

/// Names of sections, each once.
struct Names {
    numbers: FxHashMap<u64, u32>,
    texts: Vec<String>,
}

impl Names {
    fn number(&mut self, hash: u64, text: impl FnOnce(u64) -> String) -> u32 {
        if let Some(&number) = self.numbers.get(&hash) {
            return number;
        }
        let number = self.add(text(hash));
        self.numbers.insert(hash, number);
        number
    }

    fn add(&mut self, text: String) -> u32 {
        self.texts.push(text);
        (self.texts.len() - 1) as u32
    }
}

/// Returns the last states of the threads with these ids in a part of the window. What is not kept is unknown.
fn states(
    scheduling: &Scheduling,
    (pid, tid): (u32, u32),
    (since, until): (u64, u64),
    most: usize,
) -> Vec<RecentState> {
    let is_of_process = |life: &&History| life.tgid.is_none_or(|tgid| tgid == pid);
    let lives = || scheduling.lives_since(tid, since).filter(is_of_process);
    let stretches = lives().flat_map(|life| {
        let last = life.end.map_or(until, |end| end.min(until));
        life.stretches_from(since).map(move |stretch| RecentState {
            begin_ns: stretch.begin.max(since),
            end_ns: stretch.end.map_or(last, |end| end.min(last)),
            activity: stretch.state.into(),
        })
    });
    let mut states: Vec<RecentState> = stretches.filter(|state| state.begin_ns < state.end_ns).collect();
    states.drain(..states.len().saturating_sub(most));
    // A thread that began in this part has no state before.
    let begun = lives().next().and_then(|life| life.begin).unwrap_or(0).max(since);
    if let Some(first) = states.first().map(|state| state.begin_ns).filter(|first| *first > begun) {
        states.insert(0, RecentState { begin_ns: begun, end_ns: first, activity: Activity::Unknown });
    }
    states
}
