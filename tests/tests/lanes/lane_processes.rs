//! Lanes of `nntrace.h` in processes that fork, end their threads, handle signals, or are limited in what they may do.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use anyhow::{Context as _, Result};
use nntrace_common::express::{HEADER_BYTES, MIN_RING_BYTES, UNIT};
use nntrace_tests::lane::{Lane, MARKS_BEFORE, Marker, NOTHING, PROBED_WORK, WORK, Way};

#[test]
fn the_first_mark_closes_the_descriptor_unless_it_is_another() -> Result<()> {
    let mut marker = Marker::start(&Way::PLAIN)?;
    marker.ask("close 2")?;
    marker.ask("wanted 1")?;
    let calls = marker.calls("run 32")?;
    let offer = calls.last().context("an offer")?;
    let lane = marker.offered(offer)?;
    lane.accept()?;
    let file: u32 = offer.split(' ').nth(1).context("a file")?.parse()?;
    assert!(file > 2, "the standard streams stay free: {file}");
    assert_eq!(marker.descriptors()?, 1);
    assert_eq!(marker.ask(&format!("replace {file}"))?, file.to_string());
    assert_eq!(marker.calls("run 1")?, NOTHING);
    let link = fs::read_link(format!("/proc/{}/fd/{file}", marker.pid))?;
    assert_eq!(link.to_str(), Some("/dev/null"), "it is not ours to close");
    marker.exit()?;
    let mut marker = Marker::start(&Way::PLAIN)?;
    let lane = marker.first_lane()?;
    assert_eq!(marker.descriptors()?, 1);
    lane.accept()?;
    marker.calls("run 1")?;
    assert_eq!(marker.descriptors()?, 0);
    marker.exit()
}

#[test]
fn a_signal_handler_that_interrupts_a_mark_takes_the_probe() -> Result<()> {
    let (mut marker, mut lane) = Marker::with_lane()?;
    let handled = ["probe B|[NN_LC_PE]handler", "probe E"];
    for (request, records) in [
        ("begin plain", &["define [NN_LR_PE]plain", "begin [NN_LR_PE]plain"][..]),
        ("instant", &["text I|now"]),
        ("end", &["end"]),
        ("begin pairs", &["text B|[NN_LR_PE]pairs#iter=7#acct=foo"]),
        ("end", &["end"]),
    ] {
        marker.ask("interrupt")?;
        assert_eq!(marker.calls(request)?, handled);
        assert_eq!(lane.read()?, records);
    }
    marker.exit()
}

#[test]
fn a_reader_sees_each_mark_of_a_busy_thread_once() -> Result<()> {
    const SECTIONS: usize = 300_000;
    let (mut marker, mut lane) = Marker::with_lane()?;
    let pid = marker.pid;
    let is_done = AtomicBool::new(false);
    let (answer, lines) = thread::scope(|scope| {
        let reader = scope.spawn(|| -> Result<Vec<String>> {
            let mut lines = Vec::new();
            // Once more when all is written.
            let mut is_last = false;
            while !is_last {
                is_last = is_done.load(Ordering::Acquire);
                lines.extend(lane.read()?);
                if let Some(larger) = Lane::find(pid)?.filter(|next| next.key != lane.key) {
                    lines.extend(lane.read()?);
                    lane = larger;
                    lane.accept()?;
                }
            }
            lines.extend(lane.read()?);
            Ok(lines)
        });
        let answer = marker.ask(&format!("stress {SECTIONS}"));
        is_done.store(true, Ordering::Release);
        anyhow::Ok((answer?, reader.join().expect("the reader does not panic")?))
    })?;
    let (handled, probes) = answer.split_once(' ').context("two numbers")?;
    let (handled, probes): (usize, usize) = (handled.parse()?, probes.parse()?);
    let count = |begin: &str| lines.iter().filter(|line| line.starts_with(begin)).count();
    // A begin for which there was no room may find some as text.
    let (begins, ends) = (count("begin ") + count("text B|"), count("end"));
    println!(
        "{begins} begins and {ends} ends in the ring, {probes} marks by the probe, {handled} sections of the handler"
    );
    assert_eq!(begins + ends + probes, 2 * (SECTIONS + handled));
    assert_eq!(begins, ends);
    // Of the first ring alone there would be fewer.
    assert!(handled > 0 && begins > MIN_RING_BYTES / UNIT, "{handled} {begins}");
    marker.exit()
}

