//! Descriptions of the command for other programs and for people: completions for shells, manual pages, examples, the schema of its
//! JSON.

mod examples;

use std::{fmt::Write as _, process::ExitCode};

use anyhow::Result;
use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;
use nntrace_user::{model::near_names::did_you_mean, report::snapshot::Snapshot};

use self::examples::Examples;
use crate::{
    arguments::{Cli, usage},
    output,
};

/// Exit statuses.
const STATUSES: [(&str, &str); 6] = [
    ("0", "The results are written. With a command: it exited with 0, or the run ended before it did."),
    (
        "1",
        "Something failed; the message says what, and what to do. Also: a recording is damaged (info --check), live runs do not \
         work here (doctor), a receiver did not take everything (replay --otlp).",
    ),
    ("2", "The command line is wrong."),
    (
        "3",
        "A limit is exceeded (--max-missing, diff --fail-if), the kernel's own counts differ (--verify), or a machine differs \
         (info --compare --strict). This takes precedence over the status of a command.",
    ),
    ("130", "A signal ended bench."),
    (
        "other",
        "The exit status of the command, which may be 1, 2 or 3 as well; 128 plus the signal's number if a signal ended it.",
    ),
];

/// Files that are used.
const FILES: [(&str, &str); 8] = [
    ("/sys/kernel/btf/vmlinux", "Types of the running kernel."),
    (
        "/sys/kernel/tracing, else /sys/kernel/debug/tracing",
        "Formats of events; trace_marker, which replay --emit --to trace_marker writes to.",
    ),
    ("/sys/devices/system/cpu", "Idle states, frequencies and clusters of the CPUs."),
    ("/sys/class/thermal", "Limits of frequencies."),
    ("/sys/class/hwmon, /sys/bus/iio/devices, /sys/class/powercap", "Sensors of power rails."),
    (
        "/sys/kernel/debug/energy_model, /sys/kernel/debug/pm_genpd",
        "Powers for energy-model init, and power domains; debugfs, root only.",
    ),
    ("/sys/bus/event_source/devices", "Probes on functions, and events for --counters."),
    (
        "libnntrace-hooks.so, libnntrace-itt.so",
        "Libraries that commands load, for hooks and ITT: beside the program or in ../lib/nntrace-bpf.",
    ),
];

/// Environment variables.
const VARIABLES: [(&str, &str); 6] = [
    (
        "NNTRACE_LOG",
        "Level of the log: off, error, warn, info, debug or trace. -v takes precedence. With sudo: sudo NNTRACE_LOG=debug \
         nntrace-bpf ..",
    ),
    ("NO_COLOR", "If set and not empty, the live view has no colours."),
    (
        "OTEL_EXPORTER_OTLP_TIMEOUT, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES",
        "For --otlp: time of a request in ms, name of the service, further attributes.",
    ),
    ("NNTRACE_ITT", "The value run leaves out the operators and primitives that libraries show by ITT."),
    ("INTEL_LIBITTNOTIFY64", "If set, its collector stays; else a command gets ours."),
    ("SUDO_UID, SUDO_GID", "Set by sudo: the user whom a command runs as, and to whom results belong."),
];

/// Returns the command with the examples of each subcommand in its help.
pub fn command() -> Command {
    let pages = examples::ALL.iter().filter(|page| !page.of.is_empty());
    pages.fold(Cli::command(), |command, page| with_examples(command, page.of, page))
}

fn with_examples(command: Command, words: &[&str], page: &Examples) -> Command {
    match words {
        [] => command.after_long_help(help(page)),
        [first, rest @ ..] => command.mut_subcommand(first, |command| with_examples(command, rest, page)),
    }
}

/// Returns the examples as a part of a help.
fn help(page: &Examples) -> String {
    let examples = page.lines.iter().map(|(what, line)| format!("  {what}:\n    {line}\n"));
    format!("Examples:\n{}", examples.collect::<String>().trim_end())
}

