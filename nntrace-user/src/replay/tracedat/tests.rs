use std::fs::File as SystemFile;

use proptest::prelude::*;

use super::{super::ftrace::EventKind, *};
use crate::report::snapshot::Snapshot;
use builder::{MARK, OTHER, Pages, Shape, What};

mod builder;
mod damage;
mod report;

const SHAPE: Shape =
    Shape { version: 6, endian: Endian::Little, long: 8, page_size: 1024, compression: "none" };

/// Returns every kind of host and file.
fn shapes() -> Vec<Shape> {
    let kinds = [(6, "none"), (7, "none"), (7, "zstd"), (7, "zlib")];
    let mut shapes = Vec::new();
    for (version, compression) in kinds {
        for (endian, long) in [(Endian::Little, 8), (Endian::Big, 8), (Endian::Little, 4), (Endian::Big, 4)] {
            shapes.push(Shape { version, endian, long, page_size: 1024, compression });
        }
    }
    shapes
}

fn open(bytes: &[u8]) -> Result<TraceDat, Damage> {
    use std::io::Write as _;
    let mut file: SystemFile = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    TraceDat::open(Arc::new(file), None)
}

/// Formats all steps, one line each.
fn steps(dat: &TraceDat) -> Vec<String> {
    let mut events = dat.events();
    let mut lines = Vec::new();
    loop {
        lines.push(match events.advance() {
            Step::End => return lines,
            Step::Cut(why) => format!("cut {why}"),
            Step::Lost(Loss::Gap { cpu, events }) => format!("lost {cpu} {events:?}"),
            Step::Lost(other) => format!("{other:?}"),
            Step::Event => {
                let time = events.time();
                line(&events.event().unwrap(), time)
            }
        });
    }
}

fn line(event: &Event<'_>, time: u64) -> String {
    assert_eq!((event.time, event.tgid), (time, None));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let kind = match event.kind {
        EventKind::Mark(payload) => format!("mark {}", text(payload)),
        EventKind::CpuIdle { state, cpu } => format!("idle {state} {cpu}"),
        EventKind::CpuFrequency { khz, cpu } => format!("frequency {khz} {cpu}"),
        EventKind::Other { name, fields } => format!("{}: {}", text(name), text(fields)),
    };
    format!("{} {time} {}-{} {kind}", event.cpu, text(event.comm), event.tid)
}

/// Formats a record as it should be read.
fn expected(cpu: u32, time: u64, tid: u32, what: &What) -> String {
    let comm = match tid {
        0 => "<idle>",
        7 => "worker one",
        8 => "other",
        9 => "blank",
        _ => "<...>",
    };
    let kind = match what {
        What::Print(OTHER, text) => format!("print: {}", text.strip_suffix('\n').unwrap_or(text)),
        What::Print(_, text) => format!("mark {}", text.strip_suffix('\n').unwrap_or(text)),
        What::Idle(state, cpu) => format!("idle {state} {cpu}"),
        What::Frequency(khz, cpu) => format!("frequency {khz} {cpu}"),
        What::Switch => {
            "sched_switch: prev_comm=worker prev_pid=77 prev_state=-1 next=666f where=four".into()
        }
        What::Suspend(0x1234) => "suspend_resume: action=CPU_OFF val=3".into(),
        What::Suspend(address) => format!("suspend_resume: action={address} val=3"),
        What::Nothing => "something: ".into(),
    };
    format!("{cpu} {time} {comm}-{tid} {kind}")
}

fn mark(text: &str) -> What {
    What::Print(MARK, text.into())
}

