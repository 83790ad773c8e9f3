//! Lanes of the Rust guards, read by a collector in the program itself.
#![allow(clippy::unwrap_used, reason = "these are tests, with their helpers")]

#[path = "lanes/collector.rs"]
mod collector;
#[path = "lanes/dangers.rs"]
mod dangers;
#[path = "lanes/hooks.rs"]
mod hooks;
#[path = "lanes/order.rs"]
mod order;

use std::{
    fs::{self, File},
    os::fd::AsRawFd as _,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Barrier, Mutex, PoisonError},
    thread,
};

use nix::{
    errno::Errno,
    libc,
    sys::{
        signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction},
        wait::{WaitStatus, waitpid},
    },
    unistd::{ForkResult, fork},
};
use nntrace_common::{
    emit::{self, Section},
    layer::{Layer, Phase},
    mark,
};

use collector::{Lane, set_wanted};
use hooks::{Call, calls, interrupt, pass};

/// Sections that a thread writes before it gets a lane.
const SECTIONS_BEFORE: usize = 32;
/// Threads with lanes at the same time, at most.
const MANY_THREADS: usize = 20;

/// Runs a test on a thread of its own, while one collector wants lanes and no other test runs.
fn alone(test: impl FnOnce() + Send) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    set_wanted(1);
    thread::scope(|scope| {
        let ended = scope.spawn(test).join();
        assert!(ended.is_ok(), "see above");
    });
}

/// Runs a part of a test in a forked child.
fn in_child(part: impl FnOnce()) {
    // SAFETY: what the child does needs no lock that another thread may hold, unless it fails.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let code = i32::from(catch_unwind(AssertUnwindSafe(part)).is_err());
            // SAFETY: nothing of the parent has to be cleaned up.
            unsafe { libc::_exit(code) }
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
        }
    }
}

fn section() {
    drop(mark!(LR, PE, "work"));
}

/// Writes marks until this thread has offered a lane.
fn offered() -> Lane {
    (0..SECTIONS_BEFORE).for_each(|_| section());
    let mut calls = calls();
    let Some(Call::Offer(file, key)) = calls.pop() else { panic!("no offer: {calls:?}") };
    assert_eq!(calls.len(), 2 * SECTIONS_BEFORE);
    Lane::open(file, key)
}

/// Gets this thread a lane that is read.
fn leased() -> Lane {
    let lane = offered();
    lane.lease(u64::MAX);
    lane
}

/// Returns the lane that this thread has offered since the last time: the last one, as an offer that nobody accepts is
/// repeated.
fn next_offered() -> Option<Lane> {
    calls().into_iter().rev().find_map(|call| match call {
        Call::Offer(file, key) if file >= 0 => Some(Lane::open(file, key)),
        _ => None,
    })
}

fn marks(texts: &[&str]) -> Vec<Call> {
    texts.iter().map(|&text| Call::Mark(text.to_owned())).collect()
}

#[test]
fn sites_are_defined_once_and_sections_nest() {
    fn work() {
        let _outer = mark!(LR, PE, "outer");
        let layout = mark!(LC, PTR, "layout");
        let _conv = mark!(switch layout; LC, PCO, "conv2d");
        let _late = mark!(subtract; LR, PC, "late");
    }
    alone(|| {
        let mut lane = offered();
        section();
        assert_eq!(calls(), marks(&["B|[NN_LR_PE]work", "E"]), "it has no lease yet");
        lane.lease(u64::MAX);
        work();
        let begins = ["[NN_LR_PE]outer", "[NN_LC_PTR]layout", "[SW][NN_LC_PCO]conv2d", "[SUB][NN_LR_PC]late"];
        let mut expected: Vec<_> =
            begins.iter().flat_map(|text| [format!("define {text}"), format!("begin {text}")]).collect();
        expected.extend(["end"; 4].map(Into::into));
        assert_eq!(lane.read(), expected);
        work();
        expected.retain(|record| !record.starts_with("define"));
        assert_eq!(lane.read(), expected);
        assert_eq!(calls(), []);
    });
}

