//! Traces, decoded again and read by the rules of the importer; the end-to-end tests have the importer itself.

mod back;

use std::{cell::RefCell, collections::BTreeMap, fs, io, ops::ControlFlow, path::Path, rc::Rc};

use nntrace_common::record::{PowerRecord, Record, RecordKind};
use prost::Message;
use tempfile::TempDir;

use super::{
    Clocks, Format, Label,
    kernel_events::KernelEvents,
    packets::{Packets, event, write_packet},
    tracks, write_head,
};
use crate::{
    export::{
        ThreadName,
        swimlane::{self, Counters, ThreadTrack, Written, observer},
    },
    model::Findings,
    perfetto_schema::{EventType, TracePacket, TrackDescriptor, ftrace::FtraceKind},
    record::{self, OrderedSections, Recorder, ReplayOptions, RunDescription, SectionOrMark},
    replay::{self, Options, Replayed},
};

/// Clocks of a recorded run.
const CLOCKS: Clocks =
    Clocks { monotonic_ns: 5_000, boottime_ns: 7_000, realtime_ns: 1_700_000_000_000_000_000 };

type Events<W> = swimlane::Events<Format, W>;
type SharedEvents<W> = swimlane::SharedEvents<Format, W>;

/// Trace as a whole.
#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

fn utf8(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

fn decoded(bytes: &[u8]) -> Vec<TracePacket> {
    Trace::decode(bytes).unwrap().packet
}

/// Slice as the importer makes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slice {
    track: u64,
    name: String,
    begin: u64,
    end: Option<u64>,
    /// Name of the slice around it.
    parent: Option<String>,
}

/// Reads slices as the importer does: events by time, those of one instant in the order of the file; an end is that of the
/// innermost open slice of its track.
fn slices(packets: &[TracePacket]) -> Vec<Slice> {
    let mut names: BTreeMap<u64, String> = BTreeMap::new();
    let mut events = Vec::new();
    for packet in packets {
        for name in packet.interned_data.iter().flat_map(|data| &data.event_names) {
            names.insert(name.iid.unwrap(), utf8(name.name.as_ref().unwrap()).to_owned());
        }
        if let Some(event) = &packet.track_event {
            // The importer resolves texts in the order of the file.
            let name = event.name.as_ref().map(|name| utf8(name).to_owned());
            let name = name.or_else(|| Some(names[&event.name_iid?].clone()));
            events.push((packet.timestamp.unwrap(), event, name));
        }
    }
    events.sort_by_key(|(time, ..)| *time);
    let mut open: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let mut slices: Vec<Slice> = Vec::new();
    for (time, event, name) in events {
        let track = event.track_uuid.unwrap();
        let open = open.entry(track).or_default();
        match event.r#type() {
            EventType::SliceBegin => {
                let parent = open.last().map(|&parent: &usize| slices[parent].name.clone());
                open.push(slices.len());
                slices.push(Slice { track, name: name.unwrap(), begin: time, end: None, parent });
            }
            EventType::SliceEnd => slices[open.pop().expect("an end without a begin")].end = Some(time),
            _ => {}
        }
    }
    slices
}

/// Exports the text of a trace; returns the file.
fn exported(text: &str) -> Vec<u8> {
    let (Written { out: body, threads, .. }, replayed) = replayed(text, 0);
    let mut out = Vec::new();
    let findings = replayed.findings();
    let counters = Counters::of(&findings, replayed.timelines(), false);
    write_head(&mut out, &findings, None, &threads, &counters).unwrap();
    out.extend(body);
    out
}

/// Records what the text of a trace shows; returns the folder.
fn recorded(text: &str) -> TempDir {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let recorder = RefCell::new(None);
    // Each pass records again.
    let mut start = || {
        let created = Recorder::create(folder.path(), RunDescription::default(), true, None).unwrap();
        let observer = created.observer();
        recorder.replace(Some(created));
        observer
    };
    let mut options = Options { files: vec![file.path().to_owned()], ..Options::default() };
    options.questions.hand_overs = true;
    let replayed = replay::replay_with_observer(&options, &mut start).unwrap();
    recorder.take().unwrap().finish(&replayed.findings(), None).unwrap();
    folder
}

