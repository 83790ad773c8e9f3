//! `nntrace-bpf bench`: several runs of a command, each with its snapshot in a folder, for `diff`.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Instant,
};

use anyhow::{Context as _, Result, bail, ensure};
use clap::{ArgMatches, CommandFactory as _};
use nntrace_user::{
    caller::{self, FileRights},
    model::plurals::counted,
    report::number_format,
    result_folder::Directory,
};
use tokio::runtime::Runtime;

use super::own_run;
use crate::{
    arguments::{Bench, Cli},
    output::shell_words::shell_words,
    signals::EndSignals,
    stderr,
};

/// Arguments of bench itself; all others are passed to each run.
const NOT_OF_A_RUN: [&str; 6] = ["runs", "warm_up", "add", "outputs", "force", "command"];

/// Exit status after a signal, as a shell has it after Ctrl-C.
const INTERRUPTED: u8 = 130;
/// Temporary name of a snapshot; `diff` ignores it.
const UNFINISHED: &str = "run.unfinished";

/// Runs a command several times; returns the exit status: the command's if it failed, 130 after a signal.
pub fn run(cli: &Bench) -> Result<ExitCode> {
    let folder = cli.folder()?;
    let mut runs = Runs::create(folder, cli)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut end = {
        let _inside = runtime.enter();
        EndSignals::catch()?
    };
    for number in 1..=cli.warm_up {
        let what = format!("warm-up {number} of {}", cli.warm_up);
        if let Some(code) = runs.run(&runtime, &mut end, &what, false)? {
            return Ok(code);
        }
    }
    for number in 1..=cli.runs {
        if let Some(code) = runs.run(&runtime, &mut end, &format!("run {number} of {}", cli.runs), true)? {
            return Ok(code);
        }
    }
    let words = shell_words(&[folder.display().to_string()]);
    stderr::message(format_args!(
        "{} in {words}; compare them with those of another build or setting: nntrace-bpf diff {words} OTHER",
        counted(runs.kept, "run")
    ));
    Ok(ExitCode::SUCCESS)
}

/// The runs of a command, and their folder.
struct Runs<'a> {
    folder: &'a Path,
    /// This program.
    program: PathBuf,
    /// Its arguments, without the file of the snapshot and the command.
    options: Vec<OsString>,
    command: &'a [OsString],
    /// Runs that are replaced by the first new one.
    replaced: Vec<OsString>,
    /// Number of the next snapshot.
    next: u32,
    /// Number of snapshots in the folder.
    kept: u64,
}

impl<'a> Runs<'a> {
    /// Creates the folder, or counts the runs that are in it.
    fn create(folder: &'a Path, cli: &'a Bench) -> Result<Self> {
        let _rights = FileRights::of_caller().context("cannot act as the caller")?;
        let shown = folder.display();
        match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(error)
                    .with_context(|| format!("cannot create the folder {shown}{}", caller::as_whom()));
            }
            _ => {}
        }
        let names =
            fs::read_dir(folder).with_context(|| format!("cannot use {shown} as a folder of runs"))?;
        let names: Vec<OsString> =
            names.map(|entry| entry.map(|entry| entry.file_name())).collect::<io::Result<_>>()?;
        let numbers: Vec<u32> = names.iter().filter_map(|name| number_of(name)).collect();
        if !names.is_empty() && cli.live.results.force {
            let is_of_a_run = |name: &OsString| name == UNFINISHED || number_of(name).is_some();
            ensure!(
                names.iter().all(is_of_a_run),
                "{shown} contains files that are not runs: --force replaces only runs; name another folder"
            );
        } else if !names.is_empty() && !cli.add {
            bail!(
                "{shown} is not empty: name another folder, or add runs with --add, or replace them with --force"
            );
        }
        let last = if cli.add { numbers.iter().copied().max().unwrap_or(0) } else { 0 };
        let kept = if cli.add { numbers.len() as u64 } else { 0 };
        let replaced = if cli.live.results.force { names } else { Vec::new() };
        let options = options(&Cli::command().get_matches_from(env::args_os()))?;
        let program = env::current_exe().context("cannot find this program")?;
        let next = last.saturating_add(1);
        Ok(Self { folder, program, options, command: &cli.live.command, replaced, next, kept })
    }

    /// Does a run, and keeps its snapshot if wanted. Returns the exit status where it is the last.
    fn run(
        &mut self,
        runtime: &Runtime,
        end: &mut EndSignals,
        what: &str,
        keeps: bool,
    ) -> Result<Option<ExitCode>> {
        let unfinished = self.folder.join(UNFINISHED);
        let started = Instant::now();
        let child = Command::new(&self.program)
            .args(&self.options)
            .arg({
                let mut json = OsString::from("--json=");
                json.push(&unfinished);
                json
            })
            .args(["--force", "--"])
            .args(self.command)
            .spawn();
        let child = child.with_context(|| format!("cannot start {}", self.program.display()))?;
        let ended = runtime.block_on(own_run::wait(child, end, None))?;
        let took =
            number_format::duration_ns(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let code = ended.code();
        let _rights = FileRights::of_caller().context("cannot act as the caller")?;
        if code != 0 || ended.is_interrupted || !keeps {
            // It may not have come to writing one.
            let _ = fs::remove_file(&unfinished);
        }
        if ended.is_interrupted {
            stderr::message(format_args!(
                "ended by a signal: {} in {}",
                counted(self.kept, "run"),
                self.folder.display()
            ));
            return Ok(Some(ExitCode::from(INTERRUPTED)));
        }
        if code != 0 {
            stderr::message(format_args!(
                "{what} exited with status {code} and was discarded; the series stops: {} in {}",
                counted(self.kept, "run"),
                self.folder.display()
            ));
            return Ok(Some(ExitCode::from(u8::try_from(code).unwrap_or(1))));
        }
        if keeps {
            let directory = Directory::open(self.folder).context("cannot open the folder of the runs")?;
            // Only now is there anything in their place.
            for name in self.replaced.drain(..).filter(|name| name != UNFINISHED) {
                let path = self.folder.join(name);
                fs::remove_file(&path).with_context(|| format!("cannot replace {}", path.display()))?;
            }
            let name = name_of(self.next);
            let renamed = directory.rename_to_new(OsStr::new(UNFINISHED), OsStr::new(&name));
            renamed.with_context(|| format!("cannot write {}", self.folder.join(&name).display()))?;
            (self.next, self.kept) = (self.next.saturating_add(1), self.kept + 1);
        }
        stderr::message(format_args!("{what}: {took}"));
        Ok(None)
    }
}

