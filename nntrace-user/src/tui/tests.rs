//! Keys and new results, and their effect on the interface; its looks are in [`screens`].

pub(crate) mod sample;
mod screens;
mod timeline;

use std::time::Duration;

use nntrace_common::layer::{Layer, Phase};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};

use super::{App, Flow, Health, Theme, View};
use super::{
    actions::{Action, Travel},
    keys::BINDINGS,
};
use crate::{
    model::run_facts::ProbedEngine,
    report::{probe_share, snapshot::Snapshot},
};

fn app(snapshot: Snapshot, health: Health) -> App {
    let mut app = App::with_theme(Theme::new(true));
    app.update(snapshot, health);
    app
}

fn usual() -> App {
    app(sample::with_recent(sample::snapshot(1), false), sample::health())
}

fn screen(app: &mut App, width: u16, height: u16) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| app.draw(frame)).unwrap();
    terminal.backend().clone()
}

fn press(app: &mut App, keys: &str) {
    for key in keys.chars() {
        let event = KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE);
        assert_eq!(app.on_key(event), Flow::Continue, "{key}");
    }
}

#[test]
fn every_size_and_view_can_be_drawn() {
    let (snapshot, health) = sample::lossy();
    let snapshot = sample::with_recent(sample::with_resources(sample::with_hand_overs(snapshot)), true);
    let mut app = app(snapshot, Health { ended: Some("over".to_owned()), ..health });
    for keys in [
        "1G", "2", "2G", "3G", "4G", "4\n", "5", "5G", "6G", "7", "7G[[[i", "7j[[oo", "8", "8G", "4/x", "?",
        "d",
    ] {
        for key in keys.chars() {
            let code = if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) };
            assert_eq!(app.on_key(code.into()), Flow::Continue);
        }
        for (width, height) in
            (60..170).step_by(7).flat_map(|width| (15..40).map(move |height| (width, height)))
        {
            screen(&mut app, width, height);
        }
    }
}

#[test]
fn the_selected_row_stays_selected_when_rows_move() {
    let mut app = usual();
    press(&mut app, "jjj");
    let before = app.state.views.phases.list.selected().copied();
    assert!(before.is_some());
    press(&mut app, "s");
    assert_eq!(app.state.views.phases.list.selected().copied(), before);
    press(&mut app, "S");
    assert_eq!(app.state.views.phases.list.selected().copied(), before);
    let mut snapshot = sample::snapshot(1);
    snapshot.phases.reverse();
    snapshot.phases.retain(|row| (row.layer, row.phase) != (Layer::Driver, Phase::Preparation));
    app.update(snapshot, sample::health());
    assert_eq!(app.state.views.phases.list.selected().copied(), before);
}

#[test]
fn nothing_is_hidden_by_a_pause_before_the_first_results() {
    let mut app = App::with_theme(Theme::new(true));
    press(&mut app, " ");
    app.update(sample::snapshot(1), sample::health());
    assert!(app.state.shown.is_some());
}

#[test]
fn every_key_does_something() {
    for binding in BINDINGS {
        for &(code, modifiers) in binding.keys {
            let mut app = usual();
            screen(&mut app, 80, 24);
            // Somewhere in the middle, so that there is something on both sides.
            press(
                &mut app,
                match binding.action {
                    Action::Show(View::Phases) => "2",
                    Action::Filter => "4",
                    Action::Travel(Travel::NextSection) => "7j[[",
                    Action::Travel(Travel::Later) => "7j[[[",
                    Action::Travel(_) => "7",
                    _ => "jjjj",
                },
            );
            let before = screen(&mut app, 80, 24);
            let flow = app.on_key(KeyEvent::new(code, modifiers));
            let expected = match binding.action {
                Action::Quit | Action::Back => Flow::Quit,
                Action::Suspend => Flow::Suspend,
                Action::Write => Flow::Write,
                Action::Export => Flow::Export,
                Action::Interval(pace) => Flow::Interval(pace),
                _ => Flow::Continue,
            };
            assert_eq!(flow, expected, "{}", binding.label);
            assert!(
                flow != Flow::Continue || before.buffer() != screen(&mut app, 80, 24).buffer(),
                "{}",
                binding.label
            );
        }
    }
}

#[test]
fn escape_closes_the_overlay_first() {
    let mut app = usual();
    let escape = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);
    press(&mut app, "?");
    assert_eq!(app.on_key(escape), Flow::Continue);
    assert_eq!(app.on_key(escape), Flow::Quit);
}

#[test]
fn escape_ends_the_filter_first() {
    let mut app = usual();
    let escape = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);
    press(&mut app, "4/fc");
    let one = |app: &App| (app.state.views.functions.table.order.len(), app.state.view);
    assert_eq!(one(&app), (1, View::Functions), "letters go to the filter");
    // Backspace takes letters back, and movements are movements.
    for code in [KeyCode::Backspace, KeyCode::Backspace, KeyCode::Char('q'), KeyCode::Down] {
        assert_eq!(app.on_key(code.into()), Flow::Continue);
    }
    assert_eq!(app.state.views.functions.text, "q");
    assert_eq!(app.on_key(escape), Flow::Continue);
    assert_eq!(one(&app), (usual().state.shown.unwrap().snapshot.functions.len(), View::Functions));
    assert_eq!(app.on_key(escape), Flow::Quit);
    press(&mut app, "/");
    assert_eq!(app.on_key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Flow::Quit);
}

