//! Real engines that run small models: what `cargo xtask engines` has made of their wheels, and the scripts in
//! `tests/engines/run`.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};
use nntrace_common::layer::Tag;
use nntrace_user::report::snapshot::{FunctionRow, Snapshot};
use serde::Deserialize;

use crate::{
    binaries,
    child::{Child, Ended},
    itt, live,
    profiler::{Profiler, Run},
    results::Results as _,
};

/// Engine and a way to run models by it.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    /// Name of its environment.
    pub name: &'static str,
    /// Script that runs a model.
    pub script: &'static str,
    /// Ending of the model's name.
    pub model: &'static str,
    /// `--mode` of the script, if it has several.
    pub mode: Option<&'static str>,
}

/// Size of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// About half a millisecond a run.
    Tiny,
    /// About ten milliseconds a run.
    Large,
}

/// Moment at which the profiler joins a process, by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joins {
    /// When it has mapped the engine, and loaded no model yet.
    BeforeTheModel,
    /// When it has loaded the model.
    AfterTheModel,
}

/// Line that a script prints at its end.
#[derive(Debug, Deserialize)]
pub struct Printed {
    /// Process id.
    pub pid: u32,
    /// Number of runs.
    pub runs: u64,
    /// Time of all runs, by the script's own clock.
    pub loop_ns: u64,
    /// Time of all runs, by the engine's own clock, where a run of the script does more than the engine.
    pub engine_ns: Option<u64>,
    /// Runs that the engine did on its own.
    #[serde(default)]
    pub other_runs: u64,
    /// Operators by the engine's own report, if it was asked.
    #[serde(default)]
    pub operators: Vec<Operator>,
    /// Names of nodes without a time in that report: it is below the engine's unit, or another node contains them.
    #[serde(default)]
    pub untimed: Vec<String>,
    /// Prompts and tokens by the engine's own account and by the script's clock, if it runs a language model.
    pub language_model: Option<LanguageModel>,
}

/// Prompts and tokens of all runs.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct LanguageModel {
    /// Batches that the prompts were divided into.
    pub prompt_batches: u64,
    /// Tokens of the prompts: by the engine, or by the script where that does not count.
    pub prompt_tokens: u64,
    /// Their time by the engine, ns, if it measures that.
    pub prompt_ns: Option<u64>,
    /// Steps of decoding, by the same.
    pub decode_tokens: u64,
    /// Their time by the engine, ns, if it measures that.
    pub decode_ns: Option<u64>,
    /// Sum of the times from the start of each prompt to its result, by the script, ns.
    pub first_token_ns: u64,
    /// Sum of the times from each result to that of the next step of decoding, by the script, ns.
    pub between_tokens_ns: u64,
}

/// Operator of a run, as the engine tells of it.
#[derive(Debug, Deserialize)]
pub struct Operator {
    /// Name.
    pub name: String,
    /// Type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Duration.
    pub ns: u64,
    /// Provider that ran it, if the engine reports it.
    pub provider: Option<String>,
}

/// Runs of an engine under the profiler.
#[derive(Debug)]
pub struct Traced {
    /// The script's own figures.
    pub printed: Printed,
    /// The profiler's.
    pub snapshot: Snapshot,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tiny => "tiny",
            Self::Large => "large",
        })
    }
}

impl Engine {
    /// Returns the engine of a wheel, a script and a kind of models.
    #[must_use]
    pub const fn new(name: &'static str, script: &'static str, model: &'static str) -> Self {
        Self { name, script, model, mode: None }
    }

