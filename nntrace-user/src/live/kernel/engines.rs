//! The programs on functions of engines, and the tables that describe their probes.

use std::{
    collections::HashSet,
    path::Path,
    time::{Duration, Instant},
};

use aya::maps::{Array, HashMap};
use nntrace_common::{
    async_runs::{AsyncRun, AsyncRunKey},
    engine::{EngineProbe, EnumKey, MAX_PROBES, ObjectNames},
    mark::BUFFER_BYTES,
    record::NameText,
    time_count::TimeCount,
};

use super::{
    Kernel,
    error::{KernelError, attach_error, map_error},
    object::Object,
    place_programs::{Place, PlacePrograms},
};
use crate::live::target::{ObjectId, PinnedFile};

/// Program at the entry of a function, at its return instructions, and after its return; the last one is where handlers of
/// exceptions begin.
const PROGRAMS: [&str; 4] = ["engine_begin", "engine_return", "engine_returned", "engine_caught"];
/// Place of the program that runs after the return.
const AFTER_RETURN: usize = 2;

/// End of a function, as it is probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::live) enum ReturnPlaces {
    /// Offsets of its return instructions in the file.
    Instructions(Vec<u64>),
    /// A return probe: nothing in the function throws, is cancelled or jumps away.
    AfterReturn,
    /// No probe: the stack pointer alone shows the end.
    Unseen,
}

/// Places of a probe in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::live) struct ProbePlaces {
    /// Number of the probe, from [`Kernel::add_engine_probe`].
    pub number: u32,
    /// Offset of the probed instruction at the begin.
    pub entry: u64,
    /// End of the function.
    pub returns: ReturnPlaces,
}

/// Places of a function of our own whose probes are tried.
#[derive(Clone, Copy, Debug)]
pub(in crate::live) struct CallPlaces {
    /// Offset of its first instruction in the file.
    pub entry: u64,
    /// Offset of its return instruction.
    pub end: u64,
}

/// Programs on functions of engines.
pub(super) struct EnginePrograms {
    /// Number of probes described so far.
    described: u32,
    programs: PlacePrograms,
    /// Functions that were probed, by number.
    attached: HashSet<u32>,
}

impl Default for EnginePrograms {
    fn default() -> Self {
        Self { described: 0, programs: PlacePrograms::new(&PROGRAMS, &PROGRAMS), attached: HashSet::new() }
    }
}

impl EnginePrograms {
    /// Detaches all probes. Those at the begins, attached last, go first: a section without an end would stay open.
    pub(super) fn detach(&mut self, object: &mut Object) {
        self.programs.detach(object);
    }

    /// Detaches the probes on a file.
    pub(super) fn detach_file(&mut self, object: &mut Object, file: ObjectId) {
        self.programs.detach_file(object, file);
    }

    /// Returns runs and time of the programs.
    pub(super) fn cost(&self, object: &Object) -> TimeCount {
        self.programs.cost(object)
    }

    fn attach(
        &mut self,
        object: &mut Object,
        which: usize,
        file: &PinnedFile,
        places: &[Place],
    ) -> Result<Vec<(Place, String)>, KernelError> {
        self.programs.attach(object, which, file, places, which == AFTER_RETURN)
    }
}

impl Kernel {
    /// Describes a probe to the programs; returns its number. `values` are names of numbers, by their hash.
    ///
    /// # Errors
    /// When there is no room for another one.
    pub(in crate::live) fn add_engine_probe(
        &mut self,
        probe: EngineProbe,
        values: impl IntoIterator<Item = (u32, u64)>,
    ) -> Result<u32, KernelError> {
        let number = self.engines.described;
        if number as usize >= MAX_PROBES {
            return Err(KernelError::Attach {
                point: "another function of an engine".to_owned(),
                reason: format!(
                    "{MAX_PROBES} are probed already: --engine-level run, or --engine, probes fewer"
                ),
            });
        }
        let mut probes: Array<_, EngineProbe> = self.object.array("ENGINE_PROBES")?;
        probes.set(number, probe, 0).map_err(KernelError::writing)?;
        let map = self.object.map_mut("ENGINE_ENUMS").ok_or(KernelError::Missing("map ENGINE_ENUMS"))?;
        let mut names: HashMap<_, EnumKey, u64> =
            map.try_into().map_err(map_error("use the table of an engine's names"))?;
        for (value, name) in values {
            names
                .insert(EnumKey { probe: number, value }, name, 0)
                .map_err(map_error("add to the table of an engine's names"))?;
        }
        self.engines.described += 1;
        Ok(number)
    }

    /// Forgets the asynchronous executions of a process that ended, or runs another program: one with the same number may have an
    /// object at the same address.
    pub(crate) fn forget_async_runs(&mut self, pid: u32) {
        let Some(map) = self.object.map_mut("ASYNC_RUNS") else { return };
        let Ok(mut runs) = HashMap::<_, AsyncRunKey, AsyncRun>::try_from(map) else { return };
        let of_process: Vec<AsyncRunKey> = runs.keys().flatten().filter(|key| key.tgid == pid).collect();
        for key in of_process {
            // One that has been counted meanwhile is gone.
            let _ = runs.remove(&key);
        }
    }

