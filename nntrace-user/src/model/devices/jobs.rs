//! Jobs that have not ended, ring by ring: each event in constant time.
//!
//! A ring runs its jobs in the order in which they were handed over: the oldest one that has not ended is the one that runs.
//! No event says when the device begins with a job, so this is inferred, as Perfetto does.

use rustc_hash::FxHashMap;

use super::{
    event::{DeviceEvent, Fence, JobName, RingName},
    job::{End, Job, Submitter},
    open_job::OpenJob,
    ring::Ring,
};

/// Rings at most.
const MOST_RINGS: usize = 1_024;
/// Jobs that have not ended at most, and as many dependencies of them.
const MOST_OPEN: usize = 1 << 16;
/// Dependencies of one job at most, and jobs that depend on one fence.
const MOST_DEPENDENCIES: usize = 256;

/// All jobs that have not ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Jobs {
    rings: Vec<Ring>,
    numbers: FxHashMap<Box<[u8]>, u32>,
    key: Vec<u8>,
    open: FxHashMap<Fence, OpenJob>,
    /// Jobs by the numbers that early kernels give them; `None` where two rings of one name have given the same.
    by_id: FxHashMap<(u32, u64), Option<Fence>>,
    /// Highest number that has ended of each context, of the first [`MOST_OPEN`] contexts.
    ended: FxHashMap<u64, u64>,
    /// Jobs that depend on a fence, and the number of them all.
    dependents: FxHashMap<Fence, Vec<Fence>>,
    dependencies: usize,
    serial: u64,
    since: u64,
    lost_at: Option<u64>,
    /// Jobs with an end event only.
    pub(crate) unmatched: u64,
    /// Events of further rings, and jobs, for which there was no room.
    pub(crate) left_out: u64,
}

impl Jobs {
    /// Returns the jobs of a window that starts at `since` (ns).
    #[must_use]
    pub(crate) fn since(self, since: u64) -> Self {
        Self { since, ..self }
    }

    /// Returns the rings in the order of their numbers.
    pub(crate) fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// Takes an event at its time (ns) by a thread, and passes jobs that end in the window to `ended`.
    pub(crate) fn take(
        &mut self,
        event: &DeviceEvent<'_>,
        time: u64,
        submitter: Submitter,
        mut ended: impl FnMut(&Job),
    ) {
        let (now, counts) = (time.max(self.since), time >= self.since);
        let mut ended = |job: &Job| {
            if counts {
                ended(job);
            }
        };
        match *event {
            DeviceEvent::Queued(job) => self.queue(job, now, counts, submitter, &mut ended),
            DeviceEvent::HandedOver(job) => self.hand_over(job, now, &mut ended),
            DeviceEvent::Done(fence) => {
                let is_known = self.end(fence, now, counts, End::Lost, &mut ended);
                // Without room, it may be one that was left out.
                self.unmatched += u64::from(counts && !is_known && self.left_out == 0);
                self.signal(fence, now);
            }
            DeviceEvent::Signaled(fence) => {
                self.end(fence, now, counts, End::Canceled, &mut ended);
                self.signal(fence, now);
            }
            DeviceEvent::Depends { job, on } => self.depend(job, on, false),
            DeviceEvent::Blocked { job, on } => self.depend(job, on, true),
            DeviceEvent::DependsById { ring, id, address, number } => {
                if let Some(ring) = self.number(ring)
                    && let Some(&Some(job)) = self.by_id.get(&(ring, id))
                {
                    [Some(address), number].into_iter().flatten().for_each(|on| self.depend(job, on, false));
                }
            }
        }
    }

    /// Events were lost by this time (ns): a job that was handed over before may have ended.
    pub(crate) fn lost(&mut self, time: u64) {
        self.lost_at = Some(time);
    }

    /// Returns the jobs that are open when the window ends (ns), in the order in which they were first seen.
    #[must_use]
    pub(crate) fn open_until(&self, end: u64) -> Vec<Job> {
        let mut open: Vec<_> = self.open.iter().collect();
        open.sort_unstable_by_key(|(_, job)| job.serial);
        let open = open.into_iter().map(|(fence, job)| {
            let ring = &self.rings[job.ring as usize];
            let is_first = ring.handed_over.front() == Some(&(*fence, job.serial));
            job.ended(ring, is_first.then_some(ring.first_since), end, End::Open)
        });
        open.collect()
    }

    /// Returns the time (ns) in which a ring had a job of the device, until `end` (ns).
    #[must_use]
    pub(crate) fn busy_until(&self, ring: u32, end: u64) -> u64 {
        self.rings[ring as usize].busy_until(end)
    }

