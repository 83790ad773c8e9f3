//! Spans and metrics for receivers of OpenTelemetry, read by the official messages.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{
    child::{Child, Ended},
    live,
    otlp::{Receiver, Reply},
    profiler::Profiler,
    recording::Recording,
    snapshot,
};
use nntrace_user::{
    record::{self, ReplayOptions},
    report::snapshot::Snapshot,
};
use opentelemetry_proto::tonic::{
    collector::{
        metrics::v1::ExportMetricsServiceRequest,
        trace::v1::{ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse},
    },
    common::v1::{KeyValue, any_value::Value},
    metrics::v1::{ExponentialHistogramDataPoint, Metric, metric::Data, number_data_point},
    trace::v1::{Span, span::SpanKind},
};
use prost::Message as _;

const TRACES: &str = "/v1/traces";
const METRICS: &str = "/v1/metrics";

/// Recording of a run with hand-overs, iterations and accounts.
fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recording-v1")
}

/// Sends the recording; returns the snapshot, and how that ended.
fn send(receiver: &Receiver, time: &str) -> Result<(Snapshot, Ended)> {
    let mut profiler = Profiler::new()?.env("OTEL_EXPORTER_OTLP_TIMEOUT", time);
    profiler.command().arg("replay").arg(recording()).args(["--json", "--otlp", &receiver.url()]);
    let ended = Child::run(profiler.command())?;
    let snapshot = snapshot::read(&ended.stdout).with_context(|| ended.stderr.clone())?;
    Ok((snapshot, ended))
}

fn texts(attributes: &[KeyValue]) -> Result<BTreeMap<String, String>> {
    attributes
        .iter()
        .map(|attribute| {
            let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
            let text = match value.context("a value")? {
                Value::StringValue(text) => text.clone(),
                Value::IntValue(number) => number.to_string(),
                other => anyhow::bail!("{other:?}"),
            };
            Ok((attribute.key.clone(), text))
        })
        .collect()
}

/// Span with the attributes of its resource.
struct Received {
    resource: BTreeMap<String, String>,
    own: BTreeMap<String, String>,
    span: Span,
}

fn spans(receiver: &Receiver) -> Result<Vec<Received>> {
    let mut all = Vec::new();
    for body in receiver.taken(TRACES) {
        for spans in ExportTraceServiceRequest::decode(&*body)?.resource_spans {
            let resource = texts(&spans.resource.context("a resource")?.attributes)?;
            for span in spans.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                let own = texts(&span.attributes)?;
                all.push(Received { resource: resource.clone(), own, span });
            }
        }
    }
    Ok(all)
}

/// Section of the recording.
struct Known {
    pid: u32,
    tid: u32,
    begin: u64,
    end: u64,
    depth: u8,
    name: String,
}

/// Returns the sections, with the place of the smallest one around each.
fn known() -> Result<Vec<(Known, Option<usize>)>> {
    let mut all = Vec::new();
    let damage = record::sections(&recording(), |section| {
        all.push(Known {
            pid: section.pid,
            tid: section.tid,
            begin: section.begin_ns,
            end: section.end_ns,
            depth: section.depth,
            name: section.name.clone().into_owned(),
        });
    })?;
    ensure!(damage.is_empty(), "{damage:?}");
    let around = |section: &Known| {
        let is_around = |other: &Known| {
            (other.pid, other.tid) == (section.pid, section.tid)
                && other.depth < section.depth
                && other.begin <= section.begin
                && other.end >= section.end
        };
        (0..all.len()).filter(|place| is_around(&all[*place])).max_by_key(|place| all[*place].depth)
    };
    let parents: Vec<Option<usize>> = all.iter().map(around).collect();
    Ok(all.into_iter().zip(parents).collect())
}

