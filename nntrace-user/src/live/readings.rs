//! Reading the kernel's maps and statistics.

use std::collections::HashMap;

use aya::{
    Ebpf,
    maps::{Array, MapData, PerCpuArray, PerCpuHashMap},
    programs::Program,
};
use nntrace_common::{
    app_events::{AppEvent, AppEventCounts, ExecutionCount, ExecutionKey},
    counts::{EventCounts, Table},
    diagnostic::{DiagnosticCount, DiagnosticKind},
    evidence::Stay,
    mark,
    power::{Activity, CpuFrequency, CpuIdle},
    record::{FrequencyKey, FrequencyTotal, NameText, RingCount, Thread, Total, TotalKey},
    stack::PathStep,
};

use super::{
    functions::MARK_PROGRAMS,
    kernel::{Kernel, KernelError, POWER_PROGRAMS},
};
use crate::{
    model::{
        names::Names,
        power::CpuReading,
        stacks::{Paths, Totals},
    },
    report::snapshot::TableUse,
};

/// How often programs ran, and how long in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProgramCost {
    /// Runs.
    pub runs: u64,
    /// Time, ns.
    pub ns: u64,
}

impl ProgramCost {
    /// Time of one run, ns; `None` before the first.
    #[must_use]
    pub(crate) fn per_run(&self) -> Option<u64> {
        self.ns.checked_div(self.runs)
    }
}

impl Kernel {
    /// A table of the loaded object.
    pub(super) fn table<'a, M>(&'a self, name: &'static str) -> Result<M, KernelError>
    where
        M: TryFrom<&'a aya::maps::Map, Error = aya::maps::MapError>,
    {
        table(self.ebpf(), name)
    }

