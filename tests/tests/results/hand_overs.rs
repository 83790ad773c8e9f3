//! The split of hand-overs, in traces small enough to work out by hand: one for each row of the rules in docs/hand-overs.md.
//! Wake-ups, which traces lack, are the real kernel's.

use anyhow::{Context as _, Result};
use nntrace_common::layer::Layer;
use nntrace_tests::{
    child::Child,
    live,
    profiler::Profiler,
    trace::{self, line},
};
use nntrace_user::{
    model::causality::Questions,
    replay::Options,
    report::snapshot::{HandOverEvidence, HandOverPair, HandOverPart, HandOverSplit, Snapshot},
};

const APP: u32 = 20;
const DRIVER: u32 = 90;
const EXECUTE: &str = "HIDL::IPreparedModel::executeSynchronously";

/// Mark of a thread: time (ns), thread, process, payload without the process.
type Mark<'a> = (u64, u32, u32, &'a str);

fn text(marks: &[Mark<'_>]) -> String {
    let mut marks = marks.to_vec();
    marks.sort_by_key(|mark| mark.0);
    let line = |(time, tid, pid, payload): Mark<'_>| {
        let payload = match payload.split_once('|') {
            Some((kind, rest)) => format!("{kind}|{pid}|{rest}"),
            None if payload == "E" => format!("E|{pid}"),
            // Another event than a mark.
            None => {
                let marks = line(time, tid, pid, "");
                return format!("{}{payload}", marks.trim_end().trim_end_matches("tracing_mark_write:"));
            }
        };
        line(time, tid, pid, &payload)
    };
    marks.into_iter().map(|mark| line(mark) + "\n").collect()
}

fn snapshot(text: &str) -> Result<Snapshot> {
    let questions = Questions { hand_overs: true, ..Questions::default() };
    trace::replay_with(text, &Options { questions, ..Options::default() })
}

fn split(marks: &[Mark<'_>]) -> Result<HandOverSplit> {
    snapshot(&text(marks))?.hand_over_split.context("no hand-overs were asked for")
}

fn only(split: &HandOverSplit) -> &HandOverPair {
    let [pair] = &split.pairs[..] else { panic!("not one row: {split:#?}") };
    pair
}

/// Sums of propagation, setup, head, execution, tail and latency, ns.
fn sums(pair: &HandOverPair) -> [Option<u128>; 6] {
    pair.parts().map(|(_, part)| part.map(|part| part.sum_ns))
}

/// A call from a thread of the application that a driver's thread serves: begin of the client, of the server and of the work, end
/// of the work and of the call.
fn call(times: [u64; 5]) -> Vec<(u64, u32, u32, String)> {
    let [dispatch, receive, start, end, finish] = times;
    let mark = |time, tid, pid, payload: &str| (time, tid, pid, payload.to_owned());
    vec![
        mark(dispatch, 21, APP, &format!("B|{EXECUTE}::client")),
        mark(receive, 91, DRIVER, &format!("B|{EXECUTE}::server")),
        mark(start, 91, DRIVER, "B|[NN_LD_PE]run"),
        mark(end, 91, DRIVER, "E"),
        mark(end, 91, DRIVER, "E"),
        mark(finish, 21, APP, "E"),
    ]
}

/// Marks that make both threads part of the accounting.
const TAKING_PART: [Mark<'static>; 4] = [
    (0, 21, APP, "B|[NN_LA_PI]start"),
    (1, 21, APP, "E"),
    (0, 91, DRIVER, "B|HIDL::IDevice::getStatus::server"),
    (1, 91, DRIVER, "E"),
];

fn with_calls<'a>(calls: &'a [(u64, u32, u32, String)], others: &[Mark<'a>]) -> Vec<Mark<'a>> {
    let calls = calls.iter().map(|(time, tid, pid, payload)| (*time, *tid, *pid, payload.as_str()));
    others.iter().copied().chain(calls).collect()
}

fn of_method<'a>(split: &'a HandOverSplit, name: &str) -> Result<&'a HandOverPair> {
    let found = split.pairs.iter().find(|pair| pair.name.as_deref() == Some(name));
    found.with_context(|| format!("no row of {name}: {split:#?}"))
}

