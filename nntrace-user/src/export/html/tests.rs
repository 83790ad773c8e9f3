//! The page as text, and what is kept for it. `tests/tests/results/html_report.rs` opens pages in a browser.

use std::borrow::Cow;

use nntrace_common::{
    layer::{Layer, Phase, Tag},
    stack::Class,
};
use serde_json::Value;

use super::{Report, Sections, Shown, hash, inert, render};
use crate::{export::tests::small_run, model::section::Section, report::snapshot::Snapshot};

fn section(name: &str, begin_ns: u64, end_ns: u64) -> Section<'_> {
    Section {
        pid: 70,
        tid: 71,
        begin_ns,
        end_ns,
        own_ns: end_ns - begin_ns,
        exclusive_ns: end_ns - begin_ns,
        depth: 0,
        tag: Tag::new(Layer::Runtime, Phase::Execution),
        class: Class::Section,
        path: 0,
        name: Cow::Borrowed(name),
        attributes: Cow::Borrowed("#iter=1"),
        is_provisional: false,
        in_itself: false,
        sequences: (0, 0),
    }
}

/// Returns the page of the small run with these sections.
fn page(title: &str, sections: &Sections) -> String {
    let run = small_run();
    let findings = run.findings();
    let report = Report {
        title,
        host_name: Some("board"),
        began_ns: None,
        findings: &findings,
        snapshot: &Snapshot::of(&findings),
        sections,
        threads: &[],
        timelines: run.timelines(),
    };
    String::from_utf8(render(&report).unwrap()).unwrap()
}

/// Returns what stands between two texts of a page.
fn between<'a>(page: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = page.split_once(before).unwrap();
    rest.split_once(after).unwrap().0
}

fn data(page: &str) -> Value {
    serde_json::from_str(between(page, "id=\"data\">", "</script>")).unwrap()
}

#[test]
fn no_text_ends_the_element_that_it_stands_in() {
    let text = "</script><script>alert(1)</script><!-- {data} {script} \u{2028}\0\u{202e}";
    let mut sections = Sections::default();
    sections.take(&section(text, 0, 10));
    let page = page(text, &sections);
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script").count(), 2);
    assert!(!page.contains("<!--") && !page.contains(['\u{2028}', '\0', '\u{202e}']));
    let data = data(&page);
    assert_eq!(data["title"], text);
    assert!(data["headline"][0].as_str().unwrap().contains(" ended "), "{}", data["headline"]);
    assert_eq!(data["swimlane"]["names"][0], text);
    assert_eq!(inert(b"<a<"), br"\u003ca\u003c");
}

#[test]
fn the_policy_allows_the_scripts_and_styles_of_the_page_alone() {
    let page = page("run", &Sections::default());
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"");
    let (style, script) =
        (between(&page, "<style>", "</style>"), between(&page, "<script type=\"module\">", "</script>"));
    let rules: Vec<&str> = policy.split("; ").collect();
    assert!(rules.contains(&"default-src 'none'"), "{policy}");
    assert!(rules.contains(&format!("script-src '{}'", hash(script)).as_str()), "{policy}");
    assert!(rules.contains(&format!("style-src '{}'", hash(style)).as_str()), "{policy}");
}

#[test]
fn the_longest_sections_are_kept_and_all_are_counted() {
    let mut sections = Sections::bounded(Shown { range: Some((100, 1_000)), least_ns: 6 }, 3, 1_000);
    for (begin, end) in
        [(0, 99), (0, 100), (200, 210), (300, 340), (400, 440), (500, 540), (600, 605), (700, 706)]
    {
        sections.take(&section("work", begin, end));
    }
    let swimlane = &data(&page("run", &sections))["swimlane"];
    assert_eq!(swimlane["all"], serde_json::json!({"count": 8, "ns": 99 + 100 + 10 + 3 * 40 + 5 + 6}));
    assert_eq!(swimlane["outside"], serde_json::json!({"count": 1, "ns": 99}));
    assert_eq!(swimlane["short"], serde_json::json!({"count": 1, "ns": 5}));
    assert_eq!(swimlane["hidden"], serde_json::json!({"count": 3, "ns": 10 + 40 + 6}));
    // Of equally long ones, the first. Begins are from that of the window on, and each from the one before it.
    assert_eq!(swimlane["columns"]["duration"], serde_json::json!([100, 40, 40]));
    assert_eq!(swimlane["columns"]["begin"], serde_json::json!([-1_000_000_000, 300, 100]));
}

#[test]
fn texts_take_bounded_memory() {
    let mut sections = Sections::bounded(Shown::default(), 100, 5_000);
    let long = "é".repeat(1 << 20);
    for length in 1..=50 {
        sections.take(&section(&long, 0, length));
    }
    let held = sections.by_thread();
    assert_eq!(held.len(), 4);
    assert!(held.iter().all(|held| held.name.len() < 1_100 && held.name.ends_with('\u{2026}')));
    assert_eq!(held.iter().map(|held| held.duration_ns).min(), Some(47));
    assert_eq!((sections.all.sections, sections.hidden.sections), (50, 46));
}