/// Exports a recording; returns the file.
fn exported_recording(folder: &Path) -> Vec<u8> {
    let options = ReplayOptions { with_hand_overs: true, with_timelines: true, ..ReplayOptions::default() };
    let run = record::replay(folder, &options).unwrap();
    let sections = OrderedSections::open(folder).unwrap();
    let threads = sections.threads().all().iter();
    let threads: Vec<ThreadName> = threads
        .map(|thread| ThreadName { pid: thread.pid, tid: thread.tid, name: thread.name.clone() })
        .collect();
    let (findings, timelines) = (run.findings(), run.timelines());
    let counters = Counters::of(&findings, timelines.as_ref(), false);
    let mut out = Vec::new();
    write_head(&mut out, &findings, Some(&CLOCKS), &threads, &counters).unwrap();
    let mut events = Events::of_recording(&mut out, &findings, &CLOCKS, &threads, 0);
    let _ = sections.visit_by_thread_with_marks(|found, thread| {
        match found {
            SectionOrMark::Section(section) => events.section(section, thread),
            SectionOrMark::Mark(mark) => events.mark(mark, thread),
        }
        ControlFlow::Continue(())
    });
    record::power_events(folder, |record| events.power(record)).unwrap();
    events.finish(&findings, &counters).unwrap();
    out
}

/// Returns no counters.
fn none<'a>(findings: &Findings<'a>) -> Counters<'a> {
    Counters::of(findings, None, false)
}

/// Replays the text of a trace; returns its events too, without sections shorter than `least_ns`.
fn replayed(text: &str, least_ns: u64) -> (Written<Vec<u8>>, Replayed) {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    let events: SharedEvents<Vec<u8>> = Rc::new(RefCell::new(None));
    let mut start = || {
        events.replace(Some(Events::by_end(Vec::new(), None, least_ns)));
        observer(&events)
    };
    let mut options = Options { files: vec![file.path().to_owned()], with_steps: true, ..Options::default() };
    options.questions.hand_overs = true;
    let replayed = replay::replay_with_observer(&options, &mut start).unwrap();
    let events = events.take().unwrap();
    let findings = replayed.findings();
    let counters = Counters::of(&findings, replayed.timelines(), false);
    let written = events.finish(&findings, &counters).unwrap();
    (written, replayed)
}

fn line(us: u64, thread: &str, cpu: u32, event: &str) -> String {
    format!("  {thread} [{cpu:03}] ...1. 1.{us:06}: {event}\n")
}

fn mark(us: u64, thread: &str, mark: &str) -> String {
    line(us, thread, 0, &format!("tracing_mark_write: {mark}"))
}

const APP: &str = "app-20 (   20)";
const WORKER: &str = "worker-21 (   20)";
const DRIVER: &str = "driver-7 (    7)";

