//! Several timelines, swept in the order of time.

use super::{CpuState, Timeline};

/// Shows every stretch in which no state changes: its begin and end (ns), and the state of each timeline, in their order. Before its
/// begin and after its end, a timeline is unknown; in a piece of which the order is not known, it is in the state that lasts
/// longest.
pub(crate) fn visit_together(timelines: &[&Timeline], mut stretch: impl FnMut(u64, u64, &[CpuState])) {
    let mut changes: Vec<(u64, usize, CpuState)> = Vec::new();
    for (lane, timeline) in timelines.iter().enumerate() {
        timeline.visit(|begin, _, parts| changes.push((begin, lane, longest(parts))));
        changes.push((timeline.end, lane, CpuState::Unknown));
    }
    // Stable: what a timeline is at its end comes after what it was.
    changes.sort_by_key(|(time, ..)| *time);
    let mut states = vec![CpuState::Unknown; timelines.len()];
    let mut since = changes.first().map_or(0, |(time, ..)| *time);
    for (time, lane, state) in changes {
        if time > since {
            stretch(since, time, &states);
            since = time;
        }
        states[lane] = state;
    }
}

/// Returns the state that lasts longest.
pub(crate) fn longest(parts: &[(CpuState, u64)]) -> CpuState {
    parts.iter().max_by_key(|(_, ns)| *ns).map_or(CpuState::Unknown, |(state, _)| *state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_ends_where_any_state_changes() {
        let (run, idle) = (CpuState::Running(Some(5)), CpuState::Idle(0));
        let mut one = Timeline::starting_at(10, 9);
        let mut other = Timeline::starting_at(10, 9);
        for (timeline, steps) in [(&mut one, [(20, run), (50, idle)]), (&mut other, [(20, idle), (40, run)])]
        {
            for (end, state) in steps {
                timeline.push(end, state);
            }
        }
        let mut seen = Vec::new();
        visit_together(&[&one, &other], |begin, end, states| seen.push((begin, end, states.to_vec())));
        let expected = [(10, 20, [run, idle]), (20, 40, [idle, run]), (40, 50, [idle, CpuState::Unknown])];
        assert_eq!(seen, expected.map(|(begin, end, states)| (begin, end, states.to_vec())));
        visit_together(&[], |_, _, _| panic!("nothing to show"));
    }
}