#[test]
fn every_kind_of_record_of_every_kind_of_machine() {
    let second = 1_000_000_000;
    // Far enough for the upper bits of a time, which records lack.
    for start in [5 * second, 3 << 59 | 7] {
        for shape in shapes() {
            let long = "x".repeat(300);
            let mut first = Pages::new(&shape);
            first.begin(start, None);
            first.record(start, &shape.data(7, &mark("B|7|[NN_LA_PE]a\n")), false);
            first.discard(start + 20, 8);
            first.record(start + 20, &shape.data(8, &What::Print(MARK + 4, "B|7|b".into())), true);
            first.record(start + 2 * second, &shape.data(9, &mark(&long)), false);
            first.stamp(start + 3 * second);
            first.record(start + 3 * second, &shape.data(10, &What::Print(OTHER, "text\n".into())), false);
            first.pad();
            first.begin(start + 4 * second, Some(Some(5)));
            first.record(start + 4 * second + 1, &shape.data(0, &What::Idle(u32::MAX, 0)), false);
            first.begin(start + 5 * second, Some(None));
            first.record(start + 5 * second, &shape.data(7, &What::Switch), false);
            first.record(start + 5 * second, &shape.data(7, &What::Suspend(0x1234)), false);
            let mut third = Pages::new(&shape);
            third.begin(start, Some(None));
            third.begin(start, Some(Some(1)));
            third.record(start, &shape.data(0, &What::Frequency(1_800_000, 2)), false);
            third.record(start + 4 * second + 1, &shape.data(0, &What::Nothing), false);
            third.begin(start + 6 * second, Some(Some(9)));
            let cpus = [first.finish(), Vec::new(), third.finish()];
            let file = shape.file(&[], &[("", &cpus)]);
            let wanted = [
                expected(0, start, 7, &mark("B|7|[NN_LA_PE]a")),
                "lost 2 None".into(),
                expected(2, start, 0, &What::Frequency(1_800_000, 2)),
                expected(0, start + 20, 8, &mark("B|7|b")),
                expected(0, start + 2 * second, 9, &mark(&long)),
                expected(0, start + 3 * second, 10, &What::Print(OTHER, "text".into())),
                "lost 0 Some(5)".into(),
                expected(0, start + 4 * second + 1, 0, &What::Idle(u32::MAX, 0)),
                expected(2, start + 4 * second + 1, 0, &What::Nothing),
                "lost 0 None".into(),
                expected(0, start + 5 * second, 7, &What::Switch),
                expected(0, start + 5 * second, 7, &What::Suspend(0x1234)),
                "lost 2 Some(9)".into(),
            ];
            let dat = open(&file).unwrap();
            assert_eq!(steps(&dat), wanted, "{shape:?}");
            assert_eq!(steps(&dat), wanted, "a second time");
        }
    }
}

/// Builds sub-buffers of one CPU with one event each.
fn events(shape: &Shape, all: &[(u64, u32, What)]) -> Vec<Vec<u8>> {
    let mut pages = Pages::new(shape);
    for (time, tid, what) in all {
        pages.begin(*time, None);
        pages.record(*time, &shape.data(*tid, what), false);
    }
    pages.finish()
}

#[test]
fn instances_are_merged_behind_the_main_buffer() {
    for shape in shapes() {
        let main = [events(&shape, &[(10, 0, What::Idle(1, 0)), (30, 0, What::Idle(2, 0))])];
        let other = [events(&shape, &[(10, 7, mark("a")), (20, 7, mark("b"))])];
        let file = shape.file(&[], &[("", &main), ("other", &other)]);
        let wanted = [
            expected(0, 10, 0, &What::Idle(1, 0)),
            expected(0, 10, 7, &mark("a")),
            expected(0, 20, 7, &mark("b")),
            expected(0, 30, 0, &What::Idle(2, 0)),
        ];
        assert_eq!(steps(&open(&file).unwrap()), wanted, "{shape:?}");
    }
}

#[test]
fn addresses_without_a_name_write_marks() {
    let whats = [0, 0x7fff].map(|address| What::Print(address, "B|1|x".into()));
    let cpus = [events(&SHAPE, &[(1, 7, whats[0].clone()), (2, 7, whats[1].clone())])];
    let file = SHAPE.file(&[], &[("", &cpus)]);
    let wanted = [expected(0, 1, 7, &whats[0]), expected(0, 2, 7, &whats[1])];
    assert_eq!(steps(&open(&file).unwrap()), wanted);
    let symbols = Symbols::parse(b"0000000000000000 T _stext\n0000000000000000 t tracing_mark_write\n");
    assert!(symbols.writes_marks(0x8000));
    let symbols = Symbols::parse(b"10 T a\n30 t tracing_mark_write\n20 T b\n");
    let marks: Vec<u64> = (0..0x40).filter(|&address| symbols.writes_marks(address)).collect();
    assert_eq!(marks, (0..0x10).chain(0x30..0x40).collect::<Vec<_>>());
}

#[test]
fn context_switches_tell_names() {
    let cpus = [events(&SHAPE, &[(1, 77, What::Nothing), (2, 7, What::Switch), (3, 77, What::Nothing)])];
    let dat = open(&SHAPE.file(&[], &[("", &cpus)])).unwrap();
    for _ in 0..2 {
        let lines = steps(&dat);
        assert_eq!(
            (lines[0].as_str(), lines[2].as_str()),
            ("0 1 <...>-77 something: ", "0 3 worker-77 something: ")
        );
    }
}

