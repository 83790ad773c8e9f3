//! Performance events by name, as `perf` has them, and their counters on every CPU.

use std::{
    fmt, fs, io, mem,
    os::fd::{FromRawFd as _, OwnedFd},
    path::Path,
    str::FromStr,
};

use aya_obj::generated::perf_event_attr;
use nix::libc;
use nntrace_common::perf_counters::MAX_COUNTERS;
use thiserror::Error;

use super::{privilege, sysfs};
use crate::model::near_names::did_you_mean;

/// Kinds of events: `PERF_TYPE_HARDWARE` and so on.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const CACHE: u32 = 3;
const RAW: u32 = 4;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// Names of events, as `perf list` has them, with kind and number (`include/uapi/linux/perf_event.h`).
const EVENTS: [(&str, u32, u64); 37] = [
    ("cycles", HARDWARE, 0),
    ("cpu-cycles", HARDWARE, 0),
    ("instructions", HARDWARE, 1),
    ("cache-references", HARDWARE, 2),
    ("cache-misses", HARDWARE, 3),
    ("branches", HARDWARE, 4),
    ("branch-instructions", HARDWARE, 4),
    ("branch-misses", HARDWARE, 5),
    ("bus-cycles", HARDWARE, 6),
    ("stalled-cycles-frontend", HARDWARE, 7),
    ("stalled-cycles-backend", HARDWARE, 8),
    ("ref-cycles", HARDWARE, 9),
    ("cpu-clock", SOFTWARE, 0),
    ("task-clock", SOFTWARE, 1),
    ("page-faults", SOFTWARE, 2),
    ("faults", SOFTWARE, 2),
    ("context-switches", SOFTWARE, 3),
    ("cs", SOFTWARE, 3),
    ("cpu-migrations", SOFTWARE, 4),
    ("migrations", SOFTWARE, 4),
    ("minor-faults", SOFTWARE, 5),
    ("major-faults", SOFTWARE, 6),
    ("alignment-faults", SOFTWARE, 7),
    ("emulation-faults", SOFTWARE, 8),
    ("L1-dcache-loads", CACHE, cache(0, 0, 0)),
    ("L1-dcache-load-misses", CACHE, cache(0, 0, 1)),
    ("L1-dcache-stores", CACHE, cache(0, 1, 0)),
    ("L1-icache-loads", CACHE, cache(1, 0, 0)),
    ("L1-icache-load-misses", CACHE, cache(1, 0, 1)),
    ("LLC-loads", CACHE, cache(2, 0, 0)),
    ("LLC-load-misses", CACHE, cache(2, 0, 1)),
    ("LLC-stores", CACHE, cache(2, 1, 0)),
    ("LLC-store-misses", CACHE, cache(2, 1, 1)),
    ("dTLB-loads", CACHE, cache(3, 0, 0)),
    ("dTLB-load-misses", CACHE, cache(3, 0, 1)),
    ("iTLB-loads", CACHE, cache(4, 0, 0)),
    ("iTLB-load-misses", CACHE, cache(4, 0, 1)),
];

/// Number of an event of a cache: which one, the operation on it, and its result.
const fn cache(id: u64, operation: u64, result: u64) -> u64 {
    id | operation << 8 | result << 16
}

/// Modes of a CPU in which an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Modes {
    /// All modes.
    All,
    /// Mode of programs: `:u`.
    User,
    /// Mode of the kernel: `:k`.
    Kernel,
}

/// Event that is counted: `instructions`, `cache-misses:u`, `r01b7`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfEvent {
    name: String,
    kind: u32,
    number: u64,
    modes: Modes,
}

impl FromStr for PerfEvent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, modes) = match text.split_once(':') {
            None => (text, Modes::All),
            Some((name, "u")) => (name, Modes::User),
            Some((name, "k")) => (name, Modes::Kernel),
            Some((_, modes)) => {
                return Err(format!("expected u (programs) or k (kernel) after the colon, found {modes:?}"));
            }
        };
        let known = EVENTS.iter().find(|(known, ..)| *known == name);
        let raw = || u64::from_str_radix(name.strip_prefix('r')?, 16).ok();
        let (kind, number) = match known {
            Some(&(_, kind, number)) => (kind, number),
            None => (RAW, raw().ok_or_else(|| unknown(name))?),
        };
        Ok(Self { name: text.to_owned(), kind, number, modes })
    }
}

fn unknown(name: &str) -> String {
    let names: Vec<&str> = EVENTS.iter().map(|(name, ..)| *name).collect();
    let suggestion = did_you_mean(name, names.iter().copied());
    format!(
        "there is no event {name:?}{suggestion}; expected one of {}, or r and the number of an event of this CPU in hexadecimal; each may end in :u (in programs \
         only) or :k (in the kernel only)",
        names.join(", ")
    )
}

impl fmt::Display for PerfEvent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

/// Reason why events are not counted.
#[derive(Debug, Error)]
pub enum PerfEventError {
    /// There are too many.
    #[error(
        "{0} events are more than can be counted at once, which is {MAX_COUNTERS}: leave some out of --counters"
    )]
    TooMany(usize),
    /// The kernel refuses one.
    #[error("cannot count {event}: {reason}")]
    Refused {
        /// Name of the event.
        event: String,
        /// Answer of the kernel, and what to do.
        reason: String,
    },
}

/// Events that count on the CPUs that are online.
#[derive(Debug, Default)]
pub(super) struct PerfCounters {
    /// Names of the events.
    pub(super) names: Vec<String>,
    /// Descriptors, by number of the event and CPU.
    pub(super) open: Vec<(u32, u32, OwnedFd)>,
    /// Notes on CPUs on which an event does not count.
    pub(super) notes: Vec<String>,
}

