//! Traces made by the schema, against the text of the same events.

mod damage;
mod programs;

use std::io::Write as _;

use bytes::Bytes;

use crate::{
    perfetto_schema::{
        BOOTTIME, Clock, ClockSnapshot, MONOTONIC, ProcessTree, TracePacket, TreeProcess, TreeThread,
        ftrace::{
            BinderTransaction, BinderTransactionReceived, CompactSched, CpuState, CpuhpEnter, CpuhpExit,
            FtraceCpuStats, FtraceEvent, FtraceEventBundle, FtraceKind, FtraceStats, Generic, GenericField,
            GenericValue, Print, SchedProcessExec, SchedProcessExit, SchedProcessFork, SchedSwitch,
            SchedWakeup,
        },
    },
    replay::{Options, replay},
    report::snapshot::Snapshot,
};
use prost::Message;

/// First instant of the traces, ns.
const START: u64 = 1_000_000_000;

/// File of packets.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

fn file(packets: &[TracePacket]) -> Vec<u8> {
    Trace { packet: packets.to_vec() }.encode_to_vec()
}

/// Returns the snapshot of a file, without its name.
fn snapshot(bytes: &[u8]) -> Snapshot {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let options = Options { files: vec![file.path().to_owned()], ..Options::default() };
    let mut snapshot = Snapshot::of(&replay(&options).unwrap().findings());
    snapshot.source.files.clear();
    for note in &mut snapshot.notes {
        *note = note.replace(&file.path().display().to_string(), "FILE");
    }
    snapshot
}

