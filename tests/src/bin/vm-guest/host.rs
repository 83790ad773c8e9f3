//! Output of a VM: files for the host, and the final result. No driver is needed for it.
//!
//! Both ways are QEMU's: semihosting on arm64 (Arm, "Semihosting for `AArch32` and `AArch64`", which it also answers
//! for programs in user space), and two I/O ports on x86-64.

use anyhow::{Result, ensure};

/// Sends a file to the host: it appears in the folder that QEMU runs in.
///
/// # Errors
/// When the host does not accept it.
pub fn send(name: &str, content: &[u8]) -> Result<()> {
    ensure!(!name.contains(['/', '\n', '\0']), "{name} is no name of a file");
    machine::send(name, content)
}

/// Ends the VM.
pub fn end(passed: bool) -> ! {
    // The last output is still on its way.
    std::thread::sleep(std::time::Duration::from_millis(200));
    machine::end(passed);
    panic!("the machine goes on: it was started without what ends it");
}

#[cfg(target_arch = "aarch64")]
mod machine {
    use std::{arch::asm, ffi::CString};

    use anyhow::{Result, ensure};

    const SYS_OPEN: u64 = 0x01;
    const SYS_CLOSE: u64 = 0x02;
    const SYS_WRITE: u64 = 0x05;
    const SYS_EXIT_EXTENDED: u64 = 0x20;
    /// Mode `wb` of `fopen`.
    const WRITE_BINARY: u64 = 5;
    const STOPPED_APPLICATION_EXIT: u64 = 0x20026;

    /// Makes a call to the host, which reads the block of arguments, and the memory that they point to.
    fn call(operation: u64, block: &[u64]) -> i64 {
        let result: i64;
        // SAFETY: QEMU answers this instruction with a result in x0, reads memory and changes no other register.
        // Without an answer, the process dies of SIGILL.
        unsafe { asm!("hlt #0xf000", inlateout("x0") operation => result, in("x1") block.as_ptr()) };
        result
    }

    pub(super) fn send(name: &str, content: &[u8]) -> Result<()> {
        let length = name.len() as u64;
        let name = CString::new(name)?;
        let handle = call(SYS_OPEN, &[name.as_ptr().expose_provenance() as u64, WRITE_BINARY, length]);
        ensure!(handle >= 0, "the host does not open {name:?}");
        let handle = handle.cast_unsigned();
        let start = content.as_ptr().expose_provenance() as u64;
        let left = call(SYS_WRITE, &[handle, start, content.len() as u64]);
        ensure!(left == 0, "the host left {left} bytes of {name:?}");
        ensure!(call(SYS_CLOSE, &[handle]) == 0, "the host does not close {name:?}");
        Ok(())
    }

    pub(super) fn end(passed: bool) {
        // Never 0, which is also the status of a VM whose kernel panics.
        let status = if passed { 42 } else { 43 };
        call(SYS_EXIT_EXTENDED, &[STOPPED_APPLICATION_EXIT, status]);
    }
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use std::{fs::File, os::unix::fs::FileExt as _};

    use anyhow::{Context as _, Result};

    /// `isa-debug-exit`: QEMU ends with twice the byte, plus one.
    const EXIT_PORT: u64 = 0xf4;
    /// `isa-debugcon`: bytes written here are appended to a file.
    const FILE_PORT: u64 = 0xe9;

    /// Sends a line with name and length, then the content.
    pub(super) fn send(name: &str, content: &[u8]) -> Result<()> {
        let header = format!("{name} {}\n", content.len());
        let port = ports()?;
        // One by one: more bytes in one call go to more ports.
        for byte in header.bytes().chain(content.iter().copied()) {
            port.write_at(&[byte], FILE_PORT).context("/dev/port does not take what is for the host")?;
        }
        Ok(())
    }

    pub(super) fn end(passed: bool) {
        let status = if passed { 20 } else { 21 };
        if let Err(error) = ports().and_then(|port| Ok(port.write_at(&[status], EXIT_PORT)?)) {
            println!("/dev/port: {error}");
        }
    }

    fn ports() -> Result<File> {
        File::options().write(true).open("/dev/port").context("/dev/port cannot be opened")
    }
}
