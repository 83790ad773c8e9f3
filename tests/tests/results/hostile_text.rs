//! Names with control sequences for the user's terminal: none is written unescaped, wherever names are shown.

use std::{
    ffi::OsString,
    fs,
    os::unix::ffi::OsStringExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use nntrace_tests::{
    child::{Child, Ended},
    live,
    profiler::Profiler,
    snapshot,
};
use tempfile::TempDir;

/// Control sequences that set a clipboard, ring, clear the screen, change the colour to red (by C1) and the direction
/// of writing, go back, and delete. The last byte is not text.
const ACTS: &[u8] = b"\x1b]52;c;ZXZpbA\x07\x1b[2J\xc2\x9b31m\xe2\x80\xae\r\x7f\x9b";
/// Text of [`ACTS`] as it is shown.
const SHOWN: &str = r"\x1b]52;c;ZXZpbA\x07\x1b[2J\u{9b}31m\u{202e}\r\x7f";

fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// Checks that no character except line ends affects a terminal.
#[track_caller]
fn check(about: &str, bytes: &[u8]) {
    let text = str::from_utf8(bytes).unwrap_or_else(|error| panic!("{about}: {error}"));
    let acts = |character: char| {
        (character.is_control() && character != '\n')
            || ('\u{202a}'..='\u{202e}').contains(&character)
            || ('\u{2066}'..='\u{2069}').contains(&character)
    };
    let bad = text.lines().find(|line| line.contains(acts));
    assert!(bad.is_none(), "{about}: {bad:?}");
}

/// Checks all output of a program, and returns it.
#[track_caller]
fn check_ended(about: &str, ended: &Ended) -> String {
    check(&format!("stdout of {about}"), &ended.stdout);
    check(&format!("stderr of {about}"), ended.stderr.as_bytes());
    ended.text() + &ended.stderr
}

/// Folder with hostile files in it.
struct Folder(TempDir);

impl Folder {
    fn new() -> Result<Self> {
        Ok(Self(tempfile::tempdir()?))
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: impl IntoIterator<Item = OsString>) -> Result<Ended> {
        Child::run(Profiler::new()?.command().args(arguments).current_dir(self.0.path()))
    }

    /// Checks every file of results, and returns their texts.
    fn check_results(&self) -> Result<String> {
        let mut all = String::new();
        for kind in ["json", "csv", "svg", "dot", "folded", "prom"] {
            let bytes = fs::read(self.path(format!("out.{kind}"))).context(kind)?;
            check(kind, &bytes);
            all += str::from_utf8(&bytes)?;
        }
        let snapshot = snapshot::read(&fs::read(self.path("out.json"))?)?;
        let exact = String::from_utf8_lossy(&join(&[b"run", ACTS])).into_owned();
        assert!(snapshot.functions.iter().any(|row| row.name == exact), "{:?}", snapshot.functions);
        let svg = fs::read_to_string(self.path("out.svg"))?;
        roxmltree::Document::parse(&svg)?;
        let mut rows = csv::ReaderBuilder::new().from_path(self.path("out.csv"))?;
        assert!(rows.records().all(|row| row.is_ok()));
        Ok(all)
    }
}

/// Returns a name followed by [`ACTS`].
fn hostile(text: &str) -> OsString {
    OsString::from_vec(join(&[text.as_bytes(), ACTS]))
}

/// Returns the same as text, where only text is accepted.
fn hostile_text(text: &str) -> OsString {
    OsString::from_vec(join(&[text.as_bytes(), &ACTS[..ACTS.len() - 1]]))
}

fn plain<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.map(OsString::from).into()
}

const OUTPUTS: [&str; 13] = [
    "--force",
    "-o",
    "out.json",
    "-o",
    "out.csv",
    "-o",
    "out.svg",
    "-o",
    "out.dot",
    "-o",
    "out.folded",
    "-o",
    "out.prom",
];

