//! Scripts of recordings that are made of marks: the marks come out as they went in.

use std::collections::BTreeMap;

use nntrace_common::{
    layer::{Layer, Phase, Tag},
    mark,
    record::{BeginRecord, ProcessRecord, Record, RecordKind, SpanRecord},
    stack::{Class, Closed, Stack},
};

use super::{
    collect::Collection,
    script::Script,
    steps::{Action, NO_GATE, Step},
};
use crate::{
    model::{causality::Origin, input::Input, marks::OpenSection},
    record::RecordedFacts,
};

/// Recording that a test makes of marks.
struct Recording {
    collection: Collection,
    facts: RecordedFacts,
    stacks: BTreeMap<u32, Stack>,
}

impl Recording {
    fn new() -> Self {
        let facts = RecordedFacts {
            names: [].into_iter().collect(),
            paths: [].into_iter().collect(),
            open: Vec::new(),
            processes: BTreeMap::new(),
            threads: BTreeMap::new(),
            damage: Vec::new(),
        };
        Self { collection: Collection::default(), facts, stacks: BTreeMap::new() }
    }

    fn take(&mut self, input: &Input<'_>) {
        assert!(self.collection.take(input));
    }

    /// Takes a mark of a thread as a live run would.
    fn mark(&mut self, pid: u32, tid: u32, time: u64, payload: &str) {
        let text = payload.as_bytes();
        let stack = self.stacks.entry(tid).or_insert(Stack::EMPTY);
        let mut spans = Vec::new();
        let paths = &mut self.facts.paths;
        let close = |stack: &Stack, closed: &Closed| {
            stack.steps(closed.depth, |path, step| _ = paths.insert(path, step));
            spans.push(SpanRecord::new(pid, tid, true, closed));
        };
        let depth = stack.depth();
        match mark::kind(text).unwrap() {
            mark::Kind::Begin => {
                let begin = mark::begin(text);
                let name = mark::hashed_name(text, begin.name_at);
                let name_text = String::from_utf8_lossy(mark::name(text, begin.name_at)).into_owned();
                self.facts.names.insert(name.hash, name_text);
                let depth = stack.depth_of_next(begin.prefix).unwrap();
                stack.begin(time, begin.prefix, begin.label, name.hash, close);
                if name.has_attributes {
                    let origin = Origin { pid, tid, depth, sequence: 0 };
                    self.take(&Input::AnnotatedBegin { origin, time, payload: text, name_at: begin.name_at });
                }
            }
            mark::Kind::End => _ = stack.end(time, close),
            _ => self.take(&Input::Track {
                origin: Origin { pid, tid, depth, sequence: 0 },
                time,
                payload: text,
            }),
        }
        for span in &spans {
            self.take(&Input::Record(&Record::Span(*span)));
        }
    }

    fn fork(&mut self, pid: u32, by: u32, tid: u32, time: u64) {
        let fork = ProcessRecord { kind: RecordKind::Fork as u32, tgid: pid, tid, detail: by, time };
        self.take(&Input::Record(&Record::Fork(fork)));
    }

    fn script(mut self) -> Script {
        for (tid, stack) in &self.stacks {
            self.facts
                .open
                .extend(stack.open_frames().map(|(_, frame)| OpenSection::new(None, *tid, frame, 0)));
        }
        Script::made(self.collection, self.facts)
    }
}

/// Returns the payloads of a thread, and the times of its other threads' starts.
fn payloads(script: &Script, thread: usize) -> Vec<(u64, String)> {
    let text = |step: &Step| match step.action {
        Action::Begin(text) | Action::Event(text) => {
            String::from_utf8(script.texts.payload(text, 1).bytes().to_vec()).unwrap()
        }
        Action::End => "E|1".into(),
        Action::Start(other) => format!("start {other}"),
    };
    script.threads[thread].steps.iter().map(|step| (step.time, text(step))).collect()
}

fn texts(script: &Script, thread: usize) -> Vec<String> {
    payloads(script, thread).into_iter().map(|(_, text)| text).collect()
}

