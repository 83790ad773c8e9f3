use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn anything_is_survived(line in prop::collection::vec(any::<u8>(), 0..120)) {
        let _ = parse(&line);
    }

    #[test]
    fn anything_like_a_line_is_survived(
        parts in prop::collection::vec(
            prop_oneof![
                4 => prop::sample::select(vec![
                    "a", "-", "-1 ", " ", "(", ")", "[", "]", "[000]", ".", ":", "d..1 ", "1.5: ", "(+", "tracing_mark_write",
                    "print:", "cpu_idle:", "state=", "cpu_id=", "0x", "0:", "CPU:", "LOST ", "EVENTS", ": ",
                ]).prop_map(str::to_owned),
                1 => "[0-9]{1,25}",
            ],
            0..40,
        )
    ) {
        let line = parts.concat();
        if let Parsed::Event(event) = parse(line.as_bytes()) {
            prop_assert!(event.comm.len() < line.len());
        }
    }

    #[test]
    fn what_is_written_is_read(
        name in "[a-z ()\\[\\]<>:/@.-]{0,15}",
        (tid, tgid, cpu, state, of) in any::<(u32, Option<u32>, u32, u32, u32)>(),
        time in 0..END_OF_TIME * UNITS[0],
        (pad, after, before, column) in (0..20_usize, 1..5_usize, 0..4_usize, 1..5_usize),
        flags in "([dDbBX.][nNpbBlL.][HhsZz.][0-9a-f.][0-9a-f.]{0,3} )?",
        event in 0..4_usize,
        payload in "[ -~]{0,40}",
    ) {
        let process = tgid.map_or(String::new(), |tgid| format!("({tgid:5}) "));
        let text = match event {
            0 => format!("tracing_mark_write: {payload}"),
            1 => format!("print:                tracing_mark_write: {payload}"),
            2 => format!("cpu_idle: state={state} cpu_id={of}"),
            _ => format!("cpu_frequency:        state={state} cpu_id={of}"),
        };
        let line = format!(
            "{:pad$}{name}-{tid}{:after$}{process}{:before$}[{cpu:03}] {flags}{:column$}{}.{:09}: {text}",
            "", "", "", "", time / 1_000_000_000, time % 1_000_000_000,
        );
        let Parsed::Event(read) = parse(line.as_bytes()) else { panic!("{line}") };
        prop_assert_eq!((read.tid, read.tgid, read.cpu, read.time), (tid, tgid, cpu, time));
        prop_assert_eq!(read.comm, name.trim_start().as_bytes());
        let payload = payload.as_bytes();
        let wanted = match event {
            0 => EventKind::Mark(payload.strip_prefix(b"  ").unwrap_or(payload)),
            1 => EventKind::Mark(payload),
            2 => EventKind::CpuIdle { state, cpu: of },
            _ => EventKind::CpuFrequency { khz: state, cpu: of },
        };
        prop_assert_eq!(read.kind, wanted);
    }
}