#[test]
fn what_is_no_plain_literal_is_written_as_text() {
    alone(|| {
        let mut lane = leased();
        let name = String::from("named");
        drop(mark!(LR, PE, &name));
        drop(mark!(LR, PE, "pairs", iter = 7, acct = "a#b"));
        drop(mark!(LR, PE, "hash#h=9"));
        drop(mark!(LR, PE, "nul\0behind"));
        drop(Section::begin(Layer::CpuFallback, Phase::Computation, "begin"));
        drop(Section::begin_args(Layer::CpuFallback, Phase::Computation, format_args!("args {}", 1)));
        emit::instant("now");
        emit::counter("level", -3);
        emit::send(5);
        let begins = [
            "B|[NN_LR_PE]named",
            "B|[NN_LR_PE]pairs#iter=7#acct=a_b",
            "B|[NN_LR_PE]hash#h=9",
            "B|[NN_LR_PE]nul",
            "B|[NN_LC_PCO]begin",
            "B|[NN_LC_PCO]args 1",
        ];
        let mut expected: Vec<_> = begins.iter().flat_map(|&text| [text, "end"]).collect();
        expected.extend(["I|now", "C|level|-3", "I|nn.send#h=5"]);
        assert_eq!(lane.read(), expected);
        assert_eq!(calls(), []);
        let long = "ü".repeat(200);
        drop(mark!(LR, PE, &long));
        let records = lane.read();
        assert!((240..255).contains(&records[0].len()) && records[0].ends_with('ü'), "{records:?}");
    });
}

#[test]
fn phases_of_the_application_take_the_probe() {
    alone(|| {
        let mut lane = leased();
        section();
        lane.read();
        let overall = mark!(LA, PO, "all");
        drop(mark!(LA, PWU, "first", iter = 1));
        drop(mark!(switch overall; LA, PBM, "rest"));
        drop(overall);
        drop(mark!(LA, PE, "image"));
        let expected =
            ["B|[NN_LA_PO]all", "B|[NN_LA_PWU]first#iter=1", "E", "B|[SW][NN_LA_PBM]rest", "E", "E"];
        assert_eq!(calls(), marks(&expected));
        assert_eq!(lane.read(), ["define [NN_LA_PE]image", "begin [NN_LA_PE]image", "end"]);
    });
}

#[test]
fn a_section_ends_the_way_it_began() {
    alone(|| {
        let probed = mark!(LR, PP, "probed");
        let before = calls();
        let mut lane = {
            (1..SECTIONS_BEFORE).for_each(|_| section());
            section();
            next_offered().unwrap()
        };
        lane.lease(u64::MAX);
        let in_lane = mark!(LR, PE, "in the lane");
        set_wanted(2);
        section();
        drop(in_lane);
        drop(probed);
        assert_eq!(before, marks(&["B|[NN_LR_PP]probed"]));
        assert_eq!(
            calls(),
            marks(&["B|[NN_LR_PE]work", "E", "E"]),
            "two collectors see no new marks in lanes"
        );
        assert_eq!(lane.read(), ["define [NN_LR_PE]in the lane", "begin [NN_LR_PE]in the lane", "end"]);
    });
}

#[test]
fn without_a_lease_marks_take_the_probe_and_another_lane_is_offered() {
    alone(|| {
        let mut lane = leased();
        let open = mark!(LR, PE, "open");
        assert_eq!(lane.read(), ["define [NN_LR_PE]open", "begin [NN_LR_PE]open"]);
        // It has just run out: the collector may be late.
        lane.lease(lane.now());
        section();
        assert_eq!(calls(), marks(&["B|[NN_LR_PE]work", "E"]));
        pass(2);
        section();
        let mut other = next_offered().unwrap();
        other.lease(u64::MAX);
        assert!(lane.is_closed() && !other.is_closed());
        drop(open);
        section();
        assert_eq!((lane.read(), calls()), (vec![], vec![]), "its end is nowhere");
        assert_eq!(other.read(), ["define [NN_LR_PE]work", "begin [NN_LR_PE]work", "end"]);
    });
}

