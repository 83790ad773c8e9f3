//! Causes in programs: other threads and processes, and what the executions do themselves.

use std::{
    hint::spin_loop,
    io::{Read as _, Write as _},
    process::{Command, Stdio},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use nix::{
    sched::{CpuSet, sched_getaffinity},
    unistd::{Pid, gettid},
};
use nntrace_common::{
    emit::{self, Payload},
    mark,
};
use nntrace_tests::cpus;

use crate::{COUNT, SLOW, WORK, go_first, infer, longer, work};

/// Length that is planted.
pub const PLANTED: Duration = Duration::from_millis(120);

/// Returns the planted time, and the thread that has the CPU then.
pub fn rival() -> Result<(Duration, Pid)> {
    first_cpu()?;
    let (request, requests) = mpsc::channel::<()>();
    let rival = thread::Builder::new().name("rival".into()).spawn(move || {
        go_first(2);
        (requests.into_iter().map(|()| spin(PLANTED)).sum::<Duration>(), gettid())
    })?;
    executions(|number| {
        if number == SLOW {
            request.send(())?;
        }
        Ok(())
    })?;
    drop(request);
    rival.join().ok().context("the rival has failed")
}

/// Keeps this thread, and those that it starts, on the first CPU that it may use.
pub fn first_cpu() -> Result<()> {
    let allowed = sched_getaffinity(Pid::from_raw(0))?;
    let first = (0..CpuSet::count()).find(|cpu| allowed.is_set(*cpu).unwrap_or(false)).context("no CPU")?;
    cpus::pin(first as u32)
}

/// Holds a lock.
pub fn lock() -> Result<Duration> {
    static TABLE: Mutex<()> = Mutex::new(());
    let hold = || TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let (request, requests) = mpsc::channel::<()>();
    let (held, is_held) = mpsc::channel::<()>();
    let holder = thread::Builder::new().name("holder".into()).spawn(move || {
        for () in requests {
            let _table: MutexGuard<'_, ()> = hold();
            let _section = mark!(LU, PE, "refill", lock = "table");
            // Nobody is left to be told when this fails.
            let _ = held.send(());
            thread::sleep(PLANTED);
        }
    })?;
    let mut planted = Duration::ZERO;
    executions(|number| {
        if number == SLOW {
            request.send(())?;
            is_held.recv()?;
        }
        let begin = Instant::now();
        let _table: MutexGuard<'_, ()> = hold();
        if number == SLOW {
            planted = begin.elapsed();
        }
        let _section = mark!(LU, PE, "look_up", lock = "table");
        Ok(())
    })?;
    drop(request);
    holder.join().ok().context("the holder has failed")?;
    Ok(planted)
}

/// Lets a driver take longer, which is another process.
pub fn driver() -> Result<Duration> {
    let mut driver = Command::new(std::env::current_exe()?)
        .arg("serves-as-driver")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut requests = driver.stdin.take().context("no pipe")?;
    let mut replies = driver.stdout.take().context("no pipe")?;
    let mut times: Vec<Duration> = Vec::new();
    executions(|number| {
        let length = if number == SLOW { WORK + PLANTED } else { WORK };
        emit::event(|| Payload::instant("nn.send").with("h", format_args!("g.{number}1")));
        let request = [number, length.as_nanos() as u64].map(u64::to_le_bytes).concat();
        requests.write_all(&request)?;
        requests.flush()?;
        let mut reply = [0; 8];
        replies.read_exact(&mut reply)?;
        emit::event(|| Payload::instant("nn.recv").with("h", format_args!("g.{number}2")));
        times.push(Duration::from_nanos(u64::from_le_bytes(reply)));
        Ok(())
    })?;
    drop(requests);
    ensure!(driver.wait()?.success(), "the driver has failed");
    Ok(longer(times))
}

/// Executes requests, each a number and a time, and replies how long it took.
pub fn serve() -> Result<()> {
    go_first(1);
    let (mut requests, mut replies) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut request = [0; 16];
    while requests.read_exact(&mut request).is_ok() {
        let (number, length) = request.split_at(8);
        let (number, length) =
            (u64::from_le_bytes(number.try_into()?), u64::from_le_bytes(length.try_into()?));
        let begin = Instant::now();
        {
            let _section = mark!(LD, PE, "execute", h = format_args!("g.{number}1"));
            spin(Duration::from_nanos(length));
        }
        emit::event(|| Payload::instant("nn.send").with("h", format_args!("g.{number}2")));
        let time = begin.elapsed().as_nanos() as u64;
        replies.write_all(&time.to_le_bytes())?;
        replies.flush()?;
    }
    Ok(())
}

/// Fills a table in the first execution.
pub fn cold() -> Result<Duration> {
    static TABLE: OnceLock<Duration> = OnceLock::new();
    executions(|_| {
        TABLE.get_or_init(|| {
            let begin = Instant::now();
            let table = vec![1_u8; 16 << 20];
            std::hint::black_box(&table);
            spin(PLANTED);
            begin.elapsed()
        });
        Ok(())
    })?;
    TABLE.get().copied().context("nothing was executed")
}

/// Calls a function twice as often.
pub fn calls() -> Result<Duration> {
    let mut planted = Duration::ZERO;
    executions(|number| {
        for call in 0..if number == SLOW { 4 } else { 2 } {
            let _section = mark!(LC, PCO, "conv");
            let time = spin(PLANTED / 4);
            if call >= 2 {
                planted += time;
            }
        }
        Ok(())
    })?;
    Ok(planted)
}

/// Runs the executions, with a pause after each; what they do is shown the number.
pub fn executions(mut execute: impl FnMut(u64) -> Result<()>) -> Result<()> {
    for number in 0..COUNT {
        infer(|| {
            work(WORK)?;
            execute(number)
        })?;
        thread::sleep(WORK);
    }
    Ok(())
}

/// Uses a CPU for so long; returns how long it was.
pub fn spin(time: Duration) -> Duration {
    let begin = Instant::now();
    while begin.elapsed() < time {
        spin_loop();
    }
    begin.elapsed()
}
