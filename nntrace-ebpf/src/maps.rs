//! Every map, in one place. Sizes are what a small board can spare; user space may set others before loading.

use aya_ebpf::{
    Global,
    btf_maps::{Array, ArrayOfMaps, HashMap, PerCpuArray, PerCpuHashMap, RingBuf},
    macros::btf_map,
};
use nntrace_common::{
    app_events::{AppEvent, AppEventCounts, ExecutionCount, ExecutionKey, MAX_APP_EVENTS},
    counts::{EventCounts, PageWait},
    diagnostic::{DiagnosticCount, DiagnosticKind},
    evidence::{CpuEvidence, PsciKey, Suspends},
    interface::Meaning,
    log_limit::{LogGate, LogKind},
    nesting::MarkCode,
    power::{CpuFrequency, CpuIdle},
    record::{FrequencyKey, NameText, RingCount, Thread, Total, TotalKey},
    run_queue::{RunQueueOffsets, RunQueueSample},
    sched::SchedOffsets,
    stack::PathStep,
    time_count::TimeCount,
    window::Window,
};

/// Rings and CPUs that the tables can hold; user space sets the number of possible CPUs.
const MAX_CPUS: usize = 1024;

/// Size of each ring, bytes. User space sets it before loading.
#[unsafe(no_mangle)]
pub static RING_BYTES: Global<u32> = Global::new(4096);

/// Where the child's id stands in the kernel's description of `sched_process_fork`, bytes. User space sets it.
#[unsafe(no_mangle)]
pub static FORK_CHILD_OFFSET: Global<u32> = Global::new(0);

/// Where the fields stand that [`crate::sched`] reads. User space sets it where it knows.
#[unsafe(no_mangle)]
pub static SCHED_OFFSETS: Global<SchedOffsets> =
    Global::new(SchedOffsets { prev_state: 0, next_pid: 0, woken_pid: 0, task_pid: 0 });

/// Where the limits and the CPU stand in the kernel's description of `cpu_frequency_limits`, bytes. User space sets it.
#[unsafe(no_mangle)]
pub static LIMITS_OFFSETS: Global<[u32; 3]> = Global::new([0; 3]);

/// Whether begins are handed on that say no more than layer, phase and name. User space sets it.
#[unsafe(no_mangle)]
pub static EMIT_BEGINS: Global<u32> = Global::new(0);

/// The number of the step that takes a CPU down. User space sets it where it knows.
#[unsafe(no_mangle)]
pub static TAKEDOWN_STEP: Global<u32> = Global::new(u32::MAX);

/// Where the kernel keeps what [`crate::run_queues`] looks at. User space sets it where it knows.
#[unsafe(no_mangle)]
pub static RUN_QUEUE_OFFSETS: Global<RunQueueOffsets> = Global::new(RunQueueOffsets {
    task_group: 0,
    group_queues: 0,
    own_queue: 0,
    queue: 0,
    cpu: 0,
    current: 0,
    idle: 0,
    idle_state: 0,
    name: 0,
});

/// Where the kernel keeps, in this order: the files of a task, the table of these, its length and its slots, and the
/// operations of a file. User space sets it where it knows.
#[unsafe(no_mangle)]
pub static FILE_OFFSETS: Global<[u32; 5]> = Global::new([0; 5]);

/// The traced processes, by process id: [`TARGET`](nntrace_common::record::TARGET) or
/// [`TARGET_TO_HOLD`](nntrace_common::record::TARGET_TO_HOLD).
#[btf_map]
pub static TARGETS: HashMap<u32, u8, 16384> = HashMap::new();

/// What each traced thread has open, by thread id.
#[btf_map]
pub static THREADS: HashMap<u32, Thread, 2048> = HashMap::new();

/// Where the state of a thread starts from: too large for the program's stack.
#[btf_map]
pub static NEW_THREAD: Array<Thread, 1> = Array::new();

/// 1 when one mark function may call another.
#[btf_map]
pub static NESTING: Array<u32, 1> = Array::new();

/// Threads that wait for a page, by thread id. When it is full, nobody else waits.
#[btf_map]
pub static PAGE_WAITS: HashMap<u32, PageWait, 256> = HashMap::new();

/// Events, and what full tables turned away.
#[btf_map]
pub static EVENT_COUNTS: PerCpuArray<EventCounts, 1> = PerCpuArray::new();

/// What is known of mark functions' code, by the lower bits of the probed instruction's address, which are the same in every
/// process. Two with the same bits share an entry: it has the greater numbers.
#[btf_map]
pub static MARK_CODE: Array<MarkCode, 4096> = Array::new();

