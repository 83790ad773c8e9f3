use nntrace_common::{
    layer::{Layer, Phase, Tag},
    record::{Record, RecordKind, SpanRecord},
    stack::{Adds, Class},
};
use proptest::prelude::*;

use super::*;
use crate::model::{Model, causality::Questions};

/// Batch of a thread: begin and end (ns), tokens.
type Batch = (u64, u64, u32);

const PID: u32 = 7;

fn span(tid: u32, (begin, end, _): Batch, name: u64, adds: Adds) -> SpanRecord {
    SpanRecord {
        kind: RecordKind::Span as u32,
        tid,
        tgid: PID,
        tag: BATCH.index(),
        class: Class::Section as u8,
        depth: 0,
        adds,
        begin,
        end,
        own: end - begin,
        exclusive: end - begin,
        path: 1,
        name,
        begin_sequence: 0,
        end_sequence: 0,
    }
}

fn counted() -> Adds {
    Adds::from_bits(1)
}

/// Takes batches of one thread.
fn taken(batches: &[Batch]) -> TokenTimes {
    let mut models = LanguageModels::default();
    for &batch in batches {
        models.batch(&span(1, batch, 0, counted()), batch.2);
    }
    let times = models.by_process().next().map(|(pid, times)| (pid, times.clone()));
    times.filter(|(pid, _)| *pid == PID).map(|(_, times)| times).unwrap_or_default()
}

fn sums(durations: &Durations) -> (u64, u64) {
    (durations.times.count(), durations.total_ns)
}

#[test]
fn a_request_is_a_prompt_and_what_is_decoded_after_it() {
    let times = taken(&[(100, 300, 12), (310, 330, 1), (350, 360, 1), (1_000, 1_400, 20), (1_450, 1_470, 1)]);
    assert_eq!((times.prompt_batches, times.prompt_tokens, times.prompt_ns), (2, 32, 600));
    assert_eq!(sums(&times.decode), (3, 50));
    assert_eq!(sums(&times.first_token), (2, 200 + 400));
    assert_eq!(sums(&times.between_tokens), (3, 30 + 30 + 70));
}

#[test]
fn parts_of_a_prompt_follow_each_other_at_once() {
    let divided = taken(&[(0, 100, 317), (110, 210, 512), (220, 250, 4), (260, 270, 1)]);
    assert_eq!(sums(&divided.first_token), (1, 250));
    // More than a tenth of the batch before is a pause between two prompts.
    let others = taken(&[(0, 100, 64), (111, 211, 64), (220, 250, 7), (260, 270, 1)]);
    assert_eq!(sums(&others.first_token), (1, 139));
}

#[test]
fn a_step_after_a_long_pause_answers_another_request() {
    let times = taken(&[(0, 100, 5), (110, 120, 1), (LONG_PAUSE + 120, LONG_PAUSE + 130, 1)]);
    assert_eq!((sums(&times.decode), sums(&times.between_tokens)), ((2, 20), (1, 20)));
    let late = taken(&[(0, 100, 5), (LONG_PAUSE + 100, LONG_PAUSE + 110, 1)]);
    assert_eq!((sums(&late.first_token), sums(&late.between_tokens)), ((0, 0), (0, 0)));
}

#[test]
fn a_batch_that_was_open_at_the_start_of_the_window_does_not_count() {
    let mut models = LanguageModels::default().since(1_000);
    for batch in [(1_000, 1_100, 64), (1_110, 1_120, 1), (1_130, 1_140, 1)] {
        models.batch(&span(1, batch, 0, counted()), batch.2);
    }
    let (_, times) = models.by_process().next().expect("one process");
    assert_eq!((times.prompt_tokens, sums(&times.decode)), (0, (2, 20)));
    assert_eq!((sums(&times.first_token), sums(&times.between_tokens)), ((0, 0), (2, 40)));
}

#[test]
fn prompts_alone_are_no_requests() {
    let times = taken(&[(0, 100, 5), (110, 210, 5)]);
    assert_eq!((times.prompt_batches, sums(&times.first_token)), (2, (0, 0)));
    assert_eq!(times.first_token.times.extremes(), None);
    let decoded = taken(&[(0, 100, 1)]);
    assert_eq!((sums(&decoded.decode), sums(&decoded.between_tokens)), ((1, 100), (0, 0)));
}

