//! Command lines that cannot be right: each is refused at once, with what is wrong, and what to do.

use std::{fs, time::Duration};

use anyhow::Result;
use nntrace_tests::{child::Child, profiler::Profiler};

const MARKS: &str = "  app-1 (  1) [000] .... 1.000000: tracing_mark_write: B|1|[NN_LR_PE]run\n  \
                       app-1 (  1) [000] .... 1.500000: tracing_mark_write: E|1\n";

/// Longest time in which a wrong command line is refused.
const AT_ONCE: Duration = Duration::from_secs(20);

#[test]
fn wrong_values_are_refused_with_the_range() -> Result<()> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("trace.txt"), MARKS)?;
    for (words, parts) in [
        (&["--pid", "abc"][..], &["'abc'", "number of a process", "pgrep"][..]),
        (&["--pid", "4294967297"], &["from 1 to 4194304"]),
        (&["--pid", "-1"], &["'-1'", "from 1 to 4194304"]),
        (&["--duration", "-5s", "--", "true"], &["'-5s'", "greater than zero"]),
        (&["replay", "trace.txt", "--driver", "x"], &["number of a process or a thread"]),
        (&["print", "trace.txt", "--tid", "99999999999"], &["0 to 4294967295"]),
        (&["--interval", "1ns"], &["from 1ms to 100 years"]),
        (&["--interval", "18446744073709551615"], &["from 1ms to 100 years"]),
        (&["--duration", "1e300"], &["100 years at most"]),
        (&["replay", "trace.txt", "--speed", "1e-9x"], &["from 0.001x to 1000x"]),
        (&["what-if", "trace.txt", "--speed", "run=1e-9x"], &["from 0.001x to 1000x or inf"]),
        (&["replay", "trace.txt", "--cluster", "big=0-4294967295"], &["below 8192"]),
        (&["--otlp", "http://127.0.0.1:99999"], &["\"99999\" is not a port", "1 to 65535"]),
        (&["--otlp", "http://127.0.0.1:"], &["\"\" is not a port"]),
        (&["--counters", "cyles"], &["no event \"cyles\"", "did you mean", "cycles"]),
        (&["recrod", "-o", "x"], &["no subcommand recrod", "did you mean record", "-- recrod"]),
        (&["help", "recrod"], &["did you mean record"]),
        (&["energy-model", "nosuch"], &["no subcommand nosuch", "init, check, fit, rails"]),
        (&["what-if", "trace.txt"], &["--rank", "Usage: nntrace-bpf what-if [OPTIONS]"]),
        (&["record", "--pid", "1"], &["-o run1", "Usage: nntrace-bpf record [OPTIONS]"]),
        (&["-o", "x.foo", "--", "true"], &["expected a file name", "Usage: nntrace-bpf [OPTIONS]"]),
        (&["replay", "trace.txt", "--energy-model", "/dev/zero"], &["larger than 1 MiB"]),
        (&["replay", "trace.txt", "--topology", "/dev/zero"], &["larger than 1 MiB"]),
    ] {
        let mut profiler = Profiler::new()?.args(words).limit(AT_ONCE);
        let ended = Child::run(profiler.command().current_dir(folder.path()))?.expect_code(2)?;
        for part in parts {
            assert!(ended.stderr.contains(part), "{words:?}, {part}: {}", ended.stderr);
        }
        assert!(!ended.stderr.contains("invalid digit"), "{}", ended.stderr);
    }
    Ok(())
}

#[test]
fn help_is_a_word_too() -> Result<()> {
    let help = |words: &[&str]| -> Result<String> {
        Ok(Child::run(Profiler::new()?.args(words).command())?.expect_code(0)?.text())
    };
    assert_eq!(help(&["help", "record"])?, help(&["record", "--help"])?);
    assert_eq!(help(&["help", "energy-model", "fit"])?, help(&["energy-model", "fit", "--help"])?);
    assert_eq!(help(&["help"])?, help(&["--help"])?);
    Ok(())
}

#[test]
fn errors_name_the_next_step_and_no_cause_twice() -> Result<()> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("trace.txt"), MARKS)?;
    fs::create_dir(folder.path().join("empty"))?;
    fs::write(folder.path().join("large.toml"), format!("unit = \"mW\"\n#{}", "x".repeat(1 << 20)))?;
    let no_such_file = "No such file or directory (os error 2)";
    for (words, code, parts) in [
        (&["report", "empty"][..], 1, &["empty is not a recording", "record -o DIR", "replay FILE"][..]),
        (&["replay", "nosuch"], 1, &["nosuch", no_such_file, "check the path"]),
        (&["diff", "nosuch", "trace.txt"], 1, &["nosuch", no_such_file, "check the path"]),
        (&["unpack", "nosuch.nnpack"], 1, &["nosuch.nnpack", no_such_file]),
        (&["pack", "nosuch"], 1, &["nosuch", no_such_file, "check the path"]),
        (&["info", "nosuch"], 1, &["nosuch", no_such_file, "check the path"]),
        (&["calls", "trace.txt"], 1, &["trace.txt is not a recording: it is not a folder", "record -o DIR"]),
        (&["engines", "--map", "nosuch.toml"], 1, &["nosuch.toml", no_such_file]),
        (&["engines", "--map", "/dev/zero"], 1, &["/dev/zero", "larger than 1 MiB"]),
        (&["export", "trace.txt", "-o", "none/x.parquet", "--board", "b"], 1, &["none", no_such_file]),
        (&["export", "trace.txt", "-o", "none/x.pftrace"], 1, &["no folder none", no_such_file, "create it"]),
        (
            &["replay", "trace.txt", "--energy-model", "nosuch"],
            2,
            &["cannot read it", no_such_file, "check the path"],
        ),
        (&["replay", "trace.txt", "--energy-model", "large.toml"], 2, &["larger than 1 MiB"]),
        (&["engines", "--engine", "onnxrutime"], 1, &["\"onnxrutime\"", "did you mean onnxruntime?"]),
        (&["engines", "--engine", ""], 1, &["no engine is named \"\"; there are onnxruntime"]),
    ] {
        let mut profiler = Profiler::new()?.args(words);
        let ended = Child::run(profiler.command().current_dir(folder.path()))?.expect_code(code)?;
        for part in parts {
            assert_eq!(ended.stderr.matches(part).count(), 1, "{words:?}, {part}: {}", ended.stderr);
        }
        assert!(ended.stderr.matches("os error").count() <= 1, "{}", ended.stderr);
    }
    Ok(())
}
