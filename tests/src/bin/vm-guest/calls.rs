//! Calls of a library's functions with their arguments and results, which are passed by the rules of the architecture.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{child::Child, profiler::Profiler};

use crate::Outcome;

/// Program that calls the functions of `LIBRARY`.
const PROGRAM: &str = "/calls/program";
const LIBRARY: &str = "libcalls.so.1";
/// Recording of the program.
const RECORDING: &str = "/tmp/calls";

/// Records calls, and compares them with the ones that the program makes.
pub fn of_a_library() -> Result<Outcome> {
    let text = "/tmp/calls-text";
    fs::write(text, [0; 2 * 4096])?;
    check(
        &["integers"],
        &[
            "calls_sum(a:i8,u8,i16,u16,i32,u32,i64,u64,i32,j:i8)->i64",
            "calls_u16(u64)->u16",
            "calls_bool(u64)->bool",
        ],
        &[
            "calls_sum(a=-1, 255, -300, 65535, -70000, 4000000000, -9223372036854775808, 18446744073709551615, -9, \
             j=-10) = -9223372032854780339",
            "calls_sum(a=127, 0, 32767, 1, 2147400000, 2, 9000000000000000000, 3, 4, j=5) = 9000000002147432909",
            "calls_u16(9332165983064197000) = 34696",
            "calls_bool(9332165983064197000) = true",
            "calls_bool(0) = false",
        ],
    )?;
    check(
        &["texts", text],
        &["calls_echo(str)->str"],
        &[r#"calls_echo("café \xff\x01\"\\") = "café \xff\x01\"\\""#],
    )?;
    check(
        &["memory"],
        &[
            "calls_point(point:bytes[16])->*i32",
            "calls_scale(*f64,out:*f32)->void",
            "calls_ninth(_f64,_f64,_f64,_f64,_f64,_f64,_f64,_f64,f64)->void",
        ],
        &[
            "calls_point(point=[01 00 00 00 fe ff ff ff 00 00 00 00 00 00 e0 3f]) = 1",
            "calls_point(point=null) = null",
            "calls_scale(1.25, out:2.5)",
            "calls_ninth(_, _, _, _, _, _, _, _, 0.375)",
        ],
    )?;
    Ok(Outcome::Passed)
}

/// Runs the program on a way, and compares the calls of some functions.
fn check(way: &[&str], functions: &[&str], expected: &[&str]) -> Result<()> {
    let mut record = Profiler::new()?.args(["record", "--force", "--marks", "none", "-o", RECORDING]);
    for function in functions {
        record = record.args(["--call", &format!("{LIBRARY}:{function}")]);
    }
    Child::run(record.args(["--", PROGRAM]).args(way).command())?.expect_code(0)?;
    let shown = Child::run(Profiler::new()?.args(["calls", RECORDING]).command())?.expect_code(0)?;
    let text = shown.text();
    let call = |line: &'_ str| {
        let (_, call) = line.split_once(&format!("{LIBRARY}:")).with_context(|| line.to_owned())?;
        Ok(call.to_owned())
    };
    let found = text.lines().map(call).collect::<Result<Vec<String>>>()?;
    ensure!(found == expected, "calls on the way {way:?}: {found:?}; {}", shown.stderr);
    println!("calls: {} as they were made", found.len());
    Ok(())
}
