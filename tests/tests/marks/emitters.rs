//! Marks of `nntrace.h` and of the Rust guards: seen from attaching to detaching, and only then; with both ends, or
//! with none.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use nntrace_tests::{
    child::Child,
    live,
    native::Program,
    profiler::{Profiler, Run},
    results::Results as _,
    wait,
};
use nntrace_user::{
    live::{
        clock,
        target::{SymbolSpec, search_file},
    },
    report::snapshot::Snapshot,
};

/// Program that writes marks on request.
struct Commands {
    child: Child,
    answers: usize,
}

impl Commands {
    fn start(program: &Program) -> Result<Self> {
        Ok(Self { child: Child::start(&mut Command::new(program.path()))?, answers: 0 })
    }

    fn ask(&mut self, request: &str) -> Result<String> {
        self.child.send_line(request)?;
        self.answers += 1;
        self.child.lines(self.answers)?.pop().context("there is one answer at least")
    }

    /// Waits until the function's first bytes are, or are no longer, as they were assembled; returns them.
    fn wait_until_probed(&mut self, is_probed: bool) -> Result<String> {
        wait::until("the mark function to change", || {
            let code = self.ask("code")?;
            Ok(((code != UNPROBED) == is_probed).then_some(code))
        })
    }
}

/// First eight bytes of the function while it is not probed.
const UNPROBED: &str = if cfg!(target_arch = "aarch64") { "1f2003d5c0035fd6" } else { "0f1f44000090c3cc" };

/// Profiles 100 sections of a program that has run unprobed before, and leaves it running unprobed again.
fn hears_from_attach_to_detach(commands: &mut Commands, options: &[&str]) -> Result<String> {
    commands.wait_until_probed(false)?;
    assert_eq!(commands.ask("run 1000")?, "0", "nobody listens");
    assert_eq!(commands.ask("open")?, "0");
    let pid = commands.child.pid().to_string();
    let profiler = Profiler::new()?.args(["--pid", &pid]).args(options).attach()?;
    // The first call below hits the breakpoint; a second one may find the optimised call.
    let code = commands.wait_until_probed(true)?;
    assert_eq!(commands.ask("close")?, "0", "an end without its begin");
    assert_eq!(commands.ask("run 100")?, "100");
    let optimised = commands.ask("code")?;
    profiler.signal(Signal::SIGINT)?;
    let Run { snapshot, ended } = profiler.finish()?;
    ended.expect_code(0)?;
    let pid = commands.child.pid();
    assert_eq!(snapshot.counts(pid), [("LR_PE".to_owned(), 100)].into(), "{:?}", snapshot.diagnostics);
    assert_eq!(snapshot.odd_marks(), [].into());
    commands.wait_until_probed(false)?;
    assert_eq!(commands.ask("run 1000")?, "0", "nobody listens any more");
    println!("{options:?}: {code}, then {optimised}");
    Ok(optimised)
}

#[test]
fn a_running_program_is_heard_from_attach_to_detach() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let program = Program::build("commands.c")?;
    let mut commands = Commands::start(&program)?;
    for _ in 0..2 {
        let fast = hears_from_attach_to_detach(&mut commands, &["--fast-probes"])?;
        let safe = hears_from_attach_to_detach(&mut commands, &[])?;
        if cfg!(target_arch = "x86_64") {
            assert!(!fast.starts_with("0f") && fast.ends_with("90c3cc"), "on the nop of five bytes: {fast}");
            // Or the same one, where that is harmless.
            assert!(safe == "0f1f440000ccc3cc" || safe[..2] == fast[..2], "{safe}");
        }
    }
    Ok(())
}

/// Launches a command under the profiler, and checks that it has no odd marks.
fn launched(words: &[&str]) -> Result<(Snapshot, u32, String)> {
    let Run { snapshot, ended } = Profiler::new()?.launch(words)?;
    let text = ended.expect_code(0)?.text();
    let pids = snapshot.pids();
    ensure!(pids.len() == 1, "processes with results: {pids:?}");
    assert_eq!(snapshot.odd_marks(), [].into(), "{:?}", snapshot.diagnostics);
    Ok((snapshot, pids[0], text))
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("the program's name is text")
}

#[test]
fn an_exception_and_an_early_return_leave_no_section_open() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let program = Program::build("throws.cc")?;
    let (snapshot, pid, _) = launched(&[text(program.path())?])?;
    let counts = snapshot.counts(pid);
    let count = |tag: &str| counts.get(tag).copied().unwrap_or(0);
    assert_eq!([count("LA_PO"), count("LC_PTR"), count("LC_PCO")], [1, 4, 4], "{counts:?}");
    assert_eq!([count("LR_PP"), count("LR_PC")], [1, 6], "{counts:?}");
    Ok(())
}

