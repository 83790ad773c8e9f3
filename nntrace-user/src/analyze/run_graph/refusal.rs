//! Refusals of questions to the graph of a run.

use thiserror::Error;

/// Reason why there is no answer.
#[derive(Debug, Error)]
pub enum Refusal {
    /// Question that means nothing in the run.
    #[error("{0}")]
    Question(String),
    /// The run has not what an answer is made of, or too much of it.
    #[error("{0}")]
    Run(String),
}