    /// Returns the number of a ring; `None` beyond the limit.
    fn number(&mut self, name: RingName<'_>) -> Option<u32> {
        self.key.clear();
        self.key.extend_from_slice(name.device);
        self.key.push(0);
        self.key.extend_from_slice(name.ring);
        if let Some(&number) = self.numbers.get(&*self.key) {
            return Some(number);
        }
        if self.rings.len() >= MOST_RINGS {
            self.left_out += 1;
            return None;
        }
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let number = self.rings.len() as u32;
        self.numbers.insert(self.key.as_slice().into(), number);
        self.rings.push(Ring::new(text(name.device), text(name.ring)));
        Some(number)
    }

    fn queue(
        &mut self,
        name: JobName<'_>,
        now: u64,
        is_whole: bool,
        submitter: Submitter,
        ended: &mut impl FnMut(&Job),
    ) {
        let Some(ring) = self.number(name.ring) else { return };
        // The fence is reused: who depended on the earlier one does not wait for it, and if that was a job, its end was missed.
        if matches!(name.fence, Fence::Address(_)) {
            self.forget_dependents(name.fence);
        }
        self.remove(name.fence, now, End::Lost, ended);
        let Some(job) = self.insert(name, ring, now) else { return };
        job.submitter = Some(submitter);
        job.queued = Some(now);
        job.is_whole = is_whole;
        let others_before = self.rings[ring as usize].busy_of_others(Some(submitter.pid), now);
        if let Some(job) = self.open.get_mut(&name.fence) {
            job.others_before = others_before;
        }
    }

    fn hand_over(&mut self, name: JobName<'_>, now: u64, ended: &mut impl FnMut(&Job)) {
        let Some(ring) = self.number(name.ring) else { return };
        if self.open.get(&name.fence).is_some_and(|job| job.handed_over.is_some()) {
            self.remove(name.fence, now, End::Lost, ended);
        }
        if !self.open.contains_key(&name.fence) && self.insert(name, ring, now).is_none() {
            return;
        }
        let Some(job) = self.open.get_mut(&name.fence) else { return };
        if job.ring != ring {
            if let Some(id) = job.id
                && self.by_id.get(&(job.ring, id)) == Some(&Some(name.fence))
            {
                self.by_id.remove(&(job.ring, id));
            }
            job.others_before = self.rings[ring as usize].busy_of_others(job.process(), now);
            job.ring = ring;
        }
        job.handed_over = Some(now);
        let (serial, depends_on) = (job.serial, std::mem::take(&mut job.depends_on));
        let of_ring = &mut self.rings[ring as usize];
        // The fence that blocked it is signaled, though no event showed it.
        if job.blocked_by.take().is_some() {
            job.ready = now;
            job.others_before = of_ring.busy_of_others(job.process(), now);
        }
        if of_ring.handed_over.is_empty() {
            job.begin(of_ring, now);
        }
        of_ring.handed_over.push_back((name.fence, serial));
        self.forget_dependencies(name.fence, &depends_on);
    }

    /// Notes a job that was not known.
    fn insert(&mut self, name: JobName<'_>, ring: u32, now: u64) -> Option<&mut OpenJob> {
        if self.open.len() >= MOST_OPEN {
            self.left_out += 1;
            return None;
        }
        self.serial += 1;
        if let Some(id) = name.id {
            if self.by_id.len() >= 2 * MOST_OPEN {
                self.by_id.retain(|_, fence| fence.is_some());
            }
            self.by_id.entry((ring, id)).and_modify(|fence| *fence = None).or_insert(Some(name.fence));
        }
        let job = OpenJob {
            serial: self.serial,
            ring,
            id: name.id,
            submitter: None,
            queued: None,
            is_whole: false,
            ready: now,
            others_before: 0,
            blocked_by: None,
            depends_on: Vec::new(),
            handed_over: None,
            behind_others: None,
        };
        Some(self.open.entry(name.fence).insert_entry(job).into_mut())
    }

    fn depend(&mut self, name: Fence, on: Fence, is_blocked: bool) {
        let Some(job) = self.open.get_mut(&name).filter(|job| job.handed_over.is_none()) else { return };
        if is_blocked {
            job.blocked_by = Some(on);
        }
        if job.depends_on.contains(&on) {
            return;
        }
        let of_fence = self.dependents.get(&on).map_or(0, Vec::len);
        if self.dependencies >= MOST_OPEN || job.depends_on.len().max(of_fence) >= MOST_DEPENDENCIES {
            self.left_out += 1;
            return;
        }
        self.dependencies += 1;
        job.depends_on.push(on);
        self.dependents.entry(on).or_default().push(name);
    }

    /// A fence is signaled: jobs that depend on it are not ready before.
    fn signal(&mut self, fence: Fence, now: u64) {
        for name in self.dependents.remove(&fence).unwrap_or_default() {
            self.dependencies -= 1;
            let Some(job) = self.open.get_mut(&name) else { continue };
            let ring = &self.rings[job.ring as usize];
            job.depends_on.retain(|on| *on != fence);
            if job.blocked_by == Some(fence) {
                job.blocked_by = None;
            }
            job.ready = now;
            job.others_before = ring.busy_of_others(job.process(), now);
        }
    }

