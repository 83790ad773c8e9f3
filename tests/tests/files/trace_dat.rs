//! Replay of trace-cmd's binary files, against the text that `trace-cmd report` prints of them.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anyhow::{Context as _, Result};
use nntrace_tests::{binaries, snapshot, trace};
use nntrace_user::{
    replay::{self, Options},
    report::snapshot::Snapshot,
};
use ruzstd::decoding::StreamingDecoder;

/// Files with their texts.
const CASES: [(&str, &str); 5] = [
    ("power.v6.dat.zst", "power.txt.zst"),
    ("power.v7.dat", "power.txt.zst"),
    ("lost.v6.dat.zst", "lost.txt.zst"),
    ("lost.v7.dat", "lost.txt.zst"),
    ("lost.v7-plain.dat.zst", "lost.txt.zst"),
];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tracedat").join(name)
}

#[test]
fn snapshots_are_those_of_the_report() -> Result<()> {
    for (file, text) in CASES {
        let snapshot = trace::replay_file(&fixture(file))?;
        assert_eq!(snapshot, trace::replay_file(&fixture(text))?, "{file}");
        assert!(!snapshot.phases.is_empty() && !snapshot.cpus.is_empty(), "{file}");
    }
    Ok(())
}

#[test]
fn files_of_both_kinds_are_one_trace() -> Result<()> {
    let together = |files: [&str; 2]| -> Result<Snapshot> {
        let options = Options { files: files.map(fixture).to_vec(), ..Options::default() };
        let mut snapshot = snapshot::of(&replay::replay(&options)?.findings())?;
        snapshot.source.files.clear();
        Ok(snapshot)
    };
    let text = together(["power.txt.zst", "lost.txt.zst"])?;
    assert_eq!(together(["power.v7.dat", "lost.txt.zst"])?, text);
    assert_eq!(together(["power.txt.zst", "lost.v6.dat.zst"])?, text);
    assert_eq!(together(["power.v6.dat.zst", "lost.v7.dat"])?, text);
    Ok(())
}

fn run(file: &str, input: &[u8]) -> Result<Output> {
    let mut command = Command::new(binaries::profiler()?);
    command.args(["replay", file, "--json"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take().context("a pipe")?;
    // A program that does not read its input does not matter here.
    let _ = stdin.write_all(input);
    drop(stdin);
    Ok(child.wait_with_output()?)
}

/// Returns a file without the packing around it, if it has any.
fn unpacked(name: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = File::open(fixture(name))?;
    if Path::new(name).extension().is_some_and(|extension| extension == "zst") {
        StreamingDecoder::new(file)?.read_to_end(&mut bytes)?;
    } else {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

#[test]
fn a_cut_file_gives_what_it_has_and_tells_where_it_ends() -> Result<()> {
    let whole = unpacked("power.v6.dat.zst")?;
    let end = whole.len() - 6_000;
    let output = run("-", &whole[..end])?;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let snapshot = snapshot::read(&output.stdout)?;
    let note = format!("standard input: read only in part: CPU 1: at byte {end}: the end of the file, ");
    assert!(snapshot.notes.iter().any(|told| told.starts_with(&note)), "{:?}", snapshot.notes);
    let all = snapshot::read(&run("-", &whole)?.stdout)?;
    assert!(!all.notes.iter().any(|told| told.contains("read only in part")), "{:?}", all.notes);
    let (some, all) = (snapshot.loss.records_drained, all.loss.records_drained);
    assert!(some > all / 2 && some < all, "{some} of {all}");
    Ok(())
}

/// Returns the file of version 6, as if it had been recorded with this clock.
fn by_clock(clock: &str) -> Result<tempfile::NamedTempFile> {
    let mut bytes = unpacked("power.v6.dat.zst")?;
    let clocks = "[local] global counter uptime perf mono mono_raw boot tai x86-tsc";
    let place =
        bytes.windows(clocks.len()).position(|part| part == clocks.as_bytes()).context("no clocks")?;
    let other = clocks.replace("[local]", "local").replace(&format!(" {clock} "), &format!(" [{clock}] "));
    bytes[place..place + clocks.len()].copy_from_slice(other.as_bytes());
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), bytes)?;
    Ok(file)
}

#[test]
fn files_of_two_clocks_are_not_one_trace() -> Result<()> {
    let (local, mono) = (fixture("power.v6.dat.zst"), by_clock("mono")?);
    let files = vec![local.clone(), mono.path().to_owned()];
    let options = Options { files, ..Options::default() };
    let why = replay::replay(&options).map(drop).unwrap_err().to_string();
    let [local, mono] = [&local, mono.path()].map(|path| path.display().to_string());
    let words = [&*local, &*mono, "recorded with clock local", "with clock mono", "-C mono"];
    assert!(words.iter().all(|word| why.contains(word)), "{why}");
    assert!(trace::replay_file(Path::new(&mono)).is_ok());
    Ok(())
}

#[test]
fn ticks_are_no_nanoseconds() -> Result<()> {
    for clock in ["uptime", "counter"] {
        let why = trace::replay_file(by_clock(clock)?.path()).map(drop).unwrap_err().to_string();
        let word = format!("the main buffer: times of clock `{clock}`, where nanoseconds were expected");
        assert!(why.contains(&word), "{why}");
    }
    assert!(trace::replay_file(by_clock("boot")?.path()).is_ok());
    Ok(())
}

#[test]
fn a_file_with_no_event_to_read_is_told_with_status_1() -> Result<()> {
    let whole = unpacked("power.v7.dat")?;
    let mut other_version = whole.clone();
    other_version[10] = b'9';
    for (bytes, what) in [
        (&whole[..5], "at byte 3: the end after 2 of 7 bytes of `tracing`"),
        (&whole[..3_000], "where a section was expected"),
        (&other_version[..], "at byte 10: version `9`, where 6 or 7 was expected"),
    ] {
        let output = run("-", bytes)?;
        assert_eq!(output.status.code(), Some(1));
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("cannot read standard input as trace-cmd's trace.dat: at byte "), "{told}");
        assert!(told.contains(what), "{told}");
        assert!(output.stdout.is_empty());
    }
    Ok(())
}

#[test]
fn damage_of_the_packing_around_it_is_told() -> Result<()> {
    let packed = std::fs::read(fixture("power.v6.dat.zst"))?;
    let output = run("-", &packed[..packed.len() - 1_000])?;
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains("the compressed data is damaged after "), "{told}");
    Ok(())
}
