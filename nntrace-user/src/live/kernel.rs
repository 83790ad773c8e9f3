//! The kernel side: loads the programs, attaches them, and reads and writes their maps. Only this folder uses aya.
//!
//! ```text
//! architecture, btf ─► each feature: globals, sizes of maps ─► object: programs, maps ─► links, probes ─► tables, rings
//! ```
//!
//! Each feature has a file with its globals, its programs, their attach points and its tables, in two parts: a
//! structure created before the programs are loaded, whose `configure` passes globals and map sizes to the loader;
//! and its part of [`Kernel`], the public interface.

mod architecture;
mod btf;
pub(super) mod calls;
pub(super) mod detaching;
mod driver_calls;
pub(super) mod engines;
mod error;
pub(crate) mod frequency_limits;
mod function_probes;
mod hotplug;
pub(super) mod lanes;
mod log;
mod marks;
mod multi_probes;
mod object;
mod open_files;
mod opened_files;
mod other_power_events;
mod perf_counters;
mod place_programs;
mod power;
mod preempt_count;
mod probed_files;
mod processes;
mod program_costs;
pub(crate) mod rings;
mod run_queues;
mod scheduling;
mod statistics;
mod table_sizes;
mod trace_marker_writes;
mod tracepoint_links;
mod window;

use std::{fs, path::Path};

use aya::EbpfLoader;

pub use self::error::KernelError;
use self::{
    btf::Btf,
    calls::CallPrograms,
    driver_calls::DriverCallPrograms,
    engines::EnginePrograms,
    frequency_limits::LimitPrograms,
    function_probes::FunctionProbes,
    hotplug::Hotplug,
    log::{KernelLog, LogLevel},
    marks::MarkGlobals,
    object::{OBJECT, Object},
    open_files::OpenFiles,
    opened_files::FilePrograms,
    other_power_events::EvidencePrograms,
    perf_counters::CounterPrograms,
    power::PowerPrograms,
    probed_files::ProbedFiles,
    processes::ProcessPrograms,
    rings::{RingBuffers, RingSize},
    run_queues::RunQueues,
    scheduling::SchedulingPrograms,
    statistics::Statistics,
    table_sizes::TableSizes,
    trace_marker_writes::WritePrograms,
};
pub(crate) use self::{error::ENOUGH_FILES, function_probes::has_uprobes};
use crate::model::cpu_list;

/// Default size of each ring, bytes.
pub const DEFAULT_RING_BYTES: u32 = 512 * 1024;

/// Options for loading the programs.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct KernelOptions {
    /// Bytes of each CPU's ring; rounded up to a power of two of whole pages.
    pub ring_bytes: u32,
    /// Whether to emit begins that carry nothing but layer, phase and name.
    pub emit_begins: bool,
    /// Memory of all tables of marks together, bytes; `None`: a part of the system's memory.
    pub map_memory: Option<u64>,
    /// Whether programs may wait for the page of a text, where the kernel supports that.
    pub may_wait_for_pages: bool,
    /// Whether the files that targets open are wanted.
    pub reports_files: bool,
    /// Whether what only recordings keep is wanted: changes of frequency limits and of the states of cooling devices one by one, and turns
    /// of rivals.
    pub is_recorded: bool,
    /// Whether calls of functions are recorded.
    pub calls: bool,
    /// Number of performance events that are counted by section. Programs do not wait for pages then.
    pub counters: usize,
}

impl Default for KernelOptions {
    fn default() -> Self {
        Self {
            ring_bytes: DEFAULT_RING_BYTES,
            emit_begins: false,
            map_memory: None,
            may_wait_for_pages: true,
            reports_files: false,
            is_recorded: false,
            calls: false,
            counters: 0,
        }
    }
}

/// The loaded programs with their maps. Dropping it detaches and unloads everything.
pub struct Kernel {
    object: Object,
    /// Where the programs log.
    log: Option<KernelLog>,
    cpus: u32,
    table_sizes: TableSizes,
    statistics: Statistics,
    processes: ProcessPrograms,
    functions: FunctionProbes,
    engines: EnginePrograms,
    calls: CallPrograms,
    files: OpenFiles,
    opened_files: FilePrograms,
    writes: WritePrograms,
    probed_files: ProbedFiles,
    driver_calls: DriverCallPrograms,
    counters: CounterPrograms,
    power: PowerPrograms,
    hotplug: Hotplug,
    evidence: EvidencePrograms,
    limits: LimitPrograms,
    run_queues: RunQueues,
    scheduling: SchedulingPrograms,
}