#[test]
fn an_interface_call_is_split_by_the_marks_of_both_sides() -> Result<()> {
    let calls = call([1_000, 1_400, 1_450, 3_000, 3_200]);
    let split = split(&with_calls(&calls, &TAKING_PART))?;
    let pair = of_method(&split, EXECUTE)?;
    assert_eq!(sums(pair), [Some(400), Some(50), Some(450), Some(1_550), Some(200), Some(2_200)]);
    assert_eq!((pair.layers().as_str(), pair.evidence), ("IPC > Driver", HandOverEvidence::Interface));
    assert_eq!((pair.count, pair.gated, split.hb_violations), (1, 0, 0));
    assert_eq!(split.unserved, 0);
    // The server that is called without a client is seen as such.
    assert_eq!(split.uncalled, 1);
    Ok(())
}

#[test]
fn head_is_propagation_and_setup_in_every_row_that_has_them() -> Result<()> {
    let calls: Vec<_> = (0..200_u64)
        .flat_map(|call_number| {
            let at = 10_000 * (call_number + 1);
            // Lengths that have no common divisor.
            call([
                at,
                at + 7 * call_number + 1,
                at + 11 * call_number + 3,
                at + 3_000,
                at + 3_001 + call_number,
            ])
        })
        .collect();
    let split = split(&with_calls(&calls, &TAKING_PART))?;
    let pair = of_method(&split, EXECUTE)?;
    let [propagation, setup, head, execution, tail, latency] = sums(pair).map(Option::unwrap_or_default);
    assert_eq!(pair.count, 200);
    assert_eq!(propagation + setup, head);
    assert_eq!(head + execution + tail, latency);
    assert_eq!(propagation, (0..200_u128).map(|call| 7 * call + 1).sum());
    assert_eq!(setup, (0..200_u128).map(|call| 4 * call + 2).sum());
    Ok(())
}

#[test]
fn what_was_not_seen_is_no_number() -> Result<()> {
    let calls = call([1_000, 1_400, 1_450, 3_000, 3_200]);
    // The driver alone was recorded: its setup is known, and nothing before it.
    let server: Vec<Mark<'_>> =
        with_calls(&calls, &TAKING_PART).into_iter().filter(|mark| mark.2 == DRIVER).collect();
    let alone = split(&server)?;
    let pair = of_method(&alone, EXECUTE)?;
    assert_eq!(sums(pair), [None, Some(50), None, Some(1_550), None, None]);
    assert_eq!((pair.layers().as_str(), alone.uncalled), ("- > Driver", 2));
    // The application alone: how long the call took, and nothing inside.
    let client: Vec<Mark<'_>> =
        with_calls(&calls, &TAKING_PART).into_iter().filter(|mark| mark.2 == APP).collect();
    let alone = split(&client)?;
    assert_eq!(sums(only(&alone)), [None, None, None, None, None, Some(2_200)]);
    assert_eq!((only(&alone).layers().as_str(), alone.unserved), ("IPC > -", 1));
    let table = alone.text().to_string();
    let setup = table.lines().find(|line| line.trim_start().starts_with("setup")).context("no setup")?;
    assert_eq!(setup.split_whitespace().skip(1).collect::<Vec<_>>(), ["-"; 9], "{table}");
    assert!(table.contains("1 call has no server that was seen"), "{table}");
    Ok(())
}

#[test]
fn the_first_call_is_cold_and_the_others_are_warm() -> Result<()> {
    let calls: Vec<_> = (0..100_u64)
        .flat_map(|number| {
            let (at, setup) = (100_000_000 * (number + 1), if number == 0 { 5_000_000 } else { 10_000 });
            call([at, at + 1_000, at + 1_000 + setup, at + 9_000_000, at + 9_100_000])
        })
        .collect();
    let split = split(&with_calls(&calls, &TAKING_PART))?;
    let setup = of_method(&split, EXECUTE)?.setup.as_ref().context("no setup")?;
    let HandOverPart { count, min_ns, p50_ns, max_ns, first_ns, rest_p50_ns, rest_max_ns, .. } = *setup;
    assert_eq!((count, min_ns, max_ns), (100, 10_000, 5_000_000));
    assert_eq!((first_ns, rest_p50_ns, rest_max_ns), (Some(5_000_000), Some(10_000), Some(10_000)));
    // Two significant digits.
    assert!((10_000..10_100).contains(&p50_ns), "{p50_ns}");
    Ok(())
}

