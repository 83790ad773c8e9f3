//! The terminal while the interface has it: raw mode and the alternate screen, given back whatever happens.

mod fatal;

use std::io::{self, IsTerminal as _, Stdout, stdout};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, raise, sigaction};
use nix::sys::termios::tcdrain;
use nix::unistd::Pid;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};

use super::App;

/// Whether the terminal is ours now. Process-wide, as the terminal is: the panic hook has no guard at hand.
static ENTERED: AtomicBool = AtomicBool::new(false);

type Screen = ratatui::Terminal<CrosstermBackend<Stdout>>;

/// Holds the terminal in raw mode on the alternate screen; dropping it, a panic in any thread, or a signal that kills,
/// restores it.
pub struct Terminal {
    inner: Screen,
}

/// Processes that are stopped with the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// This process alone, as SIGTSTP to it asks.
    Process,
    /// The whole job, a command that we launched too, as Ctrl-Z does where the terminal is not in raw mode.
    Job,
}

impl Terminal {
    /// Takes the terminal on stdout. In the background it waits, stopped, until the shell gives us the foreground.
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
        if ENTERED.load(Ordering::SeqCst) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "the terminal is in use already"));
        }
        take().map(|inner| Self { inner })
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

    /// Gives the terminal back and stops, as shells know it of other programs; continued in the foreground, it takes
    /// the terminal again. The caller draws then.
    ///
    /// # Errors
    ///
    /// When the terminal cannot be taken again.
    pub fn suspend(&mut self, what: Stop) -> io::Result<()> {
        restore();
        stop(what)?;
        self.inner = take()?;
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Takes the terminal, from whatever state it is in.
fn take() -> io::Result<Screen> {
    // The kernel stops whoever drains a terminal of which another job has the foreground. What is found before that would
    // be the settings of the shell's own line editor, and those would be restored in the end.
    tcdrain(stdout())?;
    fatal::restore_on_signals()?;
    ENTERED.store(true, Ordering::SeqCst);
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
        ratatui::Terminal::new(CrosstermBackend::new(stdout()))
    };
    start().inspect_err(|_| restore())
}

/// Gives the terminal back, once: later calls do nothing.
fn restore() {
    if ENTERED.swap(false, Ordering::SeqCst) {
        // Nothing is left to be done about a failure here: the terminal is gone.
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// Stops until SIGCONT. A job that no shell could continue is not stopped: the kernel sees to that.
fn stop(what: Stop) -> io::Result<()> {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default action is no function of ours.
    let caught = unsafe { sigaction(Signal::SIGTSTP, &default) }?;
    match what {
        Stop::Process => raise(Signal::SIGTSTP)?,
        Stop::Job => kill(Pid::from_raw(0), Signal::SIGTSTP)?,
    }
    // SAFETY: this puts back the action that was there.
    unsafe { sigaction(Signal::SIGTSTP, &caught) }?;
    Ok(())
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