#[test]
fn a_trace_becomes_slices_tracks_counters_and_events_of_cpus() {
    let text = [
        line(0, "<idle>-0 (-----)", 0, "cpu_idle: state=4294967295 cpu_id=0"),
        line(0, "<idle>-0 (-----)", 0, "cpu_frequency: state=500000 cpu_id=0"),
        mark(1, APP, "B|20|[NN_LR_PE]compute#iter=7#acct=foo#img file=a.png#img-file=b.png"),
        mark(1, WORKER, "B|20|[NN_LC_PCO]conv"),
        mark(2, WORKER, "E|20"),
        mark(3, DRIVER, "B|7|HIDL::IPreparedModel::executeSynchronously::server"),
        mark(3, DRIVER, "B|7|[NN_LD_PE]drive"),
        mark(4, DRIVER, "E|7"),
        mark(4, DRIVER, "E|7"),
        mark(9, APP, "E|20"),
        mark(9, APP, "B|20|[NN_LA_PO]never ended"),
        line(9, "<idle>-0 (-----)", 0, "cpu_idle: state=1 cpu_id=0"),
        line(12, "<idle>-0 (-----)", 0, "cpu_idle: state=4294967295 cpu_id=0"),
    ]
    .concat();
    let bytes = exported(&text);
    assert!(bytes == exported(&text), "two exports differ");
    let packets = decoded(&bytes);

    let [app, worker, driver] =
        [(20, 20), (20, 21), (7, 7)].map(|(pid, tid)| tracks::thread_uuid(ThreadTrack::own(pid, tid)));
    let slice = |track, name: &str, begin: u64, end: Option<u64>, parent: Option<&str>| Slice {
        track,
        name: name.into(),
        begin: 1_000_000_000 + 1_000 * begin,
        end: end.map(|end| 1_000_000_000 + 1_000 * end),
        parent: parent.map(Into::into),
    };
    let call = "HIDL::IPreparedModel::executeSynchronously::server";
    let mut expected = vec![
        slice(app, "compute", 1, Some(9), None),
        slice(app, "never ended", 9, None, None),
        slice(worker, "conv", 1, Some(2), None),
        slice(driver, call, 3, Some(4), None),
        slice(driver, "drive", 3, Some(4), Some(call)),
    ];
    expected.sort();
    let mut found = slices(&packets);
    found.sort();
    assert_eq!(found, expected);

    // Processes in the order of the pipeline, main threads first, clusters last.
    let described: Vec<&TrackDescriptor> =
        packets.iter().filter_map(|packet| packet.track_descriptor.as_ref()).collect();
    let root = described[0];
    assert_eq!((root.uuid, root.process_ordering, root.thread_ordering), (Some(0), Some(1), Some(1)));
    let processes: Vec<_> = described
        .iter()
        .filter_map(|track| {
            let process = track.process.as_ref()?;
            Some((
                process.pid.unwrap(),
                utf8(process.process_name.as_ref().unwrap()),
                track.sibling_order_rank,
            ))
        })
        .collect();
    assert_eq!(processes, [(20, "app", Some(0)), (7, "driver", Some(1))]);
    let threads: Vec<_> = described
        .iter()
        .filter_map(|track| Some((track.thread.as_ref()?.tid.unwrap(), track.sibling_order_rank.unwrap())))
        .collect();
    assert_eq!(threads, [(20, 0), (21, 1), (7, 0)]);
    let named: Vec<_> = described
        .iter()
        .filter_map(|track| Some((utf8(track.name.as_ref()?), track.sibling_order_rank)))
        .collect();
    assert_eq!(
        named,
        [
            ("clusters", Some(2)),
            ("cluster all frequency", Some(0)),
            ("cluster all idle state", Some(1)),
            ("cluster all running CPUs", Some(2)),
        ]
    );

    // Keys of annotations are such that queries know; of two that become one, the last stays,
    // beside the text of both.
    let interned = packets.iter().filter_map(|packet| packet.interned_data.as_ref());
    let keys: Vec<&str> = interned
        .flat_map(|data| &data.debug_annotation_names)
        .filter_map(|key| Some(utf8(key.name.as_ref()?)))
        .collect();
    assert_eq!(keys, ["layer_phase", "class", "iteration", "account", "attributes", "attribute.img_file"]);

    let bundles = packets.iter().filter_map(|packet| packet.ftrace_events.as_ref());
    let events: Vec<_> = bundles.flat_map(|bundle| &bundle.event).collect();
    let of_kind = |kind: &FtraceKind| match kind {
        FtraceKind::CpuIdle(_) => (true, None),
        FtraceKind::CpuFrequency(state) => (false, state.state),
        other => panic!("{other:?}"),
    };
    let kinds: Vec<_> = events.iter().filter_map(|event| event.kind.as_ref().map(of_kind)).collect();
    assert_eq!(kinds.iter().filter(|(is_idle, _)| *is_idle).count(), 3);
    assert_eq!(kinds.iter().find_map(|(_, khz)| *khz), Some(500_000));
    let counters: Vec<i64> =
        packets.iter().filter_map(|packet| packet.track_event.as_ref()?.counter_value).collect();
    assert_eq!(counters, [500_000, 0, 0, 2, 1, 0]);
}

