//! Marks of `nntrace.h` in lanes, as their reader sees them: which are written there, when and how, and which take the probe.

use anyhow::{Context as _, Result};
use nntrace_common::express::{MAX_RING_BYTES, MIN_RING_BYTES, UNIT};
use nntrace_tests::lane::{Marker, NOTHING, PROBED_WORK, WORK, Way};
use nntrace_user::live::clock;

const MILLISECOND: u64 = 1_000_000;

#[test]
fn each_mark_is_written_in_its_form() -> Result<()> {
    let mut marker = Marker::start(&Way::PLAIN)?;
    let mut lane = marker.first_lane()?;
    assert_eq!(lane.ring_bytes, MIN_RING_BYTES);
    lane.accept()?;
    let long = "x".repeat(400);
    let room = 255 - "B|0|[NN_LR_PE]".len();
    let cut = format!("text B|[NN_LR_PE]{}", &long[..room]);
    for (word, records) in [
        ("plain", &["define [NN_LR_PE]plain", "begin [NN_LR_PE]plain"][..]),
        ("plain", &["begin [NN_LR_PE]plain"]),
        ("other", &["define [NN_LC_PCO]other", "begin [NN_LC_PCO]other"]),
        ("plain", &["begin [NN_LR_PE]plain"]),
        ("pairs", &["text B|[NN_LR_PE]pairs#iter=7#acct=foo"]),
        ("named", &["text B|[NN_LR_PE]a name"]),
        ("named", &["text B|[NN_LR_PE]a name"]),
        ("hash", &["text B|[NN_LR_PE]hash#h=9"]),
        ("hash", &["text B|[NN_LR_PE]hash#h=9"]),
        ("long", &[&cut]),
        ("switched", &["define [SW][NN_LC_PCO]switched", "begin [SW][NN_LC_PCO]switched"]),
        ("apart", &["define [SUB][NN_LA_PE]apart", "begin [SUB][NN_LA_PE]apart"]),
    ] {
        assert_eq!(marker.calls(&format!("begin {word}"))?, NOTHING, "{word}");
        assert_eq!(lane.read()?, records, "{word}");
        assert_eq!(marker.calls("instant")?, NOTHING);
        assert_eq!(marker.calls("end")?, NOTHING, "{word}");
        assert_eq!(lane.read()?, ["text I|now", "end"], "{word}");
    }
    assert_eq!(marker.calls("counter")?, NOTHING);
    assert_eq!(lane.read()?, ["text C|level|-3"]);
    marker.exit()
}

#[test]
fn phases_of_the_application_take_the_probe() -> Result<()> {
    let (mut marker, mut lane) = Marker::with_lane()?;
    for (word, payload) in [
        ("overall", "probe B|[NN_LA_PO]overall"),
        ("warmup", "probe B|[NN_LA_PWU]warmup#iter=1"),
        ("benchmark", "probe B|[SW][NN_LA_PBM]benchmark"),
    ] {
        assert_eq!(marker.calls(&format!("begin {word}"))?, [payload]);
        assert_eq!(marker.calls("run 1")?, NOTHING);
        assert_eq!(marker.calls("end")?, ["probe E"]);
        assert_eq!(lane.read()?, WORK);
    }
    marker.exit()
}

#[test]
fn sites_are_defined_until_half_of_the_table_is_taken() -> Result<()> {
    let (mut marker, mut lane) = Marker::with_lane()?;
    let sections = |lines: &[String], kind: &str| lines.iter().filter(|line| line.starts_with(kind)).count();
    let (mut definitions, mut begins, mut texts) = (0, 0, 0);
    for _ in 0..2 {
        for hundred in 1..=6 {
            assert_eq!(marker.calls(&format!("sites {hundred}"))?, NOTHING);
            let lines = lane.read()?;
            definitions += sections(&lines, "define ");
            begins += sections(&lines, "begin ");
            texts += sections(&lines, "text B|[NN_LR_PE]site ");
            assert_eq!(sections(&lines, "end"), 100);
        }
    }
    // One is that of `run`.
    assert_eq!((definitions, begins, texts), (511, 2 * 511, 2 * 89));
    marker.exit()
}

