//! The PID namespace that user space runs in, such as a container's: tasks have other ids in it than on the host.

/// Number of the host's own PID namespace. Source: include/uapi/linux/nsfs.h, `PID_NS_INIT_INO`.
pub const OF_HOST: u32 = 0xefff_fffc;

/// Offsets by which a task's id in a namespace is found, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PidNamespace {
    /// `thread_pid` of `task_struct`.
    pub thread_pid: u32,
    /// `group_leader` of `task_struct`.
    pub group_leader: u32,
    /// `level` of `pid`: the number of namespaces around the task's own.
    pub level: u32,
    /// `numbers` of `pid`: the task's id in each of them, the host's first.
    pub numbers: u32,
    /// Size of one of the `numbers`.
    pub number_size: u32,
    /// `nr` of `upid`: the id.
    pub id: u32,
    /// `ns` of `upid`: the namespace.
    pub namespace: u32,
    /// `ns.inum` of `pid_namespace`: its number.
    pub namespace_number: u32,
}