#[test]
fn a_gate_ends_the_wait_of_work_that_was_taken_ahead() -> Result<()> {
    // Taken at 100, sent out by its producer at 850, let go at 900.
    let calls = call([50, 100, 910, 2_000, 2_100]);
    let mut marks = with_calls(&calls, &TAKING_PART);
    marks.push((900, 91, DRIVER, "I|nn.gate"));
    let gated = split(&marks)?;
    let pair = of_method(&gated, EXECUTE)?;
    assert_eq!(sums(pair)[..3], [Some(850), Some(10), Some(860)]);
    assert_eq!((pair.gated, gated.hb_violations), (1, 0));

    // By handles, taken before it was sent: the gate is where it was received.
    let marks = [
        (10, 21, APP, "B|[NN_LR_PE]submit"),
        (20, 21, APP, "I|nn.send#h=7"),
        (30, 21, APP, "E"),
        (100, 22, APP, "I|nn.recv#h=7"),
        (900, 22, APP, "I|nn.gate"),
        (910, 22, APP, "B|[NN_LC_PE]work"),
        (950, 22, APP, "E"),
    ];
    let split = split(&marks)?;
    let pair = only(&split);
    assert_eq!(sums(pair), [Some(880), Some(10), Some(890), Some(40), None, None]);
    assert_eq!((pair.gated, pair.layers().as_str()), (1, "Runtime > CPU"));
    assert_eq!(pair.name.as_deref(), Some("work"));
    Ok(())
}

#[test]
fn a_receipt_at_the_first_instant_is_one() -> Result<()> {
    // The trace begins with the receipt: the clock may as well begin at 0.
    let marks = [
        (0, 91, DRIVER, "B|HIDL::IDevice::prepareModel::server"),
        (0, 91, DRIVER, "B|[NN_LD_PC]compile"),
        (5, 91, DRIVER, "E"),
        (9, 91, DRIVER, "E"),
    ];
    let split = split(&marks)?;
    assert_eq!(sums(only(&split)), [None, Some(0), None, Some(5), None, None]);
    assert_eq!(split.setup_suppressed, 1);
    Ok(())
}

#[test]
fn work_that_is_taken_before_it_is_given_is_a_violation() -> Result<()> {
    // The server's clock is behind: it begins before the call, but while that is open.
    let calls = call([1_000, 900, 1_200, 3_000, 3_200]);
    let split_early = split(&with_calls(&calls, &TAKING_PART))?;
    let pair = of_method(&split_early, EXECUTE)?;
    assert_eq!((pair.hb_violations, split_early.hb_violations), (1, 1));
    assert_eq!(sums(pair), [None, Some(300), None, Some(1_800), Some(200), Some(2_200)]);
    assert!(split_early.text().to_string().contains("1 was taken before it was given (hb_violation)"));

    let calls = call([1_000, 1_001, 1_200, 3_000, 3_200]);
    assert_eq!(split(&with_calls(&calls, &TAKING_PART))?.hb_violations, 0);

    // By handles.
    let marks = [
        (10, 22, APP, "I|nn.recv#h=7"),
        (12, 22, APP, "B|[NN_LC_PE]work"),
        (20, 21, APP, "B|[NN_LR_PE]submit"),
        (25, 21, APP, "I|nn.send#h=7"),
        (30, 21, APP, "E"),
        (40, 22, APP, "E"),
    ];
    let split = split(&marks)?;
    assert_eq!((only(&split).hb_violations, sums(only(&split))[0]), (1, None));
    Ok(())
}

