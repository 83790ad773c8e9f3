//! Planted causes, and all of their time.

use super::*;

const US: u64 = 1_000;
/// Executions of each trace: the last one is slow.
const COUNT: u64 = 10;

fn text(answer: &serde_json::Value, part: usize) -> &str {
    answer["parts"][part]["text"].as_str().unwrap()
}

/// Returns a trace in which the application has CPU 0 from the begin on.
fn running() -> Trace {
    let mut trace = Trace::default();
    trace.switch(0, 0, (0, "R"), APP);
    trace
}

/// Begins of the executions, ns, and whether each is the slow one.
fn executions() -> impl Iterator<Item = (u64, bool)> {
    (0..COUNT).map(|number| (1_000_000 + number * 10_000_000, number + 1 == COUNT))
}

#[test]
fn another_thread_had_the_cpu() {
    let mut trace = running();
    for (at, is_slow) in executions() {
        trace.begin(at, APP, "[NN_LR_PE]infer");
        let waited = if is_slow { 5_000 * US } else { 0 };
        if is_slow {
            trace.switch(at + 400 * US, 0, (APP, "R"), 20);
            trace.switch(at + 5_400 * US, 0, (20, "S"), APP);
        }
        trace.end(at + 1_000 * US + waited, APP);
    }
    let answer = trace.answer();
    assert_eq!(parts(&answer), [("wait-for-cpu", 5_000_000, "measured")]);
    assert_eq!(answer["parts"][0]["by"], "rival (20)");
    assert_eq!((&answer["function"], &answer["chosen"]), (&"LR_PE:infer".into(), &"longest".into()));
    assert_eq!(answer["slow"]["count"], 1);
}

#[test]
fn the_device_was_busy_with_another_process() {
    let queue = |trace: &mut Trace, at: u64, tid: u32, number: u64| {
        let job =
            format!("dev=npu0, fence={tid}:{number}, ring=rq0, job count:0, hw job count:0, client_id:1");
        trace.event(at, tid, 0, &format!("drm_sched_job_queue: {job}"));
        trace.event(at + 10 * US, 40, 0, &format!("drm_sched_job_run: {job}"));
    };
    let done = |trace: &mut Trace, at: u64, tid: u32, number: u64| {
        trace.event(at, 0, 0, &format!("drm_sched_job_done: fence={tid}:{number} signaled"));
    };
    // Woken by the interrupt in the idle thread, or on behalf of a thread that has nothing to do with it.
    for by in [0, 20] {
        let mut trace = running();
        for (number, (at, is_slow)) in (1..).zip(executions()) {
            let (busy, ran) = if is_slow { (4_000 * US, 2_500 * US) } else { (0, 500 * US) };
            if is_slow {
                queue(&mut trace, at - 100 * US, 30, number);
            }
            trace.begin(at, APP, "[NN_LR_PE]infer");
            queue(&mut trace, at + 100 * US, APP, number);
            trace.switch(at + 110 * US, 0, (APP, "S"), by);
            let free = at + 110 * US + busy;
            if is_slow {
                done(&mut trace, free, 30, number);
            }
            let woken = free + ran;
            done(&mut trace, woken, APP, number);
            trace.wake(woken, 0, by, APP);
            trace.switch(woken, 0, (by, "R"), APP);
            trace.end(woken + 300 * US, APP);
        }
        let answer = trace.answer();
        assert_eq!(
            parts(&answer),
            [("wait-for-device", 4_000_000, "inferred"), ("device", 2_000_000, "inferred")],
            "woken by {by}"
        );
        assert_eq!(text(&answer, 0), "waited for npu0 rq0, busy with jobs from driver (30)");
        assert_eq!(answer["parts"][0]["by"], "driver (30)");
        assert_eq!(text(&answer, 1), "asleep while npu0 rq0 ran its own jobs");
    }
}

#[test]
fn a_pause_before_the_slow_ones_is_noted() {
    let mut trace = running();
    let mut at = 1_000_000;
    for number in 0..2 * COUNT {
        let is_slow = number == 7 || number == 15;
        at += if is_slow { 3_000_000 * US } else { 2_000 * US };
        trace.begin(at, APP, "[NN_LR_PE]infer");
        at += if is_slow { 1_500 * US } else { 1_000 * US };
        trace.end(at, APP);
    }
    let answer = trace.answer();
    let notes = answer["notes"].as_array().unwrap();
    let note = "the slow ones came after a pause of 3.00 s, the typical ones after 2.00 ms (medians): caches may have \
                been cold, and frequencies low";
    assert!(notes.iter().any(|one| one == note), "{notes:?}");
}

