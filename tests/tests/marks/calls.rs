//! Calls of functions, recorded with their arguments and results: those of `tests/native/calls`, whose values are known.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{
    child::{Child, Ended},
    live, native,
    profiler::Profiler,
};
use serde_json::Value;
use tempfile::TempDir;

/// Built library and program, and recordings of it.
struct Calls {
    folder: TempDir,
}

/// Calls of a recording.
struct Recorded {
    /// As text, without times and threads.
    lines: Vec<String>,
    /// As JSON.
    rows: Vec<Value>,
    /// Remarks of `nntrace-bpf calls`.
    notes: String,
}

impl Calls {
    fn build() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let source = |name: &str| native::source("calls").join(name);
        let library = folder.path().join("libcalls.so");
        let flags = ["c++", "-std=c++11", "-O2", "-fPIC", "-shared", "-Wl,-soname,libcalls.so.1"];
        native::compile(&flags, &[&source("library.cc")], &library)?;
        // Its file has another name than its soname.
        std::os::unix::fs::symlink("libcalls.so", folder.path().join("libcalls.so.1"))?;
        let search = format!("-L{}", folder.path().display());
        let program = ["c++", "-std=c++11", "-O2", &search, "-lcalls", "-Wl,-rpath,$ORIGIN"];
        native::compile(&program, &[&source("program.cc")], &folder.path().join("program"))?;
        Ok(Self { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the program on a way, recorded.
    fn run(&self, calls: &[&str], way: &[&str]) -> Result<Ended> {
        let mut words = vec![self.path("program")];
        words.extend(way.iter().map(PathBuf::from));
        self.record(calls, &[], &words)?.expect_code(0)
    }

    fn record(&self, calls: &[&str], options: &[&str], words: &[PathBuf]) -> Result<Ended> {
        let mut profiler = Profiler::new()?
            .args(["record", "--force", "--marks", "none", "--json=/dev/null", "-o"])
            .args([self.path("recording")])
            .args(options);
        for call in calls {
            profiler = profiler.args(["--call", call]);
        }
        Child::run(profiler.args(["--"]).args(words).command())
    }

    /// Reads the calls of the last recording.
    fn calls(&self) -> Result<Recorded> {
        let show = |options: &[&str]| -> Result<Ended> {
            let folder = self.path("recording");
            Child::run(Profiler::new()?.args(["calls"]).args([folder]).args(options).command())?
                .expect_code(0)
        };
        let (text, json) = (show(&[])?, show(&["--json"])?);
        let lines = text.text().lines().map(call_of).collect::<Result<Vec<_>>>()?;
        let rows = json.text().lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
        ensure!(lines.len() == rows.len(), "{} lines, {} rows", lines.len(), rows.len());
        Ok(Recorded { lines, rows, notes: text.stderr })
    }

    fn recorded(&self, calls: &[&str], way: &[&str]) -> Result<Recorded> {
        self.run(calls, way)?;
        let recorded = self.calls()?;
        // Begins are in order, and no call ends before it begins.
        let times = |key: &str| recorded.rows.iter().map(|row| row[key].as_u64()).collect::<Option<Vec<_>>>();
        let (begins, ends) = times("begin_ns").zip(times("end_ns")).context("a call without times")?;
        ensure!(begins.is_sorted() && begins.iter().zip(&ends).all(|(begin, end)| begin <= end));
        Ok(recorded)
    }
}

/// Returns the part of a line from the function on.
fn call_of(line: &str) -> Result<String> {
    let at = ["libcalls.so:", "program:", "constants:"].iter().find_map(|file| line.find(file));
    Ok(line[at.with_context(|| line.to_owned())?..].to_owned())
}

fn lines(prefix: &str, calls: &[&str]) -> Vec<String> {
    calls.iter().map(|call| format!("{prefix}{call}")).collect()
}

#[test]
fn integers_have_their_width_and_sign() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let calls = Calls::build()?;
    let kinds = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "bool", "char"];
    let mut wanted: Vec<String> =
        kinds.iter().map(|kind| format!("libcalls.so:calls_{kind}(u64)->{kind}")).collect();
    // By its soname, with names, and more arguments than there are registers.
    let sum = "libcalls.so.1:calls_sum(a:i8,b:u8,c:i16,u16,i32,u32,i64,u64,i32,j:i8)->i64";
    wanted.extend(
        [sum, "libcalls.so:shapes::area(int, int)(i32,i32)->i32", ":main(count:i32,_)->i32"]
            .map(str::to_owned),
    );
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let recorded = calls.recorded(&wanted, &["integers"])?;
    let mut expected = vec!["program:main(count=2, _) = 0".to_owned()];
    expected.extend(lines("libcalls.so:", &[
        "calls_sum(a=-1, b=255, c=-300, 65535, -70000, 4000000000, -9223372036854775808, 18446744073709551615, -9, \
         j=-10) = -9223372032854780339",
        "calls_sum(a=127, b=0, c=32767, 1, 2147400000, 2, 9000000000000000000, 3, 4, j=5) = 9000000002147432909",
        "calls_i8(9332165983064197000) = -120",
        "calls_u8(9332165983064197000) = 136",
        "calls_i16(9332165983064197000) = -30840",
        "calls_u16(9332165983064197000) = 34696",
        "calls_i32(9332165983064197000) = -2054781048",
        "calls_u32(9332165983064197000) = 2240186248",
        "calls_i64(9332165983064197000) = -9114578090645354616",
        "calls_u64(9332165983064197000) = 9332165983064197000",
        "calls_bool(9332165983064197000) = true",
        "calls_bool(0) = false",
        "calls_char(107) = 'k'",
        "shapes::area(int, int)(6, 7) = 42",
    ]));
    assert_eq!(recorded.lines, expected, "{}", recorded.notes);
    Ok(())
}

