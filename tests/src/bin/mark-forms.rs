//! Every form of a mark in Rust, and sections that are left by `?`, by `return` and by a panic.

use std::{
    panic::{self, AssertUnwindSafe},
    process::ExitCode,
};

use nntrace_common::{
    emit::{self, MarkLayer},
    mark,
};
use tracing::info_span;
use tracing_subscriber::prelude::*;

const ROUNDS: u64 = 5;

fn main() -> ExitCode {
    // The panics are part of it.
    panic::set_hook(Box::new(|_| ()));
    let _all = mark!(LA, PO, "all");
    for round in 0..ROUNDS {
        part(round);
        let was_left = panic::catch_unwind(fails).is_err() && question("no number").is_none() && early(round);
        if !was_left {
            return ExitCode::FAILURE;
        }
    }
    let handle = emit::handle();
    emit::send(handle);
    emit::recv(handle);
    emit::instant("now");
    emit::counter("level", -3);
    let subscriber = tracing_subscriber::registry().with(MarkLayer);
    tracing::subscriber::with_default(subscriber, spans);
    ExitCode::SUCCESS
}

fn part(round: u64) {
    let _part = mark!(LR, PE, "part", iter = round, acct = "foo");
    {
        let layout = mark!(LC, PTR, "layout");
        let convolution = mark!(switch layout; LC, PCO, "conv2d");
        let _relu = mark!(switch convolution; LC, PCO, "relu", h = 9);
    }
    let _late = mark!(subtract; LR, PC, "late");
}

fn fails() {
    let _outer = mark!(LR, PP, "fails");
    let _inner = mark!(LR, PP, "inside", img = "a#b.jpg");
    panic!("out of memory");
}

fn question(text: &str) -> Option<u32> {
    let _section = mark!(LR, PC, "question");
    let number = text.parse().ok()?;
    Some(number)
}

fn early(round: u64) -> bool {
    let _section = mark!(LR, PT, "early");
    if round < ROUNDS {
        return true;
    }
    let _rest = mark!(LR, PT, "rest");
    false
}

fn spans() {
    for round in 0..ROUNDS {
        let span = info_span!("span", layer = "LR", phase = "PE", iter = round);
        // Left and entered again, and left by a panic.
        span.in_scope(|| info_span!("unmarked").in_scope(|| ()));
        let left = panic::catch_unwind(AssertUnwindSafe(|| {
            let _entered = span.enter();
            let _inner = info_span!("inner", layer = "LC", phase = "PCO").entered();
            panic!("out of memory");
        }));
        drop(left);
    }
}
