//! Ring of a device: the jobs that were handed over, and how long it had any.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::event::Fence;

/// Processes of a ring whose times are kept apart at most.
const MOST_PROCESSES: usize = 1_024;

/// Ring of a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ring {
    /// Name of the device; empty where it is not known.
    pub device: String,
    /// Name of the ring.
    pub name: String,
    /// Jobs that ended before an older one that runs.
    pub out_of_order: u64,
    /// Jobs of the device in the order in which they were handed over, by fence and serial number; the first one has not ended.
    pub(super) handed_over: VecDeque<(Fence, u64)>,
    /// How many of these have ended.
    pub(super) ended: usize,
    /// When the first one became the first, ns.
    pub(super) first_since: u64,
    /// Its process, if that is known.
    first_process: Option<u32>,
    /// Time with a job before that, ns; of all, and by process.
    busy: u64,
    busy_by_process: FxHashMap<Option<u32>, u64>,
}

/// Returns the name of a ring with that of its device, which may not be known.
#[must_use]
pub(crate) fn full_name(device: &str, ring: &str) -> String {
    if device.is_empty() || device == ring { ring.to_owned() } else { format!("{device} {ring}") }
}

impl Ring {
    /// Creates the ring of this name of a device, without a job.
    pub(super) fn new(device: String, name: String) -> Self {
        Self { device, name, ..Self::default() }
    }

    /// Returns the name of the ring with that of its device.
    #[must_use]
    pub(crate) fn full_name(&self) -> String {
        full_name(&self.device, &self.name)
    }

    /// Returns the time with a job, ns.
    pub(super) fn busy_until(&self, now: u64) -> u64 {
        self.busy + self.of_first(now)
    }

    /// Returns the time with a job of another process, ns; 0 for one whose own time had no room.
    pub(super) fn busy_of_others(&self, process: Option<u32>, now: u64) -> u64 {
        let own = match self.busy_by_process.get(&process) {
            Some(own) => *own,
            None if self.busy_by_process.len() >= MOST_PROCESSES => return 0,
            None => 0,
        };
        let of_first = if self.first_process == process { self.of_first(now) } else { 0 };
        self.busy_until(now) - own - of_first
    }

    /// Returns the time that the first job has been the first, ns.
    fn of_first(&self, now: u64) -> u64 {
        if self.handed_over.is_empty() { 0 } else { now.saturating_sub(self.first_since) }
    }

    /// A job of a process becomes the first one.
    pub(super) fn begin(&mut self, process: Option<u32>, now: u64) {
        self.first_since = now;
        self.first_process = process;
    }

    /// The first job ends: its time is that of its process.
    pub(super) fn charge_first(&mut self, now: u64) {
        let ns = self.of_first(now);
        self.busy += ns;
        let has_room = self.busy_by_process.len() < MOST_PROCESSES;
        if has_room || self.busy_by_process.contains_key(&self.first_process) {
            *self.busy_by_process.entry(self.first_process).or_default() += ns;
        }
        self.first_since = now;
    }

    /// Forgets jobs that have ended, once most of them have.
    pub(super) fn forget_ended(&mut self, is_open: impl Fn(Fence, u64) -> bool) {
        if self.ended > self.handed_over.len() / 2 {
            self.handed_over.retain(|(fence, serial)| is_open(*fence, *serial));
            self.ended = 0;
        }
    }
}
