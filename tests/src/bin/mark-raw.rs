//! Writes its arguments as marks, one after the other, unchanged. `@unmapped` is a mark at an unmapped address,
//! `@unterminated` one without an end before memory that may not be read. At `@sleep` it sleeps for a second.

use std::{
    ffi::{CString, OsStr},
    num::NonZero,
    os::unix::ffi::OsStrExt as _,
    process::ExitCode,
    ptr::NonNull,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect};
use nntrace_common::emit::tracing_mark_write;
use nntrace_tests::marks::{SLEEP, UNMAPPED, UNTERMINATED};

fn main() -> ExitCode {
    match std::env::args_os().skip(1).try_for_each(|argument| write(&argument)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mark-raw: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn write(argument: &OsStr) -> Result<()> {
    if argument == UNMAPPED {
        // The first page is never mapped. The function does not read it, only the probe does.
        tracing_mark_write(std::ptr::without_provenance(64));
    } else if argument == UNTERMINATED {
        let text = unterminated()?;
        tracing_mark_write(text.as_ptr());
    } else if argument == SLEEP {
        thread::sleep(Duration::from_secs(1));
    } else {
        let text = CString::new(argument.as_bytes()).context("an argument holds no NUL")?;
        tracing_mark_write(text.as_ptr().cast());
    }
    Ok(())
}

/// Returns a begin that extends to the end of its page, followed by a page that may not be read. It stays until the
/// program ends.
fn unterminated() -> Result<NonNull<u8>> {
    const PAGE: usize = 1 << 16; // no machine has larger ones by default
    const TEXT: &[u8] = b"B|1|[NN_LR_PE]work";
    let length = NonZero::new(2 * PAGE).context("two pages are more than nothing")?;
    // SAFETY: new memory at an address of the kernel's choice: nothing of ours is replaced.
    let memory = unsafe {
        mmap_anonymous(None, length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_PRIVATE)
    }?;
    // SAFETY: the second half of the new mapping.
    let behind = unsafe { memory.byte_add(PAGE) };
    // SAFETY: nothing refers to that memory.
    unsafe { mprotect(behind, PAGE, ProtFlags::PROT_NONE) }?;
    ensure!(TEXT.len() < PAGE, "the text fits");
    // SAFETY: still in the first half.
    let start = unsafe { memory.cast::<u8>().byte_add(PAGE - TEXT.len()) };
    // SAFETY: as many bytes as there are up to the second half, and writable.
    unsafe { start.copy_from_nonoverlapping(NonNull::from(TEXT).cast(), TEXT.len()) };
    Ok(start)
}
