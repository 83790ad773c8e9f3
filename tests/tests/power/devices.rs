//! Jobs of accelerators and GPUs in traces: times to the ns, in every container and by Perfetto's own importer.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use nntrace_tests::{
    child::{Child, Ended},
    duckdb::number,
    perfetto::Importer,
    profiler::Profiler,
    trace,
};
use nntrace_user::{
    replay::{Options, TimeRange},
    report::snapshot::{DeviceProcessRow, DeviceRow, Snapshot},
};
use tempfile::TempDir;

/// Line of a trace: time (us), task, its process and event.
type Line = (u64, &'static str, u32, &'static str);

/// Two processes and one NPU: the second one's job waits for the first one's, and for a fence.
const TODAY: [Line; 17] = [
    (0, "camera-70", 70, "tracing_mark_write: B|70|[NN_LR_PE]infer"),
    (5, "camera-70", 70, "tracing_mark_write: B|70|[NN_LD_PE]submit"),
    (
        10,
        "camera-70",
        70,
        "drm_sched_job_queue: dev=npu0, fence=21:7, ring=rq0, job count:0, hw job count:0, client_id:4",
    ),
    (12, "camera-70", 70, "tracing_mark_write: E|70"),
    (
        15,
        "kworker-9",
        9,
        "drm_sched_job_run: dev=npu0, fence=21:7, ring=rq0, job count:0, hw job count:0, client_id:4",
    ),
    (
        20,
        "worker-81",
        80,
        "drm_sched_job_queue: dev=npu0, fence=31:1, ring=rq0, job count:0, hw job count:1, client_id:5",
    ),
    (20, "worker-81", 80, "drm_sched_job_add_dep: fence=31:1 depends on fence=40:3"),
    (22, "kworker-9", 9, "drm_sched_job_unschedulable: fence=31:1 depends on unsignalled fence=40:3"),
    (30, "<idle>-0", 0, "dma_fence_signaled: driver=x timeline=y context=40 seqno=3"),
    (
        31,
        "kworker-9",
        9,
        "drm_sched_job_run: dev=npu0, fence=31:1, ring=rq0, job count:0, hw job count:1, client_id:5",
    ),
    (60, "<idle>-0", 0, "drm_sched_job_done: fence=21:7 signaled"),
    (61, "<idle>-0", 0, "dma_fence_signaled: driver=drm_sched timeline=rq0 context=21 seqno=7"),
    (65, "camera-70", 70, "tracing_mark_write: E|70"),
    (90, "<idle>-0", 0, "drm_sched_job_done: fence=31:1 signaled"),
    (
        95,
        "camera-70",
        70,
        "drm_sched_job_queue: dev=npu0, fence=21:8, ring=rq0, job count:0, hw job count:0, client_id:4",
    ),
    (
        96,
        "kworker-9",
        9,
        "drm_sched_job_run: dev=npu0, fence=21:8, ring=rq0, job count:0, hw job count:0, client_id:4",
    ),
    (100, "camera-70", 70, "tracing_mark_write: I|70|end"),
];

/// The same as kernels before Linux 6.17 have it: fences have addresses.
const EARLIER: [Line; 13] = [
    (0, "camera-70", 70, "tracing_mark_write: B|70|[NN_LD_PE]submit"),
    (
        10,
        "camera-70",
        70,
        "drm_sched_job: entity=00000000d3ef52d1, id=7, fence=000000001bd6fa40, ring=rq0, job count:1, hw job count:0",
    ),
    (
        15,
        "kworker-9",
        9,
        "drm_run_job: entity=00000000d3ef52d1, id=7, fence=000000001bd6fa40, ring=rq0, job count:0, hw job count:0",
    ),
    (
        20,
        "worker-81",
        80,
        "drm_sched_job: entity=00000000d3ef5333, id=8, fence=000000001bd6fb00, ring=rq0, job count:1, hw job count:1",
    ),
    (
        22,
        "kworker-9",
        9,
        "drm_sched_job_wait_dep: job ring=rq0, id=8, depends fence=000000000000001c, context=40, seq=3",
    ),
    (30, "<idle>-0", 0, "dma_fence_signaled: driver=x timeline=y context=40 seqno=3"),
    (
        31,
        "kworker-9",
        9,
        "drm_run_job: entity=00000000d3ef5333, id=8, fence=000000001bd6fb00, ring=rq0, job count:0, hw job count:1",
    ),
    (60, "<idle>-0", 0, "drm_sched_process_job: fence=000000001bd6fa40 signaled"),
    (65, "camera-70", 70, "tracing_mark_write: E|70"),
    (90, "<idle>-0", 0, "drm_sched_process_job: fence=000000001bd6fb00 signaled"),
    // The address is given to another job.
    (
        95,
        "camera-70",
        70,
        "drm_sched_job: entity=00000000d3ef52d1, id=9, fence=000000001bd6fa40, ring=rq0, job count:1, hw job count:0",
    ),
    (
        96,
        "kworker-9",
        9,
        "drm_run_job: entity=00000000d3ef52d1, id=9, fence=000000001bd6fa40, ring=rq0, job count:0, hw job count:0",
    ),
    (100, "camera-70", 70, "tracing_mark_write: I|70|end"),
];

