//! Boards in a fleet: a live run that Prometheus scrapes, and results for receivers of OpenTelemetry.

mod otlp;

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use nntrace_tests::{
    binaries,
    child::Child,
    http, live,
    profiler::Profiler,
    prometheus::{Found, Prometheus},
    results::Results as _,
    snapshot, wheels,
};
use nntrace_user::report::snapshot::{Snapshot, TimeHistogram};

/// Longest that metrics are given again.
const FRESH: Duration = Duration::from_millis(1_100);

/// Starts the profiler, which serves metrics at a free port.
fn serve(arguments: &[&str]) -> Result<(Child, SocketAddr)> {
    let mut profiler =
        Profiler::new()?.args(["--listen", "0", "--json-lines", "--interval", "1h"]).args(arguments);
    let child = Child::start(profiler.command())?;
    let text = child.error_text("metrics are at http://")?;
    let address = text.split("http://").nth(1).and_then(|rest| rest.split('/').next());
    let address = address.context("it says where")?.parse()?;
    // Everything is in place.
    child.lines(1)?;
    Ok((child, address))
}

/// Returns the last of the snapshots that the profiler wrote.
fn last_snapshot(child: Child) -> Result<Snapshot> {
    let ended = child.wait()?.expect_code(0)?;
    let line = ended.stdout.split(|byte| *byte == b'\n').rfind(|line| line.starts_with(b"{"));
    let snapshot = snapshot::read(line.context("a snapshot")?)?;
    snapshot.check()?;
    Ok(snapshot)
}

/// Layer and phase of a process by its name.
type Phase = (String, String, String);

/// Returns the values of an answer by phase.
fn by_phase(found: &Found) -> Result<BTreeMap<Phase, f64>> {
    let label = |labels: &BTreeMap<String, String>, name: &str| {
        labels.get(name).cloned().with_context(|| format!("no label {name} in {labels:?}"))
    };
    let phase =
        |labels| anyhow::Ok((label(labels, "process")?, label(labels, "layer")?, label(labels, "phase")?));
    found.iter().map(|(labels, value)| Ok((phase(labels)?, *value))).collect()
}

/// Number, total time (ns) and distribution of the sections of a phase.
#[derive(Default)]
struct PhaseSum {
    count: u64,
    total_ns: u64,
    times: Option<TimeHistogram>,
}

impl PhaseSum {
    fn of(snapshot: &Snapshot) -> Result<BTreeMap<Phase, Self>> {
        let mut sums: BTreeMap<Phase, Self> = BTreeMap::new();
        for row in &snapshot.phases {
            // A process may be over before its name can be read.
            let process = Some(row.comm.clone()).filter(|name| !name.is_empty());
            let process = process.unwrap_or_else(|| format!("pid {}", row.pid));
            let phase = (process, row.layer.code().to_owned(), row.phase.code().to_owned());
            let sum = sums.entry(phase).or_default();
            sum.count += row.count;
            sum.total_ns += row.total_ns;
            let times = row.histogram.clone().context("a distribution")?;
            sum.times = Some(match sum.times.take() {
                Some(before) => {
                    let mut both = (*before).clone();
                    both.add(&*times)?;
                    both.into()
                }
                None => times,
            });
        }
        Ok(sums)
    }

    fn p99(&self) -> Result<f64> {
        let times = self.times.as_ref().context("a distribution")?;
        Ok(times.value_at_quantile(0.99) as f64 / 1e9)
    }
}

/// Checks that values are those of a snapshot, but for the last digits of seconds.
fn check_values(
    found: &Found,
    expected: &BTreeMap<Phase, PhaseSum>,
    value: impl Fn(&PhaseSum) -> f64,
) -> Result<()> {
    let found = by_phase(found)?;
    ensure!(found.keys().eq(expected.keys()), "{:?} {:?}", found.keys(), expected.keys());
    for (phase, sum) in expected {
        let (found, expected) = (found[phase], value(sum));
        ensure!((found - expected).abs() <= expected * 1e-12, "{phase:?}: {found} {expected}");
    }
    Ok(())
}

/// Index of the classic bucket of a time, s: those of 1, 2 and 5 of each power of ten.
fn classic_bucket(seconds: f64) -> i32 {
    let bounds = (-6..=1).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
    // A quantile is computed from a bound, and may be off by its last digit.
    bounds.fold(0, |below, bound| below + i32::from(seconds > bound * (1.0 + 1e-9)))
}

/// Index of the bucket of a time, s, of which there are sixteen in each power of two.
fn native_bucket(seconds: f64) -> i32 {
    (seconds.log2() * 16.0 - 1e-6).ceil() as i32
}