/// Returns the options of each run, as words of the command line.
fn options(matches: &ArgMatches) -> Result<Vec<OsString>> {
    let command = Cli::command();
    let bench = command.find_subcommand("bench").context("bench is not defined")?;
    let given = matches.subcommand_matches("bench").context("no arguments of bench")?;
    let mut words = Vec::new();
    for argument in bench.get_arguments() {
        let id = argument.get_id().as_str();
        let is_given = given.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
        if !is_given || NOT_OF_A_RUN.contains(&id) {
            continue;
        }
        let name = argument.get_long().with_context(|| format!("{id} has no long name"))?;
        if argument.get_action().takes_values() {
            for value in given.get_raw(id).into_iter().flatten() {
                let mut word = OsString::from(format!("--{name}="));
                word.push(value);
                words.push(word);
            }
        } else {
            let times = match argument.get_action() {
                clap::ArgAction::Count => usize::from(given.get_count(id)),
                _ => 1,
            };
            words.extend(std::iter::repeat_n(OsString::from(format!("--{name}")), times));
        }
    }
    Ok(words)
}

/// Name of the snapshot of a run.
fn name_of(number: u32) -> String {
    format!("run-{number:03}.json")
}

/// Number of the run whose snapshot has this name.
fn number_of(name: &OsStr) -> Option<u32> {
    let number = name.to_str()?.strip_prefix("run-")?.strip_suffix(".json")?.parse().ok()?;
    (name == OsStr::new(&name_of(number))).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_gets_the_options_that_were_given() {
        let words = [
            "nntrace-bpf",
            "bench",
            "--runs",
            "3",
            "-o",
            "before",
            "--level",
            "sched",
            "-vv",
            "--counters",
            "cycles,instructions",
            "--lib",
            "a b.so",
            "--lib=c.so",
            "--force",
            "--",
            "./app",
            "--runs",
            "5",
        ];
        let matches = Cli::command().try_get_matches_from(words).unwrap();
        let mut options = options(&matches).unwrap();
        options.sort();
        let mut expected = [
            "--level=sched",
            "--verbose",
            "--verbose",
            "--counters=cycles",
            "--counters=instructions",
            "--lib=a b.so",
            "--lib=c.so",
        ];
        expected.sort_unstable();
        assert_eq!(options, expected);
    }

    #[test]
    fn names_of_runs_are_theirs_only() {
        assert_eq!(number_of(OsStr::new(&name_of(7))), Some(7));
        assert_eq!(number_of(OsStr::new(&name_of(1_234))), Some(1_234));
        for other in ["run-7.json", "run-+07.json", "run-007.json.bak", UNFINISHED] {
            assert_eq!(number_of(OsStr::new(other)), None, "{other}");
        }
    }
}
