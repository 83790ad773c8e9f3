//! Options on engines: which are probed, and in which detail.

use std::path::PathBuf;

use nntrace_user::live::{
    engine_probes::{EngineLevel, EngineOptions},
    hooks::Hooks,
    itt,
};

use super::help_headings::MARKS;
use crate::logging;

/// Name that stands for no engine.
const NONE: &str = "none";

/// Engines.
#[derive(Clone, Debug, clap::Args)]
pub struct EngineSelection {
    /// Engine to look for, or none; default: all known ones
    ///
    /// An engine, such as ONNX Runtime, is recognized by the content of the files that a target maps, and its own
    /// functions become sections: no change of the target is needed. May be given several times.
    #[arg(long = "engine", value_name = "NAME", help_heading = MARKS, hide_short_help = true)]
    pub engine_names: Vec<String>,

    /// Detail of engines: run, or op for operators too
    #[arg(long = "engine-level", value_enum, value_name = "LEVEL", default_value_t = Level::Run, help_heading = MARKS,
          hide_possible_values = true, hide_short_help = true)]
    pub engine_level: Level,

    /// Mark operators inside the command, at much lower cost than with probes
    ///
    /// A library that is preloaded into the command and its children replaces the addresses of operators' functions in an
    /// engine's data. Implies --engine-level op. Whatever it cannot reach is probed.
    #[arg(long, help_heading = MARKS, hide_short_help = true)]
    pub hooks: bool,

    /// Engine map, which adds an engine or replaces one
    #[arg(long = "map", value_name = "FILE", help_heading = MARKS, hide_short_help = true)]
    pub maps: Vec<PathBuf>,
}

/// Detail of engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Level {
    /// Loading of models, and whole runs
    Run,
    /// Each operator too
    Op,
}

impl EngineSelection {
    /// Whether no engine is wanted.
    #[must_use]
    pub fn is_none(&self) -> bool {
        !self.engine_names.is_empty() && self.engine_names.iter().all(|name| name == NONE)
    }

    /// Whether operators are probed too.
    #[must_use]
    pub fn has_operators(&self) -> bool {
        self.level() == Level::Op
    }

    fn level(&self) -> Level {
        if self.hooks { Level::Op } else { self.engine_level }
    }

    /// Returns the detail of tasks that libraries show by ITT, if it is less than all.
    #[must_use]
    pub fn itt_level(&self) -> Option<&'static str> {
        let is_chosen = std::env::var_os(itt::LEVEL).is_some();
        (self.level() == Level::Run && !is_chosen).then_some("run")
    }

    /// Returns the engines to probe, or to hook.
    #[must_use]
    pub fn options(&self, hooks: Option<Hooks>) -> EngineOptions {
        let level = match self.level() {
            Level::Run => EngineLevel::Run,
            Level::Op => EngineLevel::Op,
        };
        let names: Vec<String> = self.engine_names.iter().filter(|name| *name != NONE).cloned().collect();
        let names = if self.engine_names.is_empty() { None } else { Some(names) };
        EngineOptions { names, maps: self.maps.clone(), level, announce: logging::announce, hooks }
    }
}
