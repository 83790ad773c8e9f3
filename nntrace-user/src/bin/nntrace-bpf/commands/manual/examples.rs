//! Examples of each subcommand, for its help and its manual page.

/// Examples of a subcommand, and related pages.
#[derive(Debug)]
pub(super) struct Examples {
    /// Words of the subcommand; none for a live run.
    pub(super) of: &'static [&'static str],
    /// Description and command line of each.
    pub(super) lines: &'static [(&'static str, &'static str)],
    /// Subcommands whose pages are related.
    pub(super) related: &'static [&'static str],
}

const fn of(
    of: &'static [&'static str],
    lines: &'static [(&'static str, &'static str)],
    related: &'static [&'static str],
) -> Examples {
    Examples { of, lines, related }
}

/// Examples of all subcommands, in the order of the help.
pub(super) const ALL: &[Examples] = &[
    of(
        &[],
        &[
            (
                "Show a command live, with the operators of its engine",
                "sudo nntrace-bpf -- python3 classify.py",
            ),
            ("Attach to a process until it ends", "sudo nntrace-bpf --pid 1234"),
            ("Show when threads ran, waited and slept", "sudo nntrace-bpf --level sched -- ./my_app model"),
            (
                "Write one snapshot, for a regression job",
                "sudo nntrace-bpf --json=run.json -- ./my_app model",
            ),
            ("Show only what the CPUs did for ten seconds", "sudo nntrace-bpf --marks none --duration 10s"),
        ],
        &["explain", "record", "replay", "diff", "doctor"],
    ),
    of(
        &["explain"],
        &[
            (
                "Explain a command: where the time went, and why the slowest executions were slow",
                "sudo nntrace-bpf explain -- ./my_app model",
            ),
            ("Explain ten seconds of a running process", "sudo nntrace-bpf explain --pid 1234 -d 10s"),
            (
                "Explain the executions of one function in a recording",
                "nntrace-bpf explain run1 --of LR_PE:infer",
            ),
        ],
        &["why", "where", "record", "what-if"],
    ),
    of(
        &["where"],
        &[
            (
                "Show which operators of a command's model ran on the CPU",
                "sudo nntrace-bpf where -- python3 classify.py",
            ),
            ("Show this for ten seconds of a running process", "sudo nntrace-bpf where --pid 1234 -d 10s"),
            ("Show this for a recording, as JSON", "nntrace-bpf where run1 --json"),
        ],
        &["explain", "engines", "record"],
    ),
    of(
        &["replay"],
        &[
            (
                "Show a recording in the live view, or as tables if there is no terminal",
                "nntrace-bpf replay run1",
            ),
            ("Show a trace of trace-cmd", "nntrace-bpf replay trace.dat"),
            (
                "Compare the idle states of two traces",
                "nntrace-bpf replay trace.dat --table idle --baseline before.dat",
            ),
            ("Play a recording at ten times the speed of the run", "nntrace-bpf replay run1 --speed 10x"),
        ],
        &["record", "print", "export"],
    ),
    of(
        &["record"],
        &[
            ("Record a command", "sudo nntrace-bpf record -o run1 -- ./my_app model"),
            (
                "Record with context switches, for why and what-if",
                "sudo nntrace-bpf record --level sched -o run1 -- ./my_app model",
            ),
            (
                "Keep the last ten seconds, and write them when an execution takes longer than 20 ms",
                "sudo nntrace-bpf record --flight 10s --trigger 'LR_PE > 20ms' -o slow -p 99",
            ),
        ],
        &["replay", "explain", "info", "pack"],
    ),
    of(
        &["print"],
        &[
            ("Print each section of a recording", "nntrace-bpf print run1"),
            (
                "Print the sections that took at least a millisecond, as a tree",
                "nntrace-bpf print run1 --tree --min 1ms",
            ),
        ],
        &["report", "replay"],
    ),
    of(
        &["report"],
        &[("Sum up the functions of a recording", "nntrace-bpf report run1")],
        &["print", "diff"],
    ),
    of(
        &["bench"],
        &[
            (
                "Run a command seven times before a change",
                "sudo nntrace-bpf bench -o before -- ./my_app model",
            ),
            (
                "Run it seven times with the change, for nntrace-bpf diff before after",
                "sudo nntrace-bpf bench -o after -- ./my_app model",
            ),
        ],
        &["diff"],
    ),
    of(
        &["diff"],
        &[
            ("Compare two runs", "nntrace-bpf diff before.json after.json"),
            (
                "Fail a job if a change made a series of runs worse",
                "nntrace-bpf diff before after --fail-if worse",
            ),
        ],
        &["bench", "report"],
    ),
    of(
        &["what-if"],
        &[
            ("Rank what to speed up first", "nntrace-bpf what-if run1 --rank"),
            ("Predict a run with a driver twice as fast", "nntrace-bpf what-if run1 --speed driver=2x"),
        ],
        &["why", "record"],
    ),
    of(
        &["why"],
        &[
            (
                "Explain the slowest executions of the function that takes the most time",
                "nntrace-bpf why run1",
            ),
            ("Explain those of a function of your choice", "nntrace-bpf why run1 --of LR_PE:infer"),
        ],
        &["explain", "what-if"],
    ),
    of(
        &["info"],
        &[
            ("Describe a recording", "nntrace-bpf info run1"),
            (
                "Check whether this machine is like the recorded one",
                "nntrace-bpf info run1 --compare --strict",
            ),
        ],
        &["record", "pack"],
    ),
    of(
        &["calls"],
        &[("Print the calls of the functions that record --call named", "nntrace-bpf calls run1")],
        &["record"],
    ),
    of(
        &["pack"],
        &[("Pack a recording, and the files that its run used, into run1.nnpack", "nntrace-bpf pack run1")],
        &["unpack", "record"],
    ),
    of(
        &["unpack"],
        &[("Unpack a pack to the folder run1", "nntrace-bpf unpack run1.nnpack")],
        &["pack", "replay"],
    ),
    of(
        &["export"],
        &[
            ("Write a trace for ui.perfetto.dev", "nntrace-bpf export run1 -o run1.pftrace"),
            ("Write a report for browsers", "nntrace-bpf export run1 -o run1.html"),
            ("Write tables for queries", "nntrace-bpf export run1 -o run1.parquet"),
        ],
        &["record", "replay"],
    ),
    of(
        &["engines"],
        &[
            ("List all known engines", "nntrace-bpf engines"),
            ("Show which functions of a library would be probed", "nntrace-bpf engines libonnxruntime.so"),
        ],
        &["doctor"],
    ),
    of(
        &["doctor"],
        &[("Check what a run can measure on this machine", "sudo nntrace-bpf doctor")],
        &["engines"],
    ),
    of(
        &["topology"],
        &[(
            "Describe this machine (clusters, frequencies, idle states) in a file for --topology",
            "nntrace-bpf topology topology.toml",
        )],
        &["energy-model"],
    ),
    of(
        &["energy-model"],
        &[("Write a model of this machine to fill in", "sudo nntrace-bpf energy-model init board.toml")],
        &["topology"],
    ),
    of(
        &["energy-model", "init"],
        &[("Write a model of this machine to fill in", "sudo nntrace-bpf energy-model init board.toml")],
        &["energy-model"],
    ),
    of(
        &["energy-model", "check"],
        &[("Show how a model is understood", "nntrace-bpf energy-model check board.toml")],
        &["energy-model"],
    ),
    of(
        &["energy-model", "fit"],
        &[(
            "Fit a model to a measured rail",
            "nntrace-bpf energy-model fit run1 --model board.toml --rail VDD_CPU",
        )],
        &["energy-model"],
    ),
    of(
        &["energy-model", "rails"],
        &[("List the power rails that this machine measures", "nntrace-bpf energy-model rails")],
        &["energy-model"],
    ),
    of(
        &["completions"],
        &[(
            "Complete options in bash",
            "nntrace-bpf completions bash > ~/.local/share/bash-completion/completions/nntrace-bpf",
        )],
        &[],
    ),
    of(
        &["man"],
        &[
            ("Show the manual page", "nntrace-bpf man | man -l -"),
            ("Show the manual page of a subcommand", "nntrace-bpf man record | man -l -"),
        ],
        &[],
    ),
    of(
        &["schema"],
        &[("Write the schema of snapshots to a file", "nntrace-bpf schema > snapshot.schema.json")],
        &[],
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{Command, CommandFactory as _, Parser as _, error::ErrorKind};

    use super::*;
    use crate::arguments::Cli;

    /// Returns the words of all subcommands.
    fn subcommands(command: &Command, words: &[String], all: &mut BTreeSet<Vec<String>>) {
        all.insert(words.to_vec());
        for subcommand in command.get_subcommands() {
            let words = [words, &[subcommand.get_name().to_owned()]].concat();
            subcommands(subcommand, &words, all);
        }
    }

    #[test]
    fn every_subcommand_has_examples() {
        let mut expected = BTreeSet::new();
        subcommands(&Cli::command(), &[], &mut expected);
        let of = |page: &Examples| page.of.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        assert_eq!(ALL.iter().map(of).collect::<BTreeSet<_>>(), expected);
        for page in ALL {
            assert!(!page.lines.is_empty(), "{:?}", page.of);
            for related in page.related {
                assert!(expected.contains(&vec![(*related).to_owned()]), "{related}");
            }
        }
    }

    /// Returns the words of a command line, without its quotes.
    fn words_of(line: &str) -> Vec<&str> {
        let mut words = Vec::new();
        for (number, part) in line.split('\'').enumerate() {
            if number % 2 == 1 {
                words.push(part);
            } else {
                words.extend(part.split_whitespace());
            }
        }
        words
    }

    #[test]
    fn examples_are_command_lines_that_are_understood() {
        for page in ALL {
            for (_, line) in page.lines {
                let line = line.strip_prefix("sudo ").unwrap_or(line);
                // Redirections and pipes are the shell's.
                let words: Vec<&str> =
                    words_of(line).into_iter().take_while(|word| !matches!(*word, ">" | "|")).collect();
                assert!(words[1..].starts_with(page.of), "{line}");
                // A file that an option reads need not exist.
                let is_right = |error: &clap::Error| error.kind() == ErrorKind::ValueValidation;
                if let Err(error) = Cli::try_parse_from(words) {
                    assert!(
                        is_right(&error) && error.to_string().contains("No such file"),
                        "{line}: {error}"
                    );
                }
            }
        }
    }
}
