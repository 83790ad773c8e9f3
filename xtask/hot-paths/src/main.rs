//! The code that each mark runs through, as often as asked for: the Rust guard, and the collector's reading of a lane.
//!
//! `off N` and `express N` write N sections, `lane N` reads as many from a lane. The part that counts is all in the
//! function [`counted`].

mod collector;
mod lane;

use std::{env, hint::black_box};

use anyhow::{Context as _, Result, bail, ensure};
use nntrace_common::{emit, mark};
use nntrace_user::live::express::account_lane;

use collector::Collector;

/// Sections after which the lane is emptied; it has room for many times as many.
const BATCH: u64 = 128;
/// Sections after which a thread has offered a lane.
const BEFORE: u64 = 64;

fn main() -> Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [path, count] = &words[..] else { bail!("expected PATH COUNT, not `{}`", words.join(" ")) };
    let count: u64 = count.parse().with_context(|| format!("{count} is no number of sections"))?;
    match &path[..] {
        "off" => {
            sections(1);
            ensure!(!emit::listens(), "somebody listens to the marks of this program");
            counted(|| sections(count));
        }
        "express" => {
            let collector = Collector::listen(|| sections(BEFORE))?;
            // The site's definition.
            sections(1);
            let before = collector.drain();
            counted(|| {
                for _ in 0..count / BATCH {
                    sections(BATCH);
                    collector.drain();
                }
            });
            let marks = (collector.drain() - before) / 16;
            let expected = count / BATCH * BATCH * 2;
            ensure!(marks >= expected, "{marks} marks are in the lane: expected {expected}");
        }
        "lane" => {
            let file = lane::memory(count)?;
            let read = counted(|| account_lane(&file, lane::KEY, false)).context("the lane is not read")?;
            ensure!(read.marks == 2 * count, "{} marks were read: expected {}", read.marks, 2 * count);
        }
        _ => bail!("unknown path `{path}`: expected off, express or lane"),
    }
    Ok(())
}

/// Runs what is counted.
#[inline(never)]
fn counted<T>(run: impl FnOnce() -> T) -> T {
    black_box(run())
}

#[inline(always)]
fn sections(count: u64) {
    for _ in 0..count {
        drop(mark!(LR, PE, "execute"));
    }
}
