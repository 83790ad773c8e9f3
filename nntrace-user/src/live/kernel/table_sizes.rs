//! Sizes of the tables of marks.
//!
//! The kernel allocates their memory when they are created, as allocation may fail in the middle of a mark: so it is
//! a share of the system's memory, and not enough for every case.

use std::fs;

use aya::{
    EbpfLoader,
    maps::{HashMap, PerCpuHashMap},
};
use nntrace_common::{
    event_counts::{EventCounts, Table},
    record::{NameText, Thread, Total, TotalKey},
    stack::PathStep,
};

use super::{Kernel, KernelError};
use crate::model::run_facts::TableUse;

/// Default share of the system's memory, as a divisor.
const PART: u64 = 64;
/// Bounds of the default share, bytes.
const BOUNDS: [u64; 2] = [4 << 20, 64 << 20];
/// Bytes that the kernel adds to an entry of a hash table: its links, and up to two buckets.
const ENTRY_BYTES: u64 = 48 + 2 * 16;
/// Pointer from an entry of a per-CPU table to its values, bytes.
const ADDRESS_BYTES: u64 = 8;

/// One table.
struct Row {
    table: Table,
    /// Name in the kernel object.
    map: &'static str,
    /// Share of the memory, percent.
    percent: u64,
    /// Size of a key and its value, bytes.
    bytes: fn(cpus: u64) -> u64,
}

const ROWS: [Row; Table::ALL.len()] = [
    Row { table: Table::Threads, map: "THREADS", percent: 70, bytes: |_| size::<u32>() + size::<Thread>() },
    Row {
        table: Table::Totals,
        map: "TOTALS",
        percent: 12,
        bytes: |cpus| size::<TotalKey>() + ADDRESS_BYTES + cpus * size::<Total>(),
    },
    Row { table: Table::Names, map: "NAMES", percent: 12, bytes: |_| size::<u64>() + size::<NameText>() },
    Row { table: Table::Paths, map: "PATHS", percent: 6, bytes: |_| size::<u64>() + size::<PathStep>() },
];

/// Returns a size rounded up to eight bytes, the alignment of keys and values.
const fn size<T>() -> u64 {
    (size_of::<T>() as u64).next_multiple_of(8)
}

/// Number of entries of each table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableSizes {
    /// Memory of all tables, bytes.
    pub bytes: u64,
    entries: [u32; Table::ALL.len()],
    /// Entries of the totals that may be split by the application's phases.
    slot_totals: u32,
}

impl TableSizes {
    /// Creates tables of about this many bytes, for this number of possible CPUs; by default, of a sensible share of
    /// the system's memory.
    #[must_use]
    pub(crate) fn new(bytes: Option<u64>, cpus: u32) -> Self {
        let budget =
            bytes.unwrap_or_else(|| sensible(&fs::read_to_string("/proc/meminfo").unwrap_or_default()));
        let mut sizes = Self { bytes: 0, entries: [0; Table::ALL.len()], slot_totals: 0 };
        for row in ROWS {
            let entry = ENTRY_BYTES + (row.bytes)(u64::from(cpus));
            let entries = (u128::from(budget) * u128::from(row.percent) / 100 / u128::from(entry)).max(1);
            // Beyond the largest number of entries there is more memory than in any system.
            let entries = u32::try_from(entries).unwrap_or(u32::MAX / 2);
            sizes.entries[row.table as usize] = entries;
            sizes.bytes += u64::from(entries) * entry;
        }
        // The rest is for totals of any of the application's phases.
        sizes.slot_totals = sizes.entries(Table::Totals) / 4 * 3;
        sizes
    }

    /// Returns the number of entries of a table.
    #[must_use]
    pub(crate) fn entries(&self, table: Table) -> u32 {
        self.entries[table as usize]
    }

    pub(super) fn configure<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        for row in ROWS {
            loader.map_max_entries(row.map, self.entries(row.table));
        }
        loader.override_global("SLOT_TOTALS", &self.slot_totals, true);
    }
}

impl Kernel {
    /// Returns the memory that the tables of marks take together, bytes.
    pub(in crate::live) fn map_memory(&self) -> u64 {
        self.table_sizes.bytes
    }

    /// Reads the current use of the tables of marks.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_table_uses(&self, counts: &EventCounts) -> Result<Vec<TableUse>, KernelError> {
        let entries = |of: Table| -> Result<usize, KernelError> {
            Ok(match of {
                Table::Threads => {
                    self.object.table::<HashMap<_, u32, Thread>>("THREADS")?.keys().flatten().count()
                }
                Table::Totals => {
                    self.object.table::<PerCpuHashMap<_, TotalKey, Total>>("TOTALS")?.keys().flatten().count()
                }
                Table::Names => {
                    self.object.table::<HashMap<_, u64, NameText>>("NAMES")?.keys().flatten().count()
                }
                Table::Paths => {
                    self.object.table::<HashMap<_, u64, PathStep>>("PATHS")?.keys().flatten().count()
                }
            })
        };
        let uses = Table::ALL.into_iter().map(|table| {
            Ok(TableUse {
                table: table.name().into(),
                entries: entries(table)? as u64,
                capacity: u64::from(self.table_sizes.entries(table)),
                turned_away: counts.turned_away[table as usize],
            })
        });
        uses.collect()
    }
}

/// Returns the default memory, bytes, by the total in `/proc/meminfo`; the least where it is not given.
fn sensible(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: u64 = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or(0);
    let [least, most] = BOUNDS;
    (kib.saturating_mul(1024) / PART).clamp(least, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_are_the_whole_and_the_rows_are_the_tables() {
        assert_eq!(ROWS.iter().map(|row| row.percent).sum::<u64>(), 100);
        assert_eq!(ROWS.map(|row| row.table), Table::ALL);
    }

    #[test]
    fn memory_is_a_part_of_the_machines_within_bounds() {
        let of = |mib: u64| sensible(&format!("MemFree: 1 kB\nMemTotal:  {} kB\n", mib << 10)) >> 20;
        assert_eq!([64, 256, 1_024, 2_048, 4_096, 65_536].map(of), [4, 4, 16, 32, 64, 64]);
        assert_eq!(sensible(""), BOUNDS[0]);
    }

    #[test]
    fn tables_take_what_they_are_given_whatever_the_cpus() {
        for (bytes, cpus) in [(1 << 20, 1), (16 << 20, 4), (64 << 20, 8), (64 << 20, 256)] {
            let sizes = TableSizes::new(Some(bytes), cpus);
            assert!(sizes.bytes <= bytes && sizes.bytes > bytes * 99 / 100, "{sizes:?} of {bytes}");
        }
        // A host with 1 GiB keeps the sizes from before they depended on memory.
        let small = TableSizes::new(Some(16 << 20), 4);
        assert!(small.entries(Table::Threads) > 2_048 && small.entries(Table::Paths) > 4_096, "{small:?}");
        assert!(TableSizes::new(Some(64 << 20), 8).entries(Table::Threads) > 3_000);
    }

    #[test]
    fn the_smallest_and_the_largest_are_tables_still() {
        let sizes = TableSizes::new(Some(0), 4);
        assert!(Table::ALL.iter().all(|&table| sizes.entries(table) == 1));
        let sizes = TableSizes::new(Some(u64::MAX), 1);
        assert!(sizes.entries(Table::Paths) > 0);
    }
}
