//! Events of the kernel that have a name, in the accounting pass.

use nntrace_common::{
    diagnostic::DiagnosticKind,
    record::{Record, RecordKind, SchedRecord},
    sched::Change,
    stamp::Stamp,
};

use super::Pass;
use crate::{
    model::causality::hand_overs::{BinderEvent, HandOverEvent, Moment},
    replay::{
        device_clocks::DeviceFrequency,
        fork_exit::TaskEvent,
        ftrace::Event,
        kernel_events::{self, KernelEvent, Reading},
        sched::{self, SchedEvent},
    },
};

impl Pass {
    /// Takes an event by its name and its fields.
    pub(super) fn other(&mut self, event: &Event<'_>, name: &[u8], fields: &[u8], now: u64) {
        let of = match kernel_events::read(name, fields) {
            Reading::Event(of) => of,
            Reading::Unusable => return self.unusable(event, name, fields, now),
            Reading::Unknown => return,
        };
        let causality = &mut self.results.model.marks.causality;
        let at = Stamp::new(event.time, self.sequence);
        match of {
            KernelEvent::DeviceFrequency(DeviceFrequency { device, hz, before }) => {
                self.results.model.device_clocks.take(device, hz, before, event.time);
            }
            KernelEvent::Device(of) => {
                let submitter = self.accounts.submitter(event);
                self.results.model.device(&of, event.time, event.cpu, submitter, event.comm);
            }
            KernelEvent::Sched(of) => self.scheduling(event, of, now),
            KernelEvent::Idle { state, cpu } => self.power(RecordKind::Idle, cpu, now, state),
            KernelEvent::Frequency { khz, cpu } => self.power(RecordKind::Frequency, cpu, now, khz),
            KernelEvent::Hotplug(change) => {
                if let Some((cpu, online)) = self.hotplug.event(event.cpu, change) {
                    self.power(RecordKind::Hotplug, cpu, now, u32::from(online));
                }
            }
            KernelEvent::Task(TaskEvent::Fork { child }) => causality.create(at, event.tid, child),
            KernelEvent::Task(TaskEvent::Exit) => {
                if let Some(tid) = self.accounts.exit(event.tid, event.tgid) {
                    causality.exit(at, tid);
                }
                if let Some(pid) = event.tgid {
                    self.results.model.marks.language_models.exit(pid, event.tid, event.time);
                }
            }
            KernelEvent::Limit(limit) => self.order.push(limit.at(now)),
            KernelEvent::Binder(transaction) => self.transaction(event, transaction),
            KernelEvent::Marker(marker) => self.word(Some(marker), now),
            KernelEvent::Nothing => {}
        }
    }

    fn scheduling(&mut self, event: &Event<'_>, of: SchedEvent<'_>, now: u64) {
        let (order, cpu) = (&mut self.order, event.cpu);
        let mut push = |tid, tgid, change: Change| {
            let kind = RecordKind::Sched as u32;
            order.push(Record::Sched(SchedRecord {
                kind,
                tid,
                tgid,
                cpu,
                time: now,
                change: change as u32,
                lost: 0,
            }));
        };
        match of {
            SchedEvent::Switch { prev, why, next } => {
                // The event is recorded for the thread that leaves.
                let tgid = event.tgid.filter(|_| event.tid == prev.tid);
                push(prev.tid, tgid.unwrap_or(0), why);
                push(next.tid, 0, Change::In);
                // The name that it leaves with is its latest.
                self.results.thread_names.set(prev.tid, tgid, prev.comm);
                self.name_first(next);
            }
            SchedEvent::Woken(task, change) => {
                push(task.tid, 0, change);
                self.name_first(task);
            }
            SchedEvent::Exec { former, tid } if former != tid => push(former, tid, Change::Renamed),
            SchedEvent::Exec { .. } => {}
        }
    }

    /// Takes the name of a thread that is woken, or gets a CPU: it may never leave one.
    #[inline]
    fn name_first(&mut self, task: sched::Task<'_>) {
        let names = &mut self.results.thread_names;
        if !names.has(task.tid) {
            names.set(task.tid, None, task.comm);
        }
    }

    /// Counts an event of a known name that cannot be used.
    #[cold]
    fn unusable(&mut self, event: &Event<'_>, name: &[u8], fields: &[u8], now: u64) {
        let shown = [name, b": ", fields].concat();
        self.results.model.diagnostics.add(DiagnosticKind::UnusableEvent, now, event.tid, &shown);
    }

    fn transaction(&mut self, event: &Event<'_>, transaction: BinderEvent) {
        let at = Moment::new(self.accounts.origin(event, b"", self.sequence), event.time);
        let causality = &mut self.results.model.marks.causality;
        causality.hand_over_event(HandOverEvent::Binder(transaction), at);
    }
}