#[test]
fn handles_say_which_work_went_where_and_came_back() -> Result<()> {
    let marks = [
        (0, 21, APP, "B|[NN_LR_PE]submit"),
        (10, 21, APP, "I|nn.send#h=1"),
        (20, 21, APP, "I|nn.send#h=2"),
        // The second one is taken first, and its result goes back under its handle.
        (100, 22, APP, "I|nn.recv#h=2"),
        (130, 22, APP, "B|[NN_LC_PE]two"),
        (200, 22, APP, "E"),
        (220, 22, APP, "I|nn.send#h=2"),
        (300, 21, APP, "I|nn.recv#h=2"),
        // The first one by a section that has the handle.
        (400, 22, APP, "B|[NN_LC_PE]one#h=1"),
        (450, 22, APP, "E"),
        (500, 21, APP, "E"),
    ];
    let split = split(&marks)?;
    let one = of_method(&split, "one")?;
    assert_eq!(sums(one), [Some(390), Some(0), Some(390), Some(50), None, None]);
    let two = of_method(&split, "two")?;
    assert_eq!(sums(two), [Some(80), Some(30), Some(110), Some(70), Some(100), Some(280)]);
    assert_eq!((split.count, split.pairs.len()), (2, 2));
    assert!(split.pairs.iter().all(|pair| pair.layers() == "Runtime > CPU"));
    Ok(())
}

#[test]
fn binder_transactions_are_nearer_than_marks() -> Result<()> {
    let calls = call([1_000, 1_440, 1_450, 3_000, 3_200]);
    let mut marks = with_calls(&calls, &TAKING_PART);
    let [sent, received, reply, replied] = [
        "binder_transaction: transaction=7 dest_node=3 dest_proc=90 dest_thread=0 reply=0 flags=0x10 code=0x1",
        "binder_transaction_received: transaction=7",
        "binder_transaction: transaction=8 dest_node=0 dest_proc=20 dest_thread=21 reply=1 flags=0x0 code=0x0",
        "binder_transaction_received: transaction=8",
    ];
    marks.extend([
        (1_010, 21, APP, sent),
        (1_400, 91, DRIVER, received),
        (3_050, 91, DRIVER, reply),
        (3_150, 21, APP, replied),
    ]);
    // Of processes that have nothing to do with the NN stack.
    marks.extend([
        (500, 71, 70, &*sent.replace("=7 ", "=9 ").leak()),
        (600, 81, 80, "binder_transaction_received: transaction=9"),
    ]);
    let split = split(&marks)?;
    let pair = of_method(&split, EXECUTE)?;
    assert_eq!(pair.evidence, HandOverEvidence::Binder);
    assert_eq!(sums(pair), [Some(390), Some(50), Some(440), Some(1_550), Some(150), Some(2_140)]);
    assert_eq!((split.count, pair.count), (2, 1));

    // Without marks of the interface: the first section after the receipt is the work.
    let marks = [
        (0, 21, APP, "B|[NN_LR_PE]call"),
        (1_010, 21, APP, sent),
        (1_400, 91, DRIVER, received),
        (1_450, 91, DRIVER, "B|[NN_LD_PE]run"),
        (3_000, 91, DRIVER, "E"),
        (3_050, 91, DRIVER, reply),
        (3_150, 21, APP, replied),
        (3_200, 21, APP, "E"),
    ];
    let split = self::split(&marks)?;
    assert_eq!(sums(only(&split)), [Some(390), Some(50), Some(440), Some(1_550), Some(150), Some(2_140)]);
    assert_eq!(only(&split).layers(), "Runtime > Driver");
    Ok(())
}

#[test]
fn a_call_takes_no_transaction_that_was_sent_behind_it() -> Result<()> {
    // The events of the first call were lost; the thread calls something else later.
    let client = format!("B|{EXECUTE}::client");
    let marks = [
        (1_000, 21, APP, &*client),
        (2_000, 21, APP, "E"),
        (5_000, 21, APP, "B|[NN_LR_PE]other"),
        (5_010, 21, APP, "binder_transaction: transaction=7 dest_proc=90 reply=0 flags=0x10"),
        (5_400, 91, DRIVER, "binder_transaction_received: transaction=7"),
        (6_000, 21, APP, "E"),
    ];
    let split = split(&marks)?;
    let call = of_method(&split, EXECUTE)?;
    assert_eq!((call.evidence, sums(call)[5]), (HandOverEvidence::Interface, Some(1_000)));
    assert!(call.propagation.is_none());
    let other = split.pairs.iter().find(|pair| pair.evidence == HandOverEvidence::Binder);
    assert_eq!(sums(other.context("no transaction")?)[0], Some(390));
    Ok(())
}

