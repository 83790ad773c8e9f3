//! Signals that kill: the terminal is given back before they do.

use std::io::{self, stdout};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::termios::tcgetattr;

use super::ENTERED;
use crate::foreign_map;

/// Signals that kill unless they are caught, and that nobody asks a program to end by. `SIGBUS` has a handler already, and `SIGIO`
/// announces writers to probed files.
const FATAL: [Signal; 12] = [
    Signal::SIGABRT,
    Signal::SIGFPE,
    Signal::SIGILL,
    Signal::SIGPROF,
    Signal::SIGPWR,
    Signal::SIGSEGV,
    Signal::SIGSTKFLT,
    Signal::SIGSYS,
    Signal::SIGTRAP,
    Signal::SIGVTALRM,
    Signal::SIGXCPU,
    Signal::SIGXFSZ,
];

/// Leaves the alternate screen and shows the cursor.
const LEAVE: &[u8] = b"\x1b[?1049l\x1b[?25h";

/// Settings of the terminal from before it was ours. Never freed: a handler may read them at any time.
static SETTINGS: AtomicPtr<libc::termios> = AtomicPtr::new(ptr::null_mut());

/// Keeps the terminal's settings, and has them and the screen restored by every signal that kills. Called before the
/// terminal is changed.
///
/// # Errors
/// When the settings cannot be read.
pub(crate) fn restore_on_signals() -> io::Result<()> {
    let settings: libc::termios = tcgetattr(stdout())?.into();
    let kept = Box::into_raw(Box::new(settings));
    // A few bytes for each time that the terminal is taken.
    SETTINGS.store(kept, Ordering::SeqCst);
    // On a stack of its own, as ours may have run over; once: the second signal finds the default action.
    let flags = SaFlags::SA_ONSTACK | SaFlags::SA_RESETHAND;
    let action = SigAction::new(SigHandler::Handler(on_fatal), flags, SigSet::empty());
    for signal in FATAL {
        // SAFETY: the handler makes only calls that are async-signal-safe.
        let before = unsafe { sigaction(signal, &action) }?;
        if matches!(before.handler(), SigHandler::SigIgn) {
            // SAFETY: this puts back the action that was there.
            unsafe { sigaction(signal, &before) }?;
        }
    }
    foreign_map::before_death(restore)
}

/// Restores the terminal, and lets the signal kill.
extern "C" fn on_fatal(signal: libc::c_int) {
    restore();
    // SAFETY: async-signal-safe. It is delivered when this returns, and finds the default action.
    unsafe { libc::raise(signal) };
}

/// Restores the terminal. Async-signal-safe.
fn restore() {
    if ENTERED.swap(false, Ordering::SeqCst) {
        let settings = SETTINGS.load(Ordering::SeqCst);
        // SAFETY: the bytes are static, and the settings are never freed; both calls are async-signal-safe.
        unsafe {
            libc::write(libc::STDOUT_FILENO, LEAVE.as_ptr().cast(), LEAVE.len());
            if !settings.is_null() {
                libc::tcsetattr(libc::STDOUT_FILENO, libc::TCSANOW, settings);
            }
        }
    }
}
