//! Text of a mark.

use core::ffi::CStr;
use core::fmt::{self, Write as _};

use super::{current_pid, tracing_mark_write};
use crate::layer::{Layer, Phase};
use crate::mark::{self, Kind, Prefix};

/// Size of the longest payload, its closing NUL included, bytes.
pub const CAPACITY: usize = 256;

/// Formatted mark that is not yet written; text that does not fit in [`CAPACITY`] is cut off.
///
/// Programs normally use [`mark!`](crate::mark!). A payload of its own is of use where the clock is to be read
/// directly before the mark.
#[derive(Clone, Copy)]
pub struct Payload {
    /// Text; the byte at `len`, at the latest the last one, stays NUL.
    bytes: [u8; CAPACITY],
    len: usize,
    /// Whether the text was cut.
    is_full: bool,
    /// Whether it begins a section that may be in a lane.
    begins_in_lane: bool,
}

impl Payload {
    /// Formats a begin: `B|<pid>|[NN_<layer>_<phase>]<name>`.
    #[must_use]
    pub fn begin(layer: Layer, phase: Phase, name: &str) -> Self {
        Self::section(Prefix::None, layer, phase, name)
    }

    /// Formats a begin, as [`Payload::begin`], with a name as format arguments, `format_args!("conv2d#img={image}")`.
    #[must_use]
    pub fn begin_args(layer: Layer, phase: Phase, name: fmt::Arguments<'_>) -> Self {
        let mut payload = Self::section(Prefix::None, layer, phase, "");
        payload.push_args(name);
        payload
    }

    /// Formats a switch, which ends the open section and begins another in its place:
    /// `B|<pid>|[SW][NN_<layer>_<phase>]<name>`.
    #[must_use]
    pub fn switch(layer: Layer, phase: Phase, name: &str) -> Self {
        Self::section(Prefix::Switch, layer, phase, name)
    }

    /// Formats a begin with a prefix: `B|<pid>|<prefix>[NN_<layer>_<phase>]<name>`.
    #[must_use]
    pub fn section(prefix: Prefix, layer: Layer, phase: Phase, name: &str) -> Self {
        let mut payload = Self::untagged();
        payload.push_section(prefix, layer, phase, name);
        payload
    }

    /// Takes a text as it is, such as one that was recorded, up to its first NUL. Of one that is too long the end is cut off.
    #[must_use]
    pub fn of_text(text: &[u8]) -> Self {
        let mut payload = Self::empty();
        let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
        let fitting = &text[..text.len().min(CAPACITY - 1)];
        payload.bytes[..fitting.len()].copy_from_slice(fitting);
        payload.len = fitting.len();
        payload.is_full = fitting.len() < text.len();
        if mark::kind(fitting) == Some(Kind::Begin) {
            let label = mark::begin(fitting).label;
            payload.begins_in_lane = label.is_tagged() && !label.is_application_phase();
        }
        payload
    }

    /// Formats an instant: `I|<pid>|<name>`.
    #[must_use]
    pub fn instant(name: &str) -> Self {
        let mut payload = Self::of_kind("I|");
        payload.push("|");
        payload.push(name);
        payload
    }

    /// Formats the value of a counter: `C|<pid>|<name>|<value>`.
    #[must_use]
    pub fn counter(name: &str, value: i64) -> Self {
        let mut payload = Self::of_kind("C|");
        payload.push("|");
        payload.push(name);
        payload.push(if value < 0 { "|-" } else { "|" });
        payload.push_number(value.unsigned_abs());
        payload
    }

