//! Lines that are no event: notices of losses, messages of tools, descriptions of the host.

use memchr::memmem;

use super::{Parsed, digits, number, skip_blanks};
use crate::replay::losses::Loss;

/// Parses the kernel's `CPU:2 [LOST 123 EVENTS]`, trace-cmd's `CPU:2 [123 EVENTS DROPPED]`, and both without a
/// number.
pub(crate) fn lost(text: &[u8]) -> Option<Parsed<'_>> {
    let (cpu, rest) = number(text.strip_prefix(b"CPU:")?)?;
    let inside = rest.strip_prefix(b" [")?.strip_suffix(b"]")?;
    let inside = match inside.strip_prefix(b"LOST ") {
        Some(inside) => inside.strip_suffix(b"EVENTS")?,
        None => inside.strip_suffix(b"EVENTS DROPPED")?,
    };
    let (count, places) = digits(inside, 19);
    match (places, &inside[places..]) {
        (0, b"") => Some(Parsed::Lost(Loss::Gap { cpu, events: None })),
        (1.., b" ") => Some(Parsed::Lost(Loss::Gap { cpu, events: Some(count) })),
        _ => None,
    }
}

/// Parses the kernel's notices of an overwritten ring: `# entries-in-buffer/entries-written: 7/2000   #P:2` for all
/// CPUs, and, where one of them was overwritten, `##### CPU 1 buffer started ####` before the first event of each.
#[cold]
pub(crate) fn overwritten(line: &[u8]) -> Option<Loss> {
    if let Some(rest) = line.strip_prefix(b"##### CPU ") {
        let (cpu, rest) = number(rest)?;
        return (rest == b" buffer started ####").then_some(Loss::Started { cpu });
    }
    let counts = skip_blanks(&line[1..]).strip_prefix(b"entries-in-buffer/entries-written:")?;
    let counts = skip_blanks(counts);
    let (left, places) = digits(counts, 19);
    let (written, _) = digits(counts[places..].strip_prefix(b"/")?, 19);
    (places > 0 && written > left).then(|| Loss::Overwritten { events: written - left })
}

/// Whether a line is a message of a tool about itself or the host, or a frame of a call stack.
pub(crate) fn is_chatter(text: &[u8]) -> bool {
    let starts = |start: &str| text.starts_with(start.as_bytes());
    let counted = |start: &str| {
        let rest = text.strip_prefix(start.as_bytes());
        rest.is_some_and(|rest| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit))
    };
    text.is_empty()
        || starts("#")
        || starts("version = ")
        || starts("idlestat version = ")
        || counted("cpus=")
        || starts("CPU ") && text.ends_with(b" is empty")
        || starts("CPU:") && memmem::find(text, b"[SUBBUFFER START]").is_some()
        || starts("capturing trace...")
        || text == b"done"
        || text == b"TRACE:"
        || starts("=> ")
        // idlestat describes the host so.
        || starts("cluster") && text.ends_with(b":")
        || counted("core")
        || counted("cpu")
}
