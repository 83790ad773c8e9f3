//! `nntrace-bpf diff`: whether a change made it worse.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result, anyhow, bail};
use nntrace_user::{
    analyze::diff::{self, Options, Run},
    model::plurals::one_or_many,
    record,
};

use crate::{
    arguments::{Diff, DiffForm, Divisor, HostOptions, usage},
    output::{
        self,
        result_file::{ResultFile, Staged},
        run_input,
        thresholds::TRIPPED,
    },
    stderr,
};

/// Compares two groups of runs; returns the exit status.
pub fn run(cli: &Diff) -> Result<ExitCode> {
    let (before, after) = sides(cli)?;
    let files = cli.outputs.iter().map(|file| (file.form, &file.path));
    let files = ResultFile::open_all(files, cli.force)?;
    let (before, after) = (read(&before, &cli.host)?, read(&after, &cli.host)?);
    let options = Options { confidence: cli.confidence, per: cli.per.map(Divisor::per) };
    let diff = diff::Diff::new(&before, &after, &options, &cli.thresholds)
        .map_err(|reason| anyhow!("cannot check the threshold: {reason}"))?;
    let stage = |(form, file): (DiffForm, ResultFile)| {
        file.stage(match form {
            DiffForm::Json => output::json(&diff)?,
            DiffForm::Markdown => diff.markdown().into_bytes(),
            DiffForm::Junit => diff.junit().into_bytes(),
        })
    };
    let staged = files.into_iter().map(stage).collect::<Result<Vec<_>>>()?;
    staged.into_iter().try_for_each(Staged::commit)?;
    if cli.json {
        output::write_stdout(&output::json(&diff)?)?;
    } else {
        output::print(&diff.text(cli.all))?;
    }
    Ok(if diff.is_tripped() { ExitCode::from(TRIPPED) } else { ExitCode::SUCCESS })
}

/// Returns what the command line names before and after.
fn sides(cli: &Diff) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    match (&cli.runs[..], &cli.to[..]) {
        ([before, after], []) => Ok((vec![before.clone()], vec![after.clone()])),
        ([one], []) => Err(usage(format!(
            "a comparison needs two runs, but only {} is named: add the other one",
            one.display()
        ))),
        (before, []) => Err(usage(format!(
            "{} runs are named, and nothing says which of them are after: name two, or those after --to",
            before.len()
        ))),
        (before, after) => Ok((before.to_vec(), after.to_vec())),
    }
}

fn read(paths: &[PathBuf], host: &HostOptions) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for path in paths {
        for path in in_folder(path)? {
            let snapshot = run_input::read(&path, host)?;
            runs.push(Run { name: path.display().to_string(), snapshot });
        }
    }
    Ok(runs)
}

/// Returns the runs in a folder that is no recording, in the order of their names; of anything else itself.
fn in_folder(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() || record::is_recording(path) {
        return Ok(vec![path.to_owned()]);
    }
    let cannot = || format!("cannot list {}", path.display());
    let mut runs = Vec::new();
    let mut others = 0;
    for entry in fs::read_dir(path).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        let is_snapshot = path.extension().is_some_and(|extension| extension == "json");
        if is_snapshot && path.is_file() || record::is_recording(&path) {
            runs.push(path);
        } else {
            others += 1;
        }
    }
    if runs.is_empty() {
        bail!("{} is no recording, and has no recording and no .json in it", path.display());
    }
    if others > 0 {
        let path = path.display();
        stderr::message(format_args!(
            "{others} {} of {path} {} skipped: only recordings and .json files in a folder are compared",
            one_or_many(others, "entry", "entries"),
            one_or_many(others, "is", "are")
        ));
    }
    runs.sort();
    Ok(runs)
}
