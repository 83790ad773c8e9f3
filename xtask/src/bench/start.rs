//! Time from the start of the profiler to its first results.

use std::time::Instant;

use anyhow::{Result, ensure};

use crate::{
    bench::{child::Running, pairs::compile, profiler::Profiler, table::Table},
    run::{command, target_dir},
};

/// Source of the program, from the workspace's root.
const SOURCE: &str = "xtask/src/bench/start.c";
/// Source of its libraries, with marks of their own.
const LIBRARY: &str = "tests/native/library.c";
/// Longest time until the first results, ms.
const GOAL: f64 = 300.0;

/// Measures with a program that has two libraries to search.
pub fn measure(rounds: u32) -> Result<Table> {
    let include = ["-I", "nntrace-common/include"];
    for name in ["libfirst.so", "libsecond.so"] {
        compile(LIBRARY, name, &[&include[..], &["-shared", "-fPIC"]].concat())?;
    }
    let folder = target_dir()?.join("bench").display().to_string();
    let search = [format!("-L{folder}"), format!("-Wl,-rpath,{folder}")];
    // It calls neither of them.
    let libraries = ["-Wl,--no-as-needed", "-lfirst", "-lsecond"];
    let program =
        compile(SOURCE, "start", &[&search.each_ref().map(String::as_str)[..], &libraries].concat())?;
    let mut program = Running::start(&mut command(program))?;
    let ready = program.line()?;
    ensure!(ready == "ready", "the program says `{ready}`: expected `ready`");
    let pid = program.pid().to_string();

    let mut times = Vec::new();
    for _ in 0..rounds {
        let begin = Instant::now();
        let (profiler, _) = Profiler::attach(&["--pid", &pid])?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
        profiler.end()?;
    }
    let mut table = Table::new("start");
    table.row("time to the first results, ms", &times).at_most(GOAL);
    table.note("from the start of the process to the first line of --json-lines, with everything in place");
    table.note("the target has two libraries with marks, which are searched as its program is");
    Ok(table)
}
