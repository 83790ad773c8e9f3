use super::*;
use crate::model::timeline::{CpuState, Timeline};

fn stretches(timeline: &Timeline) -> Vec<(u64, CpuState)> {
    timeline.pieces(usize::MAX).iter().map(|piece| (piece.end, piece.parts[0].0)).collect()
}

#[test]
fn frequencies_split_running_only_and_the_first_event_tells_what_was_before() {
    let mut power = Power::new(&machine(&[&[0, 1]], &[&[0, 1]]), 100, &InitialState::default(), true);
    power.frequency_event(150, 0, 500);
    power.idle_event(200, 0, 1);
    power.idle_event(250, 1, IDLE_EXIT);
    power.frequency_event(300, 1, 800);
    power.idle_event(400, 0, IDLE_EXIT);
    power.lost(450, 1);
    let timelines = power.timelines_until(500).unwrap();
    let running = |khz| CpuState::Running(Some(khz));
    assert_eq!(
        stretches(&timelines.cpus[&0]),
        [(150, CpuState::Running(None)), (200, running(500)), (400, CpuState::Idle(1)), (500, running(800))]
    );
    assert_eq!(
        stretches(&timelines.cpus[&1]),
        [(250, CpuState::IdleUnknown), (300, running(500)), (450, running(800)), (500, CpuState::Unknown)]
    );
    let (name, timeline) = &timelines.clusters[0];
    assert_eq!(name, "0");
    assert_eq!(
        stretches(timeline),
        [
            (150, CpuState::Running(None)),
            (200, running(500)),
            (250, CpuState::IdleUnknown),
            (300, running(500)),
            (500, running(800))
        ]
    );
}

#[test]
fn a_cpu_without_an_event_is_unknown_and_one_that_was_read_is_what_was_read() {
    let initial = known(&[(1, Activity::Offline)], &[]);
    let mut power = Power::new(&machine(&[&[0, 1]], &[&[0, 1]]), 0, &initial, true);
    power.frequency_event(10, 0, 500);
    let timelines = power.timelines_until(50).unwrap();
    assert_eq!(stretches(&timelines.cpus[&0]), [(50, CpuState::Unknown)]);
    assert_eq!(stretches(&timelines.cpus[&1]), [(50, CpuState::Offline)]);
    assert_eq!(stretches(&timelines.clusters[0].1), [(50, CpuState::Unknown)]);
}
