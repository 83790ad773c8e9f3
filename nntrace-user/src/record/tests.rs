//! Bounded recordings of made-up runs: their replay is that of a run that begins later.

use std::{borrow::Cow, collections::BTreeMap, fs, ops::ControlFlow, path::Path, time::Duration};

use nntrace_common::{
    frequency_limits::{CoolingRecord, LimitRecord, device},
    layer::{Layer, Phase, Tag},
    mark,
    power::{Activity, IDLE_EXIT},
    record::{PowerRecord, Record, RecordKind, SpanRecord},
    stack::Adds,
};

use super::{
    Cause, ClockReading, FlightOptions, FlightRecorder, MostSize, Recorder, ReplayOptions, RunDescription,
    Summary, kept::Kept, play, read::Files, replay, statistics,
};
use crate::model::{
    Findings, Model, Topology,
    causality::Questions,
    findings::{RunFacts, Sums},
    frequency_limits::{CoolingState, PolicyLimit},
    initial_state::{IdleSource, InitialCpu, InitialState},
    limits::Limits,
    run_facts::{Host, Loss, MarksSeen, Overhead, ProcessLabel, Source, SourceKind, Window},
    section_filter::SectionFilter,
    section_statistics::SectionStatistics,
    topology::{ClusterDescription, CpuDescription, Domain},
};

/// Time between two rounds of events, ns.
const ROUND: u64 = 10_000_000;
const BEGIN: u64 = 5 * ROUND;
const CPUS: u64 = 2;

fn topology() -> Topology {
    let cpus = (0..CPUS as u32).map(|cpu| (cpu, CpuDescription::default())).collect();
    let cluster = ClusterDescription { name: "all".into(), cpus: vec![0, 1], domain: Domain::Both };
    Topology { cpus, clusters: vec![cluster], policies: vec![vec![0, 1]], ..Topology::default() }
}

/// Event of power of a round: the CPUs enter and leave idle states in turns.
fn power(round: u64) -> PowerRecord {
    let (cpu, step) = ((round % CPUS) as u32, round / CPUS);
    let state = if step.is_multiple_of(2) { (step / 2 % 3) as u32 } else { IDLE_EXIT };
    PowerRecord { kind: RecordKind::Idle as u32, cpu, time: BEGIN + round * ROUND, state, lost: 0 }
}

/// Section of a round: it counts as its thread takes part, which was known at the begin only.
fn section(round: u64, name: u64) -> SpanRecord {
    let end = BEGIN + round * ROUND + 1;
    SpanRecord {
        kind: RecordKind::ProvisionalSpan as u32,
        tid: 7,
        tgid: 7,
        tag: Tag::new(Layer::Runtime, Phase::Execution).index(),
        class: 0,
        depth: 0,
        adds: Adds::from_bits(0),
        begin: end - 1_000 - round,
        end,
        own: 1_000 + round,
        exclusive: 1_000,
        path: 3,
        name,
        begin_sequence: 0,
        end_sequence: 0,
    }
}

/// Takes the events of rounds, with an advance after every tenth.
fn run(model: &mut Model, rounds: impl Iterator<Item = u64>) {
    for round in rounds {
        let text = format!("f{}", round % 20);
        let name = mark::name_hash(text.as_bytes(), 0);
        model.marks.names.insert(name, text.as_bytes());
        model.record(&Record::Idle(power(round)));
        model.record(&Record::Span(section(round, name)));
        if round % 10 == 9 {
            model.advance(BEGIN + round * ROUND + 2);
        }
    }
}

fn model() -> Model {
    Model::new(&Limits::default(), Questions::default(), None)
}

fn findings<'a>(
    model: &'a Model,
    processes: &'a BTreeMap<u32, ProcessLabel>,
    window: &Window,
) -> Findings<'a> {
    let run = RunFacts {
        host: Host::default(),
        window: window.clone(),
        source: Source {
            kind: SourceKind::Live,
            marks: MarksSeen::Uprobe,
            files: Vec::new(),
            engines: Vec::new(),
            express: None,
        },
        processes,
        threads: Cow::Owned(Vec::new()),
        thread_names: None,
        energy_model: None,
        rails: None,
        device_usage: None,
        device_clocks: Vec::new(),
        evidence: None,
        verify: None,
        perf_counts: None,
        overhead: Overhead::default(),
        loss: Loss::default(),
        diagnostics: Cow::Owned(Vec::new()),
        notes: Vec::new(),
        with_details: false,
    };
    model.findings(run, Sums::recorded(model, 0..CPUS as u32, window.end_ns))
}

fn description() -> RunDescription {
    RunDescription { clocks: ClockReading::now(), ..RunDescription::default() }
}

