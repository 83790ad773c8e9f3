use super::*;

mod properties;

/// Parses a line into task, thread, process, CPU, time (ns), kind.
fn event(line: &str) -> (&str, u32, Option<u32>, u32, u64, EventKind<'_>) {
    match parse(line.as_bytes()) {
        Parsed::Event(Event { comm, tid, tgid, cpu, time, kind }) => {
            (str::from_utf8(comm).unwrap(), tid, tgid, cpu, time, kind)
        }
        parsed => panic!("{line}: {parsed:?}"),
    }
}

fn kind_of(line: &str) -> EventKind<'_> {
    event(line).5
}

fn mark(payload: &str) -> EventKind<'_> {
    EventKind::Mark(payload.as_bytes())
}

fn other<'a>(name: &'a str, fields: &'a str) -> EventKind<'a> {
    EventKind::Other { name: name.as_bytes(), fields: fields.as_bytes() }
}

/// Lines of the reference parser's own tests, and two of a current kernel: expected contents (name; thread; process;
/// CPU; us), the line's start, and the payload.
const REFERENCE: &str = r#"NeuralNetworks; 5143; Some(5143); 5; 142924145
NeuralNetworks-5143  ( 5143) [005] ...1   142.924145: tracing_mark_write:
B|5143|[NN_L
<...>; 5149; Some(774); 0; 143103773
<...>-5149 ( 774) [000] ...1   143.103773: tracing_mark_write:
B|774|[NN_LDV_PC][validat
<...>; 756; Some(756); 0; 143140553
<...>-756 ( 756) [000] ...1   143.140553: tracing_mark_write:
B|756|HIDL::IDevice::prepa
<...>; 5149; None; 1; 143149856
<...>-5149  (-----) [001] ...1   143.149856: tracing_mark_write:
B|756|[NN_LCC_PE][optim
HwBinder:784_1; 5236; Some(784); 1; 397528915
HwBinder:784_1-5236  (  784) [001] ...1   397.528915: tracing_mark_write:
B|784|HIDL::
GLThread 35; 1739; Some(1500); 1; 277001798
GLThread 35-1739  ( 1500) [001] ...1   277.001798: tracing_mark_write:
B|1500|HIDL::IMapper::importBuffer::passthrough")
allocator@1.0-s; 757; Some(757); 5; 1700939402
allocator@1.0-s-757   (  757) [005] ...1  1700.939402: tracing_mark_write:
E|757
<...>; 4762; None; 7; 407453701225
<...>-4762  [007] .... 407453.701225: tracing_mark_write:
B|4762|HIDL::IServiceManager::getTransport::client
<...>; 550; None; 7; 407453701675
<...>-550   [007] .... 407453.701675: tracing_mark_write:
E|550
<...>; 4840; None; 5; 407457494359
<...>-4840  [005] .... 407457.494359: tracing_mark_write:
B|4828|[SW][NN_LI_PE]StepExecutor::startComputeOnDevice::execute
<...>; 4840; None; 5; 407457494365
<...>-4840  [005] .... 407457.494365: tracing_mark_write:
B|4828|HIDL::IPreparedModel::execute::client
<...>; 13947; None; 5; 407457494606
<...>-13947 [005] .... 407457.494606: tracing_mark_write:
B|13947|HIDL::IPreparedModel::execute::server
<...>; 13949; None; 5; 407457508264
<...>-13949 [005] .... 407457.508264: tracing_mark_write:
B|13947|HIDL::IExecutionCallback::notify::client
bash; 18864; Some(18864); 0; 1250225479
            bash-18864   (  18864) [000] ...1.  1250.225479: tracing_mark_write:
B|3020|with tgid
bash; 18864; None; 1; 1250222988
            bash-18864   [001] ...1.  1250.222988: tracing_mark_write:
E"#;

#[test]
fn lines_of_the_reference() {
    let rows: Vec<_> = REFERENCE.lines().collect();
    assert_eq!(rows.len(), 15 * 3);
    for row in rows.chunks(3) {
        let line = format!("{} {}", row[1], row[2]);
        let (comm, tid, tgid, cpu, time, kind) = event(&line);
        assert_eq!(format!("{comm}; {tid}; {tgid:?}; {cpu}; {}", time / 1_000), row[0]);
        assert_eq!((time % 1_000, kind), (0, mark(row[2])));
    }
}

/// The format of Linux 6.18's `trace`, with its options.
#[test]
fn the_kernels_own_text() {
    let idle = EventKind::CpuIdle { state: u32::MAX, cpu: 0 };
    assert_eq!(
        event(
            "          <idle>-0       (-------) [000] d..1. 12446.807404: cpu_idle: state=4294967295 cpu_id=0"
        ),
        ("<idle>", 0, None, 0, 12_446_807_404_000, idle)
    );
    assert_eq!(
        event(
            "            bash-9183    (   9183) [001] ...1. 12446.808863: tracing_mark_write: B|9183|[NN_LR_PE]name 1"
        ),
        ("bash", 9183, Some(9183), 1, 12_446_808_863_000, mark("B|9183|[NN_LR_PE]name 1"))
    );
    // Without irq-info.
    assert_eq!(
        event(
            "     rcu_preempt-15      (     15) [001]  12447.055200: sched_switch: prev_comm=rcu_preempt prev_pid=15"
        ),
        (
            "rcu_preempt",
            15,
            Some(15),
            1,
            12_447_055_200_000,
            other("sched_switch", "prev_comm=rcu_preempt prev_pid=15")
        )
    );
    // Blanks of the payload are its own, but three in all are padding; it may be empty.
    for (payload, wanted) in
        [(" C|1|a|2", " C|1|a|2"), ("", ""), ("a: b", "a: b"), ("tail ", "tail "), ("  E", "E")]
    {
        let line =
            format!("            bash-9174    [000] ...1. 12446.776253: tracing_mark_write: {payload}");
        assert_eq!(kind_of(&line), mark(wanted));
    }
    // sym-offset, sym-addr, both, and no symbol at all.
    for name in [
        "tracing_mark_write+0x8a/0x170",
        "tracing_mark_write <ffffffff81498b1a>",
        "tracing_mark_write+0x8a/0x170 <ffffffff81498b1a>",
        "0xffffffff81498b1a",
        "0",
    ] {
        let line = format!("            bash-11211   [000] ...1. 12853.549736: {name}: B|11211|x");
        assert_eq!(kind_of(&line), mark("B|11211|x"), "{name}");
    }
    let fields =
        "          <idle>-0       [000] d..1. 12853.111239: cpu_idle: state=0xffffffff (-1) cpu_id=0x0 (0)";
    assert_eq!(kind_of(fields), idle);
    // The function tracer, a call stack, printk.
    let line = "bash-16939 [000] .... 6075.461561: mutex_unlock <-rb_simple_write";
    assert_eq!(kind_of(line), other("mutex_unlock", "<-rb_simple_write"));
    assert_eq!(kind_of("<idle>-0 [000] d..1. 12854.443672: <stack trace>"), other("<stack", "trace>"));
    assert_eq!(parse(b" => cpuidle_enter_state"), Parsed::Header);
    for name in ["bputs", "bprint", "tracing_mark_writer", "tracing_mark", "fade", "00", "0xg", "7"] {
        let line = format!("a-1 [000] .... 6075.4: {name}: E|1");
        assert_eq!(kind_of(&line), other(name, "E|1"));
    }
    // Flags of older and newer kernels.
    for flags in ["", "d..1", "dNs3", "d...2..", "dNLh2.1", "b..1.", "D.h1.", "X...", "Zz"] {
        let line = format!("a-1 [003] {flags} 1.5: cpu_frequency: state=800000 cpu_id=4");
        let frequency = EventKind::CpuFrequency { khz: 800_000, cpu: 4 };
        assert_eq!(event(&line), ("a", 1, None, 3, 1_500_000_000, frequency));
    }
}

/// The format of Linux 4.13 to 4.17 with the option `record-tgid`.
#[test]
fn the_process_may_come_after_the_cpu() {
    let frequency = EventKind::CpuFrequency { khz: 800_000, cpu: 4 };
    for (columns, tgid) in [("( 4100) d..2  ", Some(4100)), ("(-----) d..2", None), ("(      7)", Some(7))] {
        let line = format!("  infer-4101  [003] {columns} 1.5: cpu_frequency: state=800000 cpu_id=4");
        assert_eq!(event(&line), ("infer", 4101, tgid, 3, 1_500_000_000, frequency), "{line}");
    }
}

/// The format of trace-cmd 3.1.6 and earlier versions.
#[test]
fn the_text_of_trace_cmd() {
    for (text, wanted) in [
        ("tracing_mark_write: B|12178|[NN_LR_PE]name 1", mark("B|12178|[NN_LR_PE]name 1")),
        ("tracing_mark_write:  C|1|a|2", mark(" C|1|a|2")),
        ("0xffffffff8119b2c4: B|1|x", mark("B|1|x")),
        ("0xffff00000819ff24s: TRACE_MARKER_START", mark("TRACE_MARKER_START")),
        ("0", other("print", "0")),
        ("0s: E", mark("E")),
        ("other_function: E", other("print", "other_function: E")),
        // With the kernel's option `fields`.
        (" ip=tracing_mark_write buf=E|12178", mark("E|12178")),
        ("ip=tracing_mark_write+0x10/0x20 buf=B|1|[NN_LR_PE]run buf=", mark("B|1|[NN_LR_PE]run buf=")),
        ("ip=other_function buf=E", other("print", "ip=other_function buf=E")),
    ] {
        let line = format!("            bash-12178 [001] 12904.369462: print:                {text}");
        assert_eq!(event(&line), ("bash", 12178, None, 1, 12_904_369_462_000, wanted), "{text}");
    }
    assert_eq!(
        event("         sugov:0-1842  [003]  2084.143680: cpu_frequency:        state=850000 cpu_id=5"),
        ("sugov:0", 1842, None, 3, 2_084_143_680_000, EventKind::CpuFrequency { khz: 850_000, cpu: 5 })
    );
    for line in [
        // -t, --ts-diff, -R, and flags.
        "          <idle>-0     [000] 12904.361359027: cpu_idle:             state=1 cpu_id=0",
        "          <idle>-0     [000] 12904.361359027: (+45)    cpu_idle:             state=1 cpu_id=0",
        "          <idle>-0     [000] 12904.361359027: (+12904361359027) cpu_idle:             state=1 cpu_id=0",
        "          <idle>-0     [000] 12904.361359027:          cpu_idle:              state=1 cpu_id=0",
        "          <idle>-0     [000] d..1. 12904.361359027: cpu_idle:             state=1 cpu_id=0",
        "\t  <idle>-0     [000] 12904.361359027: cpu_idle:             state=1 cpu_id=0",
        // -l
        "  <idle>-0       0d..1. 12904.361359027: cpu_idle:             state=1 cpu_id=0",
        // Several buffers.
        "inputlayer:           <idle>-0     [000] 12904.361359027: cpu_idle:             state=1 cpu_id=0",
        "inputlayer:   <idle>-0       0d..1. 12904.361359027: cpu_idle:             state=1 cpu_id=0",
    ] {
        let idle = EventKind::CpuIdle { state: 1, cpu: 0 };
        assert_eq!(event(line), ("<idle>", 0, None, 0, 12_904_361_359_027, idle), "{line}");
    }
    // An event of that name in a vendor kernel, padded.
    assert_eq!(kind_of("a-1 [000]     1.500000: tracing_mark_write:   B|1|x"), mark("B|1|x"));
    assert_eq!(
        event(
            "inputlayer:      a-1 [000] b-12263 [000] 12904.741506: print:                tracing_mark_write: E"
        ),
        ("a-1 [000] b", 12263, None, 0, 12_904_741_506_000, mark("E"))
    );
    // Below one second it prints another unit, without naming it.
    assert_eq!(parse(b"a-1 [000]       500000: cpu_idle:             state=1 cpu_id=0"), Parsed::Unreadable);
}

/// The format of Perfetto's export, and of pages of systrace.
#[test]
fn the_text_of_perfetto_and_systrace() {
    assert_eq!(
        event(
            "   kworker/u16:1-77    (   77) [004] .... 316.196720: tracing_mark_write: B|77|__scm_call_armv8_64|0"
        ),
        ("kworker/u16:1", 77, Some(77), 4, 316_196_720_000, mark("B|77|__scm_call_armv8_64|0"))
    );
    assert_eq!(
        event("       <unknown>-123456 (-----) [012] .... 0.000001: 0: E|77"),
        ("<unknown>", 123_456, None, 12, 1_000, mark("E|77"))
    );
    assert_eq!(
        event("  composer@2.1-s-593   (       ) [000] ...1 1034700.747358: tracing_mark_write: B|593|a::b"),
        ("composer@2.1-s", 593, None, 0, 1_034_700_747_358_000, mark("B|593|a::b"))
    );
    let clock = "trace_event_clock_sync: parent_ts=1034700.750000";
    let line =
        format!("          atrace-26769 (26769) [005] ...1 1034700.742666: tracing_mark_write: {clock}");
    assert_eq!(kind_of(&line), mark(clock));
}

#[test]
fn names_hold_anything() {
    for name in [
        "",
        "-",
        "--",
        "a b",
        "a-1 [000] b",
        "(x) [y]: z-",
        "[007]",
        "x (12)",
        "x (12) ",
        "<...>",
        "a:b",
        "1-1",
        "[0] 1.5",
        "-5 (7) [1] d",
        "trail ",
        "]",
        "\u{e4}\u{4e2d}",
        "a: b: c: d: e f",
    ] {
        for (process, tgid) in
            [(" ", None), (" ( 5143) ", Some(5143)), ("  (-----) ", None), (" (   ) ", None)]
        {
            for flags in ["...1  ", "", "d..1. "] {
                let line = format!("  {name}-12{process}[001] {flags}2.000001: cpu_idle: state=3 cpu_id=1");
                let idle = EventKind::CpuIdle { state: 3, cpu: 1 };
                assert_eq!(event(&line), (name, 12, tgid, 1, 2_000_001_000, idle), "{line}");
            }
        }
    }
}

#[test]
fn fractions_have_one_to_nine_digits() {
    for (time, ns) in [
        ("0.0", 0),
        ("1.5", 1_500_000_000),
        ("1.000000001", 1_000_000_001),
        ("12.12345678", 12_123_456_780),
        ("9223372035.999999999", END_OF_TIME * UNITS[0] - 1),
    ] {
        assert_eq!(event(&format!("a-1 [000] {time}: x: y")).4, ns);
        assert_eq!(event(&format!("a-1 [000] .... {time}: x: y")).4, ns);
    }
    for time in [
        "1",
        "1.",
        ".5",
        "1.1234567890",
        "9223372036.0",
        "18446744073.709551616",
        "99999999999.0",
        "123456789012345678901.5",
        "-1.5",
    ] {
        assert_eq!(parse(format!("a-1 [000] {time}: x: y").as_bytes()), Parsed::Unreadable, "{time}");
        assert_eq!(parse(format!("a-1 [000] .... {time}: x: y").as_bytes()), Parsed::Unreadable, "{time}");
    }
}

#[test]
fn numbers_that_are_too_large_are_unreadable() {
    let most = "a-4294967295 (4294967295) [4294967295] 1.5: cpu_idle: state=4294967295 cpu_id=4294967295";
    let idle = EventKind::CpuIdle { state: u32::MAX, cpu: u32::MAX };
    assert_eq!(event(most), ("a", u32::MAX, Some(u32::MAX), u32::MAX, 1_500_000_000, idle));
    for (at, _) in most.match_indices("4294967295") {
        for larger in ["4294967296", "99999999999999999999999", "00000000000000000001"] {
            let line = format!("{}{larger}{}", &most[..at], &most[at + 10..]);
            assert_eq!(parse(line.as_bytes()), Parsed::Unreadable, "{line}");
        }
    }
}

#[test]
fn fields_come_in_any_order() {
    let state = |fields: &str| match parse(format!("a-1 [000] 1.5: cpu_idle: {fields}").as_bytes()) {
        Parsed::Event(Event { kind: EventKind::CpuIdle { state, cpu }, .. }) => Some((state, cpu)),
        Parsed::Unreadable => None,
        parsed => panic!("{parsed:?}"),
    };
    for (fields, wanted) in [
        ("state=2 cpu_id=7", (2, 7)),
        ("state=2 cpu_id=7 ", (2, 7)),
        ("cpu_id=7 state=2", (2, 7)),
        ("  cpu_id=7   more=1\tstate=2 x", (2, 7)),
        ("state=-1 cpu_id=7", (u32::MAX, 7)),
        ("state=0xffffffff cpu_id=7", (u32::MAX, 7)),
        ("cpu_id=7, state=4294967295", (u32::MAX, 7)),
    ] {
        assert_eq!(state(fields), Some(wanted), "{fields}");
    }
    for fields in [
        "",
        "state=2",
        "state=2 cpu_id=",
        "state= cpu_id=1",
        "state=2x cpu_id=1",
        "state=-2 cpu_id=1",
        "state=4294967296 cpu_id=1",
        "xstate=2 cpu_id=1",
        "state=0x cpu_id=1",
        "state=0x+1 cpu_id=1",
        "state=2 cpu_id=1x",
    ] {
        assert_eq!(state(fields), None, "{fields}");
    }
    assert_eq!(parse(b"a-1 [000] 1.5: cpu_frequency: state=fast cpu_id=1"), Parsed::Unreadable);
    let limits = kind_of("a-1 [000] 1.5: cpu_frequency_limits: min=1 max=2 cpu_id=1");
    assert_eq!(limits, other("cpu_frequency_limits", "min=1 max=2 cpu_id=1"));
}

#[test]
fn rings_that_were_overwritten() {
    for (line, loss) in [
        ("# entries-in-buffer/entries-written: 7/2000   #P:2", Loss::Overwritten { events: 1_993 }),
        ("##### CPU 1 buffer started ####", Loss::Started { cpu: 1 }),
    ] {
        assert_eq!(parse(line.as_bytes()), Parsed::Lost(loss), "{line}");
    }
    for line in [
        "# entries-in-buffer/entries-written: 7/7   #P:2",
        "# entries-in-buffer/entries-written: 8/7   #P:2",
        "# entries-in-buffer/entries-written: /7",
        "# entries-in-buffer/entries-written: 7",
        "# entries-in-buffer/entries-written: 7/",
        "##### CPU x buffer started ####",
        "##### CPU 1 buffer",
    ] {
        assert_eq!(parse(line.as_bytes()), Parsed::Header, "{line}");
    }
}

#[test]
fn times_without_a_unit_are_told_from_what_is_no_event() {
    for (line, time) in [
        ("          <idle>-0     [000]6792243290455: sched_switch:         swapper/0:0", "6792243290455"),
        ("          <idle>-0     [000]   792243290455: sched_switch: x", "792243290455"),
        ("          <idle>-0     [000] d..2.   125: cpu_idle: state=1 cpu_id=0", "125"),
        ("          <idle>-0     [001] d..2.6792243290455: cpu_idle: state=1 cpu_id=1", "6792243290455"),
    ] {
        assert_eq!(parse(line.as_bytes()), Parsed::Unreadable, "{line}");
        assert_eq!(time_without_unit(line.as_bytes()), Some(time), "{line}");
    }
    for line in [
        "<idle>-0 [000] 12",
        "<idle>-0 [000] 12:",
        "<idle>-0 [000] x: y",
        "[000] 12: y",
        "<idle>-0 [000] d..1 5.7y: x",
        "<idle>-0 [000] a sentence, 12: y",
        "-5 [",
    ] {
        assert_eq!(time_without_unit(line.as_bytes()), None, "{line}");
    }
}

#[test]
fn lost_records() {
    for (line, cpu, events) in [
        ("CPU:1 [LOST 41269 EVENTS]", 1, Some(41_269)),
        ("CPU:12 [LOST EVENTS]", 12, None),
        ("CPU:7 [204600 EVENTS DROPPED]", 7, Some(204_600)),
        ("CPU:0 [EVENTS DROPPED]", 0, None),
        ("  CPU:0 [EVENTS DROPPED] ", 0, None),
        ("buffer: CPU:3 [5 EVENTS DROPPED]", 3, Some(5)),
    ] {
        assert_eq!(parse(line.as_bytes()), Parsed::Lost(Loss::Gap { cpu, events }), "{line}");
    }
    for line in [
        "CPU:1 [LOST 41269 EVENTS",
        "CPU:1 [LOST x EVENTS]",
        "CPU:1 [LOST 99999999999999999999999 EVENTS]",
        "CPU:1 [EVENTS]",
        "CPU:99999999999 [LOST EVENTS]",
        "CPU: [LOST EVENTS]",
        "CPU:1 [LOST 1EVENTS]",
    ] {
        assert_eq!(parse(line.as_bytes()), Parsed::Unreadable, "{line}");
    }
}

#[test]
fn what_the_tools_say() {
    for line in [
        "",
        "   ",
        "\t",
        "# tracer: nop",
        "#  a-1 [000] 1.5: cpu_idle: state=1 cpu_id=0",
        "  # x",
        "version = 6",
        "version = 0.4-rc1",
        "cpus=8",
        "inputlayer: cpus=2",
        "CPU 1 is empty",
        "CPU:1 [SUBBUFFER START] [1:0x2]",
        "capturing trace...",
        "capturing trace... done",
        " done",
        "TRACE:",
        " => schedule",
        "=> foo (ffffffff81498b1a)",
        "clusterA:",
        "\tcore0",
        "\t\tcpu4",
    ] {
        assert_eq!(parse(line.as_bytes()), Parsed::Header, "{line}");
    }
    for line in ["x", "lines", "two", "cpus=", "cpux", "[000]", "<html>", "  [000] ", "a-1 [000]", "\0"] {
        assert_eq!(parse(line.as_bytes()), Parsed::Unreadable, "{line}");
    }
}

/// First and last lines of a trace, which may be truncated anywhere.
#[test]
fn cut_lines() {
    let line = "  kworker/0:1-46    (   46) [002] d..2. 76.211715: cpu_idle: state=4294967295 cpu_id=2";
    let whole = event(line).5;
    for at in 0..line.len() {
        match parse(&line.as_bytes()[..at]) {
            Parsed::Unreadable => {}
            Parsed::Header => assert!(at <= 2, "only blanks say nothing"),
            // The event's name is truncated, and so no longer one that matters.
            Parsed::Event(Event { kind: EventKind::Other { name, fields: b"" }, .. }) => {
                assert!(b"cpu_idle".starts_with(name));
            }
            parsed => panic!("{}: {parsed:?}", &line[..at]),
        }
        // The task's name, or the whole task, may be gone: that matters to marks only.
        if let Parsed::Event(event) = parse(&line.as_bytes()[at..]) {
            assert_eq!(event.kind, whole);
            assert!(matches!(event.tid, 46 | 0), "{event:?}");
        }
    }
    for line in [
        "8864 [000] ...1. 1250.2: tracing_mark_write: E",
        "[000] ...1. 1250.2: 0: E",
        ") [000] 1.2: print: 0: E",
    ] {
        assert_eq!(parse(line.as_bytes()), Parsed::Unreadable, "{line}");
    }
}

/// Handmade lines of idlestat's tests have no thread, and end without `:`.
#[test]
fn lines_without_a_thread() {
    assert_eq!(
        event("     idlestat/vex-tc2  [002] d...  1000.000100: cpu_idle: state=4294967295 cpu_id=2"),
        ("idlestat/vex-tc2", 0, None, 2, 1_000_000_100_000, EventKind::CpuIdle { state: u32::MAX, cpu: 2 })
    );
    let end = "     idlestat/vex-tc2  [004] ....  1000.000900: idlestat_end";
    assert_eq!(kind_of(end), other("idlestat_end", ""));
}