    /// Gives the programs the text of a name that they do not read themselves.
    ///
    /// # Errors
    /// When the table of names is full.
    pub(in crate::live) fn add_name(&mut self, hash: u64, name: &[u8]) -> Result<(), KernelError> {
        let map = self.object.map_mut("NAMES").ok_or(KernelError::Missing("map NAMES"))?;
        let mut names: HashMap<_, u64, NameText> =
            map.try_into().map_err(map_error("use the table of names"))?;
        let mut text = NameText { len: 0, name_at: 0, payload: [0; BUFFER_BYTES] };
        // The last word stays zero, as in the programs.
        let len = name.len().min(nntrace_common::mark::MARK_BYTES - 1);
        text.payload[..len].copy_from_slice(&name[..len]);
        text.len = u32::try_from(len).unwrap_or(0);
        names.insert(hash, text, 0).map_err(map_error("add to the table of names"))
    }

    /// Probes functions of a file that are described, in every process that maps it; only those of targets count.
    /// Returns what the kernel refuses: the number of the probe, and the reason.
    ///
    /// # Errors
    /// When the programs do not load: before Linux 5.15 probes have no cookies.
    pub(in crate::live) fn attach_engine(
        &mut self,
        file: &PinnedFile,
        probes: &[ProbePlaces],
    ) -> Result<Vec<(u32, String)>, KernelError> {
        let Self { engines, object, probed_files, .. } = self;
        probed_files.add(file);
        // Ends first: a section without an end would stay open, an end without a begin is ignored.
        let returns = probes.iter().flat_map(|probe| {
            let instructions = match &probe.returns {
                ReturnPlaces::Instructions(offsets) => offsets.as_slice(),
                _ => &[],
            };
            instructions.iter().map(|&offset| Place { offset, cookie: u64::from(probe.number) })
        });
        let after = probes.iter().filter(|probe| probe.returns == ReturnPlaces::AfterReturn);
        let entry = |probe: &ProbePlaces| Place { offset: probe.entry, cookie: u64::from(probe.number) };
        let mut refused = engines.attach(object, 1, file, &returns.collect::<Vec<_>>())?;
        refused.extend(engines.attach(object, 2, file, &after.map(entry).collect::<Vec<_>>())?);
        let without_end: HashSet<u64> = refused.iter().map(|(place, _)| place.cookie).collect();
        let begins: Vec<Place> =
            probes.iter().map(entry).filter(|place| !without_end.contains(&place.cookie)).collect();
        refused.extend(engines.attach(object, 0, file, &begins)?);
        let refused: Vec<(u32, String)> =
            refused.into_iter().map(|(place, reason)| (place.cookie as u32, reason)).collect();
        let failed: HashSet<u32> = refused.iter().map(|(number, _)| *number).collect();
        engines
            .attached
            .extend(probes.iter().map(|probe| probe.number).filter(|number| !failed.contains(number)));
        Ok(refused)
    }

    /// Does something while both ends of a function are probed, in every process; none of them is a target by that. Returns
    /// also how long it took to detach the two.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(in crate::live) fn while_engine_probed<T>(
        &mut self,
        path: &Path,
        places: CallPlaces,
        act: impl FnOnce() -> T,
    ) -> Result<(T, Duration), KernelError> {
        let file = PinnedFile::at(path).map_err(attach_error(&path.display().to_string()))?;
        let Self { engines, object, .. } = self;
        // Apart from the probes that stay.
        let mut trial = EnginePrograms::default();
        trial.programs.form = engines.programs.form.take();
        let mut refused = Vec::new();
        for (which, offset) in [(1, places.end), (0, places.entry)] {
            match trial.attach(object, which, &file, &[Place { offset, cookie: 0 }]) {
                Ok(more) => refused.extend(more),
                Err(error) => refused.push((Place { offset, cookie: 0 }, error.to_string())),
            }
        }
        let done = act();
        let begin = Instant::now();
        trial.detach(object);
        let detached = begin.elapsed();
        engines.programs.form = trial.programs.form;
        match refused.pop() {
            None => Ok((done, detached)),
            Some((_, reason)) => Err(KernelError::Attach { point: path.display().to_string(), reason }),
        }
    }

    /// Probes the function of a C++ runtime that each handler of exceptions calls first: what was left by the exception
    /// ends there. `pushed` is what it has put on the stack before the probed instruction.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(in crate::live) fn attach_caught(
        &mut self,
        file: &PinnedFile,
        offset: u64,
        pushed: u64,
    ) -> Result<(), KernelError> {
        self.probed_files.add(file);
        let place = Place { offset, cookie: pushed };
        let refused = self.engines.attach(&mut self.object, 3, file, &[place])?;
        match refused.into_iter().next() {
            Some((_, reason)) => {
                Err(KernelError::Attach { point: "handlers of exceptions".to_owned(), reason })
            }
            None => Ok(()),
        }
    }

    /// Returns whether the names of an entry of a map, by [`EngineProbe::entry`], were the same for many objects.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub(in crate::live) fn are_names_constant(&self, entry: u32) -> Result<bool, KernelError> {
        let names: Array<_, ObjectNames> = self.object.table("OBJECT_NAMES")?;
        Ok(names.get(&entry, 0).map_err(KernelError::reading)?.are_constant())
    }

    /// Whether this kernel takes each place as a probe of its own: before Linux 6.6, once the programs are loaded.
    pub(in crate::live) fn probes_one_by_one(&self) -> bool {
        self.engines.programs.are_single()
    }

    /// Number of functions of engines that are probed.
    pub(in crate::live) fn engine_probes(&self) -> usize {
        self.engines.attached.len()
    }
}

#[cfg(test)]
mod tests;
