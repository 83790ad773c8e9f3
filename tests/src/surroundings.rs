//! Surroundings of the programs that tests start: the same, whatever shell, job or session runs the tests.

use std::{env, io, os::unix::process::CommandExt as _, process::Command};

use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};

/// Starts of the names of variables that change what programs print, whom they run as, or what they measure.
const VARIABLES: [&str; 20] = [
    "CLICOLOR",
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "GREP_",
    "LANG",
    "LC_",
    "LD_PRELOAD",
    "LINES",
    "MALLOC_",
    "NNTRACE_",
    "NO_COLOR",
    "OMP_",
    "OTEL_",
    "POSIXLY_CORRECT",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "SUDO_",
    "TMUX",
    "TERM",
];

/// Gives a command these surroundings: none of the variables above but those that it was given, the default action of every
/// signal, and none blocked. Under `nohup`, for one, SIGHUP is ignored, and every child inherits that.
pub fn set(command: &mut Command) -> &mut Command {
    let given: Vec<_> = command.get_envs().map(|(name, _)| name.to_owned()).collect();
    for (name, _) in env::vars_os() {
        let is_removed = VARIABLES.iter().any(|start| name.as_encoded_bytes().starts_with(start.as_bytes()));
        if is_removed && !given.contains(&name) {
            command.env_remove(name);
        }
    }
    // SAFETY: between fork and exec it makes system calls only, which allocate nothing and take no lock.
    unsafe { command.pre_exec(reset_signals) }
}

fn reset_signals() -> io::Result<()> {
    for number in Signal::iterator().filter(|number| !matches!(number, Signal::SIGKILL | Signal::SIGSTOP)) {
        // SAFETY: the default action runs no code of this process.
        unsafe { signal(number, SigHandler::SigDfl) }?;
    }
    Ok(sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?)
}
