//! Options of a run on engines: which are looked for, and how their operators are recorded.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::{
    live::{
        engines::{
            catalog::{Catalog, UnknownEngine},
            probe::Level,
        },
        hooks::Hooks,
        target::ObjectId,
    },
    small_file,
};

/// Engines that a run looks for.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Names of the engines; `None`: all that are known.
    pub names: Option<Vec<String>>,
    /// Files with maps, which add engines or replace them.
    pub maps: Vec<PathBuf>,
    /// How operators are recorded.
    pub operators: Operators,
    /// Takes what the user has to know before it happens.
    pub announce: fn(&str),
}

/// How operators are recorded.
#[derive(Clone, Debug)]
pub enum Operators {
    /// Not at all.
    Off,
    /// By hooks, and by no probes on the CPU's own operators, which would take many times longer than the hooks.
    Hooked(Hooks),
    /// Not at all, as they would need probes: for this reason there are no hooks.
    WouldNeedProbes(String),
    /// By hooks if there are any, and by probes where these do not reach.
    All(Option<Hooks>),
}

impl Operators {
    /// Returns the level of the functions that are looked for.
    pub(super) const fn level(&self) -> Level {
        match self {
            Self::Off | Self::WouldNeedProbes(_) => Level::Run,
            Self::Hooked(_) | Self::All(_) => Level::Op,
        }
    }

    /// Returns the hooks.
    pub(super) const fn hooks(&self) -> Option<&Hooks> {
        match self {
            Self::Hooked(hooks) | Self::All(Some(hooks)) => Some(hooks),
            Self::Off | Self::WouldNeedProbes(_) | Self::All(None) => None,
        }
    }
}

impl Default for EngineOptions {
    /// No engine.
    fn default() -> Self {
        Self { names: Some(Vec::new()), maps: Vec::new(), operators: Operators::Off, announce: |_| {} }
    }
}

/// Reason why the engines of a run are unknown.
#[derive(Debug, Error)]
pub enum EngineError {
    /// A map cannot be read.
    #[error("cannot read the engine map {}: {source}; check the path and its permissions", path.display())]
    Unreadable {
        /// Path of the map.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A map has no engine that can be used.
    #[error("{}", errors.join("\n"))]
    Map {
        /// Errors, each with file and line.
        errors: Vec<String>,
    },
    /// No engine has this name.
    #[error("{0}")]
    Unknown(String),
}

impl EngineOptions {
    /// Returns the identity of the library that targets load for the hooks.
    pub(crate) fn own_library(&self) -> Option<ObjectId> {
        self.operators.hooks().map(Hooks::id)
    }

    /// Reads the maps; returns the engines, and remarks on entries of maps that are left out.
    pub(super) fn catalog(&self) -> Result<(Catalog, Vec<String>), EngineError> {
        let mut catalog = Catalog::compiled_in();
        let mut notes = Vec::new();
        for path in &self.maps {
            let text = small_file::read_text(path, small_file::DESCRIPTION)
                .map_err(|source| EngineError::Unreadable { path: path.clone(), source })?;
            let before = catalog.names().len();
            let errors: Vec<String> =
                catalog.add(&path.display().to_string(), &text).iter().map(ToString::to_string).collect();
            if !errors.is_empty() && catalog.names().len() <= before && !names_any(&catalog, path) {
                return Err(EngineError::Map { errors });
            }
            notes.extend(errors);
        }
        if let Some(names) = &self.names {
            catalog.keep(names).map_err(|error: UnknownEngine| EngineError::Unknown(error.to_string()))?;
        }
        Ok((catalog, notes))
    }
}

/// Whether any engine of a catalog is from this file.
fn names_any(catalog: &Catalog, path: &Path) -> bool {
    let path = path.display().to_string();
    catalog.maps().iter().any(|map| *map.line.map == *path)
}