#[test]
fn texts_are_whole_up_to_their_limit_and_marked_beyond() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let calls = Calls::build()?;
    // A text at the end of a page and at the begin of the next one.
    let file = calls.path("texts");
    fs::write(&file, [vec![b'.'; 4096 - 3], b"borders".to_vec(), vec![0; 4096 - 4]].concat())?;
    let wanted = [
        "libcalls.so:calls_text(str)->u64",
        "libcalls.so:calls_echo(str)->str",
        "libcalls.so:calls_three(str,str,str)->void",
    ];
    let file = file.to_str().context("the path is text")?;
    let recorded = calls.recorded(&wanted, &["texts", file])?;
    let text = |length: usize| "a".repeat(length);
    let long = "b".repeat(512);
    let untouched = if live::waits_for_pages()? { "\"borders\"" } else { "<unreadable>" };
    let expected = [
        "calls_text(\"\") = 1".to_owned(),
        "calls_text(\"a\") = 2".to_owned(),
        format!("calls_text(\"{}\") = 512", text(511)),
        format!("calls_text(\"{}\") = 513", text(512)),
        format!("calls_text(\"{}\"...) = 613", text(512)),
        r#"calls_echo("café \xff\x01\"\\") = "café \xff\x01\"\\""#.to_owned(),
        format!("calls_three(\"{long}\"..., \"{long}\"..., \"\"...)"),
        "calls_text(null) = 0".to_owned(),
        "calls_text(<unreadable>) = 0".to_owned(),
        format!("calls_text({untouched}) = 8"),
    ];
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    assert_eq!(recorded.lines, lines("libcalls.so:", &expected), "{}", recorded.notes);
    let argument = |row: usize| recorded.rows[row]["arguments"][0].clone();
    assert_eq!(argument(3)["truncated"], Value::Null);
    assert_eq!(argument(4)["truncated"], Value::Bool(true));
    assert_eq!(argument(5)["hex"], "636166c3a920ff01225c");
    Ok(())
}

#[test]
fn memory_is_read_before_the_call_and_what_is_written_after_it() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let calls = Calls::build()?;
    let wanted = [
        "libcalls.so:calls_point(point:bytes[16])->*i32",
        "libcalls.so:shapes::area(Point const*)(*i32)->i32",
        "libcalls.so:calls_fill(to:out:bytes[arg2],i32,u8)->i32",
        "libcalls.so:calls_scale(*f64,out:*f32)->void",
        "libcalls.so:calls_ninth(_f64,_f64,_f64,_f64,_f64,_f64,_f64,_f64,f64)->void",
    ];
    let recorded = calls.recorded(&wanted, &["memory"])?;
    let block = |length: usize| vec!["ab"; length].join(" ");
    let expected = [
        "calls_point(point=[01 00 00 00 fe ff ff ff 00 00 00 00 00 00 e0 3f]) = 1".to_owned(),
        "calls_point(point=null) = null".to_owned(),
        "shapes::area(Point const*)(1) = -2".to_owned(),
        "calls_fill(out:to=[], 0, 171) = 0".to_owned(),
        "calls_fill(out:to=[ab], 1, 171) = 0".to_owned(),
        "calls_fill(out:to=[ab ab ab ab], 4, 171) = 2".to_owned(),
        "calls_fill(out:to=[], -4, 171) = -2".to_owned(),
        format!("calls_fill(out:to=[{}], 512, 171) = 256", block(512)),
        format!("calls_fill(out:to=[{} ...], 600, 171) = 300", block(512)),
        "calls_scale(1.25, out:2.5)".to_owned(),
        "calls_ninth(_, _, _, _, _, _, _, _, 0.375)".to_owned(),
    ];
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    assert_eq!(recorded.lines, lines("libcalls.so:", &expected), "{}", recorded.notes);
    // As many bytes as the result says.
    let recorded = calls.recorded(&["libcalls.so:calls_fill(out:bytes[ret],_,_)->i32"], &["memory"])?;
    assert_eq!(recorded.lines[2], "libcalls.so:calls_fill(out:[ab ab], _, _) = 2");
    assert_eq!(recorded.lines[3], "libcalls.so:calls_fill(out:[], _, _) = -2");
    Ok(())
}