#[test]
fn enter_leads_from_a_phase_and_a_stack_to_their_functions() {
    for (keys, expected) in [("jjj", "CPU"), ("3j", "CPU")] {
        let mut app = usual();
        press(&mut app, keys);
        assert_eq!(app.on_key(KeyCode::Enter.into()), Flow::Continue);
        assert_eq!(app.state.view, View::Functions);
        let of = app.state.views.functions.of.unwrap();
        assert_eq!((of.pid, of.layer.name()), (1234, expected), "{keys}");
        assert_eq!(app.state.views.functions.table.order.len(), 5, "its operators");
    }
}

#[test]
fn enter_opens_a_function_and_escape_closes_it() {
    let mut app = usual();
    press(&mut app, "4");
    let list = screen(&mut app, 80, 24);
    let enter = |app: &mut App| assert_eq!(app.on_key(KeyCode::Enter.into()), Flow::Continue);
    enter(&mut app);
    let opened = screen(&mut app, 80, 24);
    assert_ne!(list.buffer(), opened.buffer());
    press(&mut app, "j");
    assert_ne!(opened.buffer(), screen(&mut app, 80, 24).buffer(), "the next function");
    press(&mut app, "k");
    assert_eq!(app.on_key(KeyCode::Esc.into()), Flow::Continue);
    assert_eq!(list.buffer(), screen(&mut app, 80, 24).buffer());
    // The filter, and the way from a phase, lead to the list.
    enter(&mut app);
    press(&mut app, "/");
    assert!(!app.state.views.functions.is_open);
    assert_eq!(app.on_key(KeyCode::Esc.into()), Flow::Continue);
    enter(&mut app);
    enter(&mut app);
    assert!(!app.state.views.functions.is_open, "again closes it");
    enter(&mut app);
    press(&mut app, "1");
    enter(&mut app);
    assert_eq!((app.state.view, app.state.views.functions.is_open), (View::Functions, false));
}

#[test]
fn threads_are_known_from_one_interval_to_the_next() {
    let mut before = sample::with_resources(sample::snapshot(1));
    let mut app = app(before.clone(), sample::health());
    // The second thread with the id of another has run since, and a new one came before all.
    let reused = before.threads.len() - 1;
    before.threads[reused].on_cpu_ns += 500;
    let first = crate::report::snapshot::ThreadRow { tid: 900, on_cpu_ns: 70, ..before.threads[0].clone() };
    before.threads.insert(0, first);
    before.window.end_ns += 1_000;
    app.update(before, sample::health());
    let added = &app.state.shown.as_ref().unwrap().added;
    let ran: Vec<_> = added.threads.iter().enumerate().filter(|(_, ns)| **ns > 0).collect();
    assert_eq!((ran, added.interval_ns), (vec![(0, &70), (reused + 1, &500)], 1_000));
}

#[test]
fn the_time_of_the_last_interval_is_what_was_added() {
    let mut app = usual();
    assert!(app.state.shown.as_ref().unwrap().added.functions.is_empty(), "nothing to compare with");
    let mut next = sample::snapshot(1);
    next.functions[3].exclusive_ns += 70;
    next.functions[1].exclusive_ns -= 1;
    let new = next.functions[3].clone();
    next.functions.push(crate::report::snapshot::FunctionRow {
        name: "new".to_owned(),
        exclusive_ns: 5,
        ..new
    });
    let mut expected = vec![0; next.functions.len()];
    (expected[3], expected[next.functions.len() - 1]) = (70, 5);
    app.update(next, sample::health());
    assert_eq!(app.state.shown.as_ref().unwrap().added.functions, expected);
    // After a pause it is that of the last interval too, and not of the pause.
    press(&mut app, " ");
    app.update(sample::snapshot(1), sample::health());
    let mut last = sample::snapshot(1);
    last.functions[3].exclusive_ns += 70;
    app.update(last, sample::health());
    press(&mut app, " ");
    assert_eq!(app.state.shown.as_ref().unwrap().added.functions.iter().sum::<u64>(), 70);
    press(&mut app, "4s");
    assert_eq!(app.state.views.functions.table.order[0], 3, "sorted by it");
}

#[test]
fn an_interval_that_was_changed_is_shown_and_a_replay_has_none() {
    let header =
        |app: &mut App| screen(app, 80, 24).to_string().lines().next().unwrap_or_default().to_owned();
    let mut app = usual();
    assert!(!header(&mut app).contains("every"));
    let with = |interval| Health { interval, ..sample::health() };
    app.update(sample::snapshot(1), with(Some(Duration::from_millis(500))));
    assert!(header(&mut app).contains(" every 500 ms "));
    app.update(sample::snapshot(1), with(None));
    press(&mut app, "+");
    assert_eq!(app.state.message.as_deref(), Some("+ does nothing here; ? lists the keys"));
}

