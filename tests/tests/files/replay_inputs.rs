//! Replay of files in all conditions: shuffled, packed, truncated, and not a trace.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::Write as _,
    path::Path,
    process::{Command, Output, Stdio},
};

use anyhow::{Context as _, Result};
use nntrace_common::{diagnostic::DiagnosticKind, layer::Layer};
use nntrace_tests::{
    binaries, snapshot,
    trace::{self, Random, payload},
};

/// Returns a trace of several threads and processes, as lines.
fn lines(seed: u64) -> Vec<(u32, String)> {
    let mut random = Random::new(seed);
    let mut now = 5_000_000_000;
    (0..2_000)
        .map(|_| {
            // Several lines at one instant, too.
            now += random.below(3) * 1_000;
            let tid = 10 + random.below(6) as u32;
            let text = match random.below(40) {
                0 => "B|1|[NN_LA_PO]case".into(),
                1 => format!("C|1|queue|{}", random.below(9)),
                2 => "B|1|[NN_LR_PE]ANeuralNetworksExecution_startCompute".into(),
                3 => "B|1|[NN_LR_PE]ANeuralNetworksEvent_wait".into(),
                4 => format!("B|1|[NN_LA_{}]app", ["PWU", "PBM"][random.below(2) as usize]),
                _ => payload(&mut random),
            };
            (tid, trace::line(now, tid, tid % 3, &text))
        })
        .collect()
}

fn join(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    })
}

/// Shuffles the lines, except that those of each thread keep their order.
fn shuffled(lines: &[(u32, String)], random: &mut Random) -> String {
    let mut by_thread: BTreeMap<u32, std::collections::VecDeque<&str>> = BTreeMap::new();
    for (tid, line) in lines {
        by_thread.entry(*tid).or_default().push_back(line);
    }
    let mut out = Vec::new();
    while !by_thread.is_empty() {
        let turn = random.below(by_thread.len() as u64) as usize;
        let Some(mut entry) =
            by_thread.entry(*by_thread.keys().nth(turn).unwrap_or(&0)).or_default().pop_front()
        else {
            by_thread.retain(|_, lines| !lines.is_empty());
            continue;
        };
        entry = entry.trim_end();
        out.push(entry.to_owned());
        by_thread.retain(|_, lines| !lines.is_empty());
    }
    join(out)
}

#[test]
fn the_order_of_threads_makes_no_difference() -> Result<()> {
    for seed in 1..=20 {
        let lines = lines(seed);
        let in_order = join(lines.iter().map(|(_, line)| line.clone()));
        let first = trace::replay(&in_order)?;
        assert_eq!(first, trace::replay(&in_order)?);
        let mut random = Random::new(seed);
        for _ in 0..3 {
            assert_eq!(trace::replay(shuffled(&lines, &mut random))?, first, "seed {seed}");
        }
        assert!(!first.reports.is_empty() && !first.counters.is_empty());
    }
    Ok(())
}

fn run(arguments: &[&str], input: Option<&[u8]>) -> Result<Output> {
    let mut command = Command::new(binaries::profiler()?);
    command.arg("replay").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take().context("a pipe")?;
    // A program that does not read its input does not matter here.
    let _ = stdin.write_all(input.unwrap_or_default());
    drop(stdin);
    Ok(child.wait_with_output()?)
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn replaying_twice_writes_the_same_bytes() -> Result<()> {
    let text = join(lines(7).into_iter().map(|(_, line)| line));
    let first = run(&["-", "--json"], Some(text.as_bytes()))?;
    assert_eq!(first.status.code(), Some(0), "{}", told(&first));
    assert_eq!(first.stdout, run(&["-", "--json"], Some(text.as_bytes()))?.stdout);
    Ok(())
}

#[test]
fn what_is_no_trace_is_told_with_status_1() -> Result<()> {
    let mut random = Random::new(3);
    let noise: Vec<u8> = (0..100_000).map(|_| random.below(256) as u8).collect();
    let folder = tempfile::tempdir()?;
    let write = |name: &str, bytes: &[u8]| -> Result<String> {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes)?;
        Ok(path.to_string_lossy().into_owned())
    };
    let gone = folder.path().join("gone").to_string_lossy().into_owned();
    for (file, word) in [
        (write("noise", &noise)?, "no trace event"),
        (write("empty", b"")?, "empty"),
        (binaries::profiler()?.to_string_lossy().into_owned(), "is an ELF file"),
        (folder.path().to_string_lossy().into_owned(), "directory"),
        (gone, "No such file"),
    ] {
        let output = run(&[&file], None)?;
        assert_eq!(output.status.code(), Some(1), "{file}");
        assert!(told(&output).contains(word), "{file}: {}", told(&output));
        assert!(output.stdout.is_empty());
    }
    assert_eq!(run(&[], None)?.status.code(), Some(2));
    assert_eq!(run(&["x", "--time-range", "5..4"], None)?.status.code(), Some(2));
    Ok(())
}

