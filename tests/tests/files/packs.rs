//! Packs of recordings: what is packed on one system is all that another one needs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{
    binaries,
    child::{Child, Ended},
    live, native,
    profiler::Profiler,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Recording of a small program, and the program.
struct Recorded {
    folder: TempDir,
}

impl Recorded {
    /// Records a run. A list of the files that it used is written here where the profiler has not written one.
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let program = native::Program::build("job-queue.cc")?;
        fs::copy(program.path(), folder.path().join("app"))?;
        let recorded = Self { folder };
        recorded.used("model.bin", "weights")?;
        let [run, app] = ["run", "app"].map(|name| recorded.path(name));
        let mut profiler =
            Profiler::new()?.args(["record", "-o"]).args([&run]).args(["--json", "--"]).args([&app]);
        Child::run(profiler.command())?.expect_code(0)?;
        recorded.list(&[])?;
        Ok(recorded)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file that the run is said to have used.
    fn used(&self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.path(name);
        fs::write(&path, content)?;
        Ok(path)
    }

    /// Writes the list of files that the run used: the program, its model, and others.
    fn list(&self, others: &[&Path]) -> Result<()> {
        let mut files = vec![
            json!({"path": self.path("app"), "opened_by": "execve", "first_ns": 1}),
            json!({"path": self.path("model.bin"), "opened_by": "openat", "first_ns": 2, "size": 7}),
            json!({"path": "/dev/null", "opened_by": "openat", "first_ns": 3}),
        ];
        files.extend(others.iter().map(|path| json!({"path": path, "opened_by": "openat", "first_ns": 4})));
        let list = json!({"version": 1, "files": files, "not_listed": 0, "lost": 0});
        Ok(fs::write(self.path("run/files.json"), list.to_string())?)
    }

    /// Packs the recording to a file beside it.
    fn pack(&self, pack: &str, options: &[&str]) -> Result<Ended> {
        let (run, pack) = (self.path("run"), self.path(pack));
        let mut profiler =
            Profiler::new()?.args(["pack"]).args([&run]).args(["-o"]).args([&pack]).args(options);
        Child::run(profiler.command())?.expect_code(0)
    }
}

/// Unpacks a pack.
fn unpack(pack: &Path, folder: &Path) -> Result<Ended> {
    let mut profiler = Profiler::new()?.args(["unpack"]).args([pack]).args(["-o"]).args([folder]);
    Child::run(profiler.command())
}

/// Returns the snapshot of a recording, without the folder that it is in.
fn replayed(folder: &Path) -> Result<Value> {
    let mut profiler = Profiler::new()?.args(["replay"]).args([folder]).args(["--json"]);
    without_folder(&Child::run(profiler.command())?.expect_code(0)?.stdout)
}

/// Returns the statistics of a recording, whose processes have the same ids wherever it is.
fn reported(folder: &Path) -> Result<String> {
    let mut profiler = Profiler::new()?.args(["report", "--json"]).args([folder]);
    Ok(Child::run(profiler.command())?.expect_code(0)?.text())
}

fn without_folder(snapshot: &[u8]) -> Result<Value> {
    let mut snapshot: Value = serde_json::from_slice(snapshot)?;
    let files = snapshot.pointer_mut("/source/files").context("no files")?;
    ensure!(files.as_array().is_some_and(|files| files.len() == 1), "{files}");
    *files = Value::Null;
    ensure!(
        snapshot["functions"].as_array().is_some_and(|functions| !functions.is_empty()),
        "nothing was recorded"
    );
    Ok(snapshot)
}

/// Fills a folder so that it can be a root with nothing but the profiler and the libraries that it is linked with.
fn empty_root(root: &Path) -> Result<()> {
    let profiler = binaries::profiler()?;
    let linked = Command::new("ldd").arg(&profiler).output().context("ldd")?;
    let linked = String::from_utf8(linked.stdout)?;
    // A static program has no such lines.
    let libraries = linked.split_whitespace().filter(|word| word.starts_with('/')).map(Path::new);
    for library in libraries {
        let place = root.join(library.strip_prefix("/")?);
        fs::create_dir_all(place.parent().context("a library is in a folder")?)?;
        fs::copy(library, place).with_context(|| library.display().to_string())?;
    }
    fs::copy(&profiler, root.join("nntrace-bpf"))?;
    fs::create_dir(root.join("tmp"))?;
    Ok(())
}

