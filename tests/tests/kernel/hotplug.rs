//! A CPU that goes offline and comes back during a measurement.

use std::{fs, path::PathBuf, thread, time::Duration};

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use nntrace_tests::{live, profiler::Profiler};
use nntrace_user::live::clock;

/// A CPU that is offline until this is dropped.
struct Offline {
    file: PathBuf,
}

impl Offline {
    fn take(file: PathBuf) -> Result<Self> {
        // Created first: whatever happens, the CPU comes back.
        let offline = Self { file };
        fs::write(&offline.file, "0").with_context(|| format!("{} refuses", offline.file.display()))?;
        Ok(offline)
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.file, "1") {
            eprintln!("{} is left at 0: {error}", self.file.display());
        }
    }
}

#[test]
fn a_cpu_is_offline_for_as_long_as_it_was() -> Result<()> {
    const AWAY: Duration = Duration::from_millis(300);
    let Some(_live) = live::enter()? else { return Ok(()) };
    let list = fs::read_to_string("/sys/devices/system/cpu/online")?;
    let cpu = *nntrace_user::model::cpu_list::parse(&list)?.last().context("no CPU is online")?;
    let file = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/online"));
    if cpu == 0 || !file.exists() {
        println!("no CPU of this machine can go offline: nothing to show here");
        return Ok(());
    }
    let attached = Profiler::new()?.args(["--marks", "none", "--verify"]).attach()?;
    let asked = clock::now();
    let offline = Offline::take(file)?;
    let gone = clock::now();
    thread::sleep(AWAY);
    let called = clock::now();
    drop(offline);
    let back = clock::now();
    thread::sleep(AWAY);
    attached.signal(Signal::SIGINT)?;
    let run = attached.finish()?;
    let (least, most) = (called - gone, back - asked);
    let row = run.snapshot.cpus.iter().find(|row| row.cpu == cpu).context("no row of that CPU")?;
    println!("offline for {} ns, between {least} and {most}", row.offline_ns);
    assert!((least..=most).contains(&row.offline_ns), "not between {least} and {most}: {row:?}");
    let verify = run.snapshot.verify.as_ref().context("no comparison")?;
    assert!(verify.passes && verify.rows.is_empty(), "{verify:?}");
    let why = format!("CPU {cpu} came or went");
    assert!(verify.notes.iter().any(|note| note.contains(&why)), "{:?}", verify.notes);
    // It came back, and had events.
    let done: u64 = row.running.iter().map(|row| row.ns).chain(row.idle.iter().map(|row| row.ns)).sum();
    assert_eq!(done, run.snapshot.window.length_ns() - row.offline_ns, "{row:?}");
    for cluster in run.snapshot.clusters.iter().filter(|row| row.cpus.len() > 1) {
        assert_eq!(
            (cluster.offline_ns, cluster.unknown_ns),
            (0, 0),
            "another CPU of it was there: {cluster:?}"
        );
    }
    Ok(())
}
