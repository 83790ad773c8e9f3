//! Cost of profiling and replaying on this host, beside that of alternative tools.

mod child;
mod collector;
mod emit_marks;
mod emit_pairs;
mod export;
mod express;
mod idle;
mod lttng;
pub mod machine;
mod marks;
mod operators;
mod over_time;
pub mod pairs;
mod ping_pong;
mod process;
mod profiler;
mod recording;
mod replay;
mod results;
mod single;
pub mod spread;
mod start;
mod table;
pub mod trace_text;
mod tracefs;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};

use crate::{
    bench::{
        results::Results,
        table::{Style, Table},
    },
    demo,
    run::{as_root, command, run, target_dir},
    setup,
};

/// Figures that were taken as those to compare with, from the workspace's root.
const BASELINE: &str = "xtask/src/bench/baseline.json";

/// Options of the measurements.
#[derive(Args)]
pub struct Bench {
    /// Measure these only [default: all]
    what: Vec<What>,
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
    /// Write all medians and ranges to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Compare with the figures in this file; fails where a ratio got worse
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// How many times as bad a ratio may be
    #[arg(long, default_value_t = 1.3, value_name = "TIMES", value_parser = factor)]
    factor: f64,
    /// Take the figures as those to compare with: xtask/src/bench/baseline.json
    #[arg(long)]
    bless: bool,
}

/// Measurement that can be made separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Replaying a trace file, which needs no root
    Replay,
    /// Marks that are probed, and marks that nobody listens to
    Marks,
    /// Marks on the express lane, and the collector that reads them
    Express,
    /// Transitions of CPUs to and from idle states
    Idle,
    /// The collector at the pace of the example network
    Collector,
    /// The time until the first results
    Start,
    /// Operators of real engines, which are fetched first
    Operators,
    /// Recordings, and reading them
    Recording,
}

impl What {
    /// Measurements that need root's rights, in their order.
    const AS_ROOT: [Self; 7] = [
        Self::Marks,
        Self::Express,
        Self::Idle,
        Self::Collector,
        Self::Start,
        Self::Operators,
        Self::Recording,
    ];

    fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
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
    /// Builds everything, measures replay, then runs the driver of the rest, with root's rights.
    pub fn run(&self) -> Result<()> {
        let earlier = self.compare.as_deref().map(Results::read).transpose()?;
        demo::build()?;
        let folder = target_dir()?.join("bench");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut results = Results::new("");
        if self.wants(What::Replay) {
            let file = folder.join("replay.json");
            run(&mut self.driver("replay", &[], &file)?)?;
            results.extend(Results::read(&file)?);
        }
        let as_root_too: Vec<What> = What::AS_ROOT.into_iter().filter(|&what| self.wants(what)).collect();
        if !as_root_too.is_empty() {
            setup::live()?;
            if as_root_too.contains(&What::Express) {
                lttng::install();
            }
            let file = folder.join("measure.json");
            run(&mut as_root(self.driver("measure", &as_root_too, &file)?)?)?;
            results.extend(Results::read(&file)?);
        }
        if let Some(file) = &self.json {
            results.write(file)?;
        }
        // Before the figures may take the place of those that they are compared with.
        let outcome = earlier.map_or(Ok(()), |earlier| self.judge(&results, &earlier));
        if self.bless { bless(results).and(outcome) } else { outcome }
    }

    fn wants(&self, what: What) -> bool {
        self.what.is_empty() || self.what.contains(&what)
    }

    /// Returns the command of a part, which writes its figures to a file.
    fn driver(&self, part: &str, what: &[What], figures: &Path) -> Result<Command> {
        let mut driver = command(release("xtask")?);
        driver.args(["bench-part", part, "--rounds", &self.rounds.to_string()]);
        driver.args(["--marks", &self.marks.to_string(), "--json"]).arg(figures);
        driver.args(self.markdown.then_some("--markdown")).args(self.keep.then_some("--keep"));
        driver.args(what.iter().map(|what| what.word()));
        Ok(driver)
    }

    /// Prints how the figures differ from earlier ones; fails when a ratio got worse.
    fn judge(&self, results: &Results, earlier: &Results) -> Result<()> {
        let found = results.compare(earlier, self.factor);
        for line in &found.different {
            println!("note       {line}; this may be the machine");
        }
        if found.worse.is_empty() {
            return Ok(());
        }
        bail!("more than {} times as bad as before:\n  {}", self.factor, found.worse.join("\n  "))
    }

    /// Makes the measurements that need root's rights; prints each as soon as there are numbers.
    fn measure(&self) -> Result<()> {
        let marks = self.wants(What::Marks).then(|| marks::measure(self.rounds, self.marks)).transpose()?;
        let host = machine::describe(marks.as_ref().map(|marks| marks.site));
        println!("{host}\n");
        let mut tables = Tables { style: self.style(), results: Results::new(&host) };
        if let Some(marks) = marks {
            tables.add(&marks.table());
            tables.add(&pairs::measure(self.rounds, self.marks / 2)?);
        }
        if self.wants(What::Express) {
            tables.add(&single::measure(self.rounds, self.marks)?);
            tables.add(&express::measure(self.rounds)?);
        }
        if self.wants(What::Idle) {
            tables.add(&idle::measure(self.rounds)?);
        }
        if self.wants(What::Collector) {
            tables.add(&collector::measure()?);
            tables.add(&over_time::measure()?);
        }
        if self.wants(What::Start) {
            tables.add(&start::measure(self.rounds)?);
        }
        if self.wants(What::Operators) {
            tables.add(&operators::measure(self.rounds.div_ceil(3))?);
        }
        if self.wants(What::Recording) {
            tables.add(&recording::measure(self.rounds.div_ceil(3))?);
            tables.add(&recording::measure_reading(self.rounds.div_ceil(3))?);
            tables.add(&export::measure(self.rounds.div_ceil(3))?);
        }
        tables.end(self.json.as_deref())
    }

    /// Measures replay.
    fn replay(&self) -> Result<()> {
        let host = machine::describe(None);
        println!("{host}\n");
        let mut tables = Tables { style: self.style(), results: Results::new(&host) };
        tables.add(&replay::measure(self.rounds, self.keep)?);
        tables.add(&replay::measure_power(self.rounds, self.keep)?);
        tables.end(self.json.as_deref())
    }

    fn style(&self) -> Style {
        if self.markdown { Style::Markdown } else { Style::Plain }
    }
}

/// Tables that are printed, and kept.
struct Tables {
    style: Style,
    results: Results,
}

impl Tables {
    fn add(&mut self, table: &Table) {
        println!("{}", table.render(self.style));
        self.results.add(table);
    }

    fn end(&self, file: Option<&Path>) -> Result<()> {
        file.map_or(Ok(()), |file| self.results.write(file))
    }
}

/// Takes over the figures into the file that they are compared with; those of other tables stay.
fn bless(results: Results) -> Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(BASELINE);
    let mut all = if file.exists() { Results::read(&file)? } else { Results::new("") };
    all.extend(results);
    all.write(&file)?;
    println!("written    {BASELINE}");
    Ok(())
}

/// Parses how many times as bad a ratio may be.
fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse::<f64>().ok().filter(|factor| factor.is_finite() && *factor >= 1.0);
    factor.ok_or_else(|| "expected a number of 1 or more, such as 1.3".into())
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
pub fn release(program: &str) -> Result<PathBuf> {
    Ok(target_dir()?.join("release").join(program))
}
