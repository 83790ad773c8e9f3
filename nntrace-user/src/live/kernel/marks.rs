//! The programs' tables of marks: totals, names, threads, the application's phases.

use aya::{
    EbpfLoader,
    maps::{Array, HashMap, PerCpuArray, PerCpuHashMap},
};
use nntrace_common::{
    app_events::{AppEvent, AppEventCounts, ExecutionCount, ExecutionKey},
    async_runs::{ASYNC_RUN, ASYNC_RUN_UNSEEN},
    diagnostic::{DiagnosticCount, DiagnosticKind},
    hidl_calls::{EXECUTION_CREATE, Meaning},
    mark,
    record::{NameText, Thread, Total, TotalKey},
    stack::PathStep,
};

use super::{
    Kernel,
    error::{KernelError, map_error},
};
use crate::model::{
    function_names::Names,
    stacks::{Paths, Totals},
};

/// Globals of the programs on marks.
pub(super) struct MarkGlobals {
    create_name: u64,
    async_run_name: u64,
    async_run_unseen_name: u64,
    emit_begins: u32,
}

impl MarkGlobals {
    /// Creates the globals, with or without begins that carry nothing but layer, phase and name.
    pub(super) fn new(emit_begins: bool) -> Self {
        Self {
            create_name: mark::name_hash(EXECUTION_CREATE, 0),
            async_run_name: mark::name_hash(ASYNC_RUN, 0),
            async_run_unseen_name: mark::name_hash(ASYNC_RUN_UNSEEN, 0),
            emit_begins: u32::from(emit_begins),
        }
    }

    pub(super) fn configure<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        loader.override_global("CREATE_NAME", &self.create_name, true);
        loader.override_global("ASYNC_RUN_NAME", &self.async_run_name, true);
        loader.override_global("ASYNC_RUN_UNSEEN_NAME", &self.async_run_unseen_name, true);
        loader.override_global("EMIT_BEGINS", &self.emit_begins, true);
    }
}

impl Kernel {
    /// Sets the meaning of the name of an interface call.
    ///
    /// # Errors
    /// When the table is full.
    pub(crate) fn add_meaning(&mut self, name: u64, meaning: Meaning) -> Result<(), KernelError> {
        let map = self.object.map_mut("MEANINGS").ok_or(KernelError::Missing("map MEANINGS"))?;
        let mut meanings: HashMap<_, u64, Meaning> =
            map.try_into().map_err(map_error("use the table of interface calls"))?;
        meanings.insert(name, meaning, 0).map_err(map_error("add to the table of interface calls"))
    }

