//! Two accounts, foo and bar, both submit images to be converted to one pool of two workers. The workers' time
//! belongs to the accounts, as the marks show by the hand-over of each job; one image takes visibly longer than the
//! other.
//!
//! Prints the truth as JSON: bounds of the time of the work, by account and by image.

use std::{
    collections::BTreeMap,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use nix::libc;
use nntrace_common::{emit, mark};
use nntrace_tests::truth::Bounds;
use serde::Serialize;

/// Image to be converted.
struct Job {
    account: &'static str,
    image: &'static str,
    length: Duration,
    handle: u64,
}

/// Bounds of the time of the work.
#[derive(Default, Serialize)]
struct Truth {
    accounts: BTreeMap<&'static str, Bounds>,
    images: BTreeMap<&'static str, Bounds>,
    sections: BTreeMap<&'static str, u64>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("job-queue: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    go_first();
    let (sender, receiver) = mpsc::channel();
    let (receiver, truth) = (Mutex::new(receiver), Mutex::new(Truth::default()));
    let submitted = thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| serve(&receiver, &truth));
        }
        let other = sender.clone();
        let submitters = [
            scope.spawn(move || submit(&other, "foo", "foo_image.jpg", Duration::from_millis(12), 10)),
            scope.spawn(move || submit(&sender, "bar", "bar_image.png", Duration::from_millis(4), 15)),
        ];
        submitters.map(|thread| thread.join().is_ok_and(|all| all)) == [true, true]
    });
    ensure!(submitted, "not all jobs were submitted");
    let truth = truth.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{}", serde_json::to_string(&truth)?);
    Ok(())
}

/// Submits the images; returns whether all could be submitted.
fn submit(
    queue: &Sender<Job>,
    account: &'static str,
    image: &'static str,
    length: Duration,
    count: u64,
) -> bool {
    (0..count).all(|number| {
        let _section = mark!(LA, PE, "submit", iter = number, acct = account);
        let job = Job { account, image, length, handle: emit::handle() };
        emit::send(job.handle);
        queue.send(job).is_ok()
    })
}

fn serve(queue: &Mutex<Receiver<Job>>, truth: &Mutex<Truth>) {
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
    while let Some(job) = next() {
        let before = Instant::now();
        let inside = {
            let _section = mark!(LA, PE, "convert_image", h = job.handle, img = job.image);
            let begin = Instant::now();
            while begin.elapsed() < job.length {}
            begin.elapsed()
        };
        let outside = before.elapsed();
        let mut truth = truth.lock().unwrap_or_else(PoisonError::into_inner);
        truth.accounts.entry(job.account).or_default().add(inside, outside);
        truth.images.entry(job.image).or_default().add(inside, outside);
        *truth.sections.entry(job.account).or_default() += 1;
    }
}

/// Gives this process and its threads a higher priority than all ordinary ones, if permitted: other work of the host
/// is then not in their times.
fn go_first() {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameters live through the call. A refusal only makes the times less even.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
}
