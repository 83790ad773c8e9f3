//! Operators of real engines by hooks: the same as by probes, name by name and count by count.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use nntrace_common::layer::Tag;
use nntrace_tests::{
    engines::{Engine, Size, Traced},
    live,
};

/// Runs of the tiny model.
const RUNS: u64 = 100;
/// Name of the time that a thread waits until its lane is read.
const WAITING: &str = "waiting for nntrace-bpf";

/// Returns the number of sections by tag and name.
fn counts(traced: &Traced) -> BTreeMap<(String, &str), u64> {
    let rows = traced.snapshot.functions.iter().filter(|row| row.name != WAITING);
    rows.map(|row| ((Tag::new(row.layer, row.phase).to_string(), row.name.as_str()), row.count)).collect()
}

/// Runs an engine with probes and with hooks: at least `least` of its functions are hooked, and all count the same but
/// those with these names, which others call directly.
fn check(engine: Engine, least: usize, called: &[&str]) -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    if !engine.is_there()? {
        return Ok(());
    }
    let probed = engine.launched("op", Size::Tiny, RUNS)?;
    let hooked = engine.hooked(Size::Tiny, RUNS)?;
    let all = |traced: &Traced| -> usize {
        traced.snapshot.source.engines.iter().map(|engine| engine.hooked).sum()
    };
    ensure!(all(&probed) == 0 && all(&hooked) >= least, "{:?}", hooked.snapshot.source.engines);
    let (ours, mut theirs) = (counts(&hooked), counts(&probed));
    theirs.retain(|(tag, name), _| tag != "LC_PE" || !called.contains(name));
    ensure!(theirs.values().any(|count| *count >= RUNS), "no operators: {theirs:?}");
    ensure!(ours == theirs, "by hooks {ours:?}, by probes {theirs:?}: {:?}", hooked.snapshot.notes);
    let lanes = hooked.snapshot.source.express.as_ref().context("no lane")?;
    ensure!(lanes.lost == 0 && lanes.damaged == 0, "{lanes:?}: {:?}", hooked.snapshot.notes);
    let time = |traced: &Traced| traced.printed.loop_ns / traced.printed.runs;
    println!(
        "{}: {} functions are hooked; a run takes {} ns, with probes {}",
        engine.name,
        all(&hooked),
        time(&hooked),
        time(&probed)
    );
    Ok(())
}

#[test]
fn onnxruntime_by_python() -> Result<()> {
    check(Engine::new("onnxruntime", "onnxruntime_python.py", "onnx"), 500, &[])
}

#[test]
fn onnxruntime_by_its_c_interface() -> Result<()> {
    check(Engine::new("onnxruntime", "onnxruntime_c.py", "onnx"), 500, &[])
}

#[test]
fn litert() -> Result<()> {
    check(Engine::new("litert", "tflite_python.py", "tflite"), 100, &[])
}

/// The layer for a processor calls that of its base class for what it does not do itself.
#[test]
fn ncnn() -> Result<()> {
    check(Engine::new("ncnn", "ncnn_python.py", "ncnn"), 100, &["Padding"])
}

#[test]
fn openvino() -> Result<()> {
    check(Engine::new("openvino", "openvino_python.py", "onnx"), 10, &[])
}

#[test]
fn mnn() -> Result<()> {
    check(Engine::new("mnn", "mnn_python.py", "mnn"), 50, &[])
}