#[test]
fn times_are_what_trace_cmd_makes_of_them() {
    // As trace-cmd reports a file with these options.
    for (options, stamp, ns) in [
        (vec![], 24_372_672_911_523, 24_372_672_911_523),
        (vec![(7, b"1000000000\0".to_vec())], 24_372_672_911_523, 24_373_672_911_523),
        (vec![(7, b"-1000\0".to_vec())], 24_372_672_911_523, 24_372_672_910_523),
        (vec![(7, b"0x10\0".to_vec())], 24_372_672_911_523, 24_372_672_911_539),
        (vec![(1, b"5000000\0".to_vec())], 24_372_672_911_523, 24_377_672_911_523),
        (vec![(1, b"0x10\0".to_vec()), (7, b"5\0".to_vec())], 24_372_672_911_523, 24_372_672_927_528),
        (
            vec![(14, [3_u32, 1, 1000, 0].map(u32::to_le_bytes).concat())],
            24_372_672_911_523,
            36_559_009_367_284,
        ),
    ] {
        for version in [6, 7] {
            let shape = Shape { version, ..SHAPE };
            let cpus = [events(&shape, &[(stamp, 0, What::Nothing)])];
            let dat = open(&shape.file(&options, &[("", &cpus)])).unwrap();
            assert_eq!(steps(&dat), [expected(0, ns, 0, &What::Nothing)], "{options:?}");
        }
    }
    let clock = Clock { cycles: Some((u32::MAX, 200)), offset: -5 };
    assert_eq!(clock.ns(u64::MAX), 0);
}

#[test]
fn clocks_that_count_cycles_need_to_tell_how_long_these_are() {
    let cpus = [events(&SHAPE, &[(8, 0, What::Nothing)])];
    let clock = |name: &str| (4, format!("local [{name}] mono\n\0").into_bytes());
    for name in ["boot", "mono_raw", "tai"] {
        assert!(open(&SHAPE.file(&[clock(name)], &[("", &cpus)])).is_ok());
    }
    let error = open(&SHAPE.file(&[clock("x86-tsc")], &[("", &cpus)])).unwrap_err().to_string();
    assert!(error.contains("times of clock `x86-tsc`, where nanoseconds were expected"), "{error}");
    assert!(error.starts_with("at byte ") && error.contains(": the main buffer: times"), "{error}");
    let cycles = (14, [1_u32, 2, 0, 0].map(u32::to_le_bytes).concat());
    let dat = open(&SHAPE.file(&[clock("x86-tsc"), cycles.clone()], &[("", &cpus)])).unwrap();
    assert_eq!(steps(&dat), [expected(0, 2, 0, &What::Nothing)]);
    // Ticks and events are no cycles.
    for name in ["uptime", "counter"] {
        for options in [vec![clock(name)], vec![clock(name), cycles.clone()]] {
            let error = open(&SHAPE.file(&options, &[("", &cpus)])).unwrap_err().to_string();
            assert!(error.contains(&format!("times of clock `{name}`")), "{error}");
        }
    }
}

