//! Losses, windows and clocks of traces, each in a small one with figures worked out by hand.

use std::{collections::BTreeMap, fs, path::PathBuf};

use anyhow::Result;
use nntrace_tests::{rows, trace};
use nntrace_user::{
    replay::{self, Options},
    report::{
        snapshot::{CpuRow, Snapshot},
        tables,
    },
};

fn fixture(folder: &str, name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(folder).join(name)
}

fn replay_fixture(name: &str) -> Result<Snapshot> {
    trace::replay_file(&fixture("power", name))
}

/// Times of a CPU, us: idle by state, running by MHz, idle in an unknown state, and unknown.
type Times = (BTreeMap<u32, u64>, BTreeMap<Option<u32>, u64>, [u64; 2]);

fn did(row: &CpuRow) -> Times {
    let us = |ns: u64| ns / 1_000;
    let idle = row.idle.iter().map(|row| (row.state, us(row.ns)));
    let running = row.running.iter().map(|row| (row.khz.map(|khz| khz / 1_000), us(row.ns)));
    (idle.collect(), running.collect(), [us(row.idle_unknown_ns), us(row.unknown_ns)])
}

#[test]
fn a_ring_that_was_overwritten_is_a_loss_and_its_cpu_unknown_until_its_first_event() -> Result<()> {
    let snapshot = replay_fixture("overwritten.txt")?;
    rows::assert_tiled(&snapshot.cpus, &snapshot.clusters, 1_000_000);
    let expected = [
        ([(1, 780)].into(), [(None, 220)].into(), [0, 0]),
        ([(1, 50)].into(), [(None, 50)].into(), [0, 900]),
    ];
    assert_eq!(snapshot.cpus.iter().map(did).collect::<Vec<_>>(), expected);
    let loss = &snapshot.loss;
    assert_eq!((loss.records_dropped, loss.records_produced, loss.at_least), (1_993, 2_000, false));
    assert!(tables::render(&snapshot).contains("1,993 of 2,000 records lost"));

    // The same in the other notations.
    let text = fs::read_to_string(fixture("power", "overwritten.txt"))?;
    let started = "##### CPU 1 buffer started ####";
    let header = "# entries-in-buffer/entries-written: 7/2000";
    for (text, at_least, lost) in [
        (text.replace(started, "#"), false, 1_993),
        (text.replace(started, "CPU:1 [1993 EVENTS DROPPED]").replace(header, "#"), false, 1_993),
        (text.replace(started, "CPU:1 [EVENTS DROPPED]"), false, 1_993),
        (text.replace(started, "CPU:1 [EVENTS DROPPED]").replace(header, "#"), true, 1),
        (text.replace(header, "#"), true, 1),
    ] {
        let other = trace::replay(&text)?;
        assert_eq!(other.cpus, snapshot.cpus, "{text}");
        assert_eq!((other.loss.records_dropped, other.loss.at_least), (lost, at_least), "{text}");
    }
    Ok(())
}

#[test]
fn a_gap_reaches_from_the_event_before_it_on_its_cpu() -> Result<()> {
    let snapshot = replay_fixture("dropped.txt")?;
    let expected = [
        ([(1, 200)].into(), [(None, 300)].into(), [0, 500]),
        ([].into(), [(None, 100 + 400)].into(), [0, 500]),
    ];
    assert_eq!(snapshot.cpus.iter().map(did).collect::<Vec<_>>(), expected);
    assert_eq!((snapshot.loss.records_dropped, snapshot.loss.at_least), (2, true));
    let table = tables::render(&snapshot);
    assert!(table.contains("at least 2 of 8 records lost"), "{table}");
    assert!(table.contains("2 events_lost, first on CPU 1: -"), "{table}");
    Ok(())
}

#[test]
fn what_came_before_a_window_sets_the_state_in_its_own_order() -> Result<()> {
    let snapshot = replay_fixture("window_in_no_order.txt")?;
    assert_eq!((snapshot.window.begin_ns, snapshot.window.end_ns), (10_000_500_000, 10_001_500_000));
    let expected = [
        ([].into(), [(Some(800), 1_000)].into(), [0, 0]),
        // Its first event leaves idle, and comes after the window.
        ([].into(), [].into(), [1_000, 0]),
        ([].into(), [].into(), [0, 1_000]),
    ];
    assert_eq!(snapshot.cpus.iter().map(did).collect::<Vec<_>>(), expected);
    let [function] = &snapshot.functions[..] else { panic!("{:?}", snapshot.functions) };
    assert_eq!((function.name.as_str(), function.count, function.total_ns), ("inside", 1, 100_000));
    let [thread] = &snapshot.threads[..] else { panic!("{:?}", snapshot.threads) };
    assert_eq!((thread.tid, thread.on_cpu_ns, thread.sleeping_ns), (9, 0, 1_000_000));
    assert_eq!(snapshot.diagnostics, []);
    Ok(())
}

#[test]
fn a_frequency_of_minus_one_is_not_known_and_a_cpu_is_no_thread() -> Result<()> {
    let line = |us: u64, what: &str| format!("<idle>-0 [4095] d..1. 1.{us:06}: {what}\n");
    let text = [
        line(0, "cpu_idle: state=4294967295 cpu_id=4095"),
        line(0, "cpu_frequency: state=4294967295 cpu_id=4095"),
        line(10, "cpu_idle: state=0 cpu_id=70000"),
        line(20, "cpu_frequency: state=600000 cpu_id=4095"),
        line(30, "cpu_frequency: state=-1 cpu_id=4095"),
        line(50, "cpu_idle: state=1 cpu_id=4095"),
    ];
    let snapshot = trace::replay(text.concat())?;
    assert_eq!(did(&snapshot.cpus[0]).1, [(None, 40), (Some(600), 10)].into());
    let table = tables::render(&snapshot);
    assert!(table.contains("1 cpu_out_of_range, first on CPU 70000: -"), "{table}");
    assert!(table.contains("  cpu4095 all  "), "{table}");
    Ok(())
}

fn why_not(files: &[PathBuf]) -> String {
    let options = Options { files: files.to_vec(), ..Options::default() };
    replay::replay(&options).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn times_without_a_unit_are_refused() {
    for (name, time) in [("counter.txt", "`5` in "), ("boot_report.txt", "`6792243290455` in ")] {
        let why = why_not(&[fixture("power", name)]);
        let words = ["no trace event", "the time", time, &format!("{name}:"), "without a unit", "-C mono"];
        assert!(words.iter().all(|word| why.contains(word)), "{why}");
    }
}

#[test]
fn text_of_other_encodings_is_named() -> Result<()> {
    let text = "a-1 [000] 1.5: cpu_idle: state=1 cpu_id=0\n# x\n";
    let folder = tempfile::tempdir()?;
    let utf16 = |order: fn(u16) -> [u8; 2], mark: &[u8]| -> Vec<u8> {
        mark.iter().copied().chain(text.encode_utf16().flat_map(order)).collect()
    };
    for (name, bytes, words) in [
        ("le", utf16(u16::to_le_bytes, b"\xff\xfe"), "is UTF-16"),
        ("be", utf16(u16::to_be_bytes, b"\xfe\xff"), "is UTF-16"),
        ("cr", text.replace('\n', "\r").into_bytes(), "has lines that end in CR alone"),
    ] {
        let file = folder.path().join(name);
        fs::write(&file, bytes)?;
        let why = why_not(std::slice::from_ref(&file));
        assert!(why.contains(&format!("{} {words}", file.display())), "{why}");
    }
    Ok(())
}
