//! Changes of what a CPU does.

use nntrace_common::power::{Activity, Interval};

/// A change of what a CPU does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transition {
    /// CPU.
    pub cpu: u32,
    /// Stretch that ends here.
    pub before: Interval,
    /// Activity from then on.
    pub next: Activity,
    /// Whether nothing was known of the CPU: what it did before is what this change shows.
    pub is_first: bool,
}