/// Returns the closed sections that marks give, in a fixed order, and the names of those that stay open.
fn accounted(marks: &[(u64, String)]) -> (Vec<Closed>, Vec<u64>) {
    let mut stack = Stack::EMPTY;
    let mut all = Vec::new();
    for (time, text) in marks {
        let text = text.as_bytes();
        // Foreign sections are in no recording, and count in the depth of those in them.
        let close = |_: &Stack, closed: &Closed| all.push(Closed { depth: 0, ..*closed });
        match mark::kind(text) {
            Some(mark::Kind::Begin) => {
                let begin = mark::begin(text);
                let name = mark::name_hash(text, begin.name_at);
                stack.begin(*time, begin.prefix, begin.label, name, close);
            }
            Some(mark::Kind::End) => _ = stack.end(*time, close),
            _ => {}
        }
    }
    all.sort_by_key(|closed| (closed.begin, closed.end, closed.path, closed.name));
    (all, stack.open_frames().map(|(_, frame)| frame.name).collect())
}

fn recorded(marks: &[(u64, String)]) -> Script {
    let mut recording = Recording::new();
    for (time, text) in marks {
        recording.mark(10, 10, *time, text);
    }
    recording.script()
}

/// Returns the layer and phase of a begin.
fn tag(begin: &[u8]) -> Tag {
    mark::begin(begin).label.tag().unwrap()
}

fn timed(texts: &[&str]) -> Vec<(u64, String)> {
    texts.iter().zip(1..).map(|(text, number)| (number * 10, (*text).to_owned())).collect()
}

#[test]
fn marks_come_out_as_they_went_in() {
    let marks = timed(&[
        "B|1|[NN_LA_PO]case#img=a.jpg#iter=3",
        "C|1|queue|5",
        "B|1|[NN_LR_PC]p",
        "B|1|[SUB][NN_LR_PC]late",
        "I|1|nn.send#h=7",
        "E|1",
        "B|1|[NN_LR_PI]by the rules",
        "E|1",
        "E|1",
        "B|1|[NN_LC_PTR]t",
        "B|1|[SW][NN_LC_PCO]c#n=1",
        "B|1|[SW][NN_LC_PR]r",
        "E|1",
    ]);
    let script = recorded(&[&marks[..], &timed(&["E|1"; 16])[13..]].concat());
    let mut expected = marks;
    // The places that switches left end with the last section.
    expected.extend([(130, "E|1".to_owned()), (130, "E|1".to_owned()), (160, "E|1".to_owned())]);
    assert_eq!(payloads(&script, 0), expected);
    assert_eq!(script.notes(), [""; 0]);
    assert_eq!(script.marks(), 16);
}

#[test]
fn what_somebody_else_wrote_is_left_out() {
    let marks = timed(&["B|1|other", "B|1|[NN_LR_PE]f", "B|1|other", "E|1", "E|1", "E|1", "E|1"]);
    assert_eq!(texts(&recorded(&marks), 0), ["B|1|[NN_LR_PE]f", "E|1"]);
}

#[test]
fn what_was_open_at_the_end_stays_open() {
    let marks =
        timed(&["B|1|[NN_LA_PO]all", "B|1|[NN_LA_PE]loop", "B|1|[NN_LR_PE]f", "E|1", "B|1|[NN_LR_PE]g"]);
    let script = recorded(&marks);
    // Nothing shows the layer and phase of a section in which none has ended.
    let expected = ["B|1|[NN_LA_PO]all", "B|1|[NN_LA_PE]loop", "B|1|[NN_LR_PE]f", "E|1", "B|1|[NN_LR_PE]g"];
    assert_eq!(texts(&script, 0), expected);
}

#[test]
fn work_for_other_threads_has_no_tag() {
    let mut recording = Recording::new();
    recording.mark(10, 10, 10, "B|1|[NN_LR_PE]f");
    recording.mark(10, 10, 20, "E|1");
    let tag = tag(b"B|1|[NN_LC_PE]");
    let handed = Closed { class: Class::Handed, name: 1, ..Closed::alone(tag, 1, 30, 40, 0) };
    recording.take(&Input::Record(&Record::Span(SpanRecord::new(10, 10, true, &handed))));
    recording.facts.names.insert(1, "op".into());
    let script = recording.script();
    assert_eq!(texts(&script, 0), ["B|1|[NN_LR_PE]f", "E|1", "B|1|op", "E|1"]);
    assert_eq!(script.notes().len(), 1);
    assert!(script.notes()[0].starts_with("1 section belongs"), "{:?}", script.notes());
}

