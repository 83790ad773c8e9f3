//! Asynchronous calls: from the call that starts work to the one that has its result. Between these, no anchor is seen.

use std::collections::VecDeque;

use nntrace_common::{hidl_calls::Role, layer::Tag, record::SpanRecord};
use rustc_hash::FxHashMap;

use super::hand_over::{Function, HandOver, Moment, Source};

/// Calls that have not finished; of more, all are forgotten.
const MOST: usize = 1 << 14;

/// Asynchronous calls.
#[derive(Clone, Debug, Default)]
pub(super) struct AsynchronousCalls {
    /// Executions that the runtime has started and not waited for, by process, first in, first out.
    executions: FxHashMap<u32, VecDeque<HandOver>>,
    /// Slices that have begun, by what distinguishes them.
    slices: FxHashMap<u64, VecDeque<HandOver>>,
    count: usize,
}

impl AsynchronousCalls {
    /// A section with this name ended: the runtime may start an execution in it, or wait for one.
    pub(super) fn section(&mut self, span: &SpanRecord, tag: Tag, name: &[u8], take: impl FnOnce(HandOver)) {
        let process = span.tgid;
        match Role::of(name) {
            Role::Start => {
                self.opens();
                let started = HandOver {
                    from: Some(tag),
                    function: Some(Function::Section(span.name)),
                    dispatch: Some(Moment::of_begin(span)),
                    ..HandOver::new(Source::Asynchronous)
                };
                self.executions.entry(process).or_default().push_back(started);
            }
            Role::Wait => {
                let started = self.executions.get_mut(&process).and_then(VecDeque::pop_front);
                self.count = self.count.saturating_sub(usize::from(started.is_some()));
                ends(started, span.end, take);
            }
            _ => {}
        }
    }

    /// A slice begins. Its name has this number among methods.
    pub(super) fn slice_begins(&mut self, slice: u64, function: u32, at: Moment) {
        self.opens();
        self.slices.entry(slice).or_default().push_back(HandOver {
            function: Some(Function::Method(function)),
            dispatch: Some(at),
            ..HandOver::new(Source::Asynchronous)
        });
    }

    /// A slice ends. On the thread that began it, nothing was handed over.
    pub(super) fn slice_ends(&mut self, slice: u64, at: Moment, take: impl FnOnce(HandOver)) {
        let Some(open) = self.slices.get_mut(&slice) else { return };
        let begun = open.pop_front();
        if open.is_empty() {
            self.slices.remove(&slice);
        }
        self.count = self.count.saturating_sub(1);
        let begun = begun.filter(|begun| begun.dispatch.is_some_and(|from| from.tid != at.tid));
        ends(begun, at.time, take);
    }

    fn opens(&mut self) {
        self.count += 1;
        if self.count > MOST {
            *self = Self { count: 1, ..Self::default() };
        }
    }
}

fn ends(begun: Option<HandOver>, time: u64, take: impl FnOnce(HandOver)) {
    if let Some(begun) = begun {
        take(HandOver { finish: Some(time), ..begun });
    }
}