#[test]
fn prometheus_has_the_percentiles_of_the_snapshot() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let Some(program) = wheels::prometheus()? else { return Ok(()) };
    // The network, then names that no format takes as they are; and a pause, for the servers to see all of it.
    let hostile = "B|1|[NN_LR_PE]\"quo\\te\"\u{1b}[2J\u{e9}#iter=1";
    let script =
        "\"$0\" --quiet --inferences 60 --threads 2 && \"$1\" \"$2\" 'E|1' && echo done && read line";
    let workload = binaries::workload()?.display().to_string();
    let marks = env!("CARGO_BIN_EXE_mark-raw");
    // A program that a script starts for an instant is over before it is searched: it is probed from the begin on.
    let words = ["--lib", marks, "--", "sh", "-c", script, &workload, marks, hostile];
    let (mut board, address) = serve(&words)?;
    let classic = Prometheus::start(&program, address, &[])?;
    let native = Prometheus::start(&program, address, &["--enable-feature=native-histograms"])?;
    board.lines(2)?;
    thread::sleep(FRESH);
    let text = http::get(address, "/metrics", "")?;
    let marks = text.text()?.lines().find_map(|line| line.strip_prefix("nntrace_marks_total "));
    let marks: f64 = marks.context("marks are counted")?.parse()?;
    for server in [&classic, &native] {
        server.wait_for("nntrace_marks_total", marks)?;
    }
    let text = text.text()?.to_owned();
    let ask = |server: &Prometheus, query: &str| server.query(query).with_context(|| query.to_owned());
    let name = "nntrace_phase_duration_seconds";
    let classic_p99 = ask(&classic, &format!("histogram_quantile(0.99, {name}_bucket)"))?;
    let classic_count = ask(&classic, &format!("{name}_count"))?;
    let classic_sum = ask(&classic, &format!("{name}_sum"))?;
    let native_p99 = ask(&native, &format!("histogram_quantile(0.99, {name})"))?;
    let native_count = ask(&native, &format!("histogram_count({name})"))?;
    let native_sum = ask(&native, &format!("histogram_sum({name})"))?;
    let functions = ask(&native, "histogram_count(nntrace_function_duration_seconds)")?;
    board.send_line("")?;
    let snapshot = last_snapshot(board)?;
    ensure!(snapshot.overhead.marks.to_string() == marks.to_string(), "{} {marks}", snapshot.overhead.marks);
    let expected = PhaseSum::of(&snapshot)?;
    ensure!(expected.len() > 5, "{:?}", expected.keys());
    for counts in [classic_count, native_count] {
        check_values(&counts, &expected, |sum| sum.count as f64)?;
    }
    for sums in [classic_sum, native_sum] {
        check_values(&sums, &expected, |sum| sum.total_ns as f64 / 1e9)?;
    }
    let bucket_of: [fn(f64) -> i32; 2] = [classic_bucket, native_bucket];
    for (found, bucket) in [classic_p99, native_p99].into_iter().zip(bucket_of) {
        let found = by_phase(&found)?;
        ensure!(found.len() == expected.len(), "{found:?}");
        for (phase, sum) in &expected {
            let (quantile, p99) = (found[phase], sum.p99()?);
            let apart = (bucket(quantile) - bucket(p99)).abs();
            ensure!(apart <= 1, "{phase:?}: {quantile} s and {p99} s are {apart} buckets apart");
        }
    }
    let shown = r#""quo\te"\x1b[2Jé"#;
    ensure!(functions.iter().any(|(labels, _)| labels["function"] == shown), "{functions:?}");
    check_text(&text)
}

/// Has Prometheus's own checker read a text.
fn check_text(text: &str) -> Result<()> {
    let Some(program) = wheels::promtool()? else { return Ok(()) };
    let mut checker = Command::new(program)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    checker.stdin.take().context("it reads")?.write_all(text.as_bytes())?;
    let ended = checker.wait_with_output()?;
    let found = String::from_utf8_lossy(&ended.stderr);
    ensure!(ended.status.success() && found.is_empty(), "{found}");
    Ok(())
}

/// Returns the effective capabilities of the thread with this name.
fn capabilities(pid: u32, name: &str) -> Result<u64> {
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = fs::read_to_string(task?.path().join("status"))?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        if field("Name:") == Some(name) {
            return Ok(u64::from_str_radix(field("CapEff:").context("capabilities")?, 16)?);
        }
    }
    anyhow::bail!("no thread {name} in process {pid}")
}

