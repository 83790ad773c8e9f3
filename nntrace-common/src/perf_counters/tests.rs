use proptest::prelude::*;

use super::*;

/// Events of a simulated host.
const EVENTS: u32 = 3;

/// CPUs that count, of which one thread is watched.
struct Host {
    /// Count of each event on each CPU, in no relation to each other.
    cpus: [[Reading; EVENTS as usize]; 3],
    /// CPU that the thread runs on, if it runs.
    on: Option<usize>,
    /// Counts of the thread itself since its last mark.
    own: [Reading; EVENTS as usize],
}

impl Host {
    fn new() -> Self {
        let reading = |cpu: u64, event: u64| Reading {
            count: 1_000_003 * (cpu + 1) * (event + 7),
            enabled: 77_777 * (cpu + 3),
            running: 55_555 * (cpu + 3),
        };
        let cpu = |cpu| [reading(cpu, 0), reading(cpu, 1), reading(cpu, 2)];
        Self { cpus: [cpu(0), cpu(1), cpu(2)], on: Some(0), own: [Reading::default(); EVENTS as usize] }
    }

    /// Lets a CPU work.
    fn work(&mut self, cpu: usize, amount: u64) {
        for event in 0..EVENTS as usize {
            let new = Reading {
                count: amount * (event as u64 + 1),
                enabled: amount,
                running: amount / (event as u64 + 1),
            };
            self.cpus[cpu][event] = self.cpus[cpu][event].plus(new);
            if self.on == Some(cpu) {
                self.own[event] = self.own[event].plus(new);
            }
        }
    }

    fn read(&self, event: u32) -> Reading {
        self.cpus[self.on.unwrap()][event as usize]
    }
}

/// Step of a thread's life.
#[derive(Clone, Copy, Debug)]
enum Step {
    Work { cpu: usize, amount: u64 },
    Leave,
    Arrive { cpu: usize },
    Begin,
    End,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..3_usize, 1..1_000_u64).prop_map(|(cpu, amount)| Step::Work { cpu, amount }),
        1 => Just(Step::Leave),
        2 => (0..3_usize).prop_map(|cpu| Step::Arrive { cpu }),
        2 => Just(Step::Begin),
        2 => Just(Step::End),
    ]
}

/// Counts of a section that has ended, and its place.
type Ended = (u32, [Reading; EVENTS as usize]);

fn charge(counters: &mut ThreadCounters, host: &Host, section: u32) {
    assert!(counters.charge(EVENTS, section, |event, into| {
        *into = host.read(event);
        true
    }));
}

fn close(counters: &mut ThreadCounters, place: u32) -> Ended {
    let mut counts = [Reading::default(); EVENTS as usize];
    counters.close(EVENTS, place, |event, counted| counts[event] = counted);
    (place, counts)
}

proptest! {
    /// The oracle adds to the innermost section what the thread does itself, step by step.
    #[test]
    fn sections_have_what_the_thread_counted_in_them_by_itself(steps in prop::collection::vec(step(), 0..200)) {
        let (mut host, mut counters) = (Host::new(), ThreadCounters::NEW);
        charge(&mut counters, &host, 0);
        let mut open: Vec<[Reading; EVENTS as usize]> = Vec::new();
        let (mut found, mut expected): (Vec<Ended>, Vec<Ended>) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Work { cpu, amount } => host.work(cpu, amount),
                Step::Leave if host.on.is_some() => {
                    counters.leave(EVENTS, |event, into| {
                        *into = host.read(event);
                        true
                    });
                    host.on = None;
                }
                Step::Arrive { cpu } if host.on.is_none() => {
                    host.on = Some(cpu);
                    counters.arrive(EVENTS, |event, into| {
                        *into = host.read(event);
                        true
                    });
                }
                Step::Begin | Step::End if host.on.is_some() => {
                    charge(&mut counters, &host, open.len() as u32);
                    if let Some(innermost) = open.last_mut() {
                        for (sum, own) in innermost.iter_mut().zip(host.own) {
                            *sum = sum.plus(own);
                        }
                    }
                    host.own = Default::default();
                    if matches!(step, Step::Begin) && open.len() < MAX_DEPTH {
                        open.push(Default::default());
                    } else if let Some(counts) = open.pop() {
                        expected.push((open.len() as u32, counts));
                        found.push(close(&mut counters, open.len() as u32));
                    }
                }
                _ => {}
            }
        }
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn a_switch_in_the_middle_of_a_reading_is_none_of_the_section() {
    let mut counters = ThreadCounters::NEW;
    let plain = |count: u64| Reading { count, enabled: count, running: count };
    let read = |count: u64| {
        move |_: u32, into: &mut Reading| {
            *into = plain(count);
            true
        }
    };
    assert!(counters.charge(1, 0, read(100)));
    let pointer = &raw mut counters;
    let mut attempts = 0;
    let is_whole = counters.charge(1, 1, |_, into| {
        attempts += 1;
        *into = plain(110);
        if attempts == 1 {
            // SAFETY: the program on context switches interrupts the reading just like this.
            unsafe {
                (*pointer).leave(1, read(115));
                (*pointer).arrive(1, read(500));
            }
        } else {
            *into = plain(507);
        }
        true
    });
    assert!(is_whole);
    assert_eq!(attempts, 2);
    // 15 until it left, 7 since it came back.
    assert_eq!(close(&mut counters, 0).1[0], plain(22));
}

#[test]
fn what_cannot_be_read_is_reported_and_charges_nothing() {
    let mut counters = ThreadCounters::NEW;
    let plain = |count: u64| Reading { count, enabled: count, running: count };
    let charge = |counters: &mut ThreadCounters, counts: [Option<u64>; 2]| {
        counters.charge(2, 1, |event, into| {
            *into = plain(counts[event as usize].unwrap_or(0));
            counts[event as usize].is_some()
        })
    };
    assert!(charge(&mut counters, [Some(10), Some(20)]));
    assert!(!charge(&mut counters, [Some(15), None]));
    assert!(charge(&mut counters, [Some(16), Some(29)]));
    let mut counts = [0; 2];
    counters.close(2, 0, |event, counted| counts[event] = counted.count);
    assert_eq!(counts, [6, 9], "an event that is read again has what it counted meanwhile");
    // A count that goes back is of no use.
    assert!(!charge(&mut counters, [Some(3), Some(30)]));
    counters.close(2, 0, |event, counted| counts[event] = counted.count);
    assert_eq!(counts, [0, 1]);
    // Nothing is left for the next section there.
    counters.close(2, 0, |event, counted| counts[event] = counted.count);
    assert_eq!(counts, [0, 0]);
}

#[test]
fn a_mark_of_a_thread_that_was_not_seen_to_come_back_is_not_counted() {
    let mut counters = ThreadCounters::NEW;
    let read = |count: u64| {
        move |_: u32, into: &mut Reading| {
            *into = Reading { count, enabled: count, running: count };
            true
        }
    };
    assert!(counters.charge(1, 0, read(1)));
    counters.leave(1, read(5));
    counters.leave(1, read(6));
    assert!(!counters.charge(1, 1, read(9)));
    counters.arrive(1, read(10));
    counters.arrive(1, read(11));
    assert!(counters.charge(1, 1, read(12)));
    assert_eq!(close(&mut counters, 0).1[0].count, 4 + 2);
}