#[test]
fn asynchronous_executions_that_overlap_have_threads_of_their_own() {
    let mut recording = Recording::new();
    let tag = tag(b"B|1|[NN_LR_PE]");
    recording.facts.names.insert(1, "run".into());
    let run = |recording: &mut Recording, begin, end| {
        let run = SpanRecord::new(10, 11, true, &Closed::asynchronous(tag, 1, (begin, end), 5, 0));
        recording.take(&Input::Record(&Record::Span(run)));
    };
    recording.mark(10, 11, 10, "B|1|[NN_LA_PE]f");
    recording.mark(10, 11, 20, "B|1|[NN_LR_PE]g");
    recording.mark(10, 11, 30, "E|1");
    run(&mut recording, 15, 35);
    recording.mark(10, 11, 40, "E|1");
    run(&mut recording, 33, 60);
    run(&mut recording, 38, 70);
    let script = recording.script();
    let all: Vec<Vec<(u64, String)>> = (0..script.threads.len())
        .map(|thread| payloads(&script, thread))
        .filter(|all| all[0].1.starts_with('B'))
        .collect();
    let text = |time, text: &str| (time, text.to_owned());
    let run = |begin, end| [text(begin, "B|1|[NN_LR_PE]run"), text(end, "E|1")];
    let own = [text(10, "B|1|[NN_LA_PE]f"), text(20, "B|1|[NN_LR_PE]g"), text(30, "E|1"), text(40, "E|1")];
    assert_eq!(all[0], own);
    assert_eq!(all[1..], [[run(15, 35), run(38, 70)].concat(), run(33, 60).to_vec()]);
    assert_eq!(script.notes(), [""; 0]);
}

#[test]
fn interface_calls_are_known_by_their_names() {
    let mut recording = Recording::new();
    let call = "HIDL::IDevice::prepareModel::server";
    let tag = tag(b"B|1|[NN_LD_PC]");
    for (name, text) in
        [(1, call), (2, "HIDL::IDevice::other"), (3, "HIDL::IExecutionCallback::notify::client")]
    {
        recording.facts.names.insert(name, text.into());
    }
    for name in [1, 2] {
        let section = Closed::alone(tag, name, name * 100, name * 100 + 50, 0);
        recording.take(&Input::Record(&Record::Span(SpanRecord::new(10, 10, true, &section))));
    }
    let notified = BeginRecord::new(10, 10, mark::Label::FOREIGN, 3, 170);
    recording.take(&Input::Record(&Record::Begin(notified)));
    let expected = [
        "B|1|HIDL::IDevice::prepareModel::server",
        "E|1",
        "B|1|HIDL::IExecutionCallback::notify::client",
        "E|1",
        "B|1|[NN_LD_PC]HIDL::IDevice::other",
        "E|1",
    ];
    assert_eq!(texts(&recording.script(), 0), expected);
}

#[test]
fn threads_are_started_by_those_that_did_and_ids_are_not_mixed_up() {
    let mut recording = Recording::new();
    let section = |recording: &mut Recording, pid, tid, time, name: &str| {
        recording.mark(pid, tid, time, &format!("B|1|[NN_LR_PE]{name}"));
        recording.mark(pid, tid, time + 5, "E|1");
    };
    recording.fork(10, 10, 20, 2_000_000);
    section(&mut recording, 10, 20, 3_000_000, "first");
    // The id is given to a thread of another one, which has no marks itself.
    recording.fork(10, 10, 21, 4_000_000);
    recording.fork(10, 21, 20, 5_000_000);
    section(&mut recording, 10, 20, 6_000_000, "second");
    section(&mut recording, 10, 25, 7_000_000, "older");
    recording.fork(10, 10, 30, 8_000_000);
    section(&mut recording, 30, 30, 9_000_000, "child");
    recording.facts.processes.extend([(10, "app".to_owned()), (30, "driver".to_owned())]);
    recording.facts.threads.insert((10, 25), "worker".into());
    let script = recording.script();
    let [app, driver] = &script.processes[..] else { panic!("{:?}", script.processes) };
    assert_eq!((app.pid, app.name.as_deref(), app.begin), (10, Some("app"), 2_000_000));
    assert_eq!((driver.pid, driver.name.as_deref(), driver.begin), (30, Some("driver"), 9_000_000));
    let of = |name: &str| {
        let is_begin = |text: &String| text.ends_with(&format!("]{name}"));
        (0..script.threads.len()).find(|thread| texts(&script, *thread).iter().any(is_begin)).unwrap()
    };
    let started = |time, thread: usize| (time, format!("start {thread}"));
    let [first, second, older] = [of("first"), of("second"), of("older")];
    let between = script.threads.len() - 1;
    let main = [started(2_000_000, first), started(4_000_000, between), started(6_000_000, older)];
    assert_eq!(payloads(&script, app.main as usize), main);
    assert_eq!(payloads(&script, between), [started(5_000_000, second)]);
    assert_eq!(script.threads[older].name.as_deref(), Some("worker"));
    assert_eq!(driver.main as usize, of("child"));
}

