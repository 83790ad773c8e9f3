//! Events of programs on their tracks, against the marks that say the same.

use super::*;
use crate::perfetto_schema::{
    BufferStats, CounterDescriptor, EventType, InternedData, InternedName, LegacyEvent, NEEDS_STATE,
    ProcessDescriptor, STATE_CLEARED, ServiceEvent, ThreadDescriptor, TracePacketDefaults, TraceStats,
    TrackDescriptor, TrackEvent, TrackEventDefaults,
};

/// Track of the thread 21 of process 20, in these traces.
const THREAD: u64 = 5;

fn described(track: TrackDescriptor) -> TracePacket {
    TracePacket { track_descriptor: Some(track), ..TracePacket::default() }
}

fn thread() -> ThreadDescriptor {
    ThreadDescriptor { pid: Some(20), tid: Some(21), thread_name: Some("worker".into()) }
}

fn thread_track() -> TracePacket {
    described(TrackDescriptor { uuid: Some(THREAD), thread: Some(thread()), ..TrackDescriptor::default() })
}

fn on_track(us: u64, event: TrackEvent) -> TracePacket {
    TracePacket {
        timestamp: Some(START + us * 1_000),
        trusted_packet_sequence_id: Some(2),
        track_event: Some(event),
        ..TracePacket::default()
    }
}

fn track_event(what: EventType, track: u64, name: &'static str) -> TrackEvent {
    TrackEvent {
        r#type: Some(what.into()),
        track_uuid: Some(track),
        name: (!name.is_empty()).then(|| name.into()),
        ..TrackEvent::default()
    }
}

/// Returns the snapshot of marks of that thread, at these times (us).
fn of_marks(marks: &[(u64, &str)]) -> Snapshot {
    let mark =
        |(us, text): &(u64, &str)| line(*us, "worker-21 (20)", 0, &format!("tracing_mark_write: {text}"));
    snapshot(marks.iter().map(mark).collect::<String>().as_bytes())
}

#[test]
fn slices_instants_and_counters_are_marks() {
    let counter = TrackDescriptor {
        uuid: Some(6),
        parent_uuid: Some(7),
        name: Some("queue".into()),
        counter: Some(CounterDescriptor { unit_multiplier: Some(10), ..CounterDescriptor::default() }),
        ..TrackDescriptor::default()
    };
    let process = TrackDescriptor {
        uuid: Some(7),
        process: Some(ProcessDescriptor { pid: Some(20), process_name: None }),
        ..TrackDescriptor::default()
    };
    let value = TrackEvent { counter_value: Some(3), ..track_event(EventType::Counter, 6, "") };
    let packets = vec![
        on_track(0, track_event(EventType::SliceBegin, THREAD, "[NN_LA_PE]run#iter=1")),
        on_track(1, track_event(EventType::SliceBegin, 7, "download")),
        on_track(2, track_event(EventType::SliceBegin, THREAD, "[NN_LR_PE]compute")),
        on_track(3, track_event(EventType::Instant, THREAD, "nn.send#h=7")),
        on_track(4, value),
        on_track(6, track_event(EventType::SliceEnd, THREAD, "")),
        on_track(7, track_event(EventType::SliceEnd, 7, "")),
        on_track(9, track_event(EventType::SliceEnd, THREAD, "")),
        thread_track(),
        described(counter),
        described(process),
    ];
    let expected = of_marks(&[
        (0, "B|20|[NN_LA_PE]run#iter=1"),
        (1, "S|20|download|1"),
        (2, "B|20|[NN_LR_PE]compute"),
        (3, "I|20|nn.send#h=7"),
        (4, "C|20|queue|30"),
        (6, "E|20"),
        (7, "F|20|download|1"),
        (9, "E|20"),
    ]);
    assert!(expected.hand_overs.is_some() && !expected.tracks.is_empty() && !expected.counters.is_empty());
    assert_eq!(snapshot(&file(&packets)), expected);
}

