//! Trace text inside the web pages that systrace writes.
//!
//! ```text
//! <script class="trace-data" type="application/text">        var linuxPerfData = "\
//! # tracer: nop                                              # tracer: nop\n\
//! ..                                                         ..\n\
//!   </script>                                                  dummy-0000  [000] 0.0: 0: ..\n";
//! ```
//!
//! The text is there as it was recorded: systrace's `output_generator.py` writes strings unchanged, older versions
//! replaced line ends only, and the viewer reads the blocks without decoding. So `&lt;` in a mark is what the program
//! wrote, and stays.

use std::mem;

use memchr::{memchr, memchr_iter, memmem};

use super::ftrace::{self, Parsed};

/// Whether a file that begins like this is a web page.
#[must_use]
pub(crate) fn looks_like_html(start: &[u8]) -> bool {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    begins_with(start, b"<!doctype") || begins_with(start, b"<html")
}

/// Filter for the trace text in a page, fed line by line.
#[derive(Debug, Default)]
pub(crate) struct Html {
    state: State,
}

/// Context of the next byte.
#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Page,
    Comment,
    /// Inside of `<script ..>`; whether the class was seen in it.
    Tag {
        data: bool,
    },
    /// Script of the viewer.
    Script,
    /// String of the old form.
    PerfData,
    /// Block of data. Each of systrace's agents writes one, and only one of them writes ftrace text: a block counts
    /// from the first line on that looks like it.
    Data {
        started: bool,
    },
}

const SCRIPT: &[u8] = b"<script";
const END: &[u8] = b"</script";
const CLASS: &[u8] = b"trace-data";

impl Html {
    /// Returns the trace text of the next line, if any; of two pieces in one line, the first.
    pub(crate) fn feed<'a>(&mut self, line: &'a [u8]) -> Option<&'a [u8]> {
        let mut rest = line;
        let mut text = None;
        while !rest.is_empty() {
            let piece = self.step(&mut rest);
            text = text.or(piece);
        }
        text
    }

    /// Advances to the next change of state, or to the line's end.
    fn step<'a>(&mut self, rest: &mut &'a [u8]) -> Option<&'a [u8]> {
        // Long lines come truncated, and the end of a script may be in the part cut off.
        if matches!(self.state, State::Script | State::Data { .. }) && opens_data(rest) {
            self.state = State::Page;
        }
        let text = mem::take(rest);
        match self.state {
            State::Page => {
                if let Some(tag) = next_tag(text, |tag| begins_with(tag, SCRIPT) || tag.starts_with(b"<!--"))
                {
                    let script = tag.starts_with(SCRIPT) || begins_with(tag, SCRIPT);
                    self.state = if script { State::Tag { data: false } } else { State::Comment };
                    *rest = &tag[if script { SCRIPT.len() } else { b"<!--".len() }..];
                }
            }
            State::Comment => {
                if let Some(at) = memmem::find(text, b"-->") {
                    self.state = State::Page;
                    *rest = &text[at + b"-->".len()..];
                }
            }
            State::Tag { data } => {
                let end = memchr(b'>', text);
                let data = data || memmem::find(&text[..end.unwrap_or(text.len())], CLASS).is_some();
                self.state = match end {
                    Some(_) if data => State::Data { started: false },
                    Some(_) => State::Script,
                    None => State::Tag { data },
                };
                *rest = end.map_or(&[], |at| &text[at + 1..]);
            }
            State::Script if text.trim_ascii() == b"var linuxPerfData = \"\\" => self.state = State::PerfData,
            State::Script => self.script_end(text, rest),
            State::PerfData => return self.perf_data(text),
            State::Data { started } => {
                self.script_end(text, rest);
                let piece = &text[..text.len() - rest.len()];
                let started = started || piece.starts_with(b"#") || is_trace(piece);
                if let State::Data { started: state } = &mut self.state {
                    *state = started;
                }
                return (started && !piece.trim_ascii().is_empty()).then_some(piece);
            }
        }
        None
    }

    /// Leaves a script at its end.
    fn script_end<'a>(&mut self, text: &'a [u8], rest: &mut &'a [u8]) {
        if let Some(tag) = next_tag(text, |tag| begins_with(tag, END)) {
            self.state = State::Page;
            *rest = tag;
        }
    }

    /// Returns the trace text in a line of the string.
    fn perf_data<'a>(&mut self, text: &'a [u8]) -> Option<&'a [u8]> {
        if begins_with(text.trim_ascii_start(), END) {
            self.state = State::Page;
            return None;
        }
        if let Some(piece) = text.strip_suffix(b"\\n\\") {
            return Some(piece);
        }
        let Some(piece) = text.strip_suffix(b"\";") else { return Some(text) };
        self.state = State::Script;
        let piece = piece.strip_suffix(b"\\n").unwrap_or(piece);
        // The page's own last line has time 0, and would set the begin of the trace.
        let made_up = piece.trim_ascii_start().starts_with(b"dummy-0000");
        (!made_up && !piece.is_empty()).then_some(piece)
    }
}