#[test]
fn a_forked_child_has_no_part_in_its_parents_lane() -> Result<()> {
    let (mut marker, mut lane) = Marker::with_lane()?;
    let parent = marker.pid;
    marker.calls("begin overall")?;
    marker.calls("begin plain")?;
    let child = marker.ask("fork")?;
    marker.pid = child.parse()?;
    assert_eq!(marker.mappings()?, 0);
    assert_eq!(marker.calls("end")?, NOTHING, "the section of the parent's ring");
    assert_eq!(marker.calls("end")?, ["probe E"]);
    let mut calls = marker.calls("run 40")?;
    let at = calls.iter().position(|call| call.starts_with("offer")).context("no offer")?;
    assert_eq!(at, MARKS_BEFORE - 1, "the end was the first mark");
    let mut own = marker.offered(&calls.remove(at))?;
    assert_ne!(own.key, lane.key);
    assert!(calls.iter().all(|call| call.starts_with("probe ")), "{calls:?}");
    own.accept()?;
    assert_eq!(marker.calls("run 1")?, NOTHING);
    assert_eq!(own.read()?, ["define [NN_LR_PE]work", WORK[0], WORK[1]]);
    assert_eq!((marker.mappings()?, marker.descriptors()?), (1, 0));
    // Another generation, whose parent has marked in a lane of a child.
    marker.calls("begin plain")?;
    marker.pid = marker.ask("fork")?.parse()?;
    assert_eq!(marker.mappings()?, 0);
    assert_eq!(marker.calls("end")?, NOTHING);
    assert_eq!(marker.calls("run 1")?, PROBED_WORK);
    assert_eq!(marker.ask("threads")?, "0");
    assert_eq!(marker.ask("exit")?, "0");
    assert_eq!(marker.ask("exit")?, "0");
    marker.pid = parent;
    own.read()?;
    assert_eq!(lane.read()?, ["define [NN_LR_PE]plain", "begin [NN_LR_PE]plain"]);
    assert_eq!(marker.calls("end")?, NOTHING);
    assert_eq!(marker.calls("end")?, ["probe E"]);
    assert_eq!(lane.read()?, ["end"]);
    assert_eq!(own.used()?, 0);
    marker.exit()
}

#[test]
fn a_thread_takes_over_what_a_dead_one_has_left() -> Result<()> {
    let (mut marker, mut lane) = Marker::with_lane()?;
    let mut keys = vec![lane.key];
    for round in 0..5 {
        // Every other one dies with an offer that nobody has accepted, and with a section open.
        marker.child_thread()?;
        let calls = marker.calls("run 32")?;
        let mut own = marker.offered(&calls[MARKS_BEFORE])?;
        keys.push(own.key);
        assert_eq!((marker.mappings()?, marker.ask("threads")?), (2, "2".to_owned()), "round {round}");
        assert_eq!(marker.descriptors()?, 1, "round {round}");
        if round % 2 == 0 {
            own.accept()?;
            assert_eq!(marker.calls("begin plain")?, NOTHING);
            assert_eq!(own.read()?, ["define [NN_LR_PE]plain", "begin [NN_LR_PE]plain"]);
        }
        assert_eq!(marker.ask("exit")?, "0");
        assert_eq!(own.used()?, 0);
    }
    // Threads that live at the same time have lanes of their own.
    for threads in 2..5 {
        marker.child_thread()?;
        let calls = marker.calls("run 32")?;
        keys.push(marker.offered(&calls[MARKS_BEFORE])?.key);
        assert_eq!(marker.ask("threads")?, threads.to_string());
    }
    for _ in 2..5 {
        assert_eq!(marker.ask("exit")?, "0");
    }
    assert_eq!(marker.calls("run 1")?, NOTHING);
    assert_eq!(lane.read()?, WORK);
    let offered = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), offered, "no key is given twice");
    marker.exit()
}

