//! What the CPUs did for the sample's threads, functions and phases.

use nntrace_common::layer::{Layer, Phase};

use super::WINDOW;
use crate::report::snapshot::{
    ClusterEnergyRow, EnergyPartsRow, EnergyRow, EnergyShareRow, FunctionDetails, FunctionRow,
    FunctionThreadRow, FunctionUsageRow, PhaseEnergyRow, ResultUnit, SiteRow, SlowCallRow, Snapshot,
    ThreadRow, UsageRow, UsageTable,
};

/// The snapshot with context switches and an energy model.
pub(crate) fn with_resources(mut snapshot: Snapshot) -> Snapshot {
    let worker = |number: u32| thread((1234, 1240 + number), "worker", [310, 41, 600, u64::from(number)]);
    snapshot.threads = vec![
        thread((871, 871), "nn-driver", [402, 5, 590, 3]),
        thread((1234, 1234), "vision_app", [88, 160, 752, 0]),
    ];
    snapshot.threads.extend((0..30).map(worker));
    // An id that was used again.
    snapshot.threads.push(thread((1234, 1240), "worker", [1, 0, 0, 0]));
    for row in &mut snapshot.functions {
        row.details = Some(Box::new(details(row)));
    }
    let functions = snapshot.functions.iter().map(|row| FunctionUsageRow {
        site: SiteRow { pid: row.pid, layer: row.layer, phase: row.phase, name: row.name.clone() },
        usage: UsageRow {
            on_cpu_ns: row.exclusive_ns / 10 * 7,
            runnable_ns: row.exclusive_ns / 10,
            sleeping_ns: row.exclusive_ns / 5,
            ..UsageRow::default()
        },
    });
    snapshot.usage = Some(UsageTable { functions: functions.collect(), ..UsageTable::default() });
    snapshot.energy = Some(energy());
    snapshot
}

/// A thread that spends these thousandths of the window on a CPU, waiting for one, and in two kinds of sleep.
fn thread((pid, tid): (u32, u32), comm: &str, thousandths: [u64; 4]) -> ThreadRow {
    let [on_cpu_ns, runnable_ns, sleeping_ns, uninterruptible_ns] =
        thousandths.map(|part| WINDOW / 1000 * part);
    let known_ns = on_cpu_ns + runnable_ns + sleeping_ns + uninterruptible_ns;
    ThreadRow {
        pid,
        tid,
        comm: comm.to_owned(),
        on_cpu_ns,
        runnable_ns,
        sleeping_ns,
        uninterruptible_ns,
        unknown_ns: WINDOW - known_ns,
    }
}

fn details(row: &FunctionRow) -> FunctionDetails {
    let slow = |number: u64| SlowCallRow {
        ns: row.max_ns - row.max_ns / 50 * number,
        begin_ns: 1_000 + WINDOW / 7 * number,
        tid: 1240 + number as u32,
    };
    let on_thread = |number: u64| FunctionThreadRow {
        tid: 1240 + number as u32,
        count: row.count / 8,
        total_ns: row.total_ns / (8 + number),
        exclusive_ns: row.exclusive_ns / (8 + number),
    };
    FunctionDetails {
        times: vec![
            (row.p50_ns / 2, row.count / 5),
            (row.p50_ns, row.count / 2),
            (row.p50_ns * 2, row.count / 4),
            (row.p99_ns, row.count / 50),
            (row.max_ns, 1),
        ],
        slowest: (0..5).map(slow).collect(),
        threads: (0..8).map(on_thread).collect(),
    }
}

fn energy() -> EnergyRow {
    let of_parts =
        |cluster: &str, [cluster_idle, cluster_active, cpu_idle, cpu_active, wakeups]: [f64; 5]| {
            let total = cluster_idle + cluster_active + cpu_idle + cpu_active + wakeups;
            let parts = EnergyPartsRow { cluster_idle, cluster_active, cpu_idle, cpu_active, wakeups };
            ClusterEnergyRow {
                cluster: cluster.to_owned(),
                total,
                total_min: total,
                total_max: total * 1.05,
                parts,
            }
        };
    let clusters = vec![
        of_parts("little", [0.024, 0.81, 0.11, 2.3, 0.0012]),
        of_parts("big", [0.05, 2.4, 0.2, 9.1, 0.004]),
    ];
    let total: f64 = clusters.iter().map(|cluster| cluster.total).sum();
    let phase = |pid, tag: Option<(Layer, Phase)>, share: f64| PhaseEnergyRow {
        pid,
        layer: tag.map(|tag| tag.0),
        phase: tag.map(|tag| tag.1),
        energy: EnergyShareRow {
            total: total * share,
            total_min: total * share,
            total_max: total * share * 1.05,
        },
    };
    EnergyRow {
        unit: ResultUnit::Joule,
        total,
        total_min: total,
        total_max: total * 1.05,
        parts: EnergyPartsRow::default(),
        phases: vec![
            phase(Some(871), Some((Layer::Driver, Phase::Execution)), 0.31),
            phase(Some(1234), Some((Layer::Runtime, Phase::Compilation)), 0.05),
            phase(Some(1234), Some((Layer::CpuFallback, Phase::Computation)), 0.42),
            phase(Some(1234), None, 0.02),
            phase(None, None, 0.2),
        ],
        clusters,
        unpriced: Vec::new(),
        model: "board.toml".to_owned(),
        notes: Vec::new(),
    }
}
