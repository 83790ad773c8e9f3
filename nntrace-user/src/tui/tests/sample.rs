//! Made-up results with numbers as a board would give them.

mod hand_overs;
mod recent;
mod resources;

pub(crate) use hand_overs::with_hand_overs;
pub(crate) use recent::with_recent;
pub(crate) use resources::with_resources;

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use nntrace_common::diagnostic::DiagnosticKind;
use nntrace_common::layer::{Phase, Tag};

use crate::report::snapshot::{
    Clock, ClusterRow, ConcurrencyRow, CpuRow, Diagnostic, EffectiveRow, FrequencyRow, FunctionRow, Host,
    IdleRow, InitialRow, Loss, MarksSeen, Overhead, PhaseRow, ProcessRole, RailKind, RailRow, RailSource,
    Rails, SCHEMA, Snapshot, Source, SourceKind, StackRow, TableUse, TimeHistogram, Tool, VERSION, Window,
};
use crate::{
    model::{run_facts::KeptSums, topology::Domain},
    tui::Health,
};

/// This many rails; the second has a gap, and into the third current flowed back.
pub(crate) fn rails(count: usize) -> Rails {
    let rail = |number: usize| RailRow {
        source: RailSource::Hwmon,
        chip: "ina226".to_owned(),
        name: format!("VDD_{number}"),
        kind: RailKind::Sampled,
        energy_nj: if number == 2 { -750_000_000 } else { 3_000_000_000 },
        begin_ns: 1_000_000_000,
        end_ns: 3_000_000_000,
        readings: 21,
        wraps: 0,
        gaps: u64::from(number == 1),
        gap_ns: if number == 1 { 500_000_000 } else { 0 },
        failed: 0,
        failure: None,
    };
    Rails { rails: (0..count).map(rail).collect(), ..Rails::default() }
}

/// A histogram of these times in ns and numbers.
pub(crate) fn histogram(values: &[(u64, u64)]) -> TimeHistogram {
    let mut histogram = Histogram::new(2).expect("two digits are possible");
    for &(ns, count) in values {
        histogram.record_n(ns, count.try_into().expect("a count")).expect("it resizes itself");
    }
    histogram.into()
}

#[allow(clippy::cast_sign_loss, reason = "nothing here is negative")]
fn rounded(value: f64) -> u64 {
    value.round() as u64
}

/// A row with a peak at `median_ns`, and a second one of slow frames at eight times that.
pub(crate) fn phase(
    process: (u32, &str, ProcessRole),
    tag: &str,
    count: u64,
    median_ns: u64,
    exclusive: f64,
) -> PhaseRow {
    let mut values = Vec::new();
    for step in 0..200_u32 {
        let from_peak = (f64::from(step) - 60.0) / 25.0;
        let ns = median_ns as f64 * 1.012_f64.powf(f64::from(step) - 60.0);
        let weight = (-from_peak * from_peak / 2.0).exp() * count as f64 / 62.5;
        values.push((rounded(ns), rounded(weight)));
        values.push((rounded(ns * 8.0), rounded(weight / 12.0)));
    }
    values.retain(|&(_, count)| count > 0);
    if values.is_empty() {
        values.push((median_ns, count));
    }
    let times = histogram(&values);
    let total_ns = rounded(times.mean() * count as f64);
    let tag: Tag = tag.parse().expect("a tag");
    PhaseRow {
        pid: process.0,
        comm: process.1.to_owned(),
        role: process.2,
        layer: tag.layer(),
        phase: tag.phase(),
        count,
        total_ns,
        exclusive_ns: rounded(total_ns as f64 * exclusive),
        min_ns: Some(times.min()),
        p50_ns: Some(times.value_at_quantile(0.5)),
        p90_ns: Some(times.value_at_quantile(0.9)),
        p99_ns: Some(times.value_at_quantile(0.99)),
        max_ns: Some(times.max()),
        histogram: Some(times),
    }
}

fn stack(pid: u32, path: &str, count: u64, total_ns: u64, exclusive_ns: u64) -> StackRow {
    let path = path.split(' ').map(|frame| frame.parse().expect("a frame")).collect();
    StackRow { pid, path, count, total_ns, exclusive_ns }
}

