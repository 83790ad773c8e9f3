//! What profiling costs on this machine, beside the tools that one would otherwise take.

mod child;
mod collector;
mod emit_marks;
mod idle;
mod machine;
mod marks;
mod ping_pong;
mod profiler;
mod spread;
mod table;
mod tracefs;

use std::{os::unix::process::CommandExt, path::PathBuf};

use anyhow::{Error, Result};
use clap::{Args, Subcommand};

use crate::{
    bench::table::Style,
    demo,
    run::{as_root, command, target_dir},
    setup,
};

/// How much is measured, and how it is shown.
#[derive(Args)]
pub struct Bench {
    /// How often each state is measured; the states take turns
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Marks a round
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1000..))]
    marks: u32,
    /// Print markdown tables
    #[arg(long)]
    markdown: bool,
}

/// The programs that the measurement consists of: its driver, which is root's, and what is measured.
#[derive(Subcommand)]
pub enum Part {
    /// Do all measurements with the programs that were built
    Measure(Bench),
    /// Write marks on request
    EmitMarks(emit_marks::EmitMarks),
    /// Pass a byte between two CPUs on request
    PingPong(ping_pong::PingPong),
}

impl Bench {
    /// Builds everything, then becomes the driver, with root's rights.
    pub fn run(&self) -> Result<()> {
        demo::build()?;
        setup::live()?;
        let mut driver = command(release("xtask")?);
        driver.args(["bench-part", "measure", "--rounds", &self.rounds.to_string()]);
        driver.args(["--marks", &self.marks.to_string()]);
        driver.args(self.markdown.then_some("--markdown"));
        let mut driver = as_root(driver)?;
        Err(Error::new(driver.exec()).context("the measurement does not start"))
    }

    /// Does all measurements; prints each as soon as there are numbers.
    fn measure(&self) -> Result<()> {
        let style = if self.markdown { Style::Markdown } else { Style::Plain };
        let marks = marks::measure(self.rounds, self.marks)?;
        println!("{}\n", machine::describe(marks.site));
        println!("{}", marks.table().render(style));
        println!("{}", idle::measure(self.rounds)?.render(style));
        println!("{}", collector::measure()?.render(style));
        Ok(())
    }
}

impl Part {
    /// Does the part.
    pub fn run(&self) -> Result<()> {
        match self {
            Self::Measure(bench) => bench.measure(),
            Self::EmitMarks(load) => load.run(),
            Self::PingPong(load) => load.run(),
        }
    }
}

/// A program of the release build.
fn release(program: &str) -> Result<PathBuf> {
    Ok(target_dir()?.join("release").join(program))
}