#[test]
fn a_callback_reports_what_an_asynchronous_call_was_for() -> Result<()> {
    let method = "HIDL::IPreparedModel::execute";
    let notify = "HIDL::IExecutionCallback::notify";
    let texts = [method, notify].map(|name| [format!("B|{name}::client"), format!("B|{name}::server")]);
    let [[execute_client, execute_server], [notify_client, notify_server]] = &texts;
    let mut marks = TAKING_PART.to_vec();
    marks.extend([
        (1_000, 21, APP, &**execute_client),
        (1_100, 91, DRIVER, execute_server),
        (1_120, 91, DRIVER, "B|[NN_LD_PE]queue"),
        (1_150, 91, DRIVER, "E"),
        (1_160, 91, DRIVER, "E"),
        (1_200, 21, APP, "E"),
        (5_000, 92, DRIVER, notify_client),
        (5_300, 25, APP, notify_server),
        (5_310, 25, APP, "E"),
        (5_400, 92, DRIVER, "E"),
    ]);
    let split = split(&marks)?;
    let execute = of_method(&split, method)?;
    assert_eq!(sums(execute), [Some(100), Some(20), Some(120), Some(30), Some(4_150), Some(4_300)]);
    // The callback is a hand-over of its own, from the driver to the runtime.
    let callback = of_method(&split, notify)?;
    assert_eq!(sums(callback), [Some(300), None, None, None, None, None]);
    assert_eq!(callback.layers(), "Driver > Runtime");
    Ok(())
}

#[test]
fn calls_of_one_method_are_first_in_first_out() -> Result<()> {
    // Two threads of the application call, two of the driver serve; the second call is done first.
    let client = format!("B|{EXECUTE}::client");
    let server = format!("B|{EXECUTE}::server");
    let mut marks = TAKING_PART.to_vec();
    marks.extend([
        (0, 22, APP, "B|[NN_LA_PI]start"),
        (1, 22, APP, "E"),
        (0, 92, DRIVER, "B|HIDL::IDevice::getStatus::server"),
        (1, 92, DRIVER, "E"),
        (1_000, 21, APP, &*client),
        (1_100, 22, APP, &*client),
        (1_200, 91, DRIVER, &*server),
        (1_250, 92, DRIVER, &*server),
        (1_300, 92, DRIVER, "E"),
        (1_400, 22, APP, "E"),
        (2_000, 91, DRIVER, "E"),
        (2_100, 21, APP, "E"),
    ]);
    let split = split(&marks)?;
    let propagation = of_method(&split, EXECUTE)?.propagation.clone().context("no propagation")?;
    assert_eq!((propagation.count, propagation.min_ns, propagation.max_ns), (2, 150, 200));
    assert_eq!(split.unserved, 0);
    Ok(())
}

#[test]
fn asynchronous_calls_have_a_latency_and_nothing_else() -> Result<()> {
    let marks = [
        (100, 21, APP, "B|[NN_LR_PE]ANeuralNetworksExecution_startCompute"),
        (150, 21, APP, "E"),
        (800, 21, APP, "B|[NN_LR_PE]ANeuralNetworksEvent_wait"),
        (900, 21, APP, "E"),
        // A slice that another thread ends; one that ends where it began was handed to nobody.
        (1_000, 21, APP, "S|upload|5"),
        (1_700, 22, APP, "F|upload|5"),
        (2_000, 21, APP, "S|local|6"),
        (2_100, 21, APP, "F|local|6"),
    ];
    let split = split(&marks)?;
    let start = of_method(&split, "ANeuralNetworksExecution_startCompute")?;
    assert_eq!(sums(start), [None, None, None, None, None, Some(800)]);
    assert_eq!(sums(of_method(&split, "upload")?)[5], Some(700));
    assert_eq!(split.pairs.len(), 2);
    assert!(split.pairs.iter().all(|pair| pair.evidence == HandOverEvidence::Asynchronous));
    Ok(())
}

