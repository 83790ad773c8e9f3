//! The terminal while the interface has it: raw mode and the alternate screen, given back whatever happens.

use std::io::{self, IsTerminal as _, Stdout, stdout};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};

use super::App;

/// Whether the terminal is ours now. Process-wide, as the terminal is: the panic hook has no guard at hand.
static ENTERED: AtomicBool = AtomicBool::new(false);

/// Holds the terminal in raw mode on the alternate screen; dropping it, or a panic in any thread, restores it.
pub struct Terminal {
    inner: ratatui::Terminal<CrosstermBackend<Stdout>>,
}

impl Terminal {
    /// Takes the terminal on stdout.
    ///
    /// # Errors
    ///
    /// When stdout is no terminal, or another guard holds it. What was changed by then is restored.
    pub fn enter() -> io::Result<Self> {
        // Raw mode works without it, by way of /dev/tty; the drawing would go into a file.
        if !stdout().is_terminal() {
            return Err(io::Error::other("stdout is no terminal"));
        }
        restore_on_panic();
        if ENTERED.swap(true, Ordering::SeqCst) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "the terminal is in use already"));
        }
        let start = || {
            enable_raw_mode()?;
            // A serial console is often of no size at all until someone tells it.
            if matches!(size()?, (0, _) | (_, 0)) {
                return Err(io::Error::other(
                    "the terminal does not know its size: `stty cols 80 rows 24` tells it",
                ));
            }
            // Cleared by hand: ratatui's clear() asks the terminal where the cursor is, and not every one answers.
            execute!(stdout(), EnterAlternateScreen, Clear(ClearType::All), Hide)?;
            Ok(Self { inner: ratatui::Terminal::new(CrosstermBackend::new(stdout()))? })
        };
        start().inspect_err(|_| restore())
    }

    /// Draws `app`; a changed size of the terminal is taken into account.
    ///
    /// # Errors
    ///
    /// When the terminal cannot be written to, or was given back because another thread panicked.
    pub fn draw(&mut self, app: &mut App) -> io::Result<()> {
        if !ENTERED.load(Ordering::SeqCst) {
            return Err(io::Error::other("the terminal was given back after a panic"));
        }
        self.inner.draw(|frame| app.draw(frame)).map(drop)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back, once: later calls do nothing.
fn restore() {
    if ENTERED.swap(false, Ordering::SeqCst) {
        // Nothing is left to be done about a failure here: the terminal is gone.
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// Puts [`restore`] before the panic hook that is there, so that its message appears on the ordinary screen.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
    });
}
