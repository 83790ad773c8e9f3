//! Window of the kernel programs: its ends are set ahead, so that marks, power states and scheduling begin and end at
//! the same time.

use std::time::Duration;

use aya::maps::Array;
use nntrace_common::window::Window;

use super::{Kernel, KernelError};
use crate::live::clock::{self, nanoseconds, wait_until};

/// Time from setting the end of the window to that end: enough to pass it to the programs, and for those that have
/// already read the clock to finish.
const TAIL: Duration = Duration::from_millis(2);

/// Time within which an end that was set is waited for.
const NEAR: Duration = Duration::from_millis(30);

impl Kernel {
    /// Sets the window of all programs.
    ///
    /// # Errors
    /// When the kernel refuses to write a map.
    pub(crate) fn set_window(&mut self, window: Window) -> Result<(), KernelError> {
        let mut windows: Array<_, Window> = self.object.array("WINDOW")?;
        windows.set(0, window, 0).map_err(KernelError::writing)
    }

    /// Ends the window, waits for that end, and returns it (ns): from then on all tables stay as they are. The end
    /// that was set in `window` stands when it is near; otherwise the window ends at once.
    ///
    /// # Errors
    /// When the kernel refuses to write a map.
    pub(crate) fn end_window(&mut self, window: Window) -> Result<u64, KernelError> {
        let mut tail = TAIL;
        loop {
            let now = clock::now();
            let end = now + nanoseconds(tail);
            if window.is_over(now + nanoseconds(NEAR)) {
                wait_until(window.end);
                return Ok(window.end);
            }
            self.set_window(Window { end, ..window })?;
            // If it was set too late, the tables already contain events after it: a later end, then.
            if clock::now() < end {
                wait_until(end);
                return Ok(end);
            }
            tail *= 2;
        }
    }
}
