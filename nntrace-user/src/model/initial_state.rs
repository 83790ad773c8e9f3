//! The state of the CPUs when the window begins, as far as it is known from elsewhere than their events in it.

use std::collections::BTreeMap;

use nntrace_common::power::Activity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of all CPUs at the begin of the window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitialState {
    /// By CPU; of one that is not here nothing is known.
    pub cpus: BTreeMap<u32, InitialCpu>,
}

/// The state of one CPU at the begin of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitialCpu {
    /// Activity; `None`: its first event shows it.
    pub activity: Option<Activity>,
    /// Source of the activity.
    pub idle: IdleSource,
    /// Requested frequency, kHz; `None` where it is not known.
    pub khz: Option<u32>,
    /// Source of the frequency.
    pub frequency: FrequencySource,
}

/// Source of the activity of a CPU at the begin of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdleSource {
    /// An event that came after the programs were attached and before the window began.
    Event,
    /// The kernel's run queue of that CPU.
    Kernel,
    /// The kernel's list of CPUs that are online: this one was not.
    Sysfs,
    /// Its first event in the window: before one that enters an idle state it ran, before one that leaves one it was
    /// idle.
    FirstEvent,
    /// No source.
    #[default]
    Unknown,
}

/// Source of the frequency that was requested when the window began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FrequencySource {
    /// An event that came after the programs were attached and before the window began.
    Event,
    /// `scaling_cur_freq` of the policy.
    Sysfs,
    /// No source.
    #[default]
    Unknown,
}

impl InitialState {
    /// The state of one CPU.
    #[must_use]
    pub(crate) fn of(&self, cpu: u32) -> InitialCpu {
        self.cpus.get(&cpu).copied().unwrap_or_default()
    }
}

impl InitialCpu {
    /// Whether it is known to have been idle.
    #[must_use]
    pub(crate) const fn was_asleep(&self) -> bool {
        matches!(self.activity, Some(Activity::Idle(_) | Activity::IdleUnknown))
    }
}