/// Functions of the same times as the phase, in these shares.
fn functions(of: &PhaseRow, names: &[(&str, u64)]) -> impl Iterator<Item = FunctionRow> {
    let all: u64 = names.iter().map(|&(_, share)| share).sum();
    names.iter().map(move |&(name, share)| {
        let time = |ns: Option<u64>| ns.unwrap_or(of.total_ns / of.count.max(1)) * share / all;
        FunctionRow {
            pid: of.pid,
            layer: of.layer,
            phase: of.phase,
            name: name.to_owned(),
            count: of.count / names.len() as u64,
            total_ns: of.total_ns * share / all,
            exclusive_ns: of.exclusive_ns * share / all,
            p50_ns: time(of.p50_ns),
            p99_ns: time(of.p99_ns),
            max_ns: time(of.max_ns),
            is_partial: name == "(others)",
            details: None,
        }
    })
}

fn running(khz: Option<u32>, ns: u64) -> FrequencyRow {
    FrequencyRow { khz, ns, hits: ns / 2_100_000 + 1 }
}

fn idle(state: u32, name: &str, ns: u64) -> IdleRow {
    let hits = ns / (900_000 * u64::from(state * 3 + 1));
    let known = |value: u64| (hits > 0).then_some(value);
    IdleRow {
        state,
        name: name.to_owned(),
        ns,
        hits,
        min_ns: known(3_120 + u64::from(state) * 61_000),
        max_ns: known(7_900_000 * u64::from(state + 1)),
        whole_stays: hits,
        p50_ns: known(810_000 * u64::from(state + 1)),
        p90_ns: known(2_400_000 * u64::from(state + 1)),
        p99_ns: known(6_100_000 * u64::from(state + 1)),
        early: known(hits / 9),
        late: known(hits / 20),
    }
}

/// Length of the window, ns.
pub(crate) const WINDOW: u64 = 12_345_678_901;

/// A CPU that spends these thousandths of the window running at these kHz; the rest is idle in two states.
pub(crate) fn cpu(cpu: u32, cluster: &str, used: &[(Option<u32>, u64)]) -> CpuRow {
    let part = |thousandths: u64| WINDOW / 1000 * thousandths;
    let frequencies: Vec<_> = used.iter().map(|&(khz, share)| running(khz, part(share))).collect();
    let busy: u64 = frequencies.iter().map(|row| row.ns).sum();
    let shallow = (WINDOW - busy) / 3;
    CpuRow {
        cpu,
        cluster: cluster.to_owned(),
        idle: vec![idle(0, "WFI", shallow), idle(1, "cpu-sleep-0", WINDOW - busy - shallow)],
        effective: frequencies.iter().map(|row| EffectiveRow { khz: row.khz, ns: row.ns }).collect(),
        running: frequencies,
        idle_unknown_ns: 0,
        offline_ns: 0,
        unknown_ns: 0,
        initial: InitialRow::default(),
    }
}

fn cluster(name: &str, cpus: &[u32], used: &[(Option<u32>, u64)]) -> ClusterRow {
    let row = cpu(0, name, used);
    let active: u64 = row.running.iter().map(|row| row.ns).sum();
    let at_once = |running_cpus: u32, ns| ConcurrencyRow { running_cpus: Some(running_cpus), ns };
    ClusterRow {
        domain: Domain::Both,
        cluster: name.to_owned(),
        cpus: cpus.to_vec(),
        active: row.running,
        idle: row.idle,
        concurrency: vec![
            at_once(0, WINDOW - active),
            at_once(1, active / 2),
            at_once(2, active / 4),
            at_once(3, active / 8),
            at_once(4, active - active / 2 - active / 4 - active / 8),
        ],
        idle_unknown_ns: 0,
        offline_ns: 0,
        unknown_ns: 0,
    }
}