/// Returns a trace in which every text is hostile.
fn trace() -> Vec<u8> {
    let mut trace = Vec::new();
    let comm = join(&[b"nn", &ACTS[13..26]]);
    let mut line = |time: &str, event: &[u8]| {
        trace.extend_from_slice(b" ");
        trace.extend_from_slice(&comm);
        trace.extend_from_slice(b"-7     (    7) [000] d..1. ");
        trace.extend_from_slice(time.as_bytes());
        trace.extend_from_slice(b": ");
        trace.extend_from_slice(event);
        trace.push(b'\n');
    };
    let mark = |parts: &[&[u8]]| join(&[b"tracing_mark_write: ", &parts.concat()]);
    line("1.000000", b"cpu_idle: state=0 cpu_id=0");
    line("1.050000", b"cpu_idle: state=4294967295 cpu_id=0");
    line("1.100000", b"cpu_frequency: state=1000000 cpu_id=0");
    line(
        "1.150000",
        &join(&[
            b"sched_switch: prev_comm=",
            &comm[..],
            b" prev_pid=8 prev_prio=120 prev_state=S ==> next_comm=",
            &comm,
            b" next_pid=7 next_prio=120",
        ]),
    );
    line(
        "1.200000",
        &mark(&[b"B|7|[NN_LR_PE]run", ACTS, b"#iter=1#acct=who", &ACTS[..23], b"#img=i", &ACTS[..23]]),
    );
    line("1.250000", &mark(&[b"B|7|[NN_LD_PE]", ACTS, b"inner"]));
    line("1.260000", &mark(&[b"B|7|[NN_XX_YY]", ACTS]));
    line("1.270000", &mark(&[b"E|7"]));
    line("1.300000", &mark(&[b"C|7|count", ACTS, b"|5"]));
    line("1.310000", &mark(&[b"S|7|track", ACTS, b"|1"]));
    line("1.320000", &mark(&[b"F|7|track", ACTS, b"|1"]));
    line("1.350000", &mark(&[b"E|7"]));
    line("1.400000", &mark(&[b"E|7"]));
    line("1.410000", &mark(&[b"E|7", ACTS]));
    line("1.420000", &mark(&[b"B|7|[NN_LA_PO]case", ACTS]));
    line("1.500000", &mark(&[b"E|7"]));
    line("1.600000", &join(&[b"cpu_idle: state=", ACTS]));
    trace.extend_from_slice(ACTS);
    trace.push(b'\n');
    trace
}