/// Begins a run that a recorder observes, at a frequency that is limited.
fn begin(model: &mut Model) {
    model.mark_thread(7, 7);
    model.begin_power(&topology(), BEGIN, &InitialState::default(), false);
    let kind = RecordKind::FrequencyLimit as u32;
    let limit = LimitRecord { kind, cpu: 0, time: BEGIN, min_khz: 0, max_khz: 900_000 };
    model.record(&Record::FrequencyLimit(limit));
    let (kind, device) = (RecordKind::Cooling as u32, device(b"cpufreq-cpu0"));
    model.record(&Record::Cooling(CoolingRecord { kind, device, time: BEGIN, state: 2 }));
}

/// Checks that a recording has the rounds from some time on, and is what they alone are; returns what is kept.
fn check(folder: &Path, rounds: u64, end: u64) -> Kept {
    let (_, state, damage) = Files::open(folder).unwrap().state().unwrap();
    assert_eq!(damage, [""; 0]);
    let kept = state.kept.unwrap();
    let later = |round: &u64| BEGIN + round * ROUND >= kept.begin_ns;
    let mut initial = InitialState::default();
    for round in (0..rounds).filter(|round| !later(round)) {
        let PowerRecord { cpu, state, .. } = power(round);
        let activity = Some(Activity::after_event(state));
        initial.cpus.insert(cpu, InitialCpu { activity, idle: IdleSource::Event, ..InitialCpu::default() });
    }
    assert_eq!(kept.initial, initial);

    let mut expected = model();
    expected.mark_thread(7, 7);
    expected.begin_power(&topology(), kept.begin_ns, &initial, false);
    run(&mut expected, (0..rounds).filter(later));
    let (none, window) =
        (BTreeMap::new(), Window { begin_ns: kept.begin_ns, end_ns: end, ..Window::default() });
    let expected = findings(&expected, &none, &window);

    let options = ReplayOptions { with_timelines: true, ..ReplayOptions::default() };
    let replayed = replay(folder, &options).unwrap();
    // Set before, and in force still.
    let limits = replayed.timelines().unwrap().limits;
    assert_eq!(limits.policies, [PolicyLimit { time: BEGIN, cpu: 0, khz: 900_000 }]);
    assert_eq!(limits.cooling, [CoolingState { time: BEGIN, device: "cpufreq-cpu0".into(), state: 2 }]);
    let replayed = replayed.findings();
    assert_eq!(replayed.run.loss.records_unreadable, 0, "{:?}", replayed.run.notes);
    assert_eq!((replayed.run.window.begin_ns, replayed.run.window.end_ns), (kept.begin_ns, end));
    assert_eq!(replayed.run.overhead.marks, 2 * (0..rounds).filter(later).count() as u64);
    let residency = |findings: &Findings<'_>| {
        let cpus = findings.sums.cpus.iter();
        cpus.map(|cpu| (cpu.idle.clone(), cpu.running.clone(), cpu.unknown_ns)).collect::<Vec<_>>()
    };
    assert_eq!(residency(&replayed), residency(&expected));
    assert!(
        replayed.sums.cpus.iter().all(|cpu| cpu.unknown_ns == 0 && cpu.total_ns() == end - kept.begin_ns)
    );
    assert_eq!(format!("{:?}", replayed.clusters), format!("{:?}", expected.clusters));
    assert!(!replayed.sums.totals.is_empty());
    assert_eq!(format!("{:?}", replayed.sums.totals), format!("{:?}", expected.sums.totals));
    check_other_views(folder, &replayed);
    kept
}

/// Checks that a recording is whole in every other view of it, and played to its end is what it is replayed.
fn check_other_views(folder: &Path, replayed: &Findings<'_>) {
    let summary = Summary::read(folder, true).unwrap();
    assert!(summary.is_whole() && summary.events > 0, "{summary:?}");
    assert_eq!(summary.events, summary.events_found);
    assert_eq!(
        (summary.window.begin_ns, summary.window.end_ns),
        (replayed.run.window.begin_ns, replayed.run.window.end_ns)
    );
    assert!(summary.part[0].starts_with("the last "), "{:?}", summary.part);

    let found =
        statistics(folder, SectionStatistics::new(Vec::new(), SectionFilter::default(), &Limits::default()))
            .unwrap();
    assert_eq!((found.missing, found.damage.len()), (0, 0));

    let mut last = None;
    play(folder, &ReplayOptions::default(), |recorded| {
        let findings = recorded.findings();
        assert_eq!(findings.run.loss.records_unreadable, 0, "{:?}", findings.run.notes);
        last = Some((recorded.elapsed_ns(), format!("{:?} {:?}", findings.sums.totals, findings.sums.cpus)));
        ControlFlow::Continue(())
    })
    .unwrap();
    let expected = format!("{:?} {:?}", replayed.sums.totals, replayed.sums.cpus);
    assert_eq!(last, Some((replayed.run.window.length_ns(), expected)));
}

