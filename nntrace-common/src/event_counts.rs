//! Counters of the kernel programs, and the tables that can be full.
//!
//! Kept by the programs themselves: the kernel's statistics of BPF programs are for administrators only.

/// Table whose size depends on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Table {
    /// Threads with their open sections.
    Threads,
    /// Totals by process and path.
    Totals,
    /// Names of sections.
    Names,
    /// Paths of tags.
    Paths,
}

impl Table {
    /// All tables, in order of number.
    pub const ALL: [Self; 4] = [Self::Threads, Self::Totals, Self::Names, Self::Paths];

    /// Returns its name in a snapshot.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Totals => "totals",
            Self::Names => "names",
            Self::Paths => "paths",
        }
    }
}

/// Events of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct EventCounts {
    /// Marks of traced processes.
    pub marks: u64,
    /// Calls of engines' functions, of the marks.
    pub calls: u64,
    /// Such calls whose name is described and could not be had.
    pub unnamed: u64,
    /// Power events in the window.
    pub power: u64,
    /// Context switches and wake-ups, of any process.
    pub sched: u64,
    /// Marks of threads that user space accounts, without room in a ring: they are in no total.
    pub forwards_lost: u64,
    /// Marks at which not all performance events could be read: what the thread counted until then may be in no count.
    pub uncounted_marks: u64,
    /// Sections whose counts of performance events found no room.
    pub uncounted_sections: u64,
    /// Entries without room in a full [`Table`], by its number: for threads, the marks of threads without an entry.
    pub turned_away: [u64; Table::ALL.len()],
}

impl EventCounts {
    /// Adds the counts of another CPU.
    pub fn add(&mut self, other: &Self) {
        self.marks += other.marks;
        self.calls += other.calls;
        self.unnamed += other.unnamed;
        self.power += other.power;
        self.sched += other.sched;
        self.forwards_lost += other.forwards_lost;
        self.uncounted_marks += other.uncounted_marks;
        self.uncounted_sections += other.uncounted_sections;
        for (sum, count) in self.turned_away.iter_mut().zip(other.turned_away) {
            *sum += count;
        }
    }
}

/// Wait of a thread for the page with the text of its mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PageWait {
    /// Time of the mark, ns.
    pub since: u64,
    /// Process id.
    pub tgid: u32,
    /// Always 0.
    pub reserved: u32,
}

#[cfg(feature = "user")]
mod user {
    use aya::Pod;

    use super::{EventCounts, PageWait};

    // SAFETY: `repr(C)` without padding, and the map holds only what this crate's own code wrote as that type.
    unsafe impl Pod for EventCounts {}
    // SAFETY: as above.
    unsafe impl Pod for PageWait {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_list() {
        for (number, table) in Table::ALL.into_iter().enumerate() {
            assert_eq!(table as usize, number);
        }
    }

    #[test]
    fn counts_of_cpus_add_up() {
        let one = EventCounts {
            marks: 1,
            calls: 8,
            unnamed: 9,
            power: 2,
            sched: 3,
            forwards_lost: 10,
            uncounted_marks: 11,
            uncounted_sections: 12,
            turned_away: [4, 5, 6, 7],
        };
        let mut sum = one;
        sum.add(&one);
        let twice = EventCounts {
            marks: 2,
            calls: 16,
            unnamed: 18,
            power: 4,
            sched: 6,
            forwards_lost: 20,
            uncounted_marks: 22,
            uncounted_sections: 24,
            turned_away: [8, 10, 12, 14],
        };
        assert_eq!(sum, twice);
    }
}