    fn forget_dependencies(&mut self, name: Fence, depends_on: &[Fence]) {
        for on in depends_on {
            if let Some(dependents) = self.dependents.get_mut(on) {
                let before = dependents.len();
                dependents.retain(|dependent| *dependent != name);
                self.dependencies -= before - dependents.len();
                if dependents.is_empty() {
                    self.dependents.remove(on);
                }
            }
        }
    }

    /// Ends a job, as `never_ran` where it was not seen that it was handed over; returns whether it was known.
    fn end(
        &mut self,
        fence: Fence,
        now: u64,
        counts: bool,
        never_ran: End,
        ended: &mut impl FnMut(&Job),
    ) -> bool {
        let Some(job) = self.open.get(&fence) else { return false };
        let number = job.ring as usize;
        if job.handed_over.is_none() {
            self.remove(fence, now, never_ran, ended);
            return true;
        }
        if let Fence::Number { context, seqno } = fence
            && (self.ended.len() < MOST_OPEN || self.ended.contains_key(&context))
        {
            let last = self.ended.entry(context).or_default();
            *last = seqno.max(*last);
        }
        while let Some(&(first, _)) = self.rings[number].handed_over.front()
            && first != fence
        {
            if !self.must_have_ended(first) {
                self.rings[number].out_of_order += u64::from(counts);
                break;
            }
            self.remove(first, now, End::Lost, ended);
            // When this one began is not known either.
            if let Some(job) = self.open.get_mut(&fence) {
                (job.queued, job.ready, job.is_whole) = (None, now, false);
            }
        }
        self.remove(fence, now, End::Done, ended);
        true
    }

    /// Whether a job must have ended, as a later one of its context has, or may have, as events were lost.
    fn must_have_ended(&self, fence: Fence) -> bool {
        let handed_over = self.open.get(&fence).and_then(|job| job.handed_over);
        self.is_past(fence) || self.lost_at.is_some_and(|lost| handed_over.is_none_or(|at| at <= lost))
    }

    /// Whether a later job of its context has ended.
    fn is_past(&self, fence: Fence) -> bool {
        let Fence::Number { context, seqno } = fence else { return false };
        self.ended.get(&context).is_some_and(|last| seqno < *last)
    }

    /// Removes a job, if there is one with this fence.
    fn remove(&mut self, fence: Fence, now: u64, end: End, ended: &mut impl FnMut(&Job)) {
        let Some(mut job) = self.open.remove(&fence) else { return };
        self.forget_dependencies(fence, &std::mem::take(&mut job.depends_on));
        if let Some(id) = job.id
            && self.by_id.get(&(job.ring, id)) == Some(&Some(fence))
        {
            self.by_id.remove(&(job.ring, id));
        }
        let ring = &mut self.rings[job.ring as usize];
        if job.handed_over.is_none() {
            ended(&job.ended(ring, None, now, end));
            return;
        }
        if ring.handed_over.front() != Some(&(fence, job.serial)) {
            ended(&job.ended(ring, None, now, end));
            ring.ended += 1;
            let open = &self.open;
            ring.forget_ended(|fence, serial| open.get(&fence).is_some_and(|job| job.serial == serial));
            return;
        }
        ended(&job.ended(ring, Some(ring.first_since), now, end));
        ring.charge_first(now);
        ring.handed_over.pop_front();
        let number = job.ring as usize;
        while let Some(&(first, serial)) = self.rings[number].handed_over.front() {
            let is_past = self.is_past(first);
            let ring = &mut self.rings[number];
            match self.open.get_mut(&first).filter(|next| next.serial == serial) {
                // It had ended before, although its event was missed.
                Some(_) if is_past => ring.ended += 1,
                Some(next) => {
                    next.begin(ring, now);
                    break;
                }
                None => {}
            }
            ring.handed_over.pop_front();
            ring.ended -= 1;
            if is_past {
                self.remove_past(first, serial, now, ended);
            }
        }
    }
}

impl Jobs {
    /// Removes a job that had ended unseen: a later one of its context has.
    fn remove_past(&mut self, fence: Fence, serial: u64, now: u64, ended: &mut impl FnMut(&Job)) {
        if self.open.get(&fence).is_some_and(|job| job.serial == serial)
            && let Some(mut job) = self.open.remove(&fence)
        {
            self.forget_dependencies(fence, &std::mem::take(&mut job.depends_on));
            ended(&job.ended(&self.rings[job.ring as usize], None, now, End::Lost));
        }
    }

    /// Forgets the jobs that depend on a fence.
    fn forget_dependents(&mut self, fence: Fence) {
        for name in self.dependents.remove(&fence).unwrap_or_default() {
            self.dependencies -= 1;
            if let Some(job) = self.open.get_mut(&name) {
                job.depends_on.retain(|on| *on != fence);
            }
        }
    }
}
