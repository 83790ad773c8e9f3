//! The line after tables that says why some executions were slow.

use nntrace_user::{
    analyze::why::{Answer, Options},
    report::terminal_text::Text,
};

use super::graph_question::{self, Asked};
use crate::output::shell_words::shell_words;

/// Events of a run at most: the line takes another pass over them, some 1.5 us each, and should not keep anybody waiting.
const MOST_EVENTS: u64 = 1 << 18;

/// Returns the line for a run with this many events, context switches among them; nothing where there is no answer, where slow
/// executions took hardly longer, or where the run has too many events.
pub(super) fn line(asked: &Asked<'_>, events: u64) -> Text {
    // A pipe has been read.
    let can_be_read_again = asked.files.iter().all(|file| file.is_file() || file.is_dir());
    if events > MOST_EVENTS || !can_be_read_again {
        return Text::new();
    }
    let answer = graph_question::answer(asked, |collector, findings, timelines| {
        Answer::new(collector, findings, timelines, &Options::default())
    });
    // The tables are there without it.
    let Ok(Ok(answer)) = answer else { return Text::new() };
    answer.line(&command(asked, answer.function()))
}

/// Returns the command that shows all of the answer.
fn command(asked: &Asked<'_>, function: &str) -> String {
    let files = asked.files.iter().map(|file| file.display().to_string());
    let words = ["nntrace-bpf".into(), "why".into()].into_iter().chain(files);
    let words: Vec<String> = words.chain(["--of".into(), function.into()]).collect();
    let has_options =
        asked.range.is_some() || asked.host.topology.is_some() || !asked.host.clusters.is_empty();
    let options = if has_options { ", with the options of this one" } else { "" };
    format!("{}{options}", shell_words(&words))
}
