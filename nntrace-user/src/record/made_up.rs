//! Recordings of made-up inputs.

use std::{borrow::Cow, collections::BTreeMap};

use nntrace_common::{
    layer::{Layer, Phase, Tag},
    record::{ProcessRecord, Record, RecordKind, SpanRecord},
    stack::{Adds, Class},
};
use proptest::prelude::*;
use tempfile::TempDir;

use super::{Recorder, RunDescription};
use crate::model::{
    Model,
    app_report_sums::ReportSums,
    causality::Questions,
    findings::{RunFacts, Sums},
    function_names::Names,
    input::Input,
    limits::Limits,
    run_facts::{Host, Loss, MarksSeen, Overhead, Source, SourceKind, Window},
    stacks::Totals,
};

/// Process of all sections.
pub(super) const PID: u32 = 10;

/// Creates a section, with a name by its number.
pub(super) fn span(tid: u32, begin: u64, length: u64, depth: u8, name: u64) -> SpanRecord {
    SpanRecord {
        kind: RecordKind::Span as u32,
        tid,
        tgid: PID,
        tag: Tag::new(Layer::Runtime, Phase::Execution).index(),
        class: Class::Section as u8,
        depth,
        adds: Adds::from_bits(3),
        begin,
        end: begin + length,
        own: length - length / 4,
        exclusive: length / 3,
        path: u64::from(depth),
        name,
        begin_sequence: 0,
        end_sequence: 0,
    }
}

/// Sections of four threads, in any order, a few of them long.
pub(super) fn spans() -> impl Strategy<Value = Vec<SpanRecord>> {
    let length = prop_oneof![8 => 0..40_u64, 1 => 0..5_000_u64];
    let one = (PID..PID + 4, 0..2_000_u64, length, 0..3_u8, 1..6_u64);
    prop::collection::vec(one, 0..300).prop_map(|all| {
        all.into_iter()
            .map(|(tid, begin, length, depth, name)| span(tid, begin, length, depth, name))
            .collect()
    })
}

/// Records inputs; returns the folder.
pub(super) fn recorded(spans: &[SpanRecord], forks: &[(u64, u32, u32)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let recorder = Recorder::create(&path, RunDescription::default(), false, None).unwrap();
    let mut observer = recorder.observer();
    let mut names = Names::default();
    for &(time, detail, tid) in forks {
        let fork = ProcessRecord { kind: RecordKind::Fork as u32, tgid: PID, tid, detail, time };
        observer.input(&Input::Record(&Record::Fork(fork)), &names);
    }
    for (place, span) in spans.iter().enumerate() {
        names.insert(span.name, format!("f{}", span.name).as_bytes());
        observer.input(&Input::Record(&Record::Span(*span)), &names);
        if place % 50 == 0 {
            observer.input(&Input::Advance { until: 1 }, &names);
        }
    }
    let model = Model::new(&Limits::default(), Questions::default(), None);
    let processes = BTreeMap::new();
    let run = RunFacts {
        host: Host::default(),
        window: Window::default(),
        source: Source {
            kind: SourceKind::Live,
            marks: MarksSeen::Uprobe,
            files: Vec::new(),
            engines: Vec::new(),
            express: None,
        },
        processes: &processes,
        threads: Cow::Borrowed(&[]),
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
        diagnostics: Cow::Borrowed(&[]),
        notes: Vec::new(),
        with_details: false,
    };
    let sums = Sums { cpus: Vec::new(), totals: Totals::default(), reports: ReportSums::default() };
    recorder.finish(&model.findings(run, sums), None).unwrap();
    folder
}
