//! Context switches, wake-ups and execs: the fields of `sched_switch`, `sched_waking`, `sched_wakeup`, `sched_wakeup_new` and
//! `sched_process_exec`, as printed by the kernel and by trace-cmd's plugins, and as the bare fields of a record.
//!
//! ```text
//! prev_comm=NAME prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=NAME next_pid=8 next_prio=120
//! NAME:7 [120] S ==> NAME:8 [120]
//! comm=NAME pid=7 prio=120 target_cpu=001
//! NAME:7 [120] CPU:001
//! filename=PATH pid=7 old_pid=8
//! ```
//!
//! A name may contain anything, even the text around it; it has 15 bytes at most.

use memchr::memmem;
use nntrace_common::sched::Change;

use super::ftrace::number;

/// Scheduling event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchedEvent<'a> {
    /// A CPU switches from one thread to another; 0 is the kernel's idle thread.
    Switch {
        /// Thread that leaves the CPU.
        prev: Task<'a>,
        /// Reason for leaving.
        why: Change,
        /// Thread that gets the CPU.
        next: Task<'a>,
    },
    /// A thread is woken, or is new.
    Woken(Task<'a>, Change),
    /// A thread executes another program, and has the id of its process from then on.
    Exec {
        /// Previous thread id.
        former: u32,
        /// New thread id.
        tid: u32,
    },
}

/// Thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Task<'a> {
    /// Name.
    pub comm: &'a [u8],
    /// Thread id.
    pub tid: u32,
}

/// Length of a thread's name on Linux at most.
const COMM: usize = 15;
/// Length of a name at most on other systems that write the same text, such as `NuttX`.
const LONGEST_COMM: usize = 31;

/// Parses the fields of `sched_switch`.
#[must_use]
pub(crate) fn switch(fields: &[u8]) -> Option<SchedEvent<'_>> {
    let Some(text) = fields.strip_prefix(b"prev_comm=") else { return plugin_switch(fields) };
    let (prev, rest) = named(text, b" prev_pid=")?;
    let (state, rest) = word(after_state(rest)?);
    let rest = after_decimal(rest).trim_ascii_start();
    // Bare fields have no arrow.
    let rest = rest.strip_prefix(b"==>").map_or(rest, <[u8]>::trim_ascii_start);
    let (next, _) = named(rest.strip_prefix(b"next_comm=")?, b" next_pid=")?;
    Some(SchedEvent::Switch { prev, why: why(state), next })
}

/// Parses the fields of `sched_waking` and of `sched_wakeup`. A thread is woken where the first of the two is; see
/// `Scheduling` on what the second one adds.
#[must_use]
pub(crate) fn woken(fields: &[u8]) -> Option<SchedEvent<'_>> {
    Some(SchedEvent::Woken(task(fields)?, Change::Woken))
}

/// Parses the fields of `sched_wakeup_new`.
#[must_use]
pub(crate) fn new(fields: &[u8]) -> Option<SchedEvent<'_>> {
    Some(SchedEvent::Woken(task(fields)?, Change::New))
}

fn task(fields: &[u8]) -> Option<Task<'_>> {
    match fields.strip_prefix(b"comm=") {
        Some(text) => Some(named(text, b" pid=")?.0),
        None => Some(bracketed(fields)?.0),
    }
}

/// Parses the fields of `sched_process_exec`, `filename=PATH pid=7 old_pid=8`.
#[must_use]
pub(crate) fn exec(fields: &[u8]) -> Option<SchedEvent<'_>> {
    const FORMER: &[u8] = b" old_pid=";
    const TID: &[u8] = b" pid=";
    let at = memmem::rfind(fields, FORMER)?;
    let (former, _) = number(&fields[at + FORMER.len()..])?;
    let (tid, _) = number(&fields[memmem::rfind(&fields[..at], TID)? + TID.len()..])?;
    Some(SchedEvent::Exec { former, tid })
}

/// Parses `NAME KEY=TID ..`, up to the number. If the key occurs several times, the last one within reach of a name
/// counts.
fn named<'a>(text: &'a [u8], key: &[u8]) -> Option<(Task<'a>, &'a [u8])> {
    // A searcher takes longer to set up than these few places to try, most of which differ in the last byte already.
    let (last, _) = key.split_last()?;
    let is_at = |at: usize| {
        let place = text.get(at..at + key.len());
        place.is_some_and(|place| place.last() == Some(last) && place == key)
    };
    let at = (0..=COMM).rev().find(|&at| is_at(at));
    let at = at.or_else(|| (COMM + 1..=LONGEST_COMM).find(|&at| is_at(at)))?;
    let (tid, rest) = field_number(&text[at + key.len()..])?;
    Some((Task { comm: &text[..at], tid }, rest))
}

/// Parses `NAME:7 [120] S ==> NAME:8 [120]`.
fn plugin_switch(fields: &[u8]) -> Option<SchedEvent<'_>> {
    let (prev, rest) = bracketed(fields)?;
    let (state, rest) = word(rest.strip_prefix(b" ")?);
    let (next, _) = bracketed(rest.strip_prefix(b" ==> ")?)?;
    Some(SchedEvent::Switch { prev, why: why(state), next })
}

