//! The section at the cursor: its time, what is around it, and what its thread did meanwhile.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::{axis, find};
use crate::model::scheduling::Activity;
use crate::report::number_format::duration_ns;
use crate::report::snapshot::{RecentActivity, RecentSectionRow, RecentThread};
use crate::tui::drawing::text::{left, put, rule};
use crate::tui::sample::Sample;
use crate::tui::views::timeline::Timeline;

/// Decimals of a second in times.
const DECIMALS: usize = 6;

/// Draws the section at the cursor, or what keys do where there is none.
pub(super) fn draw(
    state: &Timeline,
    sample: &Sample,
    recent: &RecentActivity,
    area: Rect,
    buffer: &mut Buffer,
) {
    let columns = usize::from(area.width);
    let width = duration_ns(state.shown(recent).length / state.columns.max(1) as u64);
    let note = format!("{width} per column");
    let thread = state.threads.selected().and_then(|key| find(recent, *key));
    let (title, lines) = match (state.cursor, thread.zip(state.picked(recent))) {
        (None, _) => ("no cursor".to_owned(), how_to_begin()),
        (Some(at), None) => {
            let at = axis::seconds(at.saturating_sub(sample.snapshot.window.begin_ns), DECIMALS);
            (format!("at {at}"), vec!["no marked section on the selected thread here".to_owned()])
        }
        (Some(_), Some((thread, section))) => {
            let title = format!("{} {}", section.tag, recent.name(section));
            (title, lines(thread, section, sample, recent))
        }
    };
    put(buffer, area, 0, &rule(&title, &note, columns));
    for (row, line) in lines.iter().enumerate() {
        put(buffer, area, row + 1, &Line::from(format!(" {}", left(line, columns.saturating_sub(1)))));
    }
}

fn how_to_begin() -> Vec<String> {
    vec![
        "Left Right [ ]: place a cursor and stop following; Esc: follow the run".to_owned(),
        "A R I D C U O: application, runtime, IPC, driver, CPU fallback, utility, other".to_owned(),
    ]
}

fn lines(
    thread: &RecentThread,
    section: &RecentSectionRow,
    sample: &Sample,
    recent: &RecentActivity,
) -> Vec<String> {
    let began = section.begin_ns.saturating_sub(sample.snapshot.window.begin_ns);
    let length = duration_ns(section.end_ns.saturating_sub(section.begin_ns));
    let took = match section.exclusive_ns {
        Some(exclusive) => {
            format!("took {length}, {} outside nested sections", duration_ns(exclusive))
        }
        None => format!("open for {length}"),
    };
    let mut lines = vec![format!("began at {}, {took}; Enter: its function", axis::seconds(began, DECIMALS))];
    let around = around(thread, section, recent);
    lines.push(if around.is_empty() { "outermost section".to_owned() } else { format!("in {around}") });
    lines.extend(states(thread, section));
    lines
}

/// Names of the sections around one, from the outermost in.
fn around(thread: &RecentThread, section: &RecentSectionRow, recent: &RecentActivity) -> String {
    let holds = |outer: &&RecentSectionRow| {
        outer.depth < section.depth && outer.begin_ns <= section.begin_ns && section.end_ns <= outer.end_ns
    };
    let names: Vec<&str> = thread.sections.iter().filter(holds).map(|outer| recent.name(outer)).collect();
    names.join(" > ")
}

/// Times of the thread's states in a section; `None` where context switches are not traced.
fn states(thread: &RecentThread, section: &RecentSectionRow) -> Option<String> {
    if thread.states.is_empty() {
        return None;
    }
    let (mut on_cpu, mut runnable, mut asleep) = (0, 0, 0);
    for state in &thread.states {
        let (begin, end) = (state.begin_ns.max(section.begin_ns), state.end_ns.min(section.end_ns));
        let ns = end.saturating_sub(begin);
        match state.activity {
            Activity::OnCpu(_) => on_cpu += ns,
            Activity::Runnable => runnable += ns,
            Activity::Asleep => asleep += ns,
            Activity::Unknown => {}
        }
    }
    let whole = section.end_ns.saturating_sub(section.begin_ns);
    let times = [
        ("on a CPU", on_cpu),
        ("runnable", runnable),
        ("asleep", asleep),
        ("unknown", whole.saturating_sub(on_cpu + runnable + asleep)),
    ];
    let parts =
        times.iter().filter(|(_, ns)| *ns > 0).map(|(name, ns)| format!("{name} {}", duration_ns(*ns)));
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| format!("thread: {}", parts.join(", ")))
}
