//! Events of the kernel: bundles of them, each of one CPU, with scheduling events apart or as columns.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::{
    clocks::{ClockId, Converter},
    other_events,
    queue::{Place, Queue, append},
    ring_begins::RingBegins,
    threads::{LONGEST_NAME, Threads},
    unplaced::Unplaced,
};
use crate::{
    perfetto_schema::ftrace::{
        CompactSched, CpuState, FtraceEvent, FtraceEventBundle, FtraceKind, Generic, GenericField,
        GenericValue, SchedWakeup,
    },
    replay::{
        driver_marks::{self, Value},
        ftrace::EventKind,
        losses::Loss,
    },
};

/// CPUs whose current threads are kept at most.
const MOST_CPUS: usize = 1 << 16;
/// Events of a bundle that are read at most: as text they take much more than in columns. The recorder reads half a MiB of the
/// kernel's buffers at once, which hold a sixth of this.
const MOST_EVENTS: usize = 1 << 18;
/// Bytes of the name of an event, or of the fields of one, at most.
const LONGEST_TEXT: usize = 4096;

/// Threads that run on the CPUs, as far as switches show.
#[derive(Default)]
pub(super) struct Bundles {
    running: BTreeMap<u32, Running>,
    /// CPUs whose first bundle was taken.
    begun: BTreeSet<u32>,
}

/// Thread that runs on a CPU.
#[derive(Clone, Default)]
struct Running {
    tid: u32,
    comm: Bytes,
    prio: i32,
}

/// Facts by which the events of a bundle are placed.
pub(super) struct Context<'a, 'b> {
    pub(super) threads: &'a Threads,
    pub(super) converter: &'a mut Converter<'b>,
    pub(super) unplaced: &'a mut Unplaced,
    pub(super) queue: &'a mut Queue,
    pub(super) rings: &'a RingBegins,
}

/// Column of a bundle: its switches, its wakings.
#[derive(Clone, Copy, Default)]
struct Column {
    next: usize,
    /// Time of the next one, on the clock of the bundle, ns.
    time: u64,
}

impl Column {
    /// Moves to the next one.
    fn begin(&mut self, times: &[u64]) {
        self.time = self.time.saturating_add(times.get(self.next).copied().unwrap_or(0));
    }

    fn advance(&mut self, times: &[u64]) {
        self.next += 1;
        self.begin(times);
    }

    fn key(self, times: &[u64]) -> Option<u64> {
        (self.next < times.len()).then_some(self.time)
    }
}

impl Bundles {
    /// Takes a bundle.
    pub(super) fn take(&mut self, bundle: &FtraceEventBundle, context: &mut Context<'_, '_>) {
        let cpu = bundle.cpu.unwrap_or(0);
        if bundle.lost_events == Some(true) || !bundle.error.is_empty() {
            context.queue.lost(Loss::Gap { cpu, events: None });
            self.running.remove(&cpu);
        }
        if self.begun.insert(cpu) && context.rings.begin_late(cpu) {
            context.queue.lost(Loss::Started { cpu });
        }
        let clock = ClockId::of_bundle(bundle);
        let empty = CompactSched::default();
        let compact = bundle.compact_sched.as_ref().unwrap_or(&empty);
        let (switches, wakings) = (&compact.switch_timestamp[..], &compact.waking_timestamp[..]);
        let (mut switch, mut waking, mut next) = (Column::default(), Column::default(), 0);
        switch.begin(switches);
        waking.begin(wakings);
        let all = bundle.event.len() + switches.len() + wakings.len();
        for taken in 0.. {
            if taken == MOST_EVENTS && all > taken {
                context.queue.lost(Loss::Gap { cpu, events: Some((all - taken) as u64) });
                self.running.remove(&cpu);
                break;
            }
            // Columns and events are in order of time, each on its own.
            let times = [
                bundle.event.get(next).map(|event| event.timestamp.unwrap_or(0)),
                waking.key(wakings),
                switch.key(switches),
            ];
            let earliest = times.iter().enumerate().filter_map(|(which, time)| Some(((*time)?, which))).min();
            let Some((time, which)) = earliest else { break };
            let placed = context.converter.convert(clock, time);
            match (which, placed) {
                (0, Some(time)) => self.event(&bundle.event[next], cpu, time, context),
                (1, Some(time)) => self.waking(compact, waking.next, cpu, time, context),
                (_, Some(time)) => self.switch(compact, switch.next, cpu, time, context),
                (_, None) => context.unplaced.add(clock),
            }
            match which {
                0 => next += 1,
                1 => waking.advance(wakings),
                _ => switch.advance(switches),
            }
        }
    }