impl Kernel {
    /// Loads the programs, without attaching any.
    ///
    /// # Errors
    /// When this user may not, when the kernel cannot, or when a map cannot be created; each message includes a
    /// remedy.
    pub fn load(options: KernelOptions) -> Result<(Self, RingBuffers), KernelError> {
        architecture::check(OBJECT)?;
        let cpus = possible_cpus()?;
        // It reads the kernel's types, all of them: before ours are read, it forgets them. No program is relocated by them.
        let mut loader = EbpfLoader::new();
        loader.btf(None);
        let btf = Btf::read(Path::new(btf::KERNEL));
        let btf = btf.as_ref();
        let ring_size = RingSize::rounded(options.ring_bytes);
        let table_sizes = TableSizes::new(options.map_memory, cpus);
        let log_level = LogLevel::of_collector();
        let marks = MarkGlobals::new(options.emit_begins);
        let processes = ProcessPrograms::new(btf)?;
        let files = OpenFiles::new(btf);
        let opened_files = FilePrograms::new(btf, options.reports_files);
        let hotplug = Hotplug::new();
        let limits = LimitPrograms::new(options.is_recorded);
        let mut run_queues = RunQueues::new(btf);
        let scheduling = SchedulingPrograms::new(btf);
        let counters = CounterPrograms::new(options.counters, cpus);

        ring_size.configure(&mut loader, cpus);
        table_sizes.configure(&mut loader);
        log_level.configure(&mut loader);
        marks.configure(&mut loader);
        processes.configure(&mut loader);
        files.configure(&mut loader);
        opened_files.configure(&mut loader);
        PowerPrograms::configure(&mut loader, cpus);
        hotplug.configure(&mut loader);
        EvidencePrograms::configure(&mut loader, cpus);
        limits.configure(&mut loader);
        run_queues.configure(&mut loader);
        scheduling.configure(&mut loader);
        counters.configure(&mut loader);
        CallPrograms::configure(&mut loader, options.calls);

        let mut object = Object::load(&mut loader)?;
        let rings = RingBuffers::make(&mut object, cpus, &ring_size)?;
        let log = KernelLog::open(&mut object, &log_level)?;
        ::log::info!(
            "{cpus} possible CPUs, each with a ring of {} KiB; the tables of marks take {} KiB",
            ring_size.bytes() / 1024,
            table_sizes.bytes / 1024
        );
        let statistics = Statistics::start();
        PowerPrograms::load(&mut object)?;
        ProcessPrograms::load_raw(&mut object)?;
        run_queues.load(&mut object)?;
        ProcessPrograms::load_fork(&mut object)?;
        let kernel = Self {
            object,
            log,
            cpus,
            table_sizes,
            statistics,
            processes,
            // Programs that may wait cannot read events.
            functions: FunctionProbes::new(options.may_wait_for_pages && options.counters == 0),
            engines: EnginePrograms::default(),
            calls: CallPrograms::new(options.may_wait_for_pages),
            files,
            opened_files,
            writes: WritePrograms::default(),
            probed_files: ProbedFiles::default(),
            driver_calls: DriverCallPrograms::default(),
            counters,
            power: PowerPrograms::default(),
            hotplug,
            evidence: EvidencePrograms::default(),
            limits,
            run_queues,
            scheduling,
        };
        Ok((kernel, rings))
    }

    /// Returns the number of possible CPUs: the length of every per-CPU table.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// Detaches the programs on power events and on context switches, which takes the kernel some milliseconds.
    pub(crate) fn detach_power(&mut self) {
        self.scheduling.detach(&mut self.object);
        self.power.detach(&mut self.object);
        self.evidence.detach(&mut self.object);
    }
}

/// Whether the kernel describes its structures, by BTF.
pub(super) fn has_btf() -> bool {
    Btf::read(Path::new(btf::KERNEL)).is_some()
}

fn possible_cpus() -> Result<u32, KernelError> {
    const PATH: &str = "/sys/devices/system/cpu/possible";
    let text = fs::read_to_string(PATH).map_err(|source| KernelError::File { path: PATH.into(), source })?;
    let cpus = cpu_list::parse(&text).ok().and_then(|cpus| cpus.last().copied());
    Ok(cpus.map_or(1, |last| last + 1))
}
