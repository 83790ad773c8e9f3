//! What ended before the range is in no result of it.

use std::io::Write as _;

use crate::{
    model::{
        causality::Questions,
        section_filter::{Hidden, SectionFilter},
    },
    replay::{Options, Replayed, TimeRange, replay},
    report::{section_list, snapshot::Snapshot},
};

const SECOND: u64 = 1_000_000_000;

fn replayed(lines: &[(u64, u32, &str)], begin: u64, questions: Questions) -> Replayed {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for (at, tid, text) in lines {
        writeln!(file, "a-{tid} (1) [000] {at}.0: tracing_mark_write: {text}").unwrap();
    }
    let range = Some(TimeRange { begin: begin * SECOND, end: u64::MAX });
    let options = Options { files: vec![file.path().to_owned()], range, questions, ..Options::default() };
    replay(&options).unwrap()
}

#[test]
fn sections_and_iterations() {
    let lines = [
        (1, 1, "B|1|[NN_LR_PE]infer#iter=1"),
        (2, 1, "E|1"),
        (2, 1, "B|1|[NN_LR_PE]old#iter=1"),
        (3, 1, "E|1"),
        (3, 1, "B|1|[NN_LR_PE]infer#iter=2"),
        (4, 1, "B|1|[NN_LD_PE]over"),
        (5, 1, "E|1"),
        (9, 1, "E|1"),
        (9, 1, "B|1|[NN_LR_PE]infer#iter=3"),
    ];
    let run = replayed(&lines, 7, Questions { graph: true, ..Questions::default() });
    let findings = run.findings();
    let rows = Snapshot::of(&findings).iterations;
    let rows: Vec<_> =
        rows.iter().map(|row| (&*row.name, row.count, row.open, row.total_ns / SECOND)).collect();
    assert_eq!(rows, [("infer", 1, 1, 2)]);
    let list = section_list::list(findings.marks, &SectionFilter::default(), &mut Hidden::default());
    let list: Vec<_> =
        list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        list,
        ["7.000000000 1 2.00 s LR_PE infer iteration 2", "9.000000000 1 not ended LR_PE infer iteration 3"]
    );
    let graph = crate::export::dot::render(&findings);
    assert_eq!(graph.matches("[label=").count(), 2, "{graph}");
}

#[test]
fn hand_overs() {
    let lines = [
        (1, 1, "I|1|nn.send#h=1"),
        (1, 1, "I|1|nn.send#h=2"),
        (1, 1, "I|1|nn.send#h=3"),
        (2, 2, "I|1|nn.recv#h=1"),
        (2, 2, "I|1|nn.recv#h=8"),
        (3, 2, "B|1|[NN_LR_PE]early#h=2"),
        (4, 2, "E|1"),
        (8, 2, "B|1|[NN_LR_PE]late#h=3"),
        (9, 2, "E|1"),
    ];
    for (begin, [sent, received, unmatched], shown) in [(0, [3, 3, 1], 4), (7, [0, 1, 0], 1)] {
        let run = replayed(&lines, begin, Questions { hand_overs: true, ..Questions::default() });
        let snapshot = Snapshot::of(&run.findings());
        let counts = snapshot.hand_overs.expect("counts");
        assert_eq!([counts.sent, counts.received, counts.unmatched], [sent, received, unmatched], "{begin}");
        let split = snapshot.hand_over_split.expect("a split");
        assert_eq!(split.count, shown, "{begin}: {split:?}");
    }
}

/// What a thread takes over in a foreign section is its work until the marked section around it ends, with and without
/// attributes on what follows.
#[test]
fn foreign_sections_around_a_receipt_are_transparent() {
    for attributes in ["", "#img=a"] {
        let inner = format!("B|1|[NN_LR_PE]inner{attributes}");
        let after = format!("B|1|[NN_LR_PE]after{attributes}");
        let lines = [
            (1, 1, "B|1|[NN_LR_PE]first#acct=A"),
            (1, 1, "I|1|nn.send#h=1"),
            (2, 1, "E|1"),
            (2, 2, "B|1|[NN_LA_PO]outer"),
            (3, 2, "B|1|foreign"),
            (4, 2, "I|1|nn.recv#h=1"),
            (5, 2, "E|1"),
            (6, 2, &inner),
            (8, 2, "E|1"),
            (9, 2, "E|1"),
            (9, 2, &after),
            (12, 2, "E|1"),
        ];
        let snapshot = Snapshot::of(&replayed(&lines, 0, Questions::default()).findings());
        let rows = snapshot.accounts.iter().map(|row| (row.account.as_deref(), row.exclusive_ns / SECOND));
        assert_eq!(rows.collect::<Vec<_>>(), [(Some("A"), 6), (None, 5)], "{attributes}");
    }
}
