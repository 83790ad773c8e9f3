//! `--verify` on the running kernel.

use anyhow::{Context as _, Result};
use nntrace_tests::{live, profiler::Profiler};
use nntrace_user::report::snapshot::VerifiedFigure;

#[test]
fn the_kernel_counts_what_we_count() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let run = Profiler::new()?.args(["--marks", "none", "--verify", "--duration", "3s"]).run()?;
    let verify = run.snapshot.verify.context("no comparison in the snapshot")?;
    for row in &verify.rows {
        println!("{row:?}");
    }
    println!("{:?}", verify.notes);
    assert!(verify.passes, "{:#?}", verify.rows.iter().filter(|row| !row.passes).collect::<Vec<_>>());
    run.ended.expect_code(0)?;
    // Every state of a driver is compared.
    let folder = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cpuidle").into_iter().flatten().flatten();
    let states = folder.filter(|entry| entry.file_name().to_string_lossy().starts_with("state")).count();
    let compared =
        verify.rows.iter().filter(|row| row.cpu == 0 && row.what == VerifiedFigure::IdleTime).count();
    assert_eq!(compared, states);
    assert_eq!(verify.notes.iter().any(|note| note.contains("cpuidle")), states == 0);
    Ok(())
}
