//! Waits for CPUs that a run's own threads do not explain: other programs had them, or they had to wake up.

use super::graph::Point;

/// Splits waits for a CPU: what was not while the run's own threads had all of this many CPUs came from outside. Returns the longest
/// wait for a CPU that one of these had, ns.
pub(in crate::analyze) fn split(points: &mut [Point], cpus: u32) -> u64 {
    let full = full(points, cpus);
    let mut longest = 0;
    for point in points.iter_mut().filter(|point| point.queued > 0) {
        let begin = point.time.saturating_sub(point.queued);
        let own = overlap(&full, begin, point.time);
        point.outside = point.queued.saturating_sub(own);
        longest = longest.max(own);
    }
    longest
}

/// Returns the times (ns) in which the threads had all CPUs, each a begin and an end, in their order.
fn full(points: &[Point], cpus: u32) -> Vec<(u64, u64)> {
    let mut changes: Vec<(u64, i64)> = Vec::new();
    for point in points.iter().filter(|point| point.cpu.is_some() && point.run > 0) {
        changes.push((point.time.saturating_sub(point.run), 1));
        changes.push((point.time, -1));
    }
    // Of one instant, ends come first.
    changes.sort_unstable();
    let mut full: Vec<(u64, u64)> = Vec::new();
    let mut running = 0;
    for pair in changes.windows(2) {
        let [(begin, change), (end, _)] = pair else { continue };
        running += change;
        if running >= i64::from(cpus) && end > begin {
            match full.last_mut() {
                Some((_, last)) if last == begin => *last = *end,
                _ => full.push((*begin, *end)),
            }
        }
    }
    full
}

/// Returns how much of a time is in these, ns.
fn overlap(times: &[(u64, u64)], begin: u64, end: u64) -> u64 {
    let first = times.partition_point(|(_, last)| *last <= begin);
    let within = times[first..].iter().take_while(|(other, _)| *other < end);
    within.map(|(from, to)| (*to).min(end) - (*from).max(begin)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_beside_idle_cpus_come_from_outside() {
        let ran = |thread, begin, end| Point {
            thread,
            time: end,
            run: end - begin,
            cpu: Some(0),
            ..Point::default()
        };
        let waited = |begin, end| Point { time: end, queued: end - begin, ..Point::default() };
        let mut points = vec![
            ran(0, 0, 40),
            ran(0, 40, 100),
            ran(1, 20, 50),
            ran(1, 70, 90),
            // Both CPUs are taken from 20 to 50, and from 70 to 90.
            waited(10, 30),
            waited(20, 50),
            waited(0, 100),
            waited(95, 120),
        ];
        assert_eq!(split(&mut points, 2), 50);
        let outside: Vec<u64> = points[4..].iter().map(|point| point.outside).collect();
        assert_eq!(outside, [10, 0, 50, 25]);
        assert_eq!(split(&mut points, 3), 0);
        assert_eq!(points[5].outside, 30);
    }
}
