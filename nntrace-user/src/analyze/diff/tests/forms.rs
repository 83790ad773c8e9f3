//! Forms of a comparison: as reviewed, and inert.

use super::{Machine, OPTIONS, pool};
use crate::analyze::diff::{Diff, Run, Threshold};

fn thresholds(texts: &[&str]) -> Vec<Threshold> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn slower() -> Machine {
    Machine { slow_down: Some(("LD_PE", 1.05)), noise: 0.01, ..Machine::default() }
}

fn plain() -> Machine {
    Machine { noise: 0.01, ..Machine::default() }
}

fn diff(before: &[Run], after: &[Run], conditions: &[&str]) -> Diff {
    Diff::new(before, after, &OPTIONS, &thresholds(conditions)).unwrap()
}

#[test]
fn groups_of_runs_are_shown_as_reviewed() {
    let (before, after) = (pool(&plain(), 10, 5), pool(&slower(), 10, 6));
    let diff = diff(&before, &after, &["worse", "LD_PE.p99 > +3%", "LR_PC.mean > 2s"]);
    assert!(diff.is_tripped());
    insta::assert_snapshot!("groups_text", diff.text(false));
    insta::assert_snapshot!("groups_markdown", diff.markdown());
    insta::assert_snapshot!("groups_junit", diff.junit());
    let xml = diff.junit();
    let document = roxmltree::Document::parse(&xml).unwrap();
    let cases = || document.descendants().filter(|node| node.has_tag_name("testcase"));
    let suite = document.descendants().find(|node| node.has_tag_name("testsuite")).unwrap();
    assert_eq!(suite.attribute("tests"), Some(&*cases().count().to_string()));
    let failed = document.descendants().filter(|node| node.has_tag_name("failure")).count();
    assert_eq!(suite.attribute("failures"), Some(&*failed.to_string()));
    let json = serde_json::to_value(&diff).unwrap();
    assert_eq!(json["schema"], "nntrace-diff");
    let worse = json["metrics"].as_array().unwrap().iter().filter(|row| row["verdict"] == "worse");
    assert!(worse.clone().any(|row| row["name"] == "LD_PE.mean" && row["family"] == "phases"));
    assert_eq!(json["thresholds"][0]["is_tripped"], true);
    assert_eq!(json["thresholds"][2]["is_tripped"], false);
    // The same runs give the same figures.
    assert_eq!(
        diff.text(true),
        self::diff(&before, &after, &["worse", "LD_PE.p99 > +3%", "LR_PC.mean > 2s"]).text(true)
    );
}

#[test]
fn one_run_of_each_has_no_verdict_and_says_so() {
    let (before, after) = (pool(&plain(), 1, 5), pool(&slower(), 1, 6));
    let diff = diff(&before, &after, &["LD_PE.mean > +2%"]);
    assert!(diff.is_tripped());
    insta::assert_snapshot!("single_text", diff.text(false));
    assert!(diff.markdown().contains("one run of each side is not enough for a verdict"));
    assert!(diff.junit().contains("<skipped message="));
    let error = Diff::new(&before, &after, &OPTIONS, &thresholds(&["worse"])).unwrap_err();
    assert!(error.contains("one run of each side"), "{error}");
    let three = Diff::new(&pool(&plain(), 3, 5), &pool(&slower(), 3, 6), &OPTIONS, &[]).unwrap();
    assert!(three.text(false).contains("3 and 3 runs are too few"), "{}", &*three.text(false));
    assert!(!three.text(false).contains("worse"), "{}", &*three.text(false));
}

#[test]
fn another_machine_is_refused_in_part_and_another_length_is_none() {
    let (before, mut after) = (pool(&plain(), 8, 5), pool(&Machine { cpus: 3, ..plain() }, 8, 6));
    let text = diff(&before, &after, &[]).text(true);
    assert!(text.contains("residency is not compared: the CPUs differ: 0-1"), "{}", &*text);
    assert!(text.contains("LD_PE.mean") && !text.contains("cpu0."), "{}", &*text);

    // Twice as long does twice as much.
    after = pool(&Machine { executions: 40, ..plain() }, 8, 6);
    after[0].snapshot.host.kernel = "6.6".into();
    after[1].snapshot.tool.version = "9.9.9".into();
    let text = diff(&before, &after, &[]).text(true);
    assert!(
        text.contains("the windows differ in length") && text.contains("the kernel differs"),
        "{}",
        &*text
    );
    assert!(text.contains("the version of nntrace-bpf differs: "), "{}", &*text);
    assert!(text.contains("for each execution") && text.contains("no change found"), "{}", &*text);
    let total = |text: &str| text.lines().find(|line| line.contains("LD_PE.total")).unwrap().to_owned();
    let line = total(&text);
    let values: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!((values[1] / values[0] - 1.0).abs() < 0.05, "{line}");

    for run in &mut after {
        run.snapshot.reports.clear();
    }
    let text = diff(&before, &after, &[]).text(true);
    assert!(text.contains("for each second"), "{}", &*text);
}

#[test]
fn what_was_lost_is_marked_and_not_judged() {
    let (before, mut after) = (pool(&plain(), 8, 5), pool(&slower(), 8, 6));
    after[3].snapshot.loss.incomplete = vec!["functions".into(), "phases.histogram".into()];
    let text = diff(&before, &after, &[]).text(true);
    assert!(text.contains("records were lost in run3.json"), "{}", &*text);
    let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(
        line("LD_PE.p99").contains('~') && line("LD_PE.p99").ends_with("incomplete"),
        "{}",
        line("LD_PE.p99")
    );
    assert!(
        !line("LD_PE.mean").contains('~') && line("LD_PE.mean").ends_with("worse"),
        "{}",
        line("LD_PE.mean")
    );
}

#[test]
fn names_cannot_act_in_any_form() {
    let (mut before, after) = (pool(&plain(), 2, 5), pool(&plain(), 2, 6));
    let hostile = "a|b`c</td>]]>\"&\x1b[2J\n# @all\u{202e}\u{ffff}";
    before[0].name = hostile.into();
    for run in &mut before {
        run.snapshot.functions[0].name = hostile.into();
    }
    let diff = diff(&before, &after, &["* > +1000%"]);
    let (markdown, junit, text) = (diff.markdown(), diff.junit(), diff.text(true));
    let forms = [("markdown", &*markdown), ("junit", &junit), ("text", &text)];
    for (form, text) in forms {
        let acts = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(acts), "{form}: {text}");
    }
    roxmltree::Document::parse(&junit).unwrap();
    let named = markdown.lines().find(|line| line.contains("before: ")).unwrap();
    assert!(named.contains("a\\|b`c</td>"), "{named}");
    assert!(!markdown.contains("\n# @all"));
}
