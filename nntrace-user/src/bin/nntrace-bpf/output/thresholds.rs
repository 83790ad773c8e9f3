//! Limits that a regression job sets: one that is exceeded shows in the exit status.

use nntrace_user::report::{number_format, snapshot::Snapshot};

use crate::{arguments::Causes, stderr};

/// Exit status when a gate trips.
pub const TRIPPED: u8 = 3;

/// Whether more is missing than may be; says where.
pub fn tripped(snapshot: &Snapshot, causes: &Causes) -> bool {
    let Some(most) = causes.max_missing else { return false };
    let mut tripped = false;
    for row in &snapshot.missing {
        if row.missing_ns as f64 > most * row.total_ns as f64 {
            stderr::message(format_args!(
                "{} of the time of {} ({} of {}) is covered by no section; --max-missing allows {}%",
                number_format::percent(row.missing_ns, row.total_ns),
                row.site.name,
                number_format::duration_ns(row.missing_ns),
                number_format::duration_ns(row.total_ns),
                most * 100.0,
            ));
            tripped = true;
        }
    }
    tripped
}
