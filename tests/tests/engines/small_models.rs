//! Real engines with small models: loads, runs and operators are counted as they happened, and their times agree with the
//! clock of the program that runs them.
//!
//! Each engine runs a tiny model as a command at level `op`, a larger one at level `run`, and a tiny one in a process
//! that the profiler joins: before the model is loaded, and after that.

mod expected;
mod language_models;
mod placement;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use nntrace_common::tokens;
use nntrace_tests::{
    engines::{Engine, Joins, Operator, Printed, Size, Traced},
    itt::Itt,
    live,
    results::Results as _,
};
use nntrace_user::report::snapshot::FunctionRow;

use self::expected::Expected;

/// Runs of the tiny model.
const RUNS: u64 = 200;
/// Runs of the large one, of about ten milliseconds.
const LARGE_RUNS: u64 = 50;

const ONNXRUNTIME: Engine = Engine::new("onnxruntime", "onnxruntime_python.py", "onnx");
const ONNXRUNTIME_C: Engine = Engine::new("onnxruntime", "onnxruntime_c.py", "onnx");
/// The oldest version that runs beside a `numpy` of today.
const ONNXRUNTIME_OLD: Engine = Engine::new("onnxruntime-1.20", "onnxruntime_python.py", "onnx");
const LITERT: Engine = Engine::new("litert", "tflite_python.py", "tflite");
const TFLITE_RUNTIME: Engine = Engine::new("tflite-runtime", "tflite_python.py", "tflite");
const NCNN: Engine = Engine::new("ncnn", "ncnn_python.py", "ncnn");
const NCNN_LIBRARY: Engine = Engine::new("ncnn-library", "ncnn_library.py", "ncnn");
const OPENVINO: Engine = Engine::new("openvino", "openvino_python.py", "onnx");
const MNN: Engine = Engine::new("mnn", "mnn_python.py", "mnn");
const OPENCV: Engine = Engine::new("opencv", "opencv_python.py", "onnx");
const LLAMA: Engine = Engine::new("llama", "llama_python.py", "gguf");
const WHISPER: Engine = Engine::new("whisper", "whisper_python.py", "whisper");
const TRACT: Engine = Engine::new("tract", "tract_python.py", "onnx");

/// Checks the operators of a layer and phase: all of those that ran so often, by name.
fn assert_operators(traced: &Traced, tag: &str, runs: u64, each: &BTreeMap<&str, u64>) {
    let functions = traced.functions(tag);
    let expected: BTreeMap<&str, u64> = each.iter().map(|(&name, count)| (name, count * runs)).collect();
    // What ran less often was a part of loading, on a thread of its own.
    let often: BTreeMap<&str, u64> = functions.into_iter().filter(|&(_, count)| count >= runs).collect();
    assert_eq!(often, expected, "{tag}");
}

/// Returns how often each operator is in a run, from what the engine itself reports of one run.
fn per_run(report: &Printed) -> BTreeMap<&str, u64> {
    report.by(by_name).into_iter().map(|(name, all)| (name, all.len() as u64)).collect()
}

/// Checks ONNX Runtime's operators: the nodes of its optimised graph, which differs from the model's as the CPU does. The
/// ends of the model are in it as they were.
fn onnxruntime_operators(engine: Engine) -> Result<impl Fn(&Traced, u64) -> Result<()>> {
    let report = engine.report(Size::Tiny, 1)?;
    Ok(move |traced: &Traced, runs| {
        let each = per_run(&report);
        for name in ["flat3", "dense4", "prob5"] {
            assert_eq!(each.get(name), Some(&1), "{name}: {each:?}");
        }
        assert_operators(traced, "LC_PE", runs, &each);
        Ok(())
    })
}

#[test]
fn onnxruntime_by_its_c_interface() -> Result<()> {
    Expected::of(ONNXRUNTIME_C, "LR_PC", "LR_PC").check(|| onnxruntime_operators(ONNXRUNTIME))
}

