//! Files of results, by the endings of their names.

use std::path::PathBuf;

/// A file of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// Kind of its content.
    pub kind: OutputKind,
    /// Where it is.
    pub path: PathBuf,
}

/// Content of a file of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// The snapshot.
    Json,
    /// Tables of power states.
    Csv,
    /// Power states over time.
    Svg,
    /// Sections and their causes.
    Dot,
    /// Folded stacks.
    Folded,
    /// A profile for pprof.
    Pprof,
    /// Metrics for Prometheus.
    Prometheus,
    /// A report for people, with a swimlane.
    Html,
    /// A trace for Perfetto.
    Perfetto,
    /// A recording, in a folder.
    Recording,
}

/// Names of the kinds of files.
pub(super) const EXPECTED: &str =
    "expected a file name that ends in .json, .csv, .svg, .dot, .folded, .pb.gz, .prom, .html or .pftrace";

/// End of the names of profiles for pprof.
const PPROF: &str = ".pb.gz";

/// A file of results, of the kind that its name ends in; any other name is that of a recording.
pub(super) fn output_file(text: &str) -> Result<OutputFile, String> {
    let path = PathBuf::from(text);
    let kind = match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => OutputKind::Json,
        Some("csv") => OutputKind::Csv,
        Some("svg") => OutputKind::Svg,
        Some("dot") => OutputKind::Dot,
        Some("folded") => OutputKind::Folded,
        Some("prom") => OutputKind::Prometheus,
        Some("html") => OutputKind::Html,
        Some("pftrace" | "perfetto-trace") => OutputKind::Perfetto,
        Some("gz") if text.ends_with(PPROF) => OutputKind::Pprof,
        _ if text.is_empty() => return Err(EXPECTED.into()),
        _ => OutputKind::Recording,
    };
    Ok(OutputFile { kind, path })
}
