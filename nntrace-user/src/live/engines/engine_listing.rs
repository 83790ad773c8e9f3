//! Engines in files and processes, for people: what is recognized, and what a run would probe.

use std::{
    io,
    path::{Path, PathBuf},
};

use nntrace_common::{engine::IN_MEMORY, mark::Prefix};
use serde::Serialize;

use super::{
    catalog::Catalog,
    examination::examine,
    probe::{End, EngineProbe, Kind, Level, NameForm},
    resolve::Resolved,
};
use crate::live::target::{ElfErrorReason, Objects, PinnedFile, Processes};

/// Maps of a survey: those that are compiled in, and the user's.
#[derive(Clone, Debug)]
pub struct EngineMaps(Catalog);

/// Known engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KnownEngine {
    /// Name, as `--engine` takes it.
    pub name: String,
    /// Libraries and interfaces that its map is for.
    pub parts: Vec<String>,
    /// Whether the project tests it on the real engine.
    pub is_tested: bool,
    /// Path of its map.
    pub map: String,
}

/// Engines that were found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Survey {
    /// Engines by file.
    pub engines: Vec<FoundEngine>,
    /// Number of files that were examined.
    pub examined: usize,
    /// Files that could not be examined, with the reason.
    pub failed: Vec<FailedFile>,
}

/// File that could not be examined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedFile {
    /// Path.
    pub file: PathBuf,
    /// Reason.
    pub reason: String,
}

/// Engine in a file.
#[derive(Clone, Debug, Serialize)]
pub struct FoundEngine {
    /// Path of the file, as the process that maps it has it.
    pub file: PathBuf,
    /// Path by which it can be opened here.
    pub path: PathBuf,
    /// Build id of the file.
    pub build_id: Option<String>,
    /// Name of the engine.
    pub engine: String,
    /// Parts of it that are in the file.
    pub parts: Vec<String>,
    /// Version, if it is known.
    pub version: Option<String>,
    /// Whether the recognition is `certain` or `likely`.
    pub sureness: String,
    /// Signs by which it was recognized.
    pub signs: Vec<String>,
    /// Whether the project tests these parts on the real engine.
    pub is_tested: bool,
    /// Functions to probe, at level `op`; those of level `run` are among them.
    pub probes: Vec<PlannedProbe>,
    /// Functions that are not probed, or not as the map wants it; each with the line of the map.
    pub notes: Vec<String>,
}

/// Function that a run would probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedProbe {
    /// Function.
    pub function: String,
    /// Level from which on: `run`, `op`.
    pub level: &'static str,
    /// Prefix, layer and phase of its sections, such as `[SUB]LR_PC`.
    pub mark: String,
    /// Meaning of a call: `section`, `bracket begin`, `bracket end`, `async begin`, `async end`.
    pub kind: &'static str,
    /// Name of its sections where none is read.
    pub name: String,
    /// Source of their names: argument register, offsets, form.
    pub name_from: Option<String>,
    /// Line of the map.
    pub map_line: String,
    /// File offset of the probe at its begin.
    pub entry: u64,
    /// Bytes that are on the stack there on top of what the caller left.
    pub entry_sp_offset: u32,
    /// Whether that instruction is emulated: no single step is needed.
    pub entry_is_emulated: bool,
    /// How the end is seen: `returns`, `return probe`, `stack pointer`, `none`.
    pub end: &'static str,
    /// File offsets of the probes at its returns.
    pub returns: Vec<u64>,
    /// Whether pool threads call it.
    pub on_workers: bool,
}

impl Default for EngineMaps {
    fn default() -> Self {
        Self(Catalog::compiled_in())
    }
}

impl EngineMaps {
    /// Adds the engines of a map file, in the place of those that have the same names; returns what is wrong with it,
    /// a line each.
    pub fn add(&mut self, path: &str, text: &str) -> Vec<String> {
        self.0.add(path, text).iter().map(ToString::to_string).collect()
    }

    /// Keeps the engines of these names.
    ///
    /// # Errors
    /// When there is none of a name.
    pub fn keep(&mut self, names: &[String]) -> Result<(), String> {
        self.0.keep(names).map_err(|error| error.to_string())
    }

