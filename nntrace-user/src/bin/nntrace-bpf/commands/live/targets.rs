//! Targets that a run ends with.

use nntrace_user::live::target::PidFd;

/// Targets that the run ends with.
pub(super) struct Targets {
    /// Whether there are any at all.
    pub(super) any: bool,
    /// Targets that had not ended when the run began.
    pub(super) living: Vec<PidFd>,
}

impl Targets {
    /// Waits until all of them have ended; for ever, when there never was any.
    pub(super) async fn ended(&self) {
        if !self.any {
            std::future::pending::<()>().await;
        }
        for handle in &self.living {
            // A handle that cannot be waited on is as good as one of a process that ended: better too early than
            // never.
            let _ = handle.ended().await;
        }
    }
}
