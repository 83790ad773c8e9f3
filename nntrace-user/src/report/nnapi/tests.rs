use nntrace_common::layer::Tag;

use super::*;
use crate::{
    model::layer_phase_times::{
        Times,
        tests::{Cells, VECTORS, raw, read},
    },
    report::snapshot::{AppPhaseTimes, AppPhases, Executions},
};

const SELF_TIMES: Options = Options { times: Shown::SelfTimes, per_execution: false, incomplete: false };
const TOTAL_TIMES: Options = Options { times: Shown::TotalTimes, per_execution: false, incomplete: false };
const PER_EXECUTION: Options = Options { times: Shown::SelfTimes, per_execution: true, incomplete: false };

fn report(starting_mark: &str, times: &Times) -> ReportRow {
    ReportRow {
        starting_mark: starting_mark.to_owned(),
        executions: Executions { po: 1, ..Executions::default() },
        total_ns: times.total(),
        self_ns: times.self_times(),
        ..ReportRow::default()
    }
}

/// A report with this many executions in its benchmark, and a slower warm-up.
fn benchmark(starting_mark: &str, times: &Times, executions: u64) -> ReportRow {
    let mut whole = times.clone();
    whole.add(Tag::new(Layer::Runtime, Phase::Execution), 1_000_000_000);
    let phase = AppPhaseTimes { total_ns: times.app_phase_total(), self_ns: times.app_phase_self_times() };
    ReportRow {
        executions: Executions { po: 0, pwu: 3, pbm: executions },
        app_phases: AppPhases { benchmark: Some(phase), ..AppPhases::default() },
        ..report(starting_mark, &whole)
    }
}

fn golden(name: &str) -> Vec<ReportRow> {
    let tables = read(include_str!("golden/inputs.json")).remove(name).unwrap();
    tables.iter().map(|table| report(&table.id, &raw(&table.total))).collect()
}

fn times<const N: usize>(cells: [(&str, i64); N]) -> Times {
    raw(&Cells::from(cells.map(|(name, ns)| (name.to_owned(), ns))))
}