#[test]
fn names_tracks_and_clocks_may_be_those_of_the_sequence() {
    let name = |iid, name: &'static str| InternedName { iid: Some(iid), name: Some(name.into()) };
    let first = TracePacket {
        sequence_flags: Some(STATE_CLEARED | NEEDS_STATE),
        trusted_packet_sequence_id: Some(2),
        interned_data: Some(InternedData {
            event_names: vec![name(1, "[NN_LR_PE]f"), name(2, "[NN_LD_PE]g")],
            ..InternedData::default()
        }),
        trace_packet_defaults: Some(TracePacketDefaults {
            timestamp_clock_id: Some(64),
            track_event_defaults: Some(TrackEventDefaults { track_uuid: Some(THREAD) }),
        }),
        clock_snapshot: Some(ClockSnapshot {
            clocks: vec![
                Clock {
                    id: Some(64),
                    timestamp: Some(START / 1_000),
                    is_incremental: Some(true),
                    unit_multiplier_ns: Some(1_000),
                },
                Clock { id: Some(BOOTTIME), timestamp: Some(START), ..Clock::default() },
            ],
            primary_trace_clock: None,
        }),
        ..TracePacket::default()
    };
    let event = |us, what: EventType, iid| TracePacket {
        timestamp: Some(us),
        sequence_flags: Some(NEEDS_STATE),
        trusted_packet_sequence_id: Some(2),
        track_event: Some(TrackEvent { r#type: Some(what.into()), name_iid: iid, ..TrackEvent::default() }),
        ..TracePacket::default()
    };
    let packets = [
        first,
        event(3, EventType::SliceBegin, Some(1)),
        event(2, EventType::SliceBegin, Some(2)),
        event(0, EventType::SliceEnd, None),
        event(4, EventType::SliceEnd, None),
        event(1, EventType::SliceBegin, Some(3)),
        thread_track(),
    ];
    let snapshot = snapshot(&file(&packets));
    let marks =
        of_marks(&[(3, "B|20|[NN_LR_PE]f"), (5, "B|20|[NN_LD_PE]g"), (5, "E"), (9, "E"), (10, "B|20|")]);
    assert_eq!(snapshot.phases, marks.phases);
    let note = "FILE: read only in part: 1 event has a number instead of a name, with no text for it";
    assert!(snapshot.notes.iter().any(|told| told == note), "{:?}", snapshot.notes);
}

#[test]
fn counters_add_up_with_their_fractions_on_the_track_of_the_sequence() {
    let counter = TrackDescriptor {
        uuid: Some(9),
        name: Some("level".into()),
        counter: Some(CounterDescriptor { is_incremental: Some(true), ..CounterDescriptor::default() }),
        ..TrackDescriptor::default()
    };
    let defaults = TracePacket {
        sequence_flags: Some(STATE_CLEARED),
        trusted_packet_sequence_id: Some(2),
        trace_packet_defaults: Some(TracePacketDefaults {
            track_event_defaults: Some(TrackEventDefaults { track_uuid: Some(9) }),
            ..TracePacketDefaults::default()
        }),
        ..TracePacket::default()
    };
    let value = |us, double_counter_value| TracePacket {
        sequence_flags: Some(NEEDS_STATE),
        ..on_track(
            us,
            TrackEvent {
                r#type: Some(EventType::Counter.into()),
                double_counter_value: Some(double_counter_value),
                ..TrackEvent::default()
            },
        )
    };
    let packets =
        [described(counter), defaults, value(1, 1.5), value(2, 1.5), value(3, 1.0), value(4, f64::INFINITY)];
    let snapshot = snapshot(&file(&packets));
    let [row] = &snapshot.counters[..] else { panic!("{:?}", snapshot.counters) };
    assert_eq!((&*row.name, row.count, row.last), ("level", 2, Some(4)));
    let note = "FILE: read only in part: 2 counter values are not whole: left out";
    assert!(snapshot.notes.iter().any(|told| told == note), "{:?}", snapshot.notes);
}

/// A program in a container writes its own ids; the host has a thread with one of them.
#[test]
fn context_switches_of_another_process_are_not_those_of_a_track() {
    let thread = ThreadDescriptor { pid: Some(5), tid: Some(7), thread_name: Some("run".into()) };
    let track = TrackDescriptor { uuid: Some(THREAD), thread: Some(thread), ..TrackDescriptor::default() };
    let switches = vec![
        switch(50, (0, "swapper"), 0, (7, "kworker")),
        switch(200, (7, "kworker"), 1, (0, "swapper")),
        switch(450, (0, "swapper"), 0, (7, "kworker")),
    ];
    let packets = |tree: Option<TracePacket>| {
        let rest = [
            described(track.clone()),
            bundle(0, switches.clone()),
            on_track(100, track_event(EventType::SliceBegin, THREAD, "[NN_LR_PE]f")),
            on_track(500, track_event(EventType::SliceEnd, THREAD, "")),
        ];
        tree.into_iter().chain(rest).collect::<Vec<_>>()
    };
    let times = |packets: &[TracePacket]| {
        let usage = snapshot(&file(packets)).usage.unwrap();
        let row = usage.phases.iter().find(|row| row.layer.is_some()).unwrap();
        (row.usage.on_cpu_ns, row.usage.unknown_ns)
    };
    assert_eq!(times(&packets(Some(tree(&[(7, 7, "kworker")])))), (0, 400_000));
    assert_eq!(times(&packets(None)).0, 150_000);
}

#[test]
fn ends_of_asynchronous_slices_may_have_no_name() {
    let legacy = |us, phase: u8, name: &'static str| {
        let legacy = LegacyEvent { phase: Some(phase.into()), local_id: Some(4), ..LegacyEvent::default() };
        let name = (!name.is_empty()).then(|| name.into());
        on_track(us, TrackEvent { legacy_event: Some(legacy), name, ..TrackEvent::default() })
    };
    let defaults = TracePacket {
        sequence_flags: Some(STATE_CLEARED),
        trusted_packet_sequence_id: Some(2),
        thread_descriptor: Some(thread()),
        ..TracePacket::default()
    };
    let packets = [
        defaults,
        legacy(1, b'b', "outer"),
        legacy(3, b'b', "inner"),
        legacy(5, b'e', ""),
        legacy(9, b'e', ""),
        legacy(10, b'b', "outer"),
        legacy(12, b'b', "inner"),
        legacy(13, b'e', "outer"),
        legacy(14, b'e', ""),
    ];
    let tracks = snapshot(&file(&packets)).tracks;
    let rows: Vec<_> = tracks.iter().map(|row| (&*row.name, row.slices, row.slices_ns)).collect();
    assert_eq!(rows, [("inner", 2, 4_000), ("outer", 2, 11_000)]);
}

#[test]
fn the_mark_of_a_user_begins_the_window_rather_than_the_recorder() {
    const BEGIN: &str = "B|20|[NN_LR_PE]f";
    let started = |us: u64| TracePacket {
        timestamp: Some(START + us * 1_000),
        service_event: Some(ServiceEvent { tracing_started: Some(true) }),
        ..TracePacket::default()
    };
    let events =
        || bundle(0, vec![print(0, 20, BEGIN), print(100, 20, "nntrace_start"), print(400, 20, "E|20")]);
    let window = |packets: &[TracePacket]| snapshot(&file(packets)).window.length_ns();
    assert_eq!(window(&[started(50), events()]), 300_000);
    let events = || bundle(0, vec![print(0, 20, BEGIN), print(400, 20, "E|20")]);
    assert_eq!(window(&[started(50), events()]), 350_000);
}

#[test]
fn packets_behind_a_loss_are_lost_until_the_sequence_begins_anew() {
    let lost = |us, dropped, flags, what: EventType| TracePacket {
        previous_packet_dropped: Some(dropped),
        sequence_flags: Some(flags),
        ..on_track(us, track_event(what, THREAD, "[NN_LR_PE]f"))
    };
    let packets = [
        thread_track(),
        lost(0, 1, STATE_CLEARED, EventType::SliceBegin),
        lost(1, 0, NEEDS_STATE, EventType::SliceEnd),
        lost(2, 1, NEEDS_STATE, EventType::SliceBegin),
        lost(3, 0, NEEDS_STATE, EventType::SliceEnd),
        lost(4, 0, STATE_CLEARED, EventType::SliceBegin),
        lost(5, 0, NEEDS_STATE, EventType::SliceEnd),
    ];
    let snapshot = snapshot(&file(&packets));
    assert_eq!(snapshot.phases[0].count, 2);
    assert_eq!((snapshot.loss.records_dropped, snapshot.loss.at_least), (2, true));
}

#[test]
fn losses_of_the_recorder_are_told() {
    let buffer = BufferStats {
        chunks_overwritten: Some(3),
        trace_writer_packet_loss: Some(2),
        ..BufferStats::default()
    };
    let stats = TracePacket {
        trace_stats: Some(TraceStats { buffer_stats: vec![buffer] }),
        ..TracePacket::default()
    };
    let slice = on_track(0, track_event(EventType::SliceBegin, THREAD, "[NN_LR_PE]f"));
    let snapshot = snapshot(&file(&[thread_track(), slice, stats]));
    assert_eq!((snapshot.loss.records_dropped, snapshot.loss.at_least), (5, true));
    assert!(snapshot.notes.iter().any(|note| note.contains("3 chunks of the recorder's own buffers")));
}

#[test]
fn events_in_the_form_of_chrome_are_marks() {
    let legacy = |us, phase: u8, name: &'static str, more: LegacyEvent| {
        let legacy = LegacyEvent { phase: Some(phase.into()), ..more };
        let name = (!name.is_empty()).then(|| name.into());
        on_track(us, TrackEvent { legacy_event: Some(legacy), name, ..TrackEvent::default() })
    };
    let none = LegacyEvent::default;
    let sequence = TracePacket {
        trusted_packet_sequence_id: Some(2),
        thread_descriptor: Some(thread()),
        ..TracePacket::default()
    };
    let packets = [
        sequence,
        legacy(0, b'X', "[NN_LA_PE]run", LegacyEvent { duration_us: Some(9), ..none() }),
        legacy(1, b'B', "[NN_LR_PE]f", none()),
        legacy(2, b'b', "job", LegacyEvent { local_id: Some(4), ..none() }),
        legacy(3, b'i', "here", none()),
        legacy(4, b'E', "", none()),
        legacy(5, b'e', "job", LegacyEvent { local_id: Some(4), ..none() }),
    ];
    let expected = of_marks(&[
        (0, "B|20|[NN_LA_PE]run"),
        (1, "B|20|[NN_LR_PE]f"),
        (2, "S|20|job|4"),
        (3, "I|20|here"),
        (4, "E|20"),
        (5, "F|20|job|4"),
        (9, "E|20"),
    ]);
    assert_eq!(snapshot(&file(&packets)), expected);
}
