//! Text in a given number of columns, [clean].

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::theme::Theme;
use crate::report::terminal_text::clean;

/// Tenths of a percent as `12.3%`: always with its decimal, so that a column adds up.
pub(crate) fn percent_of_tenths(tenths: u64) -> String {
    format!("{}.{}%", tenths / 10, tenths % 10)
}

/// How many columns `text` takes.
pub(crate) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// The longest beginning of `characters` that fits into `columns`, and its width.
fn take(characters: impl Iterator<Item = char>, columns: usize) -> (String, usize) {
    let (mut taken, mut used) = (String::new(), 0);
    for character in characters {
        let wide = width(character.encode_utf8(&mut [0; 4]));
        if used + wide > columns {
            break;
        }
        taken.push(character);
        used += wide;
    }
    (taken, used)
}

fn cut(text: &str, columns: usize) -> (String, usize) {
    let text = clean(text);
    let whole = take(text.chars(), usize::MAX);
    if whole.1 <= columns || columns == 0 {
        return if columns == 0 { (String::new(), 0) } else { whole };
    }
    let (mut taken, used) = take(text.chars(), columns - 1);
    taken.push('…');
    (taken, used + 1)
}

/// `text` in exactly `columns`, on the left; what is too long ends in `…`.
pub(crate) fn left(text: &str, columns: usize) -> String {
    let (mut text, used) = cut(text, columns);
    text.extend(std::iter::repeat_n(' ', columns - used));
    text
}

/// `text` in exactly `columns`, on the right.
pub(crate) fn right(text: &str, columns: usize) -> String {
    let (text, used) = cut(text, columns);
    " ".repeat(columns - used) + &text
}

/// `text` in at most `columns`; what is too long begins with `…`, because its end tells more.
pub(crate) fn tail(text: &str, columns: usize) -> String {
    let text = clean(text);
    let whole = take(text.chars(), usize::MAX);
    if whole.1 <= columns {
        return whole.0;
    }
    if columns == 0 {
        return String::new();
    }
    let (reversed, _) = take(text.chars().rev(), columns - 1);
    std::iter::once('…').chain(reversed.chars().rev()).collect()
}

