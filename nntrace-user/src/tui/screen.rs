//! Drawing: the state on the screen, and nothing about where it comes from.

mod frame;
mod overlay;

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use super::drawing::text;
use super::drawing::theme::Theme;
use super::state::State;

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
        Some(sample) => state.views.get_mut(state.view).draw(sample, theme, body, buffer),
    }
    state.shown = sample;
    frame::ended(state, theme, end, buffer);
    frame::footer(state, theme, footer, buffer);
    // Losses stay in sight.
    let above = if area.height < WITH_HEALTH { 0 } else { 2 };
    let over = Rect { y: area.y + above, height: area.height - 1 - above, ..area };
    overlay::draw(state, theme, over, buffer);
}
