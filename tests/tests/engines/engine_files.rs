//! Findings of the maps in the files of real engines, for both architectures, without running any: the virtual functions of
//! the classes are those that another reading of the files finds, and each probe is at an instruction as a disassembler
//! sees them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{disassembly, vtables::Classes, wheels};
use nntrace_user::live::engines::{EngineMaps, FoundEngine, PlannedProbe, Survey};

/// Bytes of a function at most that are passed before its probe.
const MOST_SKIPPED: u64 = 64;

/// Library of an engine.
struct File {
    /// Folder of the engine.
    engine: &'static str,
    /// Begin of the file's name.
    name: &'static str,
    /// Functions that a map has in it, at least.
    functions: usize,
    /// Virtual functions that a map has: class, its mangled name, slots, classes that it leaves out.
    classes: Option<(&'static str, &'static str, &'static [u64], &'static str)>,
}

const OPERATORS: Option<(&str, &str, &[u64], &str)> =
    Some(("onnxruntime::OpKernel", "N11onnxruntime8OpKernelE", &[2], "no class"));

const FILES: [File; 5] = [
    File { engine: "onnxruntime", name: "libonnxruntime.so", functions: 700, classes: OPERATORS },
    File { engine: "onnxruntime", name: "onnxruntime_pybind11_state", functions: 700, classes: OPERATORS },
    File {
        engine: "ncnn",
        name: "ncnn.",
        functions: 450,
        classes: Some(("ncnn::Layer", "N4ncnn5LayerE", &[2, 3, 4, 5, 6, 7, 8, 9], "Layer_final")),
    },
    File { engine: "mnn", name: "_mnncengine", functions: 130, classes: None },
    File {
        engine: "tflite-runtime",
        name: "_pywrap_tensorflow_interpreter_wrapper",
        functions: 15,
        classes: None,
    },
];

/// Libraries in Debian's packages for arm64.
const DEBIAN: [File; 2] = [
    File { engine: "opencv-dnn", name: "libopencv_dnn.so", functions: 20, classes: None },
    File { engine: "xnnpack", name: "libXNNPACK.so", functions: 1, classes: None },
];

#[test]
fn functions_in_libraries_for_this_machine() -> Result<()> {
    check_all(None, &FILES)
}

#[test]
fn functions_in_libraries_for_arm64() -> Result<()> {
    check_all(Some("arm64"), &FILES)
}

#[test]
fn functions_in_debian_packages_for_arm64() -> Result<()> {
    check_all(Some("arm64"), &DEBIAN)
}

/// Checks files in a folder of engines.
fn check_all(folder: Option<&str>, files: &[File]) -> Result<()> {
    let mut engines = wheels::folder()?;
    engines.extend(folder);
    for file in files {
        let folder = engines.join(file.engine);
        if let Some(path) = wheels::found(library(&folder, file.name)?, &folder.join(file.name))? {
            check(file, &path).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

/// Returns the file in a folder, or in one below it, whose name begins so.
fn library(folder: &Path, name: &str) -> Result<Option<PathBuf>> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let entry = entry?;
            let file = entry.file_name().to_string_lossy().into_owned();
            // Links lead to the same ones.
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if file.starts_with(name) && file.contains(".so") {
                return Ok(Some(entry.path()));
            }
        }
    }
    Ok(None)
}

fn check(file: &File, path: &Path) -> Result<()> {
    let mut survey = Survey::default();
    survey.file(path, &EngineMaps::default());
    ensure!(survey.failed.is_empty(), "{:?}", survey.failed);
    let of_engine = |found: &&FoundEngine| file.engine.starts_with(&found.engine) || found.engine == "litert";
    let engine = survey.engines.iter().find(of_engine).context("its engine is not found")?;
    ensure!(engine.probes.len() >= file.functions, "only {} functions are found", engine.probes.len());
    let classes = Classes::of(path)?;
    if let Some((class, mangled, slots, without)) = file.classes {
        check_classes(engine, &classes, (class, mangled), slots, without)?;
    }
    let all = survey.engines.iter().flat_map(|engine| &engine.probes);
    check_places(&all.collect::<Vec<_>>(), &classes, path)
}

