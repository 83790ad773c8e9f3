//! The application's threads, which take images from a queue and classify them.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use nntrace_common::layer::{Layer, Phase};

use crate::engine::Engine;
use crate::images::Image;
use crate::runtime::Session;
use crate::truth::Section;

/// Image to be classified.
#[derive(Clone, Copy, Debug)]
struct Job {
    /// Iteration, from 0 over the whole run, which also selects the image.
    iteration: u64,
}

/// Duration of a job, or the reason why it failed.
type Outcome = Result<Duration>;

/// Threads that classify images.
#[derive(Debug)]
pub struct Workers {
    jobs: Sender<Job>,
    outcomes: Receiver<Outcome>,
    threads: Vec<JoinHandle<()>>,
    done: Done,
}

/// Results of the threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Number of classified images.
    pub inferences: u64,
    /// Sum of their latencies.
    pub latency: Duration,
}

impl Workers {
    /// Starts a thread for each session; after each image it sleeps for `pause`.
    pub fn start(sessions: Vec<Session>, images: &Arc<Vec<Image>>, pause: Duration) -> Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let (reports, outcomes) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        let mut threads = Vec::with_capacity(sessions.len());
        for (index, session) in sessions.into_iter().enumerate() {
            let (queue, reports, images) = (Arc::clone(&queue), reports.clone(), Arc::clone(images));
            let name = format!("worker-{index}");
            let thread = Engine::spawn(name, move |engine| {
                work(session, engine, &images, pause, &queue, &reports);
            })?;
            threads.push(thread);
        }
        Ok(Self { jobs, outcomes, threads, done: Done::default() })
    }

    /// Classifies images, one per thread at a time, for as long as `go_on` returns true for the number requested in
    /// this batch.
    pub fn run_batch(&mut self, mut go_on: impl FnMut(u64) -> bool) -> Result<()> {
        let (mut asked, mut finished) = (0, 0);
        loop {
            while asked - finished < self.threads.len() as u64 && go_on(asked) {
                let iteration = self.done.inferences + asked - finished;
                self.jobs.send(Job { iteration }).map_err(|_| anyhow!("every worker has ended"))?;
                asked += 1;
            }
            if finished == asked {
                return Ok(());
            }
            self.done.latency += self.outcomes.recv().context("every worker has ended")??;
            self.done.inferences += 1;
            finished += 1;
        }
    }

    /// Waits for the threads to end, which closes their sessions.
    pub fn finish(self) -> Result<Done> {
        drop(self.jobs);
        for thread in self.threads {
            thread.join().map_err(|_| anyhow!("a worker panicked"))?;
        }
        Ok(self.done)
    }
}

/// Classifies images until the queue is closed.
fn work(
    mut session: Session,
    engine: &Engine,
    images: &[Image],
    pause: Duration,
    queue: &Mutex<Receiver<Job>>,
    reports: &Sender<Outcome>,
) {
    let mut scores = Vec::new();
    loop {
        // The lock is held while this thread waits, and the others wait for the lock instead.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { iteration }) = job else { return };
        let image = &images[(iteration % images.len() as u64) as usize];
        let begun = Instant::now();
        let result = {
            let name = &image.name;
            let _section = Section::begin_args(
                Layer::Application,
                Phase::Execution,
                format_args!("classify#iter={iteration}#img={name}"),
            );
            session.execute(engine, &image.pixels, &mut scores)
        };
        let latency = begun.elapsed();
        let outcome = result.and_then(|()| image.check(&scores)).map(|()| latency);
        // Nobody listens any more when another worker has failed.
        if reports.send(outcome).is_err() {
            return;
        }
        thread::sleep(pause);
    }
}
