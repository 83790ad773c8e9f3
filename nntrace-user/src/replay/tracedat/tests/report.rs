//! trace-cmd's own files against the text that `trace-cmd report` prints of them.

use std::path::{Path, PathBuf};

use crate::replay::{
    batches::Division,
    events::{self, Visitor},
    ftrace::{Event, EventKind},
    input::Input,
    losses::Loss,
};

/// Files with their texts.
const CASES: [(&str, &str); 5] = [
    ("power.v6.dat.zst", "power.txt.zst"),
    ("power.v7.dat", "power.txt.zst"),
    ("lost.v6.dat.zst", "lost.txt.zst"),
    ("lost.v7.dat", "lost.txt.zst"),
    ("lost.v7-plain.dat.zst", "lost.txt.zst"),
];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/tracedat").join(name)
}

/// Log of a trace, one line per call.
#[derive(Default)]
struct Lines(Vec<String>);

impl Visitor for Lines {
    fn event(&mut self, event: &Event<'_>) -> bool {
        // Fields of other events are formatted differently.
        let kind = match event.kind {
            EventKind::Other { name, .. } => format!("{:?}", String::from_utf8_lossy(name)),
            known => format!("{known:?}"),
        };
        let comm = String::from_utf8_lossy(event.comm);
        self.0.push(format!("{} {} {comm}-{} {:?} {kind}", event.time, event.cpu, event.tid, event.tgid));
        true
    }

    fn lost(&mut self, loss: Loss) {
        // Statistics are in the binary file only.
        if let Loss::Gap { cpu, events } = loss {
            self.0.push(format!("lost {cpu} {events:?}"));
        }
    }

    fn header(&mut self, _: &[u8]) -> bool {
        false
    }

    fn unreadable(&mut self, _: &str, number: u64, line: &[u8]) {
        self.0.push(format!("unreadable {number}: {}", String::from_utf8_lossy(line)));
    }

    fn cut(&mut self, _: &str, why: String) {
        self.0.push(format!("cut {why}"));
    }
}

fn lines(name: &str) -> Vec<String> {
    let mut lines = Lines::default();
    events::visit(&[Input::open(&fixture(name)).unwrap()], Division::suited(1), &mut lines);
    lines.0
}

#[test]
fn events_are_those_of_the_report() {
    for (file, text) in CASES {
        let (found, wanted) = (lines(file), lines(text));
        for (number, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
            assert_eq!(found, wanted, "{file}, {number}");
        }
        assert_eq!(found.len(), wanted.len(), "{file}");
    }
    let lost: Vec<_> = lines("lost.v7.dat").into_iter().filter(|line| line.starts_with("lost")).collect();
    assert_eq!(lost, ["lost 0 Some(560)", "lost 1 Some(561)"]);
}

#[test]
fn fields_of_context_switches_are_told() {
    struct Switches(Vec<String>);
    impl Visitor for Switches {
        fn event(&mut self, event: &Event<'_>) -> bool {
            if let EventKind::Other { name: b"sched_switch", fields } = event.kind {
                self.0.push(String::from_utf8_lossy(fields).into_owned());
            }
            true
        }
        fn lost(&mut self, _: Loss) {}
    }
    let mut switches = Switches(Vec::new());
    events::visit(&[Input::open(&fixture("power.v7.dat")).unwrap()], Division::suited(1), &mut switches);
    let first = "prev_comm=bash prev_pid=25382 prev_prio=120 prev_state=1 next_comm=bash next_pid=25389 next_prio=120";
    assert_eq!(switches.0[0], first);
    assert!(switches.0.iter().any(|fields| fields.contains("prev_comm=worker net:1 prev_pid=")));
}