/// Checks that the functions of classes are those that the other reading finds, all of them.
fn check_classes(
    engine: &FoundEngine,
    classes: &Classes,
    (class, mangled): (&str, &str),
    slots: &[u64],
    without: &str,
) -> Result<()> {
    let mut wanted = BTreeSet::new();
    for &slot in slots {
        let functions = classes.functions(mangled, slot);
        let own = functions.iter().find(|(name, _)| name == mangled).map(|(_, function)| *function);
        let others = functions.iter().filter(|(name, _)| name != mangled && !name.contains(without));
        wanted.extend(others.map(|(_, function)| *function).filter(|&function| Some(function) != own));
    }
    let begin = |probe: &PlannedProbe| -> Result<u64> {
        let entry = classes.address(probe.entry).context("it is not in the file")?;
        let function = wanted.range(..=entry).next_back().copied().filter(|it| entry - it <= MOST_SKIPPED);
        function.with_context(|| format!("no function of {class} begins before {entry:#x}"))
    };
    let mut probed = BTreeSet::new();
    let slot_of = |probe: &PlannedProbe| -> Option<u64> {
        probe.function.split("::slot ").nth(1)?.split(' ').next()?.parse().ok()
    };
    // Other classes of the engine have entries of their own.
    let line_of =
        |probe: &&PlannedProbe| probe.level == "op" && slot_of(probe).is_some_and(|it| slots.contains(&it));
    for probe in engine.probes.iter().filter(line_of) {
        ensure!(
            probed.insert(begin(probe).with_context(|| probe.function.clone())?),
            "{probe:?} is there twice"
        );
    }
    let left: Vec<&u64> = wanted.difference(&probed).collect();
    let said: usize = engine.notes.iter().filter_map(|note| not_probed(note)).sum();
    println!("{class}: {} functions, {} probed, {} said to be not", wanted.len(), probed.len(), said);
    ensure!(left.len() <= said, "{} functions are missing, of which {said} are noted: {left:x?}", left.len());
    Ok(())
}

/// Returns the number of functions of which a note says that they are not probed.
fn not_probed(note: &str) -> Option<usize> {
    let (_, said) = note.split_once("not probed: ")?;
    let others = said.split(" and ").filter_map(|part| part.split_once(" others"));
    let others = others.filter_map(|(number, _)| number.parse::<usize>().ok()).sum::<usize>();
    Some(said.split("::slot ").count() - 1 + others)
}

/// Checks that each probe is at an instruction, and those at the ends at ones that leave the function.
fn check_places(probes: &[&PlannedProbe], classes: &Classes, path: &Path) -> Result<()> {
    let address =
        |offset: u64| classes.address(offset).with_context(|| format!("{offset:#x} is in no segment"));
    let mut places: BTreeMap<u64, bool> = BTreeMap::new();
    for probe in probes {
        places.insert(address(probe.entry)?, false);
        for &offset in &probe.returns {
            places.insert(address(offset)?, true);
        }
    }
    let addresses: Vec<u64> = places.keys().copied().collect();
    let instructions = disassembly::instructions(path, &addresses)?;
    println!("{}: {} functions, {} places", path.display(), probes.len(), places.len());
    let mut wrong = Vec::new();
    for (address, is_end) in places {
        let Some(instruction) = instructions.get(&address) else {
            wrong.push(format!("no instruction begins at {address:#x}"));
            continue;
        };
        // A jump is as good as a return where it leads to what releases memory.
        let leaves = |word: &str| ["ret", "retq", "jmp", "b"].contains(&word);
        let mut words =
            instruction.split_whitespace().skip_while(|word| ["bnd", "rep", "repz"].contains(word));
        if is_end && !words.next().is_some_and(leaves) {
            wrong.push(format!("{instruction} at {address:#x} leaves no function"));
        }
    }
    ensure!(wrong.is_empty(), "{} places are wrong:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}
