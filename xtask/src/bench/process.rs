//! CPU time and memory of a process, as the kernel counts them.

use std::fs;

use anyhow::{Context, Result};
use nix::unistd::{SysconfVar, sysconf};

/// Returns the CPU time of all threads of a process so far, in user space and in the kernel, s.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let ticks = ticks(&stat).with_context(|| format!("{path} has no times: {stat}"))?;
    let rate = sysconf(SysconfVar::CLK_TCK).ok().flatten().context("the length of a tick is not known")?;
    Ok(ticks as f64 / rate as f64)
}

/// Returns a line of a process's status in MB, such as `VmHWM`.
pub fn megabytes(pid: u32, line: &str) -> Result<f64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let kilobytes = kilobytes(&status, line).with_context(|| format!("{path} has no {line}"))?;
    Ok(kilobytes * 1024.0 / 1e6)
}

/// Parses user and system time; the name in front may have spaces and brackets.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

fn kilobytes(status: &str, line: &str) -> Option<f64> {
    let rest = status.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(':'))?;
    rest.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_the_14th_and_15th_field() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 100 0 3 0 250 17 9 9 20 0 1 0 5 1000 200";
        assert_eq!(ticks(stat), Some(267));
        assert_eq!(ticks("7 (a) S 1"), None);
    }

    #[test]
    fn memory_is_found_by_its_whole_name() {
        let status = "Name:\tx\nVmHWM:\t   12000 kB\nVmRSS:\t    8000 kB\n";
        assert_eq!(kilobytes(status, "VmRSS"), Some(8000.0));
        assert_eq!(kilobytes(status, "Vm"), None);
    }
}
