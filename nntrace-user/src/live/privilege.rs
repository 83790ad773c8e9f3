//! Privileges that the kernel requires for BPF, and how to get them.

use std::{error::Error, fs, io};

/// Required capabilities, by number, with their purpose.
const NEEDED: [(u32, &str, &str); 2] = [
    (39, "CAP_BPF", "to load the programs"),
    (38, "CAP_PERFMON", "to attach them to the kernel's events and to functions"),
];
/// Capability that includes all of the required ones, as before Linux 5.8.
const CAP_SYS_ADMIN: u32 = 21;

/// Returns the message for the user when `error` comes from a lack of privilege; `None` when it does not.
#[must_use]
pub(crate) fn missing(error: &(dyn Error + 'static)) -> Option<String> {
    if !is_refusal(error) {
        return None;
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lacking = lacking(&status)?;
    Some(format!(
        "not permitted: this process lacks {}. Run it with `sudo`, or {}{}",
        lacking.join(" and "),
        setcap(),
        paranoid(),
    ))
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
    let program =
        std::env::current_exe().map_or_else(|_| "nntrace-bpf".into(), |path| path.display().to_string());
    format!(
        "once, for a group of users whom you trust, `sudo chgrp GROUP {program} && sudo chmod 750 {program} && sudo \
         setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep {program}`"
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

/// Returns the required capabilities that are missing in `/proc/self/status`; `None` when all are there.
fn lacking(status: &str) -> Option<Vec<String>> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let effective = u64::from_str_radix(line.trim(), 16).ok()?;
    let has = |number: u32| effective >> number & 1 != 0;
    if has(CAP_SYS_ADMIN) {
        return None;
    }
    let lacking: Vec<String> = NEEDED
        .into_iter()
        .filter(|&(number, ..)| !has(number))
        .map(|(_, name, purpose)| format!("{name} ({purpose})"))
        .collect();
    (!lacking.is_empty()).then_some(lacking)
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
        assert_eq!(lacking("Name:\tx\nCapEff:\t000001ffffffffff\n"), None);
        assert_eq!(lacking(&format!("CapEff:\t{:016x}\n", 1_u64 << 39 | 1 << 38)), None);
        let both = lacking("CapEff:\t0000000000000000\n").unwrap();
        assert_eq!(both.len(), 2);
        assert!(both[0].starts_with("CAP_BPF"));
    }

    #[test]
    fn only_a_refusal_is_a_lack_of_privilege() {
        assert_eq!(missing(&io::Error::from_raw_os_error(nix::libc::ENOENT)), None);
    }
}
