//! Recordings of what traces are made of: they are answered like these.

use std::path::Path;

use tempfile::TempDir;

use super::{causes::slowed_by_a_limit, *};
use crate::record::{self, Recorder, ReplayOptions, RunDescription};

/// Records everything that a model takes of a trace.
fn recorded(trace: Trace) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (_file, options) = trace.written();
    // Each pass starts over; the last one is that of the results.
    let mut recorders: Vec<Recorder> = Vec::new();
    let run = replay::replay_with_observer(&options, &mut || {
        let path = folder.path().join(recorders.len().to_string());
        recorders.push(Recorder::create(&path, RunDescription::default(), false, None).unwrap());
        recorders.last().unwrap().observer()
    });
    let last = recorders.len() - 1;
    recorders.remove(last).finish(&run.unwrap().findings(), None).unwrap();
    fs::rename(folder.path().join(last.to_string()), folder.path().join("run")).unwrap();
    folder
}

fn answer(folder: &Path) -> serde_json::Value {
    let options = ReplayOptions {
        questions: Some(Questions { hand_overs: true, ..Questions::default() }),
        with_timelines: true,
        ..ReplayOptions::default()
    };
    let collector = Collector::new(1 << 24);
    let run = record::replay_with_observer(folder, &options, collector.observer()).unwrap();
    let answer =
        Answer::new(&collector, &run.findings(), run.timelines().as_ref(), &Options::default()).unwrap();
    serde_json::to_value(&answer).unwrap()
}

#[test]
fn a_recording_names_the_limit() {
    for (cooling, by) in [(false, "a limit of the policy"), (true, "cooling: thermal-cpufreq-0")] {
        let folder = recorded(slowed_by_a_limit(cooling));
        let answer = answer(&folder.path().join("run"));
        assert_sums(&answer);
        assert_eq!(parts(&answer), [("frequency", 1_000_000, "measured")]);
        let expected = format!("big at 1.00 GHz, typically 2.00 GHz, limited to 1.00 GHz by {by}");
        assert_eq!(answer["parts"][0]["text"], expected);
    }
}