    /// Whether it can be run: a test that needs it passes with a message if not.
    ///
    /// # Errors
    /// When it cannot, but live tests are demanded.
    pub fn is_there(&self) -> Result<bool> {
        // The last that is written of each.
        let needed = [self.packages()?, self.files(Size::Tiny)?, self.files(Size::Large)?];
        let Some(missing) = needed.iter().find(|file| !file.exists()) else { return Ok(true) };
        let reason = format!(
            "the engine {} cannot be run, as {} is missing: `cargo xtask engines {}` fetches its wheel, or says why not",
            self.name,
            missing.display(),
            self.name
        );
        if live::is_required() {
            bail!("{reason}");
        }
        eprintln!("skipped: {reason}");
        Ok(false)
    }

    /// Returns the model as its script takes it.
    ///
    /// # Errors
    /// When this program is not in cargo's target directory.
    pub fn model(&self, size: Size) -> Result<PathBuf> {
        Ok(folder()?.join("models").join(format!("{size}.{}", self.model)))
    }

    /// Runs a model this many times without a profiler, with the engine's own times of its operators.
    ///
    /// # Errors
    /// When it fails.
    pub fn report(&self, size: Size, runs: u64) -> Result<Printed> {
        let mut words = self.words(size, runs)?;
        words.push("--operators".to_owned());
        printed(&Child::run(&mut command(&words))?.expect_code(0)?)
    }

    /// Runs a model this many times as a command of the profiler, by probes, without a collector of ITT tasks.
    ///
    /// # Errors
    /// When one of them fails.
    pub fn launched(&self, level: &str, size: Size, runs: u64) -> Result<Traced> {
        self.launched_with("/no/such/collector.so", level, size, runs)
    }

    /// Runs a model this many times as a command of the profiler, by probes, with this collector of ITT tasks.
    ///
    /// # Errors
    /// When one of them fails.
    pub fn launched_with(&self, collector: &str, level: &str, size: Size, runs: u64) -> Result<Traced> {
        self.launched_by(&["--engine-level", level, "--no-hooks"], collector, size, runs)
    }

    /// Runs a model this many times as a command of the profiler's `where`, with the engine's own times of its operators, without
    /// a collector of ITT tasks; returns also the page, as JSON.
    ///
    /// # Errors
    /// When one of them fails.
    pub fn placed(&self, size: Size, runs: u64) -> Result<(Printed, serde_json::Value)> {
        let mut words = self.words(size, runs)?;
        words.push("--operators".to_owned());
        let profiler = Profiler::new()?.env(itt::VARIABLE, "/no/such/collector.so");
        let profiler = profiler.env("PYTHONDONTWRITEBYTECODE", "1");
        let ended =
            Child::run(profiler.args(["where", "--json", "--"]).args(words).command())?.expect_code(0)?;
        let text = ended.text();
        let mut lines = text.lines().filter(|line| line.starts_with('{'));
        let (Some(printed), Some(page)) = (lines.next(), lines.next_back()) else {
            bail!("expected two results, not {text:?}; stderr:\n{}", ended.stderr);
        };
        let printed = serde_json::from_str(printed).with_context(|| printed.to_owned())?;
        Ok((printed, serde_json::from_str(page).with_context(|| page.to_owned())?))
    }

    /// Runs a model this many times as a command of the profiler with hooks, without a collector of ITT tasks.
    ///
    /// # Errors
    /// When one of them fails.
    pub fn hooked(&self, size: Size, runs: u64) -> Result<Traced> {
        self.launched_by(&["--hooks"], "/no/such/collector.so", size, runs)
    }

    fn launched_by(&self, options: &[&str], collector: &str, size: Size, runs: u64) -> Result<Traced> {
        let profiler = Profiler::new()?.args(options);
        let profiler = profiler.env(itt::VARIABLE, collector).env("PYTHONDONTWRITEBYTECODE", "1");
        let Run { snapshot, ended } = profiler.launch(self.words(size, runs)?)?;
        let ended = ended.expect_code(0)?;
        Ok(Traced { printed: printed(&ended)?, snapshot })
    }

