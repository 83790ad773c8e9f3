//! Checks that a line of ftrace text is parsed without harm and independently of the lines before it, and that a
//! parsed line can be written and parsed again.

use nntrace_user::replay::ftrace::{Columns, Event, EventKind, Parsed, parse, time_without_unit};

/// Longest name that is unambiguous: a longer one may begin with the name of a buffer. Shorter ones may contain a CPU
/// and a time like a line of their own, but hardly without brackets and colons.
const LONGEST_COMM: usize = 15;

/// Checks one input: some lines.
///
/// # Panics
/// When a part of an event is no part of the line, when writing and reading changes it, or when lines before it do.
pub fn check(data: &[u8]) {
    let mut columns = Columns::default();
    for line in data.split(|&byte| byte == b'\n') {
        let parsed = parse(line);
        assert_eq!(columns.parse(line), parsed, "{}", line.escape_ascii());
        if let Parsed::Event(event) = parsed {
            check_event(event, line);
        }
        if let Some(time) = time_without_unit(line) {
            super::lies_in(time.as_bytes(), line);
            assert!(time.bytes().all(|byte| byte.is_ascii_digit()));
        }
    }
}

fn check_event(event: Event<'_>, line: &[u8]) {
    super::lies_in(event.comm, line);
    match event.kind {
        EventKind::Mark(payload) => super::lies_in(payload, line),
        EventKind::Other { name, fields } => {
            super::lies_in(fields, line);
            assert!(line.windows(name.len()).any(|part| part == name));
            if name.starts_with(b"(+") {
                // After a time difference; written alone it would be taken for one.
                return;
            }
        }
        EventKind::CpuIdle { .. } | EventKind::CpuFrequency { .. } => {}
    }
    if event.comm.len() > LONGEST_COMM || [b'[', b':'].iter().all(|byte| event.comm.contains(byte)) {
        return;
    }
    let written = write(&event);
    let again = parse(&written);
    assert_eq!(again, Parsed::Event(event), "{}", written.escape_ascii());
}

/// Writes an event as the kernel does; where that is ambiguous, as another tool does.
fn write(event: &Event<'_>) -> Vec<u8> {
    let Event { comm, tid, tgid, cpu, time, kind } = *event;
    let process = tgid.map_or(String::new(), |tgid| format!("({tgid:5}) "));
    let (seconds, fraction) = (time / 1_000_000_000, time % 1_000_000_000);
    let head = format!("-{tid} {process}[{cpu:03}] d..1. {seconds}.{fraction:09}: ");
    let number =
        |name: &str, state: u32, cpu: u32| format!("{name}: state={state} cpu_id={cpu}").into_bytes();
    let text = match kind {
        // Here blanks at the start of a payload are not padding.
        EventKind::Mark(payload) => [b"print: tracing_mark_write: ", payload].concat(),
        EventKind::CpuIdle { state, cpu } => number("cpu_idle", state, cpu),
        EventKind::CpuFrequency { khz, cpu } => number("cpu_frequency", khz, cpu),
        // A blank and a tab never occur inside of a mark's prefix.
        EventKind::Other { name, fields } => [name, b" \t", fields].concat(),
    };
    // The kernel pads names to 16 places: a line never begins with one.
    [b" ", comm, head.as_bytes(), &text].concat()
}
