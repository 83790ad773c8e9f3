//! The programs on functions whose calls are recorded, and their tables.

use aya::{
    EbpfLoader,
    maps::{Array, HashMap, PerCpuArray},
};
use nntrace_common::calls::{CallCounts, CallKey, CallProbe, CallRecord, MAX_CALL_PROBES};

use super::{
    Kernel,
    error::KernelError,
    object::Object,
    place_programs::{Place, PlacePrograms},
};
use crate::live::target::{ObjectId, PinnedFile, present_name};

/// Programs at the begin of a function, at its ends, and where handlers of exceptions begin; their forms that may wait for a
/// page first.
const SLEEPABLE: [&str; 3] = ["call_begin_sleepable", "call_end_sleepable", "call_caught"];
const PLAIN: [&str; 3] = ["call_begin", "call_end", "call_caught"];

/// Programs on the end of a thread and on exec.
const EVENTS: [(&str, &str); 2] =
    [("call_thread_end", "sched_process_exit"), ("call_exec", "sched_process_exec")];

/// Tables that are of use only where calls are recorded.
const TABLES: [&str; 3] = ["CALL_PROBES", "CALL_FRAMES", "OPEN_CALLS"];

/// Places of a function in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::live) struct CallPlaces {
    /// Number of the function.
    pub number: u32,
    /// Offset of the probed instruction at the begin.
    pub entry: u64,
    /// Offsets of its return instructions.
    pub returns: Vec<u64>,
    /// Offsets of the jumps to other functions by which it always ends where it reaches them.
    pub jumps: Vec<u64>,
}

/// Programs on functions whose calls are recorded.
pub(super) struct CallPrograms {
    programs: PlacePrograms,
    may_wait: bool,
    /// Number of functions described so far.
    described: u32,
}

impl CallPrograms {
    pub(super) fn new(may_wait: bool) -> Self {
        let names = if may_wait { &SLEEPABLE } else { &PLAIN };
        Self { programs: PlacePrograms::new(names, &PLAIN), may_wait, described: 0 }
    }

    /// Makes the tables as small as can be where no calls are recorded.
    pub(super) fn configure(loader: &mut EbpfLoader<'_>, are_recorded: bool) {
        if !are_recorded {
            for table in TABLES {
                loader.map_max_entries(table, 1);
            }
        }
    }

    /// Whether a thread may be waiting for a page in one of the programs.
    pub(super) fn may_stall(&self) -> bool {
        self.may_wait && self.programs.are_attached()
    }

    /// Detaches all probes.
    pub(super) fn detach(&mut self, object: &mut Object) {
        self.programs.detach(object);
    }

    /// Detaches the probes on a file.
    pub(super) fn detach_file(&mut self, object: &mut Object, file: ObjectId) {
        self.programs.detach_file(object, file);
    }
}

impl Kernel {
    /// Attaches to the ends of threads and to exec, which end open calls.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(in crate::live) fn attach_call_events(&mut self) -> Result<(), KernelError> {
        for (program, point) in EVENTS {
            self.object.load_raw(program)?;
            self.object.attach_raw(program, point)?;
        }
        Ok(())
    }

    /// Describes a function to the programs; returns its number, `None` where there is no room for another one.
    ///
    /// # Errors
    /// When the table cannot be written.
    pub(in crate::live) fn add_call_probe(&mut self, probe: CallProbe) -> Result<Option<u32>, KernelError> {
        let number = self.calls.described;
        if number as usize >= MAX_CALL_PROBES {
            return Ok(None);
        }
        let mut probes: Array<_, CallProbe> = self.object.array("CALL_PROBES")?;
        probes.set(number, probe, 0).map_err(KernelError::writing)?;
        self.calls.described += 1;
        Ok(Some(number))
    }

    /// Probes a function that is described, in every process that maps its file; only calls of targets count.
    ///
    /// # Errors
    /// When the programs do not load, or the kernel refuses one of the places.
    pub(in crate::live) fn attach_call(
        &mut self,
        file: &PinnedFile,
        places: &CallPlaces,
    ) -> Result<(), KernelError> {
        let Self { calls: CallPrograms { programs, .. }, object, probed_files, .. } = self;
        probed_files.add(file);
        let cookie = u64::from(places.number);
        let end = |is_jump: u64| move |&offset: &u64| Place { offset, cookie: cookie << 1 | is_jump };
        // Ends first: a call without its end would stay open, an end without a begin is ignored.
        let ends: Vec<Place> =
            places.returns.iter().map(end(0)).chain(places.jumps.iter().map(end(1))).collect();
        let mut refused = programs.attach(object, 1, file, &ends, false)?;
        if refused.is_empty() {
            refused = programs.attach(object, 0, file, &[Place { offset: places.entry, cookie }], false)?;
        }
        match refused.pop() {
            None => Ok(()),
            Some((place, reason)) => {
                let point = format!("offset {:#x} of {}", place.offset, present_name(file).display());
                Err(KernelError::Attach { point, reason })
            }
        }
    }

    /// As [`Kernel::attach_caught`], for calls.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(in crate::live) fn attach_call_caught(
        &mut self,
        file: &PinnedFile,
        offset: u64,
        pushed: u64,
    ) -> Result<(), KernelError> {
        let Self { calls: CallPrograms { programs, .. }, object, .. } = self;
        match programs.attach(object, 2, file, &[Place { offset, cookie: pushed }], false)?.pop() {
            None => Ok(()),
            Some((_, reason)) => {
                Err(KernelError::Attach { point: "handlers of exceptions".to_owned(), reason })
            }
        }
    }

    /// Number of functions whose calls are recorded.
    pub(in crate::live) fn call_probes(&self) -> usize {
        self.calls.described as usize
    }

    /// Reads the calls that are open, in the order of their begins.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(in crate::live) fn read_open_calls(&self) -> Result<Vec<CallRecord>, KernelError> {
        let map: HashMap<_, CallKey, CallRecord> = self.object.table("OPEN_CALLS")?;
        let mut calls: Vec<CallRecord> = map.iter().flatten().map(|(_, call)| call).collect();
        calls.sort_by_key(|call| (call.begin, call.tid));
        Ok(calls)
    }

    /// Reads the counts of calls.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(in crate::live) fn read_call_counts(&self) -> Result<CallCounts, KernelError> {
        let map: PerCpuArray<_, CallCounts> = self.object.table("CALL_COUNTS")?;
        let mut sum = CallCounts::default();
        map.get(&0, 0).map_err(KernelError::reading)?.iter().for_each(|counts| sum.add(counts));
        Ok(sum)
    }
}
