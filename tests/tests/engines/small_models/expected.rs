//! What each engine shows in all ways to run it, besides its operators.

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{
    engines::{Engine, Joins, Printed, Size, Traced},
    live,
    results::Results as _,
};

use super::{LARGE_RUNS, RUNS};

/// Time of a run outside of the function that executes the model, µs, at most: of the interpreter and the engine's module
/// for it, and of the kernel on its way to the probes. It is 15 to 25 on machines on which a probe costs 1 to 1.5. Slower
/// ones need longer for the model as well, so a tenth of the loop is allowed in addition.
const OUTSIDE_US: u64 = 50;
/// Launches until the clocks must have agreed: others may take the CPU from the loop, outside of the function or in it.
const ATTEMPTS: u32 = 5;

/// Sections of an engine besides its operators.
pub struct Expected {
    pub engine: Engine,
    /// Layer and phase in which a model is loaded, once.
    pub load: &'static str,
    /// Layer and phase of the functions that know the model's path.
    pub path: &'static str,
    /// Ending of the path, where a model is several files.
    pub file: &'static str,
    /// Time of a run outside of the function that executes the model, µs, at most.
    pub outside_us: u64,
}

impl Expected {
    pub const fn of(engine: Engine, load: &'static str, path: &'static str) -> Self {
        Self { engine, load, path, file: "", outside_us: OUTSIDE_US }
    }

    /// Runs the engine in all ways. `prepare` returns a check of the operators of this many runs: while it asks the engine for
    /// them, no other test is timed.
    pub fn check<C: Fn(&Traced, u64) -> Result<()>>(
        &self,
        prepare: impl FnOnce() -> Result<C>,
    ) -> Result<()> {
        let Some(_live) = live::enter()? else { return Ok(()) };
        if !self.engine.is_there()? {
            return Ok(());
        }
        let operators = prepare()?;
        let launched = self.timed(|| self.engine.launched("op", Size::Tiny, RUNS)).context("as a command")?;
        self.check_loaded(&launched, Size::Tiny)?;
        let others = launched.printed.other_runs;
        assert_eq!(launched.snapshot.count(launched.pid()?, "LR_PE"), RUNS + others, "runs");
        operators(&launched, RUNS + others).context("as a command")?;

        let large =
            self.timed(|| self.engine.launched("run", Size::Large, LARGE_RUNS)).context("the large model")?;
        self.check_loaded(&large, Size::Large)?;
        assert_eq!(
            large.snapshot.count(large.pid()?, "LR_PE"),
            LARGE_RUNS + others,
            "runs of the large model"
        );
        assert_eq!(large.snapshot.count(large.pid()?, "LC_PE"), 0, "operators, at level run");

        let early = || self.engine.joined(Joins::BeforeTheModel, "run", Size::Tiny, RUNS);
        let early = self.timed(early).context("joined before the model")?;
        self.check_loaded(&early, Size::Tiny)?;
        assert_eq!(
            early.snapshot.count(early.pid()?, "LR_PE"),
            RUNS + others,
            "runs, joined before the model"
        );

        let late = || self.engine.joined(Joins::AfterTheModel, "op", Size::Tiny, RUNS);
        let late = self.timed(late).context("joined after the model")?;
        let seen = |tag| late.pid().map(|pid| late.snapshot.count(pid, tag));
        assert_eq!((seen(self.load)?, seen("LR_PE")?), (0, RUNS), "loads and runs, joined after the model");
        operators(&late, RUNS).context("joined after the model")
    }

    /// Runs the engine until the profiler and the loop agree on its time.
    fn timed(&self, mut run: impl FnMut() -> Result<Traced>) -> Result<Traced> {
        let mut attempts = 0;
        loop {
            let traced = run()?;
            assert_eq!(traced.snapshot.odd_marks(), [].into(), "{:?}", traced.snapshot.diagnostics);
            let row = traced.snapshot.phase(traced.pid()?, "LR_PE").context("no run was seen")?;
            let Printed { runs, loop_ns, engine_ns, .. } = traced.printed;
            // Runs that the engine did on its own take as long as the others.
            let (shown, clock) = (row.total_ns * runs / row.count, engine_ns.unwrap_or(loop_ns));
            println!("{runs} runs: {shown} ns by the profiler, {clock} ns by the loop's clock");
            let outside = clock / 10 + runs * self.outside_us * 1000;
            if (clock.saturating_sub(outside)..=clock * 103 / 100).contains(&shown) {
                return Ok(traced);
            }
            attempts += 1;
            ensure!(
                attempts < ATTEMPTS,
                "{runs} runs take {shown} ns by the profiler, {clock} ns by the loop's clock"
            );
        }
    }

    /// Checks that the model was loaded once, from its path.
    fn check_loaded(&self, traced: &Traced, size: Size) -> Result<()> {
        assert_eq!(traced.snapshot.count(traced.pid()?, self.load), 1, "{}", self.load);
        let model = self.engine.model(size)?;
        let model = format!("{}{}", model.to_str().context("the path is text")?, self.file);
        let functions = traced.functions(self.path);
        assert_eq!(functions.get(model.as_str()), Some(&1), "{} of {model}: {functions:?}", self.path);
        Ok(())
    }
}