#[test]
fn hand_overs_and_phases_keep_their_order() {
    let mut recording = Recording::new();
    for (tid, time, text) in [
        (10, 10, "B|1|[NN_LA_PBM]case"),
        (10, 20, "I|1|nn.send#h=7"),
        (11, 30, "B|1|[NN_LR_PE]work#h=7"),
        (11, 40, "E|1"),
        (11, 45, "I|1|nn.recv#h=8"),
        (10, 50, "E|1"),
        (11, 60, "B|1|[NN_LR_PE]after"),
        (11, 70, "E|1"),
    ] {
        recording.mark(10, tid, time, text);
    }
    let script = recording.script();
    let step = |thread: usize, text: &str| {
        let place = texts(&script, thread).iter().position(|found| found.contains(text)).unwrap();
        script.threads[thread].steps[place]
    };
    let [case, send] = [step(0, "case"), step(0, "nn.send")];
    let end = script.threads[0].steps.iter().rfind(|step| step.action == Action::End).unwrap();
    assert_eq!(script.gates, 3);
    assert_eq!((case.waits, step(1, "work").waits), (NO_GATE, send.opens));
    assert_eq!(step(1, "after").waits, end.opens);
    // What was never handed over is not waited for.
    assert_eq!(step(1, "nn.recv").waits, NO_GATE);
    assert!([case.opens, send.opens, end.opens].iter().all(|gate| *gate < 3));
}

mod property {
    use proptest::prelude::*;

    use super::*;

    /// Generates any begin, tagged or not, with any prefix, and as many ends as begins.
    fn payload() -> impl Strategy<Value = String> {
        let tag = (0..Layer::ALL.len(), 0..Phase::ALL.len());
        let prefix = prop_oneof![4 => Just(""), 1 => Just("[SW]"), 1 => Just("[SUB]")];
        let attributes = prop_oneof![3 => Just(""), 1 => Just("#iter=3#x=y")];
        prop_oneof![
            5 => (prefix, tag, "[a-c]", attributes).prop_map(|(prefix, (layer, phase), name, attributes)| {
                let (layer, phase) = (Layer::ALL[layer].code(), Phase::ALL[phase].code());
                format!("B|1|{prefix}[NN_{layer}_{phase}]{name}{attributes}")
            }),
            1 => Just("B|1|somebody else".to_owned()),
            1 => Just("I|1|instant".to_owned()),
            5 => Just("E|1".to_owned()),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]
        #[test]
        fn the_contract_counts_the_same_sections(
            steps in proptest::collection::vec((1_u64..5, payload()), 1..60),
        ) {
            let mut now = 0;
            let marks: Vec<(u64, String)> = steps.into_iter().map(|(gap, text)| {
                now += gap;
                (now, text)
            }).collect();
            let script = recorded(&marks);
            prop_assert_eq!(script.notes(), [""; 0]);
            let again = script.threads.first().map(|_| payloads(&script, 0)).unwrap_or_default();
            prop_assert!(again.is_sorted_by_key(|(time, _)| *time));
            let ((expected, open), (closed, still_open)) = (accounted(&marks), accounted(&again));
            prop_assert_eq!(closed, expected);
            // A section in which none has ended has no layer and phase, and is in no count.
            prop_assert!(still_open.iter().all(|name| open.contains(name)));
            let instants = |marks: &[(u64, String)]| marks.iter().filter(|(_, text)| text.starts_with('I')).count();
            prop_assert_eq!(instants(&marks), instants(&again));
        }
    }
}
