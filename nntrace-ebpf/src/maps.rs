//! All maps, in one place. The default sizes suit a small board; user space may set others before loading.

use aya_ebpf::{
    Global,
    btf_maps::{
        Array, ArrayOfMaps, HashMap, LruHashMap, PerCpuArray, PerCpuHashMap, PerfEventArray, RingBuf,
    },
    macros::btf_map,
};
use nntrace_common::{
    app_events::{AppEvent, AppEventCounts, ExecutionCount, ExecutionKey, MAX_APP_EVENTS},
    async_runs::{AsyncRun, AsyncRunKey},
    calls::{CallCounts, CallKey, CallProbe, CallRecord, MAX_CALL_PROBES},
    creds::{CredsOffsets, NOBODY},
    diagnostic::{DiagnosticCount, DiagnosticKind},
    driver_calls::{DRIVER_CALL, DriverDevice, MAX_DEVICES},
    engine::{EngineProbe, EnumKey, MAX_ENTRIES, ObjectNames},
    engine_frames::EngineFrames,
    event_counts::{EventCounts, PageWait},
    frequency_limits::DEVICE_BYTES,
    hidl_calls::Meaning,
    log_limit::{LogGate, LogKind},
    nested_functions::MarkCode,
    opened_files::{FILE_RING_BYTES, FileReport, PathOffsets},
    other_power_events::{CpuEvidence, PsciKey, Suspends},
    perf_counters::{CounterTrial, CountsKey, MAX_COUNTERS, SectionCounts, ThreadCounters},
    pid_namespace::PidNamespace,
    power::{CpuFrequency, CpuIdle},
    record::{Forwarding, FrequencyKey, NameText, RingCount, Thread, Total, TotalKey},
    rivals::AwaitedCpu,
    run_queue::{RunQueueOffsets, RunQueueSample},
    sched::{PreemptCount, SchedOffsets},
    stack::PathStep,
    time_count::TimeCount,
    window::Window,
};

/// Number of rings and of CPUs in the tables at most; user space sets the number of possible CPUs.
const MAX_CPUS: usize = 1024;

/// Size of each ring, bytes. User space sets it before loading.
#[unsafe(no_mangle)]
pub static RING_BYTES: Global<u32> = Global::new(4096);

/// Offset of the child's id in the kernel's description of `sched_process_fork`, bytes. User space sets it.
#[unsafe(no_mangle)]
pub static FORK_CHILD_OFFSET: Global<u32> = Global::new(0);

/// Offsets of `task_struct.signal` and of `signal_struct.live`, the number of threads of a process that have not ended, bytes.
/// User space sets them; both are 0 where it does not know them.
#[unsafe(no_mangle)]
pub static LIVE_THREADS_OFFSETS: Global<[u32; 2]> = Global::new([0; 2]);

/// Number of the PID namespace in which ids are reported; 0 where they are the host's. User space sets it.
#[unsafe(no_mangle)]
pub static PID_NAMESPACE_NUMBER: Global<u32> = Global::new(0);

/// Offsets by which a task's id in that namespace is found. User space sets them.
#[unsafe(no_mangle)]
pub static PID_NAMESPACE: Global<PidNamespace> = Global::new(PidNamespace {
    thread_pid: 0,
    group_leader: 0,
    level: 0,
    numbers: 0,
    number_size: 0,
    id: 0,
    namespace: 0,
    namespace_number: 0,
});

/// User and group whose programs alone are traced; [`NOBODY`] where all are.
#[unsafe(no_mangle)]
pub static OWNER: Global<[u32; 2]> = Global::new([NOBODY; 2]);

/// Offsets by which a program with privileges of its own is known. User space sets them; all are 0 where it does not know
/// them.
#[unsafe(no_mangle)]
pub static CREDS_OFFSETS: Global<CredsOffsets> =
    Global::new(CredsOffsets { creds: 0, user: 0, group: 0, capabilities: 0 });

/// Offsets of the fields that [`crate::sched`] reads. User space sets those that it knows.
#[unsafe(no_mangle)]
pub static SCHED_OFFSETS: Global<SchedOffsets> = Global::new(SchedOffsets {
    prev_state: 0,
    next_pid: 0,
    woken_pid: 0,
    woken_cpu: 0,
    task_pid: 0,
    task_cpu: 0,
});

/// Way to the counter that shows interrupts. User space sets it if it knows it.
#[unsafe(no_mangle)]
pub static PREEMPT_COUNT: Global<PreemptCount> =
    Global::new(PreemptCount { queue: 0, run_queue: 0, counter: 0 });

