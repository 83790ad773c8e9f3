//! A small run, and what each format makes of it.

use std::fs;

use super::{
    folded,
    metrics::Metrics,
    prometheus::{self, Format},
};
use crate::{
    replay::{self, Options, Replayed},
    report::snapshot::Snapshot,
};

/// Trace of one process with two functions in an outer one, on accounts and in iterations, and of one CPU.
const TRACE: &str = r"
   app-70    (   70) [000] .... 1.000000: tracing_mark_write: B|70|[NN_LA_PO]main
   app-70    (   70) [000] .... 1.000100: tracing_mark_write: B|70|[NN_LR_PE]conv 3#acct=foo
   app-70    (   70) [000] .... 1.000150: tracing_mark_write: E|70
   app-70    (   70) [000] .... 1.000200: tracing_mark_write: B|70|[NN_LR_PE]conv 3#acct=bar
   app-70    (   70) [000] .... 1.000300: tracing_mark_write: E|70
   app-70    (   70) [000] .... 1.000400: tracing_mark_write: B|70|[NN_LC_PCO]a;b#iter=0
   app-70    (   70) [000] .... 1.000401: tracing_mark_write: E|70
   <idle>-0  (-----) [000] d..1 1.000500: cpu_idle: state=1 cpu_id=0
   <idle>-0  (-----) [000] d..1 1.000700: cpu_idle: state=4294967295 cpu_id=0
   app-70    (   70) [000] .... 1.000800: cpu_frequency: state=1500000 cpu_id=0
   app-70    (   70) [000] .... 1.001000: tracing_mark_write: E|70
";

/// Returns the results of the trace.
pub(super) fn small_run() -> Replayed {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), TRACE).unwrap();
    replay::replay(&Options { files: vec![file.path().to_owned()], ..Options::default() }).unwrap()
}

#[test]
fn folded_stacks_are_as_reviewed() {
    let expected = r"app;LA_PO;LC_PCO;a\x3bb 1000
app;LA_PO;LR_PE;conv\x203 150000
app;LA_PO;main 849000
";
    assert_eq!(folded::render(&small_run().findings()), expected);
}

#[test]
fn metrics_are_as_reviewed() {
    let run = small_run();
    let findings = run.findings();
    let metrics = Metrics::of(&findings, &Snapshot::of(&findings));
    let text = String::from_utf8(prometheus::encode(&metrics, Format::Text)).unwrap();
    let version = concat!("version=\"", env!("CARGO_PKG_VERSION"), "\"");
    insta::assert_snapshot!(text.replace(version, "version=\"0\""));
}