#[test]
fn who_asks_badly_is_told_so_and_delays_nobody() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let (board, address) = serve(&["--marks", "none"])?;
    ensure!(address.ip().is_loopback(), "{address}");
    ensure!(capabilities(board.pid(), "nntrace-metrics")? == 0);
    ensure!(capabilities(board.pid(), "nntrace-bpf")? != 0);

    let page = http::get(address, "/metrics", "")?;
    ensure!(
        page.status == 200 && page.headers["content-type"].starts_with("text/plain; version=0.0.4"),
        "{page:?}"
    );
    check_text(page.text()?)?;
    // Metrics are given again for a second, in whatever format.
    let open = http::get(address, "/metrics", "Accept: application/openmetrics-text;version=1.0.0\r\n")?;
    ensure!(
        open.headers["content-type"].starts_with("application/openmetrics-text; version=1.0.0"),
        "{open:?}"
    );
    ensure!(open.text()?.ends_with("\n# EOF\n"));

    ensure!(http::get(address, "/", "")?.status == 404);
    ensure!(http::get(address, "/metrics/../metrics", "")?.status == 404);
    let post = http::send(address, b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")?;
    ensure!(post.status == 405 && post.headers["allow"] == "GET, HEAD", "{post:?}");
    let head = http::send(address, b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n")?;
    ensure!(head.status == 200 && head.body.is_empty() && head.headers["content-length"] != "0", "{head:?}");
    ensure!(http::send(address, b"\x16\x03\x01 no HTTP at all\r\n\r\n")?.status == 400);
    ensure!(http::get(address, "/metrics", &format!("X: {}\r\n", "y".repeat(1 << 20)))?.status == 431);
    ensure!(http::get(address, "/metrics", &"X: y\r\n".repeat(100))?.status == 431);

    // All connections there are: seven say nothing, one very little at a time.
    let mut slow = http::connect(address)?;
    slow.write_all(b"GET /met")?;
    let idle: Vec<TcpStream> = (0..7).map(|_| http::connect(address)).collect::<Result<_>>()?;
    let began = Instant::now();
    // The server may not have accepted those yet: the last of these is one too many.
    let mut status = 0;
    for _ in 0..3 {
        // A connection that is refused may be reset before its answer is read.
        status = http::get(address, "/metrics", "").map_or(503, |answer| answer.status);
    }
    ensure!(status == 503, "{status}");
    while slow.write_all(b"r").is_ok() {
        ensure!(began.elapsed() < Duration::from_secs(8), "a request may take for ever");
        thread::sleep(Duration::from_millis(100));
    }
    for mut stream in idle {
        // Nothing, or an answer that it took too long.
        let _ = http::read(&mut stream);
    }
    ensure!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    ensure!(http::get(address, "/metrics", "")?.status == 200);

    // A second server cannot have the same address, and says so before it measures.
    let mut other = Profiler::new()?.args(["--listen", &address.to_string(), "--duration", "1s"]);
    let other = Child::run(other.command())?.expect_code(1)?;
    ensure!(other.stderr.contains("--listen"), "{}", other.stderr);

    board.signal(Signal::SIGINT)?;
    let ended = board.wait()?.expect_code(0)?;
    ensure!(ended.stderr.contains("connections to the metrics were refused"), "{}", ended.stderr);
    Ok(())
}

/// Program that serves one file to whoever asks.
fn serve_file(content: Vec<u8>) -> Result<SocketAddr> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\r\n",
                content.len()
            );
            // The server asks again when it got nothing.
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&content));
            let _ = http::read(&mut stream);
        }
    });
    Ok(address)
}

#[test]
fn other_hosts_are_served_only_where_that_is_asked_for() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    for address in ["0.0.0.0:0", "[::]:0"] {
        let mut profiler = Profiler::new()?.args(["--listen", address, "--duration", "100ms"]);
        let refused = Child::run(profiler.command())?.expect_code(2)?;
        ensure!(refused.stderr.contains("add --listen-on-network"), "{}", refused.stderr);
        let arguments = ["--listen", address, "--listen-on-network", "--duration", "100ms"];
        let served = Profiler::new()?.args(arguments).run()?.ended.expect_code(0)?;
        ensure!(served.stderr.contains("without a password"), "{}", served.stderr);
    }
    Ok(())
}

#[test]
fn prometheus_reads_whatever_names_there_are() -> Result<()> {
    let Some(program) = wheels::prometheus()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("trace");
    let long = vec![b'n'; 1 << 20];
    let names: [&[u8]; 6] =
        [b"\"} 1\\", b"\xff\xfe\x80", b"a\\nb", b"\x1b[2J\x07\x00\x7f", &long, "\u{202e}\u{e9}".as_bytes()];
    let mut text = Vec::new();
    for (number, name) in names.iter().enumerate() {
        for (part, mark) in [(0, [b"B|7|[NN_LR_PE]", *name].concat()), (1, b"E|7".to_vec())] {
            write!(text, " app-7 ( 7) [000] .... 1.{number}0000{part}: tracing_mark_write: ")?;
            text.extend_from_slice(&mark);
            text.push(b'\n');
        }
    }
    fs::write(&trace, text)?;
    let metrics: PathBuf = folder.path().join("out.prom");
    let mut replay = Profiler::new()?;
    replay.command().arg("replay").arg(&trace).arg("-o").arg(&metrics);
    Child::run(replay.command())?.expect_code(0)?;
    let content = fs::read(&metrics)?;
    ensure!(content.len() < 100_000, "a name takes {} bytes", content.len());
    check_text(str::from_utf8(&content)?)?;
    let server = Prometheus::start(&program, serve_file(content)?, &[])?;
    server.wait_for("count(nntrace_function_duration_seconds_count)", names.len() as f64)?;
    server.wait_for("round(1e9 * sum(nntrace_function_duration_seconds_sum))", 6_000.0)?;
    server.wait_for("up", 1.0)
}