#[test]
fn calls_end_by_returns_jumps_exceptions_and_the_end_of_the_process() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let calls = Calls::build()?;
    let wanted = [
        "recurse(depth:i32)->i32",
        "tail(i32)->i32",
        "target(i32)->i32",
        "throw(i32)->void",
        "throw_through(i32)->void",
        "jump(i32)->void",
        "add(i32,i32)->i32",
        "exit(i32)->void",
    ]
    .map(|call| format!("libcalls.so:calls_{call}"));
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let recorded = calls.recorded(&wanted, &["ends"])?;
    let expected = [
        "calls_recurse(depth=3) = 18",
        "calls_recurse(depth=2) = 5",
        "calls_recurse(depth=1) = 1",
        "calls_recurse(depth=0) = 0",
        "calls_tail(4) = <ended by a jump to another function>",
        "calls_target(5) = 50",
        "calls_throw_through(5) = <left without a return>",
        "calls_throw(6) = <left without a return>",
        "calls_add(1, 1) = 2",
        "calls_jump(6) = <left without a return>",
        "calls_add(2, 2) = 4",
        "calls_exit(0) = <left without a return>",
    ];
    assert_eq!(recorded.lines, lines("libcalls.so:", &expected), "{}", recorded.notes);
    // What an exception has left ends where it is caught, before the handler calls anything.
    let time = |row: usize, key: &str| recorded.rows[row][key].as_u64().unwrap_or_default();
    assert!(time(7, "end_ns") <= time(8, "begin_ns") && time(6, "end_ns") <= time(8, "begin_ns"));
    // The outer calls of a recursion contain the inner ones.
    assert!((0..3).all(|row| time(row, "end_ns") >= time(row + 1, "end_ns")));
    Ok(())
}

#[test]
fn constants_among_the_instructions_stay_as_they_are() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let calls = Calls { folder: tempfile::tempdir()? };
    let program = calls.path("constants");
    native::compile(&["cc", "-O1", "-rdynamic"], &[&native::source("calls").join("constants.c")], &program)?;
    for function in ["over", "behind", "by_table"] {
        let call = format!("constants:{function}(u32)->u32");
        let ended = calls.record(&[&call], &[], std::slice::from_ref(&program))?.expect_code(0)?;
        ensure!(ended.text() == "wrong 0, as written\n", "{function}: {}", ended.text());
        let recorded = calls.calls()?;
        let with_result = |row: &&Value| !row["result"].is_null();
        let whole = recorded.rows.iter().filter(with_result).count();
        ensure!(
            recorded.rows.len() >= 1000 && whole == recorded.rows.len(),
            "{function}: {}",
            recorded.notes
        );
    }
    Ok(())
}

#[test]
fn recursion_that_is_too_deep_is_counted() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let calls = Calls::build()?;
    let recorded = calls.recorded(&["libcalls.so:calls_recurse(i32)->void"], &["deep"])?;
    let expected: Vec<String> =
        (4..=19).rev().map(|depth| format!("libcalls.so:calls_recurse({depth})")).collect();
    assert_eq!(recorded.lines, expected);
    let note = "4 of 20 calls are not recorded: their threads were in 16 recorded calls already";
    assert!(recorded.notes.contains(note), "{}", recorded.notes);
    Ok(())
}