#[test]
fn every_section_is_a_span_in_the_one_around_it() -> Result<()> {
    let receiver = Receiver::start([], Reply::Taken(Vec::new()))?;
    let (_, ended) = send(&receiver, "10000")?;
    let ended = ended.expect_code(0)?;
    let known = known()?;
    ensure!(ended.stderr.contains(&format!("sent {} spans", known.len())), "{}", ended.stderr);
    let recorded = record::replay(&recording(), &ReplayOptions::default())?;
    let run = recorded.run();
    let program = run.command.first().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
    let real = |time| run.clocks.real_time(time).context("a time of day");
    let received = spans(&receiver)?;
    ensure!(received.len() == known.len(), "{} {}", received.len(), known.len());
    // A section by thread, begin, end, depth and name; of equal ones, any.
    let mut by_key: BTreeMap<(u32, u32, u64, u64, String), Vec<&Received>> = BTreeMap::new();
    for span in &received {
        let number = |texts: &BTreeMap<String, String>, key: &str| -> Result<u32> {
            Ok(texts.get(key).with_context(|| format!("no {key}"))?.parse()?)
        };
        let Span { start_time_unix_nano: start, end_time_unix_nano: end, name, kind, .. } = &span.span;
        ensure!(*kind == SpanKind::Internal as i32 && span.own["code.function.name"] == *name);
        ensure!(
            span.resource["service.name"] == program
                && span.resource.get("host.name").map_or("", |name| name) == run.host_name
        );
        let key = (
            number(&span.resource, "process.pid")?,
            number(&span.own, "thread.id")?,
            *start,
            *end,
            name.clone(),
        );
        by_key.entry(key).or_default().push(span);
    }
    let mut found = Vec::new();
    for (section, _) in &known {
        let key = (section.pid, section.tid, real(section.begin)?, real(section.end)?, section.name.clone());
        found.push(by_key.get_mut(&key).and_then(Vec::pop).with_context(|| format!("no span {key:?}"))?);
    }
    for ((section, parent), span) in known.iter().zip(&found) {
        let (parent_id, trace) = match parent {
            Some(place) => (found[*place].span.span_id.clone(), &found[*place].span.trace_id),
            None => (Vec::new(), &span.span.trace_id),
        };
        ensure!(span.span.parent_span_id == parent_id && span.span.trace_id == *trace, "{}", section.name);
    }
    let ids: BTreeSet<&[u8]> = found.iter().map(|span| &*span.span.span_id).collect();
    let traces: BTreeSet<&[u8]> = found.iter().map(|span| &*span.span.trace_id).collect();
    let roots = known.iter().filter(|(_, parent)| parent.is_none()).count();
    ensure!(ids.len() == known.len() && traces.len() == roots, "{} {} {roots}", ids.len(), traces.len());
    ensure!(ids.iter().all(|id| id.len() == 8) && traces.iter().all(|id| id.len() == 16));
    check_links(&found, &ids)?;
    ensure!(found.iter().any(|span| span.own.contains_key("nntrace.iteration")));
    ensure!(found.iter().any(|span| span.own.contains_key("nntrace.account")));

    // What is sent again is the same.
    let again = Receiver::start([], Reply::Taken(Vec::new()))?;
    send(&again, "10000")?.1.expect_code(0)?;
    ensure!(again.taken(TRACES) == receiver.taken(TRACES));
    Ok(())
}

/// Links lead from a span to an earlier one of another thread.
fn check_links(found: &[&Received], ids: &BTreeSet<&[u8]>) -> Result<()> {
    let by_id: BTreeMap<&[u8], &Received> = found.iter().map(|span| (&*span.span.span_id, *span)).collect();
    let mut count = 0;
    for span in found {
        for link in &span.span.links {
            ensure!(ids.contains(&*link.span_id));
            let from = by_id[&*link.span_id];
            ensure!(from.span.trace_id == link.trace_id);
            ensure!(from.span.start_time_unix_nano <= span.span.start_time_unix_nano);
            ensure!(
                (&from.resource["process.pid"], &from.own["thread.id"])
                    != (&span.resource["process.pid"], &span.own["thread.id"])
            );
            count += 1;
        }
    }
    ensure!(count > 0, "no hand-over is a link");
    Ok(())
}

fn metrics(body: &[u8]) -> Result<BTreeMap<String, Metric>> {
    let resources = ExportMetricsServiceRequest::decode(body)?.resource_metrics;
    let scopes = resources.into_iter().flat_map(|resource| resource.scope_metrics);
    Ok(scopes.flat_map(|scope| scope.metrics).map(|metric| (metric.name.clone(), metric)).collect())
}

