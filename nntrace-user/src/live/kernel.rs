//! The kernel side: loads the programs, attaches them, and reads their maps. Nothing outside of [`crate::live`]
//! knows the library that does it.

use std::{fs, io, os::fd::OwnedFd, path::Path};

use aya::{
    Ebpf, EbpfLoader,
    maps::{Array, ArrayOfMaps, HashMap, MapData, MapError, RingBuf},
    programs::{
        ProgramError, RawTracePoint, TracePoint, UProbe, raw_trace_point::RawTracePointLinkId,
        uprobe::UProbeLinkId,
    },
    sys::{Stats, enable_stats},
};
use nntrace_common::{
    counts::Table,
    interface::{EXECUTION_CREATE, Meaning},
    mark,
    record::TARGET,
    sched::SchedOffsets,
};
use thiserror::Error;

use super::{
    architecture::{self, WrongArchitecture},
    btf::{self, Btf},
    evidence, hotplug, initial, privilege, sched, sysfs,
    table_sizes::TableSizes,
    tracefs, writes,
};
use crate::model::cpu_list;

/// The object that the build script compiled.
pub(super) static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/nntrace-ebpf"));

/// Every ring starts with this many bytes, unless the user says otherwise.
pub const DEFAULT_RING_BYTES: u32 = 512 * 1024;

