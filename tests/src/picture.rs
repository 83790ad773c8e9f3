//! Pictures of a terminal's screen: SVG made of its cells.

use std::{fmt::Write as _, num::NonZero};

use anyhow::Result;
use vt100::{Cell, Color, Screen};

use crate::{tmux::Tmux, wait};

/// Size of the terminal in the project's own picture, cells.
pub const COLUMNS: u16 = 100;
/// Size of the terminal in the project's own picture, cells.
pub const ROWS: u16 = 26;

/// Picture in the documentation, of a view of the terminal interface on the example network.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Name of the file.
    pub file: &'static str,
    /// Keys that lead to it, by tmux's names.
    pub keys: &'static [&'static str],
    /// Text of the line under the tabs, which is the interface's own.
    pub head: &'static str,
    /// Description of the picture, for those who do not see it.
    pub title: &'static str,
}

/// The pictures, in an order in which the keys of each lead on from the one before.
pub const VIEWS: [View; 6] = [
    View { file: "screen.svg", keys: &["1"], head: "layer", title: "Time by layer and phase" },
    View { file: "screen-cpus.svg", keys: &["2"], head: "unit", title: "States of CPUs and clusters" },
    View { file: "screen-functions.svg", keys: &["4"], head: "excl", title: "Time by function" },
    View {
        file: "screen-function.svg",
        keys: &["Enter"],
        head: "Esc: back to the list",
        title: "A function: its distribution, its slowest calls, its threads",
    },
    View { file: "screen-threads.svg", keys: &["5"], head: "runnable", title: "States of threads" },
    View {
        file: "screen-timeline.svg",
        keys: &["7", "j", "i", "i", "[", "[", "["],
        head: "thread",
        title: "Sections of threads over time",
    },
];

impl View {
    /// Leads the interface in a terminal to this view, and returns the screen once all of it is drawn.
    ///
    /// # Errors
    /// When tmux fails, or the view does not come.
    pub fn show(&self, terminal: &Tmux) -> Result<Screen> {
        self.keys.iter().try_for_each(|key| terminal.key(key))?;
        let mut before = None;
        wait::until(self.title, || {
            let screen = current(terminal)?;
            let text = screen.contents();
            let is_on = text.lines().nth(HEAD).is_some_and(|line| line.contains(self.head));
            // Half of a screen that is being drawn does not stay as it is.
            let is_still = before.replace(text.clone()) == Some(text);
            Ok((is_on && is_still).then_some(screen))
        })
    }
}

/// Returns the screen of a terminal of the pictures' size as it is now.
///
/// # Errors
/// When tmux fails.
pub fn current(terminal: &Tmux) -> Result<Screen> {
    Ok(screen(terminal.coloured_screen()?.as_bytes(), ROWS, COLUMNS))
}

/// Line under the tabs, from 0.
const HEAD: usize = 3;

/// Arguments of the profiler, before `--`, and of the example network, with which the pictures are taken.
pub const ARGUMENTS: [&str; 2] = ["--interval 500ms --level sched", "--quiet --seconds"];

/// Width of a cell, pixels.
const WIDTH: u16 = 9;
/// Height of a cell, pixels.
const HEIGHT: u16 = 19;
/// Distance from the top of a cell to the base line of its text, pixels.
const BASE: u16 = 14;
/// Margin around the screen, pixels.
const MARGIN: u16 = 12;
/// Colours of the terminal where a cell has none of its own.
const FOREGROUND: &str = "#d8dee9";
const BACKGROUND: &str = "#1b1f27";
/// The sixteen colours of a terminal, in their order.
const COLOURS: [&str; 16] = [
    "#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee9", "#7f8796",
    "#ff8a93", "#b5e890", "#ffd98a", "#8cc8ff", "#e2a0f5", "#7fdbe6", "#ffffff",
];

/// Look of a run of cells.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Style {
    foreground: String,
    background: Option<String>,
    is_bold: bool,
    is_dim: bool,
}

impl Style {
    fn of(cell: &Cell) -> Self {
        let (mut foreground, mut background) = (colour(cell.fgcolor()), colour(cell.bgcolor()));
        if cell.inverse() {
            let before = foreground.take();
            foreground = Some(background.take().unwrap_or_else(|| BACKGROUND.into()));
            background = Some(before.unwrap_or_else(|| FOREGROUND.into()));
        }
        Self {
            foreground: foreground.unwrap_or_else(|| FOREGROUND.into()),
            background,
            is_bold: cell.bold(),
            is_dim: cell.dim(),
        }
    }
}

/// A colour as SVG has it; `None` for the terminal's own.
fn colour(colour: Color) -> Option<String> {
    match colour {
        Color::Default => None,
        Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
        Color::Idx(index @ 0..16) => Some(COLOURS[usize::from(index)].into()),
        // The cube of 6 x 6 x 6 colours, and the ramp of greys of xterm.
        Color::Idx(index @ 16..232) => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let index = index - 16;
            let (red, green, blue) = (level(index / 36), level(index / 6 % 6), level(index % 6));
            Some(format!("#{red:02x}{green:02x}{blue:02x}"))
        }
        Color::Idx(index) => {
            let grey = 8 + 10 * (index - 232);
            Some(format!("#{grey:02x}{grey:02x}{grey:02x}"))
        }
    }
}