    fn event(&mut self, event: &FtraceEvent, cpu: u32, time: u64, context: &mut Context<'_, '_>) {
        let Context { threads, queue, .. } = context;
        let tid = event.pid.unwrap_or(0);
        let place = Place { comm: threads.comm(tid), tid, tgid: threads.process(tid), cpu, time };
        let Some(kind) = &event.kind else {
            match &event.other {
                Some((number, message)) => other_events::take(*number, message, place, queue),
                None => queue.event_of(place, EventKind::Other { name: b"", fields: b"" }),
            }
            return;
        };
        match kind {
            FtraceKind::Print(print) => {
                let text = print.buf.as_deref().unwrap_or_default();
                queue.mark(place, |out| out.extend_from_slice(text.strip_suffix(b"\n").unwrap_or(text)));
            }
            FtraceKind::CpuIdle(CpuState { state, cpu_id }) => {
                // Without one of the two it cannot be used.
                match state.zip(*cpu_id) {
                    Some((state, cpu)) => queue.event_of(place, EventKind::CpuIdle { state, cpu }),
                    None => queue.other(place, b"cpu_idle", |_| {}),
                }
            }
            FtraceKind::CpuFrequency(CpuState { state, cpu_id }) => match state.zip(*cpu_id) {
                Some((khz, cpu)) => queue.event_of(place, EventKind::CpuFrequency { khz, cpu }),
                None => queue.other(place, b"cpu_frequency", |_| {}),
            },
            FtraceKind::SchedSwitch(event) => {
                let next = Running {
                    tid: tid_of(event.next_pid),
                    comm: event.next_comm.clone().unwrap_or_default(),
                    prio: event.next_prio.unwrap_or(0),
                };
                let prev = Running {
                    tid: tid_of(event.prev_pid),
                    comm: event.prev_comm.clone().unwrap_or_default(),
                    prio: event.prev_prio.unwrap_or(0),
                };
                let state = event.prev_state.unwrap_or(0);
                queue.other(place, b"sched_switch", |out| switched(out, &prev, state, &next));
                self.run(cpu, next);
            }
            FtraceKind::SchedWakeup(event) => queue.other(place, b"sched_wakeup", |out| woken(out, event)),
            FtraceKind::SchedWakeupNew(event) => {
                queue.other(place, b"sched_wakeup_new", |out| woken(out, event));
            }
            FtraceKind::SchedWaking(event) => queue.other(place, b"sched_waking", |out| woken(out, event)),
            FtraceKind::Generic(event) if event.event_name.as_deref() == Some(driver_marks::NAME) => {
                other_events::driver_mark(place, queue, |name| {
                    let of = |field: &&GenericField| field.name.as_deref() == Some(name.as_bytes());
                    Some(match event.field.iter().find(of)?.value.as_ref()? {
                        GenericValue::Text(text) => Value::Text(text),
                        GenericValue::Signed(number) => Value::Number(*number),
                        GenericValue::Unsigned(number) => Value::Number(number.cast_signed()),
                    })
                });
            }
            other => {
                let name = name(other);
                queue.other(place, &name[..name.len().min(LONGEST_TEXT)], |out| fields(out, other));
            }
        }
    }

