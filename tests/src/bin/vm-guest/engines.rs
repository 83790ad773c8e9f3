//! A stripped C++ library as an engine.

use std::path::Path;

use anyhow::{Context as _, Result};
use nntrace_tests::engine_ends::{EngineEnds, WAYS};

use crate::Outcome;

/// Folder of the engine, its program and its map.
const FOLDER: &str = "/engine";

/// Profiles the program whose functions end in every way, and compares the result with what it did.
pub fn end_in_every_way() -> Result<Outcome> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let mut numbers = release.split(['.', '-']).map(str::parse::<u32>);
    let version = numbers.next().zip(numbers.next()).context("no version")?;
    if let (Ok(major), Ok(minor)) = version
        && (major, minor) < (5, 15)
    {
        return Ok(Outcome::Skipped("functions of engines need Linux 5.15".into()));
    }
    let engine = EngineEnds::at(Path::new(FOLDER));
    for way in &WAYS {
        engine.check(way)?;
        println!("engine: {} as it went", way.name);
    }
    Ok(Outcome::Passed)
}
