//! Stages, each a thread, that pass items on by bounded queues. The work of each item is a number of steps of arithmetic, so
//! that a stage that is twice as fast does half of them.
//!
//! Marks show the sections of the stages, and, by handles, which item was handed over when. Prints the time from the first
//! begin to the last end as JSON.

use std::{
    collections::VecDeque,
    hint::black_box,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use nntrace_common::{
    emit::{self, Payload},
    mark,
};
use serde_json::json;

/// Stages that pass items on by bounded queues.
#[derive(Debug, Parser)]
struct Cli {
    /// Steps of arithmetic for each item, by stage
    #[arg(long, value_delimiter = ',', default_values_t = [150_000, 400_000])]
    work: Vec<u64>,
    /// Speed of the first stage
    #[arg(long, default_value_t = 1.0)]
    scale_a: f64,
    /// Speed of the second stage
    #[arg(long, default_value_t = 1.0)]
    scale_b: f64,
    /// Speed of the third stage
    #[arg(long, default_value_t = 1.0)]
    scale_c: f64,
    /// Number of items
    #[arg(long, default_value_t = 800)]
    items: u64,
    /// Items that each queue has room for
    #[arg(long, default_value_t = 4)]
    room: usize,
    /// Write no marks of hand-overs
    #[arg(long)]
    no_handles: bool,
    /// Leave the room of queues out of the marks
    #[arg(long)]
    no_room: bool,
}

/// Item on its way.
#[derive(Clone, Copy)]
struct Item {
    number: u64,
    handle: u64,
}

/// Queue with room for a number of items.
struct Queue<'a> {
    cli: &'a Cli,
    items: Mutex<VecDeque<Item>>,
    has_room: Condvar,
    has_items: Condvar,
}

impl<'a> Queue<'a> {
    const fn new(cli: &'a Cli) -> Self {
        let items = Mutex::new(VecDeque::new());
        Self { cli, items, has_room: Condvar::new(), has_items: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Item>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands an item over as soon as there is room.
    fn push(&self, number: u64) {
        let item = Item { number, handle: emit::handle() };
        let is_full = |items: &mut VecDeque<Item>| items.len() >= self.cli.room;
        let waited = self.has_room.wait_while(self.lock(), is_full);
        let mut items = waited.unwrap_or_else(PoisonError::into_inner);
        if !self.cli.no_handles {
            emit::event(|| {
                let send = Payload::instant("nn.send").with("h", item.handle);
                if self.cli.no_room { send } else { send.with("cap", self.cli.room) }
            });
        }
        items.push_back(item);
        drop(items);
        self.has_items.notify_one();
    }

    /// Takes an item as soon as there is one.
    fn pop(&self) -> Option<Item> {
        let waited = self.has_items.wait_while(self.lock(), |items| items.is_empty());
        let mut items = waited.unwrap_or_else(PoisonError::into_inner);
        let item = items.pop_front();
        if let Some(item) = item.filter(|_| !self.cli.no_handles) {
            emit::recv(item.handle);
        }
        drop(items);
        self.has_room.notify_one();
        item
    }
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    ensure!((1..=3).contains(&cli.work.len()), "there are {} stages: expected 1 to 3", cli.work.len());
    ensure!(cli.room > 0, "a queue without room passes nothing on");
    emit::init(std::process::id());
    let scales = [cli.scale_a, cli.scale_b, cli.scale_c];
    ensure!(scales.iter().all(|scale| *scale > 0.0), "a stage that never ends passes nothing on");
    let steps: Vec<u64> = cli.work.iter().zip(scales).map(|(work, scale)| scaled(*work, scale)).collect();
    let queues: Vec<Queue<'_>> = steps[1..].iter().map(|_| Queue::new(&cli)).collect();
    let begin = Instant::now();
    let stages = thread::scope(|scope| {
        let spawned: Vec<_> = steps
            .iter()
            .enumerate()
            .map(|(stage, &steps)| {
                let before = stage.checked_sub(1).and_then(|before| queues.get(before));
                let (behind, items) = (queues.get(stage), cli.items);
                scope.spawn(move || {
                    for number in 0..items {
                        let number = before.and_then(Queue::pop).map_or(number, |item| item.number);
                        work(stage, number, steps);
                        if let Some(behind) = behind {
                            behind.push(number);
                        }
                    }
                    begin.elapsed()
                })
            })
            .collect();
        spawned.into_iter().map(|stage| stage.join().ok()).collect::<Option<Vec<_>>>()
    });
    let ends = stages.context("a stage has failed")?;
    let end = ends.into_iter().max().unwrap_or_default();
    println!("{}", json!({ "makespan_ns": end.as_nanos() as u64, "items": cli.items }));
    Ok(())
}

/// Returns the steps of a stage that is this many times as fast.
fn scaled(steps: u64, scale: f64) -> u64 {
    #[expect(clippy::cast_sign_loss, reason = "neither is negative")]
    let scaled = (steps as f64 / scale) as u64;
    scaled
}

/// Works on an item.
fn work(stage: usize, number: u64, steps: u64) {
    let _section = match stage {
        0 => mark!(LA, PE, "stage_a", iter = number),
        1 => mark!(LR, PE, "stage_b", iter = number),
        _ => mark!(LD, PE, "stage_c", iter = number),
    };
    let mut state = number;
    for _ in 0..steps {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}
