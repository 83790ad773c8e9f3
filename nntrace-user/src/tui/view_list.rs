//! The list of the views.

/// Calls a macro with all views, in the order of their tabs: type, module, and the word on the tab.
macro_rules! for_each_view {
    ($define:ident) => {
        $define! {
            /// Time by layer and phase.
            Phases phases "Phases",
            /// States of CPUs and clusters.
            Cpus cpus "CPUs",
            /// Time by stack.
            Stacks stacks "Stacks",
            /// Time by function.
            Functions functions "Functions",
            /// States of threads.
            Threads threads "Threads",
            /// Energy by cluster, layer and phase.
            Energy energy "Energy",
            /// Sections and states of threads over time.
            Timeline timeline "Timeline",
            /// Hand-overs of work between threads.
            HandOvers hand_overs "Hand-overs",
        }
    };
}

pub(super) use for_each_view;

macro_rules! define_names {
    ($($(#[$doc:meta])* $view:ident $module:ident $word:literal,)+) => {
        /// The views, in the order of their tabs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum View {
            $($(#[$doc])* $view,)+
        }

        impl View {
            /// Every view.
            pub(crate) const ALL: [Self; [$($word),+].len()] = [$(Self::$view),+];

            /// The word on its tab.
            #[must_use]
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$view => $word,)+
                }
            }
        }
    };
}

for_each_view!(define_names);

impl Default for View {
    fn default() -> Self {
        Self::ALL[0]
    }
}

impl View {
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