#[test]
fn a_file_cannot_write_into_the_terminal() -> Result<()> {
    let folder = Folder::new()?;
    let name = hostile("trace");
    fs::write(folder.path(&name), trace())?;
    let run_name = hostile("run");
    let text_name = hostile_text("run");
    let cluster = OsString::from_vec(join(&[b"big", &ACTS[..23], b"=0"]));
    let mut shown = Vec::new();
    for options in [
        vec![],
        plain(["--detail", "--table", "summary", "--timeline", "--missing"]),
        [plain(["--cluster"]), vec![cluster.clone()], plain(["--table", "summary", "--timeline"])].concat(),
        [plain(["--cluster"]), vec![cluster.clone()], plain(["--table", "idle"])].concat(),
        [plain(["--cluster"]), vec![cluster.clone()], plain(["--table", "freq", "--format", "csv"])].concat(),
        plain(["--table", "cluster"]),
        plain(["--table", "nnapi", "--detail"]),
        plain(["--table", "iterations", "--by", "img"]),
        [plain(["--table", "iterations", "--iteration-root"]), vec![text_name.clone()]].concat(),
        [plain(["--explain"]), vec![text_name.clone()], plain(["--missing", "--max-missing", "0"])].concat(),
        plain(["--json"]),
        [plain(["--cluster"]), vec![cluster.clone()], plain(OUTPUTS)].concat(),
        [plain(["--table", "idle", "--baseline"]), vec![name.clone()]].concat(),
        plain(["--table", "idle", "--baseline", "out.json"]),
    ] {
        let words = [plain(["replay"]), vec![name.clone()], options].concat();
        let ended = folder.run(words.clone())?;
        let about = format!("{words:?}");
        shown.push((about.clone(), check_ended(&about, &ended)));
        assert!(matches!(ended.code(), Some(0 | 3)), "{about}: {}", ended.stderr);
    }
    for options in [plain([]), plain(["--tree"])] {
        let words = [plain(["print"]), vec![name.clone()], options].concat();
        let ended = folder.run(words)?.expect_code(0)?;
        let text = check_ended("print", &ended);
        assert!(text.contains(&format!("run{SHOWN}")) && text.contains(r"account who\x1b"), "{text}");
    }
    let words =
        [plain(["diff"]), vec![name.clone()], plain(["out.json", "--all", "-o", "d.md", "-o", "d.xml"])]
            .concat();
    let ended = folder.run(words)?.expect_code(0)?;
    let text = check_ended("diff", &ended);
    assert!(text.contains(r":run\x1b]52"), "{text}");
    for file in ["d.md", "d.xml"] {
        check(file, &fs::read(folder.path(file))?);
    }
    roxmltree::Document::parse(&fs::read_to_string(folder.path("d.xml"))?)?;
    let results = folder.check_results()?;
    assert!(results.contains(r"run\\x1b]52"), "the graph has the name, as its language has it");
    assert!(results.contains(r"big\x1b]52"), "the picture and the tables have the cluster's");
    // The checked texts were there.
    for (options, part) in
        [("--detail", SHOWN), ("nnapi", r"B|7|[NN_LA_PO]case\x1b]52"), ("--by", r"run\x1b]52")]
    {
        let (about, text) = shown.iter().find(|(about, _)| about.contains(options)).context("no such run")?;
        assert!(text.contains(part), "{about}: {text}");
    }

    // Errors also contain names.
    let errors: Vec<Vec<OsString>> = vec![
        [plain(["replay"]), vec![hostile("none")]].concat(),
        [plain(["print"]), vec![hostile("none")]].concat(),
        [plain(["replay"]), vec![name.clone()], plain(["-o"]), vec![hostile_text("none")]].concat(),
        [plain(["replay"]), vec![name.clone(), OsString::from_vec(join(&[b"--json=", ACTS, b"/none"]))]]
            .concat(),
        [plain(["replay"]), vec![name.clone()], plain(["--cluster"]), vec![hostile_text("none")]].concat(),
        [plain(["replay"]), vec![name.clone()], plain(["--time-range"]), vec![hostile_text("1")]].concat(),
        [plain(["replay"]), vec![name], plain(["--topology"]), vec![hostile("none")]].concat(),
        [plain(["topology"]), vec![hostile("none/none")]].concat(),
        vec![run_name],
    ];
    for words in errors {
        let about = format!("{words:?}");
        let ended = folder.run(words)?;
        assert!(matches!(ended.code(), Some(1 | 2)), "{about}: {:?}", ended.status);
        assert!(!check_ended(&about, &ended).is_empty());
    }
    Ok(())
}

#[test]
fn what_describes_a_machine_cannot_either() -> Result<()> {
    let folder = Folder::new()?;
    fs::write(folder.path("trace"), trace())?;
    let name = r#""n\u001b]52;c;ZXZpbA\u0007\u001b[2J\u009b31m\u202e""#;
    let shown = r"n\x1b]52;c;ZXZpbA\x07\x1b[2J\u{9b}31m\u{202e}";
    let topology = format!(
        "[[cluster]]\nname = {name}\ncpus = \"0\"\n\n[[idle_states]]\ncpus = \"0\"\n\
         state = [{{ name = {name}, target_residency_us = 1, exit_latency_us = 1 }}]\n"
    );
    fs::write(folder.path("machine.toml"), topology)?;
    let model = format!(
        "unit = \"mW\"\n[[cluster]]\nname = {name}\ncpus = \"0\"\nopps = [{{ khz = 1_000_000, core = 5 }}]\n\
         idle = [{{ name = {name}, core = 1 }}]\n"
    );
    fs::write(folder.path("model.toml"), model)?;
    fs::write(folder.path("bad.toml"), format!("unit = {name}\n"))?;
    fs::write(folder.path("worse.toml"), join(&[b"unit = \"", ACTS]))?;

    let with = ["--topology", "machine.toml", "--energy-model", "model.toml"];
    for options in [
        &["--table", "summary", "--timeline"][..],
        &["--table", "idle"],
        &["--table", "idle", "--format", "csv"],
        &["--table", "freq"],
        &["--table", "cluster"],
        &["--table", "cluster", "--baseline", "trace"],
        &["--table", "cluster", "--baseline", "trace", "--format", "csv"],
        &OUTPUTS,
    ] {
        let words = ["replay", "trace"].iter().chain(&with).chain(options).map(OsString::from);
        let ended = folder.run(words)?.expect_code(0)?;
        let text = check_ended(&format!("{options:?}"), &ended);
        assert!(options.contains(&"out.dot") || text.contains(r"n\x1b]52"), "{options:?}: {text}");
    }
    let csv = folder.check_results()?;
    assert!(csv.contains(shown), "{csv}");
    let ended = folder.run(plain(["energy-model", "check", "model.toml"]))?.expect_code(0)?;
    assert!(check_ended("check", &ended).contains(shown));
    for (option, file) in [
        ("--energy-model", "bad.toml"),
        ("--energy-model", "worse.toml"),
        ("--topology", "bad.toml"),
        ("--topology", "worse.toml"),
    ] {
        let ended = folder.run(plain(["replay", "trace", option, file]))?.expect_code(2)?;
        check_ended(file, &ended);
    }
    Ok(())
}