#[test]
fn no_record_is_split_at_the_end_of_the_ring() -> Result<()> {
    let (mut marker, mut lane) = Marker::with_lane()?;
    let text = "text B|[NN_LR_PE]pairs#iter=7#acct=foo";
    let mut skips = 0;
    // Records of 64 bytes and more: several times around.
    for _ in 0..1000 {
        assert_eq!(marker.calls("begin pairs")?, NOTHING);
        assert_eq!(marker.calls("end")?, NOTHING);
        let mut lines = lane.read()?;
        skips += lines.iter().filter(|line| *line == "skip").count();
        lines.retain(|line| line != "skip");
        assert_eq!(lines, [text, "end"]);
    }
    assert!((1..10).contains(&skips), "{skips}");
    marker.exit()
}

#[test]
fn a_full_ring_has_room_for_all_ends() -> Result<()> {
    const OPEN: usize = 20;
    let (mut marker, mut lane) = Marker::with_lane()?;
    for _ in 0..OPEN {
        assert_eq!(marker.calls("begin plain")?, NOTHING);
    }
    // The last records before the first mark that has to take the probe.
    let mut calls = Vec::new();
    while calls.iter().all(|call: &String| call.starts_with("offer -1 ")) {
        calls.extend(marker.calls("instant")?);
    }
    let bell = format!("offer -1 {}", lane.key);
    assert_eq!(calls, [bell.as_str(), "probe I|now"], "the bell once, then the probe");
    let free = lane.ring_bytes - lane.used()?;
    assert!((OPEN * UNIT..OPEN * UNIT + 32).contains(&free), "{free} bytes are free");
    assert_eq!(marker.calls("run 1")?, PROBED_WORK, "no larger ring while sections are open");
    for _ in 0..OPEN {
        assert_eq!(marker.calls("end")?, NOTHING, "all ends are in the ring");
    }
    let lines = lane.read()?;
    assert_eq!(lines.iter().filter(|line| *line == "end").count(), OPEN);
    assert_eq!(lines[lines.len() - OPEN..], vec!["end"; OPEN]);
    assert_eq!(marker.mappings()?, 1);
    marker.exit()
}

#[test]
fn the_bell_rings_once_until_the_reader_has_caught_up() -> Result<()> {
    let (mut marker, mut lane) = Marker::with_lane()?;
    let bell = format!("offer -1 {}", lane.key);
    let half = MIN_RING_BYTES / (2 * UNIT) / 2;
    for _ in 0..3 {
        assert_eq!(marker.calls(&format!("run {}", half - 1))?, NOTHING, "not half full");
        assert_eq!(marker.calls("run 2")?, [bell.as_str()], "half full");
        assert_eq!(marker.calls(&format!("run {}", half / 2))?, NOTHING, "the bell was rung");
        assert_eq!(lane.read()?.iter().filter(|line| *line == "end").count(), half / 2 + half + 1);
    }
    marker.exit()
}

