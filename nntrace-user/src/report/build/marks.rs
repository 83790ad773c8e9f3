//! Rows of marks.

use std::collections::BTreeMap;

use nntrace_common::{layer::Tag, record::Total};

use crate::{
    model::{
        app_phases::AppPhase,
        app_reports::{self, Report},
        capped_table::{OTHERS, OTHERS_PID},
        findings::Findings,
        histogram::Times,
        run_facts::ProcessLabel,
        section_sites::{Function, Site},
    },
    report::snapshot::{
        AppPhaseTimes, AppPhases, CounterRow, DetailRow, Executions, FunctionRow, PhaseRow, ProcessRole,
        ReportRow, StackRow, TimeHistogram, TrackRow,
    },
};

/// Function with its name.
pub(super) struct NamedFunction<'a> {
    /// Process, layer and phase, and the hash of the name.
    pub(super) key: (u32, Tag, u64),
    /// Its sections.
    pub(super) function: Function<'a>,
    name: String,
}

impl Findings<'_> {
    pub(super) fn reports(&self) -> Vec<ReportRow> {
        let row = |report: &Report| {
            let times = report.times();
            let app_phase = |phase: AppPhase| {
                let times = &report.stretches.get(&phase)?.times;
                Some(AppPhaseTimes {
                    total_ns: times.app_phase_total(),
                    self_ns: times.app_phase_self_times(),
                })
            };
            ReportRow {
                starting_mark: report.starting_mark.clone(),
                open_sections: report.open_sections,
                executions: Executions {
                    po: report.executions(AppPhase::Overall),
                    pwu: report.executions(AppPhase::WarmUp),
                    pbm: report.executions(AppPhase::Benchmark),
                },
                total_ns: times.total(),
                self_ns: times.self_times(),
                app_phases: AppPhases {
                    benchmark: app_phase(AppPhase::Benchmark),
                    warm_up: app_phase(AppPhase::WarmUp),
                },
            }
        };
        app_reports::reports(self.marks, &self.sums.reports).iter().map(row).collect()
    }

    pub(super) fn phases(&self) -> Vec<PhaseRow> {
        let unknown = ProcessLabel::default();
        let drivers = self.marks.drivers();
        let mut distributions = self.marks.sites.phases();
        let rows = self.marks.paths.phases(&self.sums.totals).into_iter().map(|((pid, tag), total)| {
            let process = self.run.processes.get(&pid).unwrap_or(&unknown);
            let times = distributions.remove(&(pid, tag)).filter(|times| times.count() > 0);
            let extremes = times.as_ref().and_then(Times::extremes);
            let times = times.map(Times::into_histogram);
            // A bucket of the histogram may reach beyond what was measured.
            let quantile = |q: f64| {
                let at = times.as_ref().map(|times| times.value_at_quantile(q));
                at.zip(extremes).map(|(ns, (least, most))| ns.clamp(least, most))
            };
            PhaseRow {
                pid,
                comm: if pid == OTHERS_PID && process.comm.is_empty() {
                    OTHERS.into()
                } else {
                    process.comm.clone()
                },
                role: if drivers.contains(&pid) { ProcessRole::Driver } else { ProcessRole::Application },
                layer: tag.layer(),
                phase: tag.phase(),
                count: total.count,
                total_ns: total.own,
                exclusive_ns: total.exclusive,
                min_ns: extremes.map(|(least, _)| least),
                p50_ns: quantile(0.5),
                p90_ns: quantile(0.9),
                p99_ns: quantile(0.99),
                max_ns: extremes.map(|(_, most)| most),
                histogram: times.map(TimeHistogram::from),
            }
        });
        // By tag is the contract's order of layers and phases.
        rows.collect()
    }

    pub(super) fn stacks(&self) -> Vec<StackRow> {
        let rows = self.marks.paths.stacks(&self.sums.totals).into_iter().map(|sum| StackRow {
            pid: sum.pid,
            path: sum.path,
            count: sum.total.count,
            total_ns: sum.total.own,
            exclusive_ns: sum.total.exclusive,
        });
        rows.collect()
    }

    pub(super) fn functions(&self) -> Vec<FunctionRow> {
        self.sorted_functions()
            .into_iter()
            .map(|NamedFunction { key: (pid, tag, _), function: Function { sum, is_late }, name }| {
                let times = sum.times.histogram();
                let (least, most) = sum.times.extremes().unwrap_or_default();
                let quantile = |q: f64| times.value_at_quantile(q).clamp(least, most);
                FunctionRow {
                    pid,
                    layer: tag.layer(),
                    phase: tag.phase(),
                    name,
                    count: sum.total.count,
                    total_ns: sum.total.own,
                    exclusive_ns: sum.total.exclusive,
                    p50_ns: quantile(0.5),
                    p99_ns: quantile(0.99),
                    max_ns: most,
                    is_partial: is_late,
                    details: None,
                }
            })
            .collect()
    }

    /// Returns the functions with their names: by process, layer and phase, and name.
    pub(super) fn sorted_functions(&self) -> Vec<NamedFunction<'_>> {
        let functions = self.marks.sites.functions().into_iter();
        let mut rows: Vec<_> = functions
            .map(|(key, function)| NamedFunction { key, function, name: self.marks.names.text(key.2) })
            .collect();
        let rank = |row: &NamedFunction<'_>| (row.key.0, row.key.1);
        rows.sort_by(|a, b| (rank(a), &a.name).cmp(&(rank(b), &b.name)));
        rows
    }

    /// Returns the sums by process, thread, layer and phase; what adds to the total first.
    pub(super) fn details(&self) -> Vec<DetailRow> {
        let mut sums: BTreeMap<(u32, u32, Tag, bool, String), Total> = BTreeMap::new();
        let of_site = |site: &Site, is_detail| {
            (site.key.pid, site.key.tid, site.tag, is_detail, self.marks.names.text(site.key.name))
        };
        let (in_itself, outermost): (Vec<_>, Vec<_>) =
            self.marks.sites.counted().partition(|site| site.key.in_itself);
        for site in outermost {
            let sum = sums.entry(of_site(site, !self.marks.paths.adds(site.key.path))).or_default();
            site.sums.iter().for_each(|(_, part)| sum.add(&part.total));
        }
        // Their durations are in those of the outermost of their function.
        for site in in_itself {
            let section = of_site(site, false);
            let key = if sums.contains_key(&section) { section } else { of_site(site, true) };
            let sum = sums.entry(key).or_default();
            sum.exclusive += site.sums.iter().map(|(_, part)| part.total.exclusive).sum::<u64>();
        }
        let rows = sums.into_iter().map(|((pid, tid, tag, is_detail, name), sum)| DetailRow {
            pid,
            tid,
            layer: tag.layer(),
            phase: tag.phase(),
            name,
            adds: !is_detail,
            count: sum.count,
            total_ns: sum.own,
            exclusive_ns: sum.exclusive,
        });
        rows.collect()
    }

    /// Counters, by process and name.
    pub(super) fn counters(&self) -> Vec<CounterRow> {
        let rows = self.marks.tracks.counters().map(|(pid, counter)| CounterRow {
            pid,
            name: counter.name.to_string(),
            count: counter.count,
            min: counter.range.map(|(least, _)| least),
            max: counter.range.map(|(_, most)| most),
            last: counter.last.map(|(_, value)| value),
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by(|a, b| (a.pid, &a.name).cmp(&(b.pid, &b.name)));
        rows
    }

    /// Asynchronous slices and instants, by process, track and name.
    pub(super) fn tracks(&self) -> Vec<TrackRow> {
        let rows = self.marks.tracks.tracks().map(|(pid, track)| TrackRow {
            pid,
            track: track.track.to_string(),
            name: track.name.to_string(),
            instants: track.instants,
            slices: track.slices,
            open: track.open,
            slices_ns: track.slices_ns,
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by(|a, b| (a.pid, &a.track, &a.name).cmp(&(b.pid, &b.track, &b.name)));
        rows
    }
}
