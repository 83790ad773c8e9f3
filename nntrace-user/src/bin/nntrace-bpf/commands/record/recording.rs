//! Recording beside a live run. When it cannot be written any more, the run goes on: a full disk is no reason to end the
//! target.

use anyhow::{Result, bail};
use nntrace_user::{
    live::calls::CallSpec,
    model::{Findings, causality::Questions, input::Observer, opened_files::FileObserver},
    record::{Cause, FlightRecorder, RecordError, Recorder},
};

use crate::logging;

/// Recording beside a live run.
pub struct Recording {
    kind: Kind,
    /// Observer of the run's files, until it is taken.
    files: Option<FileObserver>,
    calls: Vec<CallSpec>,
    questions: Questions,
}

enum Kind {
    /// Everything, as far as there is room for it.
    Whole(Recorder),
    /// The last seconds, when there is a cause.
    Flight(FlightRecorder),
    /// Nothing any more: the recording had its size, as the text says.
    Ended(String),
    /// Nothing any more: it could not be written.
    Failed(RecordError),
}

impl Recording {
    /// Creates a recording of everything, with the calls of these functions, of a run that answers these questions.
    pub fn whole(
        recorder: Recorder,
        files: Option<FileObserver>,
        calls: Vec<CallSpec>,
        questions: Questions,
    ) -> Self {
        Self { kind: Kind::Whole(recorder), files, calls, questions }
    }

    /// Creates recordings of the last seconds, with the calls of these functions, of a run that answers these questions.
    pub fn flight(recorder: FlightRecorder, calls: Vec<CallSpec>, questions: Questions) -> Self {
        Self { kind: Kind::Flight(recorder), files: None, calls, questions }
    }

    /// Returns the observer of the run's model.
    pub fn observer(&self) -> Option<Observer> {
        match &self.kind {
            Kind::Whole(recorder) => Some(recorder.observer()),
            Kind::Flight(recorder) => Some(recorder.observer()),
            Kind::Ended(_) | Kind::Failed(_) => None,
        }
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

    /// Whether the last seconds are kept, and written when there is a cause.
    pub fn is_flight(&self) -> bool {
        matches!(self.kind, Kind::Flight(_))
    }

    /// Returns what is to be done now that events were taken, by [`Recording::act`].
    pub fn due(&self) -> Option<Due> {
        match &self.kind {
            Kind::Whole(recorder) => recorder.is_full().map(Due::End),
            Kind::Flight(recorder) => recorder.fired().map(Due::Write),
            Kind::Ended(_) | Kind::Failed(_) => None,
        }
    }

    /// Ends the recording, or has the last seconds written.
    pub fn act(&mut self, due: Due, findings: &Findings<'_>) {
        match (due, &mut self.kind) {
            (Due::Write(cause), Kind::Flight(recorder)) => {
                if let Err(error) = recorder.write(findings, cause) {
                    logging::announce(&error.to_string());
                }
            }
            (Due::End(reason), kind @ Kind::Whole(_)) => {
                let ended = Kind::Ended(String::new());
                let Kind::Whole(recorder) = std::mem::replace(kind, ended) else { return };
                let folder = recorder.folder().display().to_string();
                let note = format!("{reason}: it has ended, and the run went on");
                *kind = match recorder.finish(findings, Some(note)) {
                    Ok(progress) => {
                        let text = format!(
                            "{reason}: {progress} are in {folder}, and the rest of the run is not recorded"
                        );
                        logging::announce(&text);
                        Kind::Ended(format!("{text}; look at it with: nntrace-bpf replay {folder}"))
                    }
                    Err(error) => failed(error),
                };
            }
            _ => {}
        }
    }

    /// Writes the state of the run, if the last time was long enough ago, and tells what was written meanwhile.
    pub fn checkpoint(&mut self, findings: &Findings<'_>) {
        match &mut self.kind {
            Kind::Whole(recorder) => {
                if let Err(error) = recorder.checkpoint(findings) {
                    self.kind = failed(error);
                }
            }
            Kind::Flight(recorder) => {
                recorder.watch_losses(findings);
                recorder.written().iter().for_each(|text| logging::announce(text));
            }
            Kind::Ended(_) | Kind::Failed(_) => {}
        }
    }

    /// Returns the progress as text; `None` when nothing is recorded any more.
    pub fn progress(&self) -> Option<String> {
        match &self.kind {
            Kind::Whole(recorder) => Some(recorder.progress().to_string()),
            Kind::Flight(recorder) => Some(recorder.progress()),
            Kind::Ended(_) | Kind::Failed(_) => None,
        }
    }

    /// Ends the recording with the last state of the run and the exit status of its command; returns texts on what was
    /// recorded.
    ///
    /// # Errors
    /// When it could not be written to its end.
    pub fn finish(mut self, findings: &Findings<'_>, exit_status: Option<i32>) -> Result<Vec<String>> {
        match &mut self.kind {
            Kind::Whole(recorder) => recorder.set_exit_status(exit_status),
            Kind::Flight(recorder) => {
                recorder.set_exit_status(exit_status);
                recorder.watch_losses(findings);
                // The last events may have been a cause.
                if let Some(due) = self.due() {
                    self.act(due, findings);
                }
            }
            Kind::Ended(_) | Kind::Failed(_) => {}
        }
        match self.kind {
            Kind::Whole(recorder) => {
                let folder = recorder.folder().display().to_string();
                let progress = recorder.finish(findings, None)?;
                Ok(vec![format!(
                    "recorded {progress} to {folder}; look at it with: nntrace-bpf replay {folder}"
                )])
            }
            Kind::Flight(recorder) => Ok(recorder.finish()?),
            Kind::Ended(text) => Ok(vec![text]),
            Kind::Failed(error) => bail!(error),
        }
    }
}

/// Tells at once that the recording could not be written.
fn failed(error: RecordError) -> Kind {
    logging::announce(&format!("{error}; the run goes on without being recorded"));
    Kind::Failed(error)
}

/// Thing that is to be done with a recording.
pub enum Due {
    /// It is to be ended, for this reason.
    End(String),
    /// The last seconds are to be written.
    Write(Cause),
}
