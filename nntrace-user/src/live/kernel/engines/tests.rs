use std::{ffi::CStr, fs};

use nntrace_common::{
    diagnostic::DiagnosticKind,
    engine::{self, Action, NameForm, NameRecipe},
    layer::{Layer, Phase, Tag},
    mark::{self, Label, Prefix},
    record::{Total, TotalKey},
};

use super::*;
use crate::{
    live::kernel::{KernelOptions, place_programs::Form},
    model::function_names::Names,
};

// A function of an engine, `call(object, inner)`, which calls `inner(object)`, and another one beside it.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".macro engine name",
    ".globl \\name, \\name\\()_return",
    ".type \\name, @function",
    "\\name: push rbp",
    "mov rbp, rsp",
    "call rsi",
    "pop rbp",
    "\\name\\()_return: ret",
    ".size \\name, . - \\name",
    ".endm",
    ".text",
    "engine nntrace_test_run",
    "engine nntrace_test_op",
    "engine nntrace_test_batch",
);
#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".macro engine name",
    ".globl \\name, \\name\\()_return",
    ".type \\name, @function",
    "\\name: stp x29, x30, [sp, -16]!",
    "mov x29, sp",
    "blr x1",
    "ldp x29, x30, [sp], 16",
    "\\name\\()_return: ret",
    ".size \\name, . - \\name",
    ".endm",
    ".text",
    "engine nntrace_test_run",
    "engine nntrace_test_op",
    "engine nntrace_test_batch",
);

type Inner = extern "C" fn(*const Model);

unsafe extern "C" {
    fn nntrace_test_run(object: *const Model, inner: Inner);
    fn nntrace_test_run_return();
    fn nntrace_test_op(object: *const Model, inner: Inner);
    fn nntrace_test_op_return();
    fn nntrace_test_batch(object: *const Model, inner: Inner, batch: Batch);
    fn nntrace_test_batch_return();
}

/// The program with these functions.
fn own_file() -> PinnedFile {
    PinnedFile::at(Path::new("/proc/self/exe")).expect("a program that runs")
}

/// Object whose name is found by its address.
#[repr(C)]
struct Model {
    class: u64,
    name: *const std::ffi::c_char,
    kind: u32,
}

/// Structure that is passed by value, and more than two words.
#[derive(Clone, Copy)]
#[repr(C)]
struct Batch {
    tokens: i32,
    others: [*const u64; 6],
}

extern "C" fn nothing(_: *const Model) {}

extern "C" fn two_operators(model: *const Model) {
    for _ in 0..2 {
        // SAFETY: it calls `nothing`, with a pointer that is not read.
        unsafe { nntrace_test_op(model, nothing) };
    }
}

/// Returns the offset of an address in the file of this program.
fn offset(address: usize) -> u64 {
    let maps = fs::read_to_string("/proc/self/maps").expect("the maps of this process");
    maps.lines()
        .find_map(|line| {
            let mut words = line.split_whitespace();
            let (start, end) = words.next()?.split_once('-')?;
            let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
            let from = u64::from_str_radix(words.nth(1)?, 16).ok()?;
            (start..end).contains(&address).then(|| from + (address - start) as u64)
        })
        .expect("the address is mapped from a file")
}

fn recipe(argument: u8, form: NameForm, offsets: &[u16]) -> NameRecipe {
    let mut recipe =
        NameRecipe { argument, form: form as u8, steps: offsets.len() as u8, ..NameRecipe::default() };
    recipe.offsets[..offsets.len()].copy_from_slice(offsets);
    recipe
}

fn probe(phase: Phase, layer: Layer, recipe: NameRecipe) -> EngineProbe {
    EngineProbe {
        name: mark::name_hash(b"Class".as_slice(), 0),
        label: Label::tagged(Tag::new(layer, phase)),
        prefix: Prefix::None,
        action: Action::Section,
        ends_unseen: 0,
        pushed: 0,
        recipe,
        begun_by: 0,
        object: 0,
        entry: 0,
    }
}

