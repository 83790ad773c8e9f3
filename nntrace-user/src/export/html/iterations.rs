//! Iterations as a page shows them: without the functions in them, and a bounded number of them.

use std::cmp::Reverse;

use serde::Serialize;

use crate::report::snapshot::{IterationKey, IterationRow};

/// Iterations at most; of more, the longest ones are shown.
const MOST: usize = 10_000;

/// Iterations of a run.
#[derive(Serialize)]
pub(super) struct Iterations<'a> {
    rows: Vec<Iteration<'a>>,
    /// Iterations that are not among these.
    left_out: usize,
}

/// Iteration.
#[derive(Serialize)]
struct Iteration<'a> {
    pid: u32,
    name: &'a str,
    iter: u64,
    parent: Option<&'a IterationKey>,
    /// Sections that have not ended.
    open: u64,
    total_ns: u64,
    exclusive_ns: u64,
    wall_ns: u64,
    missing_ns: u64,
}

impl<'a> Iterations<'a> {
    /// Creates them from those of a snapshot, in their order.
    pub(super) fn new(all: &'a [IterationRow]) -> Self {
        let mut places: Vec<usize> = (0..all.len()).collect();
        if places.len() > MOST {
            places.sort_by_key(|&place| Reverse(all[place].wall_ns));
            places.truncate(MOST);
            places.sort_unstable();
        }
        let left_out = all.len() - places.len();
        let rows = places.into_iter().map(|place| {
            let row = &all[place];
            Iteration {
                pid: row.pid,
                name: &row.name,
                iter: row.iter,
                parent: row.parent.as_ref(),
                open: row.open,
                total_ns: row.total_ns,
                exclusive_ns: row.exclusive_ns,
                wall_ns: row.wall_ns,
                missing_ns: row.missing_ns,
            }
        });
        Self { rows: rows.collect(), left_out }
    }
}
