//! Order between threads: marks that count by what other threads wrote before come after it, however late that is.
//!
//! Each thread keeps its own times, and is late by some microseconds, now more, now less. Where a hand-over is taken before
//! it was handed over, or a section begins before the phase of the application that it belongs to, the run would be another
//! one. So a step may open a gate, and another one wait for it.

use nntrace_common::{
    attributes::{Attributes, Handle, RECEIVE, Reserved, SEND},
    mark::{self, Prefix},
};
use rustc_hash::FxHashMap;

use super::{
    steps::{Action, GateId, NO_GATE, ThreadScript},
    texts::Texts,
};

/// Meaning of a text for other threads.
#[derive(Clone, Copy, Debug, Default)]
struct Meaning {
    sends: Option<Handle>,
    takes: Option<Handle>,
    is_application_phase: bool,
    is_switch: bool,
}

impl Meaning {
    fn of(text: &[u8]) -> Self {
        let handle = || Reserved::read(Attributes::of(text, 1)).handle;
        match text.first() {
            Some(b'I') => match mark::name(text, 1) {
                SEND => Self { sends: handle(), ..Self::default() },
                RECEIVE => Self { takes: handle(), ..Self::default() },
                _ => Self::default(),
            },
            Some(b'B') => {
                let begin = mark::section(text, 1);
                Self {
                    takes: begin.label.is_tagged().then(handle).flatten(),
                    is_application_phase: begin.label.is_application_phase(),
                    is_switch: begin.prefix == Prefix::Switch,
                    ..Self::default()
                }
            }
            _ => Self::default(),
        }
    }
}

/// Gates that steps open: their times and numbers.
type Gates = Vec<(u64, GateId)>;

/// Lets steps wait for those of other threads; returns the number of gates.
pub(super) fn gates(threads: &mut [ThreadScript], texts: &Texts) -> u32 {
    let meanings: Vec<Meaning> = texts.iter().map(Meaning::of).collect();
    let meaning = |id: u32| meanings.get(id as usize).copied().unwrap_or_default();
    let mut count = 0;
    let mut changes = Gates::new();
    let mut sends: FxHashMap<(u32, Handle), Gates> = FxHashMap::default();
    for thread in threads.iter_mut() {
        // Whether each open section is a phase of the application.
        let mut open = Vec::new();
        for step in &mut thread.steps {
            let mut opens = |gates: &mut Gates| {
                gates.push((step.time, count));
                step.opens = count;
                count += 1;
            };
            match step.action {
                Action::Begin(text) => {
                    let Meaning { is_application_phase, is_switch, .. } = meaning(text);
                    let ends = is_switch && open.last_mut().is_some_and(std::mem::take);
                    if is_application_phase || ends {
                        opens(&mut changes);
                    }
                    open.push(is_application_phase);
                }
                Action::End => {
                    if open.pop() == Some(true) {
                        opens(&mut changes);
                    }
                }
                Action::Event(text) => {
                    if let Some(handle) = meaning(text).sends {
                        opens(sends.entry(key(thread.pid, handle)).or_default());
                    }
                }
                Action::Start(_) => {}
            }
        }
    }
    changes.sort_unstable();
    for gates in sends.values_mut() {
        gates.sort_unstable();
    }
    for thread in threads {
        for step in &mut thread.steps {
            let (Action::Begin(text) | Action::Event(text)) = step.action else { continue };
            let meaning = meaning(text);
            let sent = meaning.takes.and_then(|handle| sends.get(&key(thread.pid, handle)));
            // At one time, either may be the first.
            let sent = sent.and_then(|gates| last(gates, step.time.saturating_add(1)));
            let begins = matches!(step.action, Action::Begin(_));
            let changed = if begins { last(&changes, step.time) } else { None };
            step.waits = sent.or(changed).unwrap_or(NO_GATE);
        }
    }
    count
}

/// Returns the last gate that is opened before a time.
fn last(gates: &Gates, time: u64) -> Option<GateId> {
    let before = gates.partition_point(|(opened, _)| *opened < time);
    gates.get(before.checked_sub(1)?).map(|(_, gate)| *gate)
}

/// Key of a hand-over: handles are unique in their process, or in the system.
fn key(pid: u32, handle: Handle) -> (u32, Handle) {
    (if matches!(handle, Handle::OfSystem(_)) { 0 } else { pid }, handle)
}
