//! Marks that no program should write: each is counted as its diagnostic, and the good marks beside it are counted
//! right.

use std::{collections::BTreeMap, ffi::OsString, os::unix::ffi::OsStringExt as _};

use anyhow::{Context as _, Result};
use nntrace_common::{
    diagnostic::{DiagnosticKind, EXAMPLE_BYTES},
    layer::Layer,
    stack::MAX_DEPTH,
};
use nntrace_tests::{
    live,
    marks::{UNMAPPED, UNTERMINATED, around, begin, begin_of_length, end},
    profiler::{Profiler, Run},
    results::Results as _,
};
use nntrace_user::report::snapshot::Snapshot;

/// Tag of the good sections before and after the odd marks.
const GOOD: &str = "LA_PE";

/// Writes these marks between two good sections.
fn write(marks: impl IntoIterator<Item = OsString>) -> Result<(Snapshot, u32)> {
    let marks = around(GOOD, []).into_iter().chain(marks).chain(around(GOOD, []));
    let command = [OsString::from(env!("CARGO_BIN_EXE_mark-raw"))].into_iter().chain(marks);
    let Run { snapshot, ended } = Profiler::new()?.launch(command)?;
    ended.expect_code(0)?;
    let pid = *snapshot.pids().first().context("no process has results")?;
    Ok((snapshot, pid))
}

/// Writes these marks between two good sections, and expects exactly these diagnostics, and these frames by stack
/// beside the good ones.
fn expect(
    marks: impl IntoIterator<Item = OsString>,
    odd: &[(&str, u64)],
    stacks: &[(&str, u64)],
) -> Result<(Snapshot, u32)> {
    let (snapshot, pid) = write(marks)?;
    let odd: BTreeMap<&str, u64> = odd.iter().copied().collect();
    assert_eq!(snapshot.odd_marks(), odd);
    let stacks = stacks.iter().chain(&[(GOOD, 2)]);
    let stacks: BTreeMap<String, u64> = stacks.map(|&(path, count)| (path.to_owned(), count)).collect();
    assert_eq!(snapshot.stack_counts(pid), stacks);
    Ok((snapshot, pid))
}

/// Returns the snapshot's first example of a diagnostic.
fn example<'a>(snapshot: &'a Snapshot, kind: &str) -> Option<&'a str> {
    snapshot.diagnostics.iter().find(|row| row.kind.name() == kind).map(|row| row.example.as_str())
}

#[test]
fn what_is_no_mark_is_left_alone() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let free = ["hello", "Error", "C|1|counter|5", "I|1|instant", "S|1|async|7", "F|1|async|7", "["];
    expect(free.map(OsString::from), &[], &[])?;
    Ok(())
}

#[test]
fn an_empty_mark_is_counted() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    expect(["", ""].map(OsString::from), &[("empty_mark", 2)], &[])?;
    Ok(())
}

#[test]
fn marks_that_cannot_be_read_are_counted() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let marks = [UNMAPPED, UNTERMINATED, UNMAPPED].map(OsString::from);
    expect(around("LR_PE", marks), &[("unreadable_mark", 3)], &[("LR_PE", 1)])?;
    Ok(())
}

#[test]
fn an_end_without_a_begin_is_counted() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let (snapshot, _) = expect([end(), end()], &[("unmatched_end", 2)], &[])?;
    assert_eq!(example(&snapshot, "unmatched_end"), Some("E|1"));
    Ok(())
}

#[test]
fn a_section_left_open_is_in_no_total_and_counted() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    // The good section after them ends inside, the sections themselves do not.
    let (snapshot, pid) = write([begin("LA_PO"), begin("LA_PBM")])?;
    assert_eq!(snapshot.odd_marks(), [("open_at_end", 2)].into());
    let stacks = [(GOOD, 1), ("LA_PO LA_PBM LA_PE", 1)].map(|(path, count)| (path.to_owned(), count));
    assert_eq!(snapshot.stack_counts(pid), stacks.into());
    Ok(())
}

#[test]
fn an_unknown_tag_is_counted_and_transparent() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let unknown = ["LX_PE", "LR_PQ", "LR"];
    let marks = unknown.into_iter().flat_map(|tag| around("LR_PE", around(tag, around("LC_PCO", []))));
    let stacks = [("LR_PE", 3), ("LR_PE LC_PCO", 3)];
    let (snapshot, _) = expect(marks, &[("unknown_tag", 3)], &stacks)?;
    assert_eq!(example(&snapshot, "unknown_tag"), Some("B|1|[NN_LX_PE]work"));
    Ok(())
}

#[test]
fn text_that_is_not_utf8_is_a_name_like_any_other() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let marks = [OsString::from_vec(b"B|1|[NN_LR_PE]\xff\xfe\x80".to_vec()), end()];
    let (snapshot, _) = expect(marks, &[], &[("LR_PE", 1)])?;
    let names: Vec<&str> = snapshot.functions.iter().map(|row| row.name.as_str()).collect();
    assert!(names.contains(&"\u{fffd}\u{fffd}\u{fffd}"), "{names:?}");
    Ok(())
}

