//! The log: lines of the kernel programs and of the collector, to stderr, or to the notes of the terminal interface.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, OnceLock, PoisonError},
    time::Instant,
};

use log::{LevelFilter, Log, Metadata, Record};
use nntrace_user::model::plurals::one_or_many;

use crate::stderr;

/// Lines that are kept while the terminal interface runs: the newest ones.
const KEPT: usize = 200;

/// The variable of the environment that names a level.
pub const VARIABLE: &str = "NNTRACE_LOG";

/// The level that is asked for: by how often `-v` was given, else by the variable; none otherwise.
///
/// # Errors
/// The variable's value, when it names no level: a text that says what does.
pub fn level(verbose: u8, variable: Option<&str>) -> Result<LevelFilter, String> {
    match (verbose, variable.filter(|value| !value.is_empty())) {
        (1, _) => Ok(LevelFilter::Info),
        (2, _) => Ok(LevelFilter::Debug),
        (3.., _) => Ok(LevelFilter::Trace),
        (0, None) => Ok(LevelFilter::Off),
        (0, Some(value)) => value.parse().map_err(|_| {
            format!("{VARIABLE} is \"{value}\"; it takes off, error, warn, info, debug or trace")
        }),
    }
}

/// Lets lines of this level and of more important ones through, from now on.
pub fn start(level: LevelFilter) {
    LOGGER.started.get_or_init(Instant::now);
    // Another logger there cannot be: this is called once.
    if log::set_logger(&LOGGER).is_ok() {
        log::set_max_level(level);
    }
}

/// Keeps lines from now on: the terminal is the interface's.
pub fn keep() {
    *LOGGER.kept() = Some(Kept::default());
}

/// Says something at once, whatever the level: to stderr, or in the notes of the interface.
pub fn announce(text: &str) {
    match &mut *LOGGER.kept() {
        Some(kept) => kept.add(text),
        None => stderr::message(text),
    }
}

/// The lines that are kept, for the notes of the interface.
#[must_use]
pub fn kept() -> Vec<String> {
    LOGGER.kept().as_ref().map(Kept::notes).unwrap_or_default()
}

/// Writes to stderr again, first what was kept.
pub fn release() {
    if let Some(kept) = LOGGER.kept().take() {
        kept.notes().iter().for_each(stderr::message);
    }
}

static LOGGER: Logger = Logger { started: OnceLock::new(), kept: Mutex::new(None) };

struct Logger {
    started: OnceLock<Instant>,
    /// Where lines go while the terminal is the interface's.
    kept: Mutex<Option<Kept>>,
}

impl Logger {
    fn kept(&self) -> impl std::ops::DerefMut<Target = Option<Kept>> {
        // A list of lines is whole at any time.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Libraries log as well, for those who debug them.
        metadata.target() == "kernel" || metadata.target().starts_with("nntrace")
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let elapsed = self.started.get().map_or(0.0, |started| started.elapsed().as_secs_f64());
        let from = if record.target() == "kernel" { "kernel: " } else { "" };
        let level = record.level().as_str().to_ascii_lowercase();
        // Names in lines of the programs are filled up with spaces.
        let text = record.args().to_string();
        let line = format!("{elapsed:.3} s {level}: {from}{}", text.trim_end());
        match &mut *self.kept() {
            Some(kept) => kept.add(line),
            None => stderr::message(line),
        }
    }

    fn flush(&self) {}
}

/// The newest lines.
#[derive(Default)]
struct Kept {
    lines: VecDeque<String>,
    dropped: u64,
}

impl Kept {
    fn add(&mut self, line: impl fmt::Display) {
        if self.lines.len() == KEPT {
            self.lines.pop_front();
            self.dropped += 1;
        }
        self.lines.push_back(line.to_string());
    }

    fn notes(&self) -> Vec<String> {
        let dropped = (self.dropped > 0).then(|| {
            let are = one_or_many(self.dropped, "older log line is", "older log lines are");
            format!("{} {are} not kept", self.dropped)
        });
        dropped.into_iter().chain(self.lines.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_wins_over_the_variable() {
        assert_eq!(level(0, None), Ok(LevelFilter::Off));
        assert_eq!(level(0, Some("")), Ok(LevelFilter::Off));
        assert_eq!(level(0, Some("Trace")), Ok(LevelFilter::Trace));
        assert_eq!(level(1, Some("trace")), Ok(LevelFilter::Info));
        assert_eq!(level(2, Some("off")), Ok(LevelFilter::Debug));
        assert_eq!(level(9, None), Ok(LevelFilter::Trace));
    }

    #[test]
    fn a_wrong_level_is_told_with_the_right_ones() {
        let error = level(0, Some("verbose")).unwrap_err();
        assert_eq!(error, "NNTRACE_LOG is \"verbose\"; it takes off, error, warn, info, debug or trace");
    }

    #[test]
    fn the_newest_lines_are_kept_and_the_others_counted() {
        let mut kept = Kept::default();
        (0..KEPT + 3).for_each(|number| kept.add(number));
        let notes = kept.notes();
        assert_eq!(notes.len(), KEPT + 1);
        assert_eq!(notes[0], "3 older log lines are not kept");
        assert_eq!((notes[1].as_str(), notes[KEPT].as_str()), ("3", "202"));
    }
}