/// Offsets of the limits and the CPU in the kernel's description of `cpu_frequency_limits`, bytes. User space sets
/// them.
#[unsafe(no_mangle)]
pub static LIMITS_OFFSETS: Global<[u32; 3]> = Global::new([0; 3]);

/// Offsets of the device's type, which is a `__data_loc`, and its state in the kernel's description of `cdev_update`, bytes.
/// User space sets them.
#[unsafe(no_mangle)]
pub static COOLING_OFFSETS: Global<[u32; 2]> = Global::new([0; 2]);

/// Whether to emit what only recordings keep: changes of frequency limits, and turns of rivals. User space sets it.
#[unsafe(no_mangle)]
pub static IS_RECORDED: Global<u32> = Global::new(0);

/// Whether to emit begins that carry nothing but layer, phase and name. User space sets it.
#[unsafe(no_mangle)]
pub static EMIT_BEGINS: Global<u32> = Global::new(0);

/// Number of the step that takes a CPU down. User space sets it if it knows it.
#[unsafe(no_mangle)]
pub static TAKEDOWN_STEP: Global<u32> = Global::new(u32::MAX);

/// Offsets in the kernel's structures that [`crate::run_queues`] reads. User space sets those that it knows.
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

/// Offsets in the kernel's structures of, in this order: the files of a task, the table of these, its length and its
/// slots, the operations of a file and its inode, and the mode of an inode and its device. User space sets them if it
/// knows them.
#[unsafe(no_mangle)]
pub static FILE_OFFSETS: Global<[u32; 8]> = Global::new([0; 8]);

/// Offsets on the way to the names of files. User space sets them if it knows all of them.
#[unsafe(no_mangle)]
pub static PATH_OFFSETS: Global<PathOffsets> = Global::new(PathOffsets {
    are_known: 0,
    file_path: 0,
    task_folders: 0,
    working_folder: 0,
    task_memory: 0,
    executable: 0,
    path_mount: 0,
    path_entry: 0,
    mount_public: 0,
    mount_root: 0,
    mount_parent: 0,
    mount_point: 0,
    entry_parent: 0,
    entry_name: 0,
    exec_path: 0,
    task_namespaces: 0,
    mount_namespace: 0,
    namespace_number: 0,
});

/// Traced processes, by process id: [`TARGET`](nntrace_common::record::TARGET) or
/// [`TARGET_TO_HOLD`](nntrace_common::record::TARGET_TO_HOLD).
#[btf_map]
pub static TARGETS: HashMap<u32, u8, 16384> = HashMap::new();

/// State of each traced thread that has marks, by thread id.
#[btf_map]
pub static THREADS: HashMap<u32, Thread, 2048> = HashMap::new();

/// Number of threads that user space accounts: at most, which it sets, and now. See [`crate::express`].
#[btf_map]
pub static LANES: Array<u64, 2> = Array::new();

/// Initial state of a thread: too large for the program's stack.
#[btf_map]
pub static NEW_THREAD: Array<Thread, 1> = Array::new();

/// 1 when one mark function may call another.
#[btf_map]
pub static NESTING: Array<u32, 1> = Array::new();

/// Threads that wait for a page, by thread id. When it is full, no further thread waits.
#[btf_map]
pub static PAGE_WAITS: HashMap<u32, PageWait, 256> = HashMap::new();

/// Counts of events, and of entries without room in full tables.
#[btf_map]
pub static EVENT_COUNTS: PerCpuArray<EventCounts, 1> = PerCpuArray::new();

/// Facts about the code of mark functions, by the lower bits of the probed instruction's address, which are the same
/// in every process. Two with the same bits share an entry with the larger numbers.
#[btf_map]
pub static MARK_CODE: Array<MarkCode, 4096> = Array::new();

/// Probes on functions of engines, by number, and the one of [`DRIVER_CALL`]. User space sets them.
#[btf_map]
pub static ENGINE_PROBES: Array<EngineProbe, { DRIVER_CALL as usize + 1 }> = Array::new();

/// Functions whose calls are recorded, by the number of their probes. User space sets them, and makes this table and the
/// next ones one entry large where there are none.
#[btf_map]
pub static CALL_PROBES: Array<CallProbe, MAX_CALL_PROBES> = Array::new();

/// Functions whose calls are recorded that each thread is in, by thread id.
#[btf_map]
pub static CALL_FRAMES: HashMap<u32, EngineFrames, 1024> = HashMap::new();

/// Frames of a thread that is in none: too large for the program's stack.
#[btf_map]
pub static NEW_CALL_FRAMES: Array<EngineFrames, 1> = Array::new();

