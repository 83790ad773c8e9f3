//! Replays of odd files, found by fuzzing.

use std::io::Write as _;

use nntrace_common::{
    diagnostic::DiagnosticKind,
    layer::{Layer, Phase},
};

use super::{Options, TimeRange, replay};
use crate::report::snapshot::{Snapshot, TableRow, ThreadRow};

mod before_range;
mod division;

fn run(text: &str, range: Option<(u64, u64)>) -> Snapshot {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let range = range.map(|(begin, end)| TimeRange { begin, end });
    let options = Options { files: vec![file.path().to_owned()], range, ..Options::default() };
    Snapshot::of(&replay(&options).unwrap().findings())
}

/// Returns begin and end of the window, and how much of it is accounted for each CPU, ns.
fn told(snapshot: &Snapshot) -> ((u64, u64), Vec<u64>) {
    let of_cpu = snapshot.cpus.iter().map(|cpu| {
        let running: u64 = cpu.running.iter().map(|row| row.ns).sum();
        let idle: u64 = cpu.idle.iter().map(|row| row.ns).sum();
        running + idle + cpu.idle_unknown_ns + cpu.offline_ns + cpu.unknown_ns
    });
    ((snapshot.window.begin_ns, snapshot.window.end_ns), of_cpu.collect())
}

/// Returns the error of a replay of this text.
fn refused(text: &str) -> String {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let options = Options { files: vec![file.path().to_owned()], ..Options::default() };
    replay(&options).err().expect("a refusal").to_string()
}

#[test]
fn a_file_without_anything_to_show_is_refused_with_what_it_is() {
    let others = "a-1 [000] 1.0: irq_handler_entry: irq=7\na-1 [000] 1.5: irq_handler_exit: irq=7\n";
    let error = refused(others);
    assert!(error.contains("only 2 others, such as irq_handler_entry"), "{error}");
    let error = refused("{\"traceEvents\": [{\"name\": \"conv [0] 12.5: x\"}]}");
    assert!(error.contains("is a trace in JSON"), "{error}");
    let error = refused(
        "INFO worker [3] 12.500: loading\nWARN worker [3] 13.1: tracing_mark_write: B|1|[NN_LR_PE]x\n",
    );
    assert!(error.contains("2 lines in no format that is known"), "{error}");
}

