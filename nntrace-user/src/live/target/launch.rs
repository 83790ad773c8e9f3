//! Starting of a command to trace, held before its first instruction until the probes are in place.

pub(super) mod error;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::libc;

use self::error::LaunchError;
use super::command_lookup;
use super::held_command::Held;
use super::inherited_signals::InheritedSignals;
use crate::caller::{self, RunAs};

const PTRACE_SCOPE: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// Destination of a launched command's output.
#[derive(Debug, Default)]
pub enum ChildOutput {
    /// Our output, with our input.
    #[default]
    Inherit,
    /// Nowhere, without input: for use when we occupy the terminal.
    Null,
    /// A file for both streams, without input.
    File(File),
}

/// Command to start.
#[derive(Debug)]
pub struct Launch {
    argv: Vec<OsString>,
    output: ChildOutput,
    user: Option<RunAs>,
    variables: Vec<(OsString, OsString)>,
}

impl Launch {
    /// Creates a command from its words, to be run as ourselves, with our input and output.
    #[must_use]
    pub fn new(argv: &[OsString]) -> Self {
        Self { argv: argv.to_vec(), output: ChildOutput::default(), user: None, variables: Vec::new() }
    }

    /// Sets the destination of the output.
    #[must_use]
    pub fn output(mut self, output: ChildOutput) -> Self {
        self.output = output;
        self
    }

    /// Sets the user to run as: [`RunAs::sudo_caller`] is what a user of `sudo nntrace-bpf -- command` expects.
    #[must_use]
    pub fn run_as(mut self, user: Option<RunAs>) -> Self {
        self.user = user;
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Starts the command, and holds it before its first instruction.
    ///
    /// Only the calling thread can let it go on: for the kernel, that thread is its tracer, and the command is killed
    /// if the thread ends first. The command runs in our process group, so that the terminal's signals reach both. A
    /// set-user-ID program gets its rights only if we have `CAP_SYS_PTRACE`.
    ///
    /// # Errors
    /// When it is not found, may not or cannot be executed, or when holding it is not permitted.
    pub fn spawn(self) -> Result<Held, LaunchError> {
        let first = self.argv.first().ok_or(LaunchError::Empty)?;
        let program = command_lookup::find(first, std::env::var_os("PATH").as_deref())?;
        command_lookup::check_format(&program)?;
        let mut command = Command::new(&program);
        command.arg0(first).args(&self.argv[1..]);
        redirect(&mut command, self.output)
            .map_err(|source| LaunchError::Spawn { program: program.clone(), source })?;
        if let Some(user) = &self.user {
            for (name, value) in user.environment(|name| std::env::var_os(name)) {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
        }
        command.envs(self.variables);
        hold_at_exec(&mut command, self.user.as_ref())
            .map_err(|source| LaunchError::Spawn { program: program.clone(), source })?;
        let child = command.spawn().map_err(|source| explain(program, source, self.user.as_ref()))?;
        // Dropping the handle neither ends nor awaits the child: from here on that is done by its process id.
        Held::at_exec(child.id())
    }
}

fn redirect(command: &mut Command, output: ChildOutput) -> io::Result<()> {
    match output {
        ChildOutput::Inherit => {}
        ChildOutput::Null => {
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        }
        ChildOutput::File(file) => {
            command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        }
    }
    Ok(())
}

/// Makes the child treat signals as this process was started to, change to the user, and stop once it has executed the program.
fn hold_at_exec(command: &mut Command, user: Option<&RunAs>) -> io::Result<()> {
    let ids = user.map(|user| {
        let groups: Vec<libc::gid_t> = user.groups.iter().map(|group| group.as_raw()).collect();
        (groups, user.gid.as_raw(), user.uid.as_raw())
    });
    let is_confined = caller::confined().is_some();
    let signals = InheritedSignals::of_thread()?;
    let prepare = move || {
        signals.set()?;
        if let Some((groups, gid, uid)) = &ids {
            // SAFETY: plain system calls in the only thread of the child; the list of groups was made before the fork.
            checked(unsafe { libc::setgroups(groups.len(), groups.as_ptr()) })?;
            // SAFETY: as above.
            checked(unsafe { libc::setgid(*gid) })?;
            // SAFETY: as above.
            checked(unsafe { libc::setuid(*uid) })?;
        }
        if is_confined {
            // As when strace starts it: a program that would get privileges by its file does not get them.
            nix::sys::prctl::set_no_new_privs()?;
        }
        // A notification of its loader may have it stopped when we die: this lets it continue, and has no effect
        // otherwise.
        nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGCONT)?;
        nix::sys::ptrace::traceme().map_err(io::Error::from)
    };
    // SAFETY: between fork and exec the closure only makes async-signal-safe system calls: it takes no lock and
    // allocates nothing, and the memory it reads was made before the fork.
    unsafe { command.pre_exec(prepare) };
    Ok(())
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Explains an error of `exec`, or of the steps just before it.
fn explain(program: PathBuf, source: io::Error, user: Option<&RunAs>) -> LaunchError {
    match source.raw_os_error() {
        Some(libc::EACCES) => {
            let user = user.map_or_else(|| "the current user".to_owned(), RunAs::name);
            LaunchError::Permission { program, user }
        }
        Some(libc::ENOENT) => match command_lookup::interpreter(&program) {
            Some(interpreter) => LaunchError::NoInterpreter { program, interpreter },
            None => LaunchError::NoFile { program },
        },
        Some(libc::ENOEXEC) => {
            LaunchError::Format { program, why: "the kernel does not know such programs".to_owned() }
        }
        Some(libc::EPERM) => LaunchError::Refused { program, source, reason: refusal(user) },
        _ => LaunchError::Spawn { program, source },
    }
}

fn refusal(user: Option<&RunAs>) -> String {
    if let Ok(scope) = std::fs::read_to_string(Path::new(PTRACE_SCOPE)) {
        let scope = scope.trim();
        if matches!(scope, "2" | "3") {
            return format!(
                "{PTRACE_SCOPE} is {scope}, which forbids it; start the command first and use --pid"
            );
        }
    }
    let change = user.map(|user| format!("changing to {} needs CAP_SETUID and CAP_SETGID; ", user.name()));
    format!(
        "{}ptrace may be forbidden (by a container's seccomp filter, or because we are traced by it already); start the command first and use --pid",
        change.unwrap_or_default()
    )
}

/// Returns the words of a command, for [`Launch::new`].
#[cfg(test)]
pub(super) fn words<const N: usize>(words: [&str; N]) -> [OsString; N] {
    words.map(OsString::from)
}

#[cfg(test)]
mod tests;
