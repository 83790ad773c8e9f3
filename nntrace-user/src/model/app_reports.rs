//! The contract's reports: one for each `[NN_LA_PO]`, over all threads and processes.
//!
//! Source: the mark contract, section 3.

use std::collections::BTreeMap;

use nntrace_common::{
    app_events::ExecutionCount,
    hidl_calls::Role,
    layer::{Layer, Phase, Tag},
};
use rustc_hash::FxHashMap;

use super::{
    app_phases::{AppPhase, ReportSlot},
    app_report_sums::{ReportSums, SectionSum},
    layer_phase_times::Times,
    marks::Marks,
    section_sites::{SiteKey, SiteSum},
    stacks::{LayersOf, execution_of},
};

/// One report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// The payload of the mark that began it; empty when there was none.
    pub starting_mark: String,
    /// Sections that began in it and were open at the end.
    pub open_sections: u64,
    /// Sums of each phase of the application that it has.
    pub stretches: BTreeMap<AppPhase, SlotReport>,
}

/// Sums of one phase of the application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotReport {
    /// Executions.
    pub executions: u64,
    /// Time by layer and phase.
    pub times: Times,
}

impl Report {
    /// Time by layer and phase, all phases of the application together.
    #[must_use]
    pub(crate) fn times(&self) -> Times {
        let mut times = Times::default();
        for stretch in self.stretches.values() {
            for tag in (0..Tag::COUNT as u8).filter_map(Tag::from_index) {
                times.add(tag, stretch.times.get(tag));
            }
        }
        times
    }

    /// Executions in a phase of the application.
    #[must_use]
    pub(crate) fn executions(&self, app: AppPhase) -> u64 {
        self.stretches.get(&app).map_or(0, |stretch| stretch.executions)
    }
}

/// Execution of a layer.
const fn execution(layer: Layer) -> Tag {
    Tag::new(layer, Phase::Execution)
}

/// The sums of the records.
#[must_use]
pub(crate) fn recorded_sums(marks: &Marks) -> ReportSums {
    let mut sums = ReportSums {
        starting_marks: marks.timeline.marks().map(ToOwned::to_owned).collect(),
        ..ReportSums::default()
    };
    for site in marks.sites.counted() {
        let SiteKey { pid, tid, path, .. } = site.key;
        for &(stretch, SiteSum { total, .. }) in &site.sums {
            sums.sections.push(SectionSum { stretch, pid, path, own: total.own });
            let count = sums.executions.entry((stretch, pid, tid)).or_default();
            count.creates += if site.role == Role::Create { total.count } else { 0 };
            count.executions += if site.tag == execution(Layer::Application) { total.count } else { 0 };
        }
    }
    sums
}

/// The reports; none when no section counts. Asynchronous executions are those of the records.
#[must_use]
pub(crate) fn reports(marks: &Marks, sums: &ReportSums) -> Vec<Report> {
    let mut all = Reports { all: sums.starting_marks.iter().map(|mark| Report::begun_by(mark)).collect() };
    let drivers = marks.drivers();
    let mut shown: FxHashMap<(u64, LayersOf), Option<_>> = FxHashMap::default();
    let mut add = |all: &mut Reports, stretch, pid, path, own: i64, wanted: Option<Tag>| {
        let process = if drivers.contains(&pid) {
            LayersOf::Driver
        } else if marks.driver_callers.contains(&pid) {
            LayersOf::DriverCaller
        } else {
            LayersOf::Application
        };
        let shown = shown.entry((path, process)).or_insert_with(|| marks.paths.as_reported(path, process));
        let Some((tag, adds)) = *shown else { return };
        let to_total = adds.to_total().then_some(tag);
        let to_execution = adds.to_execution().then(|| execution_of(tag));
        for tag in [to_total, to_execution].into_iter().flatten() {
            if wanted.is_none_or(|wanted| wanted == tag) {
                all.times(stretch).add(tag, own);
            }
        }
    };
    for sum in &sums.sections {
        // A phase of the application in which nothing but details ran is one, too.
        all.times(sum.stretch);
        let own = i64::try_from(sum.own).unwrap_or(i64::MAX);
        add(&mut all, sum.stretch, sum.pid, sum.path, own, None);
    }
    // Of the driver's execution only what no execution covers.
    for site in marks.sites.counted() {
        for (stretch, sum) in site.sums.iter().filter(|(_, sum)| sum.covered > 0) {
            let covered = i64::try_from(sum.covered).unwrap_or(i64::MAX);
            add(&mut all, *stretch, site.key.pid, site.key.path, -covered, Some(execution(Layer::Driver)));
        }
    }
    for (_, stretch, ns) in marks.executions.in_flight() {
        all.times(stretch).add(execution(Layer::Runtime), ns);
    }
    for (_, stretch, ns) in marks.executions.in_driver().filter(|(pid, ..)| drivers.contains(pid)) {
        all.times(stretch).add(execution(Layer::Driver), ns);
    }
    all.count(&sums.executions);
    for open in &marks.open {
        all.report(marks.report_of(open)).open_sections += 1;
    }
    all.all
}

struct Reports {
    all: Vec<Report>,
}

impl Report {
    fn begun_by(mark: &str) -> Self {
        Self { starting_mark: mark.to_owned(), ..Self::default() }
    }
}

impl Reports {
    fn report(&mut self, number: u32) -> &mut Report {
        let number = number as usize;
        if number >= self.all.len() {
            self.all.resize_with(number + 1, Report::default);
        }
        &mut self.all[number]
    }

    fn times(&mut self, stretch: ReportSlot) -> &mut Times {
        &mut self.report(stretch.report).stretches.entry(stretch.app).or_default().times
    }

    /// The largest count of any one thread: of created executions, or else of the application's own.
    fn count(&mut self, counts: &BTreeMap<(ReportSlot, u32, u32), ExecutionCount>) {
        let mut most: BTreeMap<ReportSlot, ExecutionCount> = BTreeMap::new();
        for ((stretch, ..), count) in counts {
            let most = most.entry(*stretch).or_default();
            most.creates = most.creates.max(count.creates);
            most.executions = most.executions.max(count.executions);
        }
        for (stretch, most) in most {
            let executions = if most.creates > 0 { most.creates } else { most.executions };
            self.report(stretch.report).stretches.entry(stretch.app).or_default().executions = executions;
        }
    }
}