#[test]
fn operators_come_in_front_until_a_key_is_pressed() {
    let engine = |hooked| ProbedEngine {
        engine: "engine".into(),
        about: "Engine".into(),
        version: None,
        file: "/lib/libengine.so".into(),
        functions: 2,
        hooked,
    };
    let mut app = usual();
    assert_eq!(app.state.view, View::Phases);
    let with = |hooked| {
        let mut snapshot = sample::snapshot(1);
        snapshot.source.engines.push(engine(hooked));
        snapshot
    };
    app.update(with(0), sample::health());
    assert_eq!(app.state.view, View::Phases);
    app.update(with(7), sample::health());
    assert_eq!(app.state.view, View::Functions);
    press(&mut app, "1");
    app.update(with(7), sample::health());
    assert_eq!(app.state.view, View::Phases);
}

#[test]
fn a_key_without_an_action_is_named() {
    let mut app = usual();
    let footer =
        |app: &mut App| screen(app, 80, 24).to_string().lines().last().unwrap_or_default().to_owned();
    for (keys, key) in [("x", "x"), ("2s", "s"), ("1/", "/")] {
        press(&mut app, keys);
        assert!(footer(&mut app).contains(&format!("{key} does nothing here")), "{keys}");
    }
    let control = KeyEvent::new(KeyCode::Char('s'), KeyModifiers::CONTROL);
    assert_eq!(app.on_key(control), Flow::Continue);
    assert!(footer(&mut app).contains("Ctrl-s does nothing here"));
    press(&mut app, "1");
    assert!(footer(&mut app).contains("q quit"));
}

#[test]
fn shares_of_every_line_add_up() {
    let mut app = usual();
    press(&mut app, "2");
    let text = screen(&mut app, 80, 24).to_string();
    let mut lines = 0;
    for line in text.lines().filter(|line| line.matches('%').count() == 3) {
        let tenths = |field: &str| field.trim_end_matches(['%', '"']).replace('.', "").parse::<u32>().ok();
        let sum: u32 = line.split(' ').filter(|field| field.contains('%')).filter_map(tenths).sum();
        assert_eq!(sum, 1000, "{line}");
        lines += 1;
    }
    assert!(lines >= 6, "{text}");
}

#[test]
fn the_fullest_table_is_shown_and_one_that_is_full_stands_out() {
    let line = |health: Health, width| {
        let backend = screen(&mut app(sample::snapshot(1), health), width, 24);
        let stands_out = backend.buffer()[(9, 1)].modifier.contains(Modifier::REVERSED);
        (backend.to_string().lines().nth(1).unwrap_or_default().to_owned(), stands_out)
    };
    let mut half = sample::full_table();
    half.tables[0].entries = 1_024;
    half.tables[0].turned_away = 0;
    for width in [80, 120] {
        let (text, stands_out) = line(half.clone(), width);
        assert!(text.contains("  tables 50%") && !stands_out, "{text}");
        let (text, stands_out) = line(sample::full_table(), width);
        assert!(text.contains("FULL tables, 952 turned away!") && stands_out, "{text}");
    }
}

#[test]
fn losses_stand_out_without_colours_too() {
    for colour in [true, false] {
        let mut app = App::with_theme(Theme::new(colour));
        let (snapshot, health) = sample::lossy();
        app.update(snapshot, health);
        for keys in ["1", "2", "3", "4", "5", "6", "7", "d", "?"] {
            press(&mut app, keys);
            let backend = screen(&mut app, 80, 24);
            let lost = &backend.buffer()[(2, 1)];
            assert!(lost.modifier.contains(Modifier::REVERSED));
            let coloured = backend
                .buffer()
                .content()
                .iter()
                .any(|cell| (cell.fg, cell.bg) != (Color::Reset, Color::Reset));
            assert_eq!(coloured, colour);
        }
    }
}

#[test]
fn probes_that_take_more_than_a_twentieth_are_warned_of() {
    let mut snapshot = sample::snapshot(1);
    assert_eq!(probe_share::warning(&snapshot), None, "no engine is probed");
    let inside: u64 = snapshot.phases.iter().map(|row| row.exclusive_ns).sum();
    snapshot.overhead.engine_calls = Some(1000);
    snapshot.overhead.ns_per_engine_call = Some(inside / 1000 / 25);
    assert_eq!(probe_share::warning(&snapshot), None, "four percent");
    snapshot.overhead.ns_per_engine_call = Some(inside / 1000 / 10);
    let warning = probe_share::warning(&snapshot).unwrap();
    assert!(
        warning.starts_with("the probes take about 10% of the time in sections: 1,000 calls"),
        "{warning}"
    );
    let health = Health { probe_share: probe_share::excessive(&snapshot), ..sample::health() };
    snapshot.overhead.ns_per_engine_call = None;
    assert_eq!(probe_share::warning(&snapshot), None, "not known");

    let mut app = app(snapshot, health);
    let cells = screen(&mut app, 160, 24);
    let text: String = cells.buffer().content().iter().map(ratatui::buffer::Cell::symbol).collect();
    assert!(text.contains("probes 4: 10% of the time"), "{text}");
}
