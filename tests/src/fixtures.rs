//! Files that tests read.

use std::path::{Path, PathBuf};

/// Returns the path of a file in `tests/fixtures`.
#[must_use]
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}