#[test]
fn a_ring_that_was_full_is_replaced_by_a_larger_one() -> Result<()> {
    let (mut marker, mut lane) = Marker::with_lane()?;
    for size in [MIN_RING_BYTES * 16, MAX_RING_BYTES] {
        // The last of these takes the probe, and is nobody's outer section.
        let calls = marker.calls(&format!("run {}", lane.ring_bytes / (2 * UNIT) + 1))?;
        assert_eq!(calls[0], format!("offer -1 {}", lane.key), "the bell");
        assert_eq!(calls[1], PROBED_WORK[0]);
        let larger = marker.offered(&calls[2])?;
        assert_eq!(larger.ring_bytes, size);
        assert_eq!(calls[3..], ["probe E"]);
        assert_eq!((marker.mappings()?, marker.descriptors()?), (1, 1), "only the larger one");
        let lines = lane.read()?;
        assert_eq!(lines.iter().filter(|line| *line == "end").count(), lane.ring_bytes / (2 * UNIT));
        lane = larger;
        lane.accept()?;
        assert_eq!(marker.calls("run 1")?, NOTHING);
        assert_eq!(lane.read()?, ["define [NN_LR_PE]work", WORK[0], WORK[1]], "defined anew");
        assert_eq!(marker.descriptors()?, 0);
    }
    // The probes of the largest are too many for an answer.
    while lane.ring_bytes - lane.used()? >= 2 * UNIT {
        marker.calls(&format!("run {}", (lane.ring_bytes - lane.used()?) / (2 * UNIT)))?;
    }
    assert_eq!(marker.calls("run 2")?, [PROBED_WORK, PROBED_WORK].concat(), "there is none larger");
    assert!(lane.read()?.len() > MAX_RING_BYTES / UNIT - 4);
    assert_eq!(marker.calls("run 1")?, NOTHING);
    marker.exit()
}

#[test]
fn the_ring_is_used_only_while_one_profiler_wants_it() -> Result<()> {
    let (mut marker, mut lane) = Marker::with_lane()?;
    for wanted in [2, 0] {
        assert_eq!(marker.calls("begin plain")?, NOTHING);
        marker.ask(&format!("wanted {wanted}"))?;
        assert_eq!(marker.calls("run 1")?, PROBED_WORK);
        assert_eq!(marker.calls("begin named")?, ["probe B|[NN_LR_PE]a name"]);
        marker.ask("wanted 1")?;
        assert_eq!(marker.calls("end")?, ["probe E"], "as it began");
        marker.ask(&format!("wanted {wanted}"))?;
        assert_eq!(marker.calls("end")?, NOTHING, "as it began");
        let lines = lane.read()?;
        assert_eq!(lines[lines.len() - 2..], ["begin [NN_LR_PE]plain", "end"]);
        marker.ask("wanted 1")?;
        assert_eq!(marker.calls("run 1")?, NOTHING);
        assert_eq!(lane.read()?, WORK);
    }
    marker.exit()
}

#[test]
fn nobody_offers_a_lane_that_is_not_wanted() -> Result<()> {
    for (preparation, calls) in [("wanted 0", 400), ("wanted 2", 400), ("ftrace", 400)] {
        let mut marker = Marker::start(&Way::PLAIN)?;
        marker.ask("wanted 1")?;
        marker.ask(preparation)?;
        let seen = marker.calls("run 200")?;
        assert!(seen.iter().all(|call| call.starts_with("probe ")), "{preparation}");
        assert_eq!(seen.len(), calls, "{preparation}");
        assert_eq!(marker.descriptors()?, 0);
        marker.exit()?;
    }
    Ok(())
}

#[test]
fn a_lease_that_ran_out_sends_marks_to_the_probe() -> Result<()> {
    let (mut marker, mut lane) = Marker::with_lane()?;
    assert_eq!(marker.calls("begin plain")?, NOTHING);
    // The profiler may come back.
    lane.lease(clock::now() - MILLISECOND)?;
    assert_eq!(marker.calls("run 1")?, PROBED_WORK);
    lane.accept()?;
    assert_eq!(marker.calls("run 1")?, NOTHING);
    lane.lease(clock::now() - MILLISECOND)?;
    assert_eq!(marker.calls("begin named")?, ["probe B|[NN_LR_PE]a name"]);
    assert_eq!(marker.calls("end")?, ["probe E"]);
    assert_eq!(marker.calls("end")?, NOTHING, "there is room for it");
    let lines = lane.read()?;
    assert_eq!(lines[1..], ["begin [NN_LR_PE]plain", WORK[0], WORK[1], "end"]);
    // With nothing open there is a new one at once.
    let calls = marker.calls("run 1")?;
    assert_eq!((calls.len(), &calls[0]), (3, &PROBED_WORK[0].to_owned()), "{calls:?}");
    let next = marker.offered(&calls[1])?;
    assert_ne!(next.key, lane.key);
    assert_eq!(lane.used()?, 0);
    marker.exit()
}

