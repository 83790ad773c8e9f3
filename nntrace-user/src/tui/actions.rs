//! Actions of the user.

use super::{pace::Pace, view_list::View};

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
    /// Whether only some views support it.
    #[must_use]
    pub(crate) const fn is_of_views(self) -> bool {
        self.sorts() || matches!(self, Self::Open | Self::Travel(_) | Self::Filter)
    }

    /// Whether it changes the order of a list.
    #[must_use]
    pub(crate) const fn sorts(self) -> bool {
        matches!(self, Self::NextSort | Self::ReverseSort)
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

/// Overlay on a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overlay {
    /// The keys.
    Help,
    /// Notes, losses and diagnostics.
    Diagnostics,
}