    /// Appends `#<key>=<value>`. A `#` or a control character in the value is written as `_`: it would end the value.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl fmt::Display) -> Self {
        self.push("#");
        self.push(key);
        self.push("=");
        let from = self.len;
        self.push_args(format_args!("{value}"));
        for byte in &mut self.bytes[from..self.len] {
            if *byte == b'#' || byte.is_ascii_control() {
                *byte = b'_';
            }
        }
        self
    }

    /// Formats an end: `E|<pid>`.
    #[must_use]
    pub fn end() -> Self {
        Self::of_kind("E|")
    }

    /// Returns the text as C sees it: a NUL in a name ends it there.
    #[must_use]
    pub fn as_c_str(&self) -> &CStr {
        // The last byte is never written, so there is always a NUL to find.
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }

    /// Returns the text as it is in a lane.
    pub(super) fn text(&self) -> &[u8] {
        self.as_c_str().to_bytes()
    }

    /// Whether it begins a section that may be in a lane: not one of a phase of the application, which matters to other
    /// threads.
    pub(super) fn begins_in_lane(&self) -> bool {
        self.begins_in_lane
    }

    /// Passes the text to the probe, and to ftrace if that is enabled.
    ///
    /// It never takes the express lane, so a begin that is written like this ends by `Payload::end().write()`.
    #[inline]
    pub fn write(&self) {
        tracing_mark_write(self.bytes.as_ptr());
        #[cfg(feature = "std")]
        if super::sink::may_be_open() {
            super::sink::write(&self.bytes[..self.len]);
        }
    }

    pub(super) const fn empty() -> Self {
        Self { bytes: [0; CAPACITY], len: 0, is_full: false, begins_in_lane: false }
    }

    /// Formats the kind and the process.
    fn of_kind(kind: &str) -> Self {
        let mut payload = Self::empty();
        payload.push(kind);
        payload.push_number(u64::from(current_pid()));
        payload
    }

    /// Formats what is before the prefix of a begin: `B|<pid>|`.
    pub(super) fn untagged() -> Self {
        let mut payload = Self::of_kind("B|");
        payload.push("|");
        payload
    }

    /// Appends `<prefix>[NN_<layer>_<phase>]<name>`.
    pub(super) fn push_section(&mut self, prefix: Prefix, layer: Layer, phase: Phase, name: &str) {
        let prefix = match prefix {
            // No text has the latter.
            Prefix::None | Prefix::Handed | Prefix::Part => "",
            Prefix::Switch => "[SW]",
            Prefix::Subtract => "[SUB]",
        };
        self.push_tagged(prefix, layer.code(), phase.code(), name);
    }

    /// Appends a section by the letters of its tag.
    pub(super) fn push_tagged(&mut self, prefix: &str, layer: &str, phase: &str, name: &str) {
        self.push(prefix);
        let tag_at = self.len;
        for piece in ["[NN_", layer, "_", phase, "]"] {
            self.push(piece);
        }
        // By the text, as a span may have any letters.
        let tag = &self.bytes[tag_at..self.len];
        let application = [&b"[NN_LA_PO]"[..], b"[NN_LA_PWU]", b"[NN_LA_PBM]"];
        self.begins_in_lane = !application.iter().any(|phase| tag.starts_with(phase));
        self.push(name);
    }

    /// Appends as many whole characters as fit, nothing after a text that was cut. Returns whether all of them fit.
    pub(super) fn push(&mut self, text: &str) -> bool {
        let room = if self.is_full { 0 } else { CAPACITY - 1 - self.len };
        let fitting = &text[..text.floor_char_boundary(room)];
        self.bytes[self.len..self.len + fitting.len()].copy_from_slice(fitting.as_bytes());
        self.len += fitting.len();
        self.is_full |= fitting.len() < text.len();
        !self.is_full
    }

    /// Appends a number in decimal, much faster than the formatting machinery.
    fn push_number(&mut self, mut number: u64) {
        let mut digits = [0; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        // Digits are text, so there is always some.
        self.push(str::from_utf8(&digits[first..]).unwrap_or_default());
    }

    /// Appends formatted text until it no longer fits.
    fn push_args(&mut self, text: fmt::Arguments<'_>) {
        /// Stops at the first piece that does not fit.
        struct Tail<'a>(&'a mut Payload);
        impl fmt::Write for Tail<'_> {
            fn write_str(&mut self, piece: &str) -> fmt::Result {
                if self.0.push(piece) { Ok(()) } else { Err(fmt::Error) }
            }
        }
        // An error means that the name was cut, as documented.
        let _ = Tail(self).write_fmt(text);
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Payload").field(&self.as_c_str()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a payload as text.
    fn text(payload: &Payload) -> String {
        payload.as_c_str().to_str().unwrap().to_owned()
    }

    fn begin(rest: &str) -> String {
        format!("B|0|{rest}")
    }

    #[test]
    fn formats_sections_and_ends() {
        let sections = [
            (Payload::begin(Layer::Runtime, Phase::Execution, "compute|now"), "[NN_LR_PE]compute|now"),
            (Payload::begin(Layer::Application, Phase::Overall, ""), "[NN_LA_PO]"),
            (Payload::switch(Layer::CpuFallback, Phase::Computation, "conv2d"), "[SW][NN_LC_PCO]conv2d"),
            (Payload::section(Prefix::Subtract, Layer::Driver, Phase::Results, "r"), "[SUB][NN_LD_PR]r"),
        ];
        for (payload, expected) in sections {
            assert_eq!(text(&payload), begin(expected));
        }
        assert_eq!(text(&Payload::end()), "E|0");
    }

    #[test]
    fn formats_instants_and_counters() {
        let send = Payload::instant("nn.send").with("h", u64::MAX);
        assert_eq!(text(&send), format!("I|0|nn.send#h={}", u64::MAX));
        for (value, shown) in [(0, "0"), (-5, "-5"), (i64::MIN, "-9223372036854775808")] {
            assert_eq!(text(&Payload::counter("queue", value)), format!("C|0|queue|{shown}"));
        }
    }

    #[test]
    fn the_macro_tells_all() {
        let payload = crate::mark!(@payload None LA PE "image", iter 7, acct "foo", img "a#b\n.jpg");
        assert_eq!(text(&payload), begin("[NN_LA_PE]image#iter=7#acct=foo#img=a_b_.jpg"));
        let payload = crate::mark!(@payload Subtract LR PC "late");
        assert_eq!(text(&payload), begin("[SUB][NN_LR_PC]late"));
    }

    #[test]
    fn formats_attributes() {
        let payload =
            Payload::begin_args(Layer::Application, Phase::Execution, format_args!("image#iter={}", 7));
        assert_eq!(text(&payload), begin("[NN_LA_PE]image#iter=7"));
    }

    #[test]
    fn cuts_long_names_at_a_character() {
        for padding in 0..4 {
            let name = format!("{}{}", "x".repeat(padding), "ü€".repeat(200));
            for payload in [
                Payload::begin(Layer::Driver, Phase::Execution, &name),
                Payload::begin_args(Layer::Driver, Phase::Execution, format_args!("{name}")),
            ] {
                let text = text(&payload);
                assert!((CAPACITY - 3..CAPACITY).contains(&text.len()), "{}", text.len());
                assert!(name.starts_with(text.strip_prefix(&begin("[NN_LD_PE]")).unwrap()));
            }
        }
    }

    #[test]
    fn keeps_a_name_that_just_fits() {
        let room = CAPACITY - 1 - begin("[NN_LD_PE]").len();
        let name = "n".repeat(room);
        let payload = Payload::begin(Layer::Driver, Phase::Execution, &name);
        assert!(text(&payload).ends_with(&name));
        assert_eq!(payload.bytes[CAPACITY - 1], 0);
    }

    #[test]
    fn nothing_follows_a_piece_that_was_cut() {
        let payload =
            Payload::begin_args(Layer::Driver, Phase::Execution, format_args!("{}{}", "€".repeat(200), "x"));
        assert!(text(&payload).ends_with('€'));
        assert!(text(&payload.with("n", 1)).ends_with('€'));
    }

    #[test]
    fn takes_texts_as_they_are() {
        for (written, in_lane) in [
            ("B|7|[NN_LR_PE]run#iter=3", true),
            ("B||[SW][NN_LC_PCO]conv2d", true),
            ("B|7|[NN_LA_PBM]case", false),
            ("B|7|somebody else", false),
            ("I|7|nn.send#h=1", false),
            ("free text", false),
        ] {
            let payload = Payload::of_text(written.as_bytes());
            assert_eq!((text(&payload).as_str(), payload.begins_in_lane()), (written, in_lane));
        }
        assert_eq!(text(&Payload::of_text(b"E|7\0rest")), "E|7");
        assert_eq!(text(&Payload::of_text(&[b'x'; 2 * CAPACITY])).len(), CAPACITY - 1);
    }

    #[test]
    fn a_nul_ends_the_name() {
        assert_eq!(text(&Payload::begin(Layer::Driver, Phase::Execution, "a\0b")), begin("[NN_LD_PE]a"));
    }
}
