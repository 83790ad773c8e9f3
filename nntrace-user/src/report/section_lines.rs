//! Single sections as lines, of text or of JSON, for lists of any length.
//!
//! There may be millions of them in a second: numbers are written by hand here, and names go through the common functions
//! only if they have a character that is not plain.

use nntrace_common::{attributes::Attributes, layer::Tag, stack::ON_NO_STACK};
use rustc_hash::FxHashMap;

use super::{
    number_format,
    terminal_text::{clean, to_json},
};
use crate::model::{section::Section, unfinished_sections::UnfinishedSection};

/// Adds a section as a line of text: begin (s), thread, duration, layer and phase, name and attributes. `depth` indents the
/// name.
pub fn text(line: &mut Vec<u8>, section: &Section<'_>, depth: usize) {
    put_place(line, section.begin_ns, section.tid);
    put_duration(line, section.duration_ns());
    put_function(line, Some(section.tag), depth, &section.name);
    for (key, value) in Attributes::of(section.attributes.as_bytes(), 0) {
        line.extend_from_slice(b"  ");
        put_clean(line, &String::from_utf8_lossy(key));
        line.push(b' ');
        put_clean(line, &String::from_utf8_lossy(value));
    }
    line.push(b'\n');
}

/// Adds a section that has not ended as a line of text, as [`text`] does one that has. Its attributes are not known.
pub fn unfinished_text(line: &mut Vec<u8>, section: &UnfinishedSection, depth: usize) {
    put_place(line, section.begin_ns(), section.tid);
    line.extend_from_slice(format!("{NOT_ENDED:>DURATION$}").as_bytes());
    put_function(line, section.tag, depth, &section.name);
    line.push(b'\n');
}

/// Adds begin (s) and thread.
fn put_place(line: &mut Vec<u8>, begin_ns: u64, tid: u32) {
    put_padded::<7>(line, begin_ns / 1_000_000_000, b' ');
    line.push(b'.');
    put_padded::<9>(line, begin_ns % 1_000_000_000, b'0');
    line.push(b' ');
    put_padded::<7>(line, u64::from(tid), b' ');
    line.push(b' ');
}

/// Adds layer and phase, where they are known, and the name, indented by a depth.
fn put_function(line: &mut Vec<u8>, tag: Option<Tag>, depth: usize, name: &str) {
    line.push(b' ');
    let begin = line.len();
    if let Some(tag) = tag {
        put_tag(line, tag.layer().code(), tag.phase().code());
    }
    line.resize((begin + 7).max(line.len()) + 2 * depth + 1, b' ');
    put_clean(line, name);
}

/// Adds a section that has not ended as a line of JSON, as [`json`] does one that has: what its end would show is null, and so
/// are its attributes and the number of sections around it.
///
/// # Errors
/// When a name cannot be written as JSON.
pub fn unfinished_json(
    line: &mut Vec<u8>,
    section: &UnfinishedSection,
    thread: Option<&str>,
) -> serde_json::Result<()> {
    let UnfinishedSection { pid, tid, tag, name, .. } = section;
    let object = serde_json::json!({
        "pid": pid,
        "tid": tid,
        "thread": thread,
        "begin_ns": section.begin_ns(),
        "end_ns": null,
        "duration_ns": null,
        "own_ns": null,
        "exclusive_ns": null,
        "depth": null,
        "layer": tag.map(|tag| tag.layer().code()),
        "phase": tag.map(|tag| tag.phase().code()),
        "class": tag.map(|_| section.class.word()),
        "name": name,
        "attributes": null,
    });
    line.extend(to_json(&object)?);
    Ok(())
}

/// Adds a section of a thread of this name, if it has one, as a line of JSON.
pub fn json(line: &mut Vec<u8>, section: &Section<'_>, thread: Option<&str>) {
    let numbers = |line: &mut Vec<u8>, numbers: &[(&str, u64)]| {
        for (key, number) in numbers {
            line.extend_from_slice(key.as_bytes());
            put_number(line, *number);
        }
    };
    let Section { pid, tid, begin_ns, end_ns, own_ns, exclusive_ns, depth, tag, class, .. } = section;
    numbers(line, &[("{\"pid\":", u64::from(*pid)), (",\"tid\":", u64::from(*tid))]);
    line.extend_from_slice(b",\"thread\":");
    match thread {
        Some(name) => put_string(line, name),
        None => line.extend_from_slice(b"null"),
    }
    let times = [
        (",\"begin_ns\":", *begin_ns),
        (",\"end_ns\":", *end_ns),
        (",\"duration_ns\":", section.duration_ns()),
        (",\"own_ns\":", *own_ns),
        (",\"exclusive_ns\":", *exclusive_ns),
        (",\"depth\":", u64::from(*depth)),
    ];
    numbers(line, &times);
    let words = [
        (",\"layer\":\"", tag.layer().code()),
        ("\",\"phase\":\"", tag.phase().code()),
        ("\",\"class\":\"", class.word()),
    ];
    for (key, word) in words {
        line.extend_from_slice(key.as_bytes());
        line.extend_from_slice(word.as_bytes());
    }
    line.extend_from_slice(b"\",\"name\":");
    put_string(line, &section.name);
    line.extend_from_slice(b",\"attributes\":{");
    put_attributes(line, section.attributes.as_bytes());
    line.extend_from_slice(b"}}\n");
}

