//! Cost of the probes on one call of an engine's function, measured on this machine: on a function of our own.
//!
//! Most of it is the trap into the kernel and what the kernel does about the probed instruction, which depends on that,
//! on the processor and on the hypervisor. The function begins and ends as compilers' functions do.

use std::{
    arch::naked_asm,
    path::Path,
    time::{Duration, Instant},
};

use super::{OWN_FILE, offset};
use crate::live::{
    clock::nanoseconds,
    kernel::{Kernel, engines::CallPlaces},
};

/// Calls in a round.
const CALLS: u32 = 100;
/// Rounds, of which the fastest counts.
const ROUNDS: u32 = 3;

/// Function that begins and ends as those of compilers do.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
extern "C" fn call() {
    naked_asm!("push rbp", "pop rbp", "ret")
}
/// Offset of the return instruction in it, bytes.
#[cfg(target_arch = "x86_64")]
const RETURN: u64 = 2;

/// Function that begins and ends as those of compilers do.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
extern "C" fn call() {
    naked_asm!("stp x29, x30, [sp, #-16]!", "ldp x29, x30, [sp], #16", "ret")
}
/// Offset of the return instruction in it, bytes.
#[cfg(target_arch = "aarch64")]
const RETURN: u64 = 8;

/// Cost of probes on functions of engines.
#[derive(Clone, Copy, Debug)]
pub(in crate::live) struct CallCost {
    /// Time by which a call takes longer, ns, without the part of the programs that only run for targets.
    pub call_ns: u64,
    /// Time to detach one place.
    pub detach: Duration,
}

/// Measures the cost of probes.
///
/// # Errors
/// With the reason why it cannot be measured.
pub(in crate::live) fn measure(kernel: &mut Kernel) -> Result<CallCost, String> {
    let entry = offset(call)?;
    let before = call_ns();
    let places = CallPlaces { entry, end: entry + RETURN };
    let probed = kernel.while_engine_probed(Path::new(OWN_FILE), places, call_ns);
    let (during, detached) = probed.map_err(|error| error.to_string())?;
    Ok(CallCost { call_ns: during.saturating_sub(before), detach: detached / 2 })
}

fn call_ns() -> u64 {
    let round = |_| {
        let begin = Instant::now();
        for _ in 0..CALLS {
            call();
        }
        nanoseconds(begin.elapsed()) / u64::from(CALLS)
    };
    (0..ROUNDS).map(round).min().unwrap_or(0)
}
