//! Programs that run beside this one, and the lines that they print.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdout, Command, Stdio},
    str::FromStr,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{bench::release, run::command};

/// Running program, which ends with this value, if not before.
pub struct Running {
    name: String,
    child: Child,
    /// Output, if that is read.
    output: Option<BufReader<ChildStdout>>,
}

impl Running {
    /// Starts a program whose output lines are read here.
    pub fn start(command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{name} does not start"))?;
        let output = child.stdout.take().with_context(|| format!("{name} has no output"))?;
        Ok(Self { name, child, output: Some(BufReader::new(output)) })
    }

    /// Starts a program whose output nobody reads.
    pub fn start_quietly(command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let child = child.with_context(|| format!("{name} does not start"))?;
        Ok(Self { name, child, output: None })
    }

    /// Starts one of the measured programs.
    pub fn load(args: &[&str]) -> Result<Self> {
        let mut load = command(release("xtask")?);
        load.arg("bench-part").args(args);
        Self::start(&mut load)
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads the next line.
    pub fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let output = self.output.as_mut().with_context(|| format!("{} prints to nobody", self.name))?;
        let read = output.read_line(&mut line).with_context(|| format!("{} cannot be read", self.name))?;
        ensure!(read > 0, "{} ended too early; what it printed above says why", self.name);
        Ok(line.trim_end().to_owned())
    }

    /// Sends a request, and waits for the numbers in the answer.
    pub fn ask<T: FromStr, const N: usize>(&mut self, request: &str) -> Result<[T; N]> {
        self.send(request)?;
        self.numbers().with_context(|| format!("the answer to `{request}` is none"))
    }

    /// Sends a request.
    pub fn send(&mut self, request: &str) -> Result<()> {
        let input = self.child.stdin.as_mut().with_context(|| format!("{} takes no requests", self.name))?;
        writeln!(input, "{request}").with_context(|| format!("{} does not listen any more", self.name))
    }

    /// Waits for the numbers in the answer to a request.
    pub fn numbers<T: FromStr, const N: usize>(&mut self) -> Result<[T; N]> {
        let line = self.line()?;
        let numbers: Option<Vec<T>> = line.split(' ').map(|word| word.parse().ok()).collect();
        numbers
            .and_then(|numbers| numbers.try_into().ok())
            .ok_or_else(|| anyhow!("{} prints `{line}`: expected {N} values", self.name))
    }

    /// Asks the program to end; returns the rest of its output.
    pub fn end(mut self, signal: Signal) -> Result<String> {
        kill(Pid::from_raw(self.pid().cast_signed()), signal)
            .with_context(|| format!("{} cannot be ended", self.name))?;
        let mut rest = String::new();
        if let Some(output) = &mut self.output {
            output.read_to_string(&mut rest).with_context(|| format!("{} cannot be read", self.name))?;
        }
        let status = self.child.wait().with_context(|| format!("{} cannot be waited for", self.name))?;
        if !status.success() {
            bail!("{} failed: {status}; what it printed above says why", self.name);
        }
        Ok(rest)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended on its own.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the program's side: answers each line of stdin with one line, until there are no more.
pub fn answer(mut answer: impl FnMut(&str) -> Result<String>) -> Result<()> {
    for line in std::io::stdin().lock().lines() {
        let line = line.context("stdin cannot be read")?;
        println!("{}", answer(&line)?);
    }
    Ok(())
}