/// What taking marks from system calls cost: of the runs of their program most are for other calls.
#[btf_map]
pub static WRITE_COST: PerCpuArray<TimeCount, 1> = PerCpuArray::new();

/// Which operations a file of `trace_marker` has.
#[btf_map]
pub static MARKER: Array<u64, 1> = Array::new();

/// Exact totals per process and path, by the application's phases.
#[btf_map]
pub static TOTALS: PerCpuHashMap<TotalKey, Total, 8192> = PerCpuHashMap::new();

/// Entries of [`TOTALS`] that may go by the application's phases: the rest is for totals of any. User space sets it.
#[unsafe(no_mangle)]
pub static SLOT_TOTALS: Global<u32> = Global::new(6144);

/// Entries of [`TOTALS`] that were made.
#[btf_map]
pub static TOTAL_COUNT: Array<u64, 1> = Array::new();

/// Changes of the application's phases, by number from 1.
#[btf_map]
pub static APP_EVENTS: HashMap<u32, AppEvent, { MAX_APP_EVENTS as usize }> = HashMap::new();

/// How many of them there were.
#[btf_map]
pub static APP_EVENT_COUNTS: Array<AppEventCounts, 1> = Array::new();

/// Processes that have shown that they are drivers.
#[btf_map]
pub static DRIVERS: HashMap<u32, u8, 1024> = HashMap::new();

/// Executions by thread and the application's phases.
#[btf_map]
pub static EXECUTIONS: HashMap<ExecutionKey, ExecutionCount, 4096> = HashMap::new();

/// The hash of the name of the function by which executions are counted. User space sets it.
#[unsafe(no_mangle)]
pub static CREATE_NAME: Global<u64> = Global::new(0);

/// What each path consists of, a step each.
#[btf_map]
pub static PATHS: HashMap<u64, PathStep, 4096> = HashMap::new();

/// The names of marked sections, by hash.
#[btf_map]
pub static NAMES: HashMap<u64, NameText, 4096> = HashMap::new();

/// What the names of interface calls mean, by hash; user space puts it in.
#[btf_map]
pub static MEANINGS: HashMap<u64, Meaning, 4096> = HashMap::new();

/// Diagnostics by kind.
#[btf_map]
pub static DIAGNOSTICS: PerCpuArray<DiagnosticCount, { DiagnosticKind::ALL.len() }> = PerCpuArray::new();

/// What passed of each kind of line that the programs log.
#[btf_map]
pub static LOG_GATES: Array<LogGate, { LogKind::COUNT }> = Array::new();

/// The time that counts; user space sets it. All of time while it has not.
#[btf_map]
pub static WINDOW: Array<Window, 1> = Array::new();

/// Idle or running, and the exact residency, by CPU.
#[btf_map]
pub static CPU_IDLE: Array<CpuIdle, MAX_CPUS> = Array::new();

/// Requested frequency, by CPU.
#[btf_map]
pub static CPU_FREQUENCY: Array<CpuFrequency, MAX_CPUS> = Array::new();

/// The CPUs of a policy in a ring: from each, by CPU, the distance to the next one; 0 for one that is alone.
#[btf_map]
pub static NEXT_IN_POLICY: Array<u32, MAX_CPUS> = Array::new();

/// What the kernel tells beside, by CPU.
#[btf_map]
pub static EVIDENCE: Array<CpuEvidence, MAX_CPUS> = Array::new();

/// Time in the states that firmware was asked for.
#[btf_map]
pub static PSCI: HashMap<PsciKey, TimeCount, 4096> = HashMap::new();

/// Suspends of the machine.
#[btf_map]
pub static SUSPENDS: Array<Suspends, 1> = Array::new();

/// What the last look at a CPU saw.
#[btf_map]
pub static RUN_QUEUE_SAMPLE: Array<RunQueueSample, 1> = Array::new();

/// Running time by CPU and requested frequency.
#[btf_map]
pub static FREQUENCY_TOTALS: HashMap<FrequencyKey, TimeCount, 16384> = HashMap::new();

/// What each CPU's programs did with their ring.
#[btf_map]
pub static RING_COUNTS: PerCpuArray<RingCount, 1> = PerCpuArray::new();

/// One ring for each CPU; user space puts them in.
#[btf_map]
pub static RINGS: ArrayOfMaps<RingBuf<u8, 4096>, MAX_CPUS> = ArrayOfMaps::new();
