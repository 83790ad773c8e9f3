//! Stage of the library, or executable, that this is linked into: when it is unloaded its lanes are given up.
//!
//! At the end of a process the same is called, while other threads may go on with marks. The order shows which it is: what is
//! registered by `atexit` is called before all of `.fini_array` then, and last when a library is unloaded.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU8, Ordering};

use super::system::SavedErrno;
use super::{OWN, control};

/// Registered, so that the end of the library is noticed.
const LOADED: u8 = 1;
/// Other destructors of the library are called.
const LEAVING: u8 = 2;
/// The process ends, or the end of the library is not noticed.
const ENDING: u8 = 3;
const UNLOADED: u8 = 4;

static STAGE: AtomicU8 = AtomicU8::new(0);

// The first of all constructors, so that what it registers comes last.
#[used]
// SAFETY: a function for this place, which needs nothing that others initialize.
#[unsafe(link_section = ".init_array.00101")]
static LOAD: extern "C" fn() = load;
#[used]
// SAFETY: as above.
#[unsafe(link_section = ".fini_array")]
static UNLOAD: extern "C" fn() = unload;

// SAFETY: libc's function.
unsafe extern "C" {
    safe fn atexit(function: extern "C" fn()) -> c_int;
}

/// Whether the library's lanes were given up for good.
pub(super) fn is_unloaded() -> bool {
    STAGE.load(Ordering::Relaxed) == UNLOADED
}

extern "C" fn load() {
    let _errno = SavedErrno::new();
    let stage = if atexit(leave) == 0 { LOADED } else { ENDING };
    STAGE.store(stage, Ordering::Relaxed);
}

extern "C" fn unload() {
    let _ = STAGE.compare_exchange(LOADED, LEAVING, Ordering::Relaxed, Ordering::Relaxed);
}

extern "C" fn leave() {
    let _errno = SavedErrno::new();
    if STAGE.compare_exchange(LEAVING, UNLOADED, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        OWN.set(None);
        // SAFETY: the library's code goes with it, so no other thread uses it.
        unsafe { control::release_all() };
    } else {
        STAGE.store(ENDING, Ordering::Relaxed);
    }
}
