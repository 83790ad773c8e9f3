//! The timeline view: its looks, its cursor, and its zoom.

use ratatui::crossterm::event::KeyCode;

use super::{app, press, sample, screen};
use crate::report::snapshot::RecentSectionRow;
use crate::tui::{App, Flow, Health, View};

const MS: u64 = 1_000_000;

fn timeline(with_states: bool) -> App {
    let snapshot = sample::with_resources(sample::snapshot(1));
    let mut app = app(sample::with_recent(snapshot, with_states), sample::health());
    press(&mut app, "7");
    app
}

fn key(app: &mut App, code: KeyCode) {
    assert_eq!(app.on_key(code.into()), Flow::Continue);
}

/// Name, begin and end (ms before the end of the window) of the section at the cursor.
fn picked(app: &App) -> Option<(String, u64, u64)> {
    let recent = app.state.shown.as_ref()?.snapshot.recent.as_deref()?;
    let section: &RecentSectionRow = app.state.views.timeline.picked(recent)?;
    let before = |at: u64| (recent.until_ns - at) / MS;
    Some((recent.name(section).to_owned(), before(section.begin_ns), before(section.end_ns)))
}

/// The first and the last instant on the screen, ms before the end of the window.
fn on_screen(app: &App) -> (u64, u64) {
    let recent = app.state.shown.as_ref().unwrap().snapshot.recent.as_deref().unwrap();
    let shown = app.state.views.timeline.shown(recent);
    ((recent.until_ns - shown.begin) / MS, (recent.until_ns - shown.end()) / MS)
}

#[test]
fn lanes() {
    for (width, height) in [(60, 15), (80, 24), (120, 40), (200, 50)] {
        let mut app = timeline(true);
        press(&mut app, "j");
        insta::assert_snapshot!(format!("timeline_{width}x{height}"), screen(&mut app, width, height));
    }
}

#[test]
fn lanes_of_sections_alone_and_a_cursor() {
    let mut app = timeline(false);
    press(&mut app, "jiii");
    screen(&mut app, 120, 40);
    press(&mut app, "[[[[");
    insta::assert_snapshot!(screen(&mut app, 120, 20));
}

#[test]
fn nothing_happened_yet() {
    let mut empty = app(sample::snapshot(1), sample::health());
    press(&mut empty, "7");
    insta::assert_snapshot!(screen(&mut empty, 80, 24));
    for code in [KeyCode::Left, KeyCode::Enter, KeyCode::Down] {
        key(&mut empty, code);
    }
    screen(&mut empty, 80, 24);
}

#[test]
fn the_cursor_goes_from_section_to_section_and_picks_the_innermost() {
    let mut app = timeline(false);
    press(&mut app, "j");
    screen(&mut app, 120, 40);
    assert_eq!(picked(&app), None);
    key(&mut app, KeyCode::Char('['));
    assert_eq!(picked(&app), Some(("run".into(), 20, 0)), "it has not ended");
    press(&mut app, "[");
    assert_eq!(picked(&app), Some(("Softmax head/probabilities".into(), 55, 54)));
    press(&mut app, "[[");
    assert_eq!(picked(&app), Some(("Conv2D block1/conv1".into(), 88, 70)));
    press(&mut app, "]");
    assert_eq!(picked(&app), Some(("MatMul head/fc".into(), 70, 55)));
    // A column is 22 ms at 90 columns for two seconds.
    key(&mut app, KeyCode::Right);
    assert_eq!(picked(&app), Some(("model".into(), 90, 30)));
    press(&mut app, "]]]]]]");
    assert_eq!(picked(&app), Some(("run".into(), 20, 0)), "the last one");
    key(&mut app, KeyCode::Esc);
    assert_eq!((picked(&app), app.state.view), (None, View::Timeline));
    assert_eq!(app.on_key(KeyCode::Esc.into()), Flow::Quit);
}

#[test]
fn the_screen_follows_the_run_unless_there_is_a_cursor() {
    let mut app = timeline(false);
    screen(&mut app, 120, 40);
    let longer = |ms: u64| {
        let mut snapshot = sample::with_recent(sample::snapshot(1), false);
        snapshot.recent.as_mut().unwrap().until_ns += ms * MS;
        snapshot
    };
    assert_eq!(on_screen(&app), (2_000, 0));
    app.update(longer(700), sample::health());
    assert_eq!(on_screen(&app), (2_000, 0));
    key(&mut app, KeyCode::Left);
    app.update(longer(1_000), sample::health());
    assert_eq!(on_screen(&app), (2_300, 300));
    // Beyond an edge, the screen goes along.
    for _ in 0..100 {
        key(&mut app, KeyCode::Right);
    }
    assert_eq!(on_screen(&app), (2_000, 0));
    for _ in 0..400 {
        key(&mut app, KeyCode::Left);
    }
    let (first, last) = on_screen(&app);
    assert!(first - last == 2_000 && first >= 2_500, "{first} {last}");
    key(&mut app, KeyCode::Esc);
    assert_eq!(on_screen(&app), (2_000, 0));
}

#[test]
fn a_zoom_keeps_the_cursor_in_its_place() {
    let mut app = timeline(false);
    screen(&mut app, 120, 40);
    press(&mut app, "i");
    assert_eq!(on_screen(&app), (1_000, 0), "with no cursor the end stays");
    press(&mut app, "o");
    press(&mut app, "j[[[[[[");
    screen(&mut app, 120, 40);
    let place = |app: &App| {
        let recent = app.state.shown.as_ref().unwrap().snapshot.recent.as_deref().unwrap();
        let shown = app.state.views.timeline.shown(recent);
        (app.state.views.timeline.cursor.unwrap() - shown.begin) as f64 / shown.length as f64
    };
    let before = place(&app);
    press(&mut app, "iiiii");
    assert!((place(&app) - before).abs() < 1e-3, "{before} {}", place(&app));
    let (first, last) = on_screen(&app);
    assert!((62..=63).contains(&(first - last)), "{first} {last}");
    // Neither end is passed.
    press(&mut app, &"i".repeat(40));
    screen(&mut app, 120, 40);
    press(&mut app, &"o".repeat(70));
    screen(&mut app, 120, 40);
    assert_eq!(picked(&app).unwrap().0, "run");
}

#[test]
fn enter_leads_to_the_function_of_the_section() {
    let mut app = timeline(true);
    press(&mut app, "j[[[[");
    assert_eq!(picked(&app).unwrap().0, "Conv2D block1/conv1");
    key(&mut app, KeyCode::Enter);
    let functions = &app.state.views.functions;
    let row = functions.table.selected().unwrap();
    assert_eq!((app.state.view, functions.is_open), (View::Functions, true));
    assert_eq!(app.state.shown.as_ref().unwrap().snapshot.functions[row].name, "Conv2D block1/conv1");
    // One without a row leads to the list.
    press(&mut app, "7[");
    assert_eq!(picked(&app).unwrap().0, "model");
    key(&mut app, KeyCode::Enter);
    assert_eq!((app.state.view, app.state.views.functions.is_open), (View::Functions, false));
}

#[test]
fn a_run_that_has_ended_is_shown_as_far_as_it_is_kept() {
    let ended = Health { ended: Some("over".into()), ..sample::health() };
    let mut app = app(sample::with_recent(sample::snapshot(1), true), ended);
    press(&mut app, "7");
    screen(&mut app, 80, 24);
    assert_eq!(on_screen(&app), (1_500, 0));
}
