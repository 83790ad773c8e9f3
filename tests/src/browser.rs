//! Headless Chromium, in which people would open what is written.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use serde::de::DeserializeOwned;

use crate::{binaries, child::Child, wheels};

/// The browser, driven by a script for node.
pub struct Browser {
    program: PathBuf,
}

impl Browser {
    /// Returns the browser of Debian's package; `None`, with a message, where it is missing.
    ///
    /// # Errors
    /// When it is missing, and live tests are required.
    pub fn find() -> Result<Option<Self>> {
        let program = Path::new("/usr/bin/chromium");
        let found = wheels::found(program.exists().then(|| program.to_owned()), program)?;
        Ok(found.map(|program| Self { program }))
    }

    /// Opens and uses a report; returns what was seen. Pictures of it are in [`pictures`] under this name.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn use_report<T: DeserializeOwned>(&self, report: &Path, name: &str, searched: &str) -> Result<T> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser/report.cjs");
        let pictures = pictures()?.join(name);
        fs::create_dir_all(&pictures).with_context(|| pictures.display().to_string())?;
        let mut command = Command::new("node");
        command.env("CHROMIUM", &self.program);
        command.arg(script).arg(report).arg(&pictures).arg(searched);
        let ended = Child::run(&mut command).context("node, of Debian's package nodejs")?.expect_code(0)?;
        serde_json::from_slice(&ended.stdout).context("what was seen is no JSON of this kind")
    }
}

/// Returns the folder of pictures that tests take, for people to look at.
///
/// # Errors
/// When this program is not where cargo puts such.
pub fn pictures() -> Result<PathBuf> {
    let target = binaries::profile_dir()?;
    Ok(target.parent().context("it is in a folder")?.join("pictures"))
}
