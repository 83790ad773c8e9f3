//! Files of results, besides what is shown.

use std::{fs::File, path::Path};

use anyhow::{Context as _, Result};
use nntrace_user::{
    export::{
        ThreadName, dot, folded,
        html::{self, Sections},
        metrics::Metrics,
        pprof,
        prometheus::{self, Format},
    },
    model::{Findings, timeline::Timelines},
    report::{
        power::{self, PowerTable},
        snapshot::Snapshot,
        timeline,
    },
};

use crate::{
    arguments::{OutputFile, OutputKind, Results, Table},
    output::{
        self,
        background_writer::BackgroundWriter,
        progress::Shown,
        result_file::{ResultFile, Staged},
    },
    stderr,
};

/// Files of results, known to be possible from the start: so that a mistake costs nothing.
pub struct Files {
    files: Vec<(OutputKind, ResultFile)>,
    tables: Vec<PowerTable>,
}

/// Last results of a run.
pub struct Found<'a> {
    /// Findings.
    pub findings: &'a Findings<'a>,
    /// Snapshot of them.
    pub snapshot: &'a Snapshot,
    /// States of CPUs and clusters over time, if they were kept.
    pub timelines: Option<&'a Timelines>,
    /// Begin of what was measured, ns since 1970, where that is known.
    pub began_ns: Option<u64>,
    /// Facts that a report shows besides.
    pub report: ReportFacts<'a>,
    /// Writer of a trace for Perfetto, which returns notes.
    pub perfetto: &'a WriteTrace<'a>,
}

/// Writer of a trace.
pub type WriteTrace<'a> = dyn Fn(&mut BackgroundWriter<Shown<File>>) -> Result<Vec<String>> + 'a;

/// Facts of a run for a report.
#[derive(Clone, Copy)]
pub struct ReportFacts<'a> {
    /// Subject of the run: a command, or files.
    pub title: &'a str,
    /// Name of the host, where it is known.
    pub host_name: Option<&'a str>,
    /// Sections of the swimlane.
    pub sections: &'a Sections,
    /// Names of threads, as far as they are known.
    pub threads: &'a [ThreadName],
}

impl Files {
    /// Looks at what the command line asks for; nothing is created or changed yet.
    pub fn open(results: &Results) -> Result<Self> {
        let json = results.json.iter().filter(|path| *path != Path::new("-"));
        let wanted = json.map(|path| (OutputKind::Json, path));
        let wanted = wanted.chain(results.files().map(|output| (output.kind, &output.path)));
        let files = ResultFile::open_all(wanted, results.force)?;
        let table = results.table.and_then(Table::of_power);
        Ok(Self { files, tables: table.map_or_else(|| PowerTable::ALL.to_vec(), |table| vec![table]) })
    }

    /// Looks at one file of results; nothing is created or changed yet.
    pub fn single(output: &OutputFile, force: bool) -> Result<Self> {
        let file = ResultFile::open(&output.path, force)?;
        Ok(Self { files: vec![(output.kind, file)], tables: PowerTable::ALL.to_vec() })
    }

    /// Writes the last results: every file or, when one cannot be written, none.
    pub fn write(self, found: &Found<'_>) -> Result<()> {
        let Found { findings, snapshot, timelines, began_ns, report, perfetto } = *found;
        let mut notes = Vec::new();
        let stage = |(kind, file): (OutputKind, ResultFile)| {
            let bytes = match (kind, timelines) {
                (OutputKind::Json, _) => output::json(snapshot)?,
                (OutputKind::Csv, _) => power::csv(snapshot, &self.tables)?.into_bytes(),
                (OutputKind::Svg, Some(timelines)) => timeline::svg(snapshot, timelines).into_bytes(),
                (OutputKind::Dot, _) => dot::render(findings).into_bytes(),
                (OutputKind::Folded, _) => folded::render(findings).into_bytes(),
                (OutputKind::Pprof, _) => {
                    pprof::render(findings, began_ns).context("cannot compress the profile")?
                }
                (OutputKind::Prometheus, _) => {
                    prometheus::encode(&Metrics::of(findings, snapshot), Format::Text)
                }
                (OutputKind::Html, _) => {
                    let ReportFacts { title, host_name, sections, threads } = report;
                    html::render(&html::Report {
                        title,
                        host_name,
                        began_ns,
                        findings,
                        snapshot,
                        sections,
                        threads,
                        timelines,
                    })?
                }
                (OutputKind::Perfetto, _) => {
                    return file.stage_streamed(|out| {
                        notes.extend(perfetto(out)?);
                        Ok(())
                    });
                }
                // Written while the run goes on.
                (OutputKind::Recording, _) => Vec::new(),
                // A picture without a lane, as it is with power events that never came.
                (OutputKind::Svg, None) => timeline::svg(snapshot, &Timelines::default()).into_bytes(),
            };
            file.stage(bytes)
        };
        let staged = self.files.into_iter().map(stage).collect::<Result<Vec<_>>>()?;
        notes.into_iter().for_each(stderr::message);
        staged.into_iter().try_for_each(Staged::commit)
    }
}
