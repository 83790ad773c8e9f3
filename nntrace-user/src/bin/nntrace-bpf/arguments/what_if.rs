//! Options of predictions.

use nntrace_user::analyze::what_if::{Arrivals, CpuCount, Frequency, Options, Speed};

use super::{
    GraphQuestion,
    help_headings::{CAUSES, TARGET},
};

/// Predicts a run with other speeds.
#[derive(Debug, clap::Args)]
pub struct WhatIf {
    /// Speed of a layer (LD, driver), a layer and phase (`LD_PE`) or a function, such as driver=2x; may be given several times
    ///
    /// As a multiple of the recorded one: 2x is twice as fast, 0.5x half as fast, inf takes no time. `unmarked` is work that no section
    /// covers. Where several are of one function, the narrowest counts. `LD_PE:conv` is the function of that layer and phase alone.
    #[arg(long = "speed", value_name = "NAME=TIMES", help_heading = TARGET)]
    pub speeds: Vec<Speed>,

    /// Frequency of a cluster in kHz, such as big=1800000; may be given several times
    ///
    /// Work on the cluster is scaled from the frequencies that it had. Needs context switches and frequencies in the recording.
    #[arg(long = "freq", value_name = "CLUSTER=KHZ", help_heading = TARGET)]
    pub frequencies: Vec<Frequency>,

    /// Rank functions: what to speed up first
    #[arg(long, help_heading = TARGET)]
    pub rank: bool,

    /// Number of CPUs, or `unlimited` for as many as there are threads
    ///
    /// Default: those of the recording where its context switches are known (--level sched), else unlimited.
    #[arg(long, value_name = "COUNT", value_parser = cpu_count, help_heading = TARGET)]
    pub cpus: Option<CpuCount>,

    /// Threads stay on the CPUs that they ran on
    #[arg(long, help_heading = TARGET)]
    pub pinned: bool,

    /// When input from outside comes: at its recorded times (open), or when a thread is ready for it (closed)
    ///
    /// Default: open if the threads that hand out work wait for nobody and pause in between.
    #[arg(long, value_enum, help_heading = TARGET)]
    pub arrivals: Option<ArrivalTimes>,

    /// Each section of this function is an iteration, in place of those whose marks carry #iter=
    #[arg(long, value_name = "FUNCTION", help_heading = CAUSES)]
    pub iteration_root: Option<String>,

    /// The run.
    #[command(flatten)]
    pub question: GraphQuestion,
}

/// Times of input from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ArrivalTimes {
    /// As recorded
    Open,
    /// When a thread is ready
    Closed,
}

impl WhatIf {
    /// Returns the options of the prediction.
    pub fn options(&self) -> Options {
        Options {
            speeds: self.speeds.clone(),
            frequencies: self.frequencies.clone(),
            cpus: self.cpus,
            pinned: self.pinned,
            arrivals: self.arrivals.map(|times| match times {
                ArrivalTimes::Open => Arrivals::Open,
                ArrivalTimes::Closed => Arrivals::Closed,
            }),
            iteration_root: self.iteration_root.clone(),
            rank: self.rank,
        }
    }
}

/// Parses `4` or `unlimited`.
fn cpu_count(text: &str) -> Result<CpuCount, String> {
    if text == "unlimited" {
        return Ok(CpuCount::Unlimited);
    }
    let count = text.parse().ok().filter(|count| (1..=4096).contains(count));
    count.map(CpuCount::Some).ok_or_else(|| "expected a number from 1 to 4096, or unlimited".into())
}
