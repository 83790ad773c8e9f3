//! Transactions of the binder driver: the events `binder_transaction` and `binder_transaction_received`, of the driver in C and
//! of the one in Rust.
//!
//! ```text
//! transaction=17 dest_node=3 dest_proc=100 dest_thread=0 reply=0 flags=0x10 code=0x1
//! debug_id=17 target_node=3 to_proc=100 to_thread=0 reply=0 code=1 flags=16
//! ```
//!
//! The first form is the kernel's text (`drivers/android/binder_trace.h`), the second one the bare fields of a record.

use super::event_fields::value;
use crate::model::causality::hand_overs::BinderEvent;

/// Flag of a transaction without a reply (`TF_ONE_WAY` in include/uapi/linux/android/binder.h).
const ONE_WAY: u32 = 1;

/// Parses the fields of `binder_transaction`.
#[must_use]
pub(crate) fn sent(fields: &[u8]) -> Option<BinderEvent> {
    Some(BinderEvent::Sent {
        id: id(fields)?,
        is_reply: value(fields, b"reply").is_some_and(|reply| !matches!(reply, b"0" | b"0x0")),
        is_oneway: value(fields, b"flags").and_then(number).is_some_and(|flags| flags & ONE_WAY != 0),
    })
}

/// Parses the fields of `binder_transaction_received`.
#[must_use]
pub(crate) fn received(fields: &[u8]) -> Option<BinderEvent> {
    Some(BinderEvent::Received { id: id(fields)? })
}

fn id(fields: &[u8]) -> Option<u32> {
    number(value(fields, b"transaction").or_else(|| value(fields, b"debug_id"))?)
}

/// Parses a number, decimal or `0x`.
fn number(word: &[u8]) -> Option<u32> {
    let word = str::from_utf8(word).ok()?;
    match word.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let text: &[u8] =
            b"transaction=17 dest_node=3 dest_proc=100 dest_thread=0 reply=0 flags=0x11 code=0x1";
        let call = BinderEvent::Sent { id: 17, is_reply: false, is_oneway: true };
        assert_eq!(sent(text), Some(call));
        let fields: &[u8] = b"debug_id=18 target_node=0 to_proc=90 to_thread=91 reply=1 code=0 flags=16";
        let reply = BinderEvent::Sent { id: 18, is_reply: true, is_oneway: false };
        assert_eq!(sent(fields), Some(reply));
        let received = Some(BinderEvent::Received { id: 18 });
        assert_eq!(super::received(b"transaction=18"), received);
        assert_eq!(super::received(b"transaction=x"), None);
    }
}
