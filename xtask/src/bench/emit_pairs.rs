//! The Rust program whose sections are measured: the counterpart of `pairs.c`.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use nntrace_common::{emit, mark};

use crate::bench::{child, spread::Spread};

/// Number of parts of a round. A round counts with its median part: other programs may have run in another part.
const PARTS: u32 = 20;

/// Writes sections on request.
#[derive(Args)]
pub struct EmitPairs;

impl EmitPairs {
    /// Answers `pairs N` with ns per section and the number of sections, `listens` with 0 or 1.
    pub fn run() -> Result<()> {
        child::answer(|request| match request.split_once(' ') {
            Some(("pairs", count)) => Ok(round(count.parse().context("no number of pairs")?)),
            None if request == "listens" => Ok(u8::from(emit::listens()).to_string()),
            _ => bail!("unknown request `{request}`: expected `pairs N` or `listens`"),
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