#[test]
fn onnxruntime_by_python() -> Result<()> {
    // Its module makes arrays of the results: 25 to 55 µs a run.
    Expected { outside_us: 100, ..Expected::of(ONNXRUNTIME, "LR_PI", "LR_PI") }
        .check(|| onnxruntime_operators(ONNXRUNTIME))
}

#[test]
fn onnxruntime_of_2024_by_python() -> Result<()> {
    Expected { outside_us: 100, ..Expected::of(ONNXRUNTIME_OLD, "LR_PC", "LR_PC") }
        .check(|| onnxruntime_operators(ONNXRUNTIME_OLD))
}

/// Operators of the delegate for XNNPACK: those of the model but the cumulative sum, which it does not take.
const XNNPACK: [(&str, u64); 4] = [
    ("Convolution (NHWC, F32)", 2),
    ("Fully Connected (NC, F32)", 1),
    ("Max Pooling (NHWC, F32)", 1),
    ("Softmax (NC, F32)", 1),
];

/// Checks the operators of the interpreter: a part for the delegate, the cumulative sum, another part for the delegate.
fn litert_operators(delegate: &str, sum: &str) -> impl Fn(&Traced, u64) -> Result<()> {
    move |traced, runs| {
        assert_operators(traced, "LC_PE", runs, &[(delegate, 2), (sum, 1), ("xnn_invoke_runtime", 2)].into());
        let inside = traced.functions("LC_PCO");
        for (name, count) in XNNPACK {
            assert_eq!(inside.get(name), Some(&(count * runs)), "{name}: {inside:?}");
        }
        Ok(())
    }
}

#[test]
fn litert() -> Result<()> {
    Expected::of(LITERT, "LR_PI", "LR_PI").check(|| Ok(litert_operators("TfLiteXNNPackDelegate", "cumsum")))
}

#[test]
fn litert_with_compiled_models() -> Result<()> {
    let engine = Engine { mode: Some("compiled"), ..LITERT };
    Expected::of(engine, "LR_PC", "LR_PI").check(|| Ok(litert_operators("TfLiteXNNPackDelegate", "cumsum")))
}

#[test]
fn tflite_runtime() -> Result<()> {
    // The module's function for files calls the library's.
    let expected = Expected::of(TFLITE_RUNTIME, "LR_PI", "LR_PI");
    expected.check(|| Ok(litert_operators("TfLiteXNNPackDelegate", "CUMSUM")))
}

/// The layers of ncnn's model.
const NCNN_LAYERS: [&str; 6] = ["conv1", "half1", "conv2", "mean3", "dense4", "prob5"];

/// The wheel exports nothing of it: loads and runs are found by what their functions log.
#[test]
fn ncnn() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    if !NCNN.is_there()? {
        return Ok(());
    }
    for (size, runs) in [(Size::Tiny, RUNS), (Size::Large, LARGE_RUNS)] {
        let launched = NCNN.launched("op", size, runs)?;
        check_ncnn(&launched, runs)?;
        for layer in ["conv1", "conv2", "dense4"] {
            assert_eq!(launched.functions("LR_PC").get(layer), Some(&1), "{layer} is prepared once");
        }
    }
    check_ncnn(&NCNN.joined(Joins::AfterTheModel, "op", Size::Tiny, RUNS)?, RUNS)?;
    let model = NCNN.model(Size::Tiny)?;
    let at_level_run = NCNN.launched("run", Size::Tiny, RUNS)?;
    let seen = |tag| at_level_run.pid().map(|pid| at_level_run.snapshot.count(pid, tag));
    assert_eq!((seen("LR_PI")?, seen("LR_PC")?, seen("LR_PE")?, seen("LC_PE")?), (2, 1, RUNS, 0));
    let loaded = at_level_run.functions("LR_PI");
    for file in [".param", ".bin"].map(|ending| format!("{}{ending}", model.display())) {
        assert_eq!(loaded.get(file.as_str()), Some(&1), "{file}: {loaded:?}");
    }
    Ok(())
}

