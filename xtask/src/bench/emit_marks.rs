//! The program whose marks are measured. It runs through all rounds, so that nothing but the probe differs.

use std::{
    fmt, fs::File, hint::black_box, io::Write, os::unix::fs::FileExt, path::PathBuf, process, str::FromStr,
    time::Instant,
};

use anyhow::{Context, Result, bail};
use clap::Args;
use nntrace_common::{
    emit::{self, Payload, tracing_mark_write},
    layer::{Layer, Phase},
};

use crate::bench::{child, spread::Spread};

/// Number of parts of a round. A round counts with its median part: other programs may have run in another part.
const PARTS: u32 = 20;

/// Writes marks on request.
#[derive(Args)]
pub struct EmitMarks {
    /// Marks a round
    #[arg(long)]
    marks: u32,
    /// The file that takes marks without a probe
    #[arg(long)]
    trace_marker: PathBuf,
}

impl EmitMarks {
    /// Answers `probe` and `trace-marker` with ns per mark and the number of marks, `site` with the [`Site`].
    pub fn run(&self) -> Result<()> {
        emit::init(process::id());
        let outer = Payload::begin(Layer::Runtime, Phase::Execution, "execute");
        let inner = Payload::begin(Layer::CpuFallback, Phase::Computation, "conv2d");
        let end = Payload::end();
        let marks = [&outer, &inner, &end, &end];
        let texts = marks.map(|mark| mark.as_c_str().to_bytes());
        let file = File::options().write(true).open(&self.trace_marker);
        let mut file = file.with_context(|| format!("cannot write to {}", self.trace_marker.display()))?;
        child::answer(|request| match request {
            "probe" => self.round(|| {
                for mark in black_box(marks) {
                    mark.write();
                }
                Ok(())
            }),
            "trace-marker" => self.round(|| {
                texts.iter().try_for_each(|text| file.write_all(text)).context("cannot write to trace_marker")
            }),
            "site" => Ok(Site::read()?.to_string()),
            _ => bail!("unknown request `{request}`: expected probe, trace-marker or site"),
        })
    }

    /// Times many calls of `write`, which writes four marks each.
    fn round(&self, mut write: impl FnMut() -> Result<()>) -> Result<String> {
        let calls = self.marks / 4 / PARTS;
        let mut parts = Vec::new();
        for _ in 0..PARTS {
            let begin = Instant::now();
            for _ in 0..calls {
                write()?;
            }
            parts.push(begin.elapsed().as_secs_f64() * 1e9 / f64::from(calls * 4));
        }
        Ok(format!("{} {}", Spread::of(&parts).median, calls * 4 * PARTS))
    }
}

/// State of the mark function's first instructions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// Nops from the compiler: not probed.
    Nop,
    /// A call, as in optimised probes of x86-64.
    Call,
    /// A trap, as in ordinary probes.
    Trap,
}

impl Site {
    /// Reads this program's own code.
    fn read() -> Result<Self> {
        const MEMORY: &str = "/proc/self/mem";
        let mut code = [0; 8];
        File::open(MEMORY)
            .and_then(|memory| memory.read_exact_at(&mut code, tracing_mark_write as *const () as u64))
            .with_context(|| format!("the code of this program cannot be read: {MEMORY}"))?;
        Ok(match code {
            // Both places as they were assembled, on x86-64 and on arm64.
            [0x0f, _, _, _, _, 0x90, ..] | [0x1f, _, _, _, 0xc0, ..] => Self::Nop,
            [0xe8, ..] => Self::Call,
            _ => Self::Trap,
        })
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Nop => "nop",
            Self::Call => "call",
            Self::Trap => "trap",
        })
    }
}

impl FromStr for Site {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        [Self::Nop, Self::Call, Self::Trap].into_iter().find(|site| site.to_string() == text).ok_or(())
    }
}
