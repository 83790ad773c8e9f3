//! Values of options: from the words of the command line to what they mean.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    str::FromStr,
    time::Duration,
};

use clap::builder::{PathBufValueParser, TypedValueParser};
use nix::sys::signal::Signal;
use nntrace_common::layer::{Layer, Phase};
use nntrace_user::{
    model::{
        cpu_list,
        limits::Limits,
        topology::{ClusterDescription, Domain},
    },
    replay::TimeRange,
};

/// Reads what a file describes.
pub(super) fn file<T: Clone + Send + Sync + 'static>(
    read: fn(&Path) -> Result<T, String>,
) -> impl TypedValueParser<Value = T> {
    PathBufValueParser::new().try_map(move |path| read(&path))
}

/// `2084.02..2084.45`, in seconds; either end may be left out.
pub(super) fn time_range(text: &str) -> Result<TimeRange, String> {
    let parsed = text.split_once("..").and_then(|(from, to)| {
        let end = |text: &str, open| if text.is_empty() { Some(open) } else { nanoseconds(text) };
        Some(TimeRange { begin: end(from, 0)?, end: end(to, u64::MAX)? })
    });
    match parsed {
        Some(range) if range.begin <= range.end => Ok(range),
        _ => Err("expected two times in seconds, the earlier first, such as 2084.02..2084.45".into()),
    }
}

/// Seconds with up to nine digits after the point, as ns.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let nanoseconds: u64 = format!("{fraction:0<9}").parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

/// `LR` or `Runtime`.
pub(super) fn layer(text: &str) -> Result<Layer, String> {
    let fits = |word: &str| word.eq_ignore_ascii_case(text);
    let found = Layer::ALL.into_iter().find(|layer| fits(layer.code()) || fits(layer.name()));
    found.ok_or_else(|| format!("expected one of {}", Layer::ALL.map(Layer::code).join(", ")))
}

/// `PE` or `Execution`.
pub(super) fn phase(text: &str) -> Result<Phase, String> {
    let fits = |word: &str| word.eq_ignore_ascii_case(text);
    let found = Phase::ALL.into_iter().find(|phase| fits(phase.code()) || fits(phase.name()));
    found.ok_or_else(|| format!("expected one of {}", Phase::ALL.map(Phase::code).join(", ")))
}

/// Longest time: what is longer is more likely a mistake, and sums of times stay in range.
const LONGEST: Duration = Duration::from_hours(100 * 365 * 24);

/// `500ms`, `10s`, or a bare number of seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let seconds = || f64::from_str(text).ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let duration = humantime::parse_duration(text).ok().or_else(seconds);
    match duration {
        Some(duration) if !duration.is_zero() && duration <= LONGEST => Ok(duration),
        _ => {
            Err("expected a time such as 500ms, 10s or 5m, greater than zero and of 100 years at most".into())
        }
    }
}

/// Shortest time from one piece of work to the next.
const SHORTEST_PERIOD: Duration = Duration::from_millis(1);

/// The same, for work that is done again and again.
pub(super) fn period(text: &str) -> Result<Duration, String> {
    match duration(text) {
        Ok(period) if period >= SHORTEST_PERIOD => Ok(period),
        _ => Err("expected a time such as 500ms, 10s or 5m, from 1ms to 100 years".into()),
    }
}

/// Largest number of a process on any kernel (`PID_MAX_LIMIT`).
const LARGEST_PID: u32 = 1 << 22;

/// `1234`: a process of this machine.
pub(super) fn process(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=LARGEST_PID).contains(number));
    number.ok_or_else(|| {
        format!(
            "expected the number of a process, from 1 to {LARGEST_PID}, as `pgrep NAME` prints it; --comm takes names"
        )
    })
}

/// `1234`: a process or a thread of this machine or of a trace.
pub(super) fn task(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| {
        format!("expected the number of a process or a thread, from 0 to {}, such as 1234", u32::MAX)
    })
}

/// The same in nanoseconds.
pub(super) fn duration_ns(text: &str) -> Result<u64, String> {
    u64::try_from(duration(text)?.as_nanos()).map_err(|_| "expected 100 years at most".into())
}

/// `9464` or `:9464`, for this host only, or an address with its port.
pub(super) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text).parse();
    let own = port.ok().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    own.or_else(|| text.parse().ok()).ok_or_else(|| {
        "expected a port, such as 9464, which this host alone reaches, or an IP address and a port, such as \
         192.168.1.7:9464 or [::1]:9464"
            .into()
    })
}

/// `SIGUSR1` or `USR1`: a signal that a process can wait for.
pub(super) fn start_signal(text: &str) -> Result<Signal, String> {
    let name = text.to_ascii_uppercase();
    let name = if name.starts_with("SIG") { name } else { format!("SIG{name}") };
    match name.parse() {
        Ok(Signal::SIGKILL | Signal::SIGSTOP) | Err(_) => {
            Err("expected a signal that a process can wait for, such as SIGUSR1".into())
        }
        Ok(signal) => Ok(signal),
    }
}

/// `16M`, `512KiB`, or a bare number of bytes.
pub(super) fn size(text: &str) -> Result<u64, String> {
    bytes(text).ok_or_else(|| "expected a size such as 512K, 16M or 1G".into())
}

fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let shift = match unit.trim_start().trim_end_matches("iB").trim_end_matches('B') {
        "" => Some(0),
        "K" | "k" => Some(10),
        "M" => Some(20),
        "G" => Some(30),
        _ => None,
    };
    shift.and_then(|shift| number.parse::<u64>().ok()?.checked_mul(1 << shift))
}

/// The same, from 64 KiB to 64 GiB.
pub(super) fn memory(text: &str) -> Result<u64, String> {
    match bytes(text) {
        Some(bytes) if (64 << 10..=64 << 30).contains(&bytes) => Ok(bytes),
        _ => Err("expected a size such as 512K, 16M or 1G, from 64K to 64G".into()),
    }
}

/// The same, for tables that are of use.
pub(super) fn table_memory(text: &str) -> Result<u64, String> {
    let bytes = memory(text)?;
    if bytes < Limits::SMALLEST {
        return Err(format!("expected {}M at least", Limits::SMALLEST >> 20));
    }
    Ok(bytes)
}

/// `5%` or `0.05`, as a share of 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let parsed = match text.strip_suffix('%') {
        Some(percent) => f64::from_str(percent.trim()).map(|percent| percent / 100.0),
        None => f64::from_str(text),
    };
    match parsed {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a share such as 5% or 0.05".into()),
    }
}

/// The same, from 50% on and below 100%.
pub(super) fn confidence(text: &str) -> Result<f64, String> {
    match share(text) {
        Ok(share) if (0.5..1.0).contains(&share) => Ok(share),
        _ => Err("expected a share such as 95% or 0.99, from 50% on and below 100%".into()),
    }
}

/// `big=4-7`.
pub(super) fn cluster(text: &str) -> Result<ClusterDescription, String> {
    let parsed = text.split_once('=').map(|(name, cpus)| (name.trim(), cpu_list::parse(cpus)));
    match parsed {
        Some((name, Ok(cpus))) if !name.is_empty() && !cpus.is_empty() => {
            Ok(ClusterDescription { name: name.into(), cpus, domain: Domain::Both })
        }
        Some((_, Err(error))) => Err(error.to_string()),
        _ => Err("expected a name and its CPUs, such as big=4-7 or little=0,1,3".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_seconds_to_the_nanosecond() {
        let range = |begin, end| Ok(TimeRange { begin, end });
        assert_eq!(time_range("2.5..3"), range(2_500_000_000, 3_000_000_000));
        assert_eq!(time_range("1.000000001.."), range(1_000_000_001, u64::MAX));
        assert_eq!(time_range("..2"), range(0, 2_000_000_000));
        for wrong in ["", "1", "3..2", "a..b", "1.0000000001..2", "-1..2", "99999999999999..", "1...2"] {
            assert!(time_range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_and_processes_have_ranges() {
        assert_eq!(duration("36500d"), Ok(LONGEST));
        for wrong in ["0", "-1", "36501d", "1e300", "18446744073709551615", "inf", "NaN", "1y 100y"] {
            assert!(
                duration(wrong).is_err() && duration_ns(wrong).is_err() && period(wrong).is_err(),
                "{wrong}"
            );
        }
        assert_eq!((period("1ms"), period("1us").is_err()), (Ok(SHORTEST_PERIOD), true));
        assert_eq!((process("1"), process("4194304")), (Ok(1), Ok(LARGEST_PID)));
        for wrong in ["0", "4194305", "abc", "-1", "4294967297", ""] {
            assert!(process(wrong).is_err_and(|error| error.contains("pgrep")), "{wrong}");
        }
        assert_eq!((task("0"), task("4294967295")), (Ok(0), Ok(u32::MAX)));
        assert!(task("4294967296").is_err() && task("x").is_err());
    }

    #[test]
    fn signals_are_named() {
        for text in ["SIGUSR1", "USR1", "usr1"] {
            assert_eq!(start_signal(text), Ok(Signal::SIGUSR1), "{text}");
        }
        for wrong in ["", "SIGKILL", "STOP", "10", "nothing"] {
            assert!(start_signal(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn memory_is_bytes_with_a_unit() {
        for (text, bytes) in
            [("65536", 65_536), ("64K", 65_536), ("16M", 16 << 20), ("16MiB", 16 << 20), ("2 GB", 2 << 30)]
        {
            assert_eq!(memory(text), Ok(bytes), "{text}");
        }
        assert_eq!(size("200G"), Ok(200 << 30));
        assert!(size("99999999999999999999G").is_err() && size("-1").is_err());
        for wrong in ["", "M", "-1M", "1.5M", "1T", "63K", "65G", "99999999999999999999G"] {
            assert!(memory(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn layers_and_phases_have_two_names() {
        assert_eq!((layer("LR"), layer("runtime")), (Ok(Layer::Runtime), Ok(Layer::Runtime)));
        assert_eq!((phase("pe"), phase("I/O")), (Ok(Phase::Execution), Ok(Phase::InputsOutputs)));
        assert!(layer("PE").unwrap_err().contains("LA, LR") && phase("").unwrap_err().contains("PO, PWU"));
    }

    #[test]
    fn clusters_are_named_lists() {
        assert_eq!(
            cluster("big=4-6").unwrap(),
            ClusterDescription { name: "big".into(), cpus: vec![4, 5, 6], domain: Domain::Both }
        );
        assert!(cluster("big").is_err());
        assert!(cluster("=1").is_err());
        assert!(cluster("big=").is_err());
    }
}
