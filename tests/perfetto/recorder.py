"""Writes a trace in Perfetto's official schema, and the same events as the kernel's text.

The files are tests/fixtures/perfetto/recorder.pftrace and recorder.txt. The trace has the forms that Perfetto's recorder and
programs with its SDK write: switches in columns with a table of names, marks in print events, bundles that overlap in time, lost
events, slices with interned names on a clock that counts differences, and snapshots of three clocks.

    python3 -m venv env && env/bin/pip install perfetto==0.59.1 protobuf==7.36.2
    env/bin/python tests/perfetto/recorder.py tests/fixtures/perfetto
"""

import pathlib
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

REALTIME, MONOTONIC, BOOTTIME = 1, 3, 6
# Clock of the program's own sequence, in units of 1 ns.
DIFFERENCES = 64
# The boot time is ahead of the monotonic clock by this, ns: the time that the host was suspended.
SUSPENDED = 7_000_000_123
# Begin of the trace, boot time, ns.
BEGIN = 5_000_000_000_000
APP, WORKER, DRIVER = (20, 20, "app"), (20, 21, "worker"), (7, 7, "driver@1.0")
IDLE = (0, 0, "swapper")
PROGRAM = (40, 41, "sdk")
LEAVES = 4294967295

# Events by CPU: time after the begin (ns), thread, event.
CPU_0 = [
    (0, IDLE, ("idle", LEAVES)),
    (100, IDLE, ("frequency", 800_000)),
    (1_000, IDLE, ("switch", "R", APP)),
    (1_500, APP, ("print", "B|20|[NN_LA_PE]run#iter=1")),
    (2_000, APP, ("print", "I|20|nn.send#h=1")),
    (2_200, APP, ("waking", WORKER, 1)),
    (3_001, APP, ("print", "C|20|queue|4")),
    (9_000, APP, ("print", "E|20")),
    (9_500, APP, ("switch", "S", IDLE)),
    (9_600, IDLE, ("idle", 1)),
    (20_000, IDLE, ("idle", LEAVES)),
    (20_500, IDLE, ("frequency", 1_800_000)),
    (21_000, IDLE, ("switch", "R", DRIVER)),
    (21_100, DRIVER, ("print", "B|7|HIDL::IPreparedModel::execute::server")),
    (21_200, DRIVER, ("print", "B|7|[NN_LD_PE]execute")),
    (24_000, DRIVER, ("print", "E|7")),
    (24_100, DRIVER, ("print", "E|7")),
    (24_200, DRIVER, ("switch", "D", IDLE)),
    (24_300, IDLE, ("idle", 0)),
]
CPU_1 = [
    (50, IDLE, ("idle", 2)),
    (2_300, IDLE, ("idle", LEAVES)),
    (2_500, IDLE, ("switch", "R", WORKER)),
    (2_600, WORKER, ("print", "I|20|nn.recv#h=1")),
    (2_700, WORKER, ("print", "B|20|[NN_LC_PCO]conv")),
    (4_700, WORKER, ("print", "E|20")),
    (5_000, WORKER, ("switch", "S", IDLE)),
    (5_100, IDLE, ("idle", 2)),
    # Here events are lost.
    (15_000, IDLE, ("idle", 0)),
    (18_000, IDLE, ("idle", LEAVES)),
    (25_000, IDLE, ("idle", 2)),
]
LOST_BEHIND = 5_100
# Slices of a program, which has them by the SDK.
SLICES = [
    (6_000, "B", "[NN_LR_PE]compute#iter=1"),
    (6_500, "B", "[NN_LR_PC]compile"),
    (7_500, "E", ""),
    (8_000, "I", "checkpoint"),
    (8_888, "E", ""),
]


def text_of(cpu, event, idle):
    """Returns an event as the kernel's text."""
    kind, *values = event
    if kind == "idle":
        return f"cpu_idle: state={values[0]} cpu_id={cpu}"
    if kind == "frequency":
        return f"cpu_frequency: state={values[0]} cpu_id={cpu}"
    if kind == "print":
        return f"tracing_mark_write: {values[0]}"
    if kind == "waking":
        (_, tid, comm), target = values
        return f"sched_waking: comm={comm} pid={tid} prio=120 target_cpu={target:03}"
    state, (_, tid, comm) = values
    _, before, name = idle
    return (
        f"sched_switch: prev_comm={name} prev_pid={before} prev_prio=120 prev_state={state} "
        f"==> next_comm={comm} next_pid={tid} next_prio=120"
    )


def text(lines):
    """Returns all events as the kernel's text."""
    yield "# tracer: nop\n#\n"
    for time, cpu, (pid, tid, comm), event in sorted(lines, key=lambda line: line[0]):
        if cpu == 1 and time == min(at for at, _, _ in CPU_1 if at > LOST_BEHIND):
            yield "CPU:1 [LOST EVENTS]\n"
        process = f"({pid:5})" if pid else "(-----)"
        ns = BEGIN + time
        what = text_of(cpu, event, (pid, tid, comm))
        yield f"{comm:>16}-{tid:<5} {process} [{cpu:03}] d..2. {ns // 10**9}.{ns % 10**9:09}: {what}\n"


