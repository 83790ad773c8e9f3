//! Doing several things at once.

use std::{
    iter,
    num::NonZero,
    panic::resume_unwind,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
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

/// Returns how many things this host does at once.
pub fn cpus() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Does all jobs, this many at once; returns their results.
pub fn jobs<J: Sync, T: Send>(jobs: &[J], at_once: usize, run: impl Fn(&J) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work =
        || iter::from_fn(|| jobs.get(next.fetch_add(1, Ordering::Relaxed)).map(&run)).collect::<Vec<T>>();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once.min(jobs.len())).map(|_| scope.spawn(work)).collect();
        let joined =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        joined.flatten().collect()
    })
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

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

    #[test]
    fn all_jobs_are_done_once_and_some_at_the_same_time() {
        let jobs: Vec<u32> = (0..40).collect();
        let (begun, deadline) = (AtomicUsize::new(0), Instant::now() + Duration::from_secs(20));
        let mut done: Vec<(u32, bool)> = super::jobs(&jobs, 2, |&job| {
            // The first waits for the second to begin.
            let number = begun.fetch_add(1, Ordering::Relaxed);
            while number == 0 && begun.load(Ordering::Relaxed) < 2 && Instant::now() < deadline {
                thread::yield_now();
            }
            (job, Instant::now() < deadline)
        });
        done.sort_unstable();
        assert!(done.iter().all(|(_, in_time)| *in_time), "one after the other");
        assert!(done.iter().map(|(job, _)| job).eq(&jobs));
        assert!(super::jobs(&jobs[..0], 2, |&job| job).is_empty());
        assert_eq!(super::jobs(&jobs[..3], 1, |&job| job), [0, 1, 2]);
    }
}
