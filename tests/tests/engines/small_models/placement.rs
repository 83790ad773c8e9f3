//! Where operators ran, as `nntrace-bpf where` shows it: the engine's own assignment, operator by operator.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use nntrace_tests::{
    engines::{Engine, Printed, Size},
    live,
};
use serde::Deserialize;

use super::{LITERT, ONNXRUNTIME, RUNS, TFLITE_RUNTIME, XNNPACK, by_name};

const OPENVINO_PROVIDER: Engine = Engine {
    mode: Some("openvino"),
    ..Engine::new("onnxruntime-openvino", "onnxruntime_python.py", "mixed")
};
/// Qualcomm's plugin, with the simulator of its NPU.
const QNN_PROVIDER: Engine =
    Engine { mode: Some("qnn"), ..Engine::new("onnxruntime-qnn", "onnxruntime_python.py", "mixed") };
/// Runs on the simulator, of some tenths of a second.
const SIMULATED_RUNS: u64 = 10;
/// Unit of the times in ONNX Runtime's profile, ns.
const PROFILE_UNIT_NS: u64 = 1_000;

/// Account of one process on the page.
#[derive(Debug, Deserialize)]
struct Process {
    pid: u32,
    runs: u64,
    runs_ns: u64,
    outside_operators_ns: u64,
    crossings: u64,
    crossings_ns: u64,
    places: Vec<Place>,
    operators: Vec<Operator>,
}

#[derive(Debug, Deserialize)]
struct Place {
    provider: Option<String>,
    processor: Option<String>,
    operators: u64,
    parts: u64,
    calls: u64,
    total_ns: u64,
    on_cpu_inside: u64,
    on_cpu_inside_ns: u64,
}

#[derive(Debug, Deserialize)]
struct Operator {
    name: String,
    provider: Option<String>,
    processor: Option<String>,
    is_part: bool,
    calls: u64,
    calls_ns: u64,
    around: u64,
}

/// Runs an engine; `None` where it is not there.
fn placed(engine: Engine, runs: u64) -> Result<Option<(Printed, Process)>> {
    let Some(_live) = live::enter_shared()? else { return Ok(None) };
    if !engine.is_there()? {
        return Ok(None);
    }
    let (printed, mut page) = engine.placed(Size::Tiny, runs)?;
    let processes: Vec<Process> = serde_json::from_value(page["processes"].take()).context("processes")?;
    let [process] = <[Process; 1]>::try_from(processes).expect("one process runs a model");
    assert_eq!(page["is_incomplete"], false);
    assert_eq!((process.pid, process.runs), (printed.pid, runs + printed.other_runs));
    // All operators are in runs here.
    let operators: u64 = process.places.iter().map(|place| place.total_ns).sum();
    assert_eq!(operators + process.outside_operators_ns, process.runs_ns, "times add up");
    assert!(process.crossings_ns <= process.outside_operators_ns, "{process:?}");
    Ok(Some((printed, process)))
}

/// Checks operators against ONNX Runtime's own profile of the same runs: names, calls, providers, and that each time is within
/// the engine's.
fn assert_as_profiled(printed: &Printed, process: &Process) {
    let own: BTreeMap<(&str, &str), u64> = printed
        .by(by_name)
        .into_iter()
        .map(|(name, all)| {
            let provider = all[0].provider.as_deref().expect("the profile has it");
            ((name, provider), all.len() as u64)
        })
        .collect();
    let found = process.operators.iter().map(|operator| {
        let provider = match (operator.provider.as_deref(), operator.processor.as_deref()) {
            (None, Some("cpu")) => "CPUExecutionProvider",
            (Some("OpenVINO"), None) => "OpenVINOExecutionProvider",
            (Some("QNN"), None) => "QNNExecutionProvider",
            other => panic!("{other:?} of {operator:?}"),
        };
        ((operator.name.as_str(), provider), operator.calls)
    });
    assert_eq!(found.collect::<BTreeMap<_, _>>(), own);
    for operator in &process.operators {
        let all = &printed.by(by_name)[operator.name.as_str()];
        let own: u64 = all.iter().map(|operator| operator.ns + PROFILE_UNIT_NS).sum();
        assert!(operator.calls_ns <= own, "{operator:?}: {own} ns by the engine");
        assert_eq!(operator.around, 0, "{operator:?}");
    }
}

