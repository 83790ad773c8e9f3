//! Steps through the events of a binary file, whatever its format.

use super::{ftrace::Event, losses::Loss};

/// Result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// An event, for [`Steps::event`].
    Event,
    /// Events are missing.
    Lost(Loss),
    /// Some of the file could not be read.
    Cut(String),
    /// The events have ended.
    End,
}

/// Events of a binary file.
pub(crate) trait Steps {
    /// Advances by one step.
    fn advance(&mut self) -> Step;
    /// Returns the time of the current event, ns.
    fn time(&self) -> u64;
    /// Returns the current event.
    fn event(&mut self) -> Option<Event<'_>>;
}