#[test]
fn a_file_that_ends_mid_line_gives_what_it_has() -> Result<()> {
    let whole = join([
        trace::line(1_000_000, 1, 1, "B|1|[NN_LR_PE]f"),
        trace::line(2_000_000, 1, 1, "E|1"),
        trace::line(3_000_000, 1, 1, "B|1|[NN_LR_PE]g"),
    ]);
    let cut = &whole.as_bytes()[10..whole.len() - 40];
    let text = [b"ite: E|1\n".as_slice(), &whole.as_bytes()[..10], cut].concat();
    let snapshot = trace::replay(&text)?;
    assert_eq!(snapshot.phases.len(), 1);
    let odd: Vec<_> = snapshot.diagnostics.iter().map(|odd| (odd.kind, odd.count)).collect();
    assert_eq!(odd, [(DiagnosticKind::UnreadableLine, 2)]);
    assert!(snapshot.diagnostics[0].example.contains(":1: "), "{:?}", snapshot.diagnostics[0]);
    Ok(())
}

#[test]
fn several_files_are_one_trace() -> Result<()> {
    let lines = lines(11);
    let folder = tempfile::tempdir()?;
    let paths: Vec<_> = (0..2).map(|part| folder.path().join(format!("part{part}"))).collect();
    for (part, path) in (0_u32..).zip(&paths) {
        let own = lines.iter().filter(|(tid, _)| tid % 2 == part).map(|(_, line)| line.clone());
        std::fs::write(path, join(own))?;
    }
    let whole = trace::replay(join(lines.into_iter().map(|(_, line)| line)))?;
    let options = nntrace_user::replay::Options { files: paths, ..Default::default() };
    let mut parts = snapshot::of(&nntrace_user::replay::replay(&options)?.findings())?;
    parts.source.files.clear();
    assert_eq!(parts, whole);
    Ok(())
}

#[test]
fn a_time_range_clips_what_is_open_at_its_begin() -> Result<()> {
    let text = join([
        trace::line(1_000, 1, 1, "B|1|[NN_LR_PE]f"),
        trace::line(2_000, 1, 1, "B|1|[NN_LC_PCO]g"),
        trace::line(3_000, 1, 1, "E|1"),
        trace::line(9_000, 1, 1, "E|1"),
    ]);
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), text)?;
    let range = nntrace_user::replay::TimeRange { begin: 4_000, end: 10_000 };
    let options = nntrace_user::replay::Options {
        files: vec![Path::new(file.path()).to_owned()],
        range: Some(range),
        ..Default::default()
    };
    let snapshot = snapshot::of(&nntrace_user::replay::replay(&options)?.findings())?;
    let [row] = &snapshot.phases[..] else { panic!("{:?}", snapshot.phases) };
    assert_eq!((row.layer, row.count, row.total_ns), (Layer::Runtime, 1, 5_000));
    assert_eq!((snapshot.window.begin_ns, snapshot.window.end_ns), (4_000, 9_000));
    Ok(())
}

