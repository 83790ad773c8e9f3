//! Answers to why executions of a program with a planted cause were slow.

use std::{ffi::OsStr, iter, process::Command};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::{binaries, child::Child, profiler::Profiler, recording::Recording, wait};

/// Program with ten executions of `infer`, of which one is slow.
const PROGRAM: &str = "slow-runs";

/// Recording of that program with a planted cause.
pub struct Planted {
    recording: Recording,
    /// Facts about the planted cause, as the program prints them.
    truth: Value,
}

impl Planted {
    /// Records the program with a cause.
    ///
    /// # Errors
    /// When it, or the profiler, fails.
    pub fn record(cause: &str) -> Result<Self> {
        Self::recorded([cause.as_ref()])
    }

    /// Records the program with a cause in another program, which is not traced.
    ///
    /// # Errors
    /// When one of them, or the profiler, fails.
    pub fn record_beside(cause: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let socket = folder.path().join("socket");
        let other =
            Child::start(Command::new(binaries::helper(PROGRAM)?).arg("waits-as-outsider").arg(&socket))?;
        wait::until("the socket of the other program", || Ok(socket.exists().then_some(())))?;
        let recorded = Self::recorded([cause.as_ref(), socket.as_os_str()])?;
        other.wait()?.expect_code(0)?;
        Ok(recorded)
    }

    fn recorded<'a>(arguments: impl IntoIterator<Item = &'a OsStr>) -> Result<Self> {
        let program = binaries::helper(PROGRAM)?;
        let options = ["--level", "sched", "--ring-size", "8192"];
        let words = arguments.into_iter().map(OsStr::to_owned);
        let recording = Recording::of(&options, iter::once(program.into_os_string()).chain(words))?;
        let ended = &recording.run.ended;
        let truth = serde_json::from_slice(&ended.stdout).with_context(|| ended.stderr.clone())?;
        Ok(Self { recording, truth })
    }

    /// Returns the planted time as the program measured it, ns.
    ///
    /// # Errors
    /// When it told none.
    pub fn ns(&self) -> Result<i64> {
        number(&self.truth, "planted_ns")
    }

    /// Returns the thread that did it.
    #[must_use]
    pub fn thread(&self) -> String {
        self.truth["thread"].to_string()
    }

    /// Checks that the largest part of the answer has a cause, with these words in its text, and the planted time within 10 %.
    ///
    /// # Errors
    /// When it has not.
    pub fn expect(&self, cause: &str, words: &str, planted_ns: i64) -> Result<()> {
        let why = |arguments: &[&str]| {
            let mut profiler = Profiler::new()?.args(["why"]).args([self.recording.path()]).args(arguments);
            Child::run(profiler.command())?.expect_code(0)
        };
        println!("planted: {planted_ns} ns\n{}", why(&["--of", "infer"])?.text());
        let answer: Value = serde_json::from_slice(&why(&["--of", "infer", "--json"])?.stdout)?;
        let counts = (&answer["executions"], &answer["slow"]["count"]);
        ensure!(counts == (&10.into(), &1.into()), "executions, and slow ones: {counts:?}");
        let first = parts(&answer)?.first().context("no part")?;
        ensure!(first["cause"] == cause, "the cause is not {cause}: {answer}");
        let text = first["text"].as_str().unwrap_or_default();
        ensure!(text.contains(words), "{text} is without {words}");
        let ns = number(first, "ns")?;
        ensure!(is_near(ns, planted_ns), "{ns} ns are named, {planted_ns} ns were planted");
        Ok(())
    }
}

/// Whether a time is another one within 10 %.
#[must_use]
pub fn is_near(ns: i64, truth: i64) -> bool {
    ns.abs_diff(truth) * 10 <= truth.unsigned_abs()
}

/// Returns the parts of an answer, which have to add up.
///
/// # Errors
/// When they do not, or there are none.
pub fn parts(answer: &Value) -> Result<&Vec<Value>> {
    let parts = answer["parts"].as_array().context("no parts")?;
    let sum = parts.iter().map(|part| number(part, "ns")).sum::<Result<i64>>()?;
    let means = number(&answer["slow"], "mean_ns")? - number(&answer["typical"], "mean_ns")?;
    let difference = number(answer, "difference_ns")?;
    ensure!((sum, means) == (difference, difference), "{sum} ns in parts, {means} ns longer: {answer}");
    Ok(parts)
}

fn number(value: &Value, key: &str) -> Result<i64> {
    value[key].as_i64().with_context(|| format!("no {key} in {value}"))
}
