//! The function by which a thread offers a lane, and the semaphore by which it is asked to.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU16, Ordering};

/// Defines the function and its semaphore. The assembler defines the latter as well because the compiler, which does not
/// see the note, might rename it.
macro_rules! offering_function {
    ($arguments:literal) => {
        function!(
            "nntrace_lane_offer_",
            "lane",
            "nntrace_lanes_wanted_",
            $arguments,
            ".pushsection .probes,\"awG\",%progbits,nntrace_lane_offer_,comdat",
            ".balign 2",
            ".weak nntrace_lanes_wanted_",
            ".hidden nntrace_lanes_wanted_",
            ".type nntrace_lanes_wanted_,%object",
            "nntrace_lanes_wanted_: .2byte 0",
            ".size nntrace_lanes_wanted_, 2",
            ".popsection"
        );
    };
}

#[cfg(target_arch = "x86_64")]
offering_function!("-8@%rdi 8@%rsi");
#[cfg(target_arch = "aarch64")]
offering_function!("-8@x0 8@x1");

// SAFETY: the function above, which takes two numbers and touches nothing; and the semaphore behind it, which is aligned,
// and which the kernel writes.
unsafe extern "C" {
    /// Offers the lane with this key in a file; or tells that the reader of that lane is late, with
    /// [`DOORBELL`](crate::express::DOORBELL) in place of a file. Does nothing: the profiler probes it.
    #[link_name = "nntrace_lane_offer_"]
    pub(super) safe fn offer(file: i64, key: u64);

    /// Number of profilers that want lanes, as the kernel counts them by the note.
    #[link_name = "nntrace_lanes_wanted_"]
    safe static WANTED: AtomicU16;
}

/// Whether lanes are wanted. Two profilers could not share one.
#[inline]
pub(super) fn is_wanted() -> bool {
    WANTED.load(Ordering::Relaxed) == 1
}
