//! Rivals: threads that have a CPU while a traced thread waits for it, and are not traced themselves.
//!
//! Who kept a thread waiting is known of the traced processes from their context switches ([`crate::sched`]). Of all
//! others only these turns are reported: a machine has too many context switches to report each.

use crate::record::RecordKind;

/// Length of a thread's name in the kernel (`TASK_COMM_LEN`).
pub const NAME_BYTES: usize = 16;

/// Turn of a rival on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "user",
    derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)
)]
#[repr(C)]
pub struct RivalRecord {
    /// [`RecordKind::Rival`].
    pub kind: u32,
    /// Thread id; 0 for a thread outside of the PID namespace that is profiled in.
    pub tid: u32,
    /// Process id; 0 like that of the thread.
    pub tgid: u32,
    /// CPU.
    pub cpu: u32,
    /// When the thread got the CPU, ns; 0 where that was before anything was traced.
    pub begin: u64,
    /// When it left the CPU, ns.
    pub end: u64,
    /// Name of the thread when it left, followed by zeros.
    pub name: [u8; NAME_BYTES],
}

impl RivalRecord {
    /// Creates the record of a turn.
    #[must_use]
    #[inline(always)]
    pub const fn new(
        (tgid, tid): (u32, u32),
        cpu: u32,
        (begin, end): (u64, u64),
        name: [u8; NAME_BYTES],
    ) -> Self {
        Self { kind: RecordKind::Rival as u32, tid, tgid, cpu, begin, end, name }
    }

    /// Returns the name of the thread.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.name.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

/// Waiting state of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AwaitedCpu {
    /// Traced threads that wait for it. Programs on all CPUs add to it and take from it.
    pub waiting: u64,
    /// Last context switch there, ns; 0 where there was none.
    pub since: u64,
    /// 1 if a thread began to wait since then, even if it no longer does; else 0.
    pub was_awaited: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_at_the_first_zero() {
        let mut name = [0; NAME_BYTES];
        name[..4].copy_from_slice(b"hog\0");
        name[9] = b'x';
        assert_eq!(RivalRecord::new((1, 2), 3, (4, 5), name).name(), b"hog");
        assert_eq!(RivalRecord::new((1, 2), 3, (4, 5), [b'a'; NAME_BYTES]).name(), [b'a'; NAME_BYTES]);
    }
}