#[test]
fn the_text_of_ftrace_in_json_is_read() {
    let text = r##"{"traceEvents":[],"systemTraceEvents":"# tracer: nop\na-1 (1) [000] 1.0: tracing_mark_write: B|1|[NN_LR_PE]x\na-1 (1) [000] 2.0: tracing_mark_write: E|1\n"}"##;
    let is_noted = |snapshot: &Snapshot| snapshot.notes.iter().any(|note| note.contains("`traceEvents`"));
    for (text, has_others) in [(text.to_owned(), false), (text.replace("[]", r#"[{"ph":"X"}]"#), true)] {
        let snapshot = run(&text, None);
        assert_eq!(snapshot.phases[0].total_ns, 1_000_000_000);
        assert_eq!(is_noted(&snapshot), has_others, "{:?}", snapshot.notes);
    }
}

#[test]
fn a_trace_of_impossible_cpus_alone_is_refused_with_them() {
    let text =
        "a-1 [4294967294] 3.0: cpu_idle: state=1 cpu_id=0\na-1 [4294967294] 4.0: tracing_mark_write: E|1\n";
    let error = refused(text);
    let expected =
        "each of its 2 events is of a CPU that no machine has, first CPU 4294967294 in an event of thread 1";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn known_events_that_cannot_be_used_are_counted() {
    let text = "a-1 [000] 1.0: cpu_idle: state=1 cpu_id=0\na-1 [000] 1.5: sched_switch: prev_comm=a prev_pid=x\n\
                a-1 [000] 1.6: sched_waking: comm=a\na-1 [000] 2.0: irq_handler_entry: irq=7\n\
                a-1 [4294967294] 3.0: cpu_idle: state=1 cpu_id=0\n";
    let snapshot = run(text, None);
    let kinds: Vec<_> = snapshot.diagnostics.iter().map(|row| (row.kind, row.count)).collect();
    assert_eq!(kinds, [(DiagnosticKind::CpuOutOfRange, 1), (DiagnosticKind::UnusableEvent, 2)]);
    assert_eq!(snapshot.diagnostics[1].example, "sched_switch: prev_comm=a prev_pid=x");
}

#[test]
fn a_reading_is_no_newer_than_an_event_before_it() {
    let text = "a-1 [000] 1.0: tracing_mark_write: cpu_frequency_devlib: state=1200 cpu_id=0\n\
                a-1 [000] 2.0: cpu_frequency: state=600 cpu_id=0\n\
                a-1 [000] 3.0: tracing_mark_write: cpu_frequency_devlib: state=1200 cpu_id=0\n\
                <idle>-0 [000] 4.0: cpu_idle: state=0 cpu_id=0\n";
    let running = &run(text, None).cpus[0].running;
    let rows: Vec<_> = running.iter().map(|row| (row.khz, row.ns / 1_000_000_000)).collect();
    assert_eq!(rows, [(Some(600), 2), (Some(1200), 1)]);
}

/// Nothing shows the end of the first one: the switch of the second one shows its process.
#[test]
fn a_thread_id_that_is_used_again_has_the_time_and_the_name_of_each() {
    let switch = |at: u32, from: &str, to: &str, pid: &str| {
        let (prev, next) = (from.split_once('-').expect("an id"), to.split_once('-').expect("an id"));
        format!(
            "{from} ({pid}) [000] {at}.0: sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state=S ==> \
             next_comm={} next_pid={} next_prio=120\n",
            prev.0, prev.1, next.0, next.1
        )
    };
    let text = switch(1, "swapper-0", "old-7", "-----")
        + "old-7 (7) [000] 1.5: tracing_mark_write: B|7|[NN_LR_PE]run\n"
        + "old-7 (7) [000] 2.0: tracing_mark_write: E|7\n"
        + &switch(4, "old-7", "swapper-0", "7")
        + &switch(10, "swapper-0", "new-7", "-----")
        + "new-7 (5) [000] 11.0: tracing_mark_write: B|5|[NN_LR_PE]run\n"
        + "new-7 (5) [000] 12.0: tracing_mark_write: E|5\n"
        + &switch(16, "new-7", "swapper-0", "5");
    let snapshot = run(&text, None);
    let rows = snapshot.threads.iter().map(|row| (row.pid, &*row.comm, row.on_cpu_ns / 1_000_000_000));
    assert_eq!(rows.collect::<Vec<_>>(), [(5, "new", 6), (7, "old", 3)]);
    let usage = snapshot.usage.expect("usage");
    let rows = usage.phases.iter().map(|row| (row.pid, row.phase, row.usage.on_cpu_ns / 1_000_000));
    let execution = Some(Phase::Execution);
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [(5, execution, 1_000), (5, None, 5_000), (7, execution, 500), (7, None, 2_500)]
    );
}

#[test]
fn threads_of_two_processes_may_have_one_id() {
    let mark =
        |at: u32, pid: u32, text: &str| format!("w-7 ({pid}) [000] {at}.0: tracing_mark_write: {text}\n");
    let text = mark(1, 5, "B|5|[NN_LR_PE]run")
        + &mark(2, 6, "B|6|[NN_LC_PE]serve")
        + &mark(5, 5, "E|5")
        + &mark(6, 6, "E|6")
        + &mark(7, 5, "B|5|[NN_LR_PE]run")
        + &mark(8, 5, "E|5");
    let snapshot = run(&text, None);
    let rows: Vec<_> =
        snapshot.phases.iter().map(|row| (row.pid, row.count, row.total_ns / 1_000_000_000)).collect();
    assert_eq!(rows, [(5, 2, 5), (6, 1, 4)]);
    assert!(snapshot.diagnostics.is_empty(), "{:?}", snapshot.diagnostics);
}

#[test]
fn a_range_begins_with_what_went_on_before_it() {
    let text =
        "a-1 [000] 1.0: cpu_idle: state=1 cpu_id=0\na-1 [000] 5.0: cpu_idle: state=4294967295 cpu_id=0\n";
    let second = 1_000_000_000;
    let snapshot = run(text, Some((2 * second, 9 * second)));
    assert_eq!(told(&snapshot), ((2 * second, 5 * second), vec![3 * second]));
}

/// Payload of the begin of an interface call.
const CALL: &str = "B|1|HIDL::IDevice::prepareModel::client";

/// Returns the number of interface calls that a thread's marks count, and of odd marks, if these follow a call, an end and
/// an end of nothing.
fn counted(marks: &[&str]) -> (u64, u64) {
    let payloads = [&[CALL, "E", "E"], marks].concat();
    let line =
        |(at, payload): (usize, &&str)| format!("a-1 (1) [000] {at}.0: tracing_mark_write: {payload}\n");
    let snapshot = run(&payloads.iter().enumerate().map(line).collect::<String>(), None);
    let odd = snapshot.diagnostics.iter().filter(|row| row.kind != DiagnosticKind::OpenAtEnd);
    (snapshot.functions.iter().map(|row| row.count).sum(), odd.map(|row| row.count).sum())
}

#[test]
fn a_thread_takes_part_by_its_own_tags_known_and_unknown() {
    assert_eq!(counted(&[]), (0, 0));
    assert_eq!(counted(&["B|1|of somebody else"]), (0, 0));
    assert_eq!(counted(&["B|1|[NN_LR_PE]open"]), (1, 1));
    assert_eq!(counted(&["B|1|[NN_LQ_PE]open"]), (1, 2));
}

#[test]
fn what_is_lost_behind_the_range_does_not_lengthen_it() {
    let text = "a-1 [000] 3.0: cpu_idle: state=2 cpu_id=0\na-1 [000] 1.0: cpu_idle: state=1 cpu_id=0\n\
                a-1 [000] 7.0: x\nCPU:0 [LOST 5 EVENTS]\n";
    let second = 1_000_000_000;
    let snapshot = run(text, Some((2 * second, 4 * second)));
    assert_eq!(told(&snapshot), ((2 * second, 4 * second), vec![2 * second]));
    assert_eq!(snapshot.loss.records_dropped, 0);
}

#[test]
fn no_time_is_too_long() {
    let line = |tid: u32, seconds: u64, text: &str| format!("a-{tid} [000] {seconds}.0: {text}\n");
    let mut text = line(1, 0, "cpu_idle: state=1 cpu_id=0");
    for tid in 1..5 {
        text += &line(tid, 0, "tracing_mark_write: B|1|[NN_LR_PE]f#iter=1#acct=a");
        text += &line(tid, 0, "tracing_mark_write: S|1|s|1");
    }
    let last = i64::MAX.cast_unsigned() / 1_000_000_000 - 1;
    for tid in 1..5 {
        text += &line(tid, last, "tracing_mark_write: F|1|s|1");
        text += &line(tid, last, "tracing_mark_write: E|1");
    }
    // The kernel's clocks do not reach that far.
    text += &line(1, last + 1, "cpu_idle: state=4294967295 cpu_id=0");
    let snapshot = run(&text, None);
    let window = last * 1_000_000_000;
    assert_eq!(told(&snapshot), ((0, window), vec![window]));
    assert_eq!(snapshot.phases.iter().map(|row| row.total_ns).max(), Some(u64::MAX));
    assert_eq!(snapshot.reports[0].total_ns.get(TableRow::Layer(Layer::Runtime), Phase::Execution), i64::MAX);
    assert_eq!(snapshot.tracks[0].slices_ns, u64::MAX);
}

#[test]
fn more_can_be_lost_than_can_be_counted() {
    let lost = "CPU:0 [LOST 9999999999999999999 EVENTS]\n";
    let snapshot = run(
        &["a-1 [000] 1.0: cpu_idle: state=1 cpu_id=0\n", lost, lost, lost, "CPU:1 [LOST 9 EVENTS]\n"]
            .concat(),
        None,
    );
    assert_eq!((snapshot.loss.records_dropped, snapshot.loss.records_produced), (u64::MAX, u64::MAX));
}

#[test]
fn context_switches_show_when_threads_ran_waited_and_slept() {
    let text = "\
     <idle>-0     (-----) [000] 1.000000: sched_wakeup: comm=a b pid=7 prio=120 target_cpu=000
     <idle>-0     (-----) [000] 1.000010: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a b next_pid=7 next_prio=120
        a b-7     (    5) [000] 1.000030: sched_switch: a b:7 [120] R+ ==> other:9 [120]
      other-9     (    9) [000] 1.000060: sched_switch: prev_comm=other prev_pid=9 prev_prio=120 prev_state=Z ==> next_comm=a b next_pid=7 next_prio=120
        a b-7     (    5) [000] 1.000100: sched_switch: prev_comm=a c prev_pid=7 prev_prio=120 prev_state=D ==> next_comm=swapper/0 next_pid=0 next_prio=120
     <idle>-0     (-----) [001] 1.000150: sched_waking: comm=a c pid=7 prio=120 target_cpu=000
     <idle>-0     (-----) [001] 1.000160: sched_wakeup: a c:7 [120] CPU:000
     <idle>-0     (-----) [000] 1.000170: sched_switch: swapper/0:0 [120] R ==> a c:7 [120]
        a c-7     (    5) [000] 1.000200: x
";
    let rows = run(text, None).threads;
    let row = |pid, tid, comm: &str, [on_cpu_us, runnable_us, deep_us, unknown_us]: [u64; 4]| ThreadRow {
        pid,
        tid,
        comm: comm.into(),
        on_cpu_ns: on_cpu_us * 1_000,
        runnable_ns: runnable_us * 1_000,
        sleeping_ns: 0,
        uninterruptible_ns: deep_us * 1_000,
        unknown_ns: unknown_us * 1_000,
    };
    // When it was last seen to leave a CPU it had another name than before.
    let expected =
        [row(5, 7, "a c", [20 + 40 + 30, 10 + 30 + 20, 50, 0]), row(9, 9, "other", [30, 0, 0, 30])];
    assert_eq!(rows, expected);
    // With marks in the trace, only the processes that write them are shown.
    let mark = "other-9 (9) [001] 1.000040: tracing_mark_write: B|9|[NN_LR_PE]f\n";
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let rows = run(&[&lines[..3].concat(), mark, &lines[3..].concat()].concat(), None).threads;
    assert_eq!(rows, [row(9, 9, "other", [30, 0, 0, 30])]);
}

/// A thread that wrote marks exits: what it did stays with its process.
#[test]
fn a_process_outlives_a_thread_of_it() {
    let text = "\
        app-5    (    5) [000] 1.000000: sched_switch: prev_comm=swapper prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=app next_pid=5 next_prio=120
        app-5    (    5) [000] 1.000010: sched_switch: prev_comm=app prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=w next_pid=7 next_prio=120
          w-7    (    5) [000] 1.000020: tracing_mark_write: B|5|[NN_LD_PE]work
          w-7    (    5) [000] 1.000050: tracing_mark_write: E|5
          w-7    (    5) [000] 1.000060: sched_process_exit: comm=w pid=7 prio=120
          w-7    (    5) [000] 1.000070: sched_switch: prev_comm=w prev_pid=7 prev_prio=120 prev_state=X ==> next_comm=swapper next_pid=0 next_prio=120
";
    let snapshot = run(text, None);
    let rows: Vec<_> = snapshot.threads.iter().map(|row| (row.pid, row.tid, row.on_cpu_ns)).collect();
    assert_eq!(rows, [(5, 5, 10_000), (5, 7, 60_000)]);
}

/// In a container, another process of the host may have a thread with the same id.
#[test]
fn a_thread_ends_with_its_own_exit_only() {
    let text = "\
        run-7    (    5) [000] 1.000000: tracing_mark_write: B|5|[NN_LR_PE]run
     kworker-7   (    7) [001] 1.000100: sched_process_exit: comm=kworker pid=7 prio=120
        run-7    (    5) [000] 1.000400: tracing_mark_write: E|5
        run-7    (    5) [000] 1.000500: tracing_mark_write: B|5|[NN_LR_PE]run
        run-7    (    5) [001] 1.000600: sched_process_exit: comm=run pid=7 prio=120
        run-7    (    5) [000] 1.000700: tracing_mark_write: E|5
";
    let snapshot = run(text, None);
    let rows: Vec<_> = snapshot.functions.iter().map(|row| (&*row.name, row.count, row.total_ns)).collect();
    assert_eq!(rows, [("run", 1, 400_000)]);
    let kinds: Vec<_> = snapshot.diagnostics.iter().map(|row| (row.kind.name(), row.count)).collect();
    assert_eq!(kinds, [("open_at_end", 1)]);
}

/// A thread other than the leader: the program continues under the leader's id, and the thread's own id is gone.
#[test]
fn a_thread_that_execs_ends_when_the_new_program_begins() {
    let text = "\
        app-7    (    5) [000] 1.000000: sched_wakeup_new: comm=app pid=7 prio=120 target_cpu=001
     <idle>-0    (-----) [001] 1.000010: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=app next_pid=7 next_prio=120
        app-5    (    5) [000] 1.000015: sched_switch: prev_comm=app prev_pid=5 prev_prio=120 prev_state=X ==> next_comm=swapper/0 next_pid=0 next_prio=120
       true-5    (    5) [001] 1.000030: sched_process_exec: filename=/bin/true pid=5 old_pid=7
       true-5    (    5) [001] 1.000070: sched_switch: prev_comm=true prev_pid=5 prev_prio=120 prev_state=X ==> next_comm=swapper/1 next_pid=0 next_prio=120
     <idle>-0    (-----) [001] 1.900000: x
";
    let snapshot = run(text, None);
    let rows =
        snapshot.threads.iter().map(|row| (row.pid, row.tid, row.runnable_ns, row.on_cpu_ns, row.unknown_ns));
    // Only the end of the leader is known.
    let expected = [(5, 5, 0, 0, 15_000), (5, 5, 0, 40_000, 0), (5, 7, 10_000, 20_000, 0)];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
    assert!(
        !snapshot.notes.iter().any(|note| note.contains("not shown by the kernel")),
        "{:?}",
        snapshot.notes
    );
}
