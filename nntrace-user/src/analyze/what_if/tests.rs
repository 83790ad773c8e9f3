//! Tests on graphs whose times can be computed by hand.

mod closed_forms;
mod draft;
mod invariants;
