//! The program whose CPUs often become idle: two threads, each on its own CPU, wake each other in turn.

use std::{
    io::{PipeReader, PipeWriter, Read, Write, pipe},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::bench::{child, machine, spread::Spread};

/// Passes a byte between two CPUs on request.
#[derive(Args)]
pub struct PingPong {
    /// How long a round takes
    #[arg(long)]
    milliseconds: u64,
}

impl PingPong {
    /// Answers `round` with the median ns of a round trip, and the number of round trips.
    pub fn run(&self) -> Result<()> {
        let [here, there] = cpus()?;
        let (reader, mut writer) = pipe().context("no pipe")?;
        let (mut answers, answer) = pipe().context("no pipe")?;
        thread::spawn(move || echo(there, reader, answer));
        machine::pin(here)?;
        child::answer(|request| match request {
            "round" => self.round(&mut writer, &mut answers),
            _ => bail!("unknown request `{request}`: expected round"),
        })
    }

    fn round(&self, writer: &mut PipeWriter, answers: &mut PipeReader) -> Result<String> {
        let duration = Duration::from_millis(self.milliseconds);
        let begin = Instant::now();
        let mut trips = Vec::new();
        let mut last = begin;
        while last.duration_since(begin) < duration {
            pass(writer, answers).context("the other thread is gone")?;
            let now = Instant::now();
            trips.push(now.duration_since(last).as_secs_f64() * 1e9);
            last = now;
        }
        Ok(format!("{} {}", Spread::of(&trips).median, trips.len()))
    }
}

/// Sends a byte and waits for it to come back.
fn pass(to: &mut PipeWriter, from: &mut PipeReader) -> std::io::Result<()> {
    to.write_all(&[0])?;
    from.read_exact(&mut [0])
}

/// Runs the other thread: sends back the bytes that come, until the first one ends.
fn echo(cpu: usize, mut from: PipeReader, mut to: PipeWriter) -> Result<()> {
    machine::pin(cpu)?;
    let mut byte = [0];
    loop {
        from.read_exact(&mut byte)?;
        to.write_all(&byte)?;
    }
}

/// Returns the first two CPUs that this program may use.
fn cpus() -> Result<[usize; 2]> {
    let [first, second, ..] = machine::allowed_cpus()?[..] else {
        bail!("waking each other takes two CPUs; this program may use one");
    };
    Ok([first, second])
}
