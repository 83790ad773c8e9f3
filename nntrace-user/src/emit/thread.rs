//! One thread of a run that is played.

use std::{thread, time::Duration};

use super::{
    outlet::{Outlet, Writer},
    pace::{self, Pace},
    script::Script,
    shared::{Counter, Shared},
    steps::{Action, GateId, ThreadScript},
};

/// Stack of a thread: it does little.
const STACK_BYTES: usize = 64 << 10;
/// Time for which a mark waits for one that it comes after, ns: who is to write that may have ended.
const PATIENCE: u64 = 2_000_000_000;
/// Time of that for which it does not sleep, ns.
const SPIN: u64 = 20_000;

/// State that all threads of a process share.
pub(super) struct Stage<'a> {
    pub(super) script: &'a Script,
    pub(super) pace: Pace,
    pub(super) outlet: &'a Outlet,
    pub(super) shared: &'a Shared,
    /// Name of the process.
    pub(super) name: Option<&'a str>,
}

/// Plays a thread and those that it starts, in their scope.
pub(super) fn play<'scope>(stage: &'scope Stage<'_>, scope: &'scope thread::Scope<'scope, '_>, number: u32) {
    let Some(ThreadScript { steps, name, .. }) = stage.script.threads.get(number as usize) else { return };
    let Stage { script, pace, outlet, shared, .. } = stage;
    if let Some(name) = name.as_deref().or(stage.name) {
        set_name(name);
    }
    let mut writer = Writer::new(outlet, shared);
    let mut marks = 0;
    for step in steps {
        let delay = pace.wait(step.time);
        if !shared.is_open(step.waits) && !wait_for(shared, step.waits) {
            shared.add(Counter::OutOfOrder, 1);
        }
        match step.action {
            Action::Begin(text) => writer.begin(|pid| script.texts.payload(text, pid)),
            Action::End => writer.end(),
            Action::Event(text) => writer.event(|pid| script.texts.payload(text, pid)),
            Action::Start(other) => {
                start(stage, scope, other);
                continue;
            }
        }
        shared.open(step.opens);
        marks += 1;
        if let Some(delay) = delay {
            shared.add_delay(delay);
        }
    }
    shared.add(Counter::Marks, marks);
}

fn start<'scope>(stage: &'scope Stage<'_>, scope: &'scope thread::Scope<'scope, '_>, number: u32) {
    let thread = thread::Builder::new().stack_size(STACK_BYTES);
    if thread.spawn_scoped(scope, move || play(stage, scope, number)).is_err() {
        stage.shared.add(Counter::ThreadsMissing, 1);
    }
}

/// Waits until a gate is open; returns whether it is.
fn wait_for(shared: &Shared, gate: GateId) -> bool {
    let since = pace::now();
    loop {
        if shared.is_open(gate) {
            return true;
        }
        match pace::now() - since {
            waited if waited > PATIENCE => return false,
            waited if waited > SPIN => thread::sleep(Duration::from_micros(20)),
            _ => std::hint::spin_loop(),
        }
    }
}

/// Names the calling thread, and the process if it is the main thread.
fn set_name(name: &str) {
    // A NUL ends a name; the kernel cuts it at fifteen bytes.
    let end = name.find('\0').unwrap_or(name.len());
    if let Ok(name) = std::ffi::CString::new(&name[..end]) {
        // Names are for people: without one, the run is the same.
        let _ = nix::sys::prctl::set_name(&name);
    }
}
