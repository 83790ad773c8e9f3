//! Privileges of traced programs: an ordinary user who is allowed to use the profiler may not trace those of others.

/// User that nobody is: the value where all may be traced.
pub const NOBODY: u32 = u32::MAX;

/// Offsets of fields that show the privileges of a task, from the kernel's description, bytes; all are 0 where unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CredsOffsets {
    /// `cred` of `task_struct`.
    pub creds: u32,
    /// `euid` of `cred`.
    pub user: u32,
    /// `egid` of `cred`.
    pub group: u32,
    /// `cap_permitted` of `cred`.
    pub capabilities: u32,
}
