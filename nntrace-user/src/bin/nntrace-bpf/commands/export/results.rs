//! A recording, or traces, as a file of results, as `replay` writes it.

use anyhow::Result;
use nntrace_user::{export::html::Shown, report::snapshot::Snapshot};

use super::{
    super::file_run::{Request, Run, SwimlaneParts},
    notes_on_losses, refuse_min_span, refuse_rows,
};
use crate::{
    arguments::{Export, OutputFile, OutputKind},
    output::files::{Files, Found, ReportFacts},
    stderr,
};

/// Exports the files to a file.
pub(super) fn run(cli: &Export, output: &OutputFile, request: &Request<'_>) -> Result<()> {
    refuse_rows(cli)?;
    let has_swimlane = output.kind == OutputKind::Html;
    if !has_swimlane {
        refuse_min_span(cli)?;
    }
    let files = Files::single(output, cli.force)?;
    let (run, swimlane) = if has_swimlane {
        Run::with_sections(request, Shown { range: None, least_ns: cli.min_span.unwrap_or(0) })?
    } else {
        (Run::of(request)?, SwimlaneParts::default())
    };
    let findings = run.findings();
    let timelines = run.timelines();
    let mut snapshot = Snapshot::of(&findings);
    if cli.overhead {
        snapshot = snapshot.with_dispatch_overhead(&findings, timelines.as_ref());
    }
    let title = run.title(&cli.files);
    files.write(&Found {
        findings: &findings,
        snapshot: &snapshot,
        timelines: timelines.as_ref(),
        began_ns: run.real_time(snapshot.window.begin_ns),
        report: ReportFacts {
            title: &title,
            host_name: run.host_name(),
            sections: &swimlane.sections,
            threads: &swimlane.threads,
        },
        // It has an export of its own.
        perfetto: &|_| Ok(Vec::new()),
    })?;
    notes_on_losses(&findings, format_args!("{title}")).into_iter().for_each(stderr::message);
    Ok(())
}
