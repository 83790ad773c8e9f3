//! Options of exporting a run.

use std::path::PathBuf;

use nntrace_user::replay::TimeRange;

use super::{
    HostOptions, OutputFile, OutputKind,
    help_headings::{CAUSES, LIMITS, MARKS, OUTPUT, TARGET},
    output_file::output_file,
    values::{duration_ns, table_memory, task, time_range},
};

/// Exports a run.
#[derive(Debug, clap::Args)]
pub struct Export {
    /// Folder of a recording, or trace files; `-` is standard input. Several traces are merged by time
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Write to this path; the ending decides what: .pftrace or .perfetto-trace, a trace for Perfetto; .trace.json, one for
    /// Chrome and others; .systrace, one in the text of ftrace; .parquet, a folder of tables; .html, a report for a browser;
    /// .json, .csv, .svg, .dot, .folded, .pb.gz or .prom, as `replay -o` writes them
    ///
    /// A trace for Perfetto is opened by <https://ui.perfetto.dev>, which keeps it in the browser, and by `trace_processor`; one for
    /// Chrome by its own viewer, Speedscope and others, and by Perfetto. The files in a folder of tables are `spans.parquet`, `cpu_intervals.parquet` and so on.
    #[arg(short, long, value_name = "PATH", value_parser = export_output, help_heading = OUTPUT)]
    pub output: ExportOutput,

    /// Name of the board, in each row of tables
    ///
    /// Default: the host name in the recording; a trace has no default.
    #[arg(long, value_name = "NAME", help_heading = OUTPUT)]
    pub board: Option<String>,

    /// Name of the run, in each row of tables
    ///
    /// Default: the unique id of the recording; for a trace, the name of its file.
    #[arg(long, value_name = "ID", help_heading = OUTPUT)]
    pub run: Option<String>,

    /// Hide sections shorter than this, such as 1us, in swimlanes
    ///
    /// How many they are, and how long in total, stands in a report, and for a trace on stderr. No total changes, and no table.
    /// Sections that hand work over, or do such work, stay in a trace.
    #[arg(long, value_name = "TIME", value_parser = duration_ns, help_heading = OUTPUT)]
    pub min_span: Option<u64>,

    /// Add idle CPUs while work that was handed over waits for its start, as counters of a trace for Perfetto
    ///
    /// By cluster: idle CPUs, work that is ready, and whether there are both.
    #[arg(long, help_heading = OUTPUT)]
    pub overhead: bool,

    /// Replace the output if it exists
    #[arg(long, help_heading = OUTPUT)]
    pub force: bool,

    /// Number the calls of this function: each is an iteration
    ///
    /// By default sections that carry `#iter=` are the iterations. A recording needs the begin of every section for it
    /// (`record --causes`).
    #[arg(long, value_name = "FUNCTION", help_heading = CAUSES)]
    pub iteration_root: Option<String>,

    /// Look at this time of traces only, in seconds: 2084.02..2084.45
    ///
    /// Either end may be left out.
    #[arg(long, value_name = "FROM..TO", value_parser = time_range, help_heading = TARGET)]
    pub time_range: Option<TimeRange>,

    /// Process that is a driver, in traces
    #[arg(long = "driver", value_name = "PID", value_parser = task, help_heading = MARKS)]
    pub drivers: Vec<u32>,

    /// Memory for iterations, hand-overs and other tables of results, such as 64M
    ///
    /// Beyond, rows are summed or left out, and counted. Default: that of the recording, else a sixteenth of the host's, from
    /// 32M to 512M. Sections are never left out.
    #[arg(long, value_name = "SIZE", value_parser = table_memory, help_heading = LIMITS)]
    pub memory: Option<u64>,

    /// The host.
    #[command(flatten)]
    pub host: HostOptions,
}

/// Output of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportOutput {
    /// Folder of tables.
    Parquet(PathBuf),
    /// Trace for Perfetto.
    Perfetto(PathBuf),
    /// Trace in the JSON of Chrome.
    Chrome(PathBuf),
    /// Trace in the text of ftrace.
    Systrace(PathBuf),
    /// File of results, as `replay` writes it.
    Results(OutputFile),
}

/// End of the names of traces in the JSON of Chrome; other names in .json are those of snapshots.
const CHROME: &str = ".trace.json";

/// The kind of an output, by the ending of its name.
fn export_output(text: &str) -> Result<ExportOutput, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("parquet") => Ok(ExportOutput::Parquet(path)),
        Some("pftrace" | "perfetto-trace") => Ok(ExportOutput::Perfetto(path)),
        Some("json") if text.ends_with(CHROME) => Ok(ExportOutput::Chrome(path)),
        Some("systrace") => Ok(ExportOutput::Systrace(path)),
        _ => match output_file(text) {
            Ok(output) if output.kind != OutputKind::Recording => Ok(ExportOutput::Results(output)),
            _ => Err(format!(
                "expected a name that ends in .pftrace or .perfetto-trace (a trace for Perfetto), in {CHROME} (one for Chrome), in \
                 .systrace (one in the text of ftrace), in .parquet (a folder of tables), or in .html (a report) or another \
                 ending that `replay -o` knows, such as run42.pftrace"
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_that_of_the_ending() {
        assert_eq!(export_output("b7/a.parquet"), Ok(ExportOutput::Parquet("b7/a.parquet".into())));
        for name in ["a.b.pftrace", "a.perfetto-trace"] {
            assert_eq!(export_output(name), Ok(ExportOutput::Perfetto(name.into())));
        }
        assert_eq!(export_output("a.trace.json"), Ok(ExportOutput::Chrome("a.trace.json".into())));
        assert_eq!(export_output("a.systrace"), Ok(ExportOutput::Systrace("a.systrace".into())));
        for (name, kind) in
            [("a.html", OutputKind::Html), ("a.json", OutputKind::Json), ("a.pb.gz", OutputKind::Pprof)]
        {
            let output = OutputFile { kind, path: name.into() };
            assert_eq!(export_output(name), Ok(ExportOutput::Results(output)));
        }
        assert!(export_output("a.gz").is_err());
        assert!(
            export_output("a").is_err_and(|error| error.contains(".parquet") && error.contains(".pftrace"))
        );
    }
}
