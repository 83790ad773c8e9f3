//! Files that become others while a command runs, as in a loop of building and testing: each content is examined, and none is
//! hooked by what is known of another one.

use std::{fs, path::Path, process::Command};

use anyhow::{Result, ensure};
use nntrace_tests::{
    child::Child,
    hooked::{Hooked, operators},
    live, native,
    profiler::{Profiler, Run},
};
use nntrace_user::report::snapshot::Snapshot;

const ROUNDS: u64 = 50;

/// Builds a library without an engine, and a program that loads a library and unloads it.
fn build_plain(engine: &Hooked) -> Result<()> {
    let compile = |text: &str, flags: &[&str], name: &str| -> Result<()> {
        let source = engine.at(name).with_extension("c");
        fs::write(&source, text)?;
        native::compile(&[&["cc"], flags].concat(), &[&source], &engine.at(name))
    };
    compile("int plain(void) { return 1; }\n", &["-shared", "-fPIC"], "plain.so")?;
    let opens = "#include <dlfcn.h>\nint main(int argc, char **argv) { void *library = dlopen(argv[argc - 1], RTLD_NOW); \
                 return library == 0 || dlclose(library); }\n";
    compile(opens, &["-ldl"], "opens")
}

/// Profiles a script in the folder of the engine; returns the snapshot, and what the script printed.
fn profile(engine: &Hooked, script: &str) -> Result<(Snapshot, String)> {
    let map = engine.at("engine.toml");
    let folder = map.parent().unwrap_or(Path::new("/"));
    let script = format!("set -e; cd {}; {script}", folder.display());
    let profiler = Profiler::new()?.args(["--map".as_ref(), map.as_path()]);
    let Run { snapshot, ended } = profiler.launch(["sh", "-c", &script])?;
    let text = ended.expect_code(0)?.text();
    Ok((snapshot, text))
}

#[test]
fn a_library_that_becomes_an_engine_is_examined_again() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    for (way, write) in [
        ("written over", "cat engine.so > libengine.so"),
        ("removed and made again", "rm libengine.so; cp engine.so libengine.so"),
        ("replaced", "cp engine.so aside; mv aside libengine.so"),
    ] {
        let engine = Hooked::build()?;
        build_plain(&engine)?;
        let script = format!(
            "mv libengine.so engine.so; cp plain.so libengine.so; ./opens ./libengine.so; {write}; ./loads counts {ROUNDS}"
        );
        let (snapshot, _) = profile(&engine, &script)?;
        let runs = snapshot.functions.iter().find(|row| row.name == "run").map_or(0, |row| row.count);
        ensure!(
            operators(&snapshot) == 3 * ROUNDS && runs == ROUNDS,
            "{way}: {} operators and {runs} runs: {:?}",
            operators(&snapshot),
            snapshot.notes
        );
    }
    Ok(())
}

/// Loads an engine that stays, puts another file at its path, and then loads and unloads 70 copies of it: each calls three operators.
const LOADS_MANY: &str = r#"
import ctypes, _ctypes, os

def use(path):
    library = ctypes.CDLL(path)
    library.hooked_make.restype = ctypes.c_void_p
    library.hooked_run.restype = ctypes.c_int64
    made = [library.hooked_make(kind, name) for kind, name in [(0, b"first sum"), (0, b"second sum"), (1, b"product")]]
    library.hooked_run((ctypes.c_void_p * 3)(*made), ctypes.c_int64(3), ctypes.c_int64(1))
    return library

stays = use("./libengine.so")
os.system("cp engine.so aside; mv aside libengine.so")
for number in range(70):
    os.system(f"cp engine.so copy-{number}.so")
    _ctypes.dlclose(use(f"./copy-{number}.so")._handle)
"#;

#[test]
fn engines_that_come_and_go_are_all_hooked_though_a_file_was_replaced() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let engine = Hooked::build()?;
    fs::copy(engine.at("libengine.so"), engine.at("engine.so"))?;
    fs::write(engine.at("loads.py"), LOADS_MANY)?;
    // As a child: the command itself is stopped while what it has loaded is examined.
    let (snapshot, _) = profile(&engine, "python3 loads.py; true")?;
    ensure!(operators(&snapshot) == 3 * 71, "{}: {:?}", operators(&snapshot), snapshot.notes);
    Ok(())
}

#[test]
fn an_engine_that_is_written_over_is_not_hooked_by_the_plan_for_what_it_was() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let engine = Hooked::build()?;
    let source = native::source("hooked").join("engine.cc");
    let flags =
        ["c++", "-std=c++17", "-O0", "-fPIC", "-shared", "-fvisibility=hidden", "-s", "-Wno-pedantic"];
    native::compile(&flags, &[&source], &engine.at("other.so"))?;
    fs::copy(engine.at("libengine.so"), engine.at("engine.so"))?;
    // No program that runs at once meets a probe on what it was.
    let script = format!(
        "./linked counts {ROUNDS}; cat other.so > libengine.so; \
         for round in 1 2 3; do ./linked counts {ROUNDS}; ./linked results 20; ./linked throws 20; done"
    );
    let plain = format!("cd {}; {script}", engine.at("").display());
    let plain = Child::run(Command::new("sh").args(["-c", &plain]))?.expect_code(0)?.text();
    for _ in 0..5 {
        fs::copy(engine.at("engine.so"), engine.at("libengine.so"))?;
        let (snapshot, printed) = profile(&engine, &script)?;
        ensure!(printed == plain, "{printed}, and without a profiler {plain}");
        ensure!(operators(&snapshot) == 3 * ROUNDS, "{}: {:?}", operators(&snapshot), snapshot.notes);
        check_note(&snapshot)?;
    }
    Ok(())
}

/// Checks that it is said that the probes on the engine are gone.
fn check_note(snapshot: &Snapshot) -> Result<()> {
    let is_said = |note: &String| note.contains("libengine.so was opened for writing while it was probed");
    ensure!(snapshot.notes.iter().any(is_said), "{:?}", snapshot.notes);
    Ok(())
}
