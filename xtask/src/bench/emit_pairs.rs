//! The Rust program whose sections are measured: the counterpart of `pairs.c`.

use std::{
    array,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::Args;
use nntrace_common::{
    emit::{self, Section},
    mark,
};

use crate::bench::{child, spread::Spread};

/// Number of parts of a round. A round counts with its median part: other programs may have run in another part.
const PARTS: u32 = 20;

/// Sections within each other whose begins are timed together, and then their ends.
const DEPTH: u32 = 32;

/// Writes sections on request.
#[derive(Args)]
pub struct EmitPairs;

impl EmitPairs {
    /// Answers `pairs N` with ns per section and the number of sections, `halves N` with ns per begin, ns per end and the
    /// number of sections, `listens` with 0 or 1.
    pub fn run() -> Result<()> {
        child::answer(|request| match request.split_once(' ') {
            Some(("pairs", count)) => Ok(round(count.parse().context("no number of pairs")?)),
            Some(("halves", count)) => Ok(halves(count.parse().context("no number of pairs")?)),
            None if request == "listens" => Ok(u8::from(emit::listens()).to_string()),
            _ => bail!("unknown request `{request}`: expected `pairs N`, `halves N` or `listens`"),
        })
    }
}

fn round(count: u32) -> String {
    let count = count / PARTS;
    let mut parts = Vec::new();
    for _ in 0..PARTS {
        let begin = Instant::now();
        for _ in 0..count {
            drop(mark!(LR, PE, "execute"));
        }
        parts.push(begin.elapsed().as_secs_f64() * 1e9 / f64::from(count));
    }
    format!("{} {}", Spread::of(&parts).median, count * PARTS)
}

/// Times begins and ends apart.
fn halves(count: u32) -> String {
    let batches = count / PARTS / DEPTH;
    let (mut begins, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..PARTS {
        let mut spent = [Duration::ZERO; 2];
        for _ in 0..batches {
            let begin = Instant::now();
            let sections: [Section; DEPTH as usize] = array::from_fn(|_| mark!(LR, PE, "execute"));
            let middle = Instant::now();
            drop(sections);
            spent[0] += middle - begin;
            spent[1] += middle.elapsed();
        }
        let ns = spent.map(|time| time.as_secs_f64() * 1e9 / f64::from(batches * DEPTH));
        begins.push(ns[0]);
        ends.push(ns[1]);
    }
    format!("{} {} {}", Spread::of(&begins).median, Spread::of(&ends).median, batches * DEPTH * PARTS)
}