/// Returns a line of text, this many us after the start.
fn line(us: u64, task: &str, cpu: u32, event: &str) -> String {
    let ns = START + us * 1_000;
    format!("{task} [{cpu:03}] d..1. {}.{:09}: {event}\n", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Returns an event of the kernel, this many us after the start.
fn event(us: u64, tid: u32, kind: FtraceKind) -> FtraceEvent {
    FtraceEvent { timestamp: Some(START + us * 1_000), pid: Some(tid), kind: Some(kind), other: None }
}

fn print(us: u64, tid: u32, text: &str) -> FtraceEvent {
    let buf = Some(Bytes::copy_from_slice(format!("{text}\n").as_bytes()));
    event(us, tid, FtraceKind::Print(Print { buf }))
}

fn idle(us: u64, cpu: u32, state: u32) -> FtraceEvent {
    event(us, 0, FtraceKind::CpuIdle(CpuState { state: Some(state), cpu_id: Some(cpu) }))
}

fn switch(us: u64, prev: (u32, &str), state: i64, next: (u32, &str)) -> FtraceEvent {
    let name = |name: &str| Some(Bytes::copy_from_slice(name.as_bytes()));
    event(
        us,
        prev.0,
        FtraceKind::SchedSwitch(SchedSwitch {
            prev_comm: name(prev.1),
            prev_pid: Some(prev.0.cast_signed()),
            prev_prio: Some(120),
            prev_state: Some(state),
            next_comm: name(next.1),
            next_pid: Some(next.0.cast_signed()),
            next_prio: Some(120),
        }),
    )
}

fn bundle(cpu: u32, events: Vec<FtraceEvent>) -> TracePacket {
    let bundle = FtraceEventBundle { cpu: Some(cpu), event: events, ..FtraceEventBundle::default() };
    TracePacket { ftrace_events: Some(bundle), trusted_packet_sequence_id: Some(1), ..TracePacket::default() }
}

/// Returns a tree with these threads: id, process, name.
fn tree(threads: &[(i32, i32, &'static str)]) -> TracePacket {
    let of = |&(tid, tgid, name): &(i32, i32, &'static str)| TreeThread {
        tid: Some(tid),
        tgid: Some(tgid),
        name: Some(Bytes::from(name)),
    };
    let tree = ProcessTree { threads: threads.iter().map(of).collect(), processes: Vec::new() };
    TracePacket { process_tree: Some(tree), ..TracePacket::default() }
}

#[test]
fn bundles_that_overlap_are_what_the_text_is() {
    let wakeup =
        SchedWakeup { comm: Some("worker".into()), pid: Some(21), prio: Some(120), target_cpu: Some(1) };
    let of_cpu_0 = vec![
        idle(0, 0, u32::MAX),
        event(1, 20, FtraceKind::CpuFrequency(CpuState { state: Some(500_000), cpu_id: Some(0) })),
        print(2, 20, "B|20|[NN_LA_PE]run#iter=1"),
        event(
            3,
            20,
            FtraceKind::SchedProcessFork(SchedProcessFork { parent_pid: Some(20), child_pid: Some(21) }),
        ),
        event(4, 20, FtraceKind::SchedWakeup(wakeup.clone())),
        event(
            5,
            20,
            FtraceKind::BinderTransaction(BinderTransaction {
                debug_id: Some(7),
                reply: Some(0),
                flags: Some(0),
            }),
        ),
        switch(9, (20, "app"), 1, (0, "swapper/0")),
        idle(10, 0, 2),
        event(11, 0, FtraceKind::CpuhpEnter(CpuhpEnter { cpu: Some(1), idx: Some(87), target: Some(0) })),
        event(
            40,
            0,
            FtraceKind::CpuhpExit(CpuhpExit { cpu: Some(1), idx: Some(87), ret: Some(0), state: Some(86) }),
        ),
        idle(41, 0, u32::MAX),
        switch(42, (0, "swapper/0"), 0, (20, "app")),
        print(43, 20, "E|20"),
        event(44, 20, FtraceKind::SchedProcessExec(SchedProcessExec { pid: Some(20), old_pid: Some(20) })),
        event(45, 20, FtraceKind::SchedProcessExit(SchedProcessExit { pid: Some(20) })),
    ];
    let received = BinderTransactionReceived { debug_id: Some(7) };
    let of_cpu_1 = vec![
        switch(6, (0, "swapper/1"), 0, (21, "worker")),
        event(7, 21, FtraceKind::BinderTransactionReceived(received)),
        print(8, 21, "B|20|[NN_LR_PE]compute"),
        print(20, 21, "C|20|queue|3"),
        print(30, 21, "E|20"),
        switch(31, (21, "worker"), 2, (0, "swapper/1")),
        idle(32, 1, 0),
    ];
    let packets = [tree(&[(20, 20, "app"), (21, 20, "worker")]), bundle(0, of_cpu_0), bundle(1, of_cpu_1)];
    let (idle_0, app, idle_1, worker) =
        ("<idle>-0 (-----)", "app-20 (20)", "<idle>-0 (-----)", "worker-21 (20)");
    let switched = |prev: &str, state: u32, next: &str| {
        let half = |which: &str, task: &str| {
            let (name, tid) = task.rsplit_once('-').unwrap();
            format!("{which}_comm={name} {which}_pid={tid} {which}_prio=120")
        };
        format!("sched_switch: {} prev_state={state} ==> {}", half("prev", prev), half("next", next))
    };
    let text = [
        line(0, idle_0, 0, "cpu_idle: state=4294967295 cpu_id=0"),
        line(1, app, 0, "cpu_frequency: state=500000 cpu_id=0"),
        line(2, app, 0, "tracing_mark_write: B|20|[NN_LA_PE]run#iter=1"),
        line(3, app, 0, "sched_process_fork: comm=app pid=20 child_comm=app child_pid=21"),
        line(4, app, 0, "sched_wakeup: comm=worker pid=21 prio=120 target_cpu=001"),
        line(
            5,
            app,
            0,
            "binder_transaction: transaction=7 dest_node=1 dest_proc=20 dest_thread=0 reply=0 flags=0x0 code=0x1",
        ),
        line(6, idle_1, 1, &switched("swapper/1-0", 0, "worker-21")),
        line(7, worker, 1, "binder_transaction_received: transaction=7"),
        line(8, worker, 1, "tracing_mark_write: B|20|[NN_LR_PE]compute"),
        line(9, app, 0, &switched("app-20", 1, "swapper/0-0")),
        line(10, idle_0, 0, "cpu_idle: state=2 cpu_id=0"),
        line(11, idle_0, 0, "cpuhp_enter: cpu: 0001 target: 0 step: 87 (takedown_cpu)"),
        line(20, worker, 1, "tracing_mark_write: C|20|queue|3"),
        line(30, worker, 1, "tracing_mark_write: E|20"),
        line(31, worker, 1, &switched("worker-21", 2, "swapper/1-0")),
        line(32, idle_1, 1, "cpu_idle: state=0 cpu_id=1"),
        line(40, idle_0, 0, "cpuhp_exit: cpu: 0001 state: 86 step: 87 ret: 0"),
        line(41, idle_0, 0, "cpu_idle: state=4294967295 cpu_id=0"),
        line(42, idle_0, 0, &switched("swapper/0-0", 0, "app-20")),
        line(43, app, 0, "tracing_mark_write: E|20"),
        line(44, app, 0, "sched_process_exec: filename=/bin/app pid=20 old_pid=20"),
        line(45, app, 0, "sched_process_exit: comm=app pid=20 prio=120"),
    ];
    let expected = snapshot(text.concat().as_bytes());
    assert!(
        expected.threads.len() == 2 && expected.cpus.len() == 2 && expected.counters.len() == 1,
        "{expected:?}"
    );
    assert!(expected.cpus[1].offline_ns > 0);
    assert_eq!(snapshot(&file(&packets)), expected);
    let mut other_way = packets.clone();
    other_way.reverse();
    assert_eq!(snapshot(&file(&other_way)), expected);
}

#[test]
fn columns_of_switches_and_wakings_are_what_single_events_are() {
    let sched = CompactSched {
        intern_table: vec![Bytes::from("app"), Bytes::from("swapper/0")],
        switch_timestamp: vec![START + 1_000, 4_000, 5_000],
        switch_prev_state: vec![0, 1, 0],
        switch_next_pid: vec![20, 0, 20],
        switch_next_prio: vec![120, 120, 120],
        switch_next_comm_index: vec![0, 1, 0],
        waking_timestamp: vec![START + 8_000],
        waking_pid: vec![20],
        waking_target_cpu: vec![0],
        waking_prio: vec![120],
        waking_comm_index: vec![0],
    };
    let mut compact = bundle(0, vec![print(2, 20, "B|20|[NN_LR_PE]f"), print(11, 20, "E|20")]);
    compact.ftrace_events.as_mut().unwrap().compact_sched = Some(sched);
    let waking =
        SchedWakeup { comm: Some("app".into()), pid: Some(20), prio: Some(120), target_cpu: Some(0) };
    let single = bundle(
        0,
        vec![
            switch(1, (0, "swapper/0"), 0, (20, "app")),
            print(2, 20, "B|20|[NN_LR_PE]f"),
            switch(5, (20, "app"), 1, (0, "swapper/0")),
            event(8, 0, FtraceKind::SchedWaking(waking)),
            switch(10, (0, "swapper/0"), 0, (20, "app")),
            print(11, 20, "E|20"),
        ],
    );
    let names = tree(&[(20, 20, "app")]);
    let expected = snapshot(&file(&[names.clone(), single]));
    assert_eq!(expected.threads.len(), 1);
    assert_eq!(snapshot(&file(&[names, compact])), expected);
}

#[test]
fn events_in_other_messages_are_read_and_others_are_counted() {
    let field = |name: &'static str, value| GenericField { name: Some(name.into()), value: Some(value) };
    let generic = Generic {
        event_name: Some("sched_process_exit".into()),
        field: vec![field("comm", GenericValue::Text("app".into())), field("pid", GenericValue::Signed(20))],
    };
    let unknown = FtraceEvent { timestamp: Some(START), pid: Some(20), kind: None, other: None };
    let packets =
        [bundle(0, vec![unknown, event(9, 20, FtraceKind::Generic(generic)), print(10, 20, "E|20")])];
    let snapshot = snapshot(&file(&packets));
    assert_eq!((snapshot.window.begin_ns, snapshot.window.end_ns), (START, START + 10_000));
    assert_eq!(snapshot.loss.records_drained, 3);
}

#[test]
fn the_name_of_a_process_is_its_thread_s_or_its_program_s() {
    let process = |pid, path: &'static str| TreeProcess { pid: Some(pid), cmdline: vec![Bytes::from(path)] };
    let mut described = tree(&[(21, 20, "worker")]);
    described.process_tree.as_mut().unwrap().processes =
        vec![process(20, "/usr/bin/a-program-with-a-long-name")];
    let marks =
        vec![print(0, 20, "B|20|[NN_LR_PE]f"), print(1, 20, "E|20"), print(2, 21, "B|20|[NN_LR_PE]f")];
    let snapshot = snapshot(&file(&[bundle(0, marks), described]));
    assert_eq!(snapshot.phases[0].comm, "a-program-with-");
}

/// Returns a snapshot of the monotonic clock and the boot time.
fn clocks(monotonic: u64, boot: u64, primary: Option<u32>) -> TracePacket {
    let clock = |(id, time)| Clock { id: Some(id), timestamp: Some(time), ..Clock::default() };
    let clocks = [(MONOTONIC, monotonic), (BOOTTIME, boot)].map(clock).to_vec();
    TracePacket {
        clock_snapshot: Some(ClockSnapshot { clocks, primary_trace_clock: primary }),
        ..TracePacket::default()
    }
}

#[test]
fn times_are_those_of_the_trace_s_clock() {
    let marks = bundle(0, vec![print(5, 20, "B|20|[NN_LR_PE]f"), print(9, 20, "E|20")]);
    let expected = snapshot(&file(std::slice::from_ref(&marks)));
    assert_eq!(expected.window.begin_ns, START + 5_000);
    assert_eq!(snapshot(&file(&[marks.clone(), clocks(1, 1_001, None)])), expected);
    let shifted = snapshot(&file(&[marks.clone(), clocks(1, 1_001, Some(MONOTONIC))]));
    assert_eq!((shifted.window.begin_ns, shifted.window.end_ns), (START + 4_000, START + 8_000));
    // The clock of the kernel's tracing, by the readings in the bundle.
    let mut global = marks;
    let bundle = global.ftrace_events.as_mut().unwrap();
    (bundle.ftrace_clock, bundle.ftrace_timestamp, bundle.boot_timestamp) =
        (Some(2), Some(3_000), Some(1_000));
    let shifted = snapshot(&file(&[global]));
    assert_eq!((shifted.window.begin_ns, shifted.window.end_ns), (START + 3_000, START + 7_000));
}

#[test]
fn what_no_snapshot_relates_is_counted_and_told() {
    let marks = |clock, events| {
        let mut packet = bundle(0, events);
        packet.ftrace_events.as_mut().unwrap().ftrace_clock = clock;
        packet
    };
    let section = vec![print(5, 20, "B|20|[NN_LR_PE]f"), print(9, 20, "E|20")];
    let snapshot = snapshot(&file(&[marks(None, section.clone()), marks(Some(3), section)]));
    assert_eq!((snapshot.loss.records_drained, snapshot.loss.records_dropped), (2, 2));
    let note = "FILE: read only in part: 2 events have times of clock of ftrace, number 3 that no clock snapshot relates to \
                the trace's clock, boot: they are left out";
    assert!(snapshot.notes.iter().any(|told| told == note), "{:?}", snapshot.notes);
}

#[test]
fn losses_are_those_of_the_kernel_s_buffers() {
    let lines = [
        line(0, "<idle>-0", 0, "cpu_idle: state=1 cpu_id=0"),
        line(1, "<idle>-0", 1, "cpu_idle: state=1 cpu_id=1"),
        "CPU:1 [LOST EVENTS]\n".to_owned(),
        line(7, "<idle>-0", 1, "cpu_idle: state=4294967295 cpu_id=1"),
        line(9, "<idle>-0", 0, "cpu_idle: state=4294967295 cpu_id=0"),
    ];
    let mut lost = bundle(1, vec![idle(7, 1, u32::MAX)]);
    lost.ftrace_events.as_mut().unwrap().lost_events = Some(true);
    let packets =
        [bundle(0, vec![idle(0, 0, 1), idle(9, 0, u32::MAX)]), bundle(1, vec![idle(1, 1, 1)]), lost];
    let expected = snapshot(lines.concat().as_bytes());
    assert!(expected.loss.records_dropped == 1 && expected.cpus[1].unknown_ns == 6_000, "{expected:?}");
    assert_eq!(snapshot(&file(&packets)), expected);

    let stats = |phase, overrun, dropped| {
        let cpu = FtraceCpuStats {
            cpu: Some(1),
            overrun: Some(overrun),
            commit_overrun: None,
            dropped_events: Some(dropped),
        };
        let stats = FtraceStats { phase: Some(phase), cpu_stats: vec![cpu] };
        TracePacket { ftrace_stats: Some(stats), ..TracePacket::default() }
    };
    let counted = [&packets[..], &[stats(1, 100, 3), stats(2, 140, 5)]].concat();
    let snapshot = snapshot(&file(&counted));
    assert_eq!((snapshot.loss.records_dropped, snapshot.loss.at_least), (42, false));
    assert_eq!(snapshot.loss.dropped_by_cpu, [(1, 42)].into());
}
