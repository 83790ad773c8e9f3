//! The contract's reports: one for each `[NN_LA_PO]`, over all threads and processes.
//!
//! Source: the mark contract, section 3.

use std::collections::BTreeMap;

use nntrace_common::{
    interface::Role,
    layer::{Layer, Phase, Tag},
};
use rustc_hash::FxHashMap;

use super::{
    marks::Marks,
    sites::SiteSum,
    stacks::execution_of,
    timeline::{AppPhase, Stretch},
    times::Times,
};

/// One report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The payload of the mark that began it; empty when there was none.
    pub starting_mark: String,
    /// Sections that began in it and were open at the end.
    pub open_sections: u64,
    /// What happened in each phase of the application that it has.
    pub stretches: BTreeMap<AppPhase, StretchReport>,
}

/// What happened in one phase of the application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StretchReport {
    /// Executions.
    pub executions: u64,
    /// Time by layer and phase.
    pub times: Times,
}

impl Report {
    /// Time by layer and phase, all phases of the application together.
    #[must_use]
    pub fn times(&self) -> Times {
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
    pub fn executions(&self, app: AppPhase) -> u64 {
        self.stretches.get(&app).map_or(0, |stretch| stretch.executions)
    }
}

/// Execution of a layer.
const fn execution(layer: Layer) -> Tag {
    Tag::new(layer, Phase::Execution)
}

/// The reports of what was recorded; none when no section counts.
#[must_use]
pub fn reports(marks: &Marks) -> Vec<Report> {
    let mut all = Reports { all: marks.timeline.marks().map(Report::begun_by).collect() };
    let drivers = marks.drivers();
    let mut shown: FxHashMap<(u64, bool), Option<_>> = FxHashMap::default();
    let mut counts: BTreeMap<(Stretch, (u32, u32)), Counts> = BTreeMap::new();
    for site in marks.sites.counted() {
        let (pid, path) = (site.key.pid, site.key.path);
        let in_driver = drivers.contains(&pid);
        for (stretch, sum) in &site.sums {
            let count = counts.entry((*stretch, (pid, site.key.tid))).or_default();
            count.creates += if site.role == Role::Create { sum.total.count } else { 0 };
            count.executions += if site.tag == execution(Layer::Application) { sum.total.count } else { 0 };
        }
        let shown =
            shown.entry((path, in_driver)).or_insert_with(|| marks.paths.as_reported(path, in_driver));
        let Some((tag, adds)) = *shown else { continue };
        for (stretch, sum) in &site.sums {
            let times = all.times(*stretch);
            if adds.to_total() {
                times.add(tag, own(sum, tag));
            }
            if adds.to_execution() {
                times.add(execution_of(tag), own(sum, execution_of(tag)));
            }
        }
    }
    for (_, stretch, ns) in marks.executions.in_flight() {
        all.times(stretch).add(execution(Layer::Runtime), ns);
    }
    for (_, stretch, ns) in marks.executions.in_driver().filter(|(pid, ..)| drivers.contains(pid)) {
        all.times(stretch).add(execution(Layer::Driver), ns);
    }
    all.count(&counts);
    for open in &marks.open {
        let report = marks.timeline.stretch(open.begin).report;
        all.report(report).open_sections += 1;
    }
    all.all
}

/// What a sum adds to the time of `tag`. Of the driver's execution that is only what no execution covers.
fn own(sum: &SiteSum, tag: Tag) -> i64 {
    let covered = if tag == execution(Layer::Driver) { sum.covered } else { 0 };
    i64::try_from(sum.total.own - covered).unwrap_or(i64::MAX)
}

/// What a thread counts executions by.
#[derive(Clone, Copy, Default)]
struct Counts {
    creates: u64,
    executions: u64,
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

    fn times(&mut self, stretch: Stretch) -> &mut Times {
        &mut self.report(stretch.report).stretches.entry(stretch.app).or_default().times
    }

    /// The largest count of any one thread: of created executions, or else of the application's own.
    fn count(&mut self, counts: &BTreeMap<(Stretch, (u32, u32)), Counts>) {
        let mut most: BTreeMap<Stretch, Counts> = BTreeMap::new();
        for ((stretch, _), count) in counts {
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