/// Parses `NAME:TID [PRIORITY]`.
fn bracketed(text: &[u8]) -> Option<(Task<'_>, &[u8])> {
    let task = |colon: usize| {
        let (tid, rest) = number(&text[colon + 1..])?;
        let rest = rest.strip_prefix(b" [")?;
        let (_, rest) = number(rest.strip_prefix(b"-").unwrap_or(rest))?;
        Some((Task { comm: &text[..colon], tid }, rest.strip_prefix(b"]")?))
    };
    let reach = text.get(..=COMM).unwrap_or(text);
    let longer = text.get(..=LONGEST_COMM).unwrap_or(text);
    memchr::memrchr_iter(b':', reach)
        .find_map(task)
        .or_else(|| memchr::memchr_iter(b':', longer).filter(|&colon| colon > COMM).find_map(task))
}

/// Returns the text after ` prev_state=`, which a priority comes before.
fn after_state(text: &[u8]) -> Option<&[u8]> {
    const KEY: &[u8] = b" prev_state=";
    if let Some((_, rest)) = text.strip_prefix(b" prev_prio=").and_then(field_number)
        && let Some(state) = rest.strip_prefix(KEY)
    {
        return Some(state);
    }
    memmem::find(text, KEY).map(|at| &text[at + KEY.len()..])
}

/// Parses a number as the kernel prints a field: in decimal, or with its option `fields` as `0x1005 (4101)`.
#[inline]
pub(super) fn field_number(text: &[u8]) -> Option<(u32, &[u8])> {
    let Some(digits) = text.strip_prefix(b"0x") else { return number(text) };
    let end = digits.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(digits.len());
    let value = u32::from_str_radix(str::from_utf8(&digits[..end]).ok()?, 16).ok()?;
    Some((value, after_decimal(&digits[end..])))
}

/// Skips ` (4101)`, which follows a field in hexadecimal digits.
fn after_decimal(text: &[u8]) -> &[u8] {
    let rest = text.strip_prefix(b" (").map(|rest| rest.strip_prefix(b"-").unwrap_or(rest));
    rest.and_then(number).and_then(|(_, rest)| rest.strip_prefix(b")")).unwrap_or(text)
}

/// Splits after the first word.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(memchr::memchr(b' ', text).unwrap_or(text.len()))
}

