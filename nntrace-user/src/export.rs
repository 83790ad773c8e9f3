//! Results in the forms of other programs.

pub mod dot;
