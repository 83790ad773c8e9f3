//! Whether threads ran, waited or slept, as a table.

use crate::report::{
    incomplete_figures::Figures,
    snapshot::ThreadRow,
    terminal_text::{Text, line},
};

/// A line for each thread; nothing where nothing is known of any.
pub(crate) fn table(text: &mut Text, rows: &[ThreadRow], figures: Figures) {
    if rows.is_empty() {
        return;
    }
    line!(
        text,
        "threads {:<32}{:>9}{:>10}{:>10}{:>11}{:>9}",
        "",
        "on CPU",
        "runnable",
        "sleeping",
        "sleeping D",
        "unknown"
    );
    for row in rows {
        let who = format!("{} {}/{}", row.comm, row.pid, row.tid);
        let [on_cpu, runnable, sleeping, deep, unknown] =
            [row.on_cpu_ns, row.runnable_ns, row.sleeping_ns, row.uninterruptible_ns, row.unknown_ns]
                .map(|ns| figures.time(ns));
        line!(text, "  {who:<38}{on_cpu:>9}{runnable:>10}{sleeping:>10}{deep:>11}{unknown:>9}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_their_names() {
        let mut text = Text::new();
        let exact = Figures::default();
        table(&mut text, &[], exact);
        assert_eq!(text, "");
        let row = ThreadRow {
            pid: 1_234_567,
            tid: 1_234_568,
            comm: "fifteen letters".into(),
            on_cpu_ns: 999_000,
            runnable_ns: 1_000_000,
            sleeping_ns: 12_300_000_000,
            uninterruptible_ns: 0,
            unknown_ns: 45_000,
        };
        table(&mut text, &[row], exact);
        let expected = "\
threads                                    on CPU  runnable  sleeping sleeping D  unknown
  fifteen letters 1234567/1234568          999 us   1.00 ms    12.3 s       0 ns  45.0 us
";
        assert_eq!(text, expected);
    }
}
