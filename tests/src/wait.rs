//! Waiting for what nothing reports.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

/// How long anything may take before the test has failed: far more than on a loaded machine it does.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Between two looks.
const POLL: Duration = Duration::from_millis(10);

/// Looks until there is something to see. Only for what cannot be waited for.
///
/// # Errors
/// When there is nothing after [`PATIENCE`], or when looking fails.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look().with_context(|| format!("while waiting for {what}"))? {
            return Ok(seen);
        }
        anyhow::ensure!(Instant::now() < deadline, "waited {PATIENCE:?} for {what}");
        thread::sleep(POLL);
    }
}
