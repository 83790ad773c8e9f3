//! Looks of the screen.

use nntrace_common::layer::{Layer, Phase, Tag};
use ratatui::crossterm::event::KeyCode;

use super::{app, press, sample, screen, usual};
use crate::report::device_usage;
use crate::report::snapshot::{
    FramePart, HandOverSplit, LanguageModelRow, Snapshot, SourceKind, StackFrame, UnfinishedRow, Window,
};
use crate::tui::{App, Health, Theme};

/// Draws a view in a small, a usual and a large terminal.
fn in_each_size(app: &mut App, name: &str) {
    for (width, height) in [(60, 15), (80, 24), (120, 40), (200, 50)] {
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), screen(app, width, height));
    }
}

#[test]
fn phases() {
    in_each_size(&mut usual(), "phases");
}

#[test]
fn cpus() {
    let mut app = usual();
    press(&mut app, "2");
    in_each_size(&mut app, "cpus");
}

#[test]
fn stacks() {
    let mut app = usual();
    press(&mut app, "3jj");
    in_each_size(&mut app, "stacks");
}

#[test]
fn hand_overs() {
    let mut app = app(sample::with_hand_overs(sample::snapshot(1)), sample::health());
    press(&mut app, "8");
    in_each_size(&mut app, "hand_overs");
    press(&mut app, "sssj");
    insta::assert_snapshot!("hand_overs_by_p95", screen(&mut app, 80, 24));
    press(&mut app, "ssSG");
    insta::assert_snapshot!("hand_overs_in_another_order", screen(&mut app, 100, 24));
}

#[test]
fn without_hand_overs() {
    let mut app = usual();
    press(&mut app, "8");
    assert!(screen(&mut app, 80, 24).to_string().contains("start with --handoff"));
    let split = |kind| {
        let mut snapshot = sample::snapshot(1);
        snapshot.hand_over_split = Some(HandOverSplit::default());
        snapshot.source.kind = kind;
        let mut app = super::app(snapshot, sample::health());
        press(&mut app, "8");
        screen(&mut app, 80, 24).to_string()
    };
    assert!(split(SourceKind::Live).contains("waiting for work that one thread hands to another"));
    assert!(split(SourceKind::Replay).contains("no work was handed over"));
}

#[test]
fn phases_of_another_row_by_another_column() {
    let mut app = usual();
    press(&mut app, "sssjjjj");
    insta::assert_snapshot!(screen(&mut app, 80, 24));
}

#[test]
fn phases_without_times() {
    let mut app = usual();
    press(&mut app, "ssssssG");
    insta::assert_snapshot!(screen(&mut app, 80, 24));
}

#[test]
fn cpus_of_a_cpu() {
    let mut app = usual();
    press(&mut app, "2G");
    insta::assert_snapshot!(screen(&mut app, 80, 24));
}

#[test]
fn cpus_wide() {
    let mut app = usual();
    press(&mut app, "2");
    press(&mut app, "j");
    insta::assert_snapshot!("cpus_wide_cpu", screen(&mut app, 200, 50));
    press(&mut app, "G");
    insta::assert_snapshot!("cpus_wide_effective", screen(&mut app, 200, 50));
}

#[test]
fn cpus_with_the_use_of_devices() {
    let device_usage = Some(device_usage::tests::sample());
    let mut used = app(Snapshot { device_usage, ..sample::snapshot(12) }, sample::health());
    press(&mut used, "2");
    insta::assert_snapshot!("device_usage", screen(&mut used, 80, 24));
    assert!(!screen(&mut used, 60, 15).to_string().contains("device usage"));
}

#[test]
fn cpus_with_measured_rails() {
    let snapshot = Snapshot { rails: Some(sample::rails(3)), ..sample::snapshot(12) };
    let mut measured = app(snapshot, sample::health());
    press(&mut measured, "2");
    insta::assert_snapshot!("rails", screen(&mut measured, 80, 24));
    // In a small terminal the CPUs take all of it.
    assert!(!screen(&mut measured, 60, 15).to_string().contains("rails"));
    let mut many = app(Snapshot { rails: Some(sample::rails(9)), ..sample::empty() }, sample::health());
    press(&mut many, "2");
    insta::assert_snapshot!("rails_many", screen(&mut many, 60, 24));
}

#[test]
fn cpus_smallest() {
    let mut app = usual();
    press(&mut app, "2j");
    insta::assert_snapshot!(screen(&mut app, 60, 15));
}