/// The library exports what loads and runs a model, with the files' names.
#[test]
fn ncnn_as_a_library() -> Result<()> {
    let expected = Expected { file: ".bin", ..Expected::of(NCNN_LIBRARY, "LR_PC", "LR_PC") };
    expected.check(|| {
        Ok(|traced: &Traced, runs| {
            // Its layers have their names elsewhere; their classes' names end in what the processor can do.
            let functions = traced.functions("LC_PE");
            for (class, each) in [("Convolution", 3), ("Reduction", 1), ("InnerProduct", 1), ("Softmax", 1)] {
                let of_class = functions.iter().filter(|(name, _)| name.starts_with(class));
                let count: u64 = of_class.map(|(_, count)| count).sum();
                assert_eq!(count, each * runs, "{class}: {functions:?}");
            }
            Ok(())
        })
    })
}

fn check_ncnn(traced: &Traced, runs: u64) -> Result<()> {
    assert_eq!(traced.snapshot.odd_marks(), [].into(), "{:?}", traced.snapshot.diagnostics);
    assert_eq!(traced.snapshot.count(traced.pid()?, "LR_PE"), runs, "runs");
    let functions = traced.functions("LC_PE");
    for layer in NCNN_LAYERS {
        assert_eq!(functions.get(layer), Some(&runs), "{layer}: {functions:?}");
    }
    let row = traced.snapshot.phase(traced.pid()?, "LC_PE").context("no layer was seen")?;
    // Layers beside those of the model are parts of them, or convert a blob between two of them.
    ensure!(row.count >= runs * NCNN_LAYERS.len() as u64, "not all layers are there: {row:?}");
    ensure!(row.total_ns <= traced.printed.loop_ns, "the layers take longer than the loop: {row:?}");
    Ok(())
}

/// Checks the operators of the CPU plugin: the nodes that it reports itself, around which is its part of a run.
fn openvino_operators() -> Result<impl Fn(&Traced, u64) -> Result<()>> {
    let report = OPENVINO.report(Size::Tiny, 1)?;
    Ok(move |traced: &Traced, runs| {
        let mut each = per_run(&report);
        for name in ["conv1/WithoutBiases", "pool1", "conv2/WithoutBiases", "mean3", "dense4"] {
            assert_eq!(each.get(name), Some(&1), "{name}: {each:?}");
        }
        each.insert("SyncInferRequest", 1);
        // On a fast CPU, a conversion between layouts takes less than the microsecond that the engine counts in.
        let functions = traced.functions("LC_PE");
        let untimed = report.untimed.iter().map(String::as_str).filter(|name| functions.contains_key(name));
        each.extend(untimed.map(|name| (name, 1)));
        assert_operators(traced, "LC_PE", runs, &each);
        Ok(())
    })
}

#[test]
fn openvino() -> Result<()> {
    // The larger model leaves less of Python in the caches: 90 to 190 µs a run.
    Expected { outside_us: 300, ..Expected::of(OPENVINO, "LR_PC", "LR_PI") }.check(openvino_operators)
}

/// The plugin is left to ITT, which reports the same nodes.
#[test]
fn openvino_by_its_own_tasks() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    if !OPENVINO.is_there()? {
        return Ok(());
    }
    let itt = Itt::build("itt-network.c")?;
    let collector = itt.library();
    let collector = collector.to_str().context("the path is text")?;
    let report = OPENVINO.report(Size::Tiny, 1)?;
    let traced = OPENVINO.launched_with(collector, "op", Size::Tiny, RUNS)?;
    assert_eq!(traced.snapshot.odd_marks(), [].into(), "{:?}", traced.snapshot.diagnostics);
    assert_eq!(traced.snapshot.count(traced.pid()?, "LR_PE"), RUNS);
    let functions = traced.functions("LC_PE");
    for (node, count) in per_run(&report) {
        assert_eq!(functions.get(node), Some(&(count * RUNS)), "{node}: {functions:?}");
    }
    assert_eq!(functions.get("SyncInferRequest"), None);
    Ok(())
}