#[test]
fn a_panic_a_question_mark_and_a_return_leave_no_section_open() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let (snapshot, pid, _) = launched(&[env!("CARGO_BIN_EXE_mark-forms")])?;
    let counts = snapshot.counts(pid);
    let expected = [
        ("LA_PO", 1),
        // The ones of `part`, and those of the spans.
        ("LC_PCO", 15),
        ("LC_PE", 20),
        ("LC_PTR", 5),
        // The subtracted ones, and those that `?` left.
        ("LR_PC", 10),
        // `part`, and the spans, which are entered twice.
        ("LR_PE", 15),
        ("LR_PP", 5),
        ("LR_PT", 5),
    ];
    let counts: Vec<(&str, u64)> = counts.iter().map(|(tag, &count)| (tag.as_str(), count)).collect();
    assert_eq!(counts, expected);
    Ok(())
}

#[test]
fn a_rust_program_has_lanes_for_most_of_its_marks() -> Result<()> {
    const THREADS: u32 = 3;
    const ROUNDS: u32 = 1000;
    let Some(_live) = live::enter()? else { return Ok(()) };
    let program = env!("CARGO_BIN_EXE_mark-lanes");
    let words = [program, "--threads", &THREADS.to_string(), "--rounds", &ROUNDS.to_string()];
    let (snapshot, pid, _) = launched(&words)?;
    let all = u64::from(THREADS * ROUNDS);
    let counts = snapshot.counts(pid);
    let expected = [
        ("LA_PBM", 1),
        ("LA_PE", THREADS.into()),
        ("LA_PO", 1),
        ("LC_PCO", 2 * all),
        // Parts of an execution that is in another layer.
        ("LC_PE", 3 * all),
        ("LC_PTR", all),
        ("LR_PC", all),
        ("LR_PE", all),
        ("LR_PR", all),
    ];
    let counts: Vec<(&str, u64)> = counts.iter().map(|(tag, &count)| (tag.as_str(), count)).collect();
    assert_eq!(counts, expected);
    let used = snapshot.source.express.context("no thread has a lane")?;
    assert_eq!((used.threads, used.lost, used.damaged), (THREADS.into(), 0, 0), "{used:?}");
    // A round has 13 of them. What is missing was before the lease, or found the ring full.
    assert!(used.marks > 13 * all / 2, "{used:?}");
    Ok(())
}

/// Runs a program; returns its process id, and its marks in ftrace, in order, without the header and the process.
fn written_to_ftrace(program: &Path) -> Result<(u32, Vec<String>)> {
    let tracefs = Path::new("/sys/kernel/tracing");
    // Other tools leave it off; and until anything else is recorded the buffer has two pages per CPU.
    for (file, value) in [("tracing_on", "1"), ("buffer_size_kb", "1408")] {
        fs::write(tracefs.join(file), value).with_context(|| format!("cannot write to ftrace's {file}"))?;
    }
    let mut command = Command::new(program);
    command.env("NNTRACE_TO_FTRACE", "1");
    // Marks of an earlier process with the same id may still be in the buffer.
    let begin = format!("nntrace-tests: {} begins at {}", std::process::id(), clock::now());
    fs::write(tracefs.join("trace_marker"), &begin).context("cannot write to ftrace's buffer")?;
    let child = Child::start(&mut command)?;
    let pid = child.pid();
    let ended = child.wait()?.expect_code(0)?;
    ensure!(ended.stderr.is_empty(), "{}", ended.stderr);
    let trace = fs::read(tracefs.join("trace")).context("cannot read ftrace's buffer")?;
    let trace = String::from_utf8_lossy(&trace);
    let (_, trace) = trace.split_once(&begin).context("ftrace's buffer has lost what it was told before")?;
    let payload = |line: &str| {
        let (_, payload) = line.split_once("tracing_mark_write: ")?;
        let (kind, rest) = payload.split_once('|')?;
        let rest = rest.strip_prefix(&pid.to_string())?;
        (rest.is_empty() || rest.starts_with('|')).then(|| format!("{kind}{rest}"))
    };
    Ok((pid, trace.lines().filter_map(payload).collect()))
}

/// Returns the marks with `H` in place of their handles, which are new each time.
fn with_handles_hidden(marks: &[String]) -> Vec<String> {
    let hidden = |mark: &String| match mark.split_once("#h=") {
        Some((begin, handle)) if mark.starts_with('I') && handle.parse::<u64>().is_ok() => {
            format!("{begin}#h=H")
        }
        _ => mark.clone(),
    };
    marks.iter().map(hidden).collect()
}