#[test]
fn a_program_under_test_cannot_write_into_the_terminal() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = Folder::new()?;
    // The kernel takes the name of a program from its file's: at most 15 bytes.
    let program = OsString::from_vec(b"p\x1b[2J\n\x07\xc2\x9bm\x9b".to_vec());
    // Copied by a process of its own: a child that another test forks meanwhile would have the file open for writing.
    let mut copy = Command::new("cp");
    Child::run(copy.arg(env!("CARGO_BIN_EXE_mark-raw")).arg(folder.path(&program)))?.expect_code(0)?;
    let name = join(&[b"B|1|[NN_LR_PE]run", ACTS]);
    let marks = [
        join(&[&name, b"#iter=1#acct=who", &ACTS[..23]]),
        join(&[b"B|1|[NN_LD_PE]\nsecond line", ACTS]),
        b"E|1".to_vec(),
        join(&[b"C|1|count", ACTS, b"|5"]),
        join(&[b"E|1|", ACTS]),
        join(&[b"E|1|", ACTS]),
        join(&[b"B|1|[NN_LA_PO]case", ACTS]),
        b"E|1".to_vec(),
    ];
    let command = || {
        let program = folder.path(&program).into_os_string();
        [plain(["--"]), vec![program], marks.iter().cloned().map(OsString::from_vec).collect()].concat()
    };
    for options in [
        &["--interval", "20ms"][..],
        &["--table", "summary", "--detail", "--level", "sched"],
        &["--table", "nnapi", "--detail"],
        &["--table", "iterations", "--missing"],
        &["--json-lines"],
        &OUTPUTS,
    ] {
        let words = [options.iter().map(OsString::from).collect::<Vec<_>>(), command()].concat();
        let ended = folder.run(words)?.expect_code(0)?;
        let text = check_ended(&format!("{options:?}"), &ended);
        let part = match options {
            ["--interval", ..] | ["--table", "summary", ..] => r"p\x1b[2J\n\x07\u{9b}m",
            ["--table", "nnapi", ..] => r"case\x1b]52",
            ["--table", "iterations", ..] => r"run\x1b]52",
            ["--json-lines"] => r"\u001b]52",
            _ => "",
        };
        assert!(text.contains(part), "{options:?}: {text}");
    }
    assert!(folder.check_results()?.contains(r"run\\x1b]52"));
    // Nor by a command that does not exist.
    let ended = folder.run([plain(["--"]), vec![hostile("/none/")]].concat())?.expect_code(1)?;
    assert!(check_ended("no command", &ended).contains(r"\x1b]52"));
    let ended = folder.run([plain(["--duration", "10ms", "--comm"]), vec![hostile_text("none")]].concat())?;
    check_ended("no process", &ended);
    Ok(())
}

#[test]
fn a_reader_of_errors_that_went_away_is_no_panic() -> Result<()> {
    let folder = Folder::new()?;
    let script =
        "exec 2>&1; \"$0\" replay none 2>&1 >/dev/null | true; \"$0\" replay none 2>/dev/full; echo $?";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(nntrace_tests::binaries::profiler()?).current_dir(folder.0.path());
    let ended = Child::run(&mut command)?.expect_code(0)?;
    assert_eq!(ended.text(), "1\n");
    Ok(())
}