/// Results without any rows.
pub(crate) fn empty() -> Snapshot {
    Snapshot {
        evidence: None,
        rails: None,
        device_usage: None,
        device_clocks: Vec::new(),
        threads: Vec::new(),
        verify: None,
        schema: SCHEMA.to_owned(),
        version: VERSION,
        tool: Tool { name: "nntrace-bpf".to_owned(), version: "0.1.0".to_owned() },
        host: Host { kernel: "6.12.30".to_owned(), machine: "aarch64".to_owned(), cpus: 6 },
        window: Window::default(),
        source: Source {
            kind: SourceKind::Live,
            marks: MarksSeen::Uprobe,
            files: Vec::new(),
            engines: Vec::new(),
            express: None,
        },
        reports: Vec::new(),
        phases: Vec::new(),
        stacks: Vec::new(),
        functions: Vec::new(),
        details: Vec::new(),
        unfinished: Vec::new(),
        language_models: Vec::new(),
        devices: Vec::new(),
        iterations: Vec::new(),
        accounts: Vec::new(),
        groups: Vec::new(),
        missing: Vec::new(),
        explanation: None,
        hand_overs: None,
        hand_over_split: None,
        dispatch_overhead: None,
        usage: None,
        perf_counters: None,
        counters: Vec::new(),
        tracks: Vec::new(),
        cpus: Vec::new(),
        clusters: Vec::new(),
        energy: None,
        overhead: Overhead::default(),
        loss: Loss::default(),
        recent: None,
        diagnostics: Vec::new(),
        notes: Vec::new(),
    }
}

/// Two processes, two clusters, some notes; everything `factor` times as often.
pub(crate) fn snapshot(factor: u64) -> Snapshot {
    let app = (1234, "vision_app", ProcessRole::Application);
    let driver = (871, "nn-driver", ProcessRole::Driver);
    let mut no_times = phase(app, "LU_PU", 88 * factor, 2_000, 1.0);
    (no_times.min_ns, no_times.p50_ns, no_times.p90_ns) = (None, None, None);
    (no_times.p99_ns, no_times.max_ns, no_times.histogram) = (None, None, None);
    let big = [(Some(2_400_000), 412), (Some(1_800_000), 130), (Some(600_000), 44)];
    let mut hotplugged = cpu(5, "big", &[(Some(2_400_000), 120), (None, 90)]);
    hotplugged.offline_ns = hotplugged.idle[1].ns / 2;
    hotplugged.unknown_ns = hotplugged.idle[1].ns / 8;
    hotplugged.idle_unknown_ns = hotplugged.idle[0].ns / 2;
    // cpu4 wants more than cpu5 does, and gets it for both.
    hotplugged.effective[0].ns -= WINDOW / 50;
    hotplugged.effective.push(EffectiveRow { khz: Some(1_800_000), ns: WINDOW / 50 });
    hotplugged.idle[1].ns -= hotplugged.offline_ns + hotplugged.unknown_ns;
    hotplugged.idle[0].ns -= hotplugged.idle_unknown_ns;
    let operators = [
        ("Conv2D block1/conv1", 40),
        ("Conv2D block2/conv1_nchwc_reordered_with_a_name_that_is_longer_than_most_columns_of_terminals", 31),
        ("MatMul head/fc", 14),
        ("Softmax head/probabilities", 1),
        ("(others)", 14),
    ];
    let mut snapshot = Snapshot {
        window: Window { clock: Clock::Monotonic, begin_ns: 1_000, end_ns: 1_000 + WINDOW },
        phases: vec![
            phase(driver, "LD_PP", factor, 81_000_000, 0.98),
            phase(driver, "LD_PE", 411 * factor, 9_800_000, 0.91),
            phase(driver, "LD_PTR", 822 * factor, 410_000, 1.0),
            phase(app, "LA_PO", factor, 8_000_000_000, 0.031),
            phase(app, "LA_PWU", factor, 310_000_000, 0.01),
            phase(app, "LA_PBM", factor, 6_000_000_000, 0.012),
            phase(app, "LR_PI", 2 * factor, 1_200_000, 1.0),
            phase(app, "LR_PP", 1, 4_100_000, 0.7),
            phase(app, "LR_PC", 1, 122_000_000, 0.4),
            phase(app, "LR_PE", 411 * factor, 12_400_000, 0.08),
            phase(app, "LI_PE", 411 * factor, 10_900_000, 0.11),
            phase(app, "LC_PCO", 102_330 * factor, 21_000, 1.0),
            no_times,
        ],
        stacks: vec![
            stack(871, "LD_PE", 411 * factor, 4_980_000_000, 4_530_000_000),
            stack(871, "LD_PE LD_PTR", 822 * factor, 0, 450_000_000),
            stack(1234, "LA_PO", factor, 9_870_000_000, 305_000_000),
            stack(1234, "LA_PO LA_PBM LR_PE", 411 * factor, 6_320_000_000, 504_000_000),
            stack(1234, "LA_PO LA_PBM LR_PE LI_PE", 411 * factor, 5_400_000_000, 590_000_000),
            stack(1234, "LA_PO LA_PBM LR_PE LC_PCO LU_PU! LU_PTR LU_PIO LU_PR", 17 * factor, 3_210_000, 3_210_000),
            stack(1234, "LA_PO LA_PBM LR_PE LC_PCO", 102_330 * factor, 2_690_000_000, 2_690_000_000),
            stack(1234, "LA_PO LR_PC", 1, 122_000_000, 48_000_000),
        ],
        cpus: vec![
            cpu(0, "little", &[(Some(600_000), 80), (Some(1_200_000), 61), (Some(1_800_000), 214), (None, 7)]),
            cpu(1, "little", &[(Some(600_000), 30), (Some(1_200_000), 22), (Some(1_800_000), 107)]),
            cpu(2, "little", &[(Some(600_000), 12), (Some(1_800_000), 9)]),
            cpu(3, "little", &[(Some(600_000), 1)]),
            cpu(4, "big", &big),
            hotplugged,
        ],
        clusters: vec![
            cluster("little", &[0, 1, 2, 3], &[(Some(600_000), 80), (Some(1_200_000), 71), (Some(1_800_000), 294)]),
            cluster("big", &[4, 5], &big),
        ],
        loss: Loss { records_produced: 104_700, records_drained: 104_700, ..Loss::default() },
        diagnostics: vec![
            Diagnostic {
                kind: DiagnosticKind::UnmatchedEnd,
                count: 3 * factor,
                first_ns: 17_000,
                tid: 1240,
                example: "E|1234".to_owned(),
            },
            Diagnostic {
                kind: DiagnosticKind::BadNesting,
                count: 1,
                first_ns: 91_000,
                tid: 1234,
                example: "B|1234|[NN_LR_PC] while in [NN_LR_PE], which is a name of some length".to_owned(),
            },
        ],
        notes: vec![
            "frequencies of cpu5 are not known before its first change: the cpufreq driver of this kernel reports changes only"
                .to_owned(),
        ],
        ..empty()
    };
    // By process, then in the contract's order of layers and phases.
    let of = |row: &PhaseRow| -> Vec<FunctionRow> {
        match row.phase {
            Phase::Computation => functions(row, &operators).collect(),
            Phase::Execution => functions(row, &[("execute", 1)]).collect(),
            _ => Vec::new(),
        }
    };
    snapshot.functions = snapshot.phases.iter().flat_map(of).collect();
    snapshot
}