#[test]
fn statistics_tell_what_was_lost_in_all() {
    let cpus = [events(&SHAPE, &[(8, 0, What::Nothing)])];
    let stats = |cpu: u32, overrun: u32, dropped: u32| {
        let text = format!(
            "CPU: {cpu}\nentries: 5\noverrun: {overrun}\ncommit overrun: 1\nbytes: 9\noldest event ts:  1.5\nnow ts:  2.5\n\
             dropped events: {dropped}\nread events: 7\n\0"
        );
        (2, text.into_bytes())
    };
    let name = (2, b"\nBuffer: x\n\n\0".to_vec());
    let dat = open(&SHAPE.file(&[stats(1, 20, 0), stats(3, 0, 4), name, stats(1, 300, 0)], &[("", &cpus)]));
    let total = |cpu, events| format!("{:?}", Loss::Total { cpu, events });
    let wanted = [total(1, 322), total(3, 5), expected(0, 8, 0, &What::Nothing)];
    assert_eq!(steps(&dat.unwrap()), wanted);
    for broken in [&b"CPU: x\noverrun: 5\n"[..], b"overrun: 5\n", b"\xff", b"", b"CPU: 1\noverrun: x\n"] {
        let dat = open(&SHAPE.file(&[(2, broken.to_vec())], &[("", &cpus)])).unwrap();
        assert_eq!(steps(&dat), [expected(0, 8, 0, &What::Nothing)], "{}", broken.escape_ascii());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Losses before sub-buffers equal those of the text format, which is checked against a sweep.
    #[test]
    fn losses_are_those_of_the_text(
        cpus in prop::collection::vec(
            prop::collection::vec((1_u64..30, 0_u32..6, prop::option::weighted(0.3, 0_u64..4)), 0..12),
            1..4,
        ),
        overruns in prop::collection::vec(0_u64..60, 4),
    ) {
        let mut lines = Vec::new();
        let mut data = Vec::new();
        for (cpu, all) in (0_u32..).zip(&cpus) {
            let mut pages = Pages::new(&SHAPE);
            let mut now = 1_000_000_000;
            for &(gap, state, lost) in all {
                now += gap * 1_000;
                let state = if state > 2 { u32::MAX } else { state };
                let lost = lost.map(|events| (events > 0).then_some(events));
                pages.begin(now, lost);
                pages.record(now, &SHAPE.data(0, &What::Idle(state, cpu)), false);
                let notice = match lost {
                    Some(Some(events)) => format!("CPU:{cpu} [{events} EVENTS DROPPED]\n"),
                    Some(None) => format!("CPU:{cpu} [EVENTS DROPPED]\n"),
                    None => String::new(),
                };
                let (seconds, rest) = (now / 1_000_000_000, now % 1_000_000_000);
                let event = format!("<idle>-0 [{cpu:03}] {seconds}.{rest:09}: cpu_idle: state={state} cpu_id={cpu}\n");
                lines.push((now, notice + &event));
            }
            data.push(pages.finish());
        }
        prop_assume!(!lines.is_empty());
        lines.sort_by_key(|(at, _)| *at);
        let text: String = lines.into_iter().map(|(_, line)| line).collect();
        let stats = (0..).zip(&overruns).map(|(cpu, overrun): (u32, _)| {
            (2, format!("CPU: {cpu}\noverrun: {overrun}\n\0").into_bytes())
        });
        let snapshot = |bytes: &[u8]| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), bytes).unwrap();
            let options = crate::replay::Options { files: vec![file.path().to_owned()], ..crate::replay::Options::default() };
            Snapshot::of(&crate::replay::replay(&options).unwrap().findings())
        };
        let of_text = snapshot(text.as_bytes());
        let plain = snapshot(&SHAPE.file(&[], &[("", &data)]));
        let counted = snapshot(&SHAPE.file(&stats.collect::<Vec<_>>(), &[("", &data)]));
        for other in [&plain, &counted] {
            prop_assert_eq!(&other.cpus, &of_text.cpus);
            prop_assert_eq!(&other.clusters, &of_text.clusters);
        }
        prop_assert_eq!(&plain.loss, &of_text.loss);
        // By CPU, the larger number: of its gaps, or of its total.
        let mut dropped = 0;
        let mut at_least = false;
        for (cpu, overrun) in overruns.iter().enumerate() {
            let gaps = cpus.get(cpu).into_iter().flatten().filter_map(|(.., lost)| *lost);
            let of_gaps: u64 = gaps.clone().map(|events| events.max(1)).sum();
            dropped += of_gaps.max(*overrun);
            at_least |= *overrun < of_gaps && gaps.clone().any(|events| events == 0);
        }
        prop_assert_eq!((counted.loss.records_dropped, counted.loss.at_least), (dropped, at_least));
    }
}

