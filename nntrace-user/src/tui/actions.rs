//! Actions of the user.

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
    /// Sort by the next column.
    NextSort,
    /// Sort the other way round.
    ReverseSort,
    /// Keep the numbers still, or go on.
    Pause,
    /// Write the recording of the last seconds.
    Write,
    /// Stop the program until the shell continues it.
    Suspend,
}

impl Action {
    /// Whether it does anything in `view`: the CPUs have an order of their own.
    #[must_use]
    pub(crate) const fn applies_to(self, view: View) -> bool {
        !(matches!(view, View::Cpus) && matches!(self, Self::NextSort | Self::ReverseSort))
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
}

impl View {
    /// Every view.
    pub(crate) const ALL: [Self; 3] = [Self::Phases, Self::Cpus, Self::Stacks];

    /// The word on its tab.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Phases => "Phases",
            Self::Cpus => "CPUs",
            Self::Stacks => "Stacks",
        }
    }

    pub(super) const fn next(self) -> Self {
        match self {
            Self::Phases => Self::Cpus,
            Self::Cpus => Self::Stacks,
            Self::Stacks => Self::Phases,
        }
    }

    pub(super) const fn previous(self) -> Self {
        // Of three, the one before is the one after the next.
        self.next().next()
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