/// Profiles 50 runs of two operators each; returns totals by layer and phase, and the names.
fn profiled(is_multi: bool, returns: impl Fn(usize) -> ReturnPlaces) -> (Vec<(Tag, Total)>, Names) {
    let (mut kernel, _rings) = Kernel::load(KernelOptions::default()).expect("the programs load");
    if !is_multi {
        kernel.engines.programs.form = Some(Form::Single);
    }
    let values = [(7, mark::name_hash(b"SEVEN".as_slice(), 0))];
    let run = probe(Phase::Execution, Layer::Runtime, recipe(0, NameForm::CString, &[8]));
    let op = probe(Phase::Execution, Layer::CpuFallback, recipe(0, NameForm::Enum, &[16]));
    let run = kernel.add_engine_probe(run, []).expect("room for a probe");
    let op = kernel.add_engine_probe(op, values).expect("room for a probe");
    kernel.add_name(mark::name_hash(b"SEVEN".as_slice(), 0), b"SEVEN").expect("room for a name");
    let places = [
        ProbePlaces {
            number: run,
            entry: offset(nntrace_test_run as *const () as usize),
            returns: returns(nntrace_test_run_return as *const () as usize),
        },
        ProbePlaces {
            number: op,
            entry: offset(nntrace_test_op as *const () as usize),
            returns: returns(nntrace_test_op_return as *const () as usize),
        },
    ];
    let refused = kernel.attach_engine(&own_file(), &places).expect("the programs attach");
    assert_eq!(refused, []);
    assert_eq!(kernel.engine_probes(), 2);
    kernel.add_target(std::process::id()).expect("room for a target");
    let name: &CStr = c"models/tiny.onnx";
    let model = Model { class: 1, name: name.as_ptr(), kind: 7 };
    for _ in 0..50 {
        // SAFETY: it calls `two_operators`, with an object that lives longer.
        unsafe { nntrace_test_run(&raw const model, two_operators) };
    }
    assert_eq!(
        matches!(kernel.engines.programs.form, Some(Form::Multi(_))),
        is_multi,
        "this kernel has such links"
    );
    kernel.engines.detach(&mut kernel.object);
    let diagnostics = kernel.read_diagnostics().expect("diagnostics");
    let odd: Vec<(DiagnosticKind, u64)> =
        diagnostics.iter().map(|(kind, count)| (*kind, count.count)).collect();
    assert_eq!(odd, []);
    let mut names = Names::default();
    kernel.read_names(&mut names).expect("names");
    let mut paths = crate::model::stacks::Paths::default();
    kernel.read_paths(&mut paths).expect("paths");
    let totals = kernel.read_totals().expect("totals");
    let mut found: Vec<(Tag, Total)> = totals
        .iter()
        .map(|(key, total): (&TotalKey, &Total)| (paths.tag(key.path).expect("a known path"), *total))
        .collect();
    found.sort_by_key(|(tag, _)| tag.index());
    let counts = kernel.read_event_counts().expect("counts");
    assert_eq!(counts.marks, 50 * (2 + 2 * 2), "begins and ends");
    (found, names)
}

fn check(is_multi: bool, returns: impl Fn(usize) -> ReturnPlaces) {
    let (totals, names) = profiled(is_multi, returns);
    let counts: Vec<(String, u64)> =
        totals.iter().map(|(tag, total)| (tag.to_string(), total.count)).collect();
    assert_eq!(counts, [("LR_PE".to_owned(), 50), ("LC_PE".to_owned(), 100)]);
    let (run, op) = (&totals[0].1, &totals[1].1);
    assert_eq!(run.own, run.exclusive + op.own, "operators are inside of runs");
    for name in ["models/tiny.onnx", "SEVEN"] {
        assert!(names.contains(mark::name_hash(name.as_bytes(), 0)), "{name}");
    }
}