    /// Returns the engines.
    #[must_use]
    pub fn known(&self) -> Vec<KnownEngine> {
        let known = |name: String| {
            let parts = || self.0.maps().iter().filter(|map| map.name == name);
            KnownEngine {
                parts: parts().map(|map| map.about.clone()).collect(),
                is_tested: parts().any(|map| map.is_tested),
                map: parts().next().map(|map| map.line.map.to_string()).unwrap_or_default(),
                name,
            }
        };
        self.0.names().into_iter().map(known).collect()
    }
}

impl Survey {
    /// Examines a file.
    pub fn file(&mut self, path: &Path, maps: &EngineMaps) {
        self.examine(PinnedFile::at(path), path, maps);
    }

    /// Examines the files whose code a process has mapped.
    ///
    /// # Errors
    /// When there is no such process, or it may not be inspected.
    pub fn process(&mut self, pid: u32, maps: &EngineMaps) -> Result<(), String> {
        let processes = Processes::default();
        let process = processes.by_pid(pid).map_err(|error| error.to_string())?;
        let mapped = Objects::mapped_by(&processes, process.pid).map_err(|error| error.to_string())?;
        for object in &mapped.objects {
            self.examine(object.pin(), &object.display_path, maps);
        }
        self.failed.extend(
            mapped
                .failed
                .into_iter()
                .map(|file| FailedFile { file: file.display_path, reason: file.reason.to_string() }),
        );
        Ok(())
    }

    fn examine(&mut self, file: io::Result<PinnedFile>, shown: &Path, maps: &EngineMaps) {
        let examined = |file: PinnedFile| Ok((examine(&file, &maps.0, Level::Op, false)?, file));
        match file.map_err(ElfErrorReason::from).and_then(examined) {
            Ok((engines, file)) => {
                self.examined += 1;
                let found = |engine| FoundEngine::of(engine, shown, file.name());
                self.engines.extend(engines.into_iter().map(found));
            }
            Err(error) => {
                self.failed.push(FailedFile { file: shown.to_owned(), reason: error.to_string() });
            }
        }
    }
}

impl FoundEngine {
    fn of(resolved: Resolved, shown: &Path, path: &Path) -> Self {
        Self {
            file: shown.to_owned(),
            path: path.to_owned(),
            build_id: resolved.build_id,
            engine: resolved.engine,
            parts: resolved.parts,
            version: resolved.version.map(|version| version.to_string()),
            sureness: resolved.sureness.to_string(),
            signs: resolved.signs,
            is_tested: resolved.is_tested,
            probes: resolved.probes.into_iter().map(PlannedProbe::of).collect(),
            notes: resolved.notes.iter().map(ToString::to_string).collect(),
        }
    }
}

impl PlannedProbe {
    fn of(probe: EngineProbe) -> Self {
        let prefix = match probe.prefix {
            Prefix::None | Prefix::Handed | Prefix::Part => "",
            Prefix::Switch => "[SW]",
            Prefix::Subtract => "[SUB]",
        };
        let (end, returns) = match probe.end {
            End::Returns(returns) | End::SomeReturns(returns) => ("returns", returns),
            End::ReturnProbe => ("return probe", Vec::new()),
            End::StackPointer => ("stack pointer", Vec::new()),
            End::None => ("none", Vec::new()),
        };
        Self {
            function: probe.function,
            level: match probe.level {
                Level::Run => "run",
                Level::Op => "op",
            },
            mark: format!("{prefix}{}", probe.tag),
            kind: match probe.kind {
                Kind::Section => "section",
                Kind::BracketBegin => "bracket begin",
                Kind::BracketEnd => "bracket end",
                Kind::AsyncBegin { .. } => "async begin",
                Kind::AsyncEnd { .. } => "async end",
            },
            name: probe.fallback_name,
            name_from: probe.name.map(|name| {
                let form = match name.form {
                    NameForm::CString => "cstr",
                    NameForm::Inline => "inline",
                    NameForm::StdString => "std_string",
                    NameForm::LibcxxString => "libcxx_string",
                    NameForm::Enum => "enum",
                    NameForm::Tokens => "tokens",
                };
                let chain = &name.chain[..usize::from(name.length).min(name.chain.len())];
                let place = match name.argument {
                    IN_MEMORY => "argument in memory".to_owned(),
                    register => format!("argument register {register}"),
                };
                format!("{place}, offsets {chain:?}, {form}")
            }),
            map_line: probe.map_line.to_string(),
            entry: probe.entry,
            entry_sp_offset: probe.entry_sp_offset,
            entry_is_emulated: probe.entry_is_emulated,
            end,
            returns,
            on_workers: probe.on_workers,
        }
    }
}