    /// Reads the current exact totals of marks.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_totals(&self) -> Result<Totals, KernelError> {
        let map: PerCpuHashMap<_, TotalKey, Total> = self.object.table("TOTALS")?;
        let mut totals = Totals::default();
        for entry in &map {
            // An entry that is removed while it is read is no longer needed.
            let Ok((key, values)) = entry else { continue };
            let mut sum = Total::default();
            for value in values.iter() {
                sum.add(value);
            }
            totals.insert(key, sum);
        }
        Ok(totals)
    }

    /// Reads the changes of the application's phases after the one with this number, in order.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_app_events(&self, known: u32) -> Result<Vec<AppEvent>, KernelError> {
        let last = self.read_app_event_counts()?.last;
        let mut events = Vec::new();
        if last > u64::from(known) {
            let map: HashMap<_, u32, AppEvent> = self.object.table("APP_EVENTS")?;
            for number in known + 1..=last as u32 {
                events.push(map.get(&number, 0).map_err(KernelError::reading)?);
            }
        }
        Ok(events)
    }

    /// Reads the number of changes of the application's phases.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_app_event_counts(&self) -> Result<AppEventCounts, KernelError> {
        let counts: Array<_, AppEventCounts> = self.object.table("APP_EVENT_COUNTS")?;
        counts.get(&0, 0).map_err(KernelError::reading)
    }

    /// Reads the processes that have turned out to be drivers.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_drivers(&self) -> Result<Vec<u32>, KernelError> {
        self.read_processes("DRIVERS")
    }

    /// Reads the processes that call a driver of the kernel themselves.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_driver_callers(&self) -> Result<Vec<u32>, KernelError> {
        self.read_processes("DRIVER_CALLERS")
    }

    fn read_processes(&self, table: &'static str) -> Result<Vec<u32>, KernelError> {
        let map: HashMap<_, u32, u8> = self.object.table(table)?;
        Ok(map.keys().flatten().collect())
    }

    /// Reads the executions by thread and the application's phases.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_executions(&self) -> Result<Vec<(ExecutionKey, ExecutionCount)>, KernelError> {
        let map: HashMap<_, ExecutionKey, ExecutionCount> = self.object.table("EXECUTIONS")?;
        Ok(map.iter().flatten().collect())
    }

    /// Adds the steps of stacks that are not known yet.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_paths(&self, known: &mut Paths) -> Result<(), KernelError> {
        let map: HashMap<_, u64, PathStep> = self.object.table("PATHS")?;
        for path in map.keys().flatten() {
            if !known.contains(path)
                && let Ok(step) = map.get(&path, 0)
            {
                known.insert(path, step);
            }
        }
        Ok(())
    }

    /// Adds the text of a name, if it is not known yet and the kernel has it.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_name(&self, hash: u64, known: &mut Names) -> Result<(), KernelError> {
        if !known.contains(hash) {
            let map: HashMap<_, u64, NameText> = self.object.table("NAMES")?;
            if let Ok(text) = map.get(&hash, 0) {
                known.insert(hash, name_of(&text));
            }
        }
        Ok(())
    }

    /// Adds the texts of the names that are not known yet; returns their hashes.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_names(&self, known: &mut Names) -> Result<Vec<u64>, KernelError> {
        let map: HashMap<_, u64, NameText> = self.object.table("NAMES")?;
        let mut new = Vec::new();
        for hash in map.keys().flatten() {
            if !known.contains(hash)
                && let Ok(text) = map.get(&hash, 0)
            {
                known.insert(hash, name_of(&text));
                new.push(hash);
            }
        }
        Ok(new)
    }

    /// Reads the number of interface calls that were met before the meanings of their names were known.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_unknown_names(&self) -> Result<u64, KernelError> {
        let map: PerCpuArray<_, DiagnosticCount> = self.object.table("DIAGNOSTICS")?;
        let values = map.get(&(DiagnosticKind::NameNotYetKnown as u32), 0).map_err(KernelError::reading)?;
        Ok(values.iter().map(|value| value.count).sum())
    }

    /// Reads the count of each kind of diagnostic, with the first example over all CPUs.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub fn read_diagnostics(&self) -> Result<Vec<(DiagnosticKind, DiagnosticCount)>, KernelError> {
        let map: PerCpuArray<_, DiagnosticCount> = self.object.table("DIAGNOSTICS")?;
        let mut found = Vec::new();
        for kind in DiagnosticKind::ALL {
            let values = map.get(&(kind as u32), 0).map_err(KernelError::reading)?;
            let count = values.iter().map(|value| value.count).sum();
            let first = values.iter().filter(|value| value.count > 0).min_by_key(|value| value.first_ns);
            if let Some(first) = first {
                found.push((kind, DiagnosticCount { count, ..*first }));
            }
        }
        Ok(found)
    }

    /// Calls `visit` for each thread that has marks, with its id.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn visit_threads(&self, mut visit: impl FnMut(u32, &Thread)) -> Result<(), KernelError> {
        let threads: HashMap<_, u32, Thread> = self.object.table("THREADS")?;
        for (tid, thread) in threads.iter().flatten() {
            visit(tid, &thread);
        }
        Ok(())
    }
}

/// Returns the name in the text that was kept for it.
fn name_of(text: &NameText) -> &[u8] {
    let used = (text.len as usize).min(text.payload.len());
    let name_at = u16::try_from(text.name_at).unwrap_or(u16::MAX);
    mark::name(&text.payload[..used], name_at)
}