#[test]
fn onnxruntime_with_the_provider_for_openvino() -> Result<()> {
    let Some((printed, process)) = placed(OPENVINO_PROVIDER, RUNS)? else { return Ok(()) };
    assert_as_profiled(&printed, &process);
    assert_eq!(process.crossings, 2 * RUNS, "to the operator that is left, and back");
    let of = |provider: Option<&str>| {
        let mut places = process.places.iter();
        places.find(|place| place.provider.as_deref() == provider).expect("a place")
    };
    let (openvino, own) = (of(Some("OpenVINO")), of(None));
    assert_eq!((openvino.parts, openvino.operators, openvino.calls), (2, 0, 2 * RUNS), "{process:?}");
    assert_eq!((own.parts, own.operators, own.calls), (0, 1, RUNS), "{process:?}");
    // OpenVINO's plugin for CPUs runs the parts: a convolution in each.
    assert!(openvino.on_cpu_inside >= 2 * RUNS && openvino.on_cpu_inside_ns < openvino.total_ns);
    Ok(())
}

#[test]
fn onnxruntime_with_the_plugin_for_qnn() -> Result<()> {
    let Some((printed, process)) = placed(QNN_PROVIDER, SIMULATED_RUNS)? else { return Ok(()) };
    assert_as_profiled(&printed, &process);
    assert_eq!(process.crossings, 2 * SIMULATED_RUNS, "to the operator that is left, and back");
    let parts = process.operators.iter().filter(|row| row.provider.as_deref() == Some("QNN"));
    assert!(parts.count() == 2, "{process:?}");
    Ok(())
}

#[test]
fn onnxruntime_on_the_cpu() -> Result<()> {
    let Some((printed, process)) = placed(ONNXRUNTIME, RUNS)? else { return Ok(()) };
    assert_as_profiled(&printed, &process);
    assert_eq!((process.places.len(), process.crossings), (1, 0), "{process:?}");
    Ok(())
}

/// The delegate takes what is before and after the cumulative sum.
fn litert_with_xnnpack(engine: Engine, sum: &str) -> Result<()> {
    let Some((_, process)) = placed(engine, RUNS)? else { return Ok(()) };
    let operators = process.operators.iter();
    let found: Vec<_> = operators
        .map(|row| (row.name.as_str(), row.provider.as_deref(), row.is_part, row.calls / process.runs))
        .collect();
    let mut expected = vec![("TfLiteXNNPackDelegate", Some("XNNPack"), true, 2), (sum, None, false, 1)];
    expected.sort_by_key(|(name, ..)| found.iter().position(|(found, ..)| found == name));
    assert_eq!(found, expected);
    assert!(process.operators.iter().all(|row| row.processor.as_deref() == Some("cpu")), "{process:?}");
    assert_eq!(process.crossings, 2 * process.runs);
    let delegate = process.places.iter().find(|place| place.provider.is_some()).context("the delegate")?;
    assert_eq!(delegate.processor.as_deref(), Some("cpu"));
    let inside: u64 = XNNPACK.iter().map(|(_, calls)| calls).sum();
    assert!(delegate.on_cpu_inside >= inside * process.runs, "{delegate:?}");
    Ok(())
}

#[test]
fn litert() -> Result<()> {
    litert_with_xnnpack(LITERT, "cumsum")
}

#[test]
fn tflite_runtime() -> Result<()> {
    litert_with_xnnpack(TFLITE_RUNTIME, "CUMSUM")
}
