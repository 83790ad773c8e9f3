//! A real engine that refuses what it is asked for: programs catch its exceptions as they do without a profiler.

use std::path::Path;

use anyhow::Result;
use nntrace_tests::{live, profiler::Profiler, results::Results as _, wheels};

/// Refusals, and inferences.
const ROUNDS: u64 = 5;
/// Time that the program waits after each refusal, ns.
const PAUSE: u64 = 300_000_000;

#[test]
fn a_device_that_openvino_does_not_know_is_refused_and_the_program_goes_on() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let engines = wheels::folder()?;
    let (python, model) = (engines.join("openvino/bin/python"), engines.join("models/tiny.onnx"));
    for file in [&python, &model] {
        if wheels::found(file.exists().then(|| file.clone()), file)?.is_none() {
            return Ok(());
        }
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("engines/run/openvino_wrong_device.py");
    let run = Profiler::new()?.args(["--engine", "openvino"]).launch([&python, &script, &model])?;
    let (snapshot, ended) = (run.snapshot, run.ended.expect_code(0)?);
    assert_eq!(ended.text(), format!("refused {ROUNDS} times\n"));
    let [pid] = snapshot.pids()[..] else { panic!("{:?}", snapshot.functions) };
    assert_eq!(snapshot.count(pid, "LR_PE"), ROUNDS, "{:?}", snapshot.functions);
    assert_eq!(snapshot.count(pid, "LR_PC"), ROUNDS + 1, "{:?}", snapshot.functions);
    let odd = snapshot.odd_marks();
    assert!(odd.keys().eq(["unwound"].iter()) && odd["unwound"] >= ROUNDS, "{odd:?}");
    // Each ends where it is caught: the waiting is in none.
    let compilations = snapshot.phase(pid, "LR_PC").map_or(0, |row| row.total_ns);
    assert!(compilations > 0 && compilations < ROUNDS * PAUSE, "{:?}", snapshot.functions);
    Ok(())
}