#[test]
fn the_environment_sends_marks_to_ftrace_too() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let part = |begin: &str| -> Vec<String> {
        [
            begin,
            "B|[NN_LC_PTR]layout",
            "B|[SW][NN_LC_PCO]conv2d",
            "B|[SW][NN_LC_PCO]relu#h=9",
            "E",
            "E",
            "E",
            "B|[SUB][NN_LR_PC]late",
            "E",
            "E",
        ]
        .map(Into::into)
        .into()
    };
    let events = ["I|nn.send#h=H", "I|nn.recv#h=H"];
    for compiler in [&["cc", "-std=c99", "-xc"][..], &["c++", "-std=c++11", "-xc++"]] {
        let folder = tempfile::tempdir()?;
        let program = folder.path().join("marks");
        let sources = ["marks.c", "marks-part.c"].map(nntrace_tests::native::source);
        let mut words = compiler.to_vec();
        words.extend(sources.iter().filter_map(|source| source.to_str()));
        nntrace_tests::native::compile(&words, &[], &program)?;
        let marks = with_handles_hidden(&written_to_ftrace(&program)?.1);
        let mut expected = vec!["B|[NN_LA_PO]all".to_owned()];
        for _ in 0..5 {
            expected.extend(part("B|[NN_LR_PE]part#iter=7#acct=foo"));
        }
        for _ in 0..5 {
            let by_hand = [
                "B|[NN_LR_PT]by_hand",
                "B|[NN_LR_PT]with#img=a_b.jpg#size=12",
                "I|now",
                "C|level|-3",
                "E",
                "E",
            ];
            expected.extend(by_hand.map(Into::into));
        }
        expected.extend(events.map(Into::into));
        expected.push("E".into());
        assert_eq!(marks, expected, "{compiler:?}");
    }
    let marks = with_handles_hidden(&written_to_ftrace(Path::new(env!("CARGO_BIN_EXE_mark-forms")))?.1);
    assert_eq!(
        marks[..11],
        [&["B|[NN_LA_PO]all".to_owned()][..], &part("B|[NN_LR_PE]part#iter=0#acct=foo")].concat()
    );
    assert_eq!(marks[11..15], ["B|[NN_LR_PP]fails", "B|[NN_LR_PP]inside#img=a_b.jpg", "E", "E"]);
    for event in [events[0], events[1], "I|now", "C|level|-3", "B|[NN_LR_PE]span#iter=4"] {
        assert!(marks.iter().any(|mark| mark == event), "{event} is not among {marks:?}");
    }
    let ends = marks.iter().filter(|mark| *mark == "E").count();
    assert_eq!(ends, marks.iter().filter(|mark| mark.starts_with("B|")).count());
    Ok(())
}

#[test]
fn ftrace_is_opened_once_and_not_for_others() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let program = Program::build("ftrace-once.cc")?;
    for _ in 0..20 {
        let ended = Child::run(Command::new(program.path()).env("NNTRACE_TO_FTRACE", "1"))?.expect_code(0)?;
        assert_eq!(ended.text(), "0\n", "one descriptor, that is closed on exec");
    }
    Ok(())
}

#[test]
fn a_mark_that_is_too_long_is_cut_behind_a_character() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let program = Program::build("long-names.c")?;
    let (pid, marks) = written_to_ftrace(program.path())?;
    let digits = pid.to_string().len();
    let begins: Vec<&String> = marks.iter().filter(|mark| mark.starts_with('B')).collect();
    assert_eq!(begins.len(), 10);
    for begin in begins {
        let length = begin.len() + "|".len() + digits;
        assert!((253..=255).contains(&length), "{length} bytes: {begin}");
        let name = begin.rsplit([']', '=']).next().unwrap_or_default().trim_start_matches('x');
        let all = "ü€".repeat(200);
        assert!(all.starts_with(name) && !name.is_empty(), "{begin}");
    }
    Ok(())
}

#[test]
fn a_stripped_rust_program_is_found_by_its_note() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let stripped = folder.path().join("mark-forms");
    let strip =
        Command::new("strip").arg("-o").arg(&stripped).arg(env!("CARGO_BIN_EXE_mark-forms")).status()?;
    ensure!(strip.success(), "strip: {strip}");
    for file in [stripped.as_path(), Path::new(env!("CARGO_BIN_EXE_mark-forms"))] {
        let search = search_file(file, &[SymbolSpec::default()])?;
        assert_eq!(search.stripped, file == stripped);
        assert_eq!(search.functions.len(), 1, "{search:?}");
        assert!(search.functions[0].points.nop.is_some(), "{search:?}");
    }
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let (snapshot, pid, _) = launched(&[text(&stripped)?])?;
    assert_eq!((snapshot.count(pid, "LR_PE"), snapshot.count(pid, "LC_PTR")), (15, 5));
    Ok(())
}

#[test]
fn ftrace_that_cannot_be_written_to_is_told_once() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("marks");
    let sources = ["marks.c", "marks-part.c"].map(nntrace_tests::native::source);
    nntrace_tests::native::compile(&["cc", "-std=c99"], &[&sources[0], &sources[1]], &program)?;
    for program in [text(&program)?, env!("CARGO_BIN_EXE_mark-forms")] {
        // A separate mount namespace, without ftrace.
        let mut command = Command::new("unshare");
        let script = "umount -l /sys/kernel/tracing && exec \"$0\"";
        command.args(["--mount", "sh", "-c", script, program]).env("NNTRACE_TO_FTRACE", "1");
        let ended = Child::run(&mut command)?.expect_code(0)?;
        let told: Vec<&str> = ended.stderr.lines().collect();
        assert_eq!(told.len(), 1, "{program}: {told:?}");
        assert!(
            told[0]
                .starts_with("nntrace: NNTRACE_TO_FTRACE=1, but no marks go to ftrace: /sys/kernel/tracing")
        );
    }
    Ok(())
}