fn text(lines: &[Line]) -> String {
    let lines = lines.iter().map(|(us, task, pid, event)| {
        let process = if *pid == 0 { "-----".to_owned() } else { pid.to_string() };
        format!("{task:>16} ({process:>5}) [000] d..1. 5.{us:06}: {event}\n")
    });
    format!("# tracer: nop\n#\n{}", lines.collect::<String>())
}

fn run(arguments: &[&str], file: &Path) -> Result<Ended> {
    let mut profiler = Profiler::new()?.args(arguments).args([file]);
    Child::run(profiler.command())
}

fn processes(row: &DeviceRow) -> Vec<(Option<u32>, &str)> {
    row.processes.iter().map(|row| (row.pid, &*row.comm)).collect()
}

/// Returns dependency, waiting, waiting for others and running, us.
fn times(row: &DeviceProcessRow) -> [u64; 4] {
    [row.blocked_ns, row.waiting_ns, row.behind_others_ns, row.running_ns].map(|ns| ns / 1_000)
}

#[test]
fn jobs_are_divided_to_the_ns() -> Result<()> {
    for (lines, device) in [(&TODAY[..], Some("npu0")), (&EARLIER, None)] {
        let snapshot = trace::replay(text(lines))?;
        let [row] = &snapshot.devices[..] else { panic!("one ring: {:?}", snapshot.devices) };
        assert_eq!((row.device.as_deref(), &*row.ring), (device, "rq0"));
        // From 15 to 90, and from 96 to the end of the window.
        assert_eq!((row.busy_ns, row.lost, row.out_of_order), (79_000, 0, 0));
        assert_eq!(processes(row), [(Some(70), "camera"), (Some(80), "worker")]);
        let [camera, worker] = &row.processes[..] else { panic!("{row:?}") };
        assert_eq!((camera.jobs, camera.open, camera.canceled), (1, 1, 0));
        assert_eq!(times(camera), [0, 6, 0, 49]);
        assert_eq!((camera.running.count, camera.running.max_ns), (1, Some(45_000)));
        assert_eq!(camera.latency.max_ns, Some(50_000));
        assert_eq!(times(worker), [10, 30, 30, 30]);
        let [section] = &camera.sections[..] else { panic!("{camera:?}") };
        assert_eq!((&*section.function, section.jobs, section.running_ns), ("submit", 1, 45_000));
        assert!(worker.sections.is_empty());
    }
    Ok(())
}

#[test]
fn a_part_of_the_time_has_its_part_of_each_job() -> Result<()> {
    let us = |us: u64| 5_000_000_000 + us * 1_000;
    let range = Some(TimeRange { begin: us(40), end: us(80) });
    let snapshot = trace::replay_with(text(&TODAY), &Options { range, ..Options::default() })?;
    let [row] = &snapshot.devices[..] else { panic!("one ring: {:?}", snapshot.devices) };
    let [camera, worker] = &row.processes[..] else { panic!("{row:?}") };
    assert_eq!((times(camera), camera.jobs, camera.open), ([0, 0, 0, 20], 1, 0));
    assert_eq!((times(worker), worker.jobs, worker.open), ([0, 20, 20, 20], 0, 1));
    // Neither is known from its start.
    assert_eq!((camera.running.count, worker.running.count), (0, 0));
    Ok(())
}

#[test]
fn a_trace_of_a_device_alone_is_shown() -> Result<()> {
    let folder = TempDir::new()?;
    let file = folder.path().join("trace.txt");
    let of_device: Vec<Line> = TODAY.into_iter().filter(|(.., event)| event.starts_with('d')).collect();
    fs::write(&file, text(&of_device))?;
    let ended = run(&["replay"], &file)?.expect_code(0)?;
    let shown = String::from_utf8_lossy(&ended.stdout);
    assert!(shown.contains("npu0 rq0") && shown.contains("camera (70)"), "{shown}");
    // A line that cannot be used is counted, with its place.
    let damaged = text(&of_device)
        + "       <idle>-0 (-----) [000] d..1. 5.000099: drm_sched_job_done: fence=x signaled\n";
    fs::write(&file, damaged)?;
    let snapshot = trace::replay_file(&file)?;
    let [diagnostic] = &snapshot.diagnostics[..] else { panic!("{:?}", snapshot.diagnostics) };
    assert!(diagnostic.example.contains("drm_sched_job_done: fence=x"), "{diagnostic:?}");
    Ok(())
}