#[test]
fn the_report_says_it_as_a_table_as_csv_and_as_json() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("calls.trace");
    let calls = call([1_000, 1_400, 1_450, 3_000, 3_200]);
    std::fs::write(&trace, text(&with_calls(&calls, &TAKING_PART)))?;
    let print = |options: &[&str]| -> Result<String> {
        let mut report = Profiler::new()?.args(["report", "--handoff"]).args(options).args([&trace]);
        Ok(String::from_utf8(Child::run(report.command())?.expect_code(0)?.stdout)?)
    };
    let table = print(&[])?;
    for line in [
        "IPC > Driver, Execution: HIDL::IPreparedModel::executeSynchronously (1, by the marks of both sides)",
        "  part          count      min      p50      p95      max      sum  share    first  rest p50",
        "  propagation       1   400 ns   400 ns   400 ns   400 ns   400 ns  18.2%   400 ns         -",
        "  setup             1    50 ns    50 ns    50 ns    50 ns    50 ns   2.3%    50 ns         -",
        "  latency           1  2.20 us  2.20 us  2.20 us  2.20 us  2.20 us   100%  2.20 us         -",
    ] {
        assert!(table.lines().any(|shown| shown == line), "no line {line:?} in\n{table}");
    }
    let csv = print(&["--csv"])?;
    let setup =
        "LI,LD,PE,HIDL::IPreparedModel::executeSynchronously,interface,1,0,0,setup,1,50,50,50,50,50,50,,";
    assert!(csv.lines().any(|row| row == setup), "{csv}");
    assert_eq!(csv.lines().count(), 1 + 2 * 6, "{csv}");
    let split: HandOverSplit = serde_json::from_str(&print(&["--json"])?)?;
    assert_eq!(split, self::split(&with_calls(&calls, &TAKING_PART))?);
    Ok(())
}

/// From the client to the work of the driver, and back in the callback of nobody: over the interface call between them.
#[test]
fn a_path_goes_over_an_interface_call() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("calls.trace");
    let calls = call([1_000, 1_400, 1_450, 3_000, 3_200]);
    std::fs::write(&trace, text(&with_calls(&calls, &TAKING_PART)))?;
    let report = |options: &[&str]| -> Result<_> {
        let mut report = Profiler::new()?.args(["report", "--path"]).args(options).args([&trace]);
        Child::run(report.command())
    };
    let client = format!("{EXECUTE}::client");
    let work = calls.iter().find_map(|(.., mark)| mark.strip_prefix("B|[NN_LD_PE]")).context("no work")?;
    let path = format!("{client} > {work}");
    let found = report(&[&path, "--deadline", "1us", "--json"])?.expect_code(0)?;
    let found: serde_json::Value = serde_json::from_slice(&found.stdout)?;
    assert_eq!(found["latency"]["max_ns"], 3_000 - 1_000, "{found}");
    assert_eq!((&found["completed"], &found["missed"]), (&1.into(), &1.into()), "{found}");
    assert_eq!(found["evidence"], serde_json::json!(["interface"]));
    let table = report(&[&path])?.expect_code(0)?;
    assert!(String::from_utf8(table.stdout)?.contains("hand-overs by interface"));
    for (wrong, code) in [("run", 2), ("run>nothing", 1)] {
        let refused = report(&[wrong])?.expect_code(code)?;
        assert!(refused.stderr.contains("function"), "{}", refused.stderr);
    }
    Ok(())
}

#[test]
fn a_thread_that_is_woken_in_a_section_takes_work() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let program = env!("CARGO_BIN_EXE_slow-runs");
    let run = Profiler::new()?.args(["--level", "sched", "--handoff"]).launch([program, "lock"])?;
    let split = run.snapshot.hand_over_split.context("no hand-overs")?;
    // The thread that waits for the lock is woken in its section, and takes nothing.
    let pair = only(&split);
    assert_eq!((pair.evidence, pair.count), (HandOverEvidence::WakeUp, 1));
    assert_eq!((pair.from, pair.to), (Some(Layer::Runtime), Some(Layer::Utility)));
    assert_eq!(pair.name.as_deref(), Some("refill"));
    let [propagation, setup, head, execution, ..] = sums(pair);
    assert!(execution >= Some(120_000_000), "{pair:?}");
    assert_eq!(propagation.zip(setup).map(|(propagation, setup)| propagation + setup), head);
    assert!(propagation > Some(0), "{pair:?}");
    Ok(())
}
