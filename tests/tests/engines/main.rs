//! Engines: real ones from their packages, and small ones that are built to be difficult.

mod async_runs;
mod engine_ends;
mod engine_exceptions;
mod engine_files;
mod engine_hooks;
mod engine_workers;
mod hooks;
mod hooks_by_default;
mod hostile_files;
mod proposals;
mod rewritten_files;
mod small_models;