/// Whether the text begins with a tag, in any case.
fn begins_with(text: &[u8], tag: &[u8]) -> bool {
    text.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag))
}

/// Returns the text from the next matching tag on.
fn next_tag(text: &[u8], is: impl Fn(&[u8]) -> bool) -> Option<&[u8]> {
    memchr_iter(b'<', text).map(|at| &text[at..]).find(|tag| is(tag))
}

/// Whether a block of data begins with this line. The viewer's scripts contain such text, too, but in the middle of a
/// line.
fn opens_data(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    begins_with(line, SCRIPT) && memmem::find(line, CLASS).is_some()
}

fn is_trace(line: &[u8]) -> bool {
    matches!(ftrace::parse(line), Parsed::Event(_) | Parsed::Lost(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(page: &str) -> Vec<&str> {
        let mut html = Html::default();
        page.lines()
            .filter_map(|line| html.feed(line.as_bytes()))
            .map(|text| str::from_utf8(text).unwrap())
            .collect()
    }

    #[test]
    fn pages_are_told_from_traces() {
        assert!(looks_like_html(b"<!DOCTYPE html>\n<html>"));
        assert!(looks_like_html(b"\xef\xbb\xbf \n<!doctype HTML>"));
        assert!(looks_like_html(b"<HTML lang=en>"));
        for text in ["", "<", "# tracer: nop", "<idle>-0 [000]", "<...>-5 [000]"] {
            assert!(!looks_like_html(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn blocks_of_trace_data() {
        let page = r##"<!DOCTYPE html>
<html><head><!-- <script class="trace-data"> -->
<script>if (/^  <script class="trace-data" type="application\/text">$/.test(x)) { a = "# tracer" }
# no trace
</script><style>p { color: red }</style></head><body>
<!-- BEGIN TRACE -->
  <script class="trace-data" type="application/text">
{"traceEvents": []}  </script>
  <script class="trace-data" type="application/text">
PROCESS DUMP
USER PID
  </script>
  <script class="trace-data" type="application/text">
# tracer: nop

 a-1 [000] ...1 1.5: tracing_mark_write: B|1|a &lt; b
  </script>
<!-- END TRACE -->
</body></html>"##;
        let wanted = ["# tracer: nop", " a-1 [000] ...1 1.5: tracing_mark_write: B|1|a &lt; b"];
        assert_eq!(pieces(page), wanted);
    }

    #[test]
    fn blocks_begin_and_end_within_a_line() {
        let page = "<html><script
class='trace-data'># one</script><p><SCRIPT class=trace-data>\n# two\n three</SCRIPT> # none";
        assert_eq!(pieces(page), ["# one", "# two", " three"]);
    }

    #[test]
    fn a_script_whose_end_was_cut_off_hides_nothing() {
        let page = "<html><script>var viewer = 1;
<script class=\"trace-data\">\n{\"json\":
  <script class=\"trace-data\">\n# tracer\n</script>";
        assert_eq!(pieces(page), ["# tracer"]);
    }

    #[test]
    fn the_old_form() {
        let page = r#"<!DOCTYPE HTML>
<html>
  <script>
  var x = /^  var linuxPerfData = "\\$/;
  var linuxPerfData = "\
# tracer: nop\n\
 a-1 [000] ...1 1.5: tracing_mark_write: E\n\
\n\
           dummy-0000  [000] 0.0: 0: trace_event_clock_sync: parent_ts=0.0\n";
  var timelineViewEl;
  </script>
</body>"#;
        assert_eq!(pieces(page), ["# tracer: nop", " a-1 [000] ...1 1.5: tracing_mark_write: E", ""]);
    }

    proptest::proptest! {
        #[test]
        fn anything_is_survived(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![
                    "<script", "</script>", "class=\"trace-data\"", ">", "<!--", "-->", "\n", "#", "a ", "\\n\\",
                    "  var linuxPerfData = \"\\\n", "\";\n",
                ]),
                0..60,
            )
        ) {
            let page = parts.concat();
            let found: usize = pieces(&page).iter().map(|piece| piece.len()).sum();
            proptest::prop_assert!(found <= page.len());
        }
    }
}
