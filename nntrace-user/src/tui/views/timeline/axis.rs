//! The axis of time above the lanes.

use super::cells;
use crate::tui::views::timeline::TimeSpan;

/// Columns from one time to the next at least.
const APART: usize = 20;
const SECOND: u64 = 1_000_000_000;

/// Returns the axis: times since the begin of the window (ns), and the cursor.
pub(super) fn line(window: u64, shown: TimeSpan, columns: usize, cursor: Option<usize>) -> String {
    let decimals = decimals(shown.length / columns as u64 * APART as u64);
    let mut line = vec![' '; columns];
    for column in (0..columns).step_by(APART) {
        let Some(at) = cells::begin(shown, columns, column).checked_sub(window) else { continue };
        let text = format!("|{}", seconds(at, decimals));
        if column + text.len() <= columns {
            line[column..column + text.len()].iter_mut().zip(text.chars()).for_each(|(at, sign)| *at = sign);
        }
    }
    if let Some(at) = cursor.and_then(|cursor| line.get_mut(cursor)) {
        *at = '▼';
    }
    line.into_iter().collect()
}

/// Returns how many decimals of a second show times with this much (ns) between them to a tenth of that.
fn decimals(apart: u64) -> usize {
    (1..9).find(|&decimals| SECOND / 10_u64.pow(decimals - 1) <= apart.max(1)).unwrap_or(9) as usize
}

/// Returns a time (ns) in seconds, cut to these decimals.
pub(super) fn seconds(ns: u64, decimals: usize) -> String {
    let fraction = format!("{:09}", ns % SECOND);
    let point = if decimals > 0 { "." } else { "" };
    format!("{}{point}{} s", ns / SECOND, &fraction[..decimals.min(9)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_exact_as_they_are_apart() {
        let shown = TimeSpan { begin: 10 * SECOND, length: 4 * SECOND };
        assert_eq!(line(8 * SECOND, shown, 40, Some(3)), "|2.▼ s              |4.0 s              ");
        let near = TimeSpan { begin: 10 * SECOND, length: 400 };
        assert_eq!(line(8 * SECOND, near, 40, None), "|2.00000000 s       |2.00000020 s       ");
        assert_eq!(line(12 * SECOND, shown, 40, None), "                    |0.0 s              ");
        assert_eq!((decimals(0), decimals(u64::MAX)), (9, 1));
        assert_eq!((seconds(1_999_999_999, 0), seconds(5, 9)), ("1 s".into(), "0.000000005 s".into()));
    }
}