/// Runs the profiler in a root, without any file system of the kernel.
fn run_in(root: &Path, arguments: &[&str]) -> Result<Ended> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "chroot"]).arg(root).arg("/nntrace-bpf").args(arguments);
    Child::run(&mut command)
}

#[test]
fn a_pack_is_all_that_another_system_needs() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let recorded = Recorded::new()?;
    let before = replayed(&recorded.path("run"))?;
    let report = reported(&recorded.path("run"))?;
    let program = fs::read(recorded.path("app"))?;
    let packed = recorded.pack("run.nnpack", &[])?;
    assert!(packed.stderr.contains("and 2 files to"), "{}", packed.stderr);
    for name in ["run", "app", "model.bin"] {
        let path = recorded.path(name);
        if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
    }

    let mut packed = Profiler::new()?.args(["report"]).args([recorded.path("run.nnpack")]);
    let refused = Child::run(packed.command())?.expect_code(1)?;
    assert!(refused.stderr.contains("unpack it first"), "{}", refused.stderr);
    let elsewhere = tempfile::tempdir()?;
    let out = elsewhere.path().join("out");
    unpack(&recorded.path("run.nnpack"), &out)?.expect_code(0)?;
    assert_eq!(replayed(&out)?, before);
    assert_eq!(reported(&out)?, report);
    assert!(fs::read(out.join("files/0_app"))? == program);
    assert_eq!(fs::read(out.join("files/1_model.bin"))?, b"weights");
    let map: Value = serde_json::from_slice(&fs::read(out.join("replay_file_map.json"))?)?;
    let packed: Vec<_> = map["files"].as_array().context("files")?.iter().map(|row| &row["packed"]).collect();
    assert_eq!(packed, [&json!("files/0_app"), &json!("files/1_model.bin"), &Value::Null]);

    let root = tempfile::tempdir()?;
    empty_root(root.path())?;
    fs::copy(recorded.path("run.nnpack"), root.path().join("run.nnpack"))?;
    run_in(root.path(), &["unpack", "/run.nnpack", "-o", "/out"])?.expect_code(0)?;
    let shown = run_in(root.path(), &["replay", "/out", "--json"])?.expect_code(0)?;
    assert_eq!(without_folder(&shown.stdout)?, before);
    let shown = run_in(root.path(), &["report", "/out", "--json"])?.expect_code(0)?;
    assert_eq!(shown.text(), report);
    Ok(())
}

#[test]
fn a_recording_is_packed_to_the_same_bytes() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let recorded = Recorded::new()?;
    recorded.pack("a.nnpack", &[])?;
    recorded.pack("b.nnpack", &[])?;
    let first = fs::read(recorded.path("a.nnpack"))?;
    assert!(fs::read(recorded.path("b.nnpack"))? == first);
    // From the pack alone, too.
    unpack(&recorded.path("a.nnpack"), &recorded.path("out"))?.expect_code(0)?;
    fs::remove_dir_all(recorded.path("run"))?;
    fs::rename(recorded.path("out"), recorded.path("run"))?;
    fs::remove_file(recorded.path("app"))?;
    recorded.pack("c.nnpack", &[])?;
    assert!(fs::read(recorded.path("c.nnpack"))? == first);
    // Other tools can look into it.
    let tar = format!("zstd -dc {} | tar tf -", recorded.path("a.nnpack").display());
    let listed = Child::run(Command::new("sh").args(["-c", &tar]))?;
    if listed.code() == Some(0) {
        assert!(listed.text().starts_with("contents.json\nrecording/"), "{}", listed.text());
    }
    Ok(())
}