#[test]
fn opencv() -> Result<()> {
    Expected::of(OPENCV, "LR_PI", "LR_PI").check(|| {
        let report = OPENCV.report(Size::Tiny, 1)?;
        Ok(move |traced: &Traced, runs| {
            assert_operators(traced, "LC_PE", runs, &per_run(&report));
            Ok(())
        })
    })
}

#[test]
fn mnn() -> Result<()> {
    // The file is read, and then what is in it: two sections of initialization, one of which knows the path.
    let expected = Expected::of(MNN, "LR_PP", "LR_PI");
    expected.check(|| {
        let report = MNN.report(Size::Tiny, 1)?;
        Ok(move |traced: &Traced, runs| {
            mnn_operators(&report, traced, runs);
            Ok(())
        })
    })
}

/// Checks how often operators of each type run.
fn mnn_operators(report: &Printed, traced: &Traced, runs: u64) {
    let mut reported = BTreeMap::new();
    for operator in &report.operators {
        *reported.entry(operator.kind.as_str()).or_insert(0) += runs;
    }
    let mut seen = BTreeMap::new();
    for (class, count) in traced.functions("LC_PE") {
        if let Some(kind) = mnn_type(class) {
            *seen.entry(kind).or_insert(0) += count;
        }
    }
    assert_eq!(seen, reported);
}

/// Returns the type of an operator by its class; `None` for parts of others and what is around all.
fn mnn_type(class: &str) -> Option<&str> {
    match class {
        "StrassenMatrixComputor" | "Pipeline::execute" => None,
        "CPUPool" => Some("Pooling"),
        "CPUUnary" => Some("UnaryOp"),
        class if class.contains("Convolution") => Some("Convolution"),
        class => Some(class.strip_prefix("CPU").unwrap_or(class)),
    }
}

#[test]
fn llama() -> Result<()> {
    // The server's clock runs from when it begins to fill a batch until it has chosen a token: about 30 µs more than the
    // batch, 70 at level `op`, where sampling is probed, and 80 with the larger model; twice that on slower machines.
    let expected = Expected { outside_us: 250, ..Expected::of(LLAMA, "LR_PI", "LR_PI") };
    expected.check(|| {
        Ok(|traced: &Traced, runs| {
            let functions = traced.functions("LC_PCO");
            assert_eq!(functions.get("embd"), Some(&runs), "{functions:?}");
            let batches = traced.functions("LR_PE");
            let named = batches.iter().filter(|(name, _)| tokens::stated_by(name.as_bytes()).is_some());
            assert_eq!(named.map(|(_, count)| count).sum::<u64>(), runs, "{batches:?}");
            // The four layers of the model.
            for layer in 0..4 {
                let name = format!("ffn_swiglu-{layer}");
                assert_eq!(functions.get(name.as_str()), Some(&runs), "{name}: {functions:?}");
            }
            Ok(())
        })
    })
}

#[test]
fn whisper() -> Result<()> {
    // The function that reads a model calls the one that makes no state for it.
    let expected = Expected::of(WHISPER, "LR_PI", "LR_PI");
    expected.check(|| {
        Ok(|traced: &Traced, runs| {
            // ggml numbers most operations on its own; this one is the result of the convolutions.
            let functions = traced.functions("LC_PCO");
            assert_eq!(functions.get("embd_conv"), Some(&runs), "{functions:?}");
            assert!(
                functions.len() > 50 && functions.values().all(|count| count % runs == 0),
                "{functions:?}"
            );
            Ok(())
        })
    })
}

#[test]
fn tract() -> Result<()> {
    Expected::of(TRACT, "LR_PI", "LR_PI").check(|| {
        // It has other names for types.
        let each = TRACT.report(Size::Tiny, 1)?.operators.len() as u64;
        Ok(move |traced: &Traced, runs| {
            let functions = traced.functions("LC_PE");
            assert_eq!(traced.snapshot.count(traced.pid()?, "LC_PE"), each * runs, "{functions:?}");
            assert_eq!(functions.get("OptMaxPool"), Some(&runs));
            Ok(())
        })
    })
}