#[test]
fn each_thread_has_calls_of_its_own() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let calls = Calls::build()?;
    let wanted =
        ["libcalls.so:calls_add(thread:i32,value:i32)->i32", "libcalls.so:calls_leave_thread(i32)->void"];
    let recorded = calls.recorded(&wanted, &["threads"])?;
    let mut threads: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for (row, line) in recorded.rows.iter().zip(&recorded.lines) {
        threads.entry(row["tid"].as_u64().context("a thread")?).or_default().push(line);
    }
    assert_eq!(threads.len(), 4);
    let mut found: Vec<Vec<&str>> = threads.into_values().collect();
    found.sort();
    for (lines, thread) in found.iter().zip([1000, 2000, 3000, 4000]) {
        let mut expected: Vec<String> = (0..200)
            .map(|value| {
                format!("libcalls.so:calls_add(thread={thread}, value={value}) = {}", thread + value)
            })
            .collect();
        expected.push(format!("libcalls.so:calls_leave_thread({thread}) = <left without a return>"));
        assert_eq!(*lines, expected);
    }
    Ok(())
}

#[test]
fn a_call_that_goes_on_after_the_recording_is_open() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let calls = Calls::build()?;
    let words = [calls.path("program"), "stay".into()];
    calls.record(&["libcalls.so:calls_stay(i32)->void"], &["--duration", "1s"], &words)?.expect_code(0)?;
    let recorded = calls.calls()?;
    assert_eq!(recorded.lines, ["libcalls.so:calls_stay(20) = <not ended>"], "{}", recorded.notes);
    assert_eq!(recorded.rows[0].get("end_ns"), None);
    // A replay makes nothing of calls.
    let replayed = Child::run(Profiler::new()?.args(["replay"]).args([calls.path("recording")]).command())?;
    replayed.expect_code(0)?;
    Ok(())
}

#[test]
fn what_is_not_there_is_told() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let calls = Calls::build()?;
    let wanted =
        ["libcalls.so:calls_none()->void", "libnone.so:f()->void", "libcalls.so:calls_add(i32,i32)->i32"];
    calls.run(&wanted, &["ends"])?;
    let Recorded { notes, lines, .. } = calls.calls()?;
    assert!(
        notes.contains("--call libcalls.so:calls_none()->void: the file has no function of this name"),
        "{notes}"
    );
    assert!(notes.contains("--call libnone.so:f()->void: no target maps libnone.so"), "{notes}");
    assert_eq!(lines.len(), 2);
    Ok(())
}

#[test]
fn numbers_in_vector_registers_are_refused_with_the_reason() -> Result<()> {
    let refused = |call: &str| -> Result<String> {
        let mut profiler = Profiler::new()?.args(["record", "-o", "nowhere", "--call", call, "--", "true"]);
        Ok(Child::run(profiler.command())?.expect_code(2)?.stderr)
    };
    let text = refused("libm.so.6:pow(f64,f64)->f64")?;
    assert!(text.contains("the kernel shows probes the general registers only"), "{text}");
    assert!(refused("libm.so.6")?.contains("LIB:SYMBOL(arguments)->result"));
    assert!(!Path::new("nowhere").exists());
    Ok(())
}

#[test]
fn a_recording_without_calls_says_how_to_record_some() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let calls = Calls::build()?;
    calls.record(&[], &[], &[calls.path("program")])?.expect_code(0)?;
    let mut profiler = Profiler::new()?.args(["calls"]).args([calls.path("recording")]);
    let ended = Child::run(profiler.command())?.expect_code(1)?;
    assert!(ended.stderr.contains("has no calls: record some with --call"), "{}", ended.stderr);
    Ok(())
}

#[test]
fn the_functions_of_a_running_process_are_probed_too() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let calls = Calls::build()?;
    let mut target = Command::new(calls.path("program"));
    let target = Child::start(target.args(["stay"]))?;
    // Only what begins from now on: the thread is inside already.
    let pid = target.pid().to_string();
    let mut profiler = Profiler::new()?
        .args([
            "record",
            "--force",
            "--marks",
            "none",
            "--json=/dev/null",
            "--duration",
            "500ms",
            "--pid",
            &pid,
            "-o",
        ])
        .args([calls.path("recording")])
        .args(["--call", "libcalls.so:calls_stay(i32)->void"]);
    Child::run(profiler.command())?.expect_code(0)?;
    let shown = Child::run(Profiler::new()?.args(["calls"]).args([calls.path("recording")]).command())?;
    assert_eq!(shown.expect_code(0)?.text(), "");
    Ok(())
}