#[test]
fn waits_of_typical_executions_for_threads_of_their_process_are_noted() {
    // Thread 9 is of the same process, thread 20 is not.
    for (other, is_noted) in [(9, true), (20, false)] {
        let mut trace = running();
        for (at, is_slow) in executions() {
            trace.begin(at, APP, "[NN_LR_PE]infer");
            trace.switch(at + 400 * US, 0, (APP, "R"), other);
            trace.switch(at + 800 * US, 0, (other, "S"), APP);
            trace.end(at + if is_slow { 3_000 * US } else { 1_000 * US }, APP);
        }
        let answer = trace.answer();
        let notes = answer["notes"].as_array().unwrap();
        let note = "typical executions wait too: 40.0% of their time for a CPU that 1 other thread of the same process had";
        let has_note = notes.iter().any(|one| one.as_str().unwrap().starts_with(note));
        assert_eq!(has_note, is_noted, "{notes:?}");
    }
}

/// Returns a trace whose slow execution is at half the frequency, by a limit, and perhaps by a cooling device.
pub(super) fn slowed_by_a_limit(cooling: bool) -> Trace {
    let mut trace = running();
    trace.runs_at(&[2_000_000]);
    for (at, is_slow) in executions() {
        if is_slow {
            if cooling {
                trace.event(at - 20 * US, 0, 0, "cdev_update: type=thermal-cpufreq-0 target=4");
            }
            trace.event(at - 10 * US, 0, 0, "cpu_frequency_limits: min=500000 max=1000000 cpu_id=0");
            trace.frequency(at - 10 * US, 0, 1_000_000);
        }
        trace.begin(at, APP, "[NN_LR_PE]infer");
        trace.end(at + if is_slow { 2_000 * US } else { 1_000 * US }, APP);
    }
    trace
}

#[test]
fn a_limit_made_the_cpu_slower() {
    for cooling in [false, true] {
        let answer = slowed_by_a_limit(cooling).answer();
        assert_eq!(parts(&answer), [("frequency", 1_000_000, "measured")]);
        let by = if cooling { "cooling: thermal-cpufreq-0" } else { "a limit of the policy" };
        let expected = format!("big at 1.00 GHz, typically 2.00 GHz, limited to 1.00 GHz by {by}");
        assert_eq!(text(&answer, 0), expected);
    }
}

#[test]
fn the_thread_moved_to_the_little_cluster() {
    let mut trace = running();
    trace.runs_at(&[2_000_000, 1_000_000]);
    for (at, is_slow) in executions() {
        if is_slow {
            trace.switch(at - 20 * US, 0, (APP, "R"), 0);
            trace.switch(at - 10 * US, 1, (0, "R"), APP);
        }
        trace.begin(at, APP, "[NN_LR_PE]infer");
        // Slower than by its frequency alone.
        trace.end(at + if is_slow { 3_000 * US } else { 1_000 * US }, APP);
    }
    let answer = trace.answer();
    assert_eq!(parts(&answer), [("cluster", 2_000_000, "inferred")]);
    assert_eq!(text(&answer, 0), "on little, typically on big");
}

#[test]
fn a_cpu_had_to_leave_a_deep_idle_state() {
    let mut trace = running();
    trace.runs_at(&[2_000_000]);
    for (at, is_slow) in executions() {
        let late = if is_slow { 700 * US } else { 0 };
        trace.begin(at, APP, "[NN_LR_PE]infer");
        trace.switch(at + 200 * US, 0, (APP, "S"), 0);
        if is_slow {
            trace.idle(at + 210 * US, 0, 2);
            trace.idle(at + 300 * US + late, 0, u32::MAX);
        }
        trace.wake(at + 300 * US, 1, 0, APP);
        trace.switch(at + 310 * US + late, 0, (0, "R"), APP);
        trace.end(at + 1_000 * US + late, APP);
    }
    let answer = trace.answer();
    assert_eq!(parts(&answer), [("idle-wake-up", 700_000, "measured")]);
    assert_eq!(text(&answer, 0), "woken late from idle state state2");
}