#[test]
fn fields_of_all_kinds() {
    use formats::{Field, Format, Kind};
    const ELSEWHERE: Kind = Kind::TextElsewhere { is_relative: false };
    let field = |line: &str| {
        let field = Field::parse(line.as_bytes()).unwrap();
        let word = field.word;
        (String::from_utf8(field.name.into()).unwrap(), field.kind, (word.offset, word.size, word.signed))
    };
    let cases = [
        ("field:char comm[16];\toffset:8;\tsize:16;\tsigned:0;", "comm", Kind::Text, (8, 16, false)),
        ("field:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:1;", "name", ELSEWHERE, (8, 4, true)),
        (
            "field:__data_loc unsigned long[] m;\toffset:8;\tsize:4;\tsigned:0;",
            "m",
            Kind::Array,
            (8, 4, false),
        ),
        ("field:const char * action;\toffset:8;\tsize:8;\tsigned:0;", "action", Kind::Pointer, (8, 8, false)),
        ("field:void *fun;\toffset:8;\tsize:8;\tsigned:0;", "fun", Kind::Number, (8, 8, false)),
        ("field:unsigned long args[6];\toffset:8;\tsize:48;\tsigned:0;", "args", Kind::Array, (8, 48, false)),
        ("field special:char buf;\toffset:12;\tsize:0;", "buf", Kind::Number, (12, 0, false)),
    ];
    for (line, name, kind, word) in cases {
        assert_eq!(field(line), (name.into(), kind, word), "{line}");
    }
    for line in
        ["", "field:", "field:int a", "field:int a;\toffset:x;\tsize:4;", "field:a;\toffset:1;\tsize:4;"]
    {
        assert_eq!(Field::parse(line.as_bytes()), None, "{line}");
    }
    for text in ["", "name: a\n", "name: a\nID: 70000\n", "ID: 1\n"] {
        assert_eq!(Format::parse(text.as_bytes()), None, "{text}");
    }
}

/// Sub-buffers of a CPU: begin, loss before it, consecutive events.
type Recorded = Vec<(u64, Option<pages::Lost>, Vec<(u64, u32, What, bool)>)>;

/// Time, CPU, and expected text.
type Told = (u64, u32, String);

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        ("[ -~]{0,200}", prop_oneof![Just(MARK), Just(0), Just(OTHER)])
            .prop_map(|(text, address)| What::Print(address, text)),
        any::<(u32, u32)>().prop_map(|(state, cpu)| What::Idle(state, cpu)),
        any::<(u32, u32)>().prop_map(|(khz, cpu)| What::Frequency(khz, cpu)),
        Just(What::Switch),
        Just(What::Nothing),
        prop_oneof![Just(0x1234), Just(0x77)].prop_map(What::Suspend),
    ]
}

fn recorded() -> impl Strategy<Value = Recorded> {
    let delta = prop_oneof![0..50_u64, 0..1_u64 << 40];
    let lost =
        prop_oneof![3 => Just(None), 1 => Just(Some(None)), 1 => (1..1000_u64).prop_map(|n| Some(Some(n)))];
    let event = (delta.clone(), 0..12_u32, what(), any::<bool>());
    prop::collection::vec((delta, lost, prop::collection::vec(event, 1..8)), 0..5)
}

fn shape() -> impl Strategy<Value = Shape> {
    (prop::sample::select(shapes()), prop::sample::select(vec![2048_usize, 4096, 65_536]))
        .prop_map(|(shape, page_size)| Shape { page_size, ..shape })
}

/// Returns the sub-buffers, and the expected steps, with the time of each event.
fn write(shape: &Shape, cpu: u32, recorded: &Recorded) -> (Vec<Vec<u8>>, Vec<Told>) {
    let mut pages = Pages::new(shape);
    let (mut lines, mut now) = (Vec::new(), 1);
    for (delta, lost, events) in recorded {
        now += delta;
        pages.begin(now, *lost);
        let mut lost = *lost;
        for (delta, tid, what, is_long) in events {
            now += delta;
            let data = shape.data(*tid, what);
            if !pages.fits(data.len()) {
                pages.begin(now, None);
            }
            pages.record(now, &data, *is_long);
            lines.extend(lost.take().map(|lost| (now, cpu, format!("lost {cpu} {lost:?}"))));
            lines.push((now, cpu, expected(cpu, now, *tid, what)));
        }
    }
    (pages.finish(), lines)
}

proptest! {
    #[test]
    fn what_was_recorded_comes_back(shape in shape(), cpus in prop::collection::vec(recorded(), 1..4)) {
        let written: Vec<_> = (0..).zip(&cpus).map(|(cpu, recorded)| write(&shape, cpu, recorded)).collect();
        let (pages, lines): (Vec<_>, Vec<_>) = written.into_iter().unzip();
        let mut lines = lines.concat();
        lines.sort_by_key(|&(time, cpu, _)| (time, cpu));
        let wanted: Vec<_> = lines.into_iter().map(|line| line.2).collect();
        let file = shape.file(&[], &[("", &pages)]);
        prop_assert_eq!(steps(&open(&file).unwrap()), wanted);
    }
}
