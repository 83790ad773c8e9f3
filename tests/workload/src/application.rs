//! The application, from its start to its end, with its phases.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use nntrace_common::layer::{Layer, Phase};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::images::{self, Image};
use crate::options::Options;
use crate::runtime::{Runtime, RuntimeModel};
use crate::truth::{Process, Section, Truth};
use crate::workers::{Done, Workers};

/// End of the run.
#[derive(Clone, Copy, Debug)]
enum Extent {
    Inferences(u64),
    Time(Duration),
}

/// Runs the application and reports.
pub fn run(options: &Options) -> Result<()> {
    let extent = match options.inferences {
        _ if options.self_check => Extent::Inferences(images::COUNT as u64),
        Some(count) => Extent::Inferences(count),
        None => Extent::Time(Duration::try_from_secs_f64(options.seconds).context("--seconds")?),
    };
    let interrupted = watch_signals()?;
    let images = Arc::new(Image::all(options.seed)?);
    let threads = options.threads.get();
    let mut runtime = Runtime::start(threads)?;

    let begun = Instant::now();
    let done = overall(&mut runtime, &images, options, extent, &interrupted)?;
    let elapsed = begun.elapsed();

    let processes = vec![Process::current("application"), runtime.finish()?];
    let marks = processes.iter().map(|process| process.marks).sum();
    let truth = Truth { processes, marks, inferences: done.inferences };
    if let Some(path) = &options.truth {
        let mut json = serde_json::to_vec_pretty(&truth)?;
        json.push(b'\n');
        fs::write(path, json).with_context(|| format!("writing {}", path.display()))?;
    }
    if !options.quiet {
        let mean = done.latency.as_secs_f64() / done.inferences.max(1) as f64;
        println!(
            "{} inferences, mean latency {:.2} ms, {:.1} inferences/s, {:.0} marks/s",
            done.inferences,
            mean * 1e3,
            done.inferences as f64 / elapsed.as_secs_f64(),
            marks as f64 / elapsed.as_secs_f64(),
        );
    }
    Ok(())
}

/// Runs the marked part: one network, from its description to its end.
fn overall(
    runtime: &mut Runtime,
    images: &Arc<Vec<Image>>,
    options: &Options,
    extent: Extent,
    interrupted: &AtomicBool,
) -> Result<Done> {
    let _overall = Section::begin(Layer::Application, Phase::Overall, "workload");
    let begun = Instant::now();

    let model = RuntimeModel::create(options.seed);
    let compilation = runtime.compile(model).context("compiling the model")?;
    let threads = options.threads.get();
    let sessions = (0..threads).map(|_| runtime.session(&compilation)).collect::<Result<Vec<_>>>()?;
    let mut workers = Workers::start(sessions, images, options.pause())?;

    let go_on = || !interrupted.load(Ordering::Relaxed);
    // Twice per thread: the first execution allocates, the second finds everything in place.
    let warm_up = match extent {
        Extent::Inferences(count) => (2 * threads as u64).min(count / 2),
        Extent::Time(_) => 2 * threads as u64,
    };
    {
        let _warm_up = Section::begin(Layer::Application, Phase::WarmUp, "warm-up");
        workers.run_batch(|asked| asked < warm_up && go_on())?;
    }
    {
        let _benchmark = Section::begin(Layer::Application, Phase::Benchmark, "benchmark");
        workers.run_batch(|asked| {
            go_on()
                && match extent {
                    Extent::Inferences(count) => asked < count - warm_up,
                    Extent::Time(duration) => begun.elapsed() < duration,
                }
        })?;
    }

    let _termination = Section::begin(Layer::Application, Phase::Termination, "tear down");
    let done = workers.finish()?;
    runtime.free(compilation)?;
    Ok(done)
}

/// Returns a flag that is raised by an interrupt, so that the run ends in good order; a second one ends the process.
fn watch_signals() -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the second registration would otherwise raise the flag before the first one looks at
        // it.
        flag::register_conditional_default(signal, Arc::clone(&interrupted))
            .and_then(|_| flag::register(signal, Arc::clone(&interrupted)))
            .with_context(|| format!("watching signal {signal}"))?;
    }
    Ok(interrupted)
}
