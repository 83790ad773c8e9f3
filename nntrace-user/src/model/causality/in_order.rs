//! Events that waited, taken in order of time.

use nntrace_common::{attributes::Handle, stamp::Stamp};

use super::{
    Causality, Edge, Origin,
    context::{Charge, Context},
    event::{Annotations, Event},
    hand_overs::Moment,
    thread_contexts::AnnotatedBegin,
};

impl Causality {
    /// Takes the events that wait, up to this moment.
    pub(super) fn take_until(&mut self, until: Stamp) {
        while let Some(entry) = self.pending.first_entry() {
            let (at, _) = *entry.key();
            if at > until {
                break;
            }
            let Stamp { time, .. } = at;
            let counted = time.max(self.window_begin);
            match entry.remove() {
                Event::Begin { origin, name, annotations } => self.begin(origin, time, name, annotations),
                Event::End { origin } => self.end_before(origin),
                Event::Send { origin, handle } => {
                    self.handles.sent += u64::from(time >= self.window_begin);
                    let context = self.threads.context(origin.tid, origin.depth);
                    let sent = Moment::new(origin, time);
                    self.sent.insert(Self::key(origin.pid, handle), (sent, context));
                    if let Some(hand_overs) = &mut self.hand_overs {
                        hand_overs.sent(Self::key(origin.pid, handle), sent);
                    }
                    self.forget_oldest();
                }
                Event::Receive { origin, handle } => {
                    if let Some(context) = self.receive(origin, time, handle) {
                        self.threads.receive(origin.tid, origin.at(counted), origin.depth, context);
                    }
                }
                Event::HandOver { event, at } => {
                    if let Some(hand_overs) = &mut self.hand_overs {
                        hand_overs.event(&event, at);
                    }
                }
                Event::Create { by, child } => {
                    let context = self.threads.last_context(by).across(Edge::Created);
                    self.threads.create(child, context);
                }
                Event::Exit { tid } => self.threads.exit(tid),
            }
        }
    }

    /// A section ended before the window: neither it nor an iteration that was nothing else is in the window.
    fn end_before(&mut self, origin: Origin) {
        for begin in self.threads.end(origin.tid, origin.depth) {
            if let Some(node) = begin.node {
                self.graph.end_before(node);
            }
            if let Some(iteration) = begin.context.iteration.filter(|_| begin.is_root) {
                self.iterations.end_before(iteration);
            }
        }
    }

    /// A section begins at `at` (ns); what began before the window counts from its begin on.
    fn begin(&mut self, origin: Origin, at: u64, hash: u64, annotations: Annotations) {
        let time = at.max(self.window_begin);
        let Origin { pid, tid, depth, .. } = origin;
        // What a switch closes may not be closed yet: its end is of the same instant.
        let outside = Origin { depth: depth.saturating_sub(u8::from(annotations.is_switch)), ..origin };
        let around = self.threads.context(tid, outside.depth);
        let received = annotations.handle.and_then(|handle| self.receive(outside, at, handle));
        let mut context = received.unwrap_or_else(|| around.inside());
        if let Some(account) = annotations.account {
            context.charge = Some(Charge { account, edge: Edge::Explicit });
        }
        context.group = annotations.group.or(context.group);
        let is_root = annotations.is_root;
        let parent = context.iteration;
        // Where a root is asked for, its occurrences are numbered, whatever marks carry.
        let carried = annotations.iteration.filter(|_| self.questions.iteration_root.is_none());
        let iteration = carried.or_else(|| is_root.then(|| self.iterations.next_number(pid, hash)));
        if let Some(number) = iteration {
            context.iteration = self.iterations.begin((pid, hash, number), parent);
        }
        let node = self.questions.graph.then(|| {
            let calls = around.node.filter(|_| around.is_own_thread);
            let causes =
                [(calls, Edge::Nested), (context.node.filter(|_| calls != context.node), context.arrived_by)];
            self.graph.begin(tid, hash, origin.at(time), &causes, context)
        });
        let node = node.flatten();
        context.node = node.or(context.node);
        context.is_own_thread = true;
        self.threads.begin(
            tid,
            AnnotatedBegin {
                at: origin.at(time),
                depth,
                name: hash,
                context,
                is_root,
                comes_by_hand: received.is_some(),
                node,
            },
        );
    }

    fn receive(&mut self, origin: Origin, time: u64, handle: Handle) -> Option<Context> {
        let key = Self::key(origin.pid, handle);
        let Some(&(sent, context)) = self.sent.get(&key) else {
            self.handles.unmatched += u64::from(time >= self.window_begin);
            let receive = Moment::new(origin, time);
            if let Some(hand_overs) = &mut self.hand_overs {
                hand_overs.received_early(key, receive, origin.depth);
            }
            return None;
        };
        self.handles.received += u64::from(time >= self.window_begin);
        let received = Moment::new(origin, time);
        if let Some(hand_overs) = &mut self.hand_overs {
            hand_overs.received(key, sent, received, origin.depth, context.iteration);
        }
        Some(context.across(Edge::HandedOver))
    }

    fn key(pid: u32, handle: Handle) -> (u32, Handle) {
        match handle {
            Handle::OfProcess(_) => (pid, handle),
            Handle::OfSystem(_) => (0, handle),
        }
    }

    /// A job may be taken by many, so what was taken stays; but not for ever.
    fn forget_oldest(&mut self) {
        if self.sent.len() > self.most_sent {
            let mut times: Vec<u64> = self.sent.values().map(|(sent, _)| sent.time).collect();
            let half = times.len() / 2;
            let (_, &mut middle, _) = times.select_nth_unstable(half);
            self.sent.retain(|_, (sent, _)| sent.time > middle);
            self.handles.forgotten += (times.len() - self.sent.len()) as u64;
        }
    }
}
