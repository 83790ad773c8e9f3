//! Headings of the help, in the order in which they appear.

/// Processes, commands, time.
pub(super) const TARGET: &str = "Target";
/// Sources of marks.
pub(super) const MARKS: &str = "Marks";
/// Choice of sections.
pub(super) const SECTIONS: &str = "Sections";
/// Tables, snapshots, files.
pub(super) const OUTPUT: &str = "Output";
/// CPUs, clusters, energy.
pub(super) const POWER: &str = "Power";
/// Iterations, attributes, missing time.
pub(super) const CAUSES: &str = "Causes";
/// Memory.
pub(super) const LIMITS: &str = "Limits";
/// Marks that are written once more.
pub(super) const EMIT: &str = "Marks once more";
/// Size of a recording, and which part of the run it has.
pub(super) const BOUNDS: &str = "Bounds";
