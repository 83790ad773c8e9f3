use super::*;
use crate::live::target::launch::{ChildOutput, Launch, words};
use crate::live::target::{Processes, entry_offset};

const LONG: Duration = Duration::from_secs(20);

fn shell(script: &str) -> Held {
    Launch::new(&words(["/bin/sh", "-c", script])).output(ChildOutput::Null).spawn().unwrap()
}

/// Returns the letter of a process's state in /proc; `None` if there is no such process.
fn doing(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

#[test]
fn stopped_before_its_first_instruction_then_released() {
    let held = shell("exit 7");
    assert_eq!(doing(held.pid()), Some('t'));
    let exe = std::fs::read_link(format!("/proc/{}/exe", held.pid())).unwrap();
    assert!(entry_offset(&exe).unwrap() > 0);
    assert_eq!(Processes::default().threads(held.pid()).unwrap(), [held.pid()]);
    let mut running = held.release().unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(7));
    assert_eq!(running.exit_code(), Some(7));
    assert_eq!(running.try_wait().unwrap().unwrap().code(), Some(7), "told again");
    running.signal(Signal::SIGTERM).unwrap();
}

#[test]
fn the_signal_waited_for_is_swallowed() {
    let mut held = shell("kill -STOP $$; exit 8");
    assert_eq!(held.run_until_signal(Signal::SIGSTOP, LONG).unwrap(), HeldEvent::Signalled);
    assert_eq!(doing(held.pid()), Some('t'));
    assert_eq!(held.release().unwrap().wait().unwrap().code(), Some(8));
}

#[test]
fn other_signals_are_passed_on() {
    let mut held = shell("trap 'got=1' USR1; kill -USR1 $$; kill -STOP $$; exit $((40 + got))");
    assert_eq!(held.run_until_signal(Signal::SIGSTOP, LONG).unwrap(), HeldEvent::Signalled);
    assert_eq!(held.release().unwrap().wait().unwrap().code(), Some(41));

    let mut held = shell("kill -TERM $$; sleep 60");
    let HeldEvent::Ended(status) = held.run_until_signal(Signal::SIGSTOP, LONG).unwrap() else {
        panic!("not ended")
    };
    assert_eq!(shell_code(status), 128 + libc::SIGTERM);
    assert!(matches!(held.run_until_signal(Signal::SIGSTOP, LONG).unwrap(), HeldEvent::Ended(_)));
    assert_eq!(held.release().unwrap().exit_code(), Some(143));
}

#[test]
fn a_real_time_signal_is_passed_on() {
    let number = libc::SIGRTMIN() + 3;
    let mut held = shell(&format!("kill -{number} $$; sleep 60"));
    let HeldEvent::Ended(status) = held.run_until_signal(Signal::SIGSTOP, LONG).unwrap() else {
        panic!("not ended")
    };
    assert_eq!(shell_code(status), 128 + number);
}

#[test]
fn a_signal_ends_it_after_release() {
    let mut running = shell("kill -KILL $$").release().unwrap();
    running.wait().unwrap();
    assert_eq!(running.exit_code(), Some(137));
}

#[test]
fn after_a_timeout_it_runs_and_is_still_held() {
    // The shell replaces itself: a further exec neither ends the wait nor is mistaken for a signal.
    let mut held = shell("exec sh -c 'sleep 0.3; exit 9'");
    let before = Instant::now();
    assert_eq!(
        held.run_until_signal(Signal::SIGSTOP, Duration::from_millis(50)).unwrap(),
        HeldEvent::TimedOut
    );
    assert!(before.elapsed() >= Duration::from_millis(50));
    assert_ne!(doing(held.pid()), Some('t'));
    assert_eq!(held.release().unwrap().wait().unwrap().code(), Some(9));
}

#[test]
fn a_second_stop_signal_does_not_leave_it_stopped() {
    let mut held = shell("sleep 0.2; exit 5");
    assert_eq!(
        held.run_until_signal(Signal::SIGSTOP, Duration::from_millis(20)).unwrap(),
        HeldEvent::TimedOut
    );
    kill(held.pid, Signal::SIGSTOP).unwrap();
    assert_eq!(held.release().unwrap().wait().unwrap().code(), Some(5));
}

#[test]
fn a_timeout_may_be_waited_on() {
    let mut held = shell("sleep 0.1; kill -STOP $$; exit 6");
    assert_eq!(held.run_until_signal(Signal::SIGSTOP, Duration::ZERO).unwrap(), HeldEvent::TimedOut);
    assert_eq!(held.run_until_signal(Signal::SIGSTOP, LONG).unwrap(), HeldEvent::Signalled);
    assert_eq!(held.release().unwrap().wait().unwrap().code(), Some(6));
}

#[test]
fn the_end_while_it_runs_held_is_found_by_release() {
    let mut held = shell("exit 3");
    held.run_until_signal(Signal::SIGSTOP, Duration::ZERO).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(held.release().unwrap().wait().unwrap().code(), Some(3));
}

#[test]
fn killed_while_stopped() {
    let mut held = shell("exit 0");
    kill(held.pid, Signal::SIGKILL).unwrap();
    let HeldEvent::Ended(status) = held.run_until_signal(Signal::SIGSTOP, LONG).unwrap() else {
        panic!("not ended")
    };
    assert_eq!(shell_code(status), 137);

    let held = shell("exit 0");
    kill(held.pid, Signal::SIGKILL).unwrap();
    assert_eq!(held.release().unwrap().wait().unwrap().signal(), Some(libc::SIGKILL));
}

#[test]
fn dropping_kills() {
    let held = shell("sleep 60");
    let pid = held.pid();
    drop(held);
    assert_eq!(doing(pid), None, "killed and awaited");

    let mut held = shell("while :; do :; done");
    held.run_until_signal(Signal::SIGSTOP, Duration::from_millis(10)).unwrap();
    let pid = held.pid();
    drop(held);
    assert_eq!(doing(pid), None);
}

#[test]
fn it_dies_with_the_thread_that_holds_it() {
    let pid = std::thread::spawn(|| {
        let held = shell("sleep 60");
        let pid = held.pid();
        std::mem::forget(held);
        pid
    });
    let pid = pid.join().unwrap();
    let status = wait(Pid::from_raw(pid.cast_signed()), libc::__WALL).unwrap().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGKILL));
}

#[test]
fn once_released_it_outlives_the_thread() {
    let running = std::thread::spawn(|| shell("sleep 0.1; exit 4").release().unwrap()).join();
    assert_eq!(running.unwrap().wait().unwrap().code(), Some(4));
}
