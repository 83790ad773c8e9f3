//! Forks many children, one after the other, half of which execute this program again. Each writes marks, and so has
//! the parent before: sections by the emitter, and one of two texts that only the profiler ever reads. The
//! counterpart of `tests/native/forks.c`, which uses the header, for systems without a compiler.

use std::{env, os::unix::process::CommandExt as _, process::Command};

use anyhow::{Context as _, Result, ensure};
use nix::{
    libc,
    sys::wait::{WaitStatus, waitpid},
    unistd::{ForkResult, fork},
};
use nntrace_common::{
    emit::{self, Section, tracing_mark_write},
    layer::{Layer, Phase},
};

/// Sections of each process by the emitter.
const SECTIONS: u32 = 3;
/// First argument, in place of the number of children, for those that execute the program again.
const CHILD: &str = "child";
/// Size of the groups of pages, 64 KiB, that the kernel maps around a page that is read; and no page is larger than
/// that.
const GROUP: usize = 1 << 16;

/// Texts in pages of their own.
#[repr(C, align(65536))]
struct Texts {
    begin: [u8; 22],
    end: [u8; 4],
    padding: [u8; GROUP - 26],
}

static TEXTS: Texts = Texts { begin: *b"B|1|[NN_LR_PE]literal\0", end: *b"E|1\0", padding: [1; GROUP - 26] };

fn main() -> Result<()> {
    let argument = env::args().nth(1).context("how many children?")?;
    mark();
    if argument == CHILD {
        return Ok(());
    }
    for number in 0..argument.parse::<u32>()? {
        // SAFETY: this process has one thread, so the child may do anything.
        match unsafe { fork() }.context("cannot fork")? {
            ForkResult::Child if number % 2 == 1 => {
                return Err(Command::new(env::current_exe()?).arg(CHILD).exec()).context("cannot execute");
            }
            ForkResult::Child => {
                mark();
                // SAFETY: nothing of the parent has to be cleaned up.
                unsafe { libc::_exit(0) }
            }
            ForkResult::Parent { child } => {
                let ended = waitpid(child, None).context("cannot wait for the child")?;
                ensure!(matches!(ended, WaitStatus::Exited(_, 0)), "child {number} failed: {ended:?}");
            }
        }
    }
    Ok(())
}

fn mark() {
    emit::init(std::process::id());
    for _ in 0..SECTIONS {
        drop(Section::begin(Layer::CpuFallback, Phase::Execution, "section"));
    }
    tracing_mark_write(TEXTS.begin.as_ptr());
    tracing_mark_write(TEXTS.end.as_ptr());
}
