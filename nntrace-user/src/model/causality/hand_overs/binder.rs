//! Transactions of the binder driver: calls between processes as the kernel sees them.
//!
//! Source: `binder_transaction` and `binder_transaction_received` in `drivers/android/binder_trace.h`. Both events of a
//! transaction have its number; a reply is a transaction of its own, by the thread that serves the call.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::hand_over::{HandOver, Moment};

/// Transactions of one thread that are kept until their marks come.
const MOST_OF_THREAD: usize = 1 << 12;
/// Transactions that wait for their receipt, and threads that have any.
const MOST: usize = 1 << 14;
/// Transactions of a client that may lie between the begin of its call and the transaction of that.
const NEAR: usize = 8;

/// Event of the binder driver, in the thread that sends or receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinderEvent {
    /// `binder_transaction`.
    Sent {
        /// Number of the transaction.
        id: u32,
        /// Whether it is the reply to another one.
        is_reply: bool,
        /// Whether nobody replies.
        is_oneway: bool,
    },
    /// `binder_transaction_received`.
    Received {
        /// Number of the transaction.
        id: u32,
    },
}

/// Change by an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A call is received that was sent there.
    Began(Moment),
    /// The reply to the hand-over with this number is received.
    Finished(u64),
}

/// Transactions.
#[derive(Clone, Debug, Default)]
pub(super) struct Transactions {
    /// Calls that were sent and not received.
    sent: FxHashMap<u32, (Moment, bool)>,
    /// Calls that a thread serves, the innermost last.
    serving: FxHashMap<u32, Vec<u64>>,
    /// Replies that were not received, by the number of their hand-over.
    replies: FxHashMap<u32, u64>,
    /// Times of dispatch (ns), receivers and numbers of hand-overs, by the thread that sent them.
    by_client: FxHashMap<u32, VecDeque<(u64, u32, u64)>>,
    /// Whether the call that was received last has no reply.
    is_oneway: bool,
}

impl Transactions {
    /// Takes an event.
    pub(super) fn event(&mut self, event: BinderEvent, at: Moment) -> Option<Change> {
        match event {
            BinderEvent::Sent { id, is_reply: true, .. } => {
                let number = self.serving.get_mut(&at.tid)?.pop()?;
                make_room(&mut self.replies);
                self.replies.insert(id, number);
                None
            }
            BinderEvent::Sent { id, is_oneway, .. } => {
                make_room(&mut self.sent);
                self.sent.insert(id, (at, is_oneway));
                None
            }
            BinderEvent::Received { id } => {
                if let Some(number) = self.replies.remove(&id) {
                    return Some(Change::Finished(number));
                }
                let (dispatch, is_oneway) = self.sent.remove(&id)?;
                self.is_oneway = is_oneway;
                Some(Change::Began(dispatch))
            }
        }
    }

    /// The call that was just received is the hand-over with this number.
    pub(super) fn began(&mut self, number: u64, dispatch: Moment, receive: Moment) {
        if !self.is_oneway {
            make_room(&mut self.serving);
            let serving = self.serving.entry(receive.tid).or_default();
            // Replies were lost.
            if serving.len() >= MOST_OF_THREAD {
                serving.clear();
            }
            serving.push(number);
        }
        make_room(&mut self.by_client);
        let calls = self.by_client.entry(dispatch.tid).or_default();
        if calls.len() >= MOST_OF_THREAD {
            calls.pop_front();
        }
        // Receipts may come in another order than dispatches.
        let place = calls.partition_point(|(time, ..)| *time <= dispatch.time);
        calls.insert(place, (dispatch.time, receive.tid, number));
    }

    /// Returns the number of the hand-over that is the transaction of an interface call: sent while that was open, before its
    /// server began.
    pub(super) fn of(&self, call: &HandOver) -> Option<u64> {
        let dispatch = call.dispatch?;
        let until =
            call.received_first.map(|at| at.time).or(call.receive.map(|at| at.time)).or(call.finish)?;
        let calls = self.by_client.get(&dispatch.tid)?;
        let first = calls.partition_point(|(time, ..)| *time < dispatch.time);
        let receiver = call.receive.map(|receive| receive.tid);
        let mut near = calls.iter().skip(first).take(NEAR).take_while(|(time, ..)| *time <= until);
        near.find(|(.., tid, _)| receiver.is_none_or(|receiver| receiver == *tid)).map(|(.., number)| *number)
    }
}

/// Forgets all where there are too many, as when nobody receives what is sent.
fn make_room<K, V>(map: &mut FxHashMap<K, V>) {
    if map.len() >= MOST {
        map.clear();
    }
}