/// Prints what a shell needs to complete options.
pub fn completions(shell: Shell) -> Result<ExitCode> {
    let mut text = Vec::new();
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(shell, &mut command, name, &mut text);
    output::write_stdout(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page of a subcommand, or of the whole command if none is named.
pub fn page(words: &[String]) -> Result<ExitCode> {
    output::write_stdout(&manual(words)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the subcommands that have a page, one per line; the whole command is an empty line.
pub fn list() -> Result<ExitCode> {
    let lines = examples::ALL.iter().map(|page| page.of.join(" ") + "\n");
    output::write_stdout(lines.collect::<String>().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn manual(words: &[String]) -> Result<Vec<u8>> {
    let mut command = Cli::command();
    // From here on, subcommands know the name of the program.
    command.build();
    for word in words {
        let Some(subcommand) = command.find_subcommand(word) else {
            let names = command.get_subcommands().map(Command::get_name);
            let message = format!("there is no subcommand {word}{}", did_you_mean(word, names));
            return Err(usage(message));
        };
        command = subcommand.clone();
    }
    let page = examples::ALL.iter().find(|page| page.of == words);
    let title = name_of(words);
    let has_subcommands = command.has_subcommands();
    // Subcommands have no version of their own. The command is built already: this adds no -V.
    let manual = Man::new(command.version(env!("CARGO_PKG_VERSION")))
        .title(&title)
        .source(concat!("nntrace-bpf ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    manual.render_title(&mut text)?;
    manual.render_name_section(&mut text)?;
    manual.render_synopsis_section(&mut text)?;
    manual.render_description_section(&mut text)?;
    manual.render_options_section(&mut text)?;
    if has_subcommands {
        manual.render_subcommands_section(&mut text)?;
    }
    manual.render_version_section(&mut text)?;
    text.extend(sections(page).into_bytes());
    Ok(text)
}

/// The name of the page of a subcommand.
fn name_of<W: AsRef<str>>(words: &[W]) -> String {
    words.iter().fold("nntrace-bpf".to_owned(), |name, word| format!("{name}-{}", word.as_ref()))
}

/// Returns the sections that the command line does not describe, in roff.
fn sections(page: Option<&Examples>) -> String {
    let mut text = String::new();
    if let Some(page) = page {
        text += ".SH EXAMPLES\n";
        for (what, line) in page.lines {
            // A paragraph, then the command line as it is.
            let _ = write!(text, ".PP\n{}:\n.PP\n.RS 4\n.nf\n{}\n.fi\n.RE\n", roff(what), roff(line));
        }
    }
    let mut list = |title: &str, entries: &[(&str, &str)]| {
        let _ = writeln!(text, ".SH \"{title}\"");
        for (term, meaning) in entries {
            let _ = write!(text, ".TP\n{}\n{}\n", roff(term), roff(meaning));
        }
    };
    list("EXIT STATUS", &STATUSES);
    list("FILES", &FILES);
    list("ENVIRONMENT", &VARIABLES);
    let related = page.map_or(&[][..], |page| page.related).iter().map(|word| name_of(&[word]));
    let own = page.is_some_and(|page| !page.of.is_empty()).then(|| name_of::<&str>(&[]));
    let others = ["perf", "trace-cmd", "uftrace"].map(str::to_owned);
    let pages = own.into_iter().chain(related).chain(others);
    let pages: Vec<String> = pages.map(|name| format!("{}(1)", roff(&name))).collect();
    let _ = writeln!(text, ".SH \"SEE ALSO\"\n{}", pages.join(", "));
    text
}

/// Escapes a text, so that roff takes no part of it for a request or an escape, and shows each character as it is.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('~', "\\(ti");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

/// Prints the JSON Schema of snapshots.
pub fn schema() -> Result<ExitCode> {
    output::write_stdout(Snapshot::json_schema().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        String::from_utf8(manual(&words).unwrap()).unwrap()
    }

    #[test]
    fn every_page_has_all_sections() {
        for page in examples::ALL {
            let text = text(page.of);
            assert!(text.contains(&format!(".TH {} 1", name_of(page.of))), "{text}");
            for section in ["NAME", "SYNOPSIS", "EXAMPLES", "\"EXIT STATUS\"", "\"FILES\"", "\"SEE ALSO\""] {
                assert!(text.contains(&format!(".SH {section}\n")), "{:?}: {section}\n{text}", page.of);
            }
            let (_, line) = page.lines[0];
            assert!(text.contains(&roff(line)), "{line}");
        }
    }

    #[test]
    fn unknown_pages_are_named_with_a_near_one() {
        let error = manual(&["recrod".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("no subcommand recrod") && error.contains("record"), "{error}");
    }

    #[test]
    fn nothing_in_a_text_is_a_request_of_roff() {
        assert_eq!(roff(".TH a-b \\x '~'"), "\\&.TH a\\-b \\ex \\(aq\\(ti\\(aq");
    }

    #[test]
    fn the_help_of_subcommands_ends_with_examples() {
        let mut command = command();
        let mut help = |word: &str| {
            let subcommand = command.find_subcommand_mut(word).unwrap();
            (subcommand.render_long_help().to_string(), subcommand.render_help().to_string())
        };
        let (long, short) = help("diff");
        assert!(long.trim_end().ends_with("nntrace-bpf diff before after --fail-if worse"), "{long}");
        assert!(!short.contains("Examples:"), "{short}");
    }
}