#[test]
fn threads_that_come_and_go_share_few_lanes() -> Result<()> {
    let (mut marker, mut lane) = Marker::with_lane()?;
    assert_eq!(marker.ask("churn 100")?, "0");
    let threads: usize = marker.ask("threads")?.parse()?;
    // A thread that has only just ended may still be there for the next.
    assert!((2..=2 * 8 + 1).contains(&threads), "{threads}");
    assert!(marker.mappings()? <= threads && marker.descriptors()? < threads);
    assert_eq!(marker.calls("run 1")?, NOTHING);
    assert_eq!(lane.read()?, WORK);
    marker.exit()
}

#[test]
fn limits_of_the_process_leave_its_threads_without_a_lane() -> Result<()> {
    // Shorter than the smallest lane.
    let mut marker = Marker::start(&Way::PLAIN)?;
    assert_eq!(marker.ask("size 16384")?, "0");
    marker.ask("wanted 1")?;
    let calls = marker.calls("run 200")?;
    assert!(calls.iter().all(|call| call.starts_with("probe ")), "{calls:?}");
    assert_eq!((marker.mappings()?, marker.descriptors()?), (0, 0));
    assert_eq!(marker.ask("size 20480")?, "0");
    let offer = marker.next_offer("instant")?;
    let lane = marker.offered(&offer)?;
    lane.accept()?;
    // A larger one is not possible: the ring that there is goes on.
    let calls = marker.calls("run 600")?;
    assert!(
        calls.iter().all(|call| !call.starts_with("offer") || call.starts_with("offer -1 ")),
        "{calls:?}"
    );
    assert!(calls.len() > 2);
    let mut lane = lane;
    lane.read()?;
    marker.calls("run 1")?;
    lane.read()?;
    assert_eq!(marker.calls("run 1")?, NOTHING);
    assert_eq!(lane.read()?, WORK);
    marker.exit()?;

    // All lanes of the process have taken what they may.
    let (mut marker, _lane) = Marker::with_lane()?;
    let all = 64 << 20;
    marker.ask(&format!("bytes {}", all - HEADER_BYTES - MIN_RING_BYTES + 1))?;
    marker.child_thread()?;
    let calls = marker.calls("run 200")?;
    assert!(calls.iter().all(|call| call.starts_with("probe ")), "{calls:?}");
    marker.ask(&format!("bytes {}", all - HEADER_BYTES - MIN_RING_BYTES))?;
    marker.next_offer("instant")?;
    assert_eq!(marker.ask("exit")?, "0");
    marker.exit()
}

#[test]
fn a_thread_under_seccomp_makes_no_system_calls() -> Result<()> {
    let mut marker = Marker::start(&Way::PLAIN)?;
    marker.ask("wanted 1")?;
    // The first mark of a process asks for its id.
    assert_eq!(marker.calls("run 1")?, PROBED_WORK);
    assert_eq!(marker.ask("confine")?, "0");
    assert!(marker.calls("run 200")?.iter().all(|call| call.starts_with("probe ")));
    assert_eq!((marker.mappings()?, marker.descriptors()?), (0, 0));
    marker.exit()?;
    // It is in time to use a lane, but not to close its file or to make a larger one.
    let mut marker = Marker::start(&Way::PLAIN)?;
    let mut lane = marker.first_lane()?;
    assert_eq!(marker.ask("confine")?, "0");
    lane.accept()?;
    assert_eq!(marker.calls("run 500")?, [format!("offer -1 {}", lane.key)]);
    assert_eq!(marker.descriptors()?, 1);
    let calls = marker.calls("run 100")?;
    assert!(calls.len() > 100 && calls.iter().all(|call| call.starts_with("probe ")), "{calls:?}");
    lane.read()?;
    assert!(!marker.calls("run 2")?.iter().any(|call| call.starts_with("offer")));
    marker.exit()
}