#[test]
fn the_last_seconds_are_those_of_a_run_that_begins_later() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    let triggers = vec!["f5 >= 1us".parse().unwrap()];
    let options = FlightOptions { time: Duration::from_secs(2), memory: 1 << 20, triggers, replace: false };
    let mut recorder = FlightRecorder::create(&folder, description(), options).unwrap();
    assert!(!folder.exists());
    let mut model = model();
    model.observe_by(recorder.observer());
    begin(&mut model);
    let none = BTreeMap::new();
    run(&mut model, 0..1_000);
    let window = |end_ns| Window { begin_ns: BEGIN, end_ns, ..Window::default() };
    let until = BEGIN + 999 * ROUND + 2;
    // The state may be of later than the last events.
    recorder.write(&findings(&model, &none, &window(until + 5)), recorder.fired().unwrap()).unwrap();
    assert_eq!(recorder.fired(), None);
    run(&mut model, 1_000..1_200);
    let later = BEGIN + 1_199 * ROUND + 2;
    recorder.write(&findings(&model, &none, &window(later)), Cause::Key).unwrap();
    let texts = recorder.finish().unwrap();
    assert!(texts.last().unwrap().starts_with("2 recordings were written; "), "{texts:?}");

    for (folder, rounds, end) in [(folder.clone(), 1_000, until), (parent.path().join("run-2"), 1_200, later)]
    {
        let kept = check(&folder, rounds, end);
        let length = end - kept.begin_ns;
        assert!((1_800_000_000..=2_000_000_000).contains(&length), "{length} ns");
    }
}

#[test]
fn a_run_that_is_shorter_is_recorded_as_a_whole() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    let options =
        FlightOptions { time: Duration::from_mins(1), memory: 1 << 20, triggers: Vec::new(), replace: false };
    let mut recorder = FlightRecorder::create(&folder, description(), options).unwrap();
    let mut model = model();
    model.observe_by(recorder.observer());
    begin(&mut model);
    run(&mut model, 0..1_000);
    let (none, window) =
        (BTreeMap::new(), Window { begin_ns: BEGIN, end_ns: 20_000 * ROUND, ..Window::default() });
    let findings = findings(&model, &none, &window);
    recorder.write(&findings, Cause::Signal).unwrap();
    recorder.finish().unwrap();
    let (_, state, _) = Files::open(&folder).unwrap().state().unwrap();
    assert_eq!(state.kept, None);
    let replayed = replay(&folder, &ReplayOptions::default()).unwrap();
    let replayed = replayed.findings();
    assert_eq!(replayed.sums.cpus, findings.sums.cpus);
    assert_eq!(replayed.run.loss.records_unreadable, 0);
}

#[test]
fn what_has_no_room_is_given_up_from_the_oldest_on() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    let options = FlightOptions {
        time: Duration::from_mins(1),
        memory: 64 << 10,
        triggers: Vec::new(),
        replace: false,
    };
    let mut recorder = FlightRecorder::create(&folder, description(), options).unwrap();
    let mut model = model();
    model.observe_by(recorder.observer());
    begin(&mut model);
    run(&mut model, 0..20_000);
    let end = BEGIN + 19_999 * ROUND + 2;
    let (none, window) = (BTreeMap::new(), Window { begin_ns: BEGIN, end_ns: end, ..Window::default() });
    recorder.write(&findings(&model, &none, &window), Cause::Signal).unwrap();
    recorder.finish().unwrap();
    let kept = check(&folder, 20_000, end);
    assert!(end - kept.begin_ns < 60_000_000_000, "{} ns", end - kept.begin_ns);
    let replayed = replay(&folder, &ReplayOptions::default()).unwrap();
    let notes = replayed.findings().run.notes;
    assert!(notes.iter().any(|note| note.contains("there was no room for more")), "{notes:?}");
}

#[test]
fn a_recording_that_rotates_is_that_of_a_run_that_begins_later() {
    const MOST: u64 = 64 << 10;
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    let most = Some(MostSize::Rotates(MOST));
    let mut recorder = Recorder::create(&folder, description(), false, most).unwrap();
    let mut model = model();
    model.observe_by(recorder.observer());
    begin(&mut model);
    let none = BTreeMap::new();
    let window = |rounds: u64| Window {
        begin_ns: BEGIN,
        end_ns: BEGIN + (rounds - 1) * ROUND + 2,
        ..Window::default()
    };
    for part in 0..20 {
        run(&mut model, part * 1_000..(part + 1) * 1_000);
        recorder.checkpoint(&findings(&model, &none, &window((part + 1) * 1_000))).unwrap();
        assert_eq!(recorder.is_full(), None);
    }
    recorder.finish(&findings(&model, &none, &window(20_000)), None).unwrap();
    let sizes = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    let size: u64 = sizes.sum();
    assert!((MOST / 2..=MOST + (16 << 10)).contains(&size), "{size} bytes");
    let kept = check(&folder, 20_000, window(20_000).end_ns);
    assert!(kept.first_event > 1_000, "{}", kept.first_event);
}
