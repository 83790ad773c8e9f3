//! Files in a recording: each that the processes of a run opened, by its path, whatever folder they were in.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use nntrace_tests::{
    bpf::{self, Objects},
    child::Child,
    live, native,
    profiler::Profiler,
};
use serde_json::Value;
use tempfile::TempDir;

/// Programs on files, as the kernel names them.
const PROGRAMS: [&str; 2] = ["file_call", "file_executed"];

/// Folder with the files that the program opens.
struct Scene {
    folder: TempDir,
    program: PathBuf,
}

impl Scene {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("sub"))?;
        for (name, content) in [
            ("relative.tflite", &b"\x1c\0\0\0TFL3 outside"[..]),
            ("absolute.gguf", b"GGUF\x03\0\0\0"),
            ("sub/relative.tflite", b"\x1c\0\0\0TFL3 inside"),
            ("sub/by-descriptor.param", b"7767517\n1 1\n"),
            ("sub/beneath.bin", b"weights"),
            ("sub/beneath.param", b"7767517\n1 1\n"),
            ("sub/child.mnn", b"\x20\0\0\0"),
        ] {
            fs::write(at(name), content)?;
        }
        symlink("relative.tflite", at("link.tflite"))?;
        let program = at("program");
        let flags = ["cc", "-std=gnu99", "-O2", "-Wl,--build-id=0x0123456789abcdef"];
        native::compile(&flags, &[&native::source("open-files.c")], &program)?;
        Ok(Self { folder, program })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Records a run of the program, with these options; returns its output.
    fn record(&self, into: &Path, options: &[&str]) -> Result<String> {
        let mut profiler = Profiler::new()?;
        profiler.command().arg("record").args(options).arg("-o").arg(into).arg("--").arg(&self.program);
        let ended = Child::start(profiler.command().arg(self.folder.path()))?.wait()?;
        Ok(ended.expect_code(0)?.text())
    }
}

/// Reads the list of a recording.
fn list(recording: &Path) -> Result<Value> {
    let path = recording.join("files.json");
    serde_json::from_slice(&fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?)
        .context("the list is JSON")
}

/// Entries of files below a folder, as `call path error count flags`, without those of the recording.
fn below<'a>(list: &'a Value, folder: &Path) -> Result<BTreeMap<String, &'a Value>> {
    let mut found = BTreeMap::new();
    for entry in list["files"].as_array().context("there are files")? {
        let Some(path) = entry["path"].as_str().and_then(|path| Path::new(path).strip_prefix(folder).ok())
        else {
            continue;
        };
        let flags: Vec<&str> =
            entry["flags"].as_array().context("flags")?.iter().filter_map(Value::as_str).collect();
        let text = format!(
            "{} {} {} {} {}",
            entry["opened_by"].as_str().unwrap_or_default(),
            path.display(),
            entry["errno"].as_str().unwrap_or("ok"),
            entry["count"],
            flags.join("|"),
        );
        ensure!(found.insert(text.clone(), entry).is_none(), "{text} is there twice");
    }
    Ok(found)
}

