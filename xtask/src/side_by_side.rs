//! Doing several things at once, and saying what is left.

use std::{
    sync::{Mutex, PoisonError},
    thread,
    time::Instant,
};

use anyhow::{Result, anyhow};

/// A piece of work that needs none of the others.
pub struct Part<'a> {
    /// Its name, for people.
    pub name: &'static str,
    /// How it is done.
    pub work: Box<dyn FnOnce() -> Result<()> + Send + 'a>,
}

impl<'a> Part<'a> {
    /// A piece of work by this name.
    pub fn new(name: &'static str, work: impl FnOnce() -> Result<()> + Send + 'a) -> Self {
        Self { name, work: Box::new(work) }
    }
}

/// Does all of them at once, to their ends; says of each when it is done, and what is left.
///
/// # Errors
/// Those of the parts that failed: the first as it is, the others in lines of their own.
pub fn all(parts: Vec<Part<'_>>) -> Result<()> {
    let started = Instant::now();
    let left: Mutex<Vec<&str>> = Mutex::new(parts.iter().map(|part| part.name).collect());
    let failed = Mutex::new(None);
    thread::scope(|scope| {
        for Part { name, work } in parts {
            let (left, failed) = (&left, &failed);
            scope.spawn(move || {
                let done = work();
                let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
                left.retain(|other| *other != name);
                let word = if done.is_ok() { "done      " } else { "failed    " };
                let rest =
                    if left.is_empty() { String::new() } else { format!("; left: {}", left.join(", ")) };
                println!("{word} {name}, after {} s{rest}", started.elapsed().as_secs());
                if let Err(error) = done {
                    let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                    *failed = Some(match failed.take() {
                        None => error,
                        Some(first) => anyhow!("{first:#}\n{error:#}"),
                    });
                }
            });
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn parts_run_at_once() {
        let (to_first, from_second) = mpsc::channel();
        let (to_second, from_first) = mpsc::channel();
        // Each waits for the other.
        let first = move || -> Result<()> {
            to_second.send(())?;
            Ok(from_second.recv()?)
        };
        let second = move || -> Result<()> {
            to_first.send(())?;
            Ok(from_first.recv()?)
        };
        all(vec![Part::new("first", first), Part::new("second", second)]).unwrap();
    }

    #[test]
    fn a_part_that_fails_keeps_no_other_from_its_end() {
        let mut done = false;
        let parts = vec![
            Part::new("one", || Err(anyhow!("no"))),
            Part::new("other", || {
                done = true;
                Ok(())
            }),
        ];
        assert_eq!(all(parts).unwrap_err().to_string(), "no");
        assert!(done);
    }
}
