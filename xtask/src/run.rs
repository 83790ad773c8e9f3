//! Running commands, as the user and as root.

use std::{
    env,
    error::Error,
    ffi::OsStr,
    fmt, fs,
    io::{IsTerminal, stdin},
    os::unix::fs::MetadataExt,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// Returns a command for the workspace's root directory.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    command
}

/// Returns the cargo that runs this task.
pub fn cargo(subcommand: &str) -> Command {
    let mut cargo = command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.arg(subcommand);
    cargo
}

/// Runs a command with its own output; fails when it fails.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{} does not start", shell(command)))?;
    if !status.success() {
        bail!("{} failed: {status}", shell(command));
    }
    Ok(())
}

/// Runs a command whose messages matter only when it fails, and returns its output.
pub fn quietly(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{} does not start", shell(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed: {}\n{}", shell(command), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether there is such a program.
pub fn on_path(program: &str) -> bool {
    env::split_paths(&env::var_os("PATH").unwrap_or_default()).any(|dir| dir.join(program).is_file())
}

/// Returns cargo's target directory: `target`, unless it was moved.
pub fn target_dir() -> Result<PathBuf> {
    let xtask = env::current_exe().context("the path of this program is not known")?;
    let target = xtask.ancestors().nth(2).context("this program does not lie in cargo's target directory")?;
    Ok(target.to_owned())
}

/// Error of a command that needs root's rights, which are not available here.
#[derive(Debug)]
pub struct NeedsRoot(String);

impl fmt::Display for NeedsRoot {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let why = if on_path("sudo") { "sudo is not allowed" } else { "there is no sudo" };
        write!(f, "this needs root, and {why} here; as root, run:\n  {}", self.0)
    }
}

impl Error for NeedsRoot {}

/// Gives a command root's rights: unchanged for root, through sudo for everybody else.
pub fn as_root(command: Command) -> Result<Command> {
    if is_root()? {
        return Ok(command);
    }
    let sudo = |option| {
        let mut sudo = Command::new("sudo");
        sudo.arg(option).arg("true");
        sudo
    };
    // Asks for a password only on a terminal.
    let allowed = quietly(&mut sudo("-n")).is_ok() || stdin().is_terminal() && run(&mut sudo("--")).is_ok();
    if !allowed {
        return Err(NeedsRoot(shell(&command)).into());
    }
    let mut sudo = self::command("sudo");
    sudo.arg("--").arg(command.get_program()).args(command.get_args());
    Ok(sudo)
}

/// Whether this process runs as root.
pub fn is_root() -> Result<bool> {
    Ok(fs::metadata("/proc/self").context("the user is not known: /proc/self")?.uid() == 0)
}

/// Formats a command as typed in a shell.
fn shell(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args()).map(quoted);
    words.collect::<Vec<_>>().join(" ")
}

/// Quotes a word for the shell, if needed.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "+,-./:=@_%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