#[test]
fn details_tell_what_a_total_is_made_of() -> Result<()> {
    let text = join([
        trace::line(0, 1, 1, "B|1|[NN_LR_PE]f#iter=1"),
        trace::line(1_000, 1, 1, "B|1|[NN_LR_PE]g"),
        trace::line(4_000, 1, 1, "E|1"),
        trace::line(9_000, 1, 1, "E|1"),
    ]);
    let output = run(&["-", "--json", "--detail"], Some(text.as_bytes()))?;
    let snapshot = snapshot::read(&output.stdout)?;
    let rows: Vec<_> = snapshot
        .details
        .iter()
        .map(|row| (row.name.as_str(), row.adds, row.count, row.exclusive_ns))
        .collect();
    assert_eq!(rows, [("f", true, 1, 6_000), ("g", false, 1, 3_000)]);
    Ok(())
}

#[test]
fn a_function_in_itself_counts_once() -> Result<()> {
    // An operator, its two wrappers of the same name, and one of another operator's kernel.
    let text = join([
        trace::line(0, 1, 1, "B|1|[NN_LC_PCO]conv"),
        trace::line(1_000, 1, 1, "B|1|[NN_LC_PCO]conv"),
        trace::line(2_000, 1, 1, "B|1|[NN_LC_PCO]gemm"),
        trace::line(3_000, 1, 1, "B|1|[NN_LC_PCO]conv"),
        trace::line(7_000, 1, 1, "E|1"),
        trace::line(8_000, 1, 1, "E|1"),
        trace::line(9_000, 1, 1, "E|1"),
        trace::line(10_000, 1, 1, "E|1"),
    ]);
    let output = run(&["-", "--json", "--detail"], Some(text.as_bytes()))?;
    let snapshot = snapshot::read(&output.stdout)?;
    let functions: Vec<_> = snapshot
        .functions
        .iter()
        .map(|row| (row.name.as_str(), row.count, row.total_ns, row.exclusive_ns))
        .collect();
    assert_eq!(functions, [("conv", 1, 10_000, 8_000), ("gemm", 1, 6_000, 2_000)]);
    let details: Vec<_> = snapshot
        .details
        .iter()
        .map(|row| (row.name.as_str(), row.adds, row.count, row.total_ns, row.exclusive_ns))
        .collect();
    assert_eq!(details, [("conv", true, 1, 10_000, 8_000), ("gemm", false, 1, 6_000, 2_000)]);
    Ok(())
}

#[test]
fn prompts_and_tokens_of_a_trace_are_counted() -> Result<()> {
    let us = |from: u64| 5_000_000_000 + from * 1_000;
    let batch = |tid, (begin, end), name: &str| {
        [
            trace::line(us(begin), tid, 1, &format!("B|1|[NN_LR_PE]{name}")),
            trace::line(us(end), tid, 1, "E|1"),
        ]
    };
    // Two threads answer at once; on the first one a part of a batch is a section of its own, and counts in the batch.
    let mut lines: Vec<String> = [
        batch(1, (0, 300), "64 tokens"),
        batch(1, (310, 500), "20 tokens"),
        batch(2, (320, 420), "7 tokens"),
        batch(2, (430, 440), "1 token"),
        batch(1, (600, 640), "1 token"),
        batch(1, (660, 680), "a model"),
        batch(1, (700, 730), "1 token"),
    ]
    .concat();
    lines.extend(batch(1, (710, 720), "1 token"));
    lines.sort_by_key(|line| {
        let time = line.split_whitespace().find_map(|word| word.strip_suffix(':')?.split_once('.'));
        time.map(|(_, fraction)| fraction.to_owned())
    });
    let snapshot = trace::replay(join(lines))?;
    let [row] = &snapshot.language_models[..] else {
        panic!("one process: {:?}", snapshot.language_models);
    };
    assert_eq!((row.prompt_batches, row.prompt_tokens, row.prompt_ns), (3, 91, 590_000));
    assert_eq!((row.decode.count, row.decode.total_ns), (3, 80_000));
    assert_eq!((row.first_token.count, row.first_token.max_ns), (2, Some(500_000)));
    assert_eq!(row.first_token.total_ns, 500_000 + 100_000);
    assert_eq!(row.between_tokens.total_ns, 140_000 + 90_000 + 20_000);
    Ok(())
}
