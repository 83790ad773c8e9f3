//! Cost of profiling and replaying on this host, beside that of alternative tools.

mod child;
mod collector;
mod emit_marks;
mod emit_pairs;
mod express;
mod idle;
mod machine;
mod marks;
mod pairs;
mod ping_pong;
mod profiler;
mod replay;
mod spread;
mod table;
mod trace_text;
mod tracefs;

use std::{os::unix::process::CommandExt, path::PathBuf, process::Command};

use anyhow::{Error, Result};
use clap::{Args, Subcommand, ValueEnum};

use crate::{
    bench::table::{Style, Table},
    demo,
    run::{as_root, command, run, target_dir},
    setup,
};

/// Options of the measurements.
#[derive(Args)]
pub struct Bench {
    /// Measure this only
    what: Option<What>,
    /// How often each state is measured; the states take turns
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Marks a round
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1000..))]
    marks: u32,
    /// Print markdown tables
    #[arg(long)]
    markdown: bool,
    /// Leave the traces that are replayed under target/bench
    #[arg(long)]
    keep: bool,
}

/// Measurement that can be made by itself.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Replaying a trace file, which needs no root
    Replay,
}

/// Programs that the measurement consists of: its driver, which runs as root, and the measured ones.
#[derive(Subcommand)]
pub enum Part {
    /// Measure what needs root's rights, with the programs that were built
    Measure(Bench),
    /// Measure replay, with the programs that were built
    Replay(Bench),
    /// Write marks on request
    EmitMarks(emit_marks::EmitMarks),
    /// Write sections on request
    EmitPairs(emit_pairs::EmitPairs),
    /// Pass a byte between two CPUs on request
    PingPong(ping_pong::PingPong),
}

impl Bench {
    /// Builds everything, measures replay, then becomes the driver of the rest, with root's rights.
    pub fn run(&self) -> Result<()> {
        demo::build()?;
        let driver = |part| -> Result<Command> {
            let mut driver = command(release("xtask")?);
            driver.args(["bench-part", part, "--rounds", &self.rounds.to_string()]);
            driver.args(["--marks", &self.marks.to_string()]);
            driver.args(self.markdown.then_some("--markdown")).args(self.keep.then_some("--keep"));
            Ok(driver)
        };
        run(&mut driver("replay")?)?;
        if self.what == Some(What::Replay) {
            return Ok(());
        }
        setup::live()?;
        let mut driver = as_root(driver("measure")?)?;
        Err(Error::new(driver.exec()).context("the measurement does not start"))
    }

    /// Makes the measurements that need root's rights; prints each as soon as there are numbers.
    fn measure(&self) -> Result<()> {
        let marks = marks::measure(self.rounds, self.marks)?;
        println!("{}\n", machine::describe(Some(marks.site)));
        self.print(&marks.table());
        self.print(&pairs::measure(self.rounds, self.marks / 2)?);
        self.print(&express::measure(self.rounds)?);
        self.print(&idle::measure(self.rounds)?);
        self.print(&collector::measure()?);
        Ok(())
    }

    /// Measures replay.
    fn replay(&self) -> Result<()> {
        println!("{}\n", machine::describe(None));
        self.print(&replay::measure(self.rounds, self.keep)?);
        self.print(&replay::measure_power(self.rounds, self.keep)?);
        Ok(())
    }

    fn print(&self, table: &Table) {
        let style = if self.markdown { Style::Markdown } else { Style::Plain };
        println!("{}", table.render(style));
    }
}

impl Part {
    /// Runs the part.
    pub fn run(&self) -> Result<()> {
        match self {
            Self::Measure(bench) => bench.measure(),
            Self::Replay(bench) => bench.replay(),
            Self::EmitMarks(load) => load.run(),
            Self::EmitPairs(_) => emit_pairs::EmitPairs::run(),
            Self::PingPong(load) => load.run(),
        }
    }
}

/// Returns the path of a program in the release build.
fn release(program: &str) -> Result<PathBuf> {
    Ok(target_dir()?.join("release").join(program))
}