#[test]
fn cpus_without_clusters_many() {
    let frequencies: Vec<_> = (1..=12).map(|step| (Some(200_000 * step), 40)).collect();
    let cpus = (0..64).map(|cpu| sample::cpu(cpu, "", &frequencies[..cpu as usize % 13])).collect();
    let mut app = app(Snapshot { cpus, ..sample::empty() }, sample::health());
    press(&mut app, "2Gkk");
    insta::assert_snapshot!(screen(&mut app, 80, 24));
}

#[test]
fn cpus_of_a_zero_window() {
    let mut snapshot = sample::snapshot(1);
    snapshot.window = Window::default();
    snapshot.clusters.clear();
    snapshot.cpus.truncate(1);
    let cpu = &mut snapshot.cpus[0];
    cpu.running.clear();
    cpu.effective.clear();
    cpu.idle.clear();
    cpu.cluster = "a cluster with a name that is too long for its column".to_owned();
    let mut app = app(snapshot, sample::health());
    press(&mut app, "2");
    insta::assert_snapshot!(screen(&mut app, 80, 24));
}

#[test]
fn stacks_deep() {
    let mut app = usual();
    press(&mut app, "3G");
    insta::assert_snapshot!(screen(&mut app, 80, 24));
}

#[test]
fn functions() {
    let mut app = usual();
    app.update(sample::snapshot(2), sample::health());
    press(&mut app, "4j");
    in_each_size(&mut app, "functions");
}

/// The usual sample with context switches and energy, a moment before and now.
fn with_resources() -> App {
    let mut app = app(sample::with_resources(sample::snapshot(1)), sample::health());
    let mut now = sample::with_resources(sample::snapshot(2));
    now.window.end_ns += 1_000_000_000;
    for row in &mut now.threads {
        row.on_cpu_ns += u64::from(row.tid % 7) * 100_000_000;
    }
    app.update(now, sample::health());
    app
}

#[test]
fn a_function_in_full() {
    let mut app = with_resources();
    press(&mut app, "4j");
    let _ = app.on_key(KeyCode::Enter.into());
    in_each_size(&mut app, "function");
}

#[test]
fn functions_that_say_little() {
    let mut snapshot = sample::snapshot(1);
    snapshot.functions[0].count = 0;
    let mut app = app(snapshot, sample::health());
    press(&mut app, "4");
    let _ = app.on_key(KeyCode::Enter.into());
    insta::assert_snapshot!("function_inside_itself", screen(&mut app, 80, 24));
}

#[test]
fn threads() {
    let mut app = with_resources();
    press(&mut app, "5j");
    in_each_size(&mut app, "threads");
    press(&mut app, "ssjjj");
    insta::assert_snapshot!("threads_by_waiting", screen(&mut app, 80, 24));
}

#[test]
fn energy() {
    let mut app = with_resources();
    press(&mut app, "6j");
    in_each_size(&mut app, "energy");
    let rails = Some(sample::rails(3));
    let mut snapshot = Snapshot { rails, ..sample::with_resources(sample::snapshot(1)) };
    if let Some(energy) = &mut snapshot.energy {
        energy.phases.clear();
    }
    app.update(snapshot, sample::health());
    insta::assert_snapshot!("energy_without_context_switches", screen(&mut app, 80, 24));
}

#[test]
fn views_without_their_source_say_how_to_get_it() {
    let mut app = usual();
    for (keys, option) in [("5", "--level sched"), ("6", "--energy-model FILE")] {
        press(&mut app, keys);
        assert!(screen(&mut app, 80, 24).to_string().contains(option), "{option}");
    }
}

#[test]
fn functions_of_a_phase_by_a_part_of_their_names() {
    let mut app = usual();
    // The operators'.
    press(&mut app, "jjj");
    let _ = app.on_key(KeyCode::Enter.into());
    press(&mut app, "/conv");
    insta::assert_snapshot!("functions_filter_typed", screen(&mut app, 80, 24));
    press(&mut app, "z");
    let _ = app.on_key(KeyCode::Enter.into());
    insta::assert_snapshot!("functions_filter_of_none", screen(&mut app, 80, 24));
}

#[test]
fn functions_lossy() {
    let (snapshot, health) = sample::lossy();
    let mut app = app(snapshot, health);
    press(&mut app, "4G");
    insta::assert_snapshot!(screen(&mut app, 80, 24));
}

#[test]
fn help() {
    let mut app = usual();
    press(&mut app, "?");
    insta::assert_snapshot!(screen(&mut app, 80, 24));
}

#[test]
fn help_smallest() {
    let mut app = usual();
    press(&mut app, "?");
    screen(&mut app, 60, 15);
    press(&mut app, "G");
    insta::assert_snapshot!(screen(&mut app, 60, 15));
}

