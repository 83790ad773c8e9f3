//! Styles by meaning. Whatever a style says, a word, a sign or a place says too.

use nntrace_common::layer::Layer;
use ratatui::style::{Color, Modifier, Style};

use crate::report::cpu_or_cluster::CpuState;

/// The styles: ANSI colours on the terminal's own background, or no colours at all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    colour: bool,
}

impl Theme {
    /// Creates the styles, with colours or without.
    pub(crate) const fn new(colour: bool) -> Self {
        Self { colour }
    }

    /// The character and the style of a part. `known` are the cluster's frequencies, ascending: the faster, the higher.
    pub(crate) fn glyph(self, doing: CpuState, known: &[u32]) -> (char, Style) {
        const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        match doing {
            CpuState::Running(Some(khz)) => {
                let rank = known.iter().position(|&other| other >= khz).map_or(known.len(), |rank| rank + 1);
                let height = (rank * 8).div_ceil(known.len().max(1)).clamp(1, 8);
                (HEIGHTS[height - 1], self.running())
            }
            CpuState::Running(None) => ('▒', self.unknown()),
            CpuState::Idle(state) => (char::from_digit(state.min(35), 36).unwrap_or('+'), self.idle()),
            CpuState::IdleUnknown => ('~', self.unknown()),
            CpuState::Offline => ('x', self.offline()),
            CpuState::Unknown => ('?', self.unknown()),
        }
    }

    fn coloured(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    /// Headings.
    pub(crate) const fn heading() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Style of less important parts: rules, units of an axis.
    pub(crate) const fn dim() -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// The selected line, the active tab. Never a bar: reversed blocks show the opposite of what they mean.
    pub(crate) const fn selected() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The sign before a line, and the style of its text.
    pub(crate) const fn line(selected: bool) -> (char, Style) {
        if selected { ('>', Self::selected()) } else { (' ', Style::new()) }
    }

    /// Keys in the footer and the help.
    pub(crate) fn key(self) -> Style {
        self.coloured(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// Style of alerts: losses, a pause, the end.
    pub(crate) fn alert(self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD).add_modifier(Modifier::REVERSED)
    }

    /// Bars of shares and histograms.
    pub(crate) fn bar(self) -> Style {
        self.coloured(Color::Green)
    }

    /// A CPU that runs at a known frequency.
    pub(crate) fn running(self) -> Style {
        self.coloured(Color::Green)
    }

    /// Sections of a layer.
    pub(crate) fn layer(self, layer: Layer) -> Style {
        self.coloured(match layer {
            Layer::Application => Color::Blue,
            Layer::Runtime => Color::Green,
            Layer::Ipc => Color::Yellow,
            Layer::Driver => Color::Magenta,
            Layer::CpuFallback => Color::Red,
            Layer::Utility | Layer::Other => Color::Cyan,
        })
    }

    /// A CPU that is idle.
    pub(crate) fn idle(self) -> Style {
        self.coloured(Color::Cyan)
    }

    /// A CPU that is offline.
    pub(crate) fn offline(self) -> Style {
        self.coloured(Color::Magenta)
    }

    /// Style of figures that are not known, wholly or in part.
    pub(crate) fn unknown(self) -> Style {
        self.coloured(Color::Yellow)
    }
}