def bundle(packet, cpu, events):
    """Fills a packet with events of a CPU; switches and wakings become columns."""
    out = packet.ftrace_events
    out.cpu = cpu
    compact = out.compact_sched
    states = {"R": 0, "S": 1, "D": 2}
    last = {"switch": 0, "waking": 0}

    def interned(comm):
        if comm not in compact.intern_table:
            compact.intern_table.append(comm)
        return list(compact.intern_table).index(comm)

    for time, (_, tid, _), (kind, *values) in events:
        at = BEGIN + time
        if kind in last:
            difference, last[kind] = at - last[kind], at
        if kind == "switch":
            state, (_, next_tid, comm) = values
            compact.switch_timestamp.append(difference)
            compact.switch_prev_state.append(states[state])
            compact.switch_next_pid.append(next_tid)
            compact.switch_next_prio.append(120)
            compact.switch_next_comm_index.append(interned(comm))
            continue
        if kind == "waking":
            (_, woken, comm), target = values
            compact.waking_timestamp.append(difference)
            compact.waking_pid.append(woken)
            compact.waking_target_cpu.append(target)
            compact.waking_prio.append(120)
            compact.waking_comm_index.append(interned(comm))
            compact.waking_common_flags.append(1)
            continue
        event = out.event.add(timestamp=at, pid=tid)
        if kind == "idle":
            event.cpu_idle.state, event.cpu_idle.cpu_id = values[0], cpu
        elif kind == "frequency":
            event.cpu_frequency.state, event.cpu_frequency.cpu_id = values[0], cpu
        else:
            event.print.ip, event.print.buf = 0, values[0] + "\n"


def snapshot(trace, boot):
    clocks = trace.packet.add(trusted_packet_sequence_id=1).clock_snapshot
    clocks.primary_trace_clock = BOOTTIME
    for clock, time in [(REALTIME, 1_700_000_000 * 10**9), (MONOTONIC, boot - SUSPENDED), (BOOTTIME, boot)]:
        clocks.clocks.add(clock_id=clock, timestamp=time)


def program(trace):
    """Adds the slices of a program: its names come by number, its times as differences on a clock of its own."""
    begin = trace.packet.add(trusted_packet_sequence_id=9, sequence_flags=1)
    begin.trace_packet_defaults.timestamp_clock_id = DIFFERENCES
    begin.trace_packet_defaults.track_event_defaults.track_uuid = 77
    boot = BEGIN + 5_000
    clocks = begin.clock_snapshot
    clocks.clocks.add(clock_id=BOOTTIME, timestamp=boot)
    clocks.clocks.add(clock_id=DIFFERENCES, timestamp=boot - SUSPENDED, is_incremental=True)
    pid, tid, comm = PROGRAM
    track = trace.packet.add(trusted_packet_sequence_id=9, sequence_flags=2, timestamp=0).track_descriptor
    track.uuid, track.thread.pid, track.thread.tid, track.thread.thread_name = 77, pid, tid, comm
    names, now = {}, boot
    for time, what, name in SLICES:
        packet = trace.packet.add(trusted_packet_sequence_id=9, sequence_flags=2, timestamp=BEGIN + time - now)
        now = BEGIN + time
        event = packet.track_event
        event.type = {"B": event.TYPE_SLICE_BEGIN, "E": event.TYPE_SLICE_END, "I": event.TYPE_INSTANT}[what]
        if name:
            if name not in names:
                names[name] = len(names) + 1
                packet.interned_data.event_names.add(iid=names[name], name=name)
            event.name_iid = names[name]


def trace():
    out = schema.Trace()
    snapshot(out, BEGIN - 1_000)
    tree = out.packet.add(trusted_packet_sequence_id=1, timestamp=BEGIN).process_tree
    for pid, tid, comm in [APP, WORKER, DRIVER]:
        if pid == tid:
            tree.processes.add(pid=pid, ppid=1, cmdline=[comm])
        tree.threads.add(tid=tid, tgid=pid, name=comm)
    # The recorder reads one CPU after the other: bundles overlap.
    behind = [event for event in CPU_1 if event[0] > LOST_BEHIND]
    before = [event for event in CPU_1 if event[0] <= LOST_BEHIND]
    for cpu, events, lost in [(1, before, False), (0, CPU_0[:9], False), (1, behind, True), (0, CPU_0[9:], False)]:
        packet = out.packet.add(trusted_packet_sequence_id=2)
        packet.ftrace_events.lost_events = lost
        bundle(packet, cpu, events)
    program(out)
    snapshot(out, BEGIN + 30_000)
    return out


def main(folder):
    folder = pathlib.Path(folder)
    folder.joinpath("recorder.pftrace").write_bytes(trace().SerializeToString(deterministic=True))
    lines = [(time, cpu, *rest) for cpu, events in enumerate([CPU_0, CPU_1]) for time, *rest in events]
    pid = PROGRAM[0]
    for time, what, name in SLICES:
        lines.append((time, 0, PROGRAM, ("print", f"{what}|{pid}" + (f"|{name}" if name else ""))))
    folder.joinpath("recorder.txt").write_text("".join(text(lines)))


main(sys.argv[1])