/// Returns why a thread leaves its CPU, from the number of its state, or its letters (`R+`, `S`, `D|K`). A plus means
/// that the thread was preempted.
fn why(state: &[u8]) -> Change {
    if let Some((bits, [])) = field_number(state) {
        return Change::of_state(bits);
    }
    let has = |letters: &[u8]| state.iter().any(|letter| letters.contains(letter));
    if has(b"+R") {
        Change::Preempted
    } else if has(b"XZx") {
        Change::Ends
    } else if has(b"D") {
        Change::SleepsDeep
    } else {
        Change::Sleeps
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::kernel_events::{self, KernelEvent, Reading},
        *,
    };

    fn switch(prev: (&'static str, u32), why: Change, next: (&'static str, u32)) -> SchedEvent<'static> {
        SchedEvent::Switch { prev: task(prev), why, next: task(next) }
    }

    fn task((comm, tid): (&'static str, u32)) -> Task<'static> {
        Task { comm: comm.as_bytes(), tid }
    }

    fn of_switch(fields: &str) -> Option<SchedEvent<'_>> {
        super::switch(fields.as_bytes())
    }

    fn read<'a>(name: &[u8], fields: &'a [u8]) -> Option<SchedEvent<'a>> {
        match kernel_events::read(name, fields) {
            Reading::Event(KernelEvent::Sched(event)) => Some(event),
            _ => None,
        }
    }

    #[test]
    fn switches_as_the_kernel_writes_them() {
        let text = "prev_comm=my task prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120";
        assert_eq!(of_switch(text), Some(switch(("my task", 7), Change::Sleeps, ("swapper/0", 0))));
        let text = "prev_comm=a prev_pid=7 prev_prio=-1 prev_state=D|K ==> next_comm=b ==> c next_pid=8 next_prio=98";
        assert_eq!(of_switch(text), Some(switch(("a", 7), Change::SleepsDeep, ("b ==> c", 8))));
        let text = "prev_comm=Binder Thread # prev_pid=7 prev_prio=120 prev_state=D  ==> next_comm=b next_pid=8 next_prio=-51";
        assert_eq!(of_switch(text), Some(switch(("Binder Thread #", 7), Change::SleepsDeep, ("b", 8))));
        // In the format of the fields from a trace.dat.
        let text = "prev_comm= prev_pid=7 prev_prio=120 prev_state=256 next_comm=b next_pid=8 next_prio=120";
        assert_eq!(of_switch(text), Some(switch(("", 7), Change::Preempted, ("b", 8))));
    }

    #[test]
    fn switches_as_trace_cmd_writes_them() {
        let text = "rcu_sched:7 [120] R ==> kworker/0:1:8 [120]";
        assert_eq!(of_switch(text), Some(switch(("rcu_sched", 7), Change::Preempted, ("kworker/0:1", 8))));
        let text = "a:1 [2] S ==>:7 [-1] Z ==> swapper/0:0 [120]";
        assert_eq!(of_switch(text), Some(switch(("a:1 [2] S ==>", 7), Change::Ends, ("swapper/0", 0))));
        let text = ":12345 [120] + ==> b:8 [120]";
        assert_eq!(of_switch(text), Some(switch(("", 12_345), Change::Preempted, ("b", 8))));
    }

    #[test]
    fn switches_with_long_names_of_other_systems() {
        let text = "prev_comm=nsh_main prev_pid=3 prev_prio=100 prev_state=S ==> next_comm=tflm_inference_task next_pid=4 next_prio=110";
        assert_eq!(
            of_switch(text),
            Some(switch(("nsh_main", 3), Change::Sleeps, ("tflm_inference_task", 4)))
        );
        let text = "comm=tflm_inference_b pid=12 target_cpu=0";
        let woken = Some(SchedEvent::Woken(task(("tflm_inference_b", 12)), Change::Woken));
        assert_eq!(read(b"sched_waking", text.as_bytes()), woken);
        let text = "tflm_inference_task:7 [120] R ==> b:8 [120]";
        assert_eq!(of_switch(text), Some(switch(("tflm_inference_task", 7), Change::Preempted, ("b", 8))));
        let longest = "comm=a_name_of_32_bytes_is_not_one_x_ pid=12 target_cpu=0";
        assert_eq!(read(b"sched_waking", longest.as_bytes()), None);
    }

    #[test]
    fn switches_with_the_option_fields() {
        let text = "prev_comm=infer prev_pid=0x1005 (4101) prev_prio=0x78 (120) prev_state=0x1 (1) next_comm=swapper/0 next_pid=0x0 (0) next_prio=0x78 (120)";
        assert_eq!(of_switch(text), Some(switch(("infer", 4101), Change::Sleeps, ("swapper/0", 0))));
    }

    #[test]
    fn a_name_may_be_what_stands_around_names() {
        let text = "prev_comm= prev_pid=9 pre prev_pid=7 prev_prio=120 prev_state=S ==> next_comm= next_pid=1 x next_pid=8 next_prio=1";
        assert_eq!(
            of_switch(text),
            Some(switch((" prev_pid=9 pre", 7), Change::Sleeps, (" next_pid=1 x", 8)))
        );
        let text = "prev_comm= ==> next_comm= prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=b next_pid=8 next_prio=1";
        assert_eq!(of_switch(text), Some(switch((" ==> next_comm=", 7), Change::Sleeps, ("b", 8))));
    }

    #[test]
    fn wake_ups_in_all_forms() {
        let woken = |name, fields: &'static str| read(name, fields.as_bytes());
        let expected = Some(SchedEvent::Woken(task(("a pid=3", 7)), Change::Woken));
        assert_eq!(woken(b"sched_wakeup", "comm=a pid=3 pid=7 prio=120 target_cpu=001"), expected);
        assert_eq!(woken(b"sched_wakeup", "a pid=3:7 [120] success=1 CPU:001"), expected);
        let expected = Some(SchedEvent::Woken(task(("kworker/0:1", 7)), Change::New));
        assert_eq!(
            woken(b"sched_wakeup_new", "comm=kworker/0:1 pid=7 prio=120 success=1 target_cpu=0"),
            expected
        );
        assert_eq!(woken(b"sched_wakeup_new", "kworker/0:1:7 [120] CPU:001"), expected);
        let expected = Some(SchedEvent::Woken(task(("a", 7)), Change::Woken));
        assert_eq!(woken(b"sched_waking", "comm=a pid=7 prio=120 target_cpu=001"), expected);
    }

    #[test]
    fn execs_show_both_ids() {
        let exec = |fields: &'static str| read(b"sched_process_exec", fields.as_bytes());
        let expected = Some(SchedEvent::Exec { former: 8, tid: 7 });
        assert_eq!(exec("filename=/bin/true pid=7 old_pid=8"), expected);
        assert_eq!(exec("filename=/x pid=1 old_pid=2/y pid=7 old_pid=8"), expected);
        for cut in ["", "filename=/bin/true", "filename=/bin/true pid=7", "filename=/bin/true pid=7 old_pid="]
        {
            assert_eq!(exec(cut), None, "{cut}");
        }
    }

    #[test]
    fn what_is_cut_is_not_read() {
        let whole =
            "prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=b next_pid=8 next_prio=120";
        for end in 0..whole.find("next_pid=8").unwrap() + "next_pid=".len() {
            assert_eq!(of_switch(&whole[..end]), None, "{}", &whole[..end]);
        }
        for text in
            ["", "comm=", "comm=a", "comm=a pid=", "comm=a pid=99999999999 prio=1", "a:", "a:7", "a:7 [x]"]
        {
            assert_eq!(read(b"sched_wakeup", text.as_bytes()), None, "{text}");
        }
    }
}