#[test]
fn a_full_ring_has_room_for_the_ends_and_is_replaced_by_a_larger_one() {
    alone(|| {
        let mut lane = leased();
        assert_eq!(lane.ring_bytes, 16 * 1024);
        let mut open = Vec::new();
        while calls().iter().all(|call| matches!(call, Call::Offer(-1, _))) {
            open.push(mark!(LR, PE, "deep"));
        }
        // The last one took the probe; each of the others has 16 bytes, and its end as many.
        assert_eq!(open.len(), 16 * 1024 / 32);
        drop(open.pop());
        assert_eq!(calls(), marks(&["E"]));
        open.into_iter().rev().for_each(drop);
        assert_eq!(calls(), []);
        let records = lane.peek();
        assert_eq!(records.iter().filter(|(_, record)| record == "end").count(), 16 * 1024 / 32 - 1);
        assert!(!lane.is_closed());
        section();
        let larger = next_offered().unwrap();
        assert!(lane.is_closed());
        assert_eq!(larger.ring_bytes, 256 * 1024);
        // Nobody accepts it.
        pass(1);
        section();
        let again = next_offered().unwrap();
        assert!(!larger.is_closed());
        assert_eq!((again.key(), again.ring_bytes), (larger.key(), 256 * 1024));
    });
}

#[test]
fn a_late_reader_is_called_once() {
    alone(|| {
        let mut lane = leased();
        for _ in 0..2 {
            (0..300).for_each(|_| section());
            let calls = calls();
            assert!(matches!(calls[..], [Call::Offer(-1, _)]), "{calls:?}");
            lane.read();
            section();
        }
    });
}

#[test]
fn many_more_marks_than_room_arrive_in_order() {
    alone(|| {
        let mut lane = leased();
        for round in 0..10_000_u32 {
            drop(mark!(LR, PE, "counted", n = round));
            assert_eq!(lane.read(), [format!("B|[NN_LR_PE]counted#n={round}"), "end".to_owned()]);
        }
        assert_eq!(calls(), []);
    });
}