/// The line of one row in the only table.
fn row(report: &ReportRow, options: Options, label: &str) -> String {
    let text = render(std::slice::from_ref(report), options);
    text.lines().find(|line| line.starts_with(label)).unwrap_or_default().to_owned()
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn a_traced_run_prints_as_by_the_reference() {
    let tables = read(VECTORS).remove("omr1").unwrap();
    let make = |cells| report("B|27005|[NN_LA_PO]mobilenet_quantized", &raw(cells));
    let reports: Vec<_> = tables.iter().map(|table| make(&table.total)).collect();
    assert_eq!(render(&reports, SELF_TIMES), include_str!("golden/omr1.txt"));
}

#[test]
fn a_program_prints_as_by_the_reference() {
    for (name, text) in [
        ("unittest", include_str!("golden/unittest.txt")),
        ("cpu", include_str!("golden/cpu.txt")),
        ("hdrnet", include_str!("golden/hdrnet.txt")),
        ("old", include_str!("golden/old.txt")),
    ] {
        assert_eq!(render(&golden(name), SELF_TIMES), text, "{name}");
    }
}

#[test]
fn total_times_print_as_by_the_reference() {
    let reports = golden("unittest");
    assert_eq!(render(&reports[..1], TOTAL_TIMES), include_str!("golden/unittest-total.txt"));
}

#[test]
fn a_benchmark_prints_as_by_the_reference() {
    let tables = read(include_str!("golden/inputs.json")).remove("hdrnet-bm").unwrap();
    let report = benchmark(&tables[0].id, &raw(&tables[0].total), 100);
    assert_eq!(render(&[report], PER_EXECUTION), include_str!("golden/hdrnet-bm.txt"));
}

#[test]
fn what_the_reference_misses_is_missing() {
    for table in &read(VECTORS)["upstream unit tests"] {
        let report = report("", &raw(&table.total));
        let numbers = Numbers::new(&report, SELF_TIMES);
        let mut missing = Vec::new();
        for layer in Layer::ALL {
            let is_shown =
                |phase: &Phase| !matches!(phase, Phase::WarmUp | Phase::Benchmark | Phase::Unspecified);
            for phase in Phase::ALL.into_iter().filter(is_shown) {
                if numbers.ns(TableRow::Layer(layer), phase).is_none() {
                    missing.push(format!("{}_{}", layer.code(), phase.code()));
                }
            }
        }
        missing.sort();
        assert_eq!(missing, table.missing, "{}", table.id);
    }
}

#[test]
fn one_execution_is_the_average() {
    let mut report = report("", &times([("LD_PE", 50_000), ("LI_PE", 16_000), ("LR_PE", 97_000)]));
    let header = render(std::slice::from_ref(&report), PER_EXECUTION);
    assert!(header.contains(" Execution\n"));
    assert_eq!(
        words(&row(&report, PER_EXECUTION, "Application")),
        ["Application", "n/a", "n/a", "n/a", "n/a", "n/a%"]
    );
    assert_eq!(
        words(&row(&report, PER_EXECUTION, "Runtime")),
        ["Runtime", "-", "0.08", "-", "0.08", "83.51%"]
    );
    assert_eq!(words(&row(&report, PER_EXECUTION, "IPC")), ["IPC", "-", "-0.03", "-", "-0.03", "-35.05%"]);
    assert_eq!(
        words(&row(&report, PER_EXECUTION, "Driver")),
        ["Driver", "n/a", "n/a", "n/a", "0.05", "51.55%"]
    );
    assert_eq!(words(&row(&report, PER_EXECUTION, "Total")), ["Total", "-*", "0.10*", "-*", "0.10", "100%"]);
    report.executions.po = 4;
    assert_eq!(
        words(&row(&report, PER_EXECUTION, "Runtime")),
        ["Runtime", "-", "0.02", "-", "0.02", "83.51%"]
    );
    // A warm-up is a part of the whole.
    report.executions.pwu = 6;
    assert_eq!(words(&row(&report, PER_EXECUTION, "Total")), ["Total", "-*", "0.01*", "-*", "0.01", "100%"]);
}

#[test]
fn without_an_execution_there_is_no_average() {
    let mut report = report("", &times([("LR_PP", 1_000_000)]));
    report.executions.po = 0;
    assert_eq!(
        words(&row(&report, PER_EXECUTION, "Runtime")),
        ["Runtime", "n/a", "n/a", "n/a", "n/a", "n/a%"]
    );
    assert_eq!(
        words(&row(&report, PER_EXECUTION, "Total")),
        ["Total", "n/a*", "n/a*", "n/a*", "n/a", "100%"]
    );
    assert_eq!(row(&report, PER_EXECUTION, "CPU"), "");
    // A benchmark that was counted, and of which nothing is known.
    report.executions.pbm = 2;
    assert_eq!(words(&row(&report, PER_EXECUTION, "Runtime")), ["Runtime", "-", "-", "-", "-", "n/a%"]);
}

#[test]
fn a_layer_without_a_share_has_a_dash() {
    let report = report("", &times([("LR_PE", 1_000_000_000), ("LC_PI", 1)]));
    assert_eq!(row(&report, PER_EXECUTION, "IPC").len(), 80);
    assert_eq!(words(&row(&report, PER_EXECUTION, "IPC")), ["IPC", "-", "-", "-", "-", "-"]);
    // Something that rounds to nothing is not nothing: the row stays.
    assert_eq!(words(&row(&report, PER_EXECUTION, "CPU")), ["CPU", "-", "-", "-", "-", "-"]);
}

#[test]
fn wide_numbers_never_touch() {
    let cells = ["LR_PI", "LR_PP", "LR_PIO", "LR_PE"].map(|name| (name, i64::MAX / 8));
    let report = report("", &times(cells));
    let runtime = row(&report, SELF_TIMES, "Runtime");
    assert_eq!(words(&runtime).len(), 10);
    assert_eq!(words(&row(&report, SELF_TIMES, "Total")).len(), 10);
}

#[test]
fn open_sections_and_no_marks_are_told() {
    let mut report = report("B|1|[NN_LA_PO]x", &Times::default());
    let whole = render(std::slice::from_ref(&report), SELF_TIMES);
    for (open, told) in [
        (1, "1 section was still open at the end: it is in no total of this table\n"),
        (2, "2 sections were still open at the end: they are in no total of this table\n"),
    ] {
        report.open_sections = open;
        assert_eq!(render(std::slice::from_ref(&report), SELF_TIMES), format!("{told}{whole}").as_str());
    }
    assert_eq!(render(&[], SELF_TIMES), "there is no NN mark\n");
}

#[test]
fn ties_go_to_the_even_digit() {
    let cases = [
        (0, "-"),
        (4_999, "-"),
        (5_000, "-"),
        (5_001, "0.01"),
        (15_000, "0.02"),
        (495_000, "0.50"),
        (533_045_000, "533.04"),
        (533_045_001, "533.05"),
        (-4_000, "-0.00"),
        (-5_001, "-0.01"),
        (-11_042_000, "-11.04"),
        (999_999_995_000, "1000000.00"),
    ];
    for (ns, text) in cases {
        assert_eq!(two_decimals(ns, 10_000), text, "{ns} ns");
    }
}
