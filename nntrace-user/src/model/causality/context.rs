//! Context of work: iteration, account and group, which it inherits.

use super::iterations::IterationId;

/// How it is known what a piece of work belongs to. From the surest to the least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Edge {
    /// Given by its own mark.
    Explicit,
    /// Inherited from the section that it is nested in.
    #[default]
    Nested,
    /// It was handed over from there.
    HandedOver,
    /// Its thread was created there.
    Created,
}

#[cfg(test)]
impl Edge {
    /// All, in their order.
    pub(crate) const ALL: [Self; 4] = [Self::Explicit, Self::Nested, Self::HandedOver, Self::Created];

    /// As results name it.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Explicit => "explicit",
            Self::Nested => "nested",
            Self::HandedOver => "handed_over",
            Self::Created => "created",
        }
    }
}

/// Whom work is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Charge {
    /// Number of the account.
    pub account: u32,
    /// How that is known.
    pub edge: Edge,
}

/// Context of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Context {
    /// Its account; `None` where no mark gives one.
    pub charge: Option<Charge>,
    /// Its iteration.
    pub iteration: Option<IterationId>,
    /// Number of the value of the attribute that is asked for.
    pub group: Option<u32>,
    /// Number of the section in the graph.
    pub node: Option<u32>,
    /// Whether the section of `node` is of this thread.
    pub is_own_thread: bool,
    /// How it came to this thread; nested when it did not come from elsewhere.
    pub arrived_by: Edge,
}

impl Context {
    /// Returns the context of what begins inside, on the same thread.
    pub(crate) fn inside(self) -> Self {
        let charge = self.charge.map(|charge| match charge.edge {
            Edge::Explicit => Charge { edge: Edge::Nested, ..charge },
            _ => charge,
        });
        Self { charge, ..self }
    }

    /// Returns the context of what it causes on another thread.
    pub(crate) fn across(self, edge: Edge) -> Self {
        let charge = self.charge.map(|charge| Charge { edge, ..charge });
        Self { charge, is_own_thread: false, arrived_by: edge, ..self }
    }
}