#[test]
fn work_that_is_handed_over_is_a_flow() {
    let text = [
        mark(1, APP, "B|20|[NN_LA_PE]submit"),
        mark(2, APP, "I|20|nn.send#h=5"),
        mark(3, APP, "E|20"),
        mark(4, WORKER, "I|20|nn.recv#h=5"),
        mark(4, WORKER, "B|20|[NN_LR_PE]run"),
        mark(5, WORKER, "E|20"),
    ]
    .concat();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    let events: SharedEvents<Vec<u8>> = Rc::new(RefCell::new(Some(Events::by_end(Vec::new(), None, 0))));
    let mut options = Options { files: vec![file.path().to_owned()], ..Options::default() };
    options.questions.hand_overs = true;
    let replayed = replay::replay_with_observer(&options, &mut || observer(&events)).unwrap();
    let findings = replayed.findings();
    let body = events.take().unwrap().finish(&findings, &none(&findings)).unwrap().out;
    let packets = decoded(&body);
    let events = packets.iter().filter_map(|packet| Some((packet.timestamp?, packet.track_event.as_ref()?)));
    let linked =
        events.filter(|(_, event)| !event.flow_ids.is_empty() || !event.terminating_flow_ids.is_empty());
    let mut found: Vec<_> = linked
        .map(|(time, event)| (time, event.track_uuid, &event.flow_ids[..], &event.terminating_flow_ids[..]))
        .collect();
    // The importer sorts by time: instants stand after all sections.
    found.sort_by_key(|(time, ..)| *time);
    let (app, worker) = (
        Some(tracks::thread_uuid(ThreadTrack::own(20, 20))),
        Some(tracks::thread_uuid(ThreadTrack::own(20, 21))),
    );
    assert_eq!(found, [(1_000_002_000, app, &[1][..], &[][..]), (1_000_004_000, worker, &[], &[1])]);
}

#[test]
fn short_sections_are_hidden_and_counted_but_for_those_of_hand_overs() {
    let text = [
        mark(1, APP, "B|20|[NN_LA_PE]submit"),
        mark(2, APP, "B|20|[NN_LA_PE]inner"),
        mark(4, APP, "E|20"),
        mark(5, APP, "I|20|nn.send#h=5"),
        mark(11, APP, "E|20"),
        mark(14, WORKER, "I|20|nn.recv#h=5"),
        mark(16, WORKER, "B|20|[NN_LR_PE]run"),
        mark(17, WORKER, "E|20"),
    ]
    .concat();
    let names = |least_ns| {
        let (written, _) = replayed(&text, least_ns);
        let names: Vec<String> = slices(&decoded(&written.out)).into_iter().map(|slice| slice.name).collect();
        (names.join(" "), written.hidden.sections, written.hidden.ns)
    };
    assert_eq!(names(0), ("submit inner setup run".into(), 0, 0));
    assert_eq!(names(2_000), names(0));
    assert_eq!(names(2_001), ("submit setup run".into(), 1, 2_000));
    assert_eq!(names(10_001), ("setup run".into(), 2, 12_000));
}

