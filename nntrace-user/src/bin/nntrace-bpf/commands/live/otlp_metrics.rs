//! Metrics of a live run for a receiver of OpenTelemetry: at each interval, and at the end.

use anyhow::Result;
use nntrace_user::{
    export::{
        metrics::Metrics,
        otlp::{self, Request, Resource},
    },
    live::target::Process,
    model::Findings,
    record::ClockReading,
    report::snapshot::Snapshot,
};

use crate::{
    arguments::Live,
    commands::record::host_name,
    otlp::{Sender, program_name, resource},
};

/// Metrics that are sent while the run goes on.
pub struct OtlpMetrics {
    sender: Sender,
    resource: Resource,
}

impl OtlpMetrics {
    /// Begins to send, if that is asked for.
    pub fn start(cli: &Live, processes: &[Process]) -> Result<Option<Self>> {
        let Some(endpoint) = &cli.results.otlp else { return Ok(None) };
        let process = || processes.first().map(|process| process.comm.clone());
        let service = program_name(&cli.command).or_else(process).unwrap_or_else(|| cli.target());
        Ok(Some(Self { sender: Sender::start(endpoint)?, resource: resource(service, host_name()) }))
    }

    /// Sends what was found so far, if the receiver keeps up.
    pub fn offer(&mut self, findings: &Findings<'_>, snapshot: &Snapshot) {
        self.sender.offer(self.request(findings, snapshot));
    }

    /// Sends what was found in all, and waits for it with a limit.
    pub fn finish(mut self, findings: &Findings<'_>, snapshot: &Snapshot) {
        let last = self.request(findings, snapshot);
        self.sender.offer(last);
        self.sender.finish();
    }

    fn request(&self, findings: &Findings<'_>, snapshot: &Snapshot) -> Request {
        let clocks = ClockReading::now();
        // Before 1970 there is no time.
        let real_time = |time| clocks.real_time(time).unwrap_or(0);
        let (begin, end) = (real_time(snapshot.window.begin_ns), real_time(snapshot.window.end_ns));
        otlp::metrics(&Metrics::of(findings, snapshot), &self.resource, begin, end)
    }
}
