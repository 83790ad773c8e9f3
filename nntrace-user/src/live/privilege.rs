//! Privileges that the kernel requires for BPF, and how to get them.

use std::{error::Error, fs, io};

use crate::caller;

/// Required capabilities, by number, with their purpose.
const NEEDED: [(u32, &str, &str); 2] = [
    (39, "CAP_BPF", "to load the programs"),
    (38, "CAP_PERFMON", "to attach them to the kernel's events and to functions"),
];
/// Capability that includes all of the required ones, as before Linux 5.8.
const CAP_SYS_ADMIN: u32 = 21;
/// Capability to trace the processes of all users.
const CAP_SYS_PTRACE: u32 = 19;

/// Returns the message for the user when `error` comes from a lack of privilege; `None` when it does not.
#[must_use]
pub(crate) fn missing(error: &(dyn Error + 'static)) -> Option<String> {
    if !is_refusal(error) {
        return None;
    }
    let lacking = lacking_here();
    if lacking.is_empty() {
        return None;
    }
    Some(format!(
        "not permitted: this process lacks {}. Run it with `sudo`, or {}{}",
        lacking.join(" and "),
        setcap(),
        paranoid(),
    ))
}

/// Returns the required capabilities that this process lacks, each with its purpose.
#[must_use]
pub(crate) fn lacking_here() -> Vec<String> {
    Capabilities::read("CapEff:").map(Capabilities::lacking).unwrap_or_default()
}

/// Returns the required capabilities that neither this process nor any that it starts can get.
#[must_use]
pub(crate) fn out_of_reach() -> Vec<String> {
    Capabilities::read("CapBnd:").map(Capabilities::lacking).unwrap_or_default()
}

/// Whether this process may trace those of all users.
#[must_use]
pub(crate) fn may_trace_all() -> bool {
    // Those of the program, as after `setcap`, give its caller nobody else's processes.
    caller::confined().is_none() && Capabilities::read("CapEff:").is_some_and(|has| has.has(CAP_SYS_PTRACE))
}

/// Whether the kernel refused something for want of a privilege.
#[must_use]
pub(crate) fn is_refusal(error: &(dyn Error + 'static)) -> bool {
    is_any(error, &[nix::libc::EPERM, nix::libc::EACCES])
}

/// Whether an error comes from one of these errors of the kernel.
#[must_use]
pub(crate) fn is_any(error: &(dyn Error + 'static), numbers: &[i32]) -> bool {
    chain(error)
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(|error| error.raw_os_error().is_some_and(|number| numbers.contains(&number)))
}

/// Returns the commands that grant this program all capabilities it can use, once and for a group: they let its users see
/// what the kernel and all CPUs do, and are not for everybody.
#[must_use]
pub(crate) fn setcap() -> String {
    format!("once, for a group of users whom you trust, `{}`", setcap_command())
}

/// Returns the command of [`setcap`], with `GROUP` for the group.
#[must_use]
pub(crate) fn setcap_command() -> String {
    let program =
        std::env::current_exe().map_or_else(|_| "nntrace-bpf".into(), |path| path.display().to_string());
    format!(
        "sudo chgrp GROUP {program} && sudo chmod 750 {program} && sudo setcap \
         cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep {program}"
    )
}

/// Joins the messages of an error and of all its causes, outermost first, in one line.
#[must_use]
pub(crate) fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    for error in chain(error) {
        let part = error.to_string();
        // Some errors include the message of their cause.
        if !text.contains(&part) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&part);
        }
    }
    text
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// A set of capabilities, one bit each.
#[derive(Clone, Copy)]
struct Capabilities(u64);

impl Capabilities {
    /// Reads the set of this process that a line of `/proc/self/status` begins with: `CapEff:`, `CapBnd:`.
    fn read(set: &str) -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/self/status").ok()?, set)
    }

    fn parse(status: &str, set: &str) -> Option<Self> {
        let line = status.lines().find_map(|line| line.strip_prefix(set))?;
        u64::from_str_radix(line.trim(), 16).ok().map(Self)
    }

    fn has(self, number: u32) -> bool {
        self.0 >> number & 1 != 0
    }

    /// Returns the required capabilities that are not in it.
    fn lacking(self) -> Vec<String> {
        let needed = NEEDED.into_iter().filter(|&(number, ..)| !self.has(number) && !self.has(CAP_SYS_ADMIN));
        needed.map(|(_, name, purpose)| format!("{name} ({purpose})")).collect()
    }
}

/// Returns a hint on the setting that some distributions keep stricter than the kernel does.
fn paranoid() -> String {
    let value = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    match value.trim().parse::<i32>() {
        Ok(level) if level > 2 => format!(
            " (kernel.perf_event_paranoid is {level}: with capabilities alone, `sudo sysctl \
             kernel.perf_event_paranoid=2` is needed too)"
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_the_status() {
        let lacking = |effective: u64| {
            let status = format!("Name:\tx\nCapEff:\t{effective:016x}\nCapBnd:\t0\n");
            Capabilities::parse(&status, "CapEff:").unwrap().lacking()
        };
        assert!(lacking(0x1ff_ffff_ffff).is_empty());
        assert!(lacking(1 << 39 | 1 << 38).is_empty());
        assert!(lacking(1 << CAP_SYS_ADMIN).is_empty());
        let both = lacking(0);
        assert_eq!(both.len(), 2);
        assert!(both[0].starts_with("CAP_BPF"));
        assert!(Capabilities::parse("CapEff:\tnone\n", "CapEff:").is_none());
    }

    #[test]
    fn only_a_refusal_is_a_lack_of_privilege() {
        assert_eq!(missing(&io::Error::from_raw_os_error(nix::libc::ENOENT)), None);
    }
}