    /// Notes which thread runs on a CPU.
    fn run(&mut self, cpu: u32, thread: Running) {
        if self.running.len() < MOST_CPUS || self.running.contains_key(&cpu) {
            self.running.insert(cpu, thread);
        }
    }

    /// Takes a switch of the columns, which do not have the thread that leaves. Of the first switch of a CPU it is not known:
    /// then it is the idle thread, of which nothing is counted.
    fn switch(
        &mut self,
        compact: &CompactSched,
        at: usize,
        cpu: u32,
        time: u64,
        context: &mut Context<'_, '_>,
    ) {
        let Context { threads, queue, .. } = context;
        let next = Running {
            tid: tid_of(compact.switch_next_pid.get(at).copied()),
            comm: comm(compact, &compact.switch_next_comm_index, at),
            prio: compact.switch_next_prio.get(at).copied().unwrap_or(0),
        };
        let prev = self.running.get(&cpu).cloned().unwrap_or_default();
        let state = compact.switch_prev_state.get(at).copied().unwrap_or(0);
        let place =
            Place { comm: threads.comm(prev.tid), tid: prev.tid, tgid: threads.process(prev.tid), cpu, time };
        queue.other(place, b"sched_switch", |out| switched(out, &prev, state, &next));
        self.run(cpu, next);
    }

    /// Takes a waking of the columns: by the thread that runs.
    fn waking(&self, compact: &CompactSched, at: usize, cpu: u32, time: u64, context: &mut Context<'_, '_>) {
        let Context { threads, queue, .. } = context;
        let tid = self.running.get(&cpu).map_or(0, |thread| thread.tid);
        let place = Place { comm: threads.comm(tid), tid, tgid: threads.process(tid), cpu, time };
        let event = SchedWakeup {
            comm: Some(comm(compact, &compact.waking_comm_index, at)),
            pid: compact.waking_pid.get(at).copied(),
            prio: compact.waking_prio.get(at).copied(),
            target_cpu: compact.waking_target_cpu.get(at).copied(),
        };
        queue.other(place, b"sched_waking", |out| woken(out, &event));
    }
}

fn tid_of(pid: Option<i32>) -> u32 {
    u32::try_from(pid.unwrap_or(0)).unwrap_or(0)
}

fn comm(compact: &CompactSched, indices: &[u32], at: usize) -> Bytes {
    let index = indices.get(at).and_then(|index| usize::try_from(*index).ok());
    index.and_then(|index| compact.intern_table.get(index)).cloned().unwrap_or_default()
}

fn push_comm(out: &mut Vec<u8>, comm: &[u8]) {
    out.extend_from_slice(&comm[..comm.len().min(LONGEST_NAME)]);
}

fn switched(out: &mut Vec<u8>, prev: &Running, state: i64, next: &Running) {
    out.extend_from_slice(b"prev_comm=");
    push_comm(out, &prev.comm);
    // The states of the kernel are those of the lower half.
    let state = state.cast_unsigned() as u32;
    append(
        out,
        format_args!(" prev_pid={} prev_prio={} prev_state={state} ==> next_comm=", prev.tid, prev.prio),
    );
    push_comm(out, &next.comm);
    append(out, format_args!(" next_pid={} next_prio={}", next.tid, next.prio));
}

fn woken(out: &mut Vec<u8>, event: &SchedWakeup) {
    out.extend_from_slice(b"comm=");
    push_comm(out, event.comm.as_deref().unwrap_or_default());
    let (pid, prio, cpu) = (tid_of(event.pid), event.prio.unwrap_or(0), event.target_cpu.unwrap_or(0));
    append(out, format_args!(" pid={pid} prio={prio} target_cpu={cpu:03}"));
}

