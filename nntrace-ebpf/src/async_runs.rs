//! Asynchronous executions of engines, counted from the call that starts one to the end of the wait for it.

use aya_ebpf::bindings::{BPF_ANY, BPF_NOEXIST};
use nntrace_common::{
    async_runs::{AsyncRun, AsyncRunKey, Counted},
    diagnostic::DiagnosticKind,
    engine::Action,
    event_counts::Table,
    mark::Label,
    record::Thread,
    stack::{Closed, PathStep},
};

use crate::{
    app_events, diagnostics,
    engines::unpacked,
    event_counts,
    maps::{ASYNC_RUN_NAME, ASYNC_RUN_UNSEEN_NAME, ASYNC_RUNS, ENGINE_PROBES, PATHS, THREADS},
    section_totals,
};

/// Place of the number of a change of the application's phases in what an execution is counted with; its label is below.
const SLOT_SHIFT: u32 = 8;

/// Handles the end of the innermost function of a thread, which starts an execution or awaits one: returned, or left by an
/// exception.
///
/// A global function, as those below: the verifier checks each once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn call_ends(who: u64, now: u64, is_returned: u32) -> u32 {
    let ids = unpacked(who);
    let Some(thread) = THREADS.get_ptr_mut(ids.tid) else { return 0 };
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
    let Thread { engines, .. } = unsafe { &*thread };
    let Some(frame) = engines.innermost() else { return 0 };
    let Some(probe) = ENGINE_PROBES.get(frame.probe) else { return 0 };
    let (object, since) = engines.object();
    let key = AsyncRunKey { object, tgid: ids.tgid, reserved: 0 };
    // Not an option: its unwritten bytes would be copied.
    // SAFETY: the value is read once. Whoever starts the object again does so after the wait for it.
    let before = unsafe { ASYNC_RUNS.get(key) }.map_or(AsyncRun::NONE, |run| *run);
    let label = u64::from(probe.label.byte());
    if probe.action == Action::AsyncBegin {
        // One that was left by an exception has started nothing.
        if is_returned == 0 && frame.ends_unseen == 0 {
            return 0;
        }
        let slot = u32::from(app_events::last());
        let what = u64::from(slot) << SLOT_SHIFT | label;
        let (run, counted) = before.started(since, now, slot);
        let is_kept = ASYNC_RUNS.insert(key, &run, u64::from(BPF_ANY)).is_ok();
        if !is_kept {
            diagnostics::count(DiagnosticKind::TableFull, now, ids.tid);
        }
        if counted == Counted::UnseenAndOneBefore {
            // It ends now, as records of one thread come in the order of their ends, and has the time of its own call.
            count(who, now - before.call_ns().min(now), now, what);
        }
        // Without a place, the end will not be seen.
        if counted != Counted::Nothing || !is_kept {
            count(who, since, now, what);
        }
    } else if ASYNC_RUNS.remove(key).is_ok() && before.begin != 0 {
        // Of several threads that wait for one execution, one removes it.
        let what = u64::from(before.slot) << SLOT_SHIFT | label;
        count_seen(who, before.begin, now, before.in_flight(since), what);
    }
    0
}

/// Counts an execution whose end was not seen, from `begin` to `end` (ns): the call that started it has its own time.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn count(who: u64, begin: u64, end: u64, what: u64) -> u32 {
    store(who, ASYNC_RUN_UNSEEN_NAME.load(), (begin, end), 0, what);
    0
}

/// Counts an execution from `begin` to `end` (ns) that was in flight for some time (ns).
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn count_seen(who: u64, begin: u64, end: u64, in_flight: u64, what: u64) -> u32 {
    store(who, ASYNC_RUN_NAME.load(), (begin, end), in_flight, what);
    0
}

#[inline(always)]
fn store(who: u64, name: u64, times: (u64, u64), in_flight: u64, what: u64) {
    let slot = (what >> SLOT_SHIFT) as u16;
    if let Some(tag) = Label::from_byte(what as u8).and_then(Label::tag) {
        let closed = Closed::asynchronous(tag, name, times, in_flight, slot);
        // An existing path is the same path.
        let step = PathStep::outermost(&closed);
        if PATHS.insert(closed.path, &step, u64::from(BPF_NOEXIST)) == Err(section_totals::TABLE_FULL) {
            event_counts::count_turned_away(Table::Paths);
        }
        section_totals::store(unpacked(who), true, &closed);
    }
}