#[test]
fn what_changed_and_what_may_be_secret_is_named() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let recorded = Recorded::new()?;
    let secret = recorded.used("hf_token", "hf_abcdef")?;
    let gone = recorded.path("gone");
    recorded.list(&[&secret, &gone])?;
    fs::write(recorded.path("model.bin"), "other weights")?;
    let packed = recorded.pack("a.nnpack", &[])?;
    let noted = |end: &str| packed.stderr.lines().any(|line| line.contains(end));
    assert!(noted("model.bin has changed since the recording"), "{}", packed.stderr);
    assert!(noted("hf_token is not in the pack: it may hold a secret"), "{}", packed.stderr);
    assert!(noted("gone is not in the pack: it is gone"), "{}", packed.stderr);
    unpack(&recorded.path("a.nnpack"), &recorded.path("a"))?.expect_code(0)?;
    let map: Value = serde_json::from_slice(&fs::read(recorded.path("a/replay_file_map.json"))?)?;
    assert_eq!(map["files"][1]["changed"], true);
    assert_eq!(fs::read_dir(recorded.path("a/files"))?.count(), 2);

    recorded.pack("b.nnpack", &["--with-secrets"])?;
    unpack(&recorded.path("b.nnpack"), &recorded.path("b"))?.expect_code(0)?;
    assert_eq!(fs::read(recorded.path("b/files/2_hf_token"))?, b"hf_abcdef");

    recorded.pack("c.nnpack", &["--no-files"])?;
    unpack(&recorded.path("c.nnpack"), &recorded.path("c"))?.expect_code(0)?;
    assert!(!recorded.path("c/files").exists());
    assert_eq!(replayed(&recorded.path("c"))?, replayed(&recorded.path("run"))?);
    Ok(())
}

#[test]
fn variables_that_may_be_secret_are_named() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let recorded = Recorded::new()?;
    let (run, app) = (recorded.path("other"), recorded.path("app"));
    let profiler = Profiler::new()?.env("BOARD_TOKEN", "12345678").env("OMP_NUM_THREADS", "2");
    let profiler = profiler.args(["record", "--env", "BOARD_TOKEN", "-o"]).args([&run]);
    Child::run(profiler.args(["--json", "--"]).args([&app]).command())?.expect_code(0)?;
    let pack = |run: &Path| -> Result<String> {
        let to = recorded.path("x.nnpack");
        let mut profiler = Profiler::new()?.args(["pack", "--force"]).args([run]).args(["-o"]).args([&to]);
        Ok(Child::run(profiler.command())?.expect_code(0)?.stderr)
    };
    let stderr = pack(&run)?;
    assert!(stderr.contains("variables of the environment that may be secrets: BOARD_TOKEN"), "{stderr}");
    assert!(!stderr.contains("12345678"), "{stderr}");
    let stderr = pack(&recorded.path("run"))?;
    assert!(!stderr.contains("variables of the environment"), "{stderr}");
    Ok(())
}

#[test]
fn a_damaged_pack_is_refused_and_leaves_nothing() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let recorded = Recorded::new()?;
    recorded.pack("run.nnpack", &[])?;
    let whole = fs::read(recorded.path("run.nnpack"))?;
    let place = tempfile::tempdir()?;
    let (damaged, out) = (place.path().join("damaged.nnpack"), place.path().join("out"));
    let mut cases: Vec<Vec<u8>> =
        [1, whole.len() / 2, whole.len() - 1].iter().map(|length| whole[..*length].to_vec()).collect();
    for at in [whole.len() / 3, whole.len() - 2] {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x40;
        cases.push(flipped);
    }
    for (case, bytes) in cases.iter().enumerate() {
        fs::write(&damaged, bytes)?;
        let ended = unpack(&damaged, &out)?.expect_code(1)?;
        assert!(ended.stderr.contains("damaged.nnpack"), "case {case}: {}", ended.stderr);
        let left = fs::read_dir(&place)?.count();
        assert_eq!(left, 1, "case {case}: {}", ended.stderr);
    }
    // What is there already is left alone.
    fs::write(&damaged, &whole)?;
    fs::create_dir(&out)?;
    fs::write(out.join("mine"), "x")?;
    let ended = unpack(&damaged, &out)?.expect_code(1)?;
    assert!(ended.stderr.contains("is no empty folder"), "{}", ended.stderr);
    assert_eq!(fs::read_dir(&out)?.count(), 1);
    Ok(())
}
