//! Results for people and programs: the snapshot, and its views as text.

pub(crate) mod build;
pub mod energy_model;
pub(crate) mod figures;
pub mod nnapi;
pub mod number_format;
pub mod power;
pub mod sections;
pub mod snapshot;
pub mod tables;
pub mod text;
pub mod timeline;
pub mod units;