/// Since Linux 6.0 an idle CPU makes who was woken ready on its own, when it has left its state.
#[test]
fn a_cpu_that_had_to_leave_a_deep_idle_state_made_the_thread_ready_itself() {
    let mut trace = running();
    trace.runs_at(&[2_000_000, 2_000_000]);
    trace.switch(0, 1, (0, "R"), 9);
    for (at, is_slow) in executions() {
        let late = if is_slow { 700 * US } else { 0 };
        trace.begin(at - 20 * US, 9, "[NN_LU_PE]serve");
        trace.begin(at, APP, "[NN_LR_PE]infer");
        trace.switch(at + 200 * US, 0, (APP, "S"), 0);
        trace.idle(at + 210 * US, 0, 2);
        trace.wake_up(at + 300 * US, 1, 9, ("sched_waking", APP));
        trace.idle(at + 300 * US + late, 0, u32::MAX);
        trace.wake_up(at + 305 * US + late, 0, 0, ("sched_wakeup", APP));
        trace.switch(at + 310 * US + late, 0, (0, "R"), APP);
        trace.end(at + 1_000 * US + late, APP);
        trace.end(at + 400 * US, 9);
    }
    let answer = trace.answer();
    assert_eq!(parts(&answer), [("idle-wake-up", 700_000, "measured")]);
}

#[test]
fn a_lock_was_held_by_another_thread() {
    let mut trace = running();
    trace.switch(0, 1, (0, "R"), 9);
    for (at, is_slow) in executions() {
        let held = if is_slow { 4_000 * US } else { 0 };
        trace.begin(at, APP, "[NN_LR_PE]infer");
        if is_slow {
            trace.begin(at + 100 * US, 9, "[NN_LU_PE]refill#lock=table");
            trace.switch(at + 200 * US, 0, (APP, "S"), 0);
            trace.end(at + 200 * US + held, 9);
            trace.wake(at + 200 * US + held, 1, 9, APP);
            trace.switch(at + 200 * US + held, 0, (0, "R"), APP);
        }
        trace.begin(at + 210 * US + held, APP, "[NN_LU_PE]read#lock=table");
        trace.end(at + 300 * US + held, APP);
        trace.end(at + 1_000 * US + held, APP);
    }
    let answer = trace.answer();
    assert_eq!(parts(&answer), [("lock", 4_000_000, "measured")]);
    assert!(text(&answer, 0).starts_with("lock table, held by LU_PE:refill of "), "{answer}");
}

#[test]
fn a_driver_process_was_slow() {
    let mut trace = running();
    trace.switch(0, 1, (0, "R"), 30);
    trace.switch(10 * US, 1, (30, "S"), 0);
    for ((at, is_slow), number) in executions().zip(1..) {
        let longer = if is_slow { 6_000 * US } else { 0 };
        trace.begin(at, APP, "[NN_LR_PE]infer");
        trace.mark(at + 200 * US, APP, &format!("I|7|nn.send#h=g.{number}1"));
        trace.wake(at + 200 * US, 0, APP, 30);
        trace.switch(at + 210 * US, 0, (APP, "S"), 0);
        trace.switch(at + 210 * US, 1, (0, "R"), 30);
        trace.begin(at + 220 * US, 30, &format!("[NN_LD_PE]execute#h=g.{number}1"));
        trace.end(at + 620 * US + longer, 30);
        trace.mark(at + 620 * US + longer, 30, &format!("I|30|nn.send#h=g.{number}2"));
        trace.wake(at + 630 * US + longer, 1, 30, APP);
        trace.switch(at + 640 * US + longer, 0, (0, "R"), APP);
        trace.switch(at + 650 * US + longer, 1, (30, "S"), 0);
        trace.mark(at + 660 * US + longer, APP, &format!("I|7|nn.recv#h=g.{number}2"));
        trace.end(at + 1_000 * US + longer, APP);
    }
    let answer = trace.answer();
    assert_eq!(parts(&answer), [("hand-over", 6_000_000, "measured")]);
    assert_eq!(text(&answer, 0), "waited for LD_PE:execute of driver (30) (hand-over)");
}

#[test]
fn the_first_run_was_cold() {
    let mut trace = running();
    for (number, (at, _)) in (0..).zip(executions()) {
        trace.begin(at, APP, "[NN_LR_PE]infer");
        trace.end(at + if number == 0 { 3_000 * US } else { 1_000 * US }, APP);
    }
    let answer = trace.answer();
    assert_eq!(parts(&answer), [("first-run", 2_000_000, "inferred")]);
}

#[test]
fn a_function_was_called_twice_as_often() {
    let mut trace = running();
    for (at, is_slow) in executions() {
        let calls = if is_slow { 4 } else { 2 };
        trace.begin(at, APP, "[NN_LR_PE]infer");
        for call in 0..calls {
            trace.begin(at + (100 + call * 400) * US, APP, "[NN_LC_PCO]conv");
            trace.end(at + (500 + call * 400) * US, APP);
        }
        trace.end(at + (200 + calls * 400) * US, APP);
    }
    let answer = trace.answer();
    assert_eq!(parts(&answer), [("more-calls", 800_000, "measured")]);
    assert_eq!(text(&answer, 0), "calls of LC_PCO:conv: 4, typically 2");
}