    /// The exact totals of marks as they are now.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_totals(&self) -> Result<Totals, KernelError> {
        let map: PerCpuHashMap<_, TotalKey, Total> = table(self.ebpf(), "TOTALS")?;
        let mut totals = Totals::default();
        for entry in &map {
            // An entry that goes while it is read was of no use any more.
            let Ok((key, values)) = entry else { continue };
            let mut sum = Total::default();
            for value in values.iter() {
                sum.add(value);
            }
            totals.insert(key, sum);
        }
        Ok(totals)
    }

    /// The changes of the application's phases behind the one with this number, in their order.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_app_events(&self, known: u32) -> Result<Vec<AppEvent>, KernelError> {
        let last = self.read_app_event_counts()?.last;
        let mut events = Vec::new();
        if last > u64::from(known) {
            let map: aya::maps::HashMap<_, u32, AppEvent> = table(self.ebpf(), "APP_EVENTS")?;
            for number in known + 1..=last as u32 {
                events.push(map.get(&number, 0).map_err(KernelError::reading)?);
            }
        }
        Ok(events)
    }

    /// How many changes of the application's phases there were.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_app_event_counts(&self) -> Result<AppEventCounts, KernelError> {
        let counts: Array<_, AppEventCounts> = table(self.ebpf(), "APP_EVENT_COUNTS")?;
        counts.get(&0, 0).map_err(KernelError::reading)
    }

    /// Processes that have shown that they are drivers.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_drivers(&self) -> Result<Vec<u32>, KernelError> {
        let map: aya::maps::HashMap<_, u32, u8> = table(self.ebpf(), "DRIVERS")?;
        Ok(map.keys().flatten().collect())
    }

    /// Executions by thread and the application's phases.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_executions(&self) -> Result<Vec<(ExecutionKey, ExecutionCount)>, KernelError> {
        let map: aya::maps::HashMap<_, ExecutionKey, ExecutionCount> = table(self.ebpf(), "EXECUTIONS")?;
        Ok(map.iter().flatten().collect())
    }

    /// Adds what the stacks consist of that are not known yet.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_paths(&self, known: &mut Paths) -> Result<(), KernelError> {
        let map: aya::maps::HashMap<_, u64, PathStep> = table(self.ebpf(), "PATHS")?;
        for path in map.keys().flatten() {
            if !known.contains(path)
                && let Ok(step) = map.get(&path, 0)
            {
                known.insert(path, step);
            }
        }
        Ok(())
    }

    /// Keeps the text of a name, if it is not known yet and the kernel has it.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_name(&self, hash: u64, known: &mut Names) -> Result<(), KernelError> {
        if !known.contains(hash) {
            let map: aya::maps::HashMap<_, u64, NameText> = table(self.ebpf(), "NAMES")?;
            if let Ok(text) = map.get(&hash, 0) {
                known.insert(hash, name_of(&text));
            }
        }
        Ok(())
    }

    /// Keeps the texts of the names that are not known yet; returns their hashes.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_names(&self, known: &mut Names) -> Result<Vec<u64>, KernelError> {
        let map: aya::maps::HashMap<_, u64, NameText> = table(self.ebpf(), "NAMES")?;
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

    /// How many interface calls were met before it was known what their names mean.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_unknown_names(&self) -> Result<u64, KernelError> {
        let map: PerCpuArray<_, DiagnosticCount> = table(self.ebpf(), "DIAGNOSTICS")?;
        let values = map.get(&(DiagnosticKind::NameNotYetKnown as u32), 0).map_err(KernelError::reading)?;
        Ok(values.iter().map(|value| value.count).sum())
    }

    /// What each CPU's tables show now.
    ///
    /// A change of frequency moves time from one table to another: when one came while they were read, that time may be in
    /// neither, and they are read again.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub fn read_cpus(&self) -> Result<Vec<CpuReading>, KernelError> {
        const TRIES: usize = 16;
        let mut before = self.frequency_changes()?;
        let mut readings = self.read_cpus_once()?;
        for _ in 0..TRIES {
            let after = self.frequency_changes()?;
            if before == after && before.iter().all(|changes| changes.is_multiple_of(2)) {
                break;
            }
            before = after;
            readings = self.read_cpus_once()?;
        }
        Ok(readings)
    }

    /// What tells, by CPU, whether a change of frequency came or is being told.
    fn frequency_changes(&self) -> Result<Vec<u64>, KernelError> {
        let frequencies: Array<_, CpuFrequency> = table(self.ebpf(), "CPU_FREQUENCY")?;
        let changes =
            (0..self.cpus()).map(|cpu| Ok(frequencies.get(&cpu, 0).map_err(KernelError::reading)?.sequence));
        changes.collect()
    }

    fn read_cpus_once(&self) -> Result<Vec<CpuReading>, KernelError> {
        let frequency_totals: aya::maps::HashMap<_, FrequencyKey, FrequencyTotal> =
            table(self.ebpf(), "FREQUENCY_TOTALS")?;
        let mut by_cpu: HashMap<u32, Vec<(FrequencyKey, FrequencyTotal)>> = HashMap::new();
        for (key, total) in frequency_totals.iter().flatten() {
            by_cpu.entry(key.cpu).or_default().push((key, total));
        }
        let idles: Array<_, CpuIdle> = table(self.ebpf(), "CPU_IDLE")?;
        let frequencies: Array<_, CpuFrequency> = table(self.ebpf(), "CPU_FREQUENCY")?;
        (0..self.cpus())
            .map(|cpu| {
                Ok(CpuReading {
                    cpu,
                    idle: consistent(&idles, cpu)?,
                    frequency: frequencies.get(&cpu, 0).map_err(KernelError::reading)?,
                    slices: by_cpu.remove(&cpu).unwrap_or_default(),
                })
            })
            .collect()
    }

    /// What each CPU does.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_activities(&self) -> Result<Vec<(u32, Activity)>, KernelError> {
        let idles: Array<_, CpuIdle> = table(self.ebpf(), "CPU_IDLE")?;
        (0..self.cpus()).map(|cpu| Ok((cpu, consistent(&idles, cpu)?.activity()))).collect()
    }

    /// How often each kind of oddity was met, with the first example over all CPUs.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub fn read_diagnostics(&self) -> Result<Vec<(DiagnosticKind, DiagnosticCount)>, KernelError> {
        let map: PerCpuArray<_, DiagnosticCount> = table(self.ebpf(), "DIAGNOSTICS")?;
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

    /// Hands each thread that has marks to `visit`, with its id.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn visit_threads(&self, mut visit: impl FnMut(u32, &Thread)) -> Result<(), KernelError> {
        let threads: aya::maps::HashMap<_, u32, Thread> = table(self.ebpf(), "THREADS")?;
        for (tid, thread) in threads.iter().flatten() {
            visit(tid, &thread);
        }
        Ok(())
    }

    /// Power records that were lost so far, by the CPU that they were about.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub fn read_lost(&self) -> Result<Vec<u32>, KernelError> {
        let idles: Array<_, CpuIdle> = table(self.ebpf(), "CPU_IDLE")?;
        (0..self.cpus()).map(|cpu| Ok(idles.get(&cpu, 0).map_err(KernelError::reading)?.lost)).collect()
    }

    /// What each CPU's programs did with their ring.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub fn read_ring_counts(&self) -> Result<Vec<RingCount>, KernelError> {
        let map: PerCpuArray<_, RingCount> = table(self.ebpf(), "RING_COUNTS")?;
        Ok(map.get(&0, 0).map_err(KernelError::reading)?.iter().copied().collect())
    }

    /// Runs and time of these programs, by the kernel's statistics.
    pub(super) fn read_cost(&self, programs: &[&str]) -> ProgramCost {
        cost(self.ebpf(), programs)
    }

    /// Runs and time of the mark programs and of the power programs, by the kernel's statistics; of system calls only
    /// those that were marks. Nothing where this user may not switch the statistics on.
    #[must_use]
    pub(crate) fn read_costs(&self) -> (ProgramCost, ProgramCost) {
        let mut marks = cost(self.ebpf(), &MARK_PROGRAMS);
        if let Ok(writes) = self.read_write_cost() {
            marks.runs += writes.runs;
            marks.ns += writes.ns;
        }
        (marks, cost(self.ebpf(), &POWER_PROGRAMS))
    }

    /// Events, as the programs themselves count them.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub fn read_event_counts(&self) -> Result<EventCounts, KernelError> {
        let map: PerCpuArray<_, EventCounts> = table(self.ebpf(), "EVENT_COUNTS")?;
        let mut sum = EventCounts::default();
        map.get(&0, 0).map_err(KernelError::reading)?.iter().for_each(|counts| sum.add(counts));
        Ok(sum)
    }

    /// How full the tables of marks are now.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_table_uses(&self, counts: &EventCounts) -> Result<Vec<TableUse>, KernelError> {
        use aya::maps::HashMap;
        let ebpf = self.ebpf();
        let entries = |of: Table| -> Result<usize, KernelError> {
            Ok(match of {
                Table::Threads => table::<HashMap<_, u32, Thread>>(ebpf, "THREADS")?.keys().flatten().count(),
                Table::Totals => {
                    table::<PerCpuHashMap<_, TotalKey, Total>>(ebpf, "TOTALS")?.keys().flatten().count()
                }
                Table::Names => table::<HashMap<_, u64, NameText>>(ebpf, "NAMES")?.keys().flatten().count(),
                Table::Paths => table::<HashMap<_, u64, PathStep>>(ebpf, "PATHS")?.keys().flatten().count(),
            })
        };
        let uses = Table::ALL.into_iter().map(|table| {
            Ok(TableUse {
                table: table.name().into(),
                entries: entries(table)? as u64,
                capacity: u64::from(self.table_sizes.entries(table)),
                turned_away: counts.turned_away[table as usize],
            })
        });
        uses.collect()
    }

    fn read_write_cost(&self) -> Result<ProgramCost, KernelError> {
        let map: PerCpuArray<_, Stay> = table(self.ebpf(), "WRITE_COST")?;
        let stays = map.get(&0, 0).map_err(KernelError::reading)?;
        Ok(stays.iter().fold(ProgramCost::default(), |sum, stay| ProgramCost {
            runs: sum.runs + stay.count,
            ns: sum.ns + stay.ns,
        }))
    }
}

