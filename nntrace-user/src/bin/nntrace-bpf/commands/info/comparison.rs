//! Differences between the machine of a recording and this one.

use std::{collections::BTreeMap, path::Path};

use nntrace_user::{
    live::sysfs,
    model::cpu_list,
    record::{FileIdentity, Summary},
    report::terminal_text::Text,
};

use crate::commands::record;

/// This machine, as far as recordings tell it.
struct Present {
    kernel: String,
    machine: String,
    cpus: u32,
    policies: Vec<Vec<u32>>,
    environment: BTreeMap<String, String>,
}

impl Present {
    fn read() -> Self {
        let system = nix::sys::utsname::uname().ok();
        let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let cpus = Path::new(sysfs::CPUS);
        Self {
            kernel: text(system.as_ref().map(nix::sys::utsname::UtsName::release)),
            machine: text(system.as_ref().map(nix::sys::utsname::UtsName::machine)),
            cpus: sysfs::online(cpus).len() as u32,
            policies: sysfs::topology(cpus).0.policies().to_vec(),
            environment: record::environment(&[]),
        }
    }
}

/// Returns a line for each difference.
pub(super) fn differences(summary: &Summary) -> Vec<String> {
    compare(summary, &Present::read(), FileIdentity::read)
}

/// Returns the differences as text.
pub(super) fn text(lines: &[String]) -> Text {
    let mut text = Text::new();
    for line in lines {
        text.line(format_args!("{line}"));
    }
    if lines.is_empty() {
        text.line(format_args!(
            "no difference: kernel, CPUs, environment and probed files are those of the recording"
        ));
    }
    text
}

fn compare(
    summary: &Summary,
    present: &Present,
    identity: impl Fn(&str) -> Option<FileIdentity>,
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut differ = |what: &str, recorded: &str, here: &str| {
        if recorded != here {
            lines.push(format!("{what}: {recorded} recorded, {here} here"));
        }
    };
    let host = &summary.host;
    differ("kernel", &host.kernel, &present.kernel);
    differ("machine", &host.machine, &present.machine);
    differ("CPUs online", &host.cpus.to_string(), &present.cpus.to_string());
    // Without power events, a recording has no policies.
    if !summary.clusters.is_empty() {
        differ("frequency policies", &policies(&summary.policies), &policies(&present.policies));
    }
    let recorded = &summary.run.environment;
    for name in recorded.keys().chain(present.environment.keys().filter(|name| !recorded.contains_key(*name)))
    {
        let here = present.environment.get(name).cloned();
        // One that was asked for by --env is not among those that are looked at by themselves.
        let here = here.or_else(|| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()));
        let value =
            |value: Option<&str>| value.map_or_else(|| "not set".into(), |value| format!("{value:?}"));
        let recorded = value(recorded.get(name).map(String::as_str));
        differ(&format!("variable {name}"), &recorded, &value(here.as_deref()));
    }
    for file in &summary.probed {
        lines.extend(difference_of_file(file, identity(&file.path).as_ref()));
    }
    lines
}

fn policies(policies: &[Vec<u32>]) -> String {
    let lists: Vec<String> = policies.iter().map(|cpus| cpu_list::format(cpus)).collect();
    if lists.is_empty() { "none".into() } else { lists.join(" / ") }
}

/// Returns the difference of a file, if there is any. One with the same build id is the same, whenever it was installed.
fn difference_of_file(recorded: &FileIdentity, here: Option<&FileIdentity>) -> Option<String> {
    let path = &recorded.path;
    let Some(here) = here else {
        return Some(format!("file {path}: recorded, cannot be read here"));
    };
    match (&recorded.build_id, &here.build_id) {
        (Some(recorded), Some(here)) if recorded == here => None,
        (None, None) if recorded.bytes != here.bytes => {
            Some(format!("file {path}: {} bytes recorded, {} bytes here", recorded.bytes, here.bytes))
        }
        (None, None) if recorded.modified_ns != here.modified_ns => {
            Some(format!("file {path}: changed since it was recorded, of the same size"))
        }
        (None, None) => None,
        (recorded, here) => {
            let id = |id: &Option<String>| id.clone().unwrap_or_else(|| "none".into());
            Some(format!("file {path}: build id {} recorded, {} here", id(recorded), id(here)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(build_id: Option<&str>, bytes: u64, modified_ns: i64) -> FileIdentity {
        FileIdentity { path: "/lib/a".into(), bytes, modified_ns, build_id: build_id.map(Into::into) }
    }

    #[test]
    fn a_file_is_the_same_by_its_build_id() {
        let recorded = file(Some("ab"), 1, 1);
        assert_eq!(difference_of_file(&recorded, Some(&file(Some("ab"), 2, 2))), None);
        let other = difference_of_file(&recorded, Some(&file(Some("cd"), 1, 1)));
        assert_eq!(other.as_deref(), Some("file /lib/a: build id ab recorded, cd here"));
        assert!(difference_of_file(&recorded, None).is_some());
        assert!(difference_of_file(&recorded, Some(&file(None, 1, 1))).is_some());
        let plain = file(None, 1, 1);
        assert_eq!(difference_of_file(&plain, Some(&plain)), None);
        assert!(difference_of_file(&plain, Some(&file(None, 2, 1))).is_some());
        assert!(difference_of_file(&plain, Some(&file(None, 1, 2))).is_some());
    }
}
