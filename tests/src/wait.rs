//! Waiting for conditions that nothing reports.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

/// Time limit of a step before the test fails: far more than it takes on a loaded host. A failure costs a second run of its program.
pub const PATIENCE: Duration = Duration::from_mins(3);

/// Pause between two looks.
const POLL: Duration = Duration::from_millis(10);

/// Looks repeatedly until there is a result. Only for conditions that cannot be waited for.
///
/// # Errors
/// When there is no result after [`PATIENCE`], or when looking fails.
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
