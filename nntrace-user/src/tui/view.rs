//! Drawing: the state on the screen, and nothing about where it comes from.

mod chart;
mod concurrency;
mod cpu_details;
mod cpus;
mod device_usage;
mod energy;
mod frame;
mod function;
mod functions;
mod open_sections;
mod overlay;
mod phases;
mod rails;
mod stacks;
mod text;
mod theme;
mod threads;
mod timeline;

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

pub(crate) use self::theme::Theme;

use crate::report::snapshot::{MarksSeen, Snapshot, SourceKind};
use crate::tui::state::{State, View};

/// Height from which on overlays leave the first two lines free.
const WITH_HEALTH: u16 = 20;
/// Below this nothing would be readable.
const LEAST: (u16, u16) = (60, 15);

/// Draws everything into `area`.
pub(crate) fn draw(state: &mut State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let sizes = format!("need {}x{}, have {}x{}", LEAST.0, LEAST.1, area.width, area.height);
        let whole = format!("terminal too small ({sizes})");
        let line = if text::width(&whole) <= usize::from(area.width) { whole } else { sizes };
        text::put(buffer, area, usize::from(area.height) / 2, &Line::from(line));
        return;
    }
    let ended = u16::from(state.ended().is_some());
    let [header, health, tabs, body, end, footer] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(ended),
        Constraint::Length(1),
    ])
    .areas(area);
    frame::header(state, theme, header, buffer);
    frame::health(state, theme, health, buffer);
    frame::tabs(state, theme, tabs, buffer);
    // Taken out for the time of drawing: views read the sample and move their lists at once.
    let sample = state.shown.take();
    match &sample {
        None => text::say(buffer, body, "waiting for the first results..."),
        Some(sample) => match state.view {
            View::Phases => phases::draw(&mut state.phases, sample, theme, body, buffer),
            View::Cpus => cpus::draw(&mut state.cpus, sample, theme, body, buffer),
            View::Stacks => stacks::draw(&mut state.stacks, sample, theme, body, buffer),
            View::Functions => functions::draw(&mut state.functions, sample, theme, body, buffer),
            View::Threads => threads::draw(&mut state.threads, sample, theme, body, buffer),
            View::Energy => energy::draw(&mut state.energy, sample, theme, body, buffer),
            View::Timeline => timeline::draw(&mut state.timeline, sample, theme, body, buffer),
        },
    }
    state.shown = sample;
    frame::ended(state, theme, end, buffer);
    frame::footer(state, theme, footer, buffer);
    // Losses stay in sight.
    let above = if area.height < WITH_HEALTH { 0 } else { 2 };
    let over = Rect { y: area.y + above, height: area.height - 1 - above, ..area };
    overlay::draw(state, theme, over, buffer);
}

/// Text in the place of an empty table of marks.
fn no_marks(snapshot: &Snapshot, ended: bool) -> &'static str {
    if snapshot.source.marks == MarksSeen::None {
        "marks are not traced: started with --marks none"
    } else if ended {
        "no marks were seen; d shows notes that may say why"
    } else {
        "waiting for marks..."
    }
}

/// Text in the place of what only context switches show.
fn no_context_switches(snapshot: &Snapshot) -> &'static str {
    let is_traced = snapshot.usage.is_some();
    if is_traced && snapshot.source.kind == SourceKind::Live {
        "waiting for context switches..."
    } else if is_traced {
        "no traced process has context switches in this input"
    } else if snapshot.source.kind == SourceKind::Live {
        "context switches are not traced: start with --level sched"
    } else {
        "this input has no context switches; a run records them with --level sched"
    }
}

/// The name of a thread, where it is known, with its id.
fn thread_name(snapshot: &Snapshot, pid: u32, tid: u32) -> String {
    match snapshot.threads.iter().rev().find(|thread| (thread.pid, thread.tid) == (pid, tid)) {
        Some(thread) => format!("{} ({tid})", thread.comm),
        None => format!("thread {tid}"),
    }
}

/// The name of a process: `vision_app (1234)`, or what of it is known.
fn process_name(snapshot: &Snapshot, pid: u32) -> String {
    match snapshot.phases.iter().find(|row| row.pid == pid).map(|row| row.comm.as_str()) {
        None | Some("") => format!("pid {pid}"),
        Some(comm) => format!("{comm} ({pid})"),
    }
}