#[test]
fn a_section_of_a_lane_that_was_replaced_ends_nowhere() -> Result<()> {
    let (mut marker, mut lane) = Marker::with_lane()?;
    for word in ["plain", "overall", "named"] {
        marker.calls(&format!("begin {word}"))?;
    }
    lane.read()?;
    // Longer than the profiler is waited for.
    lane.lease(clock::now() - 1500 * MILLISECOND)?;
    let calls = marker.calls("run 1")?;
    let mut next = marker.offered(&calls[1])?;
    next.accept()?;
    assert_eq!(marker.calls("begin plain")?, NOTHING);
    assert_eq!(marker.calls("end")?, NOTHING);
    assert_eq!(next.read()?, ["define [NN_LR_PE]plain", "begin [NN_LR_PE]plain", "end"]);
    assert_eq!(marker.calls("end")?, NOTHING, "named");
    assert_eq!(marker.calls("end")?, ["probe E"], "overall");
    assert_eq!(marker.calls("end")?, NOTHING, "plain");
    assert_eq!((next.used()?, lane.used()?), (0, 0));
    assert_eq!(marker.calls("run 1")?, NOTHING);
    assert_eq!(next.read()?, ["define [NN_LR_PE]work", WORK[0], WORK[1]]);
    marker.exit()
}

#[test]
fn an_offer_that_nobody_accepts_is_repeated() -> Result<()> {
    let mut marker = Marker::start(&Way::PLAIN)?;
    // The answer to the offer may take a while to get here: what is measured begins before the offer.
    let before_offer = clock::now();
    let mut lane = marker.first_lane()?;
    let again = marker.next_offer("instant")?;
    assert!(clock::now() - before_offer > 9 * MILLISECOND);
    // The same one: a slow reader may just be about to accept it.
    assert_eq!(marker.offered(&again)?.key, lane.key);
    assert_eq!((marker.mappings()?, marker.descriptors()?), (1, 1));
    lane.accept()?;
    assert_eq!(marker.calls("instant")?, NOTHING);
    assert_eq!(lane.read()?, ["text I|now"]);
    marker.exit()
}

#[test]
fn an_offer_whose_descriptor_the_program_has_closed_is_repeated_with_another_ring() -> Result<()> {
    let mut marker = Marker::start(&Way::PLAIN)?;
    let lane = marker.first_lane()?;
    let first = marker.next_offer("instant")?;
    let file: u32 = first.split(' ').nth(1).context("a file")?.parse()?;
    marker.ask(&format!("close {file}"))?;
    let again = marker.next_offer("instant")?;
    let mut next = marker.offered(&again)?;
    assert_ne!(next.key, lane.key);
    assert_eq!((marker.mappings()?, marker.descriptors()?), (1, 1));
    next.accept()?;
    assert_eq!(marker.calls("instant")?, NOTHING);
    assert_eq!(next.read()?, ["text I|now"]);
    marker.exit()
}

#[test]
fn sections_that_are_too_deep_take_the_probe() -> Result<()> {
    const TRACKED: usize = 64;
    let (mut marker, mut lane) = Marker::with_lane()?;
    for depth in 0..TRACKED + 6 {
        let calls = marker.calls("begin plain")?;
        assert_eq!(calls.is_empty(), depth < TRACKED, "{depth}: {calls:?}");
    }
    for depth in (0..TRACKED + 6).rev() {
        let calls = marker.calls("end")?;
        assert_eq!(calls.is_empty(), depth < TRACKED, "{depth}: {calls:?}");
    }
    assert_eq!(lane.read()?.len(), 1 + 2 * TRACKED);
    marker.exit()
}
