//! The timeline as text: a line for each cluster and CPU, a sign for each column of time.

use std::collections::BTreeSet;

use super::{Entry, milliseconds, seconds, ticks};
use crate::{
    model::timeline::Timelines,
    report::{
        cpu_or_cluster::CpuState,
        number_format,
        power::fit,
        snapshot::Snapshot,
        terminal_text::{Text, line},
    },
};

/// Signs of frequencies, the slowest first.
const FREQUENCIES: &[u8; 35] = b"123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// Signs of idle states, the shallowest first.
const STATES: &[u8; 26] = b"abcdefghijklmnopqrstuvwxyz";
/// Columns of names, at most.
const NAME: usize = 18;
/// Columns from one mark of the axis to the next, at least.
const TICK: usize = 10;

/// Signs and their meanings.
struct Signs {
    /// Frequencies, ascending, kHz.
    frequencies: Vec<u32>,
    /// Idle states, from the shallowest down.
    states: Vec<(u32, String)>,
    others: BTreeSet<CpuState>,
}

/// The timeline in this many columns.
#[must_use]
pub fn render(snapshot: &Snapshot, timelines: &Timelines, columns: usize) -> Text {
    let mut text = Text::new();
    let entries = Entry::all(snapshot, timelines);
    let window = &snapshot.window;
    let length = window.length_ns();
    if entries.is_empty() || length == 0 {
        line!(text, "no power events were seen");
        return text;
    }
    let signs = Signs::of(&entries);
    let widest = entries.iter().map(|entry| entry.name().chars().count()).max().unwrap_or(0);
    let name = (widest + 2).min(NAME);
    let cells = columns.saturating_sub(name + 1).max(2 * TICK);
    line!(
        text,
        "{} from {} s on; a column is {} and shows what took most of it",
        number_format::duration_ns(length),
        seconds(window.begin_ns),
        number_format::duration_ns(length / cells as u64),
    );
    let (labels, marks) = axis(length, cells);
    line!(text, "{:name$} {labels}", "ms");
    line!(text, "{:name$} {marks}", "");
    for entry in &entries {
        let indent = if entry.row.cpu.is_some() { "  " } else { "" };
        let slots = entry.timeline.columns(window.begin_ns, window.end_ns, cells);
        let timeline: String = slots
            .iter()
            .map(|parts| {
                // Of two that took as long, the first.
                let most = parts.iter().rev().max_by_key(|(_, ns)| *ns);
                most.map_or(' ', |&(state, _)| signs.sign(state, entry))
            })
            .collect();
        line!(text, "{} {}", fit(&format!("{indent}{}", entry.name()), name), timeline.trim_end());
    }
    signs.legend(&mut text, columns);
    for note in entries.iter().filter_map(Entry::is_coarse) {
        line!(text, "note: {note}");
    }
    text
}

/// Labels and marks.
fn axis(length: u64, cells: usize) -> (String, String) {
    let mut labels = String::new();
    let mut marks = vec![b'-'; cells];
    for ns in ticks(length, (cells / TICK) as u64) {
        let column = (u128::from(ns) * cells as u128 / u128::from(length)) as usize;
        let label = milliseconds(ns);
        if column + label.len() > cells || (column > 0 && labels.len() >= column) {
            continue;
        }
        marks[column] = b'|';
        let gap = column.saturating_sub(labels.len());
        labels.extend(std::iter::repeat_n(' ', gap));
        labels.push_str(&label);
    }
    (labels, String::from_utf8_lossy(&marks).into_owned())
}

impl Signs {
    fn of(entries: &[Entry<'_>]) -> Self {
        let (mut frequencies, mut states, mut others) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for entry in entries {
            for (state, _) in entry.timeline.totals() {
                match state {
                    CpuState::Running(Some(khz)) => {
                        frequencies.insert(khz);
                    }
                    CpuState::Idle(number) => {
                        states.insert((number, entry.cpu_state_name(state)));
                    }
                    other => {
                        others.insert(other);
                    }
                }
            }
        }
        let states: Vec<_> = states.into_iter().collect();
        Self { frequencies: frequencies.into_iter().collect(), states, others }
    }

    fn sign(&self, state: CpuState, entry: &Entry<'_>) -> char {
        match state {
            CpuState::Running(Some(khz)) => {
                let place = self.frequencies.binary_search(&khz).unwrap_or_default();
                pick(FREQUENCIES, place, self.frequencies.len())
            }
            CpuState::Idle(number) => {
                let wanted = (number, entry.cpu_state_name(state));
                let place = self.states.binary_search(&wanted).unwrap_or_default();
                pick(STATES, place, self.states.len())
            }
            other => Self::fixed(other),
        }
    }

    const fn fixed(state: CpuState) -> char {
        match state {
            CpuState::Running(_) => '*',
            CpuState::Idle(_) | CpuState::IdleUnknown => '~',
            CpuState::Offline => '-',
            CpuState::Unknown => '?',
        }
    }

    /// Legend of the signs, in lines of this many columns.
    fn legend(&self, text: &mut Text, columns: usize) {
        let count = self.frequencies.len();
        let mut meanings: Vec<(char, String)> = Vec::new();
        for (place, &khz) in self.frequencies.iter().enumerate() {
            let sign = pick(FREQUENCIES, place, count);
            match meanings.last_mut() {
                // More frequencies than signs: neighbours share one.
                Some((last, text)) if *last == sign => {
                    let first = text.split(" to ").next().unwrap_or_default().to_owned();
                    *text = format!("{first} to {}", number_format::khz_exact(khz));
                }
                _ => meanings.push((sign, number_format::khz_exact(khz))),
            }
        }
        for (place, (_, name)) in self.states.iter().enumerate() {
            let sign = pick(STATES, place, self.states.len());
            match meanings.last_mut() {
                Some((last, text)) if *last == sign => *text = format!("{text}, {name}"),
                _ => meanings.push((sign, name.clone())),
            }
        }
        let word = |state: &CpuState| match state {
            CpuState::Running(_) => "running, no frequency known",
            CpuState::Idle(_) | CpuState::IdleUnknown => "idle, depth unknown",
            CpuState::Offline => "offline",
            CpuState::Unknown => "unknown",
        };
        meanings.extend(self.others.iter().map(|other| (Self::fixed(*other), word(other).to_owned())));
        let mut line = String::new();
        let mut used = 0;
        for (sign, meaning) in meanings {
            let one = format!("{sign} {meaning}");
            let width = one.chars().count();
            if used > 0 && used + 3 + width > columns {
                line!(text, "{line}");
                line.clear();
                used = 0;
            }
            let gap = if used > 0 { "   " } else { "" };
            line.push_str(gap);
            line.push_str(&one);
            used += gap.len() + width;
        }
        line!(text, "{line}");
    }
}

/// The sign of the one at this place among this many; when there are more than signs, neighbours share one.
fn pick(signs: &[u8], place: usize, count: usize) -> char {
    let place = if count > signs.len() { place * signs.len() / count } else { place };
    char::from(signs[place.min(signs.len() - 1)])
}
