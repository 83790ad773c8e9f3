//! The views: what each remembers from one snapshot to the next, and how it is drawn.

pub(super) mod cpus;
pub(super) mod energy;
pub(super) mod functions;
pub(super) mod hand_overs;
pub(super) mod phases;
pub(super) mod stacks;
pub(super) mod threads;
pub(super) mod timeline;

use ratatui::{buffer::Buffer, layout::Rect};

use self::phases::PhaseKey;
use super::{
    actions::Action,
    drawing::theme::Theme,
    lists::Lines,
    sample::Sample,
    view_list::{View, for_each_view},
};
use crate::report::snapshot::Snapshot;

/// View, as the rest of the interface sees it.
pub(crate) trait ViewState: Lines {
    /// Takes over a new snapshot, another order or another choice of lines.
    fn refresh(&mut self, sample: &Sample);

    /// Draws it.
    fn draw(&mut self, sample: &Sample, theme: Theme, area: Rect, buffer: &mut Buffer);

    /// Whether an action that only some views have does something in this one now.
    fn offers(&self, action: Action) -> bool {
        action.sorts()
    }

    /// Returns the layer and phase of the selected line, whose functions can be shown.
    fn phase(&self, _snapshot: &Snapshot) -> Option<PhaseKey> {
        None
    }
}

macro_rules! define_states {
    ($($(#[$doc:meta])* $view:ident $module:ident $word:literal,)+) => {
        /// All views.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct Views {
            $($(#[$doc])* pub $module: $module::$view,)+
        }

        impl Views {
            /// Returns a view.
            pub(super) fn get(&self, view: View) -> &dyn ViewState {
                match view {
                    $(View::$view => &self.$module,)+
                }
            }

            /// Returns a view.
            pub(super) fn get_mut(&mut self, view: View) -> &mut dyn ViewState {
                match view {
                    $(View::$view => &mut self.$module,)+
                }
            }
        }
    };
}

for_each_view!(define_states);

impl Views {
    /// Has all of them take over a new snapshot, another order or another choice of lines.
    pub(super) fn refresh(&mut self, sample: &Sample) {
        for view in View::ALL {
            self.get_mut(view).refresh(sample);
        }
    }
}
