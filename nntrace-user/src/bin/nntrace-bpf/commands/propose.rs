//! `nntrace-bpf engines --propose`: a map for a library that no map is for.

use std::{
    env,
    ffi::OsString,
    fs, io,
    os::fd::AsFd as _,
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use nntrace_user::{
    caller::FileRights,
    live::{engines::Proposal, examinations::examine_files_apart},
    model::plurals::counted,
    report::snapshot::Snapshot,
    small_file,
};
use tokio::runtime::Runtime;

use super::{fresh_run, own_run};
use crate::{arguments::usage, output, signals::EndSignals, stderr};

/// Files of the trial in its folder.
const MAP: &str = "trial.toml";
const SNAPSHOT: &str = "trial.json";

/// Bytes of a trial's snapshot at most.
const MOST_BYTES: u64 = 64 << 20;
/// Trials at most, and time of each.
const TRIALS: u32 = 3;
const LIMIT: Duration = Duration::from_secs(30);

/// Prints the proposed map of a library, after a trial with the command if there is one; returns the exit status, which is that of
/// the command.
pub fn run(targets: &[String], command: &[OsString]) -> Result<ExitCode> {
    let [library] = targets else {
        let example = "nntrace-bpf engines --propose libfoo.so -- ./app";
        return Err(usage(format!("name one library to propose a map for: {example}")));
    };
    let mut proposal = {
        let _examiners = examine_files_apart()?;
        Proposal::of(Path::new(library)).map_err(anyhow::Error::msg)?
    };
    let code = if command.is_empty() { 0 } else { try_with(&mut proposal, command)? };
    output::write_stdout(proposal.map().as_bytes())?;
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// How a trial ended.
struct Trial {
    code: i32,
    /// Whether it was ended because it took too long.
    is_too_long: bool,
}

/// Profiles the command with the trial map, again without the functions that were called too often if it takes too long;
/// returns its exit status.
fn try_with(proposal: &mut Proposal, command: &[OsString]) -> Result<i32> {
    let folder = fresh_run::scratch_folder()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut end = {
        let _inside = runtime.enter();
        EndSignals::catch()?
    };
    let mut trials_left = TRIALS;
    loop {
        trials_left -= 1;
        let Trial { code, is_too_long } = one_trial(proposal, command, &folder.path(), &runtime, &mut end)?;
        let seconds = LIMIT.as_secs();
        if !is_too_long {
            if code != 0 {
                stderr::message(format_args!(
                    "the command exited with status {code}; the map covers the calls up to then"
                ));
            }
            return Ok(code);
        }
        let left_out = if trials_left > 0 { proposal.leave_out_frequent() } else { 0 };
        if left_out == 0 {
            stderr::message(format_args!(
                "stopped the command after {seconds} s; the map covers the calls up to then"
            ));
            return Ok(0);
        }
        stderr::message(format_args!(
            "stopped the command after {seconds} s; starting it again without probes for {}, called too often",
            counted(left_out as u64, "candidate")
        ));
    }
}

fn one_trial(
    proposal: &mut Proposal,
    command: &[OsString],
    folder: &Path,
    runtime: &Runtime,
    end: &mut EndSignals,
) -> Result<Trial> {
    let (map, snapshot) = (folder.join(MAP), folder.join(SNAPSHOT));
    {
        let _rights = FileRights::of_caller().context("cannot act as the caller")?;
        // Labels of another trial stand for other functions.
        let _ = fs::remove_file(&snapshot);
        fs::write(&map, proposal.trial_map()).with_context(|| format!("cannot write {}", map.display()))?;
    }
    let mut json = OsString::from("--json=");
    json.push(&snapshot);
    let program = env::current_exe().context("cannot find this program")?;
    let child = Command::new(&program)
        .args(["--engine", proposal.engine(), "--engine-level", "op", "--force", "--map"])
        .args([map.as_os_str(), &json, "--".as_ref()])
        .args(command)
        // The map is all that is printed.
        .stdout(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?))
        .spawn();
    let child = child.with_context(|| format!("cannot start {}", program.display()))?;
    let ended = runtime.block_on(own_run::wait(child, end, Some(LIMIT)))?;
    let code = ended.code();
    if ended.is_interrupted {
        bail!("ended by a signal: nothing is proposed");
    }
    let read = {
        let _rights = FileRights::of_caller().context("cannot act as the caller")?;
        small_file::read(&snapshot, MOST_BYTES)
    };
    let Ok(read) = read else {
        bail!("the command was not profiled (exit status {code}); leave it out to rank by names alone");
    };
    let snapshot: Snapshot = serde_json::from_slice(&read).context("cannot read the trial's results")?;
    let rows = snapshot.functions.iter().map(|row| (row.name.as_str(), row.count, row.total_ns));
    ensure!(
        proposal.take_calls(rows),
        "the command called no candidate (exit status {code}): name the file that it loads, or leave it out to rank by names alone"
    );
    Ok(Trial { code, is_too_long: ended.is_too_long })
}
