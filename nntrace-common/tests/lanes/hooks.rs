//! In place of the functions that are probed, which are weak, some that keep what they are called with: marks are written
//! as if a profiler listened. And in place of libc's clock one that can be put forward, and that a signal can interrupt.

use std::arch::global_asm;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int};

use nix::libc::{SYS_clock_gettime, clockid_t, syscall, timespec};
use nix::sys::signal::{Signal, raise};
use nix::time::{self, ClockId};

/// Call of one of the probed functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Payload without the process.
    Mark(String),
    /// File and key.
    Offer(i64, u64),
}

thread_local! {
    /// Calls with their times.
    static CALLS: RefCell<Vec<(u64, Call)>> = const { RefCell::new(Vec::new()) };
    static AHEAD: Cell<i64> = const { Cell::new(0) };
    static IS_INTERRUPTED: Cell<bool> = const { Cell::new(false) };
}

/// Returns the calls of this thread since the last time.
pub fn calls() -> Vec<Call> {
    timed_calls().into_iter().map(|(_, call)| call).collect()
}

/// Returns the calls of this thread since the last time, each with its time, ns.
pub fn timed_calls() -> Vec<(u64, Call)> {
    CALLS.take()
}

fn keep(call: Call) {
    let time = time::clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
    let time = time.tv_sec().cast_unsigned() * 1_000_000_000 + time.tv_nsec().cast_unsigned();
    CALLS.with_borrow_mut(|calls| calls.push((time, call)));
}

/// Puts the clock of this thread forward.
pub fn pass(seconds: i64) {
    AHEAD.set(AHEAD.get() + seconds);
}

/// Raises SIGUSR1 when this thread reads the clock for the next time.
pub fn interrupt() {
    IS_INTERRUPTED.set(true);
}

// Aligned, as the function that this is in place of, whose code is looked at.
global_asm!(
    ".pushsection .text.tracing_mark_write,\"ax\",%progbits",
    ".balign 16",
    ".globl tracing_mark_write",
    ".type tracing_mark_write,%function",
    "tracing_mark_write:",
    #[cfg(target_arch = "x86_64")]
    "jmp {function}",
    #[cfg(target_arch = "aarch64")]
    "b {function}",
    ".balign 16",
    ".popsection",
    function = sym on_mark,
);

extern "C" fn on_mark(payload: *const c_char) {
    // SAFETY: marks are text of C.
    let text = unsafe { CStr::from_ptr(payload) }.to_str().unwrap();
    let mut parts = text.splitn(3, '|');
    let kind = parts.next().unwrap();
    let rest = parts.nth(1).map(|rest| format!("|{rest}")).unwrap_or_default();
    keep(Call::Mark(format!("{kind}{rest}")));
}

// SAFETY: the name and the arguments are those of the function that this is in place of.
#[unsafe(no_mangle)]
extern "C" fn nntrace_lane_offer_(file: i64, key: u64) {
    keep(Call::Offer(file, key));
}

// SAFETY: as above; it does the same.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: clockid_t, reading: *mut timespec) -> c_int {
    if IS_INTERRUPTED.replace(false) {
        raise(Signal::SIGUSR1).unwrap();
    }
    // SAFETY: the caller's arguments.
    let result = unsafe { syscall(SYS_clock_gettime, clock, reading) };
    // SAFETY: it was just written.
    unsafe { (*reading).tv_sec += AHEAD.get() };
    result as c_int
}
