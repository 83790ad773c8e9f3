//! A rival for the CPU that is another program, and no child of this one: no profiler of this one traces it.

use std::{
    io::{Read as _, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    process, thread,
    time::Duration,
};

use anyhow::Result;
use nix::unistd::Pid;

use crate::{
    SLOW, go_first,
    program::{PLANTED, executions, first_cpu, spin},
};

/// Time after which the rival begins, where it is to have the CPU before it is waited for.
const BEFORE: Duration = Duration::from_millis(2);
/// Sleep of the execution meanwhile.
const SLEEP: Duration = Duration::from_millis(5);

/// Waits for requests; takes the CPU for each, after so much time as it says (ns).
pub fn wait(socket: &Path) -> Result<()> {
    let listener = UnixListener::bind(socket)?;
    first_cpu()?;
    go_first(2);
    let (mut requests, _) = listener.accept()?;
    let mut sum = Duration::ZERO;
    let mut request = [0; 8];
    while requests.read_exact(&mut request).is_ok() {
        thread::sleep(Duration::from_nanos(u64::from_le_bytes(request)));
        sum += spin(PLANTED);
    }
    requests.write_all(&(sum.as_nanos() as u64).to_le_bytes())?;
    requests.write_all(&u64::from(process::id()).to_le_bytes())?;
    Ok(())
}

/// Has the rival take the CPU in the slow execution: from it, or (`is_first`) while it sleeps. Returns the planted time, and the rival.
pub fn rival(socket: &Path, is_first: bool) -> Result<(Duration, Pid)> {
    let mut rival = UnixStream::connect(socket)?;
    first_cpu()?;
    executions(|number| {
        if number == SLOW {
            let delay = if is_first { BEFORE } else { Duration::ZERO };
            rival.write_all(&(delay.as_nanos() as u64).to_le_bytes())?;
            if is_first {
                thread::sleep(SLEEP);
            }
        }
        Ok(())
    })?;
    rival.shutdown(std::net::Shutdown::Write)?;
    let mut reply = [0; 16];
    rival.read_exact(&mut reply)?;
    let (sum, pid) = reply.split_at(8);
    let sum = Duration::from_nanos(u64::from_le_bytes(sum.try_into()?));
    let pid = Pid::from_raw(u64::from_le_bytes(pid.try_into()?).try_into()?);
    // The rest of the sleep is asleep, and not waiting.
    Ok((if is_first { (sum + BEFORE).saturating_sub(SLEEP) } else { sum }, pid))
}
