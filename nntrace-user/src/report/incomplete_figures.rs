//! Figures as people read them: with `~` before those that lack what was lost.

use super::{number_format, snapshot::Snapshot};

/// The figures under one key of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    mark: &'static str,
}

impl Figures {
    /// Returns the figures under this key, such as `phases.p50_ns`.
    #[must_use]
    pub(crate) fn under(snapshot: &Snapshot, key: &str) -> Self {
        Self::new(snapshot.loss.makes_incomplete(key))
    }

    /// Creates figures that lack what was lost, or that do not.
    #[must_use]
    pub(crate) const fn new(is_incomplete: bool) -> Self {
        Self { mark: if is_incomplete { "~" } else { "" } }
    }

    /// Whether they lack nothing.
    #[must_use]
    pub(crate) const fn are_complete(self) -> bool {
        self.mark.is_empty()
    }

    /// A text that is a figure.
    #[must_use]
    pub(crate) fn text(self, figure: &str) -> String {
        format!("{}{figure}", self.mark)
    }

    /// A number.
    #[must_use]
    pub(crate) fn count(self, count: u64) -> String {
        self.text(&number_format::count(count))
    }

    /// A number of things.
    #[must_use]
    pub(crate) fn plural(self, number: u64, thing: &str) -> String {
        self.text(&number_format::plural(number, thing))
    }

    /// A time (ns).
    #[must_use]
    pub(crate) fn time(self, ns: u64) -> String {
        self.text(&number_format::duration_ns(ns))
    }

    /// A share of a whole.
    #[must_use]
    pub(crate) fn percent(self, part: u64, whole: u64) -> String {
        self.text(&number_format::percent(part, whole))
    }

    /// A figure that may not be known; one that is not is not marked.
    #[must_use]
    pub(crate) fn known(self, figure: Option<u64>, show: impl Fn(u64) -> String) -> String {
        number_format::or_unknown(figure, |figure| self.text(&show(figure)))
    }
}
