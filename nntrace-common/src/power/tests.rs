use super::*;

/// Applies events (time, Ok(state) or Err(khz)) from time 0, and returns the idle state machine and the slices.
fn run(events: &[(u64, Result<u32, u32>)], end: u64) -> (CpuIdle, Vec<FrequencySlice>) {
    let mut idle = CpuIdle::starting_at(0);
    let mut frequency = CpuFrequency::UNKNOWN;
    let mut slices = Vec::new();
    for &(at, event) in events {
        match event {
            Ok(state) => {
                idle.event(at, state);
            }
            Err(khz) => slices.extend(frequency.event(&mut idle, at, khz)),
        }
    }
    idle.finish(end);
    slices.push(frequency.slice(&idle, end));
    slices.retain(|slice| slice.holds(idle.start()));
    for slice in &mut slices {
        slice.presumed = false;
    }
    (idle, slices)
}

fn slice(khz: u32, ns: i64, hits: i64) -> FrequencySlice {
    FrequencySlice { khz, ns, hits, presumed: false }
}

#[test]
fn the_first_event_tells_what_came_before() {
    let (idle, slices) = run(&[(100, Ok(1)), (300, Ok(IDLE_EXIT))], 350);
    assert_eq!(slices, [slice(0, 150, 2)]);
    assert_eq!((idle.idle[1].ns, idle.idle[1].hits), (200, 1));
    let (idle, slices) = run(&[(100, Ok(IDLE_EXIT))], 350);
    assert_eq!(idle.idle_unknown_ns, 100);
    assert_eq!(slices, [slice(0, 250, 1)]);
}

#[test]
fn a_silent_cpu_is_unknown() {
    let (idle, slices) = run(&[], 350);
    assert_eq!(idle.unknown_ns, 350);
    assert_eq!(slices, []);
}

#[test]
fn anomalies_are_told_and_resolved() {
    let mut idle = CpuIdle::starting_at(0);
    idle.event(10, 0);
    assert_eq!(idle.event(20, 1).anomaly, Some(IdleAnomaly::EnterWhileIdle));
    idle.event(30, IDLE_EXIT);
    let stray = idle.event(35, IDLE_EXIT);
    assert_eq!(stray, IdleStep { closed: None, anomaly: Some(IdleAnomaly::ExitWhileRunning) });
    assert_eq!((idle.idle[0].ns, idle.idle[1].ns), (10, 10));
    assert_eq!(idle.running_clock(50).ns, 30);
}

#[test]
fn a_frequency_change_while_idle_adds_no_time() {
    let (_, slices) = run(&[(0, Ok(0)), (50, Err(800)), (100, Ok(IDLE_EXIT))], 200);
    assert_eq!(slices, [slice(0, 0, 0), slice(800, 100, 1)]);
}

#[test]
fn a_frequency_change_while_running_splits_the_stretch_and_the_same_value_does_not() {
    let (_, slices) =
        run(&[(0, Err(500)), (10, Ok(0)), (20, Ok(IDLE_EXIT)), (30, Err(500)), (40, Err(700))], 60);
    assert_eq!(slices, [slice(0, 0, 0), slice(500, 30, 2), slice(700, 20, 1)]);
}

#[test]
fn a_stretch_that_ends_with_the_change_is_no_hit_of_the_new_frequency() {
    let (_, slices) = run(&[(0, Err(500)), (10, Err(700)), (10, Ok(0)), (20, Ok(IDLE_EXIT))], 30);
    assert_eq!(slices, [slice(0, 0, 0), slice(500, 10, 1), slice(700, 10, 1)]);
}

proptest::proptest! {
    /// Compares with a sweep that paints every nanosecond.
    #[test]
    fn the_machines_equal_a_sweep(
        steps in proptest::collection::vec((0_u64..20, 0_u32..6, proptest::bool::ANY), 0..40),
    ) {
        let mut at = 0;
        let mut events = Vec::new();
        for (gap, value, is_idle) in steps {
            at += gap;
            events.push((at, match (is_idle, value) {
                (true, 3..) => Ok(IDLE_EXIT),
                (true, state) => Ok(state),
                (false, khz) => Err(khz),
            }));
        }
        let end = at + 7;
        let (idle, slices) = run(&events, end);

        let mut painted = vec![(Activity::Unknown, 0); end as usize];
        let first = events.iter().find_map(|&(at, event)| event.ok().map(|state| (at, state)));
        let mut activity = Activity::Unknown;
        if let Some((_, state)) = first {
            activity = if state == IDLE_EXIT { Activity::IdleUnknown } else { Activity::Running };
        }
        let mut khz = 0;
        let mut events = events.into_iter().peekable();
        for (now, cell) in painted.iter_mut().enumerate() {
            while let Some((_, event)) = events.next_if(|&(at, _)| at <= now as u64) {
                match event {
                    Ok(state) => activity = Activity::after_event(state),
                    Err(value) => khz = value,
                }
            }
            *cell = (activity, khz);
        }
        let count = |wanted: &dyn Fn(&(Activity, u32)) -> bool| {
            painted.iter().filter(|cell| wanted(cell)).count() as u64
        };
        for state in 0..3 {
            assert_eq!(idle.idle[state as usize].ns, count(&|cell| cell.0 == Activity::Idle(state)));
        }
        assert_eq!(idle.unknown_ns, count(&|cell| cell.0 == Activity::Unknown));
        assert_eq!(idle.idle_unknown_ns, count(&|cell| cell.0 == Activity::IdleUnknown));
        for wanted in 0..6 {
            let ns: i64 = slices.iter().filter(|slice| slice.khz == wanted).map(|slice| slice.ns).sum();
            assert_eq!(ns.cast_unsigned(), count(&|&cell| cell == (Activity::Running, wanted)), "{wanted} kHz");
        }
    }
}
