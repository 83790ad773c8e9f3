//! Sections that had not ended, as a table.

use nntrace_common::layer::{Layer, Phase};

use crate::report::{
    number_format::{self, UNKNOWN, or_unknown},
    snapshot::UnfinishedRow,
    terminal_text::{Text, line},
};

/// Lines at most.
const MOST: usize = 10;

/// Adds a line for each section, the inner ones of a thread indented; nothing where all have ended.
pub(super) fn table(text: &mut Text, rows: &[UnfinishedRow]) {
    if rows.is_empty() {
        return;
    }
    line!(text, "not ended     {:<15}{:>7}  function", "phase", "so far");
    let mut thread = None;
    for row in rows.iter().take(MOST) {
        if thread != Some((row.pid, row.tid)) {
            thread = Some((row.pid, row.tid));
            let pid = or_unknown(row.pid.map(u64::from), |pid| pid.to_string());
            line!(text, "  thread {} of process {pid}", row.tid);
        }
        line!(
            text,
            "  {:<12}{:<15}{:>7}  {:indent$}{}",
            row.layer.map_or(UNKNOWN, Layer::name),
            row.phase.map_or(UNKNOWN, Phase::name),
            number_format::duration_ns(row.open_ns),
            "",
            row.name,
            indent = 2 * usize::from(row.depth),
        );
    }
    if let Some(more) = rows.len().checked_sub(MOST).filter(|more| *more > 0) {
        line!(text, "  and {more} more: --json has them");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_sections_stand_below_those_around_them() {
        let mut text = Text::new();
        table(&mut text, &[]);
        assert_eq!(text, "");
        let row = |name: &str, depth: u8, layer: Option<Layer>| UnfinishedRow {
            pid: layer.map(|_| 42),
            tid: 43,
            layer,
            phase: layer.map(|_| Phase::Execution),
            name: name.into(),
            depth,
            begin_ns: 1_000,
            open_ns: 4_300_000_000 - u64::from(depth),
        };
        let rows = [
            row("compute", 0, Some(Layer::Runtime)),
            row("wait_for_npu", 1, Some(Layer::Driver)),
            row("unknown", 0, None),
        ];
        table(&mut text, &rows);
        let expected = "\
not ended     phase           so far  function
  thread 43 of process 42
  Runtime     Execution       4.30 s  compute
  Driver      Execution       4.30 s    wait_for_npu
  thread 43 of process -
  -           -               4.30 s  unknown
";
        assert_eq!(text, expected);
        let many: Vec<_> = (0..13).map(|depth| row("deep", depth, Some(Layer::CpuFallback))).collect();
        let mut text = Text::new();
        table(&mut text, &many);
        assert_eq!((text.lines().count(), text.lines().last()), (13, Some("  and 3 more: --json has them")));
    }
}