/// Returns how many calls for these objects had no name of their own, and whether the names are told to be constant.
fn unnamed(objects: &[Model]) -> (u64, bool) {
    let (mut kernel, _rings) = Kernel::load(KernelOptions::default()).expect("the programs load");
    let described = EngineProbe {
        entry: 3,
        ..probe(Phase::Execution, Layer::CpuFallback, recipe(0, NameForm::CString, &[8]))
    };
    let number = kernel.add_engine_probe(described, []).expect("room for a probe");
    let places = ProbePlaces {
        number,
        entry: offset(nntrace_test_op as *const () as usize),
        returns: ReturnPlaces::Instructions(vec![offset(nntrace_test_op_return as *const () as usize)]),
    };
    let refused = kernel.attach_engine(&own_file(), &[places]).expect("the programs attach");
    assert_eq!(refused, []);
    kernel.add_target(std::process::id()).expect("room for a target");
    for object in objects {
        // SAFETY: it calls `nothing`, with a pointer that is not read.
        unsafe { nntrace_test_op(object, nothing) };
    }
    kernel.engines.detach(&mut kernel.object);
    let counts = kernel.read_event_counts().expect("counts");
    assert_eq!(counts.calls, objects.len() as u64);
    (counts.unnamed, kernel.are_names_constant(3).expect("the table"))
}

/// Returns the names of batches: by a number at an offset in them or, with a size of its elements, by a vector there.
fn names_of_batches(batches: &[Batch], offsets: &[u16], element: u8) -> Vec<String> {
    let (mut kernel, _rings) = Kernel::load(KernelOptions::default()).expect("the programs load");
    let argument = if cfg!(target_arch = "x86_64") { engine::IN_MEMORY } else { 2 };
    let recipe = NameRecipe { element, ..recipe(argument, NameForm::Tokens, offsets) };
    let described = probe(Phase::Execution, Layer::Runtime, recipe);
    let number = kernel.add_engine_probe(described, []).expect("room for a probe");
    let places = ProbePlaces {
        number,
        entry: offset(nntrace_test_batch as *const () as usize),
        returns: ReturnPlaces::Instructions(vec![offset(nntrace_test_batch_return as *const () as usize)]),
    };
    let refused = kernel.attach_engine(&own_file(), &[places]).expect("the programs attach");
    assert_eq!(refused, []);
    kernel.add_target(std::process::id()).expect("room for a target");
    for &batch in batches {
        // SAFETY: it calls `nothing`, with a pointer that is not read.
        unsafe { nntrace_test_batch(std::ptr::null(), nothing, batch) };
    }
    kernel.engines.detach(&mut kernel.object);
    let mut names = Names::default();
    let found = kernel.read_names(&mut names).expect("names");
    let mut found: Vec<String> = found.into_iter().map(|name| names.text(name)).collect();
    found.sort();
    found
}

/// One test: the functions of this process are traced by whoever probes them.
#[test]
fn functions_are_sections_by_return_instructions_and_by_return_probes_in_either_form() {
    let instructions = |at| ReturnPlaces::Instructions(vec![offset(at)]);
    check(false, instructions);
    check(false, |_| ReturnPlaces::AfterReturn);
    check(true, instructions);
    check(true, |_| ReturnPlaces::AfterReturn);

    let most = ObjectNames::MOST_REPEATED as usize;
    let model = |name: &'static CStr| Model { class: 1, name: name.as_ptr(), kind: 7 };
    let mut objects: Vec<Model> = (0..most + 50).map(|_| model(c"float32")).collect();
    assert_eq!(unnamed(&objects), (50, true), "text that all objects have is not their name");
    objects[1] = model(c"conv1");
    assert_eq!(unnamed(&objects), (0, false), "two objects have different names");

    let values = [0_u64; 64];
    let batch = |tokens: i32, of_vector: usize| {
        let mut others = [values.as_ptr(); 6];
        others[4] = values[of_vector..].as_ptr();
        Batch { tokens, others }
    };
    let batches =
        [batch(1, 0), batch(512, 0), batch(9_999_999, 0), batch(0, 0), batch(-1, 0), batch(10_000_000, 0)];
    assert_eq!(names_of_batches(&batches, &[0], 0), ["1 token", "512 tokens", "9999999 tokens"]);
    // The fourth and the fifth pointer are a vector of pairs of words; one and a half pairs are none.
    let vectors = [batch(7, 2), batch(7, 3), batch(7, 40), batch(7, 0)];
    assert_eq!(names_of_batches(&vectors, &[32], 16), ["1 token", "20 tokens"]);
}
