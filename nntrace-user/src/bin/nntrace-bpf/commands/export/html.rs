//! A recording, or traces, as a report in HTML.

use std::path::Path;

use anyhow::{Result, bail};
use nntrace_user::{
    export::html::{self, Shown},
    report::snapshot::Snapshot,
};

use super::{
    super::file_run::{Request, Run},
    tell_losses,
};
use crate::{arguments::Export, output::result_file::ResultFile};

/// Exports the files to a file.
pub(super) fn run(cli: &Export, output: &Path, request: &Request<'_>) -> Result<()> {
    if cli.board.is_some() || cli.run.is_some() {
        bail!("--board and --run name the rows of tables: a report in HTML has none such; leave them out");
    }
    let file = ResultFile::open(output, cli.force)?;
    let (run, swimlane) =
        Run::with_sections(request, Shown { range: None, least_ns: cli.min_span.unwrap_or(0) })?;
    let findings = run.findings();
    let (snapshot, timelines) = (Snapshot::of(&findings), run.timelines());
    let title = run.title(&cli.files);
    let report = html::Report {
        title: &title,
        host_name: run.host_name(),
        began_ns: run.real_time(snapshot.window.begin_ns),
        findings: &findings,
        snapshot: &snapshot,
        sections: &swimlane.sections,
        threads: &swimlane.threads,
        timelines: timelines.as_ref(),
    };
    file.stage(html::render(&report)?)?.commit()?;
    tell_losses(&findings, format_args!("{title}"));
    Ok(())
}