/// Returns the only value of a sum that grows.
fn sum(metrics: &BTreeMap<String, Metric>, name: &str) -> Result<i64> {
    let Some(Data::Sum(sum)) = metrics.get(name).and_then(|metric| metric.data.as_ref()) else {
        anyhow::bail!("no sum {name} in {:?}", metrics.keys())
    };
    ensure!(sum.is_monotonic && sum.aggregation_temporality == 2 && sum.data_points.len() == 1);
    match sum.data_points[0].value {
        Some(number_data_point::Value::AsInt(value)) => Ok(value),
        other => anyhow::bail!("{other:?}"),
    }
}

fn histograms(metrics: &BTreeMap<String, Metric>, name: &str) -> Result<Vec<ExponentialHistogramDataPoint>> {
    match metrics.get(name).and_then(|metric| metric.data.clone()) {
        Some(Data::ExponentialHistogram(histogram)) => Ok(histogram.data_points),
        other => anyhow::bail!("{name}: {other:?}"),
    }
}

#[test]
fn sums_are_those_of_the_snapshot() -> Result<()> {
    let receiver = Receiver::start([], Reply::Taken(Vec::new()))?;
    let (snapshot, ended) = send(&receiver, "10000")?;
    ended.expect_code(0)?;
    let body = receiver.taken(METRICS);
    ensure!(body.len() == 1);
    let metrics = metrics(&body[0])?;
    ensure!(sum(&metrics, "nntrace.marks")? == i64::try_from(snapshot.overhead.marks)?);
    let mut expected: BTreeMap<(String, String, String), (u64, u64)> = BTreeMap::new();
    for row in &snapshot.phases {
        let key = (row.comm.clone(), row.layer.code().to_owned(), row.phase.code().to_owned());
        let (count, ns) = expected.entry(key).or_default();
        *count += row.count;
        *ns += row.total_ns;
    }
    let points = histograms(&metrics, "nntrace.phase_duration")?;
    ensure!(points.len() == expected.len());
    for point in points {
        let labels = texts(&point.attributes)?;
        let (count, ns) =
            expected[&(labels["process"].clone(), labels["layer"].clone(), labels["phase"].clone())];
        let buckets: u64 = point.positive.iter().flat_map(|buckets| &buckets.bucket_counts).sum();
        ensure!(
            point.scale == 4 && point.count == count && buckets + point.zero_count == count,
            "{labels:?}"
        );
        let sum = point.sum.context("a sum")?;
        ensure!((sum * 1e9 - ns as f64).abs() < 0.5, "{labels:?}: {sum} s, {ns} ns");
        let length = point.time_unix_nano - point.start_time_unix_nano;
        ensure!(length == snapshot.window.length_ns());
    }
    Ok(())
}

#[test]
fn a_receiver_that_is_busy_gets_everything_later() -> Result<()> {
    let busy = [Reply::Status(503, ""), Reply::Status(429, "Retry-After: 1\r\n")];
    let receiver = Receiver::start(busy, Reply::Taken(Vec::new()))?;
    let began = Instant::now();
    send(&receiver, "10000")?.1.expect_code(0)?;
    ensure!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    ensure!(spans(&receiver)?.len() == known()?.len());
    Ok(())
}

