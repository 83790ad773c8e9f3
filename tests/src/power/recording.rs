//! Second implementation of the events that count in a window of a recording with losses: everything is looked up in
//! the whole list, each time again.

use super::Event;
use crate::{recorded::At, trace::power_line};

/// Line of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Time, ns.
    pub at: u64,
    /// CPU that recorded the line.
    pub on: u32,
    /// Power event, and its CPU; `None` in a line about something else.
    pub event: Option<(u32, Event)>,
    /// Whether events of the recording CPU are missing before it.
    pub after_loss: bool,
}

impl Line {
    /// Returns the line of a power event, recorded by the CPU that [`power_line`] uses for it.
    #[must_use]
    pub fn of(at: u64, cpu: u32, event: Event) -> Self {
        let on = if event == Event::Online(false) { u32::from(cpu == 0) } else { cpu };
        Self { at, on, event: Some((cpu, event)), after_loss: false }
    }

    /// Formats the line as ftrace text, without a notice of a loss.
    #[must_use]
    pub fn text(&self) -> String {
        if let Some((cpu, event)) = self.event {
            return power_line(self.at, cpu, event);
        }
        let (seconds, fraction) = (self.at / 1_000_000_000, self.at % 1_000_000_000);
        format!("          <idle>-0     [{:03}] d..1. {seconds}.{fraction:09}: sys_enter: NR 1", self.on)
    }
}

/// Returns the events that decide the CPUs' states between `begin` and `end` (ns), with the losses among them, in
/// order of time. `lines` are in order of time; those of one instant and CPU in their own.
///
/// Events before the window count as of its begin. Events after it count as of its end, for a CPU without any before.
#[must_use]
pub fn window(lines: &[Line], begin: u64, end: u64) -> Vec<At> {
    let mut all: Vec<At> = Vec::new();
    let mut gaps: Vec<At> = Vec::new();
    // The state is unknown from the line before the loss on, and also at the line after it unless that shows it.
    for (number, line) in lines.iter().enumerate() {
        let next = lines[number + 1..].iter().find(|later| later.on == line.on);
        if line.after_loss {
            if !lines[..number].iter().any(|earlier| earlier.on == line.on) {
                all.push((0, line.on, Event::Lost));
            }
            all.push((line.at, line.on, Event::Lost));
        }
        all.extend(line.event.map(|(cpu, event)| (line.at, cpu, event)));
        // A gap begins when the instant before it is over.
        if next.is_some_and(|next| next.after_loss && next.at > line.at) {
            gaps.push((line.at, line.on, Event::Lost));
        }
    }
    all.extend(gaps);
    // Within one instant, events of the lower CPU count first.
    all.sort_by_key(|&(at, cpu, _)| (at, cpu));
    let says = |event: Event| !matches!(event, Event::Frequency(_) | Event::Online(true));
    let mut inside: Vec<At> = Vec::new();
    for &(at, cpu, event) in &all {
        let is_known = inside.iter().any(|&(_, of, event)| of == cpu && says(event));
        if at <= end {
            inside.push((at.max(begin), cpu, event));
        } else if !is_known && says(event) {
            inside.push((end, cpu, event));
        }
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::{super::EXIT, *};

    #[test]
    fn a_window_by_hand() {
        let loss = |line: Line| Line { after_loss: true, ..line };
        let lines = [
            Line::of(10, 0, Event::Idle(1)),
            Line::of(20, 0, Event::Idle(EXIT)),
            loss(Line::of(30, 1, Event::Frequency(5))),
            loss(Line::of(40, 0, Event::Idle(2))),
            Line::of(50, 2, Event::Idle(EXIT)),
            Line::of(60, 2, Event::Idle(3)),
        ];
        let wanted = [
            (25, 1, Event::Lost),
            (25, 0, Event::Idle(1)),
            (25, 0, Event::Idle(EXIT)),
            (25, 0, Event::Lost),
            (30, 1, Event::Lost),
            (30, 1, Event::Frequency(5)),
            (40, 0, Event::Lost),
            (40, 0, Event::Idle(2)),
            (45, 2, Event::Idle(EXIT)),
        ];
        assert_eq!(window(&lines, 25, 45), wanted);
    }
}