/// A collector in good health.
pub(crate) fn health() -> Health {
    Health {
        target: "pid 1234 vision_app, pid 871 nn-driver".to_owned(),
        elapsed: Duration::from_millis(12_345),
        marks_per_second: 8_412.4,
        power_events_per_second: 1_207.9,
        records_lost: 0,
        tables: Vec::new(),
        ns_per_mark: Some(372),
        ns_per_power_event: Some(118),
        interval: Some(Duration::from_secs(1)),
        collector_cpu_percent: 0.43,
        probes: 4,
        probe_share: None,
        ended: None,
        recorded: None,
    }
}

/// Tables of which one is full, for the health line.
pub(crate) fn full_table() -> Health {
    let table = |table: &str, entries, turned_away| TableUse {
        table: table.into(),
        entries,
        capacity: 2_048,
        turned_away,
    };
    Health { tables: vec![table("threads", 2_048, 952), table("names", 70, 0)], ..health() }
}

/// Losses, for the results and for the health line.
pub(crate) fn lossy() -> (Snapshot, Health) {
    let dropped_by_cpu = BTreeMap::from([(0, 1_200), (3, 34)]);
    let loss = Loss {
        records_produced: 104_700,
        records_drained: 103_466,
        records_dropped: 1_234,
        dropped_by_cpu,
        ..Loss::default()
    }
    .with_incomplete(KeptSums { cpus: true, totals: true, reports: true });
    (Snapshot { loss, ..snapshot(1) }, Health { records_lost: 1_234, ..health() })
}
