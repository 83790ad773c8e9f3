//! Recordings that were cut or damaged: they are read as far as they go, and the target of a recorder that fails goes on.

use std::{
    fs,
    ops::ControlFlow,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sys::signal::Signal,
};
use nntrace_tests::{
    child::Child,
    live,
    profiler::Profiler,
    recording::{self, Recording},
    wait::PATIENCE,
};
use nntrace_user::{
    record::{self, OrderedSections, ReplayOptions},
    report::snapshot::Snapshot,
};

const FLOOD: &str = env!("CARGO_BIN_EXE_mark-flood");

/// Moments at which a recorder is killed.
const KILLS: u64 = 20;

/// Waits until a recording has a state.
fn wait_for_state(folder: &Path) -> Result<()> {
    let begun = Instant::now();
    while !fs::metadata(folder.join("run.nnt")).is_ok_and(|file| file.len() > 1_000) {
        ensure!(begun.elapsed() < PATIENCE, "{} has no state", folder.display());
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Replays a recording in this process.
fn replay(folder: &Path) -> Result<Snapshot> {
    Ok(Snapshot::of(&record::replay(folder, &ReplayOptions::default())?.findings()))
}

#[test]
fn what_a_killed_recorder_has_written_is_read() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    for kill in 0..KILLS {
        let path = folder.path().join(kill.to_string());
        let mut flood = Command::new(FLOOD);
        flood.args(["--threads", "2", "--until-stdin", "--pause-us", "20"]);
        let mut target = Child::start(&mut flood)?;
        target.lines(1)?;
        let mut recorder = Profiler::new()?.args(["record", "--interval", "20ms", "--pid"]);
        recorder.command().arg(target.pid().to_string()).arg("-o").arg(&path);
        let recorder = Child::start(recorder.command())?;
        wait_for_state(&path)?;
        thread::sleep(Duration::from_millis(kill * 37 % 500));
        recorder.signal(Signal::SIGKILL)?;
        recorder.wait()?;

        let snapshot = replay(&path)?;
        let recorded: u64 = snapshot.functions.iter().map(|row| row.count).sum();
        let counted: u64 = snapshot.stacks.iter().map(|row| row.count).sum();
        // Every event up to the state is there. The kernel's totals may be some sections ahead of what was drained.
        assert_eq!(snapshot.loss.records_unreadable, 0, "{:?}", snapshot.notes);
        ensure!(recorded <= counted, "kill {kill}: {recorded} sections recorded, {counted} counted");
        let note = snapshot.notes.iter().find(|note| note.contains("was not ended"));
        note.with_context(|| format!("kill {kill}: no note on the end: {:?}", snapshot.notes))?;
        // Sections after the state are there, too.
        let mut listed = 0;
        record::sections(&path, |_| listed += 1)?;
        ensure!(listed >= recorded, "kill {kill}: {listed} sections listed, {recorded} in the state");
        let mut printed = 0;
        let _ = OrderedSections::open(&path)?.visit(|_, _| {
            printed += 1;
            ControlFlow::Continue(())
        });
        ensure!(printed == listed, "kill {kill}: {printed} sections printed, {listed} listed");
        target.send_line("")?;
        target.wait()?.expect_code(0)?;
    }
    Ok(())
}

/// Small file system, mounted as long as this exists.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(path: &'a Path, size: &str) -> Result<Self> {
        mount(Some("tmpfs"), path, Some("tmpfs"), MsFlags::empty(), Some(size))?;
        Ok(Self(path))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        // A test that failed may have a file open in it.
        let _ = umount2(self.0, MntFlags::MNT_DETACH);
    }
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_target() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let disk = SmallDisk::mount(folder.path(), "size=256k")?;
    let path = folder.path().join("run");
    let mut profiler = Profiler::new()?.args(["record", "--interval", "50ms", "--ring-size", "4096", "-o"]);
    profiler.command().arg(&path).args(["--", FLOOD, "--what", "names"]);
    profiler.command().args(["--seconds", "3", "--threads", "2", "--pause-us", "50"]);
    let ended = Child::run(profiler.command())?.expect_code(1)?;
    assert!(ended.text().starts_with("ready\n"), "{}", ended.text());
    assert!(ended.text().contains("done "), "the target did not run to its end: {}", ended.text());
    assert!(ended.stderr.contains("No space left on device"), "{}", ended.stderr);
    assert!(ended.stderr.contains("goes on without being recorded"), "{}", ended.stderr);
    let snapshot = replay(&path)?;
    assert!(snapshot.functions.iter().any(|row| row.count > 0), "nothing is left of the recording");
    assert!(snapshot.notes.iter().any(|note| note.contains("was not ended")), "{:?}", snapshot.notes);
    drop(disk);
    Ok(())
}

#[test]
fn any_changed_byte_is_noticed_and_the_rest_is_read() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let command = [FLOOD, "--threads", "2", "--marks", "6000", "--pause-us", "100"];
    let recorded = Recording::of(&["--interval", "100ms", "--level", "sched"], command)?;
    let folder = recorded.path();
    let whole = replay(&folder)?;
    recording::expect_same(&recorded.run.snapshot, &whole)?;
    let sections = |snapshot: &Snapshot| snapshot.functions.iter().map(|row| row.count).sum::<u64>();
    let mut changed = 0;
    for name in recording::files(&folder)?.iter().filter(|name| *name != "files.json") {
        let path = folder.join(name);
        let bytes = fs::read(&path)?;
        // All of the first headers, and places all over the file.
        let step = (bytes.len() / 60).max(1);
        for place in (0..bytes.len().min(100)).chain((100..bytes.len()).step_by(step)) {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << (place % 8);
            fs::write(&path, &damaged)?;
            changed += 1;
            match replay(&folder) {
                Ok(snapshot) => {
                    let about = || format!("{name}, byte {place}: {:?}", snapshot.notes);
                    let located =
                        snapshot.notes.iter().any(|note| note.contains(name) && note.contains("byte"));
                    ensure!(located, about());
                    ensure!(sections(&snapshot) <= sections(&whole), about());
                }
                // The number of the recording, or the only state.
                Err(error) => {
                    ensure!(error.to_string().contains(name.as_str()), "{name}, byte {place}: {error}");
                }
            }
        }
        // Cut anywhere, it is read as far as it goes.
        for length in [0, 10, 31, 32, 40, bytes.len() / 3, bytes.len() - 1] {
            fs::write(&path, &bytes[..length])?;
            match replay(&folder) {
                Ok(snapshot) => {
                    ensure!(
                        snapshot.notes != whole.notes || bytes.len() == length,
                        "{name}, cut at {length}"
                    );
                }
                Err(error) if name == "run.nnt" => ensure!(error.to_string().contains("run"), "{error}"),
                Err(error) => bail!("{name}, cut at {length}: {error}"),
            }
        }
        fs::write(&path, &bytes)?;
    }
    assert!(changed > 400, "{changed}");
    Ok(())
}
