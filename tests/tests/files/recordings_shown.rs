//! Recordings as `print`, `report` and `info` show them, against the replay of the same recording.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{binaries, child::Child, live, native::Program};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Recording of a program, in a folder that is removed with it.
struct Recording {
    folder: TempDir,
}

/// Function of a process, with layer and phase.
type Function = (u64, String, String, String);
/// Count, total and exclusive time, ns.
type Sums = (u64, u64, u64);

impl Recording {
    /// Records a command; `None` where no live test can run.
    fn of(words: &[&OsStr]) -> Result<Option<Self>> {
        Self::with(&[], words)
    }

    fn with(more: &[&str], words: &[&OsStr]) -> Result<Option<Self>> {
        let Some(_live) = live::enter_shared()? else { return Ok(None) };
        let folder = tempfile::tempdir()?;
        let mut command = Command::new(binaries::profiler()?);
        // What the test runs under decides as whom the command runs.
        for variable in ["SUDO_UID", "SUDO_GID", "SUDO_USER"] {
            command.env_remove(variable);
        }
        // Rings that take all that is written, however late they are drained.
        let options = ["record", "--causes", "--ring-size", "8192", "-o"];
        command.env("OMP_NUM_THREADS", "3").args(options).arg(folder.path().join("run")).args(more);
        Child::run(command.arg("--").args(words))?.expect_code(0)?;
        Ok(Some(Self { folder }))
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    /// Runs a subcommand on the recording; returns what it prints, and its messages.
    fn show(&self, words: &[&str]) -> Result<(String, String)> {
        let (subcommand, options) = words.split_first().context("no subcommand")?;
        let mut command = Command::new(binaries::profiler()?);
        let ended = Child::run(command.arg(subcommand).arg(self.path()).args(options))?.expect_code(0)?;
        Ok((ended.text(), ended.stderr))
    }

    /// Returns what a subcommand prints as JSON.
    fn json(&self, words: &[&str]) -> Result<Value> {
        Ok(serde_json::from_str(&self.show(words)?.0)?)
    }

    /// Returns the sections, one by one.
    fn sections(&self, options: &[&str]) -> Result<Vec<Value>> {
        let (lines, _) = self.show(&[&["print", "--json-lines"], options].concat())?;
        Ok(lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

fn function(row: &Value) -> Function {
    (number(&row["pid"]), word(&row["layer"]), word(&row["phase"]), word(&row["name"]))
}

/// Returns the sums of rows of a snapshot or of a report.
fn sums(rows: &Value) -> BTreeMap<Function, Sums> {
    let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default().iter();
    let sums = |row: &Value| (number(&row["count"]), number(&row["total_ns"]), number(&row["exclusive_ns"]));
    rows.map(|row| (function(row), sums(row))).collect()
}

/// Checks that every view of a recording agrees with its replay.
fn assert_agree(recording: &Recording) -> Result<()> {
    let replayed = recording.json(&["replay", "--json"])?;
    let expected = sums(&replayed["functions"]);
    ensure!(!expected.is_empty(), "nothing was recorded");
    let report = recording.json(&["report", "--json"])?;
    assert_eq!(sums(&report["rows"]), expected);
    let sections = recording.sections(&[])?;
    let mut printed: BTreeMap<Function, Sums> = BTreeMap::new();
    for section in &sections {
        let sum = printed.entry(function(section)).or_default();
        sum.0 += 1;
        sum.1 += number(&section["own_ns"]);
        sum.2 += number(&section["exclusive_ns"]);
    }
    assert_eq!(printed, expected);
    let begins: Vec<u64> = sections.iter().map(|section| number(&section["begin_ns"])).collect();
    assert!(begins.is_sorted());
    let percentiles = |rows: &Value| -> Vec<(Function, u64, u64)> {
        let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default().iter();
        let mut all: Vec<_> =
            rows.map(|row| (function(row), number(&row["p50_ns"]), number(&row["max_ns"]))).collect();
        all.sort();
        all
    };
    for (own, theirs) in percentiles(&report["rows"]).iter().zip(percentiles(&replayed["functions"])) {
        // The replay's are those of a histogram of two digits.
        assert!(own.1.abs_diff(theirs.1) * 100 <= theirs.1 && own.2 <= theirs.2, "{own:?} {theirs:?}");
    }
    Ok(())
}

#[test]
fn views_agree_with_the_replay() -> Result<()> {
    let program = Program::build("threads.cc")?;
    let Some(recording) = Recording::of(&[program.path().as_os_str()])? else { return Ok(()) };
    assert_agree(&recording)?;
    let info = recording.json(&["info", "--check", "--json"])?;
    assert_eq!(info["damage"], json!([]));
    assert_eq!((&info["is_ended"], &info["run"]["exit_status"]), (&true.into(), &0.into()));
    assert_eq!(info["run"]["environment"]["OMP_NUM_THREADS"], "3");
    assert_eq!(info["events"], info["events_found"]);
    let own = program.path().display().to_string();
    let probed = info["probed"].as_array().context("no probed files")?;
    let identity = probed.iter().find(|file| file["path"] == *own).context("it was not probed")?;
    assert_eq!(number(&identity["bytes"]), fs::metadata(program.path())?.len());
    for subcommand in ["print", "info"] {
        assert_eq!(recording.show(&[subcommand, "--command"])?.0.trim_end(), own);
    }
    // Only what was set for the recorder differs here; then the program, too.
    let differences = recording.show(&["info", "--compare"])?.0;
    assert_eq!(differences, "variable OMP_NUM_THREADS: \"3\" recorded, not set here\n");
    fs::remove_file(program.path())?;
    assert!(recording.show(&["info", "--compare"])?.0.contains(&format!("file {own}: ")));
    Ok(())
}

#[test]
fn threads_filters_and_trees() -> Result<()> {
    let flood = Path::new(env!("CARGO_BIN_EXE_mark-flood"));
    let words = [flood.as_os_str(), "--threads".as_ref(), "2".as_ref(), "--marks".as_ref(), "16000".as_ref()];
    let Some(recording) = Recording::of(&words)? else { return Ok(()) };
    assert_agree(&recording)?;
    let all = recording.sections(&[])?;
    let tids: BTreeMap<String, u64> =
        all.iter().map(|section| (word(&section["thread"]), number(&section["tid"]))).collect();
    assert_eq!(tids.keys().collect::<Vec<_>>(), ["main_0", "main_1"]);
    // What is hidden and what is shown is all.
    let first = tids["main_0"].to_string();
    let options = ["--tid", &first, "--name", "w?v*", "--layer", "LC", "--phase", "PCO", "--min", "1us"];
    let shown = recording.sections(&options)?;
    let (_, messages) = recording.show(&[&["print"], &options[..]].concat())?;
    let hidden = messages.trim_end().rsplit("hidden: ").next().context(messages.clone())?;
    let hidden: usize = hidden.split(' ').next().context("no number")?.parse()?;
    assert_eq!(shown.len() + hidden, all.len());
    let is_shown = |section: &&Value| {
        section["thread"] == "main_0" && section["name"] == "wave" && number(&section["duration_ns"]) >= 1_000
    };
    assert_eq!(shown, all.iter().filter(is_shown).cloned().collect::<Vec<_>>());
    let report = recording.json(&[&["report", "--json"], &options[..]].concat())?;
    assert_eq!(number(&report["hidden_sections"]) as usize, hidden);
    assert_eq!(report["rows"].as_array().map(Vec::len), Some(1));
    // A wave is in a flood.
    let tree = recording.show(&["print", "--tree"])?.0;
    let headings: Vec<&str> = tree.lines().filter(|line| line.starts_with("main")).collect();
    assert!(headings.len() == 2 && headings[0].starts_with("main_0: "), "{headings:?}");
    assert_eq!(tree.lines().filter(|line| line.ends_with("LC_PCO    wave")).count(), 4_000);
    assert_eq!(tree.lines().filter(|line| line.ends_with("LR_PE   flood")).count(), 4_000);
    let mut depth = Vec::new();
    for line in tree.lines().filter(|line| !line.starts_with("main")) {
        depth.push(line.contains("wave"));
    }
    assert!(depth.chunks(2).all(|pair| pair == [false, true]));
    Ok(())
}

#[test]
fn attributes_are_shown_and_a_reader_may_leave() -> Result<()> {
    let flood = Path::new(env!("CARGO_BIN_EXE_mark-flood"));
    let options = ["--threads", "1", "--marks", "8000", "--what", "accounts", "--pause-us", "100"];
    let words = [&[flood.as_os_str()], &options.map(OsStr::new)[..]].concat();
    let Some(recording) = Recording::of(&words)? else { return Ok(()) };
    let sections = recording.sections(&[])?;
    assert_eq!(sections.len(), 2_000);
    for (place, section) in sections.iter().enumerate() {
        let expected = json!({"acct": format!("a{place}"), "img": format!("i{place}")});
        assert_eq!((&section["attributes"], word(&section["name"])), (&expected, format!("flood_0_{place}")));
    }
    let mut command = Command::new(binaries::profiler()?);
    let mut print =
        command.arg("print").arg(recording.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut begin = [0; 100];
    print.stdout.take().context("no pipe")?.read_exact(&mut begin)?;
    let ended = print.wait_with_output()?;
    assert!(ended.status.success() && ended.stderr.is_empty(), "{}", String::from_utf8_lossy(&ended.stderr));
    // A changed byte in a block is found.
    let file = recording.path().join("run.nnt");
    let mut bytes = fs::read(&file)?;
    bytes[32 + 64 + 3] ^= 1;
    fs::write(&file, bytes)?;
    let mut command = Command::new(binaries::profiler()?);
    let ended = Child::run(command.arg("info").arg("--check").arg(recording.path()))?.expect_code(1)?;
    assert!(ended.text().contains("damaged: "), "{}", ended.text());
    Ok(())
}

#[test]
fn short_sections_are_hidden_from_swimlanes_and_counted() -> Result<()> {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recording-v1");
    let folder = tempfile::tempdir()?;
    let call = |words: &[&OsStr]| Child::run(Command::new(binaries::profiler()?).args(words))?.expect_code(0);
    let durations = |file: &Path| -> Result<Vec<u64>> {
        let text = call(&["print".as_ref(), "--json-lines".as_ref(), file.as_ref()])?.text();
        let rows = text.lines().map(serde_json::from_str::<Value>).collect::<Result<Vec<_>, _>>()?;
        Ok(rows.iter().filter_map(|row| row["duration_ns"].as_u64()).collect())
    };
    let export = |name: &str| -> Result<(PathBuf, String)> {
        let file = folder.path().join(name);
        let words = ["export", "--min-span", "1ms", "-o"].map(OsStr::new);
        let ended = call(&[&words[..], &[file.as_ref(), run.as_ref()]].concat())?;
        Ok((file, ended.stderr))
    };
    let all = durations(&run)?;
    let short: Vec<u64> = all.iter().copied().filter(|ns| *ns < 1_000_000).collect();
    assert!(!short.is_empty() && short.len() < all.len());

    let (page, _) = export("run.html")?;
    let counted = format!("\"short\":{{\"count\":{},\"ns\":{}}}", short.len(), short.iter().sum::<u64>());
    assert!(fs::read_to_string(page)?.contains(&counted), "{counted}");

    // Sections of hand-overs stay.
    let (trace, told) = export("run.pftrace")?;
    let shown = durations(&trace)?;
    let hidden = all.len() - shown.len();
    let ns = all.iter().sum::<u64>() - shown.iter().sum::<u64>();
    let text = format!("hidden: {hidden} sections, {}.{:03} ms", ns / 1_000_000, ns / 1_000 % 1_000);
    assert!(told.contains(&text), "{told} is not {text}");
    assert!(hidden > 0 && hidden <= short.len());
    Ok(())
}

/// Where a program hangs: of the function that it hangs in, and of the thread that only hangs, nothing has ended.
#[test]
fn sections_that_have_not_ended_are_shown() -> Result<()> {
    let program = Program::build("hangs.c")?;
    let options = ["--duration", "1s"];
    let Some(recording) = Recording::with(&options, &[program.path().as_os_str()])? else { return Ok(()) };
    let printed = recording.sections(&[])?;
    let rows = |wanted: &[&str]| -> Vec<Value> {
        printed.iter().map(|line| wanted.iter().map(|key| line[key].clone()).collect()).collect()
    };
    let main = &printed[0]["pid"];
    let expected = [
        json!([main, "LR", "PC", "section", "compile"]),
        json!([main, "LR", "PE", "section", "compute"]),
        json!([main, "LD", "PE", "subtract", "wait_for_npu"]),
        json!([main, "LA", "PE", "section", "wait_for_camera"]),
    ];
    // The two threads hang at about the same time.
    let sorted = |mut rows: Vec<Value>| {
        rows.sort_by_key(ToString::to_string);
        rows
    };
    let found = rows(&["pid", "layer", "phase", "class", "name"]);
    assert_eq!(sorted(found), sorted(expected.to_vec()));
    for line in &printed[1..] {
        assert_eq!(
            (&line["end_ns"], &line["own_ns"], &line["attributes"]),
            (&Value::Null, &Value::Null, &Value::Null)
        );
    }
    assert!(printed.is_sorted_by_key(|line| number(&line["begin_ns"])));
    let replayed = recording.json(&["replay", "--json"])?;
    let unfinished = replayed["unfinished"].as_array().context("nothing has not ended")?;
    let names: BTreeMap<_, _> =
        unfinished.iter().map(|row| (word(&row["name"]), number(&row["depth"]))).collect();
    let expected = [("compute", 0), ("wait_for_camera", 0), ("wait_for_npu", 1)];
    assert_eq!(names, expected.map(|(name, depth)| (name.to_owned(), depth)).into());
    for row in unfinished {
        assert_eq!((&row["pid"], number(&row["open_ns"]) > 500_000_000), (main, true), "{row}");
    }
    let (table, _) = recording.show(&["replay"])?;
    assert!(table.contains("\nnot ended ") && table.contains("  wait_for_npu\n"), "{table}");
    let (tree, _) = recording.show(&["print", "--tree"])?;
    let lines: Vec<_> = tree.lines().map(|line| line.get(25..).unwrap_or(line).to_owned()).collect();
    let expected = [
        "not ended LR_PE   compute",
        "not ended LD_PE     wait_for_npu",
        "not ended LA_PE   wait_for_camera",
    ];
    for expected in expected {
        assert!(lines.iter().any(|line| line.trim_start() == expected), "{expected}: {tree}");
    }
    for (options, names) in
        [(&["--layer", "LD"][..], &["wait_for_npu"][..]), (&["--name", "comp*"], &["compile", "compute"])]
    {
        let found: Vec<_> = recording.sections(options)?.iter().map(|line| word(&line["name"])).collect();
        assert_eq!(found, names);
    }
    Ok(())
}
