//! The keys: one table that dispatch, footer and help overlay read, so that they cannot disagree.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::actions::{Action, Motion, Overlay, Travel};
use super::pace::Pace;
use super::view_list::View;

/// A line of the key table.
#[derive(Debug)]
pub(crate) struct Binding {
    /// The keys that do it; Ctrl is the only modifier that counts.
    pub keys: &'static [(KeyCode, KeyModifiers)],
    /// How the help names the keys.
    pub label: &'static str,
    /// Action of the keys.
    pub action: Action,
    /// Description for the help overlay; empty where that of another line is about these keys too.
    pub help: &'static str,
    /// Hint of a word or two for the footer; `None` keeps them out of it.
    pub hint: Option<&'static str>,
}

const PLAIN: KeyModifiers = KeyModifiers::NONE;

/// Shorthand for a line of [`BINDINGS`].
const fn bind(
    keys: &'static [(KeyCode, KeyModifiers)],
    label: &'static str,
    action: Action,
    help: &'static str,
    hint: Option<&'static str>,
) -> Binding {
    Binding { keys, label, action, help, hint }
}

/// Every key that does something. The footer shows as many hints as fit, in this order.
pub(crate) const BINDINGS: &[Binding] = &[
    bind(
        &[(KeyCode::Char('q'), PLAIN), (KeyCode::Char('c'), KeyModifiers::CONTROL)],
        "q Ctrl-C",
        Action::Quit,
        "quit",
        Some("quit"),
    ),
    bind(
        &[(KeyCode::Char('?'), PLAIN), (KeyCode::Char('h'), PLAIN)],
        "? h",
        Action::Toggle(Overlay::Help),
        "this help",
        Some("help"),
    ),
    bind(&[(KeyCode::Tab, PLAIN)], "Tab", Action::NextView, "next view", Some("next view")),
    bind(&[(KeyCode::Enter, PLAIN)], "Enter", Action::Open, "open this line", Some("open")),
    bind(
        &[(KeyCode::Left, PLAIN)],
        "Left",
        Action::Travel(Travel::Earlier),
        "cursor in time; also Right",
        Some("cursor"),
    ),
    bind(&[(KeyCode::Right, PLAIN)], "Right", Action::Travel(Travel::Later), "", None),
    bind(
        &[(KeyCode::Char('['), PLAIN)],
        "[ ]",
        Action::Travel(Travel::PreviousSection),
        "previous, next section",
        Some("section"),
    ),
    bind(&[(KeyCode::Char(']'), PLAIN)], "]", Action::Travel(Travel::NextSection), "", None),
    bind(&[(KeyCode::Char('i'), PLAIN)], "i o", Action::Travel(Travel::ZoomIn), "zoom in, out", Some("zoom")),
    bind(&[(KeyCode::Char('o'), PLAIN)], "o", Action::Travel(Travel::ZoomOut), "", None),
    bind(&[(KeyCode::Char('/'), PLAIN)], "/", Action::Filter, "filter functions by name", Some("filter")),
    bind(&[(KeyCode::Char(' '), PLAIN)], "Space", Action::Pause, "pause or resume", Some("pause")),
    bind(&[(KeyCode::Char('s'), PLAIN)], "s", Action::NextSort, "sort by the next column", Some("sort")),
    bind(&[(KeyCode::Char('S'), PLAIN)], "S", Action::ReverseSort, "reverse the order", Some("reverse")),
    bind(
        &[(KeyCode::Char('d'), PLAIN)],
        "d",
        Action::Toggle(Overlay::Diagnostics),
        "notes and diagnostics",
        Some("diagnostics"),
    ),
    bind(&[(KeyCode::BackTab, PLAIN)], "Shift-Tab", Action::PreviousView, "previous view", None),
    // The digits themselves are dispatched by the list of views.
    bind(&[], "1 2 ..", Action::Show(View::ALL[0]), "select a view", None),
    bind(
        &[(KeyCode::Up, PLAIN), (KeyCode::Char('k'), PLAIN)],
        "Up Down",
        Action::Move(Motion::Up),
        "a line up, down; also k j",
        None,
    ),
    bind(
        &[(KeyCode::Down, PLAIN), (KeyCode::Char('j'), PLAIN)],
        "Down",
        Action::Move(Motion::Down),
        "",
        None,
    ),
    bind(&[(KeyCode::PageUp, PLAIN)], "PgUp PgDn", Action::Move(Motion::PageUp), "a page up, down", None),
    bind(&[(KeyCode::PageDown, PLAIN)], "PgDn", Action::Move(Motion::PageDown), "", None),
    bind(
        &[(KeyCode::Char('g'), PLAIN), (KeyCode::Home, PLAIN)],
        "g G",
        Action::Move(Motion::First),
        "first line, last line",
        None,
    ),
    bind(&[(KeyCode::Char('G'), PLAIN), (KeyCode::End, PLAIN)], "G", Action::Move(Motion::Last), "", None),
    bind(
        &[(KeyCode::Char('+'), PLAIN)],
        "+ -",
        Action::Interval(Pace::Slower),
        "longer, shorter interval",
        None,
    ),
    bind(&[(KeyCode::Char('-'), PLAIN)], "-", Action::Interval(Pace::Faster), "", None),
    bind(&[(KeyCode::Char('e'), PLAIN)], "e", Action::Export, "write what is shown as JSON", None),
    bind(&[(KeyCode::Char('w'), PLAIN)], "w", Action::Write, "write what --flight keeps", None),
    bind(
        &[(KeyCode::Char('z'), KeyModifiers::CONTROL)],
        "Ctrl-Z",
        Action::Suspend,
        "stop; fg continues",
        None,
    ),
    bind(&[(KeyCode::Esc, PLAIN)], "Esc", Action::Back, "close, clear, or quit", None),
];

/// Action of `event`; `None` for a key without one, and for releases.
#[must_use]
pub(crate) fn action(event: KeyEvent) -> Option<Action> {
    if event.kind == KeyEventKind::Release || event.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    // Terminals differ in whether `G` and Shift-Tab carry SHIFT: the code alone tells.
    let key = (event.code, event.modifiers & KeyModifiers::CONTROL);
    if let (KeyCode::Char(digit @ '1'..='9'), PLAIN) = key {
        let place = digit as usize - '1' as usize;
        return View::ALL.get(place).map(|&view| Action::Show(view));
    }
    BINDINGS.iter().find(|binding| binding.keys.contains(&key)).map(|binding| binding.action)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_key_in_the_table_is_dispatched_to_its_action() {
        let mut seen = HashSet::new();
        for binding in BINDINGS {
            for &(code, modifiers) in binding.keys {
                assert!(seen.insert((code, modifiers)), "{code:?} is bound twice");
                assert_eq!(action(KeyEvent::new(code, modifiers)), Some(binding.action));
            }
        }
    }

    #[test]
    fn shift_does_not_matter_and_control_does() {
        let shifted = KeyEvent::new(KeyCode::Char('G'), KeyModifiers::SHIFT);
        assert_eq!(action(shifted), Some(Action::Move(Motion::Last)));
        let back = KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT);
        assert_eq!(action(back), Some(Action::PreviousView));
        assert_eq!(action(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::CONTROL)), None);
        assert_eq!(action(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::NONE)), None);
        assert_eq!(action(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT)), None);
    }

    #[test]
    fn releases_are_not_presses() {
        let mut event = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
        event.kind = KeyEventKind::Release;
        assert_eq!(action(event), None);
    }
}