/// Why the kernel side does not work.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The kernel refuses BPF to this user.
    #[error("{0}")]
    Privilege(String),
    /// The kernel lacks something.
    #[error(
        "this kernel ({release}) cannot load the programs: {reason}; nntrace-bpf needs Linux 5.8 or newer with CONFIG_BPF_SYSCALL, CONFIG_BPF_EVENTS and CONFIG_UPROBE_EVENTS"
    )]
    Unsupported {
        /// What `uname -r` says.
        release: String,
        /// What the kernel answered.
        reason: String,
    },
    /// The object is for other machines.
    #[error(transparent)]
    Architecture(#[from] WrongArchitecture),
    /// The object does not hold what it should.
    #[error("the kernel object that was built in holds no {0}; it is from another version: build again")]
    Missing(&'static str),
    /// A map could not be used.
    #[error("cannot {what}: {source}")]
    Map {
        /// What was tried.
        what: &'static str,
        /// What the kernel answered.
        source: MapError,
    },
    /// A program could not be attached.
    #[error("cannot attach to {point}: {reason}")]
    Attach {
        /// Where to.
        point: String,
        /// What the kernel answered.
        reason: String,
    },
    /// A file of the kernel's could not be read.
    #[error("cannot read {path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
}

impl KernelError {
    pub(super) fn writing(source: MapError) -> Self {
        Self::Map { what: "write a table of the kernel programs", source }
    }

    pub(super) fn reading(source: MapError) -> Self {
        Self::Map { what: "read a table of the kernel programs", source }
    }
}

/// What can be chosen when the programs are loaded.
#[derive(Clone, Copy, Debug)]
pub struct KernelOptions {
    /// Bytes of each CPU's ring; rounded up to a power of two of whole pages.
    pub ring_bytes: u32,
    /// Whether begins are handed on that say no more than layer, phase and name.
    pub tell_begins: bool,
    /// Bytes that the tables of marks take together; `None`: a part of the machine's memory.
    pub map_memory: Option<u64>,
    /// Whether programs may wait for the page of a text, where the kernel has such programs.
    pub may_wait_for_pages: bool,
}

impl Default for KernelOptions {
    fn default() -> Self {
        Self {
            ring_bytes: DEFAULT_RING_BYTES,
            tell_begins: false,
            map_memory: None,
            may_wait_for_pages: true,
        }
    }
}

/// The loaded programs with their maps. Dropping it detaches and unloads everything.
pub struct Kernel {
    ebpf: Ebpf,
    cpus: u32,
    pub(super) table_sizes: TableSizes,
    /// Keeps the kernel's run-time statistics of BPF programs on.
    _statistics: Option<OwnedFd>,
    follows_forks: bool,
    /// The program that looks at CPUs, where one can.
    looks_with: Option<&'static str>,
    takedown_step: u32,
    /// Whether it is known where the fields of `cpu_frequency_limits` stand.
    reads_limits: bool,
    /// Where the kernel keeps open files, if it is known.
    files: Option<[u32; 5]>,
    /// Whether programs on functions wait for the page of a text; what has not been tried is presumed.
    pub(super) waits_for_pages: bool,
    /// Probes that go with those on marks, by program.
    pub(super) mark_links: Vec<(&'static str, UProbeLinkId)>,
    write_links: Vec<RawTracePointLinkId>,
    sched: SchedOffsets,
    power_links: Vec<(&'static str, RawTracePointLinkId)>,
}

impl Kernel {
    /// Loads the programs. Nothing is attached yet.
    ///
    /// # Errors
    /// When this user may not, when the kernel cannot, or when a map cannot be made; each text says what to do.
    pub fn load(options: KernelOptions) -> Result<(Self, Vec<RingBuf<MapData>>), KernelError> {
        architecture::check(OBJECT)?;
        let cpus = possible_cpus()?;
        let page = rounded_ring(options.ring_bytes);
        let fork_offset = tracefs::field_offset("sched/sched_process_fork", "child_pid").ok();
        let btf = Btf::read(Path::new(btf::KERNEL));
        let look = btf.as_ref().and_then(initial::way);
        let files = btf.as_ref().and_then(writes::offsets);
        let limits = evidence::limits_offsets();
        let takedown_step = hotplug::takedown_step(Path::new(sysfs::CPUS));
        let mut loader = EbpfLoader::new();
        loader.override_global("RING_BYTES", &page, true).override_global(
            "FORK_CHILD_OFFSET",
            fork_offset.as_ref().unwrap_or(&0),
            true,
        );
        let tell_begins = u32::from(options.tell_begins);
        let create_name = mark::name_hash(EXECUTION_CREATE, 0);
        loader.override_global("CREATE_NAME", &create_name, true);
        loader.override_global("TAKEDOWN_STEP", &takedown_step, true);
        loader.override_global("TELL_BEGINS", &tell_begins, true);
        if let Some(offsets) = &limits {
            loader.override_global("LIMITS_OFFSETS", offsets, true);
        }
        let sched = sched::offsets(btf.as_ref());
        loader.override_global("SCHED_OFFSETS", &sched, true);
        if let Some((_, offsets)) = &look {
            loader.override_global("LOOK_OFFSETS", offsets, true);
        }
        if let Some(offsets) = &files {
            loader.override_global("FILE_OFFSETS", offsets, true);
        }
        for map in ["CPU_IDLE", "CPU_FREQUENCY", "NEXT_IN_POLICY", "EVIDENCE", "RINGS"] {
            loader.map_max_entries(map, cpus);
        }
        let table_sizes = TableSizes::new(options.map_memory, cpus);
        for (map, entries) in table_sizes.maps() {
            loader.map_max_entries(map, entries);
        }
        // The rest is for totals of any of the application's phases.
        let slot_totals = table_sizes.entries(Table::Totals) / 4 * 3;
        loader.override_global("SLOT_TOTALS", &slot_totals, true);
        let mut ebpf = loader.load(OBJECT).map_err(|error| refused(&error))?;
        let rings = make_rings(&mut ebpf, cpus, page)?;
        let statistics = enable_stats(Stats::RunTime).ok();
        let mut kernel = Self {
            ebpf,
            cpus,
            table_sizes,
            _statistics: statistics,
            follows_forks: fork_offset.is_some(),
            looks_with: look.map(|(program, _)| program),
            takedown_step,
            reads_limits: limits.is_some(),
            files,
            sched,
            waits_for_pages: options.may_wait_for_pages,
            mark_links: Vec::new(),
            write_links: Vec::new(),
            power_links: Vec::new(),
        };
        kernel.load_programs()?;
        Ok((kernel, rings))
    }

    fn load_programs(&mut self) -> Result<(), KernelError> {
        for name in ["cpu_idle", "cpu_frequency", "cpuhp_exit", "process_exec", "process_exit"] {
            self.raw_tracepoint(name)?.load().map_err(|error| refused(&error))?;
        }
        if let Some(program) = self.looks_with
            && self.raw_tracepoint(program)?.load().is_err()
        {
            // Without it the first event of a CPU tells what it did before.
            self.looks_with = None;
        }
        self.tracepoint("process_fork")?.load().map_err(|error| refused(&error))
    }

    /// How many CPUs the machine can have: the length of every table by CPU.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// Attaches a program on power events to a raw tracepoint; it goes with [`Kernel::detach_power`].
    pub(super) fn attach_raw(&mut self, program: &'static str, point: &str) -> Result<(), KernelError> {
        self.load_raw(program)?;
        let link = self.raw_tracepoint(program)?.attach(point).map_err(attach_error(point))?;
        self.power_links.push((program, link));
        Ok(())
    }

    /// Loads a program on a raw tracepoint, if it is not yet.
    pub(super) fn load_raw(&mut self, program: &'static str) -> Result<(), KernelError> {
        let raw = self.raw_tracepoint(program)?;
        if raw.fd().is_err() {
            raw.load().map_err(|error| refused(&error))?;
        }
        Ok(())
    }

    /// Loads a program on a tracepoint, and attaches it; it stays until the end.
    pub(super) fn attach_event(
        &mut self,
        program: &'static str,
        group: &str,
        event: &str,
    ) -> Result<(), KernelError> {
        let tracepoint = self.tracepoint(program)?;
        tracepoint.load().map_err(|error| refused(&error))?;
        tracepoint.attach(group, event).map(drop).map_err(attach_error(event))
    }

    /// Whether it is known where the fields of `cpu_frequency_limits` stand.
    pub(super) fn reads_limits(&self) -> bool {
        self.reads_limits
    }

    /// The program that looks at CPUs, where one can.
    pub(super) fn looks_with(&self) -> Option<&'static str> {
        self.looks_with
    }

    /// Whether it is known where the kernel keeps open files.
    pub(super) fn sees_files(&self) -> bool {
        self.files.is_some()
    }

    /// Where the programs on context switches find what they read.
    pub(super) fn sched_offsets(&self) -> SchedOffsets {
        self.sched
    }

    /// The step that takes a CPU down, as [`hotplug::takedown_step`] found it.
    pub(super) fn takedown_step(&self) -> u32 {
        self.takedown_step
    }

    /// Attaches the program that looks at writes to the system calls; it goes with [`Kernel::detach_marks`].
    pub(super) fn attach_system_calls(&mut self) -> Result<(), KernelError> {
        const POINT: &str = "sys_enter";
        self.load_raw(writes::PROGRAM)?;
        let link = self.raw_tracepoint(writes::PROGRAM)?.attach(POINT).map_err(attach_error(POINT))?;
        self.write_links.push(link);
        Ok(())
    }

    /// Takes the program that looks at writes away.
    pub(super) fn detach_writes(&mut self) {
        for link in std::mem::take(&mut self.write_links) {
            // A link that is gone already is what is wanted.
            let _ = self.raw_tracepoint(writes::PROGRAM).map(|program| program.detach(link));
        }
    }

    /// Takes the power programs away. The kernel lets that take some milliseconds.
    pub(crate) fn detach_power(&mut self) {
        for (program, link) in std::mem::take(&mut self.power_links) {
            let _ = self.raw_tracepoint(program).map(|program| program.detach(link));
        }
    }

    /// Attaches to exec and exit, and to fork when the kernel describes it; returns whether forks are followed.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn attach_process_events(&mut self) -> Result<bool, KernelError> {
        self.raw_tracepoint("process_exec")?
            .attach("sched_process_exec")
            .map_err(attach_error("sched_process_exec"))?;
        self.raw_tracepoint("process_exit")?
            .attach("sched_process_exit")
            .map_err(attach_error("sched_process_exit"))?;
        if self.follows_forks {
            self.tracepoint("process_fork")?
                .attach("sched", "sched_process_fork")
                .map_err(attach_error("sched_process_fork"))?;
        }
        Ok(self.follows_forks)
    }

    /// Tells the programs what the name of an interface call means.
    ///
    /// # Errors
    /// When the table is full.
    pub(crate) fn add_meaning(&mut self, name: u64, meaning: Meaning) -> Result<(), KernelError> {
        let map = self.ebpf.map_mut("MEANINGS").ok_or(KernelError::Missing("map MEANINGS"))?;
        let mut meanings: HashMap<_, u64, Meaning> =
            map.try_into().map_err(map_error("use the table of interface calls"))?;
        meanings.insert(name, meaning, 0).map_err(map_error("add to the table of interface calls"))
    }

    /// Counts the marks of a process from now on.
    ///
    /// # Errors
    /// When the table of targets is full.
    pub(crate) fn add_target(&mut self, pid: u32) -> Result<(), KernelError> {
        self.set_target(pid, TARGET)
    }

    /// How a process is traced: [`TARGET`], or [`TARGET_TO_HOLD`](nntrace_common::record::TARGET_TO_HOLD).
    ///
    /// # Errors
    /// When the table of targets is full.
    pub(crate) fn set_target(&mut self, pid: u32, how: u8) -> Result<(), KernelError> {
        let map = self.ebpf.map_mut("TARGETS").ok_or(KernelError::Missing("map TARGETS"))?;
        let mut targets: HashMap<_, u32, u8> =
            map.try_into().map_err(map_error("use the table of targets"))?;
        targets.insert(pid, how, 0).map_err(map_error("add to the table of targets"))
    }

    /// Counts the marks of a process no more.
    ///
    /// # Errors
    /// When the table cannot be used.
    pub(crate) fn remove_target(&mut self, pid: u32) -> Result<(), KernelError> {
        let map = self.ebpf.map_mut("TARGETS").ok_or(KernelError::Missing("map TARGETS"))?;
        let mut targets: HashMap<_, u32, u8> =
            map.try_into().map_err(map_error("use the table of targets"))?;
        // One that is not there any more is what is wanted.
        let _ = targets.remove(&pid);
        Ok(())
    }

    /// Runs a program on a raw tracepoint as if the event had come with these arguments, of which there are at most
    /// twelve: on the CPU `on`, which it wakes, or on the one where this process runs.
    pub(super) fn run_program(
        &mut self,
        name: &'static str,
        on: Option<u32>,
        arguments: &[u64],
    ) -> Result<(), KernelError> {
        use aya::programs::{RawTracePointRunOptions, TestRun as _};
        let mut options = RawTracePointRunOptions::new();
        options.args.iter_mut().zip(arguments).for_each(|(slot, argument)| *slot = *argument);
        options.cpu = on;
        self.raw_tracepoint(name)?.test_run(options).map(|_| ()).map_err(attach_error(name))
    }

    /// The loaded object, for the readers of its maps.
    pub(super) fn ebpf(&self) -> &Ebpf {
        &self.ebpf
    }

    pub(super) fn array<V: aya::Pod>(
        &mut self,
        name: &'static str,
    ) -> Result<Array<&mut MapData, V>, KernelError> {
        let map = self.ebpf.map_mut(name).ok_or(KernelError::Missing(name))?;
        map.try_into().map_err(map_error("use a table"))
    }

    pub(super) fn uprobe(&mut self, name: &'static str) -> Result<&mut UProbe, KernelError> {
        let program = self.ebpf.program_mut(name).ok_or(KernelError::Missing(name))?;
        program.try_into().map_err(|_| KernelError::Missing(name))
    }

    fn raw_tracepoint(&mut self, name: &'static str) -> Result<&mut RawTracePoint, KernelError> {
        let program = self.ebpf.program_mut(name).ok_or(KernelError::Missing(name))?;
        program.try_into().map_err(|_| KernelError::Missing(name))
    }

    fn tracepoint(&mut self, name: &'static str) -> Result<&mut TracePoint, KernelError> {
        let program = self.ebpf.program_mut(name).ok_or(KernelError::Missing(name))?;
        program.try_into().map_err(|_| KernelError::Missing(name))
    }
}

/// The programs on power events.
pub(super) const POWER_PROGRAMS: [&str; 7] =
    ["cpu_idle", "cpu_frequency", "cpuhp_exit", "psci_enter", "psci_exit", "idle_miss", "suspend_resume"];

/// Makes a ring for each CPU, and puts it where the programs look for it.
fn make_rings(ebpf: &mut Ebpf, cpus: u32, bytes: u32) -> Result<Vec<RingBuf<MapData>>, KernelError> {
    let map = ebpf.map_mut("RINGS").ok_or(KernelError::Missing("map RINGS"))?;
    let mut slots: ArrayOfMaps<_> = map.try_into().map_err(map_error("use the table of rings"))?;
    (0..cpus)
        .map(|cpu| {
            let ring = aya_obj::Map::new_from_params(
                aya_obj::generated::bpf_map_type::BPF_MAP_TYPE_RINGBUF as u32,
                0,
                0,
                bytes,
                0,
            );
            let ring =
                MapData::create(ring, &format!("ring{cpu}"), None).map_err(map_error("make a ring"))?;
            slots.set(cpu, &ring, 0).map_err(map_error("put a ring into its table"))?;
            aya::maps::Map::RingBuf(ring).try_into().map_err(map_error("map a ring"))
        })
        .collect()
}

/// The size that the kernel takes: a power of two of whole pages.
fn rounded_ring(bytes: u32) -> u32 {
    bytes.clamp(4096, 1 << 30).next_power_of_two()
}

fn possible_cpus() -> Result<u32, KernelError> {
    const PATH: &str = "/sys/devices/system/cpu/possible";
    let text = fs::read_to_string(PATH).map_err(|source| KernelError::File { path: PATH.into(), source })?;
    let cpus = cpu_list::parse(&text).ok().and_then(|cpus| cpus.last().copied());
    Ok(cpus.map_or(1, |last| last + 1))
}

fn map_error(what: &'static str) -> impl Fn(MapError) -> KernelError {
    move |source| KernelError::Map { what, source }
}

pub(super) fn attach_error(point: &str) -> impl Fn(ProgramError) -> KernelError {
    let point = point.to_owned();
    move |error| match privilege::missing(&error) {
        Some(text) => KernelError::Privilege(text),
        None => KernelError::Attach { point: point.clone(), reason: privilege::causes(&error) },
    }
}

fn refused(error: &(dyn std::error::Error + 'static)) -> KernelError {
    match privilege::missing(error) {
        Some(text) => KernelError::Privilege(text),
        None => KernelError::Unsupported {
            release: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().into(),
            reason: privilege::causes(error),
        },
    }
}
