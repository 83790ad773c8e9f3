//! Capabilities of a thread.

use std::io;

use nix::libc;

/// Version of the structures below: `_LINUX_CAPABILITY_VERSION_3`.
const VERSION: u32 = 0x2008_0522;

/// Capabilities to read, write and remove files of others, and to give them away, as bits of `linux/capability.h`:
/// `CAP_CHOWN`, `CAP_DAC_OVERRIDE`, `CAP_DAC_READ_SEARCH`, `CAP_FOWNER`.
pub(super) const FILES: u32 = 0b1111;
/// Capability to signal processes of others, `CAP_KILL`.
const KILL: u32 = 1 << 5;

#[repr(C)]
struct Header {
    version: u32,
    /// 0 is the calling thread.
    tid: libc::c_int,
}

/// Lower or upper 32 capabilities.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sets {
    pub(super) effective: u32,
    pub(super) permitted: u32,
    pub(super) inheritable: u32,
}

/// Returns the capabilities of the calling thread: the lower 32, and the upper ones.
///
/// # Errors
/// When the kernel refuses, which it has no reason for.
pub(super) fn of_thread() -> io::Result<[Sets; 2]> {
    let mut header = Header { version: VERSION, tid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: capget reads and writes a header and, of this version, writes two sets; both live until it returns, have its
    // layout, and nobody else knows them.
    let result = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) };
    if result == 0 { Ok(sets) } else { Err(io::Error::last_os_error()) }
}

/// Sets the capabilities of the calling thread: other threads keep theirs.
///
/// # Errors
/// When they are not among the permitted ones.
pub(super) fn set(sets: [Sets; 2]) -> io::Result<()> {
    let header = Header { version: VERSION, tid: 0 };
    // SAFETY: capset reads a header and, of this version, two sets; both live until it returns, and have its layout.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives up all capabilities of the calling thread for good: other threads keep theirs.
///
/// # Errors
/// When the kernel refuses, which it has no reason for.
pub fn drop_all() -> io::Result<()> {
    set([Sets::default(); 2])
}

/// Gives up all capabilities of the calling thread for good, but the one to signal processes of others.
///
/// # Errors
/// As of [`drop_all`].
pub(crate) fn keep_right_to_signal() -> io::Result<()> {
    let permitted = of_thread()?[0].permitted & KILL;
    set([Sets { effective: permitted, permitted, ..Sets::default() }, Sets::default()])
}

/// Gives up all capabilities of the calling thread for good, but those for files, which are out of force until
/// they are needed.
///
/// # Errors
/// As of [`drop_all`].
pub(super) fn drop_all_but_files() -> io::Result<()> {
    let permitted = of_thread()?[0].permitted & FILES;
    set([Sets { permitted, ..Sets::default() }, Sets::default()])
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn effective() -> [u32; 2] {
        of_thread().unwrap().map(|sets| sets.effective)
    }

    #[test]
    fn this_thread_alone_has_none() {
        let before = effective();
        let dropped = thread::spawn(|| drop_all().map(|()| effective())).join().unwrap();
        assert_eq!(dropped.unwrap(), [0, 0]);
        assert_eq!(effective(), before);
    }
}