/// Reads an entry until no writer was at work meanwhile.
fn consistent(idles: &Array<&MapData, CpuIdle>, cpu: u32) -> Result<CpuIdle, KernelError> {
    const TRIES: usize = 16;
    let mut reading = idles.get(&cpu, 0).map_err(KernelError::reading)?;
    for _ in 0..TRIES {
        let again = idles.get(&cpu, 0).map_err(KernelError::reading)?;
        if reading.sequence.is_multiple_of(2) && again.sequence == reading.sequence {
            break;
        }
        reading = again;
    }
    Ok(reading)
}

/// The name in a mark that was kept for it.
fn name_of(text: &NameText) -> &[u8] {
    let used = (text.len as usize).min(text.payload.len());
    let name_at = u16::try_from(text.name_at).unwrap_or(u16::MAX);
    mark::name(&text.payload[..used], name_at)
}

fn cost(ebpf: &Ebpf, names: &[&str]) -> ProgramCost {
    let infos = names.iter().filter_map(|name| match ebpf.program(name)? {
        Program::UProbe(program) => program.info().ok(),
        Program::RawTracePoint(program) => program.info().ok(),
        Program::TracePoint(program) => program.info().ok(),
        _ => None,
    });
    infos.fold(ProgramCost::default(), |sum, info| ProgramCost {
        runs: sum.runs + info.run_count(),
        ns: sum.ns + u64::try_from(info.run_time().as_nanos()).unwrap_or(u64::MAX),
    })
}

fn table<'a, M>(ebpf: &'a Ebpf, name: &'static str) -> Result<M, KernelError>
where
    M: TryFrom<&'a aya::maps::Map, Error = aya::maps::MapError>,
{
    let map = ebpf.map(name).ok_or(KernelError::Missing(name))?;
    map.try_into().map_err(KernelError::reading)
}
