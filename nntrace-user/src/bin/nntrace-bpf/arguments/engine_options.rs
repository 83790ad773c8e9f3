//! Options on engines: which are probed, and in which detail.

use std::path::PathBuf;

use nntrace_user::live::{
    engine_probes::{EngineOptions, Operators},
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

    /// Detail of engines: run, or op for operators too; default: run, and the operators that hooks mark
    ///
    /// Hooks mark the operators of a command for tens of ns each (docs/hooks.md). Operators that they do not reach are recorded
    /// with op only, by probes that take microseconds each.
    #[arg(long = "engine-level", value_enum, value_name = "LEVEL", help_heading = MARKS, hide_possible_values = true,
          hide_short_help = true)]
    pub engine_level: Option<Level>,

    /// Fail if operators cannot be marked by hooks; implies --engine-level op
    ///
    /// A library that is preloaded into the command and its children replaces the addresses of operators' functions in an
    /// engine's data. Operators that it does not reach are probed.
    #[arg(long, conflicts_with = "no_hooks", help_heading = MARKS, hide_short_help = true)]
    pub hooks: bool,

    /// Preload no library into the command: with --engine-level op, all operators are probed
    #[arg(long, help_heading = MARKS, hide_short_help = true)]
    pub no_hooks: bool,

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

    /// Whether operators are asked for, whatever they cost.
    #[must_use]
    pub fn asks_for_operators(&self) -> bool {
        self.level() == Some(Level::Op)
    }

    /// Whether hooks are wanted, if there is a command for them.
    #[must_use]
    pub fn wants_hooks(&self) -> bool {
        !self.no_hooks && !self.is_none() && self.level() != Some(Level::Run)
    }

    fn level(&self) -> Option<Level> {
        if self.hooks { Some(Level::Op) } else { self.engine_level }
    }

    /// Returns the detail of tasks that libraries show by ITT, if it is less than all: they cost as little as hooks.
    #[must_use]
    pub fn itt_level(&self) -> Option<&'static str> {
        let is_chosen = std::env::var_os(itt::LEVEL).is_some();
        (self.level() == Some(Level::Run) && !is_chosen).then_some("run")
    }

    /// Returns the engines to probe, or to hook; without hooks, `hooks` has the reason.
    #[must_use]
    pub fn options(&self, hooks: Result<Hooks, String>) -> EngineOptions {
        let operators = match (self.level(), hooks) {
            (Some(Level::Run), _) => Operators::Off,
            (Some(Level::Op), hooks) => Operators::All(hooks.ok()),
            (None, Ok(hooks)) => Operators::Hooked(hooks),
            (None, Err(reason)) => Operators::WouldNeedProbes(reason),
        };
        let names: Vec<String> = self.engine_names.iter().filter(|name| *name != NONE).cloned().collect();
        let names = if self.engine_names.is_empty() { None } else { Some(names) };
        EngineOptions { names, maps: self.maps.clone(), operators, announce: logging::announce }
    }
}