#[test]
fn every_file_is_listed_once_by_its_path() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let scene = Scene::new()?;
    let target = tempfile::tempdir()?;
    let recording = target.path().join("run");
    let output = scene.record(&recording, &[])?;
    let pids: Vec<u64> = output.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let &[parent, child] = pids.as_slice() else { anyhow::bail!("no two processes in {output:?}") };

    let list = list(&recording)?;
    assert_eq!((&list["version"], &list["not_listed"], &list["lost"]), (&1.into(), &0.into(), &0.into()));
    let found = below(&list, scene.folder.path())?;
    // Libraries open with or without O_LARGEFILE, which says nothing.
    let plain: BTreeMap<String, &Value> =
        found.iter().map(|(text, entry)| (text.replace("|O_LARGEFILE", ""), *entry)).collect();
    let expected = [
        // It was there when the run began, and the child executes it.
        "mapped program ok 2 ",
        // By its name and by the link.
        "openat relative.tflite ok 2 O_RDONLY",
        "openat absolute.gguf ok 2 O_RDONLY|O_CLOEXEC",
        "openat missing.onnx ENOENT 1 O_RDONLY",
        "openat  ok 1 O_RDWR|O_TMPFILE",
        "openat sub/relative.tflite ok 1 O_RDONLY",
        "openat sub ok 1 O_RDONLY|O_DIRECTORY",
        "openat sub/by-descriptor.param ok 1 O_RDONLY",
        "openat2 sub/beneath.bin ok 1 O_RDONLY|O_NOFOLLOW",
        "openat sub/not-there ENOENT 1 O_RDONLY",
        "openat written.txt ok 1 O_WRONLY|O_CREAT|O_TRUNC",
        "openat sub/child.mnn ok 1 O_RDONLY",
        "execve no-program ENOENT 1 ",
    ];
    let mut expected = expected.map(str::to_owned);
    expected.sort();
    assert_eq!(plain.keys().cloned().collect::<Vec<_>>(), expected, "{list:#}");

    let entry = |text: &str| plain.get(text).copied().with_context(|| format!("no {text}"));
    for (text, kind, pid, given) in [
        ("openat relative.tflite ok 2 O_RDONLY", "tflite", parent, "relative.tflite"),
        ("openat absolute.gguf ok 2 O_RDONLY|O_CLOEXEC", "gguf", parent, ""),
        ("openat sub/by-descriptor.param ok 1 O_RDONLY", "ncnn-param", parent, "by-descriptor.param"),
        ("openat2 sub/beneath.bin ok 1 O_RDONLY|O_NOFOLLOW", "ncnn-bin", parent, "beneath.bin"),
        ("openat sub/child.mnn ok 1 O_RDONLY", "mnn", child, "child.mnn"),
    ] {
        let entry = entry(text)?;
        assert_eq!(
            (&entry["kind"], &entry["pid"], &entry["tid"]),
            (&kind.into(), &pid.into(), &pid.into()),
            "{entry:#}"
        );
        assert_eq!(entry["thread"], if pid == parent { "main" } else { "main_0" });
        if !given.is_empty() {
            assert_eq!(entry["as_given"], given);
        }
        let path = PathBuf::from(entry["path"].as_str().context("a path")?);
        let sum = String::from_utf8(Command::new("sha256sum").arg(&path).output()?.stdout)?;
        assert_eq!(entry["sha256"].as_str(), sum.split_whitespace().next(), "{entry:#}");
        assert_eq!(entry["size"].as_u64(), Some(fs::metadata(&path)?.len()));
        assert!(entry["mtime_ns"].as_u64().is_some_and(|time| time > 0) && entry["resolved_late"] == false);
    }
    let missing = entry("openat missing.onnx ENOENT 1 O_RDONLY")?;
    assert_eq!((&missing["as_given"], &missing["sha256"]), (&"sub/../missing.onnx".into(), &Value::Null));
    let no_program = entry("execve no-program ENOENT 1 ")?;
    assert_eq!((&no_program["as_given"], &no_program["pid"]), (&"../no-program".into(), &child.into()));
    let program = entry("mapped program ok 2 ")?;
    assert_eq!(
        (&program["is_executable"], &program["kind"], &program["machine"], &program["build_id"]),
        (&true.into(), &"elf".into(), &std::env::consts::ARCH.into(), &"0123456789abcdef".into())
    );
    check_others(&list, parent)
}

