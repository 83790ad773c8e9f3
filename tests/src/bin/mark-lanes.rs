//! Threads that write enough marks to get lanes: of literal names, with attributes, of spans, and of a phase of the
//! application around all.

use std::{thread, time::Duration};

use clap::Parser;
use nntrace_common::{
    emit::{self, MarkLayer},
    mark,
};
use tracing::info_span;
use tracing_subscriber::prelude::*;

/// Writes marks from several threads.
#[derive(Debug, Parser)]
struct Cli {
    /// Number of threads.
    #[arg(long)]
    threads: u32,
    /// Rounds of each thread: six sections and an instant.
    #[arg(long)]
    rounds: u32,
}

/// Rounds between two pauses, in which the profiler accepts the lane, and reads it: fewer than a ring has room for.
const TOGETHER: u32 = 20;
/// Length of a pause.
const PAUSE: Duration = Duration::from_millis(20);

fn main() {
    let cli = Cli::parse();
    let all = mark!(LA, PO, "all");
    let subscriber = tracing_subscriber::registry().with(MarkLayer);
    tracing::subscriber::with_default(subscriber, || {
        thread::scope(|scope| {
            for _ in 0..cli.threads {
                let subscriber = tracing::dispatcher::get_default(Clone::clone);
                scope.spawn(move || tracing::dispatcher::with_default(&subscriber, || rounds(cli.rounds)));
            }
        });
    });
    let _rest = mark!(switch all; LA, PBM, "rest");
}

fn rounds(count: u32) {
    // It began before there was a lane, and so ends by the probe.
    let _early = mark!(LA, PE, "early");
    for round in 0..count {
        if round % TOGETHER == TOGETHER - 1 {
            thread::sleep(PAUSE);
            emit::counter("round", round.into());
        }
        let _execution = mark!(LR, PE, "execute", iter = round);
        {
            let layout = mark!(LC, PTR, "layout");
            let convolution = mark!(switch layout; LC, PCO, "conv2d");
            let _relu = mark!(switch convolution; LC, PCO, "relu", channels = 32);
        }
        {
            let _late = mark!(subtract; LR, PC, "late");
        }
        info_span!("store", layer = "LR", phase = "PR", n = round).in_scope(|| emit::instant("stored"));
    }
}
