//! `nntrace-bpf record`: a live run that is recorded.

mod recording;

use std::{collections::BTreeMap, env, process::ExitCode};

use anyhow::{Context as _, Result, bail};
use log::LevelFilter;
use nix::sys::utsname::uname;
use nntrace_user::{
    record::{
        ClockReading, FlightOptions, FlightRecorder, MOST_TRIGGERS, MostSize, Recorder, RunDescription,
    },
    report::terminal_text::Text,
};
pub use recording::{Due, Recording};

use super::live;
use crate::{
    arguments::{Level, Record, usage},
    output::{self, shell_words::shell_words},
};

/// Variables of the environment that are recorded: those that change what engines, runtimes and loaders do. Others may
/// hold secrets.
const VARIABLES: [&str; 20] = [
    "CUDA_*",
    "GGML_*",
    "GOMP_*",
    "INTEL_*",
    "KMP_*",
    "LD_*",
    "MKL_*",
    "MNN_*",
    "NCNN_*",
    "NNTRACE_*",
    "OMP_*",
    "ONEDNN_*",
    "OPENBLAS_*",
    "OPENVINO_*",
    "ORT_*",
    "OV_*",
    "TFLITE_*",
    "TF_ENABLE_*",
    "TF_NUM_*",
    "XNNPACK_*",
];

/// Records a run; returns the exit status.
pub fn run(cli: &Record, log_level: LevelFilter) -> Result<ExitCode> {
    if cli.print_only {
        return print_command(cli);
    }
    let Some(folder) = cli.live.results.recording() else {
        return Err(usage("name the folder of the recording with -o, such as -o run1".into()));
    };
    let mut questions = cli.live.results.questions();
    questions.graph |= cli.causes;
    let asked = questions.clone();
    let run = RunDescription {
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        arguments: env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
        command: cli.live.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        folder: env::current_dir().unwrap_or_default().display().to_string(),
        environment: environment(&cli.env),
        host_name: host_name(),
        clocks: ClockReading::now(),
        scheduling: cli.live.level == Level::Sched,
        questions,
        limits: cli.live.results.limits(),
        drivers: cli.live.drivers.iter().copied().collect(),
        exit_status: None,
    };
    if cli.triggers.len() > MOST_TRIGGERS {
        bail!("{} triggers are more than the {MOST_TRIGGERS} that a run may have", cli.triggers.len());
    }
    let replace = cli.live.results.force;
    let recording = if let Some(time) = cli.flight {
        let triggers = cli.triggers.clone();
        let options = FlightOptions { time, memory: cli.flight_memory, triggers, replace };
        Recording::flight(FlightRecorder::create(folder, run, options)?, cli.calls.clone(), asked)
    } else {
        let most = cli.max_size.map(if cli.rotate { MostSize::Rotates } else { MostSize::Ends });
        let mut recorder = Recorder::create(folder, run, replace, most)?;
        let files = (!cli.no_files).then(|| recorder.list_files(cli.hash_files));
        Recording::whole(recorder, files, cli.calls.clone(), asked)
    };
    live::run(&cli.live, log_level, Some(recording))
}

/// Prints what would be run, and where, as a shell takes it; returns the exit status.
fn print_command(cli: &Record) -> Result<ExitCode> {
    let folder = env::current_dir().context("the current folder is gone: go to one that exists")?;
    let mut words = vec!["env".to_owned(), "-C".to_owned(), folder.to_string_lossy().into_owned()];
    words.extend(environment(&cli.env).iter().map(|(name, value)| format!("{name}={value}")));
    words.extend(cli.live.command.iter().map(|word| word.to_string_lossy().into_owned()));
    let mut text = Text::new();
    text.line(format_args!("{}", shell_words(&words)));
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the name of this host; empty where the kernel does not give it.
pub fn host_name() -> String {
    let names = uname().ok();
    names.map(|names| names.nodename().to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the variables that are recorded, with those that are asked for; `all` means every one.
pub fn environment(asked_for: &[String]) -> BTreeMap<String, String> {
    let is_wanted = |name: &str| {
        let is = |pattern: &str| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == pattern,
        };
        VARIABLES.iter().any(|pattern| is(pattern))
            || asked_for.iter().any(|pattern| pattern == "all" || is(pattern))
    };
    env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .filter(|(name, _)| is_wanted(name))
        .collect()
}