#[test]
fn what_is_not_taken_is_counted() -> Result<()> {
    let count = known()?.len();
    // One that never answers.
    let receiver = Receiver::start([], Reply::Never)?;
    let began = Instant::now();
    let ended = send(&receiver, "300")?.1.expect_code(1)?;
    ensure!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    ensure!(
        ended.stderr.contains("sent 0 spans") && ended.stderr.contains("does not answer"),
        "{}",
        ended.stderr
    );
    ensure!(ended.stderr.contains(&format!("{count} spans were dropped")), "{}", ended.stderr);
    // One that wants none of it, and one that wants most of it.
    let receiver = Receiver::start([], Reply::Status(400, ""))?;
    let ended = send(&receiver, "1000")?.1.expect_code(1)?;
    ensure!(ended.stderr.contains(&format!("{count} spans were refused")), "{}", ended.stderr);
    let partial = ExportTraceServiceResponse {
        partial_success: Some(ExportTracePartialSuccess {
            rejected_spans: 3,
            error_message: "too old".into(),
        }),
    };
    let receiver = Receiver::start([Reply::Taken(partial.encode_to_vec())], Reply::Taken(Vec::new()))?;
    let ended = send(&receiver, "1000")?.1.expect_code(1)?;
    ensure!(
        ended.stderr.contains("3 spans were refused") && ended.stderr.contains("too old"),
        "{}",
        ended.stderr
    );
    // A trace has no time of day, and there is no https.
    let mut trace = Profiler::new()?.args(["replay", "none.txt", "--otlp", "http://127.0.0.1:1"]);
    let ended = Child::run(trace.command())?.expect_code(2)?;
    ensure!(ended.stderr.contains("--otlp is for recordings"), "{}", ended.stderr);
    let mut secure = Profiler::new()?.args(["--otlp", "https://127.0.0.1:1", "--duration", "1s"]);
    let ended = Child::run(secure.command())?.expect_code(2)?;
    ensure!(ended.stderr.contains("by http"), "{}", ended.stderr);
    Ok(())
}

#[test]
fn hostile_names_of_a_live_run_are_spans() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let long = vec![b'n'; 100_000];
    let names: [&[u8]; 5] = [
        b"</script><script>ran = 1</script>",
        b"\x1b]52;c;ZXZpbA\x07\xe2\x80\xae\xe2\x80\xa8\x7f\xff\xfe",
        b"__proto__\\\"'`${ran}",
        b"{\"resourceSpans\": []}",
        &long,
    ];
    let mut command = vec![OsString::from(env!("CARGO_BIN_EXE_mark-raw"))];
    for name in names {
        command.push(OsStr::from_bytes(&[b"B|1|[NN_LR_PE]", name].concat()).to_owned());
        command.push("E|1".into());
    }
    let recording = Recording::of(&[], &command)?;
    let receiver = Receiver::start([], Reply::Taken(Vec::new()))?;
    let mut profiler = Profiler::new()?;
    profiler.command().arg("replay").arg(recording.path()).args(["--json", "--otlp", &receiver.url()]);
    let ended = Child::run(profiler.command())?.expect_code(0)?;
    let functions = snapshot::read(&ended.stdout)?.functions;
    let expected: BTreeSet<String> = functions.into_iter().map(|row| row.name).collect();
    ensure!(expected.contains(&String::from_utf8_lossy(names[1]).into_owned()), "{expected:?}");
    let received: BTreeSet<String> = spans(&receiver)?.into_iter().map(|span| span.span.name).collect();
    ensure!(received == expected && received.len() == names.len(), "{received:?}");
    Ok(())
}

#[test]
fn a_live_run_sends_metrics_and_waits_for_nobody() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let mark = [env!("CARGO_BIN_EXE_mark-raw"), "B|1|[NN_LR_PE]run", "E|1"];
    let receiver = Receiver::start([], Reply::Taken(Vec::new()))?;
    let run = Profiler::new()?.args(["--otlp", &receiver.url(), "--interval", "100ms"]).launch(mark)?;
    let ended = run.ended.expect_code(0)?;
    let bodies = receiver.taken(METRICS);
    let last = metrics(bodies.last().with_context(|| ended.stderr.clone())?)?;
    ensure!(sum(&last, "nntrace.marks")? == i64::try_from(run.snapshot.overhead.marks)?);
    ensure!(histograms(&last, "nntrace.phase_duration")?.len() == 1);

    let silent = Receiver::start([], Reply::Never)?;
    let began = Instant::now();
    let profiler = Profiler::new()?.env("OTEL_EXPORTER_OTLP_TIMEOUT", "500");
    let run = profiler.args(["--otlp", &silent.url(), "--interval", "20ms"]).launch(["sleep", "0.5"])?;
    let ended = run.ended.expect_code(0)?;
    ensure!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    ensure!(ended.stderr.contains("points were dropped"), "{}", ended.stderr);
    Ok(())
}
