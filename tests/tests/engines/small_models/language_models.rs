//! Prompts and tokens of a language model: counts are those of the engine itself, and times those of its own clock.

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{
    engines::{Engine, Joins, LanguageModel, Size, Traced},
    live,
    results::Results as _,
};
use nntrace_user::report::snapshot::LanguageModelRow;

const LLAMA: Engine = Engine::new("llama", "llama_library.py", "gguf");
const GENAI: Engine = Engine::new("genai", "genai_python.py", "genai");
/// Requests: three of each of the script's four prompts.
const REQUESTS: u64 = 12;
/// Work around a batch that the profiler does not count and the other clock does, ns, at most on a slow machine.
const AROUND_NS: u64 = 100_000;
/// The same around a prompt of onnxruntime-genai, whose function also takes its tokens, before one is chosen.
const AROUND_PROMPT_NS: u64 = 500_000;
/// Launches until the times must have agreed: others may take the CPU between the two clocks.
const ATTEMPTS: u32 = 5;

#[test]
fn llama() -> Result<()> {
    check(LLAMA, AROUND_NS)
}

#[test]
fn onnxruntime_genai() -> Result<()> {
    check(GENAI, AROUND_PROMPT_NS)
}

/// Runs an engine in all ways.
fn check(engine: Engine, around_prompt_ns: u64) -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    if !engine.is_there()? {
        return Ok(());
    }
    let mut attempt = 1;
    loop {
        let launched = engine.launched("run", Size::Large, REQUESTS)?;
        let (row, own) = counted(&launched)?;
        match times_agree(&row, &own, around_prompt_ns) {
            Err(differs) if attempt < ATTEMPTS => eprintln!("{differs:#}"),
            checked => break checked.context("as a command")?,
        }
        attempt += 1;
    }
    // The counts are the same at level `op`, and in a process that is joined.
    counted(&engine.launched("op", Size::Tiny, REQUESTS)?)?;
    counted(&engine.joined(Joins::AfterTheModel, "run", Size::Tiny, REQUESTS)?)?;
    Ok(())
}

/// Checks the counts against the engine's own; returns the row of the process, and the engine's figures.
fn counted(traced: &Traced) -> Result<(LanguageModelRow, LanguageModel)> {
    let pid = traced.pid()?;
    let own = traced.printed.language_model.context("the script prints the engine's figures")?;
    let [row] = &traced.snapshot.language_models[..] else {
        panic!("one process runs a language model: {:?}", traced.snapshot.language_models);
    };
    assert_eq!(row.pid, pid);
    assert_eq!(traced.snapshot.odd_marks(), [].into(), "{:?}", traced.snapshot.diagnostics);
    assert_eq!((row.prompt_batches, row.prompt_tokens), (own.prompt_batches, own.prompt_tokens), "prompts");
    assert_eq!((row.decode.count, row.first_token.count), (own.decode_tokens, REQUESTS), "tokens, requests");
    assert_eq!(row.between_tokens.count, own.decode_tokens, "all steps follow a batch");
    let batches = own.prompt_batches + own.decode_tokens;
    assert_eq!(traced.snapshot.count(pid, "LR_PE"), batches, "each batch is a run");
    let named = traced.functions("LR_PE");
    assert_eq!(named.get("1 token"), Some(&own.decode_tokens), "{named:?}");
    Ok((row.clone(), own))
}

/// Whether times agree within one percent, and what lies between the clocks.
fn times_agree(row: &LanguageModelRow, own: &LanguageModel, around_prompt_ns: u64) -> Result<()> {
    let (first, between) = (&row.first_token, &row.between_tokens);
    let around_prompts = row.prompt_batches * around_prompt_ns;
    let around_steps = row.decode.count * AROUND_NS;
    for (what, ns, expected, around) in [
        ("prompts", row.prompt_ns, own.prompt_ns, around_prompts),
        ("decoding", row.decode.total_ns, own.decode_ns, around_steps),
        ("time to first token", first.total_ns, Some(own.first_token_ns), around_prompts),
        ("between tokens", between.total_ns, Some(own.between_tokens_ns), around_steps),
    ] {
        let Some(expected) = expected else { continue };
        let apart = ns.abs_diff(expected);
        ensure!(apart <= expected / 100 + around, "{what}: {ns} ns, by the engine {expected} ns");
    }
    Ok(())
}
