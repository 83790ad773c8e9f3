//! `nntrace-bpf report`: statistics of the sections of a recording.

use std::{process::ExitCode, slice};

use anyhow::Result;
use nntrace_user::{
    analyze::path::{Path, PathCollector, PathReport},
    model::{
        causality::Questions,
        limits::Limits,
        section_statistics::{Property, SectionStatistics, SectionSums},
    },
    record,
    report::{
        section_statistics::{Statistics, StatisticsRow},
        snapshot::Snapshot,
        terminal_text::Text,
    },
};
use serde::Serialize;

use super::{
    file_run::{Request, Run},
    graph_question::Asked,
    print::tell_hidden,
    recording_folder, why_line,
};
use crate::{
    arguments::{HostOptions, Report, default_memory},
    output, stderr,
};

/// Prints the statistics; returns the exit status.
pub fn run(cli: &Report) -> Result<ExitCode> {
    if let Some(path) = &cli.path {
        return of_path(cli, path);
    }
    if cli.handoff || cli.overhead {
        return hand_overs(cli);
    }
    recording_folder::check(&cli.folder, "`report`")?;
    let mut by: Vec<Property> = Vec::new();
    for property in cli.by.iter().map(|by| by.property()) {
        if !by.contains(&property) {
            by.push(property);
        }
    }
    let filter = cli.sections.filter();
    let limits = Limits::of_memory(cli.memory.unwrap_or_else(default_memory));
    let sums = SectionStatistics::new(by.clone(), filter.clone(), &limits);
    let recorded = record::statistics(&cli.folder, sums)?;
    let row = |sums: SectionSums| {
        let comm = sums.pid.or(sums.thread.map(|(pid, _)| pid));
        let comm = comm.and_then(|pid| recorded.processes.get(&pid).cloned());
        let thread = sums.thread.map(|(pid, tid)| {
            let place = recorded.threads.place(pid, tid, u64::MAX);
            recorded.threads.name(place).to_owned()
        });
        StatisticsRow::new(sums, comm, thread)
    };
    let rows = recorded.statistics.rows().into_iter().map(row).collect();
    let hidden = recorded.statistics.hidden();
    let statistics = Statistics {
        is_incomplete: recorded.missing > 0 || recorded.loss.makes_incomplete("functions"),
        summed: recorded.statistics.summed(),
        ..Statistics::new(by, rows, cli.sort.order(), hidden)
    };
    show(cli, &statistics, || statistics.csv(), || statistics.text())?;
    if !cli.csv && !cli.json && filter.shows_all() && recorded.has_switches {
        let host = HostOptions::default();
        let files = slice::from_ref(&cli.folder);
        let asked = Asked { files, range: None, host: &host, memory: cli.memory };
        output::print(&why_line::line(&asked, recorded.events))?;
    }
    for text in &recorded.damage {
        stderr::message(text);
    }
    tell_hidden(&filter, hidden);
    Ok(ExitCode::SUCCESS)
}

/// Returns the request for a run with its hand-overs.
fn request<'a>(cli: &'a Report, host: &'a HostOptions) -> Request<'a> {
    Request {
        files: slice::from_ref(&cli.folder),
        range: None,
        drivers: &[],
        host,
        questions: Questions { hand_overs: true, ..Questions::default() },
        memory: cli.memory,
        with_details: false,
        with_timelines: cli.overhead,
    }
}

/// Prints the split of hand-overs, or the dispatch overhead, of a recording or a trace.
fn hand_overs(cli: &Report) -> Result<ExitCode> {
    let host = HostOptions::default();
    let run = Run::of(&request(cli, &host))?;
    let findings = run.findings();
    let mut snapshot = Snapshot::of(&findings);
    if cli.overhead {
        snapshot = snapshot.with_dispatch_overhead(&findings, run.timelines().as_ref());
        if let Some(overhead) = &snapshot.dispatch_overhead {
            show(cli, overhead, || overhead.csv(), || overhead.text())?;
        }
    } else {
        let split = snapshot.hand_over_split.take().unwrap_or_default();
        show(cli, &split, || split.csv(), || split.text())?;
    }
    for note in snapshot.notes {
        stderr::message(note);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the latency of a path of functions in a recording or a trace.
fn of_path(cli: &Report, path: &Path) -> Result<ExitCode> {
    let host = HostOptions::default();
    let collector = PathCollector::new(path.clone(), cli.memory.unwrap_or_else(default_memory));
    let run = Run::observed(&request(cli, &host), || collector.observer())?;
    let findings = run.findings();
    let report = PathReport::new(&collector, &findings, cli.deadline).map_err(anyhow::Error::msg)?;
    show(cli, &report, || report.csv(), || report.text())?;
    for note in Snapshot::of(&findings).notes {
        stderr::message(note);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints results in one of three forms, as asked for.
fn show<E>(
    cli: &Report,
    results: &impl Serialize,
    csv: impl FnOnce() -> Result<String, E>,
    text: impl FnOnce() -> Text,
) -> Result<()>
where
    anyhow::Error: From<E>,
{
    if cli.csv {
        output::write_stdout(csv()?.as_bytes())
    } else if cli.json {
        output::write_stdout(&output::json(results)?)
    } else {
        output::print(&text())
    }
}