/// Returns the kernel's name of an event.
fn name(kind: &FtraceKind) -> &[u8] {
    match kind {
        FtraceKind::Print(_) => b"print",
        FtraceKind::SchedSwitch(_) => b"sched_switch",
        FtraceKind::CpuFrequency(_) => b"cpu_frequency",
        FtraceKind::CpuIdle(_) => b"cpu_idle",
        FtraceKind::SchedWakeup(_) => b"sched_wakeup",
        FtraceKind::SchedWaking(_) => b"sched_waking",
        FtraceKind::BinderTransaction(_) => b"binder_transaction",
        FtraceKind::BinderTransactionReceived(_) => b"binder_transaction_received",
        FtraceKind::SchedWakeupNew(_) => b"sched_wakeup_new",
        FtraceKind::TaskNewtask(_) => b"task_newtask",
        FtraceKind::TaskRename(_) => b"task_rename",
        FtraceKind::SchedProcessExec(_) => b"sched_process_exec",
        FtraceKind::SchedProcessExit(_) => b"sched_process_exit",
        FtraceKind::SchedProcessFork(_) => b"sched_process_fork",
        FtraceKind::CpuhpExit(_) => b"cpuhp_exit",
        FtraceKind::CpuhpEnter(_) => b"cpuhp_enter",
        FtraceKind::Generic(event) => event.event_name.as_deref().unwrap_or_default(),
    }
}

/// Appends the fields of an event that a replay reads, as bare fields of a record.
fn fields(out: &mut Vec<u8>, kind: &FtraceKind) {
    match kind {
        FtraceKind::BinderTransaction(event) => {
            let (id, reply) = (event.debug_id.unwrap_or(0), event.reply.unwrap_or(0));
            append(out, format_args!("debug_id={id} reply={reply} flags={}", event.flags.unwrap_or(0)));
        }
        FtraceKind::BinderTransactionReceived(event) => {
            append(out, format_args!("debug_id={}", event.debug_id.unwrap_or(0)));
        }
        FtraceKind::SchedProcessExec(event) => {
            append(
                out,
                format_args!("filename= pid={} old_pid={}", tid_of(event.pid), tid_of(event.old_pid)),
            );
        }
        FtraceKind::SchedProcessExit(event) => append(out, format_args!("comm= pid={}", tid_of(event.pid))),
        FtraceKind::SchedProcessFork(event) => {
            let (parent, child) = (tid_of(event.parent_pid), tid_of(event.child_pid));
            append(out, format_args!("comm= pid={parent} child_comm= child_pid={child}"));
        }
        FtraceKind::CpuhpExit(event) => {
            let (cpu, state) = (event.cpu.unwrap_or(0), event.state.unwrap_or(0));
            let (idx, ret) = (event.idx.unwrap_or(0), event.ret.unwrap_or(0));
            append(out, format_args!("cpu={cpu} state={state} idx={idx} ret={ret}"));
        }
        FtraceKind::CpuhpEnter(event) => {
            let (cpu, target) = (event.cpu.unwrap_or(0), event.target.unwrap_or(0));
            append(out, format_args!("cpu={cpu} target={target} idx={}", event.idx.unwrap_or(0)));
        }
        FtraceKind::Generic(event) => generic(out, event),
        _ => {}
    }
}

fn generic(out: &mut Vec<u8>, event: &Generic) {
    let end = out.len() + LONGEST_TEXT;
    for field in &event.field {
        if out.len() > end {
            break;
        }
        if !out.ends_with(b" ") {
            out.push(b' ');
        }
        push_comm(out, field.name.as_deref().unwrap_or_default());
        out.push(b'=');
        match &field.value {
            Some(GenericValue::Text(text)) => out.extend_from_slice(&text[..text.len().min(LONGEST_TEXT)]),
            Some(GenericValue::Signed(number)) => append(out, format_args!("{number}")),
            Some(GenericValue::Unsigned(number)) => append(out, format_args!("{number}")),
            None => {}
        }
    }
}