/// Checks the entries of files elsewhere: the C library, and the path that could not be read.
fn check_others(list: &Value, parent: u64) -> Result<()> {
    let files = list["files"].as_array().context("there are files")?;
    let executables = files.iter().filter(|entry| entry["is_executable"] == true).count();
    assert_eq!(executables, 1);
    let unreadable: Vec<&Value> = files.iter().filter(|entry| entry["errno"] == "EFAULT").collect();
    let [unreadable] = unreadable.as_slice() else { anyhow::bail!("{list:#}") };
    assert_eq!((&unreadable["path"], &unreadable["as_given"]), (&Value::Null, &Value::Null));
    assert_eq!((&unreadable["pid"], &unreadable["opened_by"]), (&parent.into(), &"openat".into()));
    let library = files.iter().find(|entry| {
        let path = entry["path"].as_str().unwrap_or_default();
        let is_library = path.contains("/libc.so") || path.contains("/libc-") || path.contains("/ld-musl");
        // The loader looks elsewhere first.
        is_library && entry["errno"].is_null()
    });
    let library = library.with_context(|| format!("no C library in {list:#}"))?;
    assert_eq!(library["kind"], "elf");
    assert!(library["sha256"].is_string() && library["build_id"].is_string(), "{library:#}");
    Ok(())
}

#[test]
fn nothing_is_hashed_beyond_the_budget() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let scene = Scene::new()?;
    let target = tempfile::tempdir()?;
    let recording = target.path().join("run");
    scene.record(&recording, &["--hash-files", "0"])?;
    let list = list(&recording)?;
    let files = list["files"].as_array().context("there are files")?;
    let model = files.iter().find(|entry| entry["kind"] == "gguf").context("no model")?;
    assert_eq!(
        (&model["sha256"], &model["not_hashed"], &model["size"]),
        (&Value::Null, &"budget".into(), &8.into())
    );
    // A recording in its place has a list of its own.
    scene.record(&recording, &["--no-files", "--force"])?;
    assert!(!recording.join("files.json").exists());
    Ok(())
}

#[test]
fn without_the_list_no_program_is_loaded_for_it() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let loaded = |options: &[&str]| -> Result<(Vec<String>, bool)> {
        let target = tempfile::tempdir()?;
        let recording = target.path().join("run");
        let waiting = Child::start(Command::new("sleep").arg("1000"))?;
        let mut profiler = Profiler::new()?;
        profiler.command().arg("record").args(options).arg("-o").arg(&recording);
        let profiler = profiler.args(["--pid", &waiting.pid().to_string()]).attach()?;
        let held = Objects::held_by(profiler.pid())?;
        let mut names = Vec::new();
        for program in aya::programs::loaded_programs().filter(bpf::is_not_gone) {
            let program = program?;
            let name = program.name_as_str().unwrap_or_default().to_owned();
            if held.programs.contains(&program.id()) && PROGRAMS.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names.sort();
        profiler.signal(Signal::SIGINT)?;
        profiler.finish()?;
        waiting.signal(Signal::SIGKILL)?;
        waiting.wait()?;
        Ok((names, recording.join("files.json").exists()))
    };
    assert_eq!(loaded(&[])?, (PROGRAMS.map(str::to_owned).into(), true));
    assert_eq!(loaded(&["--no-files"])?, (Vec::new(), false));
    Ok(())
}

#[test]
fn files_of_a_process_with_mounts_of_its_own_are_read_in_its_view() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let scene = Scene::new()?;
    let target = tempfile::tempdir()?;
    let recording = target.path().join("run");
    let inside = scene.at("sub");
    let script =
        "mount -t tmpfs tmpfs \"$0\" && printf 'GGUF inside' > \"$0/net\" && cat \"$0/net\" && sleep 1";
    let mut profiler = Profiler::new()?;
    profiler.command().arg("record").arg("-o").arg(&recording);
    profiler.command().args(["--", "unshare", "--mount", "sh", "-c", script]).arg(&inside);
    Child::start(profiler.command())?.wait()?.expect_code(0)?;
    assert!(File::open(inside.join("net")).is_err());
    let list = list(&recording)?;
    let files = list["files"].as_array().context("there are files")?;
    let path = inside.join("net");
    let entry = files.iter().find(|entry| entry["path"].as_str().map(Path::new) == Some(&path));
    let entry = entry.with_context(|| format!("no {} in {list:#}", path.display()))?;
    assert_eq!(
        (&entry["kind"], &entry["in_other_root"], &entry["count"]),
        (&"gguf".into(), &true.into(), &2.into())
    );
    assert!(entry["sha256"].is_string(), "{entry:#}");
    Ok(())
}
