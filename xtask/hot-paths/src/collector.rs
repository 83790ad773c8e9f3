//! Collector in the program itself, that wants the lane of its only thread and reads nothing of it.

use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::FileExt as _,
    sync::atomic::{AtomicU16, AtomicU64, Ordering},
};

use anyhow::{Context as _, Result};
use memmap2::MmapRaw;
use nntrace_common::{
    emit::tracing_mark_write,
    express::{LANE_NAME, offsets},
};

/// A byte in the first eight of the mark function, and what a program that looks at them takes for a probe, but does
/// nothing when it is run: the padding after it, and `yield` in place of `nop`.
const PROBE: (u64, u8) = if cfg!(target_arch = "x86_64") { (7, 0x90) } else { (0, 0x3f) };

// SAFETY: the semaphore, which is aligned, and which this program may write as the kernel does.
unsafe extern "C" {
    safe static nntrace_lanes_wanted_: AtomicU16;
}

/// Collector with the lane.
pub struct Collector(MmapRaw);

impl Collector {
    /// Listens, lets the thread write marks until it offers a lane, and accepts that.
    ///
    /// # Errors
    /// When there is no lane.
    pub fn listen(write_marks: impl FnOnce()) -> Result<Self> {
        const CODE: &str = "/proc/self/mem";
        let (offset, byte) = PROBE;
        OpenOptions::new()
            .write(true)
            .open(CODE)
            .and_then(|code| code.write_all_at(&[byte], tracing_mark_write as *const () as u64 + offset))
            .with_context(|| format!("the code of this program cannot be changed: {CODE}"))?;
        nntrace_lanes_wanted_.store(1, Ordering::Relaxed);
        write_marks();
        let collector = Self(MmapRaw::map_raw(&offered()?).context("the lane cannot be mapped")?);
        collector.word(offsets::LEASE).store(u64::MAX / 2, Ordering::Release);
        Ok(collector)
    }

    /// Frees all room; returns the bytes written so far.
    pub fn drain(&self) -> u64 {
        let head = self.word(offsets::HEAD).load(Ordering::Acquire);
        self.word(offsets::TAIL).store(head, Ordering::Release);
        head
    }

    #[expect(clippy::cast_ptr_alignment, reason = "a multiple of eight behind the begin of a page")]
    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: a word of the header, which lies at the begin of the mapping and is accessed atomically only.
        unsafe { &*self.0.as_ptr().add(offset).cast::<AtomicU64>() }
    }
}

/// Opens the memory that the thread has offered.
fn offered() -> Result<File> {
    let name = format!("/memfd:{LANE_NAME} (deleted)");
    let files = fs::read_dir("/proc/self/fd").context("the files of this program are not known")?;
    let lane = files
        .filter_map(|file| Some(file.ok()?.path()))
        .find(|path| fs::read_link(path).is_ok_and(|target| target.as_os_str() == name.as_str()));
    let path = lane.context("no lane was offered")?;
    OpenOptions::new().read(true).write(true).open(&path).context("the lane cannot be opened")
}