#[test]
fn a_handler_that_interrupts_a_mark_takes_the_probe() {
    extern "C" fn handle(_: libc::c_int) {
        drop(mark!(LC, PE, "handler"));
    }
    alone(|| {
        let action = SigAction::new(SigHandler::Handler(handle), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler only writes marks, to what this thread has.
        unsafe { sigaction(Signal::SIGUSR1, &action) }.unwrap();
        let mut lane = leased();
        section();
        lane.read();
        interrupt();
        section();
        assert_eq!(calls(), marks(&["B|[NN_LC_PE]handler", "E"]));
        assert_eq!(lane.read(), ["begin [NN_LR_PE]work", "end"]);
    });
}

#[test]
fn marks_leave_errno_alone() {
    alone(|| {
        let mut lanes = Vec::new();
        for _ in 0..2 {
            for _ in 0..2000 {
                Errno::ENOTTY.set();
                section();
                assert_eq!(Errno::last(), Errno::ENOTTY);
                let lane = next_offered();
                if let Some(lane) = &lane {
                    lane.lease(u64::MAX);
                }
                lanes.extend(lane);
            }
        }
        assert_eq!(lanes.len(), 2, "one that was full, too");
    });
}

#[test]
fn the_descriptor_is_closed_unless_it_is_another_files() {
    alone(|| {
        for is_replaced in [false, true] {
            thread::scope(|scope| {
                scope.spawn(|| {
                    (0..SECTIONS_BEFORE).for_each(|_| section());
                    let Some(Call::Offer(file, key)) = calls().pop() else { panic!("no offer") };
                    let path = format!("/proc/self/fd/{file}");
                    let lane = Lane::open(file, key);
                    if is_replaced {
                        let null = File::open("/dev/null").unwrap();
                        // SAFETY: the lane's descriptor belongs to nobody but the lane, which has to find out.
                        assert_eq!(unsafe { libc::dup2(null.as_raw_fd(), file as i32) }, file as i32);
                    }
                    lane.lease(u64::MAX);
                    section();
                    assert_eq!(fs::exists(&path).unwrap(), is_replaced);
                });
            });
        }
    });
}

#[test]
fn only_one_collector_gets_lanes() {
    alone(|| {
        for wanted in [0, 2] {
            set_wanted(wanted);
            (0..2 * SECTIONS_BEFORE).for_each(|_| section());
            let calls = calls();
            assert!(calls.iter().all(|call| matches!(call, Call::Mark(_))), "{calls:?}");
        }
        set_wanted(1);
        offered();
    });
}

#[test]
fn a_forked_child_has_no_lane_and_gets_its_own() {
    alone(|| {
        let mut lane = leased();
        let open = mark!(LR, PE, "open");
        in_child(|| {
            section();
            assert_eq!(calls(), marks(&["B|[NN_LR_PE]work", "E"]));
            (1..SECTIONS_BEFORE).for_each(|_| section());
            let mut own = next_offered().unwrap();
            own.lease(u64::MAX);
            section();
            assert_eq!(own.read(), ["define [NN_LR_PE]work", "begin [NN_LR_PE]work", "end"]);
            drop(open);
            assert_eq!((calls(), own.read()), (vec![], vec![]));
        });
        // The end is that of our own guard.
        assert_eq!(lane.read(), ["define [NN_LR_PE]open", "begin [NN_LR_PE]open", "end"]);
    });
}

#[test]
fn threads_that_end_leave_their_lanes_to_others() {
    alone(|| {
        for _ in 0..1000 {
            thread::scope(|scope| {
                scope.spawn(|| {
                    let _lane = leased();
                    section();
                });
            });
        }
        // Those of other tests, the most of which ran at the same time in the one about all lanes.
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let lanes = maps.lines().filter(|line| line.contains("memfd:nntrace-lane")).count();
        assert!(lanes <= MANY_THREADS, "{lanes}");
    });
}

#[test]
fn marks_at_the_end_of_a_thread_are_in_its_lane() {
    struct AtEnd;
    impl Drop for AtEnd {
        fn drop(&mut self) {
            section();
        }
    }
    thread_local! {
        static BEFORE: AtEnd = const { AtEnd };
        static BEHIND: AtEnd = const { AtEnd };
    }
    alone(|| {
        let lane = thread::spawn(|| {
            BEFORE.with(|_| ());
            let lane = leased();
            section();
            BEHIND.with(|_| ());
            lane
        });
        let mut lane = lane.join().unwrap();
        let section = ["begin [NN_LR_PE]work", "end"];
        assert_eq!(lane.read(), [&["define [NN_LR_PE]work"], &section.repeat(3)[..]].concat());
    });
}

#[test]
fn all_lanes_take_64_mib_at_most() {
    const LARGEST: usize = 4 << 20;
    /// Fills lanes until they do not get larger.
    fn fill() -> Lane {
        let mut lane = leased();
        while lane.ring_bytes < LARGEST {
            (0..lane.ring_bytes / 16).for_each(|_| section());
            match next_offered() {
                Some(larger) => lane = larger,
                None => break,
            }
            lane.lease(u64::MAX);
        }
        lane
    }
    alone(|| {
        let filled = Barrier::new(MANY_THREADS);
        let sizes: Vec<usize> = thread::scope(|scope| {
            let one = || {
                let lane = catch_unwind(fill);
                filled.wait();
                lane.unwrap().ring_bytes
            };
            let threads: Vec<_> = (0..MANY_THREADS).map(|_| scope.spawn(one)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let all: usize = sizes.iter().map(|size| size + 4096).sum();
        assert!(all <= 64 << 20, "{sizes:?}");
        assert_eq!(sizes.iter().filter(|size| **size == LARGEST).count(), 15, "{sizes:?}");
    });
}
