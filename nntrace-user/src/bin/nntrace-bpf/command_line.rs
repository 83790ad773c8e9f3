//! From the words of the command line to arguments, or to what is wrong with them.

use std::{ffi::OsString, fs, os::unix::fs::PermissionsExt as _, path::Path, slice};

use clap::{
    Command, CommandFactory as _, Error, FromArgMatches as _,
    error::{ContextKind, ErrorKind},
};
use nntrace_user::{caller::FileRights, model::near_names::did_you_mean, record};

use crate::{arguments::Cli, commands::manual, output::shell_words::shell_words};

/// Names of the values that are numbers, or begin with one.
const NUMBERS: [&str; 12] = [
    "PID",
    "TID",
    "TIME",
    "auto|off|TIME",
    "FROM..TO",
    "SIZE",
    "KIB",
    "N",
    "COUNT",
    "SHARE",
    "SPEED",
    "PORT|ADDRESS:PORT",
];

/// Parses the command line, with the examples of subcommands in their help.
///
/// # Errors
/// When something is wrong with it, or help was asked for.
pub fn parse(words: &[OsString]) -> Result<Cli, Error> {
    let mut command = with_negative_numbers(manual::command());
    let matches = command
        .try_get_matches_from_mut(as_help(words))
        .map_err(|error| not_a_subcommand(words).unwrap_or_else(|| without_advice_to_run(error)))?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Returns `record --help` for `help record`.
fn as_help(words: &[OsString]) -> Vec<OsString> {
    match words {
        [program, word, subcommand @ ..] if word == "help" => {
            [slice::from_ref(program), subcommand, &["--help".into()]].concat()
        }
        _ => words.to_vec(),
    }
}

/// Has options that take numbers take whatever begins with a hyphen: so it is they who refuse `-1` and `-5s`, and say what they
/// expect. Else these would be options that nobody knows.
fn with_negative_numbers(command: Command) -> Command {
    let command = command.mut_args(|argument| {
        let names = argument.get_value_names().unwrap_or_default();
        if !argument.is_positional() && names.iter().any(|name| NUMBERS.contains(&name.as_str())) {
            argument.allow_hyphen_values(true)
        } else {
            argument
        }
    });
    command.mut_subcommands(with_negative_numbers)
}

/// Takes back the advice to write an unknown option after `--`, where it would be a command that is run.
fn without_advice_to_run(mut error: Error) -> Error {
    if error.kind() == ErrorKind::UnknownArgument {
        let _ = error.remove(ContextKind::Suggested);
    }
    error
}

/// Returns the error for an unknown word in the place of a subcommand.
fn not_a_subcommand(words: &[OsString]) -> Option<Error> {
    let first = if words.get(1).is_some_and(|word| word == "help") { 2 } else { 1 };
    let program = Cli::command();
    let mut command = &program;
    for word in words.get(first..)? {
        let word = word.to_str()?;
        if word.is_empty() || word.starts_with('-') || !command.has_subcommands() {
            return None;
        }
        let Some(subcommand) = command.find_subcommand(word) else {
            let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            let suggestion = did_you_mean(word, names.iter().copied());
            let name = command.get_name();
            let message = if name == program.get_name() {
                let advice = advice(word);
                format!("there is no subcommand {word}{suggestion}; --help lists them, and {advice}\n")
            } else {
                format!("{name} has no subcommand {word}{suggestion}; it has {}\n", names.join(", "))
            };
            return Some(Error::raw(ErrorKind::InvalidSubcommand, message));
        };
        command = subcommand;
    }
    None
}

/// Returns advice on an unknown first word: it may be a file that exists, or a command.
fn advice(word: &str) -> String {
    let words = shell_words(&[word.to_owned()]);
    match shown_as(Path::new(word)) {
        Some(what) => format!("`nntrace-bpf replay {words}` shows a {what}"),
        None => format!("`nntrace-bpf -- {words}` traces a command"),
    }
}

/// Returns what a path may be that `replay` shows; `None` for what is not there, or can be run.
fn shown_as(path: &Path) -> Option<&'static str> {
    let _rights = FileRights::of_caller().ok()?;
    if record::is_recording(path) {
        return Some("recording");
    }
    let found = fs::metadata(path).ok()?;
    (found.is_file() && found.permissions().mode() & 0o111 == 0).then_some("trace file")
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    fn refusal(words: &[&str]) -> String {
        let words: Vec<OsString> = ["nntrace-bpf"].iter().chain(words).map(OsString::from).collect();
        parse(&words).unwrap_err().to_string()
    }

    #[test]
    fn negative_numbers_are_refused_by_their_options() {
        for (words, expected) in [
            (&["--pid", "-1"][..], "the number of a process, from 1"),
            (&["-p", "-1"], "the number of a process, from 1"),
            (&["--duration", "-5", "--", "true"], "greater than zero"),
            (&["record", "-o", "run", "--interval", "-5ms"], "from 1ms to 100 years"),
            (&["explain", "run", "--slowest", "-1%"], "from 0.1% to 40%"),
            (&["bench", "--runs", "-1"], "1..=1000"),
            (&["report", "run", "--tid", "-1"], "a process or a thread"),
            (&["print", "run", "--time", "-1..2"], "two times in seconds"),
        ] {
            let text = refusal(words);
            assert!(text.contains("invalid value '-") && text.contains(expected), "{words:?}: {text}");
            assert!(!text.contains("tip:"), "{text}");
        }
    }

    #[test]
    fn unknown_options_are_no_command_to_run() {
        for words in [&["--nosuch"][..], &["record", "--nosuch"], &["report", "run", "-5"]] {
            let text = refusal(words);
            assert!(text.contains("unexpected argument") && !text.contains("tip:"), "{text}");
        }
        assert!(refusal(&["replay", "x", "--clutser", "a=1"]).contains("'--cluster'"));
    }

    #[test]
    fn traces_and_recordings_are_shown_and_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("trace.txt"), "text").unwrap();
        fs::write(path("app"), "#!/bin/sh").unwrap();
        fs::set_permissions(path("app"), Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(path("run")).unwrap();
        fs::write(path("run/run.nnt"), "").unwrap();
        for (name, advice) in [
            ("trace.txt", format!("`nntrace-bpf replay {}` shows a trace file", path("trace.txt"))),
            ("run", format!("`nntrace-bpf replay {}` shows a recording", path("run"))),
            ("app", format!("`nntrace-bpf -- {}` traces a command", path("app"))),
            ("nosuch", format!("`nntrace-bpf -- {}` traces a command", path("nosuch"))),
        ] {
            let text = refusal(&[&path(name)]);
            assert!(text.contains(&advice), "{text}");
        }
    }

    #[test]
    fn subcommands_of_subcommands_are_listed() {
        let text = refusal(&["energy-model", "nosuch"]);
        let expected = "energy-model has no subcommand nosuch; it has init, check, fit, rails";
        assert!(text.contains(expected), "{text}");
        assert!(refusal(&["help", "energy-model", "chek"]).contains("did you mean check?"));
        assert!(refusal(&["recrod"]).contains("did you mean record?"));
    }
}