/// Share of an operator's time in that of all, ‰, by name.
type Shares<'a> = BTreeMap<&'a str, u64>;

/// Shares may differ by so much, ‰: the runs are others, and a probe takes time as well.
const APART: u64 = 100;

fn shares<'a>(times: impl IntoIterator<Item = (&'a str, u64)>) -> Shares<'a> {
    let mut sums = BTreeMap::new();
    for (name, ns) in times {
        *sums.entry(name).or_insert(0) += ns;
    }
    let all = sums.values().sum::<u64>().max(1);
    sums.into_iter().map(|(name, ns)| (name, ns * 1000 / all)).collect()
}

/// Returns the time of an operator in a run, ns: the median, as first runs take longer; the mean where several have one name.
fn our_time(row: &FunctionRow) -> u64 {
    if row.count == LARGE_RUNS { row.p50_ns } else { row.total_ns / LARGE_RUNS }
}

/// Returns the time of an operator in a run by the engine, ns.
fn their_time(operators: &[&Operator]) -> u64 {
    let mut times: Vec<u64> = operators.iter().map(|operator| operator.ns).collect();
    times.sort_unstable();
    if times.len() as u64 == LARGE_RUNS {
        times[times.len() / 2]
    } else {
        times.iter().sum::<u64>() / LARGE_RUNS
    }
}

/// Checks that the engine and the profiler agree on where the time goes.
fn assert_agree(ours: &Shares<'_>, theirs: &Shares<'_>) {
    let both = format!("by the profiler {ours:?}, by the engine {theirs:?}");
    assert!(ours.keys().eq(theirs.keys()), "other operators: {both}");
    for (name, share) in theirs {
        assert!(ours[name].abs_diff(*share) <= APART, "{name}: {both}");
        // As to the order, those count that are clearly apart.
        for (other, _) in theirs.iter().filter(|(_, other)| **other + APART < *share) {
            assert!(ours[name] > ours[other], "{name} before {other}: {both}");
        }
    }
}

/// Compares the times of operators with those that the engine measures itself, in a run of its own: `name` is that of a
/// function in the engine's report, which is by `key`.
fn compare(engine: Engine, name: fn(&str) -> Option<&str>, key: fn(&Operator) -> &str) -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    if !engine.is_there()? {
        return Ok(());
    }
    let report = engine.report(Size::Large, LARGE_RUNS)?;
    let theirs = report.by(key);
    let traced = engine.launched("op", Size::Large, LARGE_RUNS)?;
    // What ran less often was a part of loading.
    let often = traced.rows("LC_PE").filter(|row| row.count >= LARGE_RUNS);
    let ours = shares(often.filter_map(|row| Some((name(&row.name)?, our_time(row)))));
    // Below the unit of the engine's report, as a conversion between layouts may be.
    let untimed = report.untimed.iter().map(String::as_str).filter(|name| ours.contains_key(name));
    let times = theirs.iter().map(|(name, all)| (*name, their_time(all)));
    assert_agree(&ours, &shares(times.chain(untimed.map(|name| (name, 0)))));
    Ok(())
}

fn by_name(operator: &Operator) -> &str {
    &operator.name
}

fn by_type(operator: &Operator) -> &str {
    &operator.kind
}

#[test]
fn onnxruntime_agrees_with_its_own_profile() -> Result<()> {
    compare(ONNXRUNTIME, |name| Some(name), by_name)
}

#[test]
fn openvino_agrees_with_its_own_counters() -> Result<()> {
    // It is around all of them.
    compare(OPENVINO, |name| (name != "SyncInferRequest").then_some(name), by_name)
}

#[test]
fn ncnn_agrees_with_the_times_of_its_layers_one_by_one() -> Result<()> {
    compare(NCNN, |name| NCNN_LAYERS.contains(&name).then_some(name), by_name)
}

#[test]
fn mnn_agrees_with_its_callbacks() -> Result<()> {
    compare(MNN, mnn_type, by_type)
}
