//! `nntrace-bpf doctor`: what this machine lets a run measure, and how to get the rest.

use std::process::ExitCode;

use anyhow::Result;
use nntrace_user::{
    live::doctor::{self, Capability, Diagnosis, Status},
    report::terminal_text::{self, Text},
};

use crate::{arguments::Doctor, output};

/// Checks this machine; returns the exit status: 0 where a live run works.
pub fn run(cli: &Doctor) -> Result<ExitCode> {
    let diagnosis = doctor::examine();
    if cli.json {
        output::write_stdout(&terminal_text::to_json(&diagnosis)?)?;
    } else {
        output::print(&text(&diagnosis))?;
    }
    Ok(if diagnosis.can_trace { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns everything as text: a line for each capability, and more for those that are not present.
fn text(diagnosis: &Diagnosis) -> Text {
    let Diagnosis { kernel, machine, cpus, can_trace, capabilities, .. } = diagnosis;
    let mut text = Text::new();
    let verdict = match (*can_trace, diagnosis.can_show_cpus) {
        (true, _) => "live runs work here",
        (false, true) => "live runs show what the CPUs do, and no marks",
        (false, false) => "live runs do not work here",
    };
    text.line(format_args!("Linux {kernel} on {machine}, {cpus} CPUs online: {verdict}"));
    text.line(format_args!(""));
    let width = capabilities.iter().map(|capability| capability.name.len()).max().unwrap_or_default();
    for Capability { name, purpose, required, finding } in capabilities {
        text.line(format_args!("{:<9}{name:<width$}  {}", finding.status.name(), finding.found));
        if finding.status == Status::Present {
            continue;
        }
        let weight = if *required { "required for" } else { "used for" };
        text.line(format_args!("{:9}{:width$}  {weight}: {purpose}", "", ""));
        for (word, fix) in std::iter::once("fix").chain(std::iter::repeat(" or")).zip(&finding.fixes) {
            text.line(format_args!("{:9}{:width$}  {word}: {fix}", "", ""));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use nntrace_user::live::doctor::Finding;

    use super::*;

    fn capability(name: &'static str, required: bool, status: Status, fixes: &[&str]) -> Capability {
        let fixes = fixes.iter().map(ToString::to_string).collect();
        Capability {
            name,
            purpose: "a purpose",
            required,
            finding: Finding { status, found: format!("found of {name}"), fixes },
        }
    }

    #[test]
    fn what_is_not_present_has_its_purpose_and_its_fixes() {
        let diagnosis = Diagnosis {
            version: 1,
            kernel: "6.18.0".into(),
            machine: "aarch64".into(),
            cpus: 8,
            can_trace: false,
            can_show_cpus: false,
            capabilities: vec![
                capability("uprobes", true, Status::Unknown, &[]),
                capability("BTF", false, Status::Present, &[]),
                capability("tracefs", false, Status::Absent, &["one", "another"]),
            ],
        };
        insta::assert_snapshot!(text(&diagnosis), @r"
        Linux 6.18.0 on aarch64, 8 CPUs online: live runs do not work here

        unknown  uprobes  found of uprobes
                          required for: a purpose
        present  BTF      found of BTF
        absent   tracefs  found of tracefs
                          used for: a purpose
                          fix: one
                           or: another
        ");
    }
}
