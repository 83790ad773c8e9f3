//! Questions about a run, which is recorded first if needed.

use std::{env, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result, ensure};
use nntrace_user::{
    caller::{self, FileRights},
    record,
    result_folder::{Directory, Unfinished},
};

use crate::{
    arguments::{FreshRun, HostOptions, Level},
    output::shell_words::shell_words,
    signals,
};

/// Run that a question is about.
pub struct AskedRun<'a> {
    /// Files, or the folder of a recording.
    pub files: &'a [PathBuf],
    /// Host.
    pub host: &'a HostOptions,
    /// The files as words of a shell; `None` where they are gone after the answer.
    pub words: Option<&'a str>,
}

/// Answers a question about a run, recording it at this level first if needed; returns the exit status, which is that of a
/// command.
pub fn ask(
    cli: &FreshRun,
    level: Level,
    answer: impl FnOnce(&AskedRun<'_>) -> Result<()>,
) -> Result<ExitCode> {
    if cli.is_live() {
        return ask_live(cli, level, answer);
    }
    let files: Vec<String> = cli.files.iter().map(|file| file.display().to_string()).collect();
    answer(&AskedRun { files: &cli.files, host: &cli.host, words: Some(&shell_words(&files)) })?;
    Ok(ExitCode::SUCCESS)
}

fn ask_live(
    cli: &FreshRun,
    level: Level,
    answer: impl FnOnce(&AskedRun<'_>) -> Result<()>,
) -> Result<ExitCode> {
    let (folder, _removed) = if let Some(folder) = &cli.keep {
        (folder.clone(), None)
    } else {
        let scratch = scratch_folder()?;
        (scratch.path(), Some(scratch))
    };
    let record = cli.record(folder.clone(), level)?;
    let code = super::record::run(&record, record.live.log_level()?)?;
    // What follows reads files: it needs no more than any other reader.
    caller::keep_file_rights().context("cannot give up privileges")?;
    signals::remove_unfinished_at_end()?;
    ensure!(record::is_recording(&folder), "nothing was recorded, and so the question has no answer");
    // A recording knows its host.
    let host = HostOptions { energy_model: cli.host.energy_model.clone(), ..HostOptions::default() };
    let kept = cli.keep.as_ref().map(|folder| shell_words(&[folder.display().to_string()]));
    answer(&AskedRun { files: &[folder], host: &host, words: kept.as_deref() })?;
    Ok(code)
}

/// Creates a folder for what is not needed after the answer; dropping it removes it.
pub fn scratch_folder() -> Result<Unfinished> {
    let temporary = env::temp_dir();
    let create = || {
        let _rights = FileRights::of_caller()?;
        Unfinished::create_folder(&Directory::open(&temporary)?)
    };
    create().with_context(|| {
        format!("cannot create a folder in {}{}: name one with -o", temporary.display(), caller::as_whom())
    })
}
