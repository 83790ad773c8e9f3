//! Options of exporting a run.

use std::path::PathBuf;

use nntrace_user::replay::TimeRange;

use super::{
    HostOptions,
    help_headings::{CAUSES, LIMITS, MARKS, OUTPUT, TARGET},
    values::{table_memory, time_range},
};

/// Exports a run.
#[derive(Debug, clap::Args)]
pub struct Export {
    /// Folder of a recording, or trace files; `-` is standard input. Several traces are merged by time
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Write the tables to this folder, whose name ends in .parquet
    ///
    /// Such as -o board7/run42.parquet; the files in it are `spans.parquet`, `cpu_intervals.parquet` and so on.
    #[arg(short, long, value_name = "FOLDER", value_parser = parquet_folder, help_heading = OUTPUT)]
    pub output: PathBuf,

    /// Name of the board, in each row
    ///
    /// By itself the host name that the recording has; a trace has none.
    #[arg(long, value_name = "NAME", help_heading = OUTPUT)]
    pub board: Option<String>,

    /// Name of the run, in each row
    ///
    /// By itself the number of the recording, which is that of no other; of a trace the name of its file.
    #[arg(long, value_name = "ID", help_heading = OUTPUT)]
    pub run: Option<String>,

    /// Replace the folder if it exists
    #[arg(long, help_heading = OUTPUT)]
    pub force: bool,

    /// Number the calls of this function: each is an iteration
    ///
    /// By itself the sections that carry `#iter=` are the iterations. A recording needs the begin of every section for it
    /// (`record --causes`).
    #[arg(long, value_name = "FUNCTION", help_heading = CAUSES)]
    pub iteration_root: Option<String>,

    /// Look at this time of traces only, in seconds: 2084.02..2084.45
    ///
    /// Either end may be left out.
    #[arg(long, value_name = "FROM..TO", value_parser = time_range, help_heading = TARGET)]
    pub time_range: Option<TimeRange>,

    /// Process that is a driver, in traces
    #[arg(long = "driver", value_name = "PID", help_heading = MARKS)]
    pub drivers: Vec<u32>,

    /// Memory for iterations, hand-overs and other tables of results, such as 64M
    ///
    /// Beyond, rows are summed or left out, and counted. By itself that of the recording, else a sixteenth of the host's, from
    /// 32M to 512M. Sections are never left out.
    #[arg(long, value_name = "SIZE", value_parser = table_memory, help_heading = LIMITS)]
    pub memory: Option<u64>,

    /// The host.
    #[command(flatten)]
    pub host: HostOptions,
}

/// A folder of tables, by the ending of its name.
fn parquet_folder(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("parquet") => Ok(path),
        Some("json" | "csv" | "svg" | "dot") => {
            Err("expected a folder that ends in .parquet; `nntrace-bpf replay FILE -o` writes this kind"
                .into())
        }
        _ => Err("expected the name of a folder that ends in .parquet, such as run42.parquet".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_that_of_the_ending() {
        assert_eq!(parquet_folder("b7/a.parquet"), Ok(PathBuf::from("b7/a.parquet")));
        assert!(parquet_folder("a.csv").is_err_and(|error| error.contains("replay FILE -o")));
        assert!(parquet_folder("a").is_err_and(|error| error.contains(".parquet")));
    }
}
