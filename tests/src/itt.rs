//! The collector of ITT tasks, and programs that show such: the sources in `nntrace-common/itt` and `tests/native`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use crate::native;

/// File name of the collector.
pub const LIBRARY: &str = "libnntrace-itt.so";
/// Variable by which programs find it.
pub const VARIABLE: &str = "INTEL_LIBITTNOTIFY64";

/// Compiled collector and program, in a folder that is removed with them.
pub struct Itt {
    folder: TempDir,
    program: PathBuf,
}

impl Itt {
    /// Compiles the collector, and a program of `tests/native`.
    ///
    /// # Errors
    /// When there is no compiler, or it refuses.
    pub fn build(source: &str) -> Result<Self> {
        const C99: [&str; 5] = ["cc", "-std=c99", "-D_POSIX_C_SOURCE=200809L", "-O2", "-ldl"];
        let folder = tempfile::tempdir()?;
        let program = folder.path().join(Path::new(source).with_extension(""));
        native::compile(&C99, &[&native::source(source)], &program)?;
        let own = Self { folder, program };
        compile(&own.library())?;
        Ok(own)
    }

    /// Returns the path of the collector.
    #[must_use]
    pub fn library(&self) -> PathBuf {
        self.folder.path().join(LIBRARY)
    }

    /// Returns the path of the program.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Returns the folder of both.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn compile(library: &Path) -> Result<()> {
    const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../nntrace-common/itt");
    const C11: [&str; 6] =
        ["cc", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O2", "-shared", "-fvisibility=hidden"];
    let mut sources = Vec::new();
    for entry in fs::read_dir(SOURCES).context(SOURCES)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "c") {
            sources.push(path);
        }
    }
    let sources: Vec<&Path> = sources.iter().map(PathBuf::as_path).collect();
    native::compile(&[&C11[..], &["-fPIC"]].concat(), &sources, library)
}