#[test]
fn diagnostics() {
    let (snapshot, health) = sample::lossy();
    let mut app = app(snapshot, health);
    press(&mut app, "d");
    insta::assert_snapshot!(screen(&mut app, 80, 24));
}

#[test]
fn too_small() {
    insta::assert_snapshot!(screen(&mut usual(), 59, 14));
    // Whatever is left of the terminal, nothing panics.
    for (width, height) in [(1, 1), (0, 0), (200, 1), (60, 14), (5, 40)] {
        screen(&mut usual(), width, height);
    }
}

#[test]
fn waiting() {
    insta::assert_snapshot!("waiting_for_results", screen(&mut App::with_theme(Theme::new(true)), 80, 24));
    let mut app = app(sample::empty(), sample::health());
    insta::assert_snapshot!("waiting_for_marks", screen(&mut app, 80, 24));
    press(&mut app, "2");
    insta::assert_snapshot!("waiting_for_power_events", screen(&mut app, 80, 24));
}

#[test]
fn paused_and_ended() {
    let mut app = usual();
    press(&mut app, " ");
    let ended = Some("target exited with status 0; q quits".to_owned());
    app.update(sample::snapshot(2), Health { ended, ..sample::health() });
    let paused = screen(&mut app, 80, 24);
    insta::assert_snapshot!(paused);
    press(&mut app, " ");
    let after = screen(&mut app, 80, 24);
    assert_ne!(paused.buffer(), after.buffer(), "the newest results are shown after the pause");
}

#[test]
fn long_names_stay_in_their_columns() {
    let mut snapshot = sample::snapshot(1);
    for row in &mut snapshot.phases {
        row.comm =
            "推論エンジンのとても長い名前のプロセス, longer than any line of eighty columns".to_owned();
    }
    snapshot.cpus[0].idle[0].name = "a-state-with-a-very-long-name-indeed".to_owned();
    let phases = Phase::ALL.into_iter().cycle().take(40);
    let frame =
        |phase| StackFrame { tag: Some(Tag::new(Layer::CpuFallback, phase)), part: FramePart::Inside };
    snapshot.stacks[0].path = phases.map(frame).collect();
    let target =
        "command /usr/lib/some/where/deep/benchmark_model --graph=a.tflite --num_threads=4".to_owned();
    let mut app = app(snapshot, Health { target, ..sample::health() });
    insta::assert_snapshot!("long_names_phases", screen(&mut app, 80, 24));
    press(&mut app, "2j");
    insta::assert_snapshot!("long_names_cpus", screen(&mut app, 80, 24));
    press(&mut app, "3");
    insta::assert_snapshot!("long_names_stacks", screen(&mut app, 80, 24));
}

#[test]
fn what_has_not_ended_stands_below_its_process() {
    let open = |pid: u32, layer, phase, name: &str, open_ns| UnfinishedRow {
        pid: Some(pid),
        tid: pid + 1,
        layer: Some(layer),
        phase: Some(phase),
        name: name.into(),
        depth: 0,
        begin_ns: 1_000,
        open_ns,
    };
    let unfinished = vec![
        open(999, Layer::Runtime, Phase::Compilation, "compile_model", 93_200_000_000),
        open(1234, Layer::Driver, Phase::Execution, "wait_for_npu", 4_300_000_000),
    ];
    let mut app = app(Snapshot { unfinished, ..sample::snapshot(12) }, sample::health());
    insta::assert_snapshot!("open_sections", screen(&mut app, 120, 40));
    let unfinished = app.state.shown.as_ref().unwrap().snapshot.unfinished.clone();
    app.update(Snapshot { unfinished, ..sample::empty() }, sample::health());
    insta::assert_snapshot!("open_sections_alone", screen(&mut app, 80, 24));
}

#[test]
fn tokens_stand_below_their_process() {
    let row = LanguageModelRow { pid: 1234, comm: "vision_app".into(), ..LanguageModelRow::sample() };
    let mut app = app(Snapshot { language_models: vec![row], ..sample::snapshot(12) }, sample::health());
    for (columns, expected) in [
        (120, " decoding 82.6 tokens/s, prompts 1,280/s, first token 400 ms, next 12.6 ms (p99 15.1 ms)"),
        (80, " decoding 82.6 tokens/s, prompts 1,280/s, first token 400 ms, next 12.6 ms"),
        (60, " decoding 82.6 tokens/s, prompts 1,280/s, first token 400 ms"),
    ] {
        let text = screen(&mut app, columns, 24).to_string();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let process = lines.iter().position(|line| line.contains("vision_app (1234)")).expect("a heading");
        assert_eq!(
            lines[process + 1].trim_matches(['"', ' ']),
            expected.trim(),
            "{columns} columns:\n{text}"
        );
    }
}
