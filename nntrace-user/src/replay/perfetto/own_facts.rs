//! Facts that this program's own export has as attributes of the trace.

use crate::{
    perfetto_schema::{
        TraceAttribute,
        own::{POWER, RUN, WINDOW_BEGIN, WINDOW_END},
    },
    replay::declared::Declared,
};

/// Last time on the kernel's clocks, ns.
const END_OF_TIME: u64 = i64::MAX.cast_unsigned() - 1;

/// Takes an attribute; others, and those that cannot be read, declare nothing.
pub(super) fn take(attribute: &TraceAttribute, declared: &mut Declared) {
    let key = attribute.key.as_deref().unwrap_or_default();
    let json = attribute.string_value.as_deref().unwrap_or_default();
    let time =
        attribute.long_value.and_then(|time| u64::try_from(time).ok()).map(|time| time.min(END_OF_TIME));
    if key == WINDOW_BEGIN.as_bytes() {
        let Some(begin) = time else { return };
        declared.window = Some((begin, declared.window.map_or(begin, |(_, end)| end.max(begin))));
    } else if key == WINDOW_END.as_bytes() {
        let Some(end) = time else { return };
        declared.window = Some((declared.window.map_or(end, |(begin, _)| begin.min(end)), end));
    } else if key == POWER.as_bytes() {
        declared.power = serde_json::from_slice(json).ok().or(declared.power.take());
    } else if key == RUN.as_bytes() {
        declared.run = serde_json::from_slice(json).ok().or(declared.run.take());
    }
}