#[test]
fn a_recording_has_its_clocks_and_events_of_cpus_are_of_boot_time() {
    let replayed = replayed(&mark(1, APP, "B|20|[NN_LR_PE]compute"), 0).1;
    let findings = replayed.findings();
    let mut head = Vec::new();
    write_head(&mut head, &findings, Some(&CLOCKS), &[], &none(&findings)).unwrap();
    let head = decoded(&head);
    let snapshot = head[0].clock_snapshot.as_ref().unwrap();
    let read: Vec<_> = snapshot.clocks.iter().map(|clock| (clock.id(), clock.timestamp())).collect();
    assert_eq!(read, [(1, 1_700_000_000_000_000_000), (3, 5_000), (6, 7_000)]);
    assert_eq!(snapshot.primary_trace_clock, Some(3));

    let mut events = Events::of_recording(Vec::new(), &findings, &CLOCKS, &[], 0);
    let idle =
        |cpu, time| Record::Idle(PowerRecord { kind: RecordKind::Idle as u32, cpu, time, state: 1, lost: 0 });
    events.power(&idle(1, 6_000));
    let packets = decoded(&events.finish(&findings, &none(&findings)).unwrap().out);
    assert_eq!(packets[0].trace_packet_defaults.as_ref().unwrap().timestamp_clock_id, Some(3));
    let bundle = packets.iter().find_map(|packet| packet.ftrace_events.as_ref()).unwrap();
    assert_eq!((bundle.cpu, bundle.event[0].timestamp), (Some(1), Some(8_000)));
}

#[test]
fn an_end_that_is_encoded_in_parts_is_the_same_packet() {
    for time in [0, 1, 127, 128, 1_000_000_000, u64::MAX] {
        let mut packets = Packets::new(Vec::new(), None);
        packets.put(&event(time, 1 << 60, EventType::SliceEnd));
        packets.put_end(time, 1 << 60);
        packets.put_end(time, 1 << 60);
        let bytes = packets.finish().unwrap();
        let [_, whole, _, _] = &decoded(&bytes)[..] else { panic!("four packets") };
        let mut one = Vec::new();
        write_packet(&mut one, whole, &mut Vec::new()).unwrap();
        let length = one.len();
        let tail = &bytes[bytes.len() - 3 * length..];
        assert_eq!(tail, one.repeat(3));
    }
}

#[test]
fn events_of_cpus_do_not_pile_up() {
    let mut packets = Packets::new(Vec::new(), None);
    let mut events = KernelEvents::new(0);
    for time in 0..2_000 {
        let record =
            PowerRecord { kind: RecordKind::Idle as u32, cpu: time as u32 % 2, time, state: 0, lost: 0 };
        events.take(&Record::Idle(record), &mut packets);
    }
    events.finish(&mut packets);
    let packets = decoded(&packets.finish().unwrap());
    let bundles: Vec<_> = packets.iter().filter_map(|packet| packet.ftrace_events.as_ref()).collect();
    assert_eq!(bundles.iter().map(|bundle| bundle.event.len()).collect::<Vec<_>>(), [512, 512, 488, 488]);
    for bundle in bundles {
        assert!(bundle.event.is_sorted_by_key(|event| event.timestamp));
    }
}

#[test]
fn a_full_disk_is_an_error() {
    struct Full;
    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let replayed = replayed(&mark(1, APP, "B|20|[NN_LR_PE]compute"), 0).1;
    let findings = replayed.findings();
    let error = Events::by_end(Full, None, 0).finish(&findings, &none(&findings)).err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn names_may_be_anything_and_any_number() {
    let hostile = ["", "\0", "</script>", "\"\\\n", "\u{202e}\u{1f980}"].map(str::to_owned);
    let long = ["x".repeat(1 << 20)];
    let many = (0..70_000).map(|number| number.to_string());
    let names: Vec<String> = hostile.into_iter().chain(long).chain(many).collect();
    let mut packets = Packets::new(Vec::new(), None);
    for (name, time) in names.iter().zip(0..) {
        let label = Label { name: name.into(), ..Label::default() };
        packets.put_labelled(time, 1, EventType::SliceBegin, &label);
        packets.put(&event(time + 1, 1, EventType::SliceEnd));
    }
    let packets = decoded(&packets.finish().unwrap());
    let found: Vec<String> = slices(&packets).into_iter().map(|slice| slice.name).collect();
    assert_eq!(found, names);
    let interned = packets.iter().filter_map(|packet| packet.interned_data.as_ref());
    assert_eq!(interned.map(|data| data.event_names.len()).sum::<usize>(), 1 << 16);
}
