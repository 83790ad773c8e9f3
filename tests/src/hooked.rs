//! An engine whose operators can be hooked, and programs that call it: `tests/native/hooked`.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Result, ensure};
use nntrace_user::report::snapshot::Snapshot;
use tempfile::TempDir;

use crate::{
    child::Child,
    native,
    profiler::{Profiler, Run},
};

/// Returns the number of sections of the operators that the way `counts` calls.
#[must_use]
pub fn operators(snapshot: &Snapshot) -> u64 {
    let is_operator = |name: &str| name.ends_with("sum") || name == "product";
    snapshot.functions.iter().filter(|row| is_operator(&row.name)).map(|row| row.count).sum()
}

/// Built engine, with the programs that call it: `linked` with it, and `loads`, which loads it.
pub struct Hooked {
    folder: TempDir,
}

impl Hooked {
    /// Builds it.
    ///
    /// # Errors
    /// When a compiler fails.
    pub fn build() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let source = |name: &str| native::source("hooked").join(name);
        let at = |name: &str| folder.path().join(name);
        let library =
            ["c++", "-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-s", "-Wno-pedantic"];
        native::compile(&library, &[&source("engine.cc")], &at("libengine.so"))?;
        let search = format!("-L{}", folder.path().display());
        let linked = ["c++", "-std=c++17", "-O2", "-Wno-pedantic", &search, "-lengine", "-Wl,-rpath,$ORIGIN"];
        native::compile(&linked, &[&source("calls.cc")], &at("linked"))?;
        // The folder of the engine is known to the program alone, not to the library that stands in front of dlopen.
        let loads = [
            "c++",
            "-std=c++17",
            "-O2",
            "-Wno-pedantic",
            "-DLOADS",
            "-ldl",
            "-Wl,--enable-new-dtags,-rpath,$ORIGIN",
        ];
        native::compile(&loads, &[&source("calls.cc")], &at("loads"))?;
        fs::copy(source("engine.toml"), at("engine.toml"))?;
        Ok(Self { folder })
    }

    /// Returns the path of a file: a program, `libengine.so`, or the map `engine.toml`.
    #[must_use]
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the command that calls operators in one of the program's ways, in this many rounds.
    #[must_use]
    pub fn words(&self, program: &str, way: &str, rounds: u64) -> [PathBuf; 3] {
        [self.at(program), way.into(), rounds.to_string().into()]
    }

    /// Returns what a program prints without a profiler.
    fn plain(&self, program: &str, way: &str, rounds: u64) -> Result<String> {
        let [path, words @ ..] = self.words(program, way, rounds);
        Ok(Child::run(Command::new(path).args(words))?.expect_code(0)?.text())
    }

    /// Profiles a program with these options; it is to print what it prints without a profiler.
    ///
    /// # Errors
    /// When it prints something else, or a program fails.
    pub fn profile(&self, options: &[&str], program: &str, way: &str, rounds: u64) -> Result<Snapshot> {
        let plain = self.plain(program, way, rounds)?;
        let profiler = Profiler::new()?.args(options).args([PathBuf::from("--map"), self.at("engine.toml")]);
        let Run { snapshot, ended } = profiler.launch(self.words(program, way, rounds))?;
        let text = ended.expect_code(0)?.text();
        ensure!(text == plain, "{program} {way}: printed {text}, and without a profiler {plain}");
        Ok(snapshot)
    }

    /// Profiles a program with `--hooks`, which are to hook the engine.
    ///
    /// # Errors
    /// As of [`Hooked::profile`], and when the engine is not hooked.
    pub fn hooked(&self, program: &str, way: &str, rounds: u64) -> Result<Snapshot> {
        let snapshot = self.profile(&["--hooks"], program, way, rounds)?;
        let [engine] = &snapshot.source.engines[..] else {
            anyhow::bail!("{program} {way}: engines: {:?}; {:?}", snapshot.source.engines, snapshot.notes)
        };
        ensure!(engine.hooked >= 12, "{engine:?}");
        Ok(snapshot)
    }
}
