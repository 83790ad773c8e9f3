//! Programs and libraries in C and C++, compiled for a test.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use crate::child::Child;

/// Compiles a source of `tests/programs` into a program in this folder.
///
/// # Errors
/// When there is no compiler, or it refuses.
pub fn program(folder: &Path, source: &str) -> Result<PathBuf> {
    program_with(folder, source, &[])
}

/// As [`program`], with more flags for the compiler.
///
/// # Errors
/// When there is no compiler, or it refuses.
pub fn program_with(folder: &Path, source: &str, flags: &[&str]) -> Result<PathBuf> {
    let name = source.split('.').next().unwrap_or(source);
    compile(source, &folder.join(name), &[&["-ldl"], flags].concat())
}

/// Compiles a source of `tests/programs` into a library in this folder, `libNAME.so`.
///
/// # Errors
/// When there is no compiler, or it refuses.
pub fn library(folder: &Path, source: &str) -> Result<PathBuf> {
    let name = source.split('.').next().unwrap_or(source);
    compile(source, &folder.join(format!("lib{name}.so")), &["-shared", "-fPIC"])
}

fn compile(source: &str, to: &Path, flags: &[&str]) -> Result<PathBuf> {
    let is_cxx = Path::new(source).extension().is_some_and(|extension| extension == "cc");
    let compiler = if is_cxx { "c++" } else { "cc" };
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(source);
    let mut command = Command::new(compiler);
    command.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(to).arg(&from).args(flags);
    Child::run(&mut command)?
        .expect_code(0)
        .with_context(|| format!("{} does not compile", from.display()))?;
    Ok(to.to_owned())
}
