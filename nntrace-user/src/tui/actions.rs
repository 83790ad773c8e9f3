//! Actions of the user.

use super::pace::Pace;

/// Action of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Leave the program.
    Quit,
    /// Close the overlay; leave the program when there is none.
    Back,
    /// Show the next view.
    NextView,
    /// Show the previous view.
    PreviousView,
    /// Show this view.
    Show(View),
    /// Open this overlay, or close it.
    Toggle(Overlay),
    /// Move in the list, or scroll the overlay.
    Move(Motion),
    /// Move the cursor of the timeline, or zoom.
    Travel(Travel),
    /// Sort by the next column.
    NextSort,
    /// Sort the other way round.
    ReverseSort,
    /// Keep the numbers still, or go on.
    Pause,
    /// Show new numbers more often, or less often.
    Interval(Pace),
    /// Show the functions of the selected phase, or of the innermost phase of the selected stack; on a function, open or close
    /// its details; on a section, open its function.
    Open,
    /// Type a part of the names of the functions that are shown.
    Filter,
    /// Write the recording of the last seconds.
    Write,
    /// Write the snapshot that is shown to a file.
    Export,
    /// Stop the program until the shell continues it.
    Suspend,
}

impl Action {
    /// Whether it does anything in `view`: the CPUs, for one, have an order of their own.
    #[must_use]
    pub(crate) const fn applies_to(self, view: View) -> bool {
        match self {
            Self::NextSort | Self::ReverseSort => !matches!(view, View::Cpus | View::Timeline),
            Self::Open => matches!(view, View::Phases | View::Stacks | View::Functions | View::Timeline),
            Self::Travel(_) => matches!(view, View::Timeline),
            Self::Filter => matches!(view, View::Functions),
            _ => true,
        }
    }
}

/// A movement in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    /// One line up.
    Up,
    /// One line down.
    Down,
    /// One page up.
    PageUp,
    /// One page down.
    PageDown,
    /// To the first line.
    First,
    /// To the last line.
    Last,
}

/// A movement in the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Travel {
    /// The cursor goes a column to the left.
    Earlier,
    /// The cursor goes a column to the right.
    Later,
    /// The cursor goes to the begin of a section before it.
    PreviousSection,
    /// The cursor goes to the begin of the next section.
    NextSection,
    /// Half the time is on the screen.
    ZoomIn,
    /// Twice the time is on the screen.
    ZoomOut,
}

/// The views, in the order of their tabs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum View {
    /// Time by layer and phase.
    #[default]
    Phases,
    /// States of CPUs and clusters.
    Cpus,
    /// Time by stack.
    Stacks,
    /// Time by function.
    Functions,
    /// States of threads.
    Threads,
    /// Energy by cluster, layer and phase.
    Energy,
    /// Sections and states of threads over time.
    Timeline,
}

impl View {
    /// Every view.
    pub(crate) const ALL: [Self; 7] = [
        Self::Phases,
        Self::Cpus,
        Self::Stacks,
        Self::Functions,
        Self::Threads,
        Self::Energy,
        Self::Timeline,
    ];

    /// The word on its tab.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Phases => "Phases",
            Self::Cpus => "CPUs",
            Self::Stacks => "Stacks",
            Self::Functions => "Functions",
            Self::Threads => "Threads",
            Self::Energy => "Energy",
            Self::Timeline => "Timeline",
        }
    }

    pub(super) const fn next(self) -> Self {
        self.shifted(1)
    }

    pub(super) const fn previous(self) -> Self {
        self.shifted(Self::ALL.len() - 1)
    }

    /// The view this number of tabs further; the first follows the last.
    const fn shifted(self, tabs: usize) -> Self {
        Self::ALL[(self as usize + tabs) % Self::ALL.len()]
    }
}

/// Overlay on a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overlay {
    /// The keys.
    Help,
    /// Notes, losses and diagnostics.
    Diagnostics,
}
