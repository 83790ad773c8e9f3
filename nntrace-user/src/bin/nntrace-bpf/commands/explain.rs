//! `nntrace-bpf explain`: a run on one page, recorded first where it is none yet.

use std::{env, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result, ensure};
use nntrace_user::{
    analyze::{
        explain::{Page, Subject},
        run_graph::{Collector, Refusal},
        why::Answer,
    },
    caller::{self, FileRights},
    model::causality::Questions,
    record,
    report::snapshot::Snapshot,
    result_folder::{Directory, Unfinished},
};

use super::file_run::{Request, Run};
use crate::{
    arguments::{Explain, HostOptions, default_memory, usage},
    output::{self, shell_words::shell_words},
    signals,
};

/// Explains a run; returns the exit status, which is that of a command.
pub fn run(cli: &Explain) -> Result<ExitCode> {
    if cli.is_live() {
        return live(cli);
    }
    let files: Vec<String> = cli.files.iter().map(|file| file.display().to_string()).collect();
    show(cli, &cli.files, &cli.host, Some(&shell_words(&files)))?;
    Ok(ExitCode::SUCCESS)
}

/// Records a run, and explains it.
fn live(cli: &Explain) -> Result<ExitCode> {
    let scratch = if cli.keep.is_none() { Some(scratch_folder()?) } else { None };
    let folder = cli.keep.clone().or(scratch.as_ref().map(Unfinished::path)).context("no folder")?;
    let record = cli.record(folder.clone())?;
    let code = super::record::run(&record, record.live.log_level()?)?;
    // What follows reads files: it needs no more than any other reader.
    caller::keep_file_rights().context("cannot give up privileges")?;
    signals::remove_unfinished_at_end()?;
    ensure!(record::is_recording(&folder), "nothing was recorded: there is no run to explain");
    // A recording knows its host.
    let host = HostOptions { energy_model: cli.host.energy_model.clone(), ..HostOptions::default() };
    let kept = cli.keep.as_ref().map(|folder| shell_words(&[folder.display().to_string()]));
    show(cli, &[folder], &host, kept.as_deref())?;
    Ok(code)
}

/// Creates a folder for a recording that is removed when the page is written.
fn scratch_folder() -> Result<Unfinished> {
    let of_all = env::temp_dir();
    let create = || {
        let _rights = FileRights::of_caller()?;
        Unfinished::create_folder(&Directory::open(&of_all)?)
    };
    create().with_context(|| {
        format!("cannot create a folder in {}{}: name one with -o", of_all.display(), caller::as_whom())
    })
}

/// Reads a run, and writes its page.
fn show(cli: &Explain, files: &[PathBuf], host: &HostOptions, words: Option<&str>) -> Result<()> {
    let request = Request {
        files,
        range: None,
        drivers: &[],
        host,
        questions: Questions { hand_overs: true, ..Questions::default() },
        memory: cli.memory,
        with_details: false,
        with_timelines: true,
    };
    let collector = Collector::new(cli.memory.unwrap_or_else(default_memory));
    let run = Run::observed(&request, || collector.observer())?;
    let findings = run.findings();
    let why = Answer::new(&collector, &findings, run.timelines().as_ref(), &cli.why());
    if let Err(Refusal::Question(reason)) = why {
        return Err(usage(reason));
    }
    let title = cli.processes().unwrap_or_else(|| run.title(files));
    let subject =
        Subject { title: &title, files: words, has_operators: !cli.is_live() || cli.engines.has_operators() };
    let page = Page::new(&Snapshot::of(&findings), why, &subject);
    if cli.json { output::write_stdout(&output::json(&page)?) } else { output::print(&page.text()) }
}
