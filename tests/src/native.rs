//! Programs in C and C++ that write marks by `nntrace.h`: the sources in `tests/native`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

/// Built program, in a folder that is removed with it.
pub struct Program {
    path: PathBuf,
    _folder: TempDir,
}

impl Program {
    /// Builds an example from its only file in `tests/native`: `job-queue.cc`.
    ///
    /// # Errors
    /// When there is no compiler, or it refuses.
    pub fn build(file: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join(Path::new(file).with_extension(""));
        let flags: &[&str] = if is_cxx(file) {
            &["c++", "-std=c++11", "-O2"]
        } else {
            &["cc", "-std=c99", "-D_POSIX_C_SOURCE=200809L", "-O2"]
        };
        compile(flags, &[&source(file)], &path)?;
        Ok(Self { path, _folder: folder })
    }

    /// Returns the path of the program.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Returns the path of a file in `tests/native`.
#[must_use]
pub fn source(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("native").join(file)
}

/// Compiles and links, with all warnings; the first word is the compiler.
///
/// # Errors
/// When it is not installed, or refuses.
pub fn compile(words: &[&str], sources: &[&Path], out: &Path) -> Result<()> {
    const INCLUDE: &str = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../nntrace-common/include");
    const HERE: &str = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/native");
    let (compiler, flags) = words.split_first().context("the compiler is the first word")?;
    let mut command = Command::new(compiler);
    command.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-pthread"]);
    // A folder of the caller comes first.
    command.args(flags.iter().filter(|flag| flag.starts_with("-I"))).args([INCLUDE, HERE]);
    command.arg("-o").arg(out).args(sources).args(flags);
    let ended =
        command.output().with_context(|| format!("{compiler}: run `cargo xtask test`, which installs it"))?;
    ensure!(ended.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&ended.stderr));
    Ok(())
}

/// Writes the header as it was before its mark function had a second cheap place, into a folder of its own; returns
/// the compiler flag for that folder.
///
/// # Errors
/// When the header cannot be read or written, or has another function.
pub fn older_header(folder: &Path) -> Result<String> {
    const HEADER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../nntrace-common/include/nntrace.h");
    let mut text = std::fs::read_to_string(HEADER).context(HEADER)?;
    for (now, before) in [("0x00, 0x90, 0xc3", "0x00, 0xc3"), ("0xccc3900000441f0f", "0xccccc30000441f0f")] {
        ensure!(text.matches(now).count() == 1, "{HEADER} has not one {now}");
        text = text.replace(now, before);
    }
    let include = folder.join("older");
    std::fs::create_dir_all(&include)?;
    std::fs::write(include.join("nntrace.h"), text)?;
    Ok(format!("-I{}", include.display()))
}

fn is_cxx(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|extension| extension == "cc")
}
