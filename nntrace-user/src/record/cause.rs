//! Reasons for which the last seconds of a run were written.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Reason for which the last seconds of a run are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A section took as long as a trigger says.
    Section {
        /// Trigger, as it was given.
        trigger: String,
        /// Name of the section.
        name: String,
        /// Its thread.
        tid: u32,
        /// Its end, ns.
        end_ns: u64,
        /// Its duration, ns.
        duration_ns: u64,
    },
    /// Records were lost.
    Lost {
        /// Number of records that were lost so far.
        records: u64,
    },
    /// The signal came.
    Signal,
    /// The user asked for it by a key.
    Key,
}

impl Cause {
    /// Returns the cause as text, with times since a begin (ns).
    pub(super) fn text(&self, begin: u64) -> String {
        match self {
            Self::Section { trigger, name, tid, end_ns, duration_ns } => format!(
                "{name} of thread {tid} took {}, which --trigger '{trigger}' waits for; it ended {} after the begin of the run",
                Seconds(*duration_ns),
                Seconds(end_ns.saturating_sub(begin))
            ),
            Self::Lost { records } => {
                format!("records were lost, {records} so far, which --trigger lost waits for")
            }
            Self::Signal => "SIGUSR2 came".into(),
            Self::Key => "a key was pressed".into(),
        }
    }
}

/// Time as people read it: seconds or milliseconds, to three digits after the point.
pub(super) struct Seconds(pub(super) u64);

impl fmt::Display for Seconds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(ns) = *self;
        let (unit, name) = if ns < 1_000_000_000 { (1_000_000, "ms") } else { (1_000_000_000, "s") };
        write!(formatter, "{}.{:03} {name}", ns / unit, ns % unit / (unit / 1_000))
    }
}
