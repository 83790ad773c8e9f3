//! Giving up the privileges of a thread.

use std::io;

use nix::{libc, unistd::Uid};

/// Version of the two structures below: `_LINUX_CAPABILITY_VERSION_3`.
const VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    /// 0 is the calling thread.
    tid: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Gives up all capabilities of the calling thread for good: other threads keep theirs.
///
/// # Errors
/// When the kernel refuses, which it has no reason for.
pub fn drop_all() -> io::Result<()> {
    let header = Header { version: VERSION, tid: 0 };
    // The lower 32 capabilities, and the upper ones.
    let none = [Sets::default(); 2];
    // SAFETY: capset reads a header and, of this version, two sets; both live until it returns, and have its layout.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives up all capabilities of the calling thread where they are the program's, and not those of its caller, as they are after
/// `setcap`: files are read and written as the caller may.
///
/// # Errors
/// As of [`drop_all`].
pub fn drop_those_of_program() -> io::Result<()> {
    if Uid::current().is_root() { Ok(()) } else { drop_all() }
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use super::*;

    /// Returns the effective capabilities of the calling thread.
    fn effective() -> u64 {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    }

    #[test]
    fn this_thread_alone_has_none() {
        let before = effective();
        let dropped = thread::spawn(|| drop_all().map(|()| effective())).join().unwrap();
        assert_eq!(dropped.unwrap(), 0);
        assert_eq!(effective(), before);
    }
}
