//! Jobs of accelerators and GPUs, as a table.

use nntrace_common::layer::Tag;

use crate::report::{
    incomplete_figures::Figures,
    number_format::{self, UNKNOWN},
    snapshot::{DeviceProcessRow, DeviceRow, DurationsRow},
    terminal_text::{Text, line},
};

/// Sections of a process at most.
const MOST_SECTIONS: usize = 5;
/// Columns of names.
const NAMES: usize = 30;

/// Adds a line for each ring, its processes and the sections that queued; nothing where no device was seen.
pub(super) fn table(text: &mut Text, rows: &[DeviceRow], window_ns: u64, figures: Figures) {
    if rows.is_empty() {
        return;
    }
    line!(
        text,
        "{:<NAMES$}{:>7}{:>9}{:>8}{:>9}{:>9}{:>9}{:>9}{:>9}",
        "devices",
        "jobs",
        "running",
        "share",
        "waiting",
        "behind",
        "blocked",
        "p50",
        "p99"
    );
    for row in rows {
        let (jobs, busy) = (figures.count(row.jobs()), figures.time(row.busy_ns));
        let share = figures.percent(row.busy_ns, window_ns);
        line!(text, "{:<NAMES$}{jobs:>7}{busy:>9}{share:>8}", row.name());
        for process in &row.processes {
            process_lines(text, process, window_ns, figures);
        }
        if row.lost > 0 {
            let jobs = number_format::plural(row.lost, "job");
            line!(text, "  missing events: {jobs}, {}", figures.time(row.lost_ns));
        }
        if row.out_of_order > 0 {
            line!(text, "  completed out of order: {}; the oldest job is assumed to run", row.out_of_order);
        }
    }
}

fn process_lines(text: &mut Text, row: &DeviceProcessRow, window_ns: u64, figures: Figures) {
    let comm = if row.comm.is_empty() { UNKNOWN } else { &row.comm };
    let name = match row.pid {
        Some(pid) => format!("{comm} ({pid})"),
        None => "queued before the trace".to_owned(),
    };
    let time = |ns| figures.time(ns);
    let share = figures.percent(row.running_ns, window_ns);
    let quantile = |ns| figures.known(ns, number_format::duration_ns);
    let DurationsRow { p50_ns, p99_ns, .. } = row.latency;
    line!(
        text,
        "  {name:<28}{:>7}{:>9}{share:>8}{:>9}{:>9}{:>9}{:>9}{:>9}",
        figures.count(row.jobs),
        time(row.running_ns),
        time(row.waiting_ns),
        time(row.behind_others_ns),
        time(row.blocked_ns),
        quantile(p50_ns),
        quantile(p99_ns),
    );
    for section in row.sections.iter().take(MOST_SECTIONS) {
        let name = format!("{}:{}", Tag::new(section.layer, section.phase), section.function);
        line!(
            text,
            "    {name:<26}{:>7}{:>9}{:>8}{:>9}",
            figures.count(section.jobs),
            time(section.running_ns),
            "",
            time(section.waiting_ns),
        );
    }
    if let Some(more) = row.sections.len().checked_sub(MOST_SECTIONS).filter(|more| *more > 0) {
        line!(text, "    and {}: --json has all", number_format::plural(more as u64, "more section"));
    }
    if row.open > 0 || row.canceled > 0 {
        line!(text, "    unfinished: {}, canceled: {}", row.open, row.canceled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_processes_and_sections_are_lines() {
        let mut text = Text::new();
        table(&mut text, &[], 100_000_000, Figures::new(false));
        assert_eq!(text, "");
        table(&mut text, &DeviceRow::samples(), 100_000_000, Figures::new(false));
        let expected = "\
devices                          jobs  running   share  waiting   behind  blocked      p50      p99
fdab0000.npu rknn                  81  33.0 ms   33.0%
  camera (812)                     80  30.0 ms   30.0%  4.10 ms  3.20 ms   500 us   420 us   504 us
    LD_PE:rknn_run                 80  30.0 ms          4.60 ms
    unfinished: 1, canceled: 1
  queued before the trace           1  2.00 ms    2.0%     0 ns     0 ns     0 ns        -        -
  missing events: 1 job, 1.00 ms
  completed out of order: 2; the oldest job is assumed to run
pp                                 80  30.0 ms   30.0%
  camera (812)                     80  30.0 ms   30.0%  4.10 ms  3.20 ms   500 us   420 us   504 us
";
        assert_eq!(text, expected);
    }
}
