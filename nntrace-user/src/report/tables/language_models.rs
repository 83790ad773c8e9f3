//! Prompts and tokens of language models, as a table.

use crate::report::{
    incomplete_figures::Figures,
    number_format::{self, UNKNOWN},
    snapshot::{DurationsRow, LanguageModelRow},
    terminal_text::{Text, line},
};

/// Adds a line for each kind of work of each process; nothing where no execution states its tokens.
pub(super) fn table(text: &mut Text, rows: &[LanguageModelRow], figures: Figures) {
    if rows.is_empty() {
        return;
    }
    line!(
        text,
        "{:<22}{:>8}{:>9}{:>9}{:>10}{:>9}{:>9}{:>9}{:>9}",
        "language models",
        "count",
        "tokens",
        "total",
        "tokens/s",
        "p50",
        "p95",
        "p99",
        "max"
    );
    for row in rows {
        let comm = if row.comm.is_empty() { UNKNOWN } else { &row.comm };
        line!(text, "{comm} ({})", row.pid);
        let prompts = [row.prompt_batches, row.prompt_tokens, row.prompt_ns];
        let decoding = [row.decode.count, row.decode.count, row.decode.total_ns];
        for (what, [count, tokens, total], durations) in
            [("prompts, in batches", prompts, None), ("decoding", decoding, Some(&row.decode))]
        {
            let rate = if count == 0 {
                UNKNOWN.to_owned()
            } else {
                figures.text(&number_format::per_second(tokens, total))
            };
            line!(
                text,
                "  {what:<20}{:>8}{:>9}{:>9}{rate:>10}{}",
                figures.count(count),
                figures.count(tokens),
                figures.time(total),
                durations.map(|durations| quantiles(durations, figures)).unwrap_or_default(),
            );
        }
        for (what, durations) in
            [("time to first token", &row.first_token), ("between tokens", &row.between_tokens)]
        {
            let count = figures.count(durations.count);
            line!(text, "  {what:<20}{count:>8}{:>28}{}", "", quantiles(durations, figures));
        }
    }
}

fn quantiles(row: &DurationsRow, figures: Figures) -> String {
    let time = |ns| figures.known(ns, number_format::duration_ns);
    let [p50, p95, p99, max] = [row.p50_ns, row.p95_ns, row.p99_ns, row.max_ns].map(time);
    format!("{p50:>9}{p95:>9}{p99:>9}{max:>9}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_and_decoding_are_lines_of_their_own() {
        let mut text = Text::new();
        table(&mut text, &[], Figures::new(false));
        assert_eq!(text, "");
        let row = LanguageModelRow::sample();
        let prompts_alone = LanguageModelRow {
            pid: 7,
            comm: String::new(),
            decode: DurationsRow::default(),
            first_token: DurationsRow::default(),
            between_tokens: DurationsRow::default(),
            ..row.clone()
        };
        table(&mut text, &[row, prompts_alone], Figures::new(false));
        let expected = "\
language models          count   tokens    total  tokens/s      p50      p95      p99      max
llama-server (4242)
  prompts, in batches        3    1,536   1.20 s     1,280
  decoding                 127      127   1.54 s      82.6  12.1 ms  13.3 ms  14.5 ms  24.2 ms
  time to first token        3                               400 ms   440 ms   480 ms   800 ms
  between tokens           127                              12.6 ms  13.9 ms  15.1 ms  25.2 ms
- (7)
  prompts, in batches        3    1,536   1.20 s     1,280
  decoding                   0        0     0 ns         -        -        -        -        -
  time to first token        0                                    -        -        -        -
  between tokens             0                                    -        -        -        -
";
        assert_eq!(text, expected);
    }
}