#[test]
fn only_marks_longer_than_the_buffer_are_cut() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    // The buffer has 256 bytes, of which one is for the NUL.
    let marks = [254, 255].into_iter().flat_map(|length| [begin_of_length("LR_PE", length), end()]);
    expect(marks, &[], &[("LR_PE", 2)])?;
    let marks = [256, 257, 4_000].into_iter().flat_map(|length| [begin_of_length("LR_PE", length), end()]);
    let (snapshot, pid) = expect(marks, &[("truncated_mark", 3)], &[("LR_PE", 3)])?;
    let row = snapshot.diagnostics.iter().find(|row| row.kind == DiagnosticKind::TruncatedMark);
    let example = &row.context("it was counted")?.example;
    assert!(example.len() == EXAMPLE_BYTES && example.contains("|[NN_LR_PE]"), "{example}");
    // All three begin alike, and the rest is unknown.
    let names: Vec<(&str, u64)> = snapshot
        .functions
        .iter()
        .filter(|row| (row.pid, row.layer) == (pid, Layer::Runtime))
        .map(|row| (row.name.as_str(), row.count))
        .collect();
    assert!(matches!(names[..], [(name, 3)] if name.ends_with('x') && name.len() < 255), "{names:?}");
    Ok(())
}

#[test]
fn deeper_than_can_be_followed_the_outer_sections_stay_right() -> Result<()> {
    const BEYOND: usize = 3;
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    // An execution inside of an execution is a detail of it: each depth is a stack of its own.
    let depth = MAX_DEPTH + BEYOND;
    let begins = (0..depth).map(|_| begin("LR_PE"));
    let ends = (0..depth).map(|_| end());
    let (snapshot, pid) = write(begins.chain(ends))?;
    assert_eq!(snapshot.odd_marks(), [("depth_overflow", BEYOND as u64)].into());
    assert_eq!(snapshot.stack_counts(pid).len(), MAX_DEPTH + 1, "a stack for each depth, and the good one");
    assert_eq!(snapshot.counts(pid), [("LA_PE".to_owned(), 2), ("LR_PE".to_owned(), 1)].into());
    let outermost = snapshot.phase(pid, "LR_PE").context("no execution")?;
    let exclusive: u64 = snapshot
        .stacks
        .iter()
        .filter(|row| row.path.iter().all(|frame| frame.to_string() == "LR_PE"))
        .map(|row| row.exclusive_ns)
        .sum();
    assert_eq!(outermost.total_ns, exclusive, "what is in it belongs to it");
    Ok(())
}

#[test]
fn a_switch_ends_one_section_and_begins_another() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let chain =
        [begin("LC_PTR"), "B|1|[SW][NN_LC_PCO]b".into(), "B|1|[SW][NN_LC_PR]c".into(), end(), end(), end()];
    let stacks = [("LC_PE", 1), ("LC_PE LC_PTR", 1), ("LC_PE LC_PCO", 1), ("LC_PE LC_PR", 1)];
    let (snapshot, pid) = expect(around("LC_PE", chain), &[], &stacks)?;
    // Between the first begin and the last end nothing is lost but the moments around them.
    let total = |tag: &str| snapshot.phase(pid, tag).map_or(0, |row| row.total_ns);
    let parts = total("LC_PTR") + total("LC_PCO") + total("LC_PR");
    assert!(parts < total("LC_PE"), "{parts} {}", total("LC_PE"));
    Ok(())
}

#[test]
fn a_switch_of_nothing_is_counted_and_takes_both_its_ends() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let marks = ["B|1|[SW][NN_LC_PCO]b".into(), end(), end()];
    let (_, _) = expect(marks, &[("bad_nesting", 1)], &[("LC_PCO", 1)])?;
    Ok(())
}

#[test]
fn a_subtracted_section_is_taken_from_the_one_around_it() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let subtracted = ["B|1|[SUB][NN_LR_PC]compile".into(), end()];
    let stacks = [("LR_PE", 1), ("LR_PE LR_PC!", 1)];
    let (snapshot, pid) = expect(around("LR_PE", subtracted), &[], &stacks)?;
    let row = |tag: &str| snapshot.phase(pid, tag).with_context(|| format!("no {tag}"));
    let (execution, compilation) = (row("LR_PE")?, row("LR_PC")?);
    assert_eq!(execution.total_ns, execution.exclusive_ns, "the subtracted section is not in it");
    assert!(compilation.total_ns > 0 && compilation.count == 1, "{compilation:?}");
    Ok(())
}

#[test]
fn layers_and_phases_out_of_order_are_counted_and_accounted() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let stacks = [("LC_PE", 1), ("LC_PE LA_PC", 1)];
    let (snapshot, pid) = expect(around("LC_PE", around("LA_PC", [])), &[("bad_nesting", 1)], &stacks)?;
    assert_eq!(snapshot.count(pid, "LA_PC"), 1);
    Ok(())
}