/// `text` in lines of at most `columns`, broken between words, or within one that is too long for a line.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    // Not at hard spaces: those are there to keep things together.
    for word in text.split([' ', '\t', '\n']).filter(|word| !word.is_empty()).map(clean) {
        if !line.is_empty() && width(&line) + 1 + width(&word) > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
        while width(&line) > columns {
            let (head, _) = take(line.chars(), columns);
            // A character that is wider than the line would never fit.
            if head.is_empty() {
                break;
            }
            line.drain(..head.len());
            lines.push(head);
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// A bar of `columns` for `share` of 1, to an eighth of a column; something is never nothing.
pub(crate) fn bar(share: f64, columns: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let most = columns * 8;
    #[allow(clippy::cast_sign_loss, reason = "clamped to what is not negative")]
    let eighths =
        ((share.clamp(0.0, 1.0) * most as f64).round() as usize).max(usize::from(share > 0.0)).min(most);
    left(&("█".repeat(eighths / 8) + EIGHTHS[eighths % 8]), columns)
}

/// A heading in a line: `── title ─────── note ──`.
pub(crate) fn rule(title: &str, note: &str, columns: usize) -> Line<'static> {
    let dashes = |count: usize| Span::styled("─".repeat(count), Theme::dim());
    let note = if note.is_empty() { String::new() } else { format!(" {note} ") };
    let (note, note_width) = cut(&note, columns.saturating_sub(8));
    let end = if note_width > 0 { 2 } else { 0 };
    let (title, used) = cut(title, columns.saturating_sub(note_width + end + 5));
    let middle = columns.saturating_sub(2 + 1 + used + 1 + note_width + end);
    Line::from(vec![
        dashes(2),
        Span::styled(format!(" {title} "), Theme::heading()),
        dashes(middle),
        Span::raw(note),
        dashes(end),
    ])
}

/// Puts `line` into row `row` of `area`, clean; nothing when there is no such row. Whatever is drawn goes through here.
pub(crate) fn put(buffer: &mut Buffer, area: Rect, row: usize, line: &Line<'_>) {
    if let Some(y) = u16::try_from(row).ok().filter(|&row| row < area.height) {
        let span = |span: &Span<'_>| Span::styled(clean(&span.content).into_owned(), span.style);
        let line = Line { spans: line.iter().map(span).collect(), ..*line };
        buffer.set_line(area.x, area.y + y, &line, area.width);
    }
}

/// All of `area` but its first row.
pub(crate) fn below_first(area: Rect) -> Rect {
    let first = area.height.min(1);
    Rect { y: area.y + first, height: area.height - first, ..area }
}

/// Puts as many of `lines` as fit into `area`; the last row says how many do not.
pub(crate) fn list(buffer: &mut Buffer, area: Rect, lines: &[String]) {
    let room = usize::from(area.height);
    let shown = if lines.len() > room { room.saturating_sub(1) } else { lines.len() };
    for (row, line) in lines.iter().take(shown).enumerate() {
        put(buffer, area, row, &Line::from(left(line, usize::from(area.width))));
    }
    if shown < lines.len() {
        let more = format!("  … {} more", lines.len() - shown);
        put(buffer, area, shown, &Line::styled(more, Theme::dim()));
    }
}

/// Says `text` in the middle of `area`, for when there is nothing else to show.
pub(crate) fn say(buffer: &mut Buffer, area: Rect, text: &str) {
    let columns = usize::from(area.width);
    let lines = wrap(text, columns.saturating_sub(4));
    let top = usize::from(area.height).saturating_sub(lines.len()) / 2;
    for (row, line) in lines.into_iter().enumerate() {
        let indent = " ".repeat(columns.saturating_sub(width(&line)) / 2);
        put(buffer, area, top + row, &Line::from(indent + &line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_takes_the_columns_that_it_is_given() {
        assert_eq!(left("ab", 4), "ab  ");
        assert_eq!(left("abcde", 4), "abc…");
        assert_eq!(right("ab", 4), "  ab");
        assert_eq!(left("推論推論", 4), "推… ");
        assert_eq!(left("a\u{1b}[31m", 12), "a\\x1b[31m   ");
        assert_eq!(tail("a\u{1b}[31m", 6), "…b[31m");
        assert_eq!(left("abc", 0), "");
        assert_eq!(tail("LA_PO > LR_PE", 7), "… LR_PE");
        assert_eq!(tail("abc", 3), "abc");
        assert_eq!(tail("abc", 0), "");
    }

    #[test]
    fn wrapping_keeps_every_word() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap("", 4), Vec::<String>::new());
        assert_eq!(wrap("a\u{1b}c d", 6), ["a\\x1bc", "d"]);
    }

    #[test]
    fn nothing_that_is_put_acts() {
        let area = Rect::new(0, 0, 20, 1);
        let mut buffer = Buffer::empty(area);
        put(&mut buffer, area, 0, &Line::from(vec![Span::raw("\u{202e}a"), Span::raw("\u{7}\u{9b}2J")]));
        assert_eq!(buffer, Buffer::with_lines(["\\u{202e}a\\x07\\u{9b}2"]));
    }

    #[test]
    fn bars_show_that_something_is_there() {
        assert_eq!(bar(0.0, 3), "   ");
        assert_eq!(bar(0.0001, 3), "▏  ");
        assert_eq!(bar(0.5, 3), "█▌ ");
        assert_eq!(bar(2.0, 3), "███");
    }

    #[test]
    fn rules_are_as_wide_as_they_should() {
        for columns in 12..40 {
            assert_eq!(rule("a title that is long", "12.3%", columns).width(), columns, "{columns}");
            assert_eq!(rule("title", "", columns).width(), columns);
        }
    }
}