#[test]
fn threads_have_requests_of_their_own() {
    let mut models = LanguageModels::default();
    for (tid, batch) in [(1, (0, 100, 5)), (2, (10, 20, 1)), (1, (110, 120, 1))] {
        models.batch(&span(tid, batch, 0, counted()), batch.2);
    }
    models.exit(PID, 1, 400);
    // The first came after the end of its thread, the second is of another thread with the same id.
    for batch in [(130, 140, 1), (500, 510, 1)] {
        models.batch(&span(1, batch, 0, counted()), batch.2);
    }
    let (_, times) = models.by_process().next().expect("one process");
    assert_eq!((sums(&times.decode), sums(&times.between_tokens)), ((4, 40), (2, 20 + 20)));
}

#[test]
fn what_has_no_room_is_counted() {
    let limits = Limits { phases: 3, threads: 2, ..Limits::default() };
    let mut models = LanguageModels::new(&limits);
    for tid in 1..=5 {
        models.batch(&span(tid, (0, 10, 4), 0, counted()), 4);
    }
    // The third and the fifth thread made two others forget their prompts each.
    assert_eq!(models.left_out, 4);
    models.exit(PID, 5, 20);
    for tid in 6..=7 {
        models.batch(&span(tid, (30, 40, 4), 0, counted()), 4);
    }
    assert_eq!(models.left_out, 4, "the fifth has ended");
    models.batch(&SpanRecord { tgid: PID + 1, ..span(9, (0, 10, 4), 0, counted()) }, 4);
    assert_eq!(
        (models.left_out, models.by_process().count()),
        (5, 1),
        "there is no room for another process"
    );
}

#[test]
fn names_of_executions_in_the_runtime_state_the_tokens() {
    let mut model = Model::new(&Limits::default(), Questions::default(), None);
    for (hash, name) in [(1, "16 tokens"), (2, "1 token"), (3, "run")] {
        model.marks.names.insert(hash, name.as_bytes());
    }
    let others = Tag::new(Layer::CpuFallback, Phase::Execution).index();
    let spans = [
        span(1, (0, 50, 0), 1, counted()),
        // In another execution of the runtime: that one counts.
        span(1, (60, 65, 0), 2, Adds::from_bits(0)),
        span(1, (60, 70, 0), 3, counted()),
        SpanRecord { tag: others, ..span(1, (75, 79, 0), 2, counted()) },
        span(1, (80, 90, 0), 2, counted()),
    ];
    for span in &spans {
        if !model.span_anywhere(span) {
            model.record(&Record::Span(*span));
        }
    }
    let (_, times) = model.marks.language_models.by_process().next().expect("one process");
    assert_eq!((times.prompt_tokens, sums(&times.decode), sums(&times.first_token)), (16, (1, 10), (1, 50)));
    assert_eq!(sums(&times.between_tokens), (1, 40));
}

/// Times to first tokens by looking back from each first step of decoding.
fn first_tokens(batches: &[Batch]) -> Vec<u64> {
    let mut found = Vec::new();
    for (at, pair) in batches.windows(2).enumerate() {
        if pair[1].2 != 1 || pair[0].2 == 1 {
            continue;
        }
        let parts = batches[..=at].windows(2).rev().take_while(|pair| {
            let [(begin, end, before), (next, _, _)] = [pair[0], pair[1]];
            before != 1 && next - end <= (end - begin) / MOST_PAUSE
        });
        found.push(pair[0].1 - batches[at - parts.count()].0);
    }
    found
}

proptest! {
    #[test]
    fn requests_are_those_of_a_slow_look_back(
        steps in prop::collection::vec((1..20_u64, 1..200_u64, prop_oneof![Just(1), 1..70_u32]), 0..40),
    ) {
        let mut now = 0;
        let batches: Vec<Batch> = steps
            .iter()
            .map(|&(gap, length, tokens)| {
                let begin = now + gap;
                now = begin + length;
                (begin, now, tokens)
            })
            .collect();
        let times = taken(&batches);
        let expected = first_tokens(&batches);
        prop_assert_eq!(sums(&times.first_token), (expected.len() as u64, expected.iter().sum()));
        let between = batches.windows(2).filter(|pair| pair[1].2 == 1).map(|pair| pair[1].1 - pair[0].1);
        prop_assert_eq!(sums(&times.between_tokens), (between.clone().count() as u64, between.sum()));
        let prompts: Vec<_> = batches.iter().filter(|batch| batch.2 != 1).collect();
        prop_assert_eq!(times.prompt_tokens, prompts.iter().map(|batch| u64::from(batch.2)).sum::<u64>());
        prop_assert_eq!(times.prompt_ns + times.decode.total_ns, batches.iter().map(|batch| batch.1 - batch.0).sum::<u64>());
    }
}