/// Open calls that will be recorded.
#[btf_map]
pub static OPEN_CALLS: HashMap<CallKey, CallRecord, 2048> = HashMap::new();

/// Record of a call that has nothing yet: too large for the program's stack.
#[btf_map]
pub static NEW_CALL: Array<CallRecord, 1> = Array::new();

/// Counts of calls.
#[btf_map]
pub static CALL_COUNTS: PerCpuArray<CallCounts, 1> = PerCpuArray::new();

/// Devices whose calls are sections, by their number. User space sets them.
#[btf_map]
pub static DRIVER_DEVICES: HashMap<u32, DriverDevice, MAX_DEVICES> = HashMap::new();

/// Names that the entries of maps lead to, by [`EngineProbe::entry`]. CPUs write at once until two names differ: what one of
/// them overwrites is compared later.
#[btf_map]
pub static OBJECT_NAMES: Array<ObjectNames, { MAX_ENTRIES }> = Array::new();

/// Hashes of the names of numbers that name sections. User space sets them.
#[btf_map]
pub static ENGINE_ENUMS: HashMap<EnumKey, u64, 4096> = HashMap::new();

/// Last asynchronous executions of objects.
#[btf_map]
pub static ASYNC_RUNS: HashMap<AsyncRunKey, AsyncRun, 16384> = HashMap::new();

/// Hash of the name of an asynchronous execution. User space sets it.
#[unsafe(no_mangle)]
pub static ASYNC_RUN_NAME: Global<u64> = Global::new(0);

/// Hash of the name of one whose end was not seen. User space sets it.
#[unsafe(no_mangle)]
pub static ASYNC_RUN_UNSEEN_NAME: Global<u64> = Global::new(0);

/// Cost of taking marks and sections from system calls: most runs of these programs are for other calls.
#[btf_map]
pub static SYSTEM_CALL_COST: PerCpuArray<TimeCount, 1> = PerCpuArray::new();

/// Operations of a file that is a `trace_marker`.
#[btf_map]
pub static MARKER: Array<u64, 1> = Array::new();

/// Exact totals per process and path, by the application's phases.
#[btf_map]
pub static TOTALS: PerCpuHashMap<TotalKey, Total, 8192> = PerCpuHashMap::new();

/// Number of entries of [`TOTALS`] that may be split by the application's phases: the rest is for totals of any. User
/// space sets it.
#[unsafe(no_mangle)]
pub static SLOT_TOTALS: Global<u32> = Global::new(6144);

/// Number of entries in [`TOTALS`].
#[btf_map]
pub static TOTAL_COUNT: Array<u64, 1> = Array::new();

/// Changes of the application's phases, by number from 1.
#[btf_map]
pub static APP_EVENTS: HashMap<u32, AppEvent, { MAX_APP_EVENTS as usize }> = HashMap::new();

/// Counts of these changes.
#[btf_map]
pub static APP_EVENT_COUNTS: Array<AppEventCounts, 1> = Array::new();

/// Processes that have turned out to be drivers.
#[btf_map]
pub static DRIVERS: HashMap<u32, u8, 1024> = HashMap::new();

/// Processes that call a driver of the kernel themselves.
#[btf_map]
pub static DRIVER_CALLERS: HashMap<u32, u8, 1024> = HashMap::new();

/// Executions by thread and the application's phases.
#[btf_map]
pub static EXECUTIONS: HashMap<ExecutionKey, ExecutionCount, 4096> = HashMap::new();

/// Hash of the name of the function whose calls count executions. User space sets it.
#[unsafe(no_mangle)]
pub static CREATE_NAME: Global<u64> = Global::new(0);

/// Paths, one step each.
#[btf_map]
pub static PATHS: HashMap<u64, PathStep, 4096> = HashMap::new();

/// Names of marked sections, by hash.
#[btf_map]
pub static NAMES: HashMap<u64, NameText, 4096> = HashMap::new();

/// Meanings of the names of interface calls, by hash. User space sets them.
#[btf_map]
pub static MEANINGS: HashMap<u64, Meaning, 4096> = HashMap::new();

/// Diagnostics by kind.
#[btf_map]
pub static DIAGNOSTICS: PerCpuArray<DiagnosticCount, { DiagnosticKind::ALL.len() }> = PerCpuArray::new();

/// Lines that passed the limit, of each kind that the programs log.
#[btf_map]
pub static LOG_GATES: Array<LogGate, { LogKind::COUNT }> = Array::new();