impl PerfCounters {
    /// Starts counting events.
    ///
    /// # Errors
    /// When there are too many of them, or one counts on no CPU.
    pub(super) fn open(events: &[PerfEvent]) -> Result<Self, PerfEventError> {
        if events.len() > MAX_COUNTERS {
            return Err(PerfEventError::TooMany(events.len()));
        }
        let mut counters = Self::default();
        let online = if events.is_empty() { Vec::new() } else { sysfs::online(Path::new(sysfs::CPUS)) };
        for (number, event) in (0..).zip(events) {
            let mut missing = Vec::new();
            let mut refusal = None;
            for &cpu in &online {
                match open(event, cpu) {
                    Ok(descriptor) => counters.open.push((number, cpu, descriptor)),
                    Err(error) => {
                        missing.push(cpu.to_string());
                        refusal = Some(error);
                    }
                }
            }
            if let Some(error) = refusal {
                if missing.len() == online.len() {
                    return Err(PerfEventError::Refused {
                        event: event.name.clone(),
                        reason: reason(&error),
                    });
                }
                counters.notes.push(format!(
                    "{event} is not counted on CPU {} ({error}): sections have no counts of their time there",
                    missing.join(", ")
                ));
            }
            counters.names.push(event.name.clone());
        }
        Ok(counters)
    }
}

/// Starts counting an event on a CPU, whatever runs there.
fn open(event: &PerfEvent, cpu: u32) -> io::Result<OwnedFd> {
    // SAFETY: zeros are valid for all of its fields, which are numbers.
    let mut attributes: perf_event_attr = unsafe { mem::zeroed() };
    attributes.size = size_of::<perf_event_attr>() as u32;
    attributes.type_ = event.kind;
    attributes.config = event.number;
    attributes.set_exclude_kernel(u64::from(event.modes == Modes::User));
    attributes.set_exclude_hv(u64::from(event.modes != Modes::All));
    attributes.set_exclude_user(u64::from(event.modes == Modes::Kernel));
    // SAFETY: the attributes live through the call, which writes nothing but their size.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw mut attributes,
            -1,
            cpu.cast_signed(),
            -1,
            CLOSE_ON_EXEC,
        )
    };
    let descriptor = nix::errno::Errno::result(descriptor)?;
    // SAFETY: a descriptor that was just opened, and that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

/// Returns what a refusal means, and what to do.
fn reason(error: &io::Error) -> String {
    if let Some(text) = privilege::missing(error) {
        return text;
    }
    let remedy = match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => {
            no_such_counter(fs::read_dir("/sys/bus/event_source/devices").is_ok_and(|devices| {
                devices.flatten().any(|device| {
                    let name = device.file_name();
                    let name = name.to_string_lossy();
                    name.starts_with("cpu") || name.contains("pmu")
                })
            }))
        }
        Some(libc::EINVAL) => "this kernel does not know the event, or not with this ending",
        Some(libc::EMFILE) => "each event needs a descriptor for each CPU: raise the limit with `ulimit -n`",
        _ => "leave it out of --counters",
    };
    format!("{error}: {remedy}")
}

/// Returns what to do about a counter that is not there.
fn no_such_counter(has_pmu: bool) -> &'static str {
    if has_pmu {
        "the performance counters of this machine have no such event: leave it out of --counters; `perf list` shows those \
         that there are"
    } else {
        "this machine shows no performance counters (most virtual machines have none): leave it out of --counters; what the \
         kernel counts itself works everywhere, such as task-clock, page-faults and context-switches"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_names_of_perf() {
        let parsed =
            |text: &str| text.parse::<PerfEvent>().map(|event| (event.kind, event.number, event.modes));
        assert_eq!(parsed("cycles"), Ok((HARDWARE, 0, Modes::All)));
        assert_eq!(parsed("instructions:u"), Ok((HARDWARE, 1, Modes::User)));
        assert_eq!(parsed("page-faults:k"), Ok((SOFTWARE, 2, Modes::Kernel)));
        assert_eq!(parsed("LLC-load-misses"), Ok((CACHE, 0x1_0002, Modes::All)));
        assert_eq!(parsed("r01B7:u"), Ok((RAW, 0x1b7, Modes::User)));
        for wrong in
            ["", "cycle", "r", "rxyz", "cycles:", "cycles:p", "cycles:uk", ":u", "r10000000000000000"]
        {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        assert_eq!("branch-misses:u".parse::<PerfEvent>().unwrap().to_string(), "branch-misses:u");
    }

    #[test]
    fn too_many_events_are_refused_before_any_is_opened() {
        let event: PerfEvent = "task-clock".parse().unwrap();
        let error = PerfCounters::open(&vec![event; MAX_COUNTERS + 1]).unwrap_err();
        assert!(matches!(error, PerfEventError::TooMany(7)), "{error}");
        assert!(PerfCounters::open(&[]).unwrap().open.is_empty());
    }

    #[test]
    fn a_refusal_names_the_cause_and_a_remedy() {
        let absent = reason(&io::Error::from_raw_os_error(libc::ENOENT));
        assert!(absent.contains("No such file") && absent.contains("leave it out of --counters"), "{absent}");
        assert!(no_such_counter(true).contains("perf list"));
        assert!(no_such_counter(false).contains("task-clock"));
        assert!(reason(&io::Error::from_raw_os_error(libc::EMFILE)).contains("ulimit -n"));
    }
}
