use proptest::prelude::*;

use super::*;

#[test]
fn microseconds_are_six_digits() {
    for us in [0, 1, 9, 10, 123_456, 909_090, 999_999] {
        assert_eq!(microseconds(*format!("{us:06}: ").as_bytes().as_array().unwrap()), Some(us));
    }
    let good = *b"123456: ";
    for (at, byte) in (0..8).flat_map(|at| (0..=255).map(move |byte| (at, byte))) {
        let mut text = good;
        text[at] = byte;
        let wanted = if at < 6 { byte.is_ascii_digit() } else { byte == good[at] };
        assert_eq!(microseconds(text).is_some(), wanted, "{}", text.escape_ascii());
    }
}

/// Lines of one trace: columns that move, and what looks like them.
fn lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let name = prop_oneof![
        4 => prop::sample::select(vec!["<idle>", "nn-worker", "a", "", "<...>", "b: c", "kworker/0:1-46"]),
        1 => prop::sample::select(vec!["x [000] 1.5: y-7", "[0] 1.5", "-1 [000] b", "#", "a-1 [001]", "(7)", "buffer: deep: name"]),
    ];
    let process =
        prop::sample::select(vec!["", "(   1000) ", "(-------) ", "(     ) ", "( 12x) ", "(99999999999) "]);
    let flags = prop::sample::select(vec!["....", "...1.", "d..2.", "", ".......1", "123", "..", "d..h1.1 "]);
    let seconds = prop::sample::select(vec![
        "    1",
        "1000",
        "1001",
        "99999999999",
        "18446744073",
        "123456",
        "",
        "1.5",
        "x",
    ]);
    let fraction = prop::sample::select(vec![
        "000001: ",
        "999999: ",
        "5: ",
        "123456789: ",
        "709551616: ",
        "12345: (+7) ",
        "1234567",
        "123456:  ",
        "123456:\t",
        "123456:",
        "12345x: ",
    ]);
    let event = prop::sample::select(vec![
        "tracing_mark_write: E|7",
        "cpu_idle: state=1 cpu_id=0",
        "x",
        "",
        "[000] 1.5: a: b",
    ]);
    let parts = (name, 0..3_u32, process, 0..3_u32, (flags, 0..3_usize), seconds, fraction, event);
    let line = (parts, prop::option::weighted(0.2, (any::<prop::sample::Index>(), any::<u8>()))).prop_map(
        |((name, tid, process, cpu, (flags, blanks), seconds, fraction, event), damage)| {
            let tid = 1000 * tid;
            let line = format!(
                "{name:>16}-{tid:<7} {process}[{cpu:03}] {flags}{:blanks$}{seconds}.{fraction}{event}",
                ""
            );
            let mut line = line.into_bytes();
            if let Some((at, byte)) = damage {
                let at = at.index(line.len());
                line[at] = byte;
            }
            line
        },
    );
    prop::collection::vec(line, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn the_same_as_the_parser(lines in lines(), again in 1..3_usize) {
        let mut columns = Columns::default();
        for line in std::iter::repeat_n(&lines, again).flatten() {
            prop_assert_eq!(columns.parse(line), parse(line), "{}", line.escape_ascii());
        }
    }
}