/// Adds the pairs of an object. Of a key that occurs twice, the last value counts.
fn put_attributes(line: &mut Vec<u8>, text: &[u8]) {
    if text.is_empty() {
        return;
    }
    let mut comma = false;
    let mut pairs = Attributes::of(text, 0);
    while let Some((key, value)) = pairs.next() {
        if pairs.clone().any(|(later, _)| later == key) {
            continue;
        }
        if comma {
            line.push(b',');
        }
        comma = true;
        put_string(line, &String::from_utf8_lossy(key));
        line.push(b':');
        put_string(line, &String::from_utf8_lossy(value));
    }
}

/// Sections that are open around others, by thread, where sections come in the order of their begins.
#[derive(Debug, Default)]
pub struct Nesting {
    /// Ends of the open sections, ns, and how many were open around each, the outermost first.
    open: FxHashMap<Option<u32>, Vec<(u64, u8)>>,
}

impl Nesting {
    /// Returns the number of sections of its thread that contain a section, which is the next one to begin.
    pub fn depth(&mut self, thread: Option<u32>, section: &Section<'_>) -> usize {
        self.add(thread, section.end_ns, section.depth)
    }

    /// Returns the same number of a section that has not ended.
    pub fn unfinished_depth(&mut self, thread: Option<u32>, section: &UnfinishedSection) -> usize {
        self.add(thread, u64::MAX, section.depth)
    }

    fn add(&mut self, thread: Option<u32>, end_ns: u64, depth: u8) -> usize {
        let open = self.open.entry(thread).or_default();
        if depth == ON_NO_STACK {
            return open.iter().filter(|(end, _)| end_ns <= *end).count();
        }
        // Sections may have no length: what has as many around it is beside it, whatever the times. One whose record was lost
        // is not there, and then times decide.
        let contains = |&(end, around): &(u64, u8)| around < depth && end_ns <= end;
        while open.last().is_some_and(|around| !contains(around)) {
            open.pop();
        }
        open.push((end_ns, depth));
        open.len() - 1
    }
}

fn put_tag(line: &mut Vec<u8>, layer: &str, phase: &str) {
    line.extend_from_slice(layer.as_bytes());
    line.push(b'_');
    line.extend_from_slice(phase.as_bytes());
}

/// Adds text in which no character acts.
fn put_clean(line: &mut Vec<u8>, text: &str) {
    line.extend_from_slice(clean(text).as_bytes());
}

/// Adds a string of JSON.
fn put_string(line: &mut Vec<u8>, text: &str) {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        line.push(b'"');
        line.extend_from_slice(text.as_bytes());
        line.push(b'"');
    } else if let Ok(escaped) = to_json(&text) {
        line.extend_from_slice(escaped.trim_ascii_end());
    }
}

/// Digits of the largest number.
const DIGITS: usize = 20;

/// Returns the digits of a number at the end of a buffer.
fn digits(buffer: &mut [u8; DIGITS], mut number: u64) -> &[u8] {
    let mut at = DIGITS;
    loop {
        at -= 1;
        buffer[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &buffer[at..];
        }
    }
}

fn put_number(line: &mut Vec<u8>, number: u64) {
    line.extend_from_slice(digits(&mut [0; DIGITS], number));
}

/// Adds a number of this many columns at least.
fn put_padded<const WIDTH: usize>(line: &mut Vec<u8>, number: u64, padding: u8) {
    let mut buffer = [0; DIGITS];
    let digits = digits(&mut buffer, number);
    line.resize(line.len() + WIDTH.saturating_sub(digits.len()), padding);
    line.extend_from_slice(digits);
}

/// Columns of a duration.
const DURATION: usize = 9;
/// Text in place of the duration of a section that has not ended.
pub(super) const NOT_ENDED: &str = "not ended";