    /// Runs a model this many times in a process that the profiler joins.
    ///
    /// # Errors
    /// When one of them fails.
    pub fn joined(&self, joins: Joins, level: &str, size: Size, runs: u64) -> Result<Traced> {
        let mut words = self.words(size, runs)?;
        let waits = match joins {
            Joins::BeforeTheModel => "--wait=engine",
            Joins::AfterTheModel => "--wait=model",
        };
        words.push(waits.to_owned());
        let mut child = Child::start(&mut command(&words))?;
        child.lines(1)?;
        let pid = child.pid().to_string();
        let profiler = Profiler::new()?.args(["--pid", &pid, "--engine-level", level]).attach()?;
        child.send_line("go on")?;
        let ended = child.wait()?.expect_code(0)?;
        let Run { snapshot, ended: profiler } = profiler.finish()?;
        profiler.expect_code(0)?;
        Ok(Traced { printed: printed(&ended)?, snapshot })
    }

    /// Returns the command that runs a model so often.
    ///
    /// # Errors
    /// When this program is not in cargo's target directory.
    pub fn words(&self, size: Size, runs: u64) -> Result<Vec<String>> {
        let script = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/engines/run")).join(self.script);
        let paths = [self.python()?, script, self.model(size)?];
        let mut words: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        words.push(runs.to_string());
        if let Some(mode) = self.mode {
            words.extend(["--mode".to_owned(), mode.to_owned()]);
        }
        Ok(words)
    }

    /// Returns the interpreter that finds its modules.
    ///
    /// # Errors
    /// When this program is not in cargo's target directory.
    pub fn python(&self) -> Result<PathBuf> {
        Ok(folder()?.join(self.name).join("bin/python"))
    }

    fn packages(&self) -> Result<PathBuf> {
        Ok(folder()?.join(self.name).join("packages.txt"))
    }

    /// Returns the file of a model that is written last.
    fn files(&self, size: Size) -> Result<PathBuf> {
        let model = self.model(size)?;
        Ok(if self.model == "ncnn" { model.with_extension("ncnn.bin") } else { model })
    }
}

impl Traced {
    /// Returns the only process with results, which must be the script's.
    ///
    /// # Errors
    /// When there is another.
    pub fn pid(&self) -> Result<u32> {
        let pids = self.snapshot.pids();
        ensure!(
            pids == [self.printed.pid],
            "processes with results: {pids:?}, the script's: {}",
            self.printed.pid
        );
        Ok(self.printed.pid)
    }

    /// Returns how often each function of a layer and phase ran, by name.
    #[must_use]
    pub fn functions(&self, tag: &str) -> BTreeMap<&str, u64> {
        self.rows(tag).map(|row| (row.name.as_str(), row.count)).collect()
    }

    /// Returns the functions of a layer and phase.
    pub fn rows(&self, tag: &str) -> impl Iterator<Item = &FunctionRow> {
        let is_it = move |row: &&FunctionRow| Tag::new(row.layer, row.phase).to_string() == tag;
        self.snapshot.functions.iter().filter(is_it)
    }
}

impl Printed {
    /// Returns the operators by something of them.
    #[must_use]
    pub fn by(&self, key: fn(&Operator) -> &str) -> BTreeMap<&str, Vec<&Operator>> {
        let mut all: BTreeMap<&str, Vec<&Operator>> = BTreeMap::new();
        for operator in &self.operators {
            all.entry(key(operator)).or_default().push(operator);
        }
        all
    }
}

fn folder() -> Result<PathBuf> {
    let profile = binaries::profile_dir()?;
    Ok(profile.parent().context("the profile's folder is in another")?.join("engines"))
}

fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Reads the line of a script; engines print others.
fn printed(ended: &Ended) -> Result<Printed> {
    let text = ended.text();
    let line = text.lines().rfind(|line| line.starts_with('{'));
    let line = line.with_context(|| format!("no result in {text:?}; stderr:\n{}", ended.stderr))?;
    serde_json::from_str(line).with_context(|| line.to_owned())
}