/// The screen of a program that printed `bytes` on a terminal of this size.
#[must_use]
pub fn screen(bytes: &[u8], rows: u16, columns: u16) -> Screen {
    let size = |cells| NonZero::new(cells).unwrap_or(NonZero::<u16>::MIN);
    let mut parser = vt100::Parser::new(size(rows), size(columns), 0);
    parser.process(bytes);
    parser.screen().clone()
}

/// A screen as SVG, complete in itself; `title` is read out to who cannot see it.
#[must_use]
pub fn svg(screen: &Screen, title: &str) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let (width, height) = (columns * WIDTH + 2 * MARGIN, rows * HEIGHT + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\">\n<title>{}</title>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n\
         <g font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"15\">\n",
        escaped(title)
    );
    for row in 0..rows {
        let mut column = 0;
        while column < columns {
            let first = column;
            let style = screen.cell(row, column).map(Style::of);
            let mut text = String::new();
            while column < columns && screen.cell(row, column).map(Style::of) == style {
                let contents = screen.cell(row, column).map(Cell::contents).filter(|text| !text.is_empty());
                text += contents.unwrap_or(" ");
                column += 1;
            }
            if let Some(style) = style {
                run(&mut svg, (row, first, column - first), &text, &style);
            }
        }
    }
    svg + "</g>\n</svg>\n"
}

/// Adds the cells of one row that look alike: row, column, and how many.
fn run(svg: &mut String, (row, column, cells): (u16, u16, u16), text: &str, style: &Style) {
    let (x, y, width) = (MARGIN + column * WIDTH, MARGIN + row * HEIGHT, cells * WIDTH);
    if let Some(background) = &style.background {
        let _ =
            writeln!(svg, r#"<rect x="{x}" y="{y}" width="{width}" height="{HEIGHT}" fill="{background}"/>"#);
    }
    let bold = if style.is_bold { r#" font-weight="bold""# } else { "" };
    let dim = if style.is_dim { r#" opacity="0.6""# } else { "" };
    for (place, words) in words(text) {
        // The font of who looks may be wider or narrower than our cells.
        let length = words.chars().count() as u16 * WIDTH;
        let _ = writeln!(
            svg,
            r#"<text x="{}" y="{}" fill="{}" textLength="{length}"{bold}{dim}>{}</text>"#,
            x + place * WIDTH,
            y + BASE,
            style.foreground,
            escaped(words)
        );
    }
}

/// Returns the parts of a text that have single blanks only, each with its first column. Browsers differ in whether they keep more
/// than one.
fn words(text: &str) -> impl Iterator<Item = (u16, &str)> {
    let mut next = 0;
    text.split("  ").filter_map(move |part| {
        let begin = next + (part.len() - part.trim_start().len());
        next += part.chars().count() + 2;
        let words = part.trim();
        (!words.is_empty()).then_some((begin as u16, words))
    })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_look_alike_are_one_text_in_their_place() {
        let screen = screen(b"a<b \x1b[1;32mgreen\x1b[0m\r\n\x1b[7mbar \x1b[0m", 2, 12);
        let svg = svg(&screen, "two & two");
        assert!(svg.contains("<title>two &amp; two</title>"), "{svg}");
        assert!(
            svg.contains(r##"<text x="12" y="26" fill="#d8dee9" textLength="27">a&lt;b</text>"##),
            "{svg}"
        );
        let green = r##"<text x="48" y="26" fill="#98c379" textLength="45" font-weight="bold">green</text>"##;
        assert!(svg.contains(green), "{svg}");
        assert!(svg.contains(r##"<rect x="12" y="31" width="36" height="19" fill="#d8dee9"/>"##), "{svg}");
        assert!(svg.contains(r##"<text x="12" y="45" fill="#1b1f27" textLength="27">bar</text>"##), "{svg}");
    }

    #[test]
    fn no_text_has_two_blanks_in_a_row() {
        let of = |text| words(text).collect::<Vec<_>>();
        assert_eq!(of(" a b   c  d "), [(1, "a b"), (7, "c"), (10, "d")]);
        assert_eq!(of("│     │"), [(0, "│"), (6, "│")]);
        assert_eq!(of("    "), []);
    }

    #[test]
    fn numbered_colours_are_those_of_a_terminal() {
        assert_eq!(colour(Color::Idx(9)).as_deref(), Some("#ff8a93"));
        assert_eq!(colour(Color::Idx(16)).as_deref(), Some("#000000"));
        assert_eq!(colour(Color::Idx(208)).as_deref(), Some("#ff8700"));
        assert_eq!(colour(Color::Idx(255)).as_deref(), Some("#eeeeee"));
        assert_eq!(colour(Color::Default), None);
    }
}