/// The time that counts; user space sets it. All of time while it has not.
#[btf_map]
pub static WINDOW: Array<Window, 1> = Array::new();

/// Idle state machine with exact residency, by CPU.
#[btf_map]
pub static CPU_IDLE: Array<CpuIdle, MAX_CPUS> = Array::new();

/// CPUs that traced threads wait for.
#[btf_map]
pub static AWAITED_CPUS: Array<AwaitedCpu, MAX_CPUS> = Array::new();

/// CPU that each traced thread waits for, by thread id. Rivals of threads that do not fit are not reported.
#[btf_map]
pub static WAITING_THREADS: HashMap<u32, u32, 1024> = HashMap::new();

/// Requested frequency, by CPU.
#[btf_map]
pub static CPU_FREQUENCY: Array<CpuFrequency, MAX_CPUS> = Array::new();

/// CPUs of each policy as a circular list: by CPU, the distance to the next one; 0 for a CPU that is alone.
#[btf_map]
pub static NEXT_IN_POLICY: Array<u32, MAX_CPUS> = Array::new();

/// Further power events, by CPU.
#[btf_map]
pub static EVIDENCE: Array<CpuEvidence, MAX_CPUS> = Array::new();

/// Time in the states requested from firmware.
#[btf_map]
pub static PSCI: HashMap<PsciKey, TimeCount, 4096> = HashMap::new();

/// Last state of each cooling device, by its type.
#[btf_map]
pub static COOLING: HashMap<[u8; DEVICE_BYTES], u64, 64> = HashMap::new();

/// Suspends of the system.
#[btf_map]
pub static SUSPENDS: Array<Suspends, 1> = Array::new();

/// Last sample of a CPU's run queue.
#[btf_map]
pub static RUN_QUEUE_SAMPLE: Array<RunQueueSample, 1> = Array::new();

/// Running time by CPU and requested frequency.
#[btf_map]
pub static FREQUENCY_TOTALS: HashMap<FrequencyKey, TimeCount, 16384> = HashMap::new();

/// Forwarding of threads that have ended and whose last loss found no room in a ring.
#[btf_map]
pub static ENDED_LOSING: LruHashMap<u32, Forwarding, 4096> = LruHashMap::new();

/// Counts of each CPU's ring.
#[btf_map]
pub static RING_COUNTS: PerCpuArray<RingCount, 1> = PerCpuArray::new();

/// Number of performance events that are counted. User space sets it.
#[unsafe(no_mangle)]
pub static COUNTERS: Global<u32> = Global::new(0);

/// Events that are counted, by number, each on every CPU. User space sets them.
#[btf_map]
pub static COUNTER_EVENTS: ArrayOfMaps<PerfEventArray, MAX_COUNTERS> = ArrayOfMaps::new();

/// Counts of each thread that has marks, by thread id. User space makes this table and the next but one one entry large
/// where nothing is counted.
#[btf_map]
pub static THREAD_COUNTERS: HashMap<u32, ThreadCounters, 1024> = HashMap::new();

/// Counts of a thread that has none: too large for the program's stack.
#[btf_map]
pub static NEW_THREAD_COUNTERS: Array<ThreadCounters, 1> = Array::new();

/// Counts of sections that ended.
#[btf_map]
pub static SECTION_COUNTS: PerCpuHashMap<CountsKey, SectionCounts, 2048> = PerCpuHashMap::new();

/// Counts of no section: too large for the program's stack.
#[btf_map]
pub static NO_SECTION_COUNTS: Array<SectionCounts, 1> = Array::new();

/// Measurement of the cost of reading the events.
#[btf_map]
pub static COUNTER_TRIAL: Array<CounterTrial, 1> = Array::new();

/// Rings, one per CPU. User space sets them.
#[btf_map]
pub static RINGS: ArrayOfMaps<RingBuf<u8, 4096>, MAX_CPUS> = ArrayOfMaps::new();

/// Stops of a command while its libraries are probed, for the process that sees it continued.
#[btf_map]
pub static STOPS: RingBuf<u32, { 1 << 16 }> = RingBuf::new();

/// Reports of opened files, for all CPUs: they are rare, and must not take room from the records of marks.
#[btf_map]
pub static OPENED_FILES: RingBuf<u8, { FILE_RING_BYTES as usize }> = RingBuf::new();

/// Reports without room in it.
#[btf_map]
pub static OPENED_FILES_LOST: PerCpuArray<u64, 1> = PerCpuArray::new();

/// Report that is being made: too large for the program's stack.
#[btf_map]
pub static FILE_REPORT: PerCpuArray<FileReport, 1> = PerCpuArray::new();
