//! Random schedules, against what a look at every single nanosecond finds.

use proptest::prelude::*;

use super::*;
use crate::analyze::why::executions::{Execution, First, Share, groups};

/// Threads: two of the application, and one of another process.
const TIDS: [u32; 3] = [APP, 9, 20];

/// An act at some time, as far as it is possible then.
#[derive(Clone, Copy, Debug)]
enum Act {
    Run { thread: usize, cpu: usize },
    Leave { cpu: usize },
    Wake { thread: usize, cpu: usize },
    Begin { thread: usize },
    End { thread: usize },
    Send { thread: usize, handle: u32 },
    Receive { thread: usize, handle: u32 },
    Execute,
}

fn act() -> impl Strategy<Value = Act> {
    let (thread, cpu) = (0..TIDS.len(), 0_usize..2);
    prop_oneof![
        4 => (thread.clone(), cpu.clone()).prop_map(|(thread, cpu)| Act::Run { thread, cpu }),
        2 => cpu.clone().prop_map(|cpu| Act::Leave { cpu }),
        3 => (thread.clone(), cpu).prop_map(|(thread, cpu)| Act::Wake { thread, cpu }),
        2 => thread.clone().prop_map(|thread| Act::Begin { thread }),
        2 => thread.clone().prop_map(|thread| Act::End { thread }),
        1 => (thread.clone(), 0_u32..4).prop_map(|(thread, handle)| Act::Send { thread, handle }),
        1 => (thread, 0_u32..4).prop_map(|(thread, handle)| Act::Receive { thread, handle }),
        4 => Just(Act::Execute),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Runs(usize),
    Ready,
    Sleeps,
}

/// Execution with the time in which its thread was ready, and had no CPU.
#[derive(Clone, Copy, Debug)]
struct Executed {
    begin: u64,
    end: u64,
    waited: u64,
}

struct Host {
    now: u64,
    trace: Trace,
    states: [State; TIDS.len()],
    /// Sections of each thread that are open, beside executions.
    open: [u32; TIDS.len()],
    execution: Option<Executed>,
    executed: Vec<Executed>,
}

impl Host {
    fn new() -> Self {
        let mut trace = Trace::default();
        for tid in TIDS {
            let text = format!("sched_wakeup_new: comm={} pid={tid} prio=120 target_cpu=000", name(tid));
            trace.event(0, 0, 0, &text);
        }
        let states = [State::Ready; TIDS.len()];
        Self { now: 0, trace, states, open: [0; TIDS.len()], execution: None, executed: Vec::new() }
    }

    fn on(&self, cpu: usize) -> Option<usize> {
        self.states.iter().position(|state| *state == State::Runs(cpu))
    }

    fn runs(&self, thread: usize) -> bool {
        matches!(self.states[thread], State::Runs(_))
    }

    fn act(&mut self, act: Act) {
        let now = self.now;
        match act {
            Act::Run { thread, cpu } if self.states[thread] == State::Ready => {
                let before = self.on(cpu);
                self.trace.switch(now, cpu as u32, (before.map_or(0, |it| TIDS[it]), "R"), TIDS[thread]);
                if let Some(before) = before {
                    self.states[before] = State::Ready;
                }
                self.states[thread] = State::Runs(cpu);
            }
            Act::Leave { cpu } => {
                let Some(thread) = self.on(cpu) else { return };
                self.trace.switch(now, cpu as u32, (TIDS[thread], "S"), 0);
                self.states[thread] = State::Sleeps;
            }
            Act::Wake { thread, cpu } if self.states[thread] == State::Sleeps => {
                let by = self.on(cpu).map_or(0, |it| TIDS[it]);
                self.trace.wake(now, cpu as u32, by, TIDS[thread]);
                self.states[thread] = State::Ready;
            }
            Act::Begin { thread } if self.runs(thread) => {
                let lock = if now.is_multiple_of(2) { "#lock=table" } else { "" };
                self.trace.begin(now, TIDS[thread], &format!("[NN_LC_PCO]part{}{lock}", now % 3));
                self.open[thread] += 1;
            }
            Act::End { thread } if self.runs(thread) && self.open[thread] > 0 => {
                self.trace.end(now, TIDS[thread]);
                self.open[thread] -= 1;
            }
            Act::Send { thread, handle } if self.runs(thread) => {
                self.trace.mark(now, TIDS[thread], &format!("I|1|nn.send#h=g.{handle}"));
            }
            Act::Receive { thread, handle } if self.runs(thread) => {
                self.trace.mark(now, TIDS[thread], &format!("I|1|nn.recv#h=g.{handle}"));
            }
            Act::Execute if self.runs(0) && self.open[0] == 0 => match self.execution.take() {
                None => {
                    self.trace.begin(now, APP, "[NN_LR_PE]infer");
                    self.execution = Some(Executed { begin: now, end: now, waited: 0 });
                }
                Some(executed) => {
                    self.trace.end(now, APP);
                    self.executed.push(Executed { end: now, ..executed });
                }
            },
            _ => {}
        }
    }

    /// Takes down what is the case for one nanosecond.
    fn tick(&mut self) {
        if let Some(execution) = &mut self.execution {
            execution.waited += u64::from(self.states[0] == State::Ready);
        }
        self.now += 1;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn parts_add_up_and_waits_are_those_of_each_nanosecond(
        acts in prop::collection::vec((0_u64..5, act()), 100..600),
    ) {
        let mut host = Host::new();
        for (wait, act) in acts {
            (0..wait).for_each(|_| host.tick());
            host.act(act);
        }
        let Host { trace, executed, .. } = host;
        let options = Options { function: Some("infer".into()), ..Options::default() };
        if executed.len() < 5 {
            prop_assert!(trace.why(&options).is_err());
            return Ok(());
        }
        let answer = trace.why(&options).unwrap();
        let answer = serde_json::to_value(&answer).unwrap();
        assert_sums(&answer);
        let all = (0..).zip(&executed).map(|(span, it)| Execution {
            span,
            begin: it.begin,
            end: it.end,
            first: First::No,
            pause: None,
        });
        let groups = groups(all.collect(), Share::default());
        let mean = |group: &[Execution]| {
            let sum: u64 = group.iter().map(|it| executed[it.span as usize].waited).sum();
            sum as f64 / group.len() as f64
        };
        let rows = answer["parts"].as_array().unwrap();
        let own = rows.iter().filter(|row| {
            row["cause"] == "wait-for-cpu" && !row["text"].as_str().unwrap().contains(", in ")
        });
        let found: i64 = own.map(|row| row["ns"].as_i64().unwrap()).sum();
        let expected = mean(&groups.slow) - mean(&groups.typical);
        // Each row is rounded by less than one, or was dropped as it is nothing then.
        prop_assert!((found as f64 - expected).abs() <= TIDS.len() as f64 + 1.0, "{} {}", expected, answer);
    }
}
