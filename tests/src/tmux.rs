//! Terminal for tests: tmux, without any user's settings.

use std::{
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use crate::{surroundings, wait};

/// Prompt of the shell when it waits for a command.
pub const PROMPT: &str = "ready>";

/// Terminal with a shell in it. When it is dropped, everything in it is hung up.
pub struct Tmux {
    folder: TempDir,
}

impl Tmux {
    /// Whether tmux is installed.
    #[must_use]
    pub fn is_installed() -> bool {
        Command::new("tmux").arg("-V").output().is_ok_and(|output| output.status.success())
    }

    /// Starts a terminal of this size.
    ///
    /// # Errors
    /// When tmux fails.
    pub fn start(width: u16, height: u16) -> Result<Self> {
        let tmux = Self { folder: tempfile::tempdir()? };
        let (width, height) = (width.to_string(), height.to_string());
        let shell = format!("env PS1='{PROMPT} ' LC_ALL=C.UTF-8 sh");
        tmux.call(&["new-session", "-d", "-x", &width, "-y", &height, &shell])?;
        tmux.wait_for("the prompt", |screen| screen.contains(PROMPT))?;
        Ok(tmux)
    }

    /// Returns a folder for the test's files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Types a line.
    ///
    /// # Errors
    /// When tmux fails.
    pub fn line(&self, text: &str) -> Result<()> {
        self.call(&["send-keys", "-l", text])?;
        self.key("Enter")
    }

    /// Presses a key, by tmux's name for it.
    ///
    /// # Errors
    /// When tmux fails.
    pub fn key(&self, key: &str) -> Result<()> {
        self.call(&["send-keys", key]).map(drop)
    }

    /// Changes the size.
    ///
    /// # Errors
    /// When tmux fails.
    pub fn resize(&self, width: u16, height: u16) -> Result<()> {
        self.call(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]).map(drop)
    }

    /// Returns the contents of the screen.
    ///
    /// # Errors
    /// When tmux fails.
    pub fn screen(&self) -> Result<String> {
        self.call(&["capture-pane", "-p"])
    }

    /// Contents of the screen, with the escape sequences of its colours, as a terminal of the same size takes it.
    ///
    /// # Errors
    /// When tmux fails.
    pub fn coloured_screen(&self) -> Result<String> {
        let lines = self.call(&["capture-pane", "-p", "-e"])?;
        Ok(lines.trim_end_matches('\n').replace('\n', "\r\n"))
    }

    /// A value that tmux knows, such as `alternate_on`.
    ///
    /// # Errors
    /// When tmux fails.
    pub fn value(&self, name: &str) -> Result<String> {
        Ok(self.call(&["display-message", "-p", &format!("#{{{name}}}")])?.trim().to_owned())
    }

    /// Waits until the screen is as wanted, and returns it.
    ///
    /// # Errors
    /// When it does not become so; the message contains the last screen.
    pub fn wait_for(&self, what: &str, mut wanted: impl FnMut(&str) -> bool) -> Result<String> {
        let mut last = String::new();
        wait::until(what, || {
            last = self.screen()?;
            Ok(wanted(&last).then(|| last.clone()))
        })
        .with_context(|| format!("the screen is\n{}", self.screen().unwrap_or_default()))
    }

    fn call(&self, words: &[&str]) -> Result<String> {
        let output = self.tmux(words)?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "tmux {}: {errors}", words.join(" "));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn tmux(&self, words: &[&str]) -> Result<Output> {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.folder.path().join("socket")).args(["-f", "/dev/null"]);
        command.args(words).env("TERM", "xterm-256color");
        surroundings::set(&mut command).output().context("cannot run tmux")
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // Without a server there is nothing to end.
        let _ = self.tmux(&["kill-server"]);
    }
}
