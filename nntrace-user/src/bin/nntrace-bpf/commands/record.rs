//! `nntrace-bpf record`: a live run that is recorded.

use std::{collections::BTreeMap, env, fmt, path::PathBuf, process::ExitCode};

use anyhow::{Result, bail};
use log::LevelFilter;
use nix::sys::utsname::uname;
use nntrace_user::{
    live::calls::CallSpec,
    model::{Findings, causality::Questions, input::Observer, opened_files::FileObserver},
    record::{ClockReading, Progress, RecordError, Recorder, RunDescription},
};

use super::live;
use crate::{
    arguments::{Level, Record},
    logging,
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
    let Some(folder) = cli.live.results.recording() else {
        bail!("name the folder of the recording with -o, such as -o run1");
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
    let mut recorder = Recorder::create(folder, run, cli.live.results.force)?;
    let files = (!cli.no_files).then(|| recorder.list_files(cli.hash_files));
    live::run(
        &cli.live,
        log_level,
        Some(Recording {
            recorder: Some(recorder),
            files,
            failure: None,
            calls: cli.calls.clone(),
            questions: asked,
        }),
    )
}

/// Returns the name of this host; empty where the kernel does not give it.
fn host_name() -> String {
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

/// Recording beside a live run. When it cannot be written any more, the run goes on: a full disk is no reason to end the
/// target.
pub struct Recording {
    recorder: Option<Recorder>,
    /// Observer of the run's files, until it is taken.
    files: Option<FileObserver>,
    failure: Option<RecordError>,
    calls: Vec<CallSpec>,
    questions: Questions,
}

impl Recording {
    /// Returns the observer of the run's model.
    pub fn observer(&self) -> Option<Observer> {
        self.recorder.as_ref().map(Recorder::observer)
    }

    /// Takes the observer of the run's files; `None` where they are not listed.
    pub fn take_file_observer(&mut self) -> Option<FileObserver> {
        self.files.take()
    }

    /// Returns the questions that the run answers.
    pub fn questions(&self) -> &Questions {
        &self.questions
    }

    /// Returns the functions whose calls are recorded.
    pub fn calls(&self) -> &[CallSpec] {
        &self.calls
    }

    /// Writes the state of the run, if the last time was long enough ago.
    pub fn checkpoint(&mut self, findings: &Findings<'_>) {
        let written = self.recorder.as_mut().map_or(Ok(()), |recorder| recorder.checkpoint(findings));
        if let Err(error) = written {
            logging::announce(&format!("{error}; the run goes on without being recorded"));
            self.recorder = None;
            self.failure = Some(error);
        }
    }

    /// Returns the progress; `None` when nothing is recorded any more.
    pub fn progress(&self) -> Option<Progress> {
        self.recorder.as_ref().map(Recorder::progress)
    }

    /// Ends the recording with the last state of the run and the exit status of its command.
    ///
    /// # Errors
    /// When it could not be written to its end.
    pub fn finish(self, findings: &Findings<'_>, exit_status: Option<i32>) -> Result<Recorded> {
        match (self.recorder, self.failure) {
            (Some(mut recorder), _) => {
                recorder.set_exit_status(exit_status);
                let folder = recorder.folder().to_owned();
                Ok(Recorded { progress: recorder.finish(findings)?, folder })
            }
            (None, Some(failure)) => Err(failure.into()),
            (None, None) => bail!("nothing was recorded"),
        }
    }
}

/// Recording that was ended.
pub struct Recorded {
    folder: PathBuf,
    progress: Progress,
}

impl fmt::Display for Recorded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { folder, progress } = self;
        let folder = folder.display();
        write!(formatter, "recorded {progress} to {folder}; look at it with: nntrace-bpf replay {folder}")
    }
}