#[test]
fn lost_events_do_not_leave_a_ring_busy_for_ever() -> Result<()> {
    let mut lines: Vec<String> = text(&TODAY).lines().map(str::to_owned).collect();
    let done =
        lines.iter().position(|line| line.contains("drm_sched_job_done: fence=21:7")).context("a line")?;
    lines[done] = "CPU:0 [LOST 1 EVENTS]".into();
    lines.remove(done + 1);
    let snapshot = trace::replay(lines.join("\n") + "\n")?;
    let [row] = &snapshot.devices[..] else { panic!("one ring: {:?}", snapshot.devices) };
    assert_eq!((row.busy_ns, row.lost, row.lost_ns), (79_000, 1, 75_000));
    assert!(snapshot.loss.makes_incomplete("devices"));
    Ok(())
}

#[test]
fn an_export_for_perfetto_has_the_jobs_and_comes_back() -> Result<()> {
    let folder = TempDir::new()?;
    for (name, lines) in [("today", &TODAY[..]), ("earlier", &EARLIER)] {
        let [file, exported] =
            ["txt", "pftrace"].map(|extension| folder.path().join(name).with_extension(extension));
        fs::write(&file, text(lines))?;
        let output = exported.to_str().context("UTF-8")?;
        run(&["export", "-o", output], &file)?.expect_code(0)?;
        let [before, after] = [trace::replay_file(&file)?, trace::replay_file(&exported)?];
        let [row] = &after.devices[..] else { panic!("one ring: {:?}", after.devices) };
        assert_eq!(row.busy_ns, before.devices[0].busy_ns);
        let camera = |snapshot: &Snapshot| {
            let mut rows = snapshot.devices[0].processes.iter();
            rows.find(|row| row.pid == Some(70)).cloned()
        };
        assert_eq!(camera(&after), camera(&before));
        let Some(importer) = Importer::find()? else { continue };
        // Perfetto's importer makes slices of jobs on a track for each ring. That of today's events is newer than some releases.
        let query = "SELECT count(*) AS count, sum(dur) AS ns FROM slice JOIN gpu_track ON slice.track_id = gpu_track.id WHERE slice.name = 'job' AND dur > 0";
        let rows = importer.rows(&exported, &[query])?.pop().context("one result")?;
        if name == "earlier" {
            assert_eq!((number(&rows[0], "count"), number(&rows[0], "ns")), (2, 75_000));
        }
    }
    Ok(())
}

#[test]
fn frequencies_of_devices_have_their_times() -> Result<()> {
    const LINES: [Line; 5] = [
        (0, "camera-70", 70, "tracing_mark_write: I|70|begin"),
        (
            10,
            "kworker-9",
            9,
            "devfreq_frequency: dev_name=fdab0000.npu                   freq=1000000000   prev_freq=300000000    load=90",
        ),
        (
            40,
            "kworker-9",
            9,
            "devfreq_frequency: dev_name=fdab0000.npu                   freq=300000000    prev_freq=1000000000   load=10",
        ),
        (
            60,
            "kworker-9",
            9,
            "devfreq_frequency: dev_name=fdab0000.npu                   freq=x    prev_freq=300000000    load=10",
        ),
        (100, "camera-70", 70, "tracing_mark_write: I|70|end"),
    ];
    let snapshot = trace::replay(text(&LINES))?;
    let [clock] = &snapshot.device_clocks[..] else { panic!("{:?}", snapshot.device_clocks) };
    assert_eq!((&*clock.device, clock.transitions), ("fdab0000.npu", 2));
    let times: Vec<_> = clock.frequencies.iter().map(|time| (time.hz, time.ns)).collect();
    assert_eq!(times, [(Some(1_000_000_000), 30_000), (Some(300_000_000), 70_000)]);
    let [diagnostic] = &snapshot.diagnostics[..] else { panic!("{:?}", snapshot.diagnostics) };
    assert!(diagnostic.example.contains("devfreq_frequency"), "{diagnostic:?}");
    Ok(())
}