/// Adds a duration as [`number_format::duration_ns`] writes it, in nine columns.
fn put_duration(line: &mut Vec<u8>, ns: u64) {
    let mut text = [b' '; DURATION];
    let mut at = DURATION;
    let mut put = |character: u8| {
        at -= 1;
        text[at] = character;
    };
    let units: [(u64, &[u8]); 4] = [(1, b"sn"), (1_000, b"su"), (1_000_000, b"sm"), (1_000_000_000, b"s")];
    // Three digits: the unit in which the number rounds to less than a thousand.
    let fits = units.iter().find(|(unit, _)| ns < 1_000 * unit - unit / 2);
    let Some((unit, name)) = fits else {
        let text = number_format::duration_ns(ns);
        line.resize(line.len() + DURATION.saturating_sub(text.len()), b' ');
        line.extend_from_slice(text.as_bytes());
        return;
    };
    name.iter().for_each(|character| put(*character));
    put(b' ');
    let rounded = |scale: u64| (ns * scale + unit / 2) / unit;
    let (mut number, mut decimals) = match (rounded(100), rounded(10)) {
        _ if *unit == 1 => (ns, 0),
        (hundredths, _) if hundredths < 1_000 => (hundredths, 2),
        (_, tenths) if tenths < 1_000 => (tenths, 1),
        _ => (rounded(1), 0),
    };
    let mut point = decimals > 0;
    loop {
        put(b'0' + (number % 10) as u8);
        number /= 10;
        if point {
            decimals -= 1;
            if decimals == 0 {
                point = false;
                put(b'.');
                continue;
            }
        }
        if number == 0 && !point {
            break;
        }
    }
    line.extend_from_slice(&text);
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use nntrace_common::{
        layer::{Layer, Phase, Tag},
        stack::Class,
    };
    use proptest::prelude::*;

    use super::*;

    fn section<'a>(name: &'a str, attributes: &'a str) -> Section<'a> {
        Section {
            pid: 10,
            tid: 11,
            begin_ns: 2_000_000_345,
            end_ns: 2_001_234_912,
            own_ns: 1_000,
            exclusive_ns: 900,
            depth: 2,
            tag: Tag::new(Layer::Runtime, Phase::Execution),
            class: Class::Detail,
            path: 0,
            name: Cow::Borrowed(name),
            attributes: Cow::Borrowed(attributes),
            is_provisional: false,
            in_itself: false,
            sequences: (0, 0),
        }
    }

    #[test]
    fn a_line_of_text_has_fixed_columns() {
        let mut line = Vec::new();
        text(&mut line, &section("conv\x1b[2J", "#img=a\u{202e}#x"), 1);
        assert_eq!(
            String::from_utf8(line).unwrap(),
            "      2.000000345      11   1.23 ms LR_PE     conv\\x1b[2J  img a\\u{202e}  x \n"
        );
    }

    #[test]
    fn a_line_of_json_has_every_key() {
        let mut line = Vec::new();
        json(&mut line, &section("a\"\\\u{9b}é", "#img=a#x#img=b\""), Some("main_0"));
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        let expected = serde_json::json!({
            "pid": 10, "tid": 11, "thread": "main_0", "begin_ns": 2_000_000_345_u64, "end_ns": 2_001_234_912_u64,
            "duration_ns": 1_234_567, "own_ns": 1_000, "exclusive_ns": 900, "depth": 2, "layer": "LR", "phase": "PE",
            "class": "detail", "name": "a\"\\\u{9b}é", "attributes": {"x": "", "img": "b\""},
        });
        assert_eq!(value, expected);
        assert!(!String::from_utf8(line).unwrap().contains('\u{9b}'));
    }

    #[test]
    fn sections_are_in_those_that_contain_them() {
        let mut nesting = Nesting::default();
        let mut nested = |thread, begin_ns, end_ns, depth| {
            nesting.depth(Some(thread), &Section { begin_ns, end_ns, depth, ..section("", "") })
        };
        assert_eq!(nested(0, 0, 100, 0), 0);
        assert_eq!(nested(1, 5, 6, 0), 0);
        assert_eq!([nested(0, 0, 50, 1), nested(0, 10, 50, 2), nested(0, 50, 60, 1)], [1, 2, 1]);
        // Without length, at the end of what it is in; and beside what is as deep.
        assert_eq!([nested(0, 60, 60, 2), nested(0, 60, 60, 2), nested(0, 60, 60, 1)], [2, 2, 1]);
        // What was around it is lost.
        assert_eq!(nested(0, 90, 101, 3), 0);
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_the_common_functions(number in any::<u64>(), shift in 0..64_u32) {
            for number in [number >> shift, 999_500 + (number >> 60), 9_995, 999_499_999_999, 999_500_000_000] {
                let mut line = Vec::new();
                put_duration(&mut line, number);
                prop_assert_eq!(String::from_utf8(line).unwrap(), format!("{:>9}", number_format::duration_ns(number)));
                let mut line = Vec::new();
                put_number(&mut line, number);
                put_padded::<9>(&mut line, number, b'0');
                prop_assert_eq!(String::from_utf8(line).unwrap(), format!("{number}{number:09}"));
            }
        }
    }
}
