//! `nntrace-bpf report`: statistics of the sections of a recording.

use std::process::ExitCode;

use anyhow::{Result, bail};
use nntrace_user::{
    model::{
        causality::Questions,
        limits::Limits,
        section_statistics::{Property, SectionStatistics, SectionSums},
    },
    record,
    report::{
        section_statistics::{Statistics, StatisticsRow},
        snapshot::Snapshot,
    },
};

use super::{
    file_run::{Request, Run},
    print::tell_hidden,
};
use crate::{
    arguments::{HostOptions, Report, default_memory},
    output, stderr,
};

/// Prints the statistics; returns the exit status.
pub fn run(cli: &Report) -> Result<ExitCode> {
    if cli.handoff {
        return hand_overs(cli);
    }
    if !record::is_recording(&cli.folder) {
        bail!(
            "{} is no recording: `report` sums up what `record` has written; `replay` shows trace files",
            cli.folder.display()
        );
    }
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
    if cli.csv {
        output::write_stdout(statistics.csv()?.as_bytes())?;
    } else if cli.json {
        output::write_stdout(&statistics.json()?)?;
    } else {
        output::print(&statistics.text())?;
    }
    for text in &recorded.damage {
        stderr::message(text);
    }
    tell_hidden(&filter, hidden);
    Ok(ExitCode::SUCCESS)
}

/// Prints the split of hand-overs, of a recording or a trace.
fn hand_overs(cli: &Report) -> Result<ExitCode> {
    let host = HostOptions::default();
    let run = Run::of(&Request {
        files: std::slice::from_ref(&cli.folder),
        range: None,
        drivers: &[],
        host: &host,
        questions: Questions { hand_overs: true, ..Questions::default() },
        memory: cli.memory,
        with_details: false,
        with_timelines: false,
    })?;
    let snapshot = Snapshot::of(&run.findings());
    let split = snapshot.hand_over_split.unwrap_or_default();
    if cli.csv {
        output::write_stdout(split.csv()?.as_bytes())?;
    } else if cli.json {
        output::write_stdout(&split.json()?)?;
    } else {
        output::print(&split.text())?;
    }
    for note in snapshot.notes {
        stderr::message(note);
    }
    Ok(ExitCode::SUCCESS)
}
