//! Probes on engines: each file that holds one is examined and probed once, however many processes map it.

mod description;
mod hooking;
mod options;
mod plan;
mod unrecorded;

use std::{
    collections::{HashMap, HashSet},
    fmt, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use nntrace_common::{
    async_runs::{ASYNC_RUN, ASYNC_RUN_UNSEEN},
    engine::MAX_ENTRIES,
    layer::Tag,
    mark,
};
use thiserror::Error;

pub(crate) use self::hooking::Mapping;
pub use self::options::{EngineError, EngineOptions, Operators};
use self::{
    description::{Description, describe, has_own_names},
    hooking::Hooking,
    unrecorded::Unrecorded,
};
use super::{
    engines::{
        catalog::Catalog,
        examination::{examine, handler_entry},
        probe::{EngineProbe, Kind, MapLine},
        resolve::Resolved,
    },
    hooks::Hooks,
    itt,
    kernel::{Kernel, KernelError, engines::ProbePlaces},
    probe_trials::call_cost::{self, CallCost},
    target::{self, ElfErrorReason, Object, ObjectId, PinnedFile, Processes, SeenFiles},
};
use crate::model::{function_names::Names, plurals::counted, run_facts::ProbedEngine};

/// Remarks on an engine's map that are shown; the rest is counted.
const MOST_NOTES: usize = 5;

/// Time to take probes off again from which on that is announced.
const LONG: Duration = Duration::from_secs(2);

/// Probed engines, and files that were examined for them.
pub(crate) struct EngineProbes {
    catalog: Catalog,
    operators: Operators,
    unrecorded: Unrecorded,
    announce: fn(&str),
    hooking: Hooking,
    /// Whether the programs need the texts of all names.
    emits_begins: bool,
    examined: SeenFiles,
    /// Files with probed functions. If one is written to, its probes go, and it is not examined again.
    probed: HashSet<ObjectId>,
    /// Processes, each with its program, whose literals are in memory.
    touched: HashSet<(u32, PathBuf)>,
    /// Files that were searched for the start of exception handlers.
    searched: HashSet<ObjectId>,
    engines: Vec<ProbedEngine>,
    compared: ComparedEntries,
    /// Cost of the probes; `None` while it is not known.
    cost: Option<CallCost>,
    notes: Vec<String>,
}

impl EngineProbes {
    /// Creates the state for the engines of a run, without any probe.
    ///
    /// # Errors
    /// When a map cannot be read, or no engine has a name that is asked for.
    pub(crate) fn new(options: &EngineOptions, emits_begins: bool) -> Result<Self, EngineError> {
        let (catalog, notes) = options.catalog()?;
        Ok(Self {
            catalog,
            operators: options.operators.clone(),
            unrecorded: Unrecorded::default(),
            announce: options.announce,
            hooking: Hooking::new(options.operators.hooks().cloned()),
            emits_begins,
            examined: SeenFiles::default(),
            probed: HashSet::new(),
            touched: HashSet::new(),
            searched: HashSet::new(),
            engines: Vec::new(),
            compared: ComparedEntries::default(),
            cost: None,
            notes,
        })
    }

    /// Returns in words which engines are looked for; `None` without any.
    pub(crate) fn wanted(&self) -> Option<String> {
        self.catalog.wanted()
    }

    /// Takes the lanes of threads with hooked functions.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn take_lanes(&mut self, kernel: &mut Kernel) -> Result<(), KernelError> {
        self.hooking.take_lanes(kernel)
    }

    /// Folder of the hooks of this run, which the targets load their library from.
    pub(crate) fn hooks_folder(&self) -> Option<&Path> {
        self.operators.hooks().map(Hooks::folder)
    }

    /// Whether a file is the library of the hooks, of this run or of another one.
    pub(crate) fn is_hooks_library(&mut self, object: ObjectId, path: &Path) -> bool {
        self.hooking.is_any_library(object, path)
    }

    /// Examines the files among these that are new, and probes the engines in them, or plans their hooks where the process that
    /// maps them is known and has the library.
    pub(crate) fn follow(
        &mut self,
        kernel: &mut Kernel,
        names: &mut Names,
        process: Option<Mapping<'_>>,
        objects: &[Object],
    ) {
        if self.catalog.maps().is_empty() {
            return;
        }
        let is_collector = |object: &Object| object.pin().is_ok_and(|pinned| itt::is_collector(&pinned));
        if objects.iter().any(|object| !self.examined.has(object.state) && is_collector(object)) {
            self.catalog.leave_to_itt();
        }
        self.notes.extend(process.and_then(|process| self.hooking.note_without(process, objects)));
        let is_new =
            |object: &&Object| self.examined.is_new(object.state) && !self.probed.contains(&object.id());
        let new: Vec<&Object> = objects.iter().filter(is_new).collect();
        for object in &new {
            self.hooking.announce(object);
        }
        let wants_hooks = !new.is_empty() && self.hooking.is_possible(process, objects);
        for object in new {
            if let Err(error) = self.examine(kernel, names, wants_hooks, object) {
                self.notes
                    .push(format!("{}: not searched for engines: {error}", object.display_path.display()));
            }
        }
        if self.engines.is_empty() {
            return;
        }
        for object in objects {
            if self.searched.insert(object.id())
                && let Err(error) = probe_handlers(kernel, object)
            {
                let file = object.display_path.display();
                self.notes.push(format!("{file}: functions that exceptions leave end late: {error}"));
            }
        }
    }

    /// Whether a process waits until what it has loaded is examined: it has the library of the hooks, and may use it.
    pub(crate) fn is_waited_for(&self, process: Mapping<'_>, objects: &[Object]) -> bool {
        self.hooking.is_waited_for(process, objects)
    }

    /// Lets processes that wait for these files to be examined go on.
    pub(crate) fn answer(&mut self, objects: &[Object]) {
        self.notes.extend(objects.iter().filter_map(|object| self.hooking.answer(object)));
    }

    /// Says whether files are being examined, for which processes wait.
    pub(crate) fn set_busy(&self, is_busy: bool) {
        self.hooking.set_busy(is_busy);
    }

    /// Ends the hooking of processes; those that live on keep the library that they have loaded.
    pub(crate) fn end_hooking(&mut self) {
        self.hooking.end();
    }

    /// Keeps the library of the hooks: there are processes that load it again when they execute other programs.
    pub(crate) fn keep_hooks_library(&self) {
        self.hooking.keep_library();
    }

    /// Notes that a process ran on while engines were examined and probed, those after the first `known` ones.
    pub(crate) fn note_late(&mut self, pid: u32, known: usize, missed_ns: u64) {
        for engine in &self.engines[known..] {
            self.notes.push(format!(
                "what {} did in process {pid} in the first {} ms after it was loaded may be missing: the process ran on while it was \
                 examined; --lib {} probes it before",
                engine.engine,
                missed_ns.div_ceil(1_000_000),
                engine.file
            ));
        }
    }

    fn examine(
        &mut self,
        kernel: &mut Kernel,
        names: &mut Names,
        wants_hooks: bool,
        object: &Object,
    ) -> Result<(), ExamineError> {
        let pinned = object.pin().map_err(ElfErrorReason::from)?;
        let mut resolved = match examine(&pinned, &self.catalog, self.operators.level(), wants_hooks) {
            Ok(resolved) => resolved,
            // Whatever is no program of a known kind has no engine.
            Err(error) if error.is_other_kind() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        // What was written to meanwhile is examined at the next look.
        if !object.is_as_found(&pinned) {
            return Ok(());
        }
        let hooked = self.plan(object, &mut resolved);
        for (mut engine, hooked) in resolved.into_iter().zip(hooked) {
            let left_out = unrecorded::take_out(&self.operators, &mut engine.probes);
            let version = engine.version.as_ref().map(ToString::to_string);
            log::info!(
                "{} contains {} {} ({}): {} functions to probe, {hooked} to hook",
                object.display_path.display(),
                engine.engine,
                version.as_deref().unwrap_or("of an unknown version"),
                engine.signs.join(", "),
                engine.probes.len()
            );
            self.notes.extend(notes(&engine));
            if !engine.probes.is_empty() {
                self.measure(kernel);
                self.announce_wait(kernel, &engine);
            }
            self.note_unrecorded(&engine, wants_hooks, hooked, left_out);
            let probed =
                attach(kernel, names, &pinned, &engine.probes, &mut self.compared, self.emits_begins)?;
            self.notes.extend(probed.refused);
            if probed.functions > 0 {
                self.probed.insert(object.id());
            }
            if probed.functions + hooked > 0 {
                self.engines.push(ProbedEngine {
                    engine: engine.engine,
                    about: engine.parts.join("; "),
                    version,
                    file: object.display_path.display().to_string(),
                    functions: probed.functions,
                    hooked,
                });
            }
        }
        Ok(())
    }

    /// Plans the functions of a file that can be hooked, which are then not among its engines' probes; returns their number for
    /// each engine.
    fn plan(&mut self, object: &Object, engines: &mut [Resolved]) -> Vec<usize> {
        let mut groups: Vec<_> = engines.iter_mut().map(|engine| &mut engine.probes).collect();
        self.hooking.plan(object, &mut groups).unwrap_or_else(|note| {
            self.notes.push(note);
            vec![0; engines.len()]
        })
    }

    /// Takes note of the operators of an engine that would need probes, if no others of this file are recorded.
    fn note_unrecorded(&mut self, engine: &Resolved, wants_hooks: bool, hooked: usize, left_out: usize) {
        let reason = match &self.operators {
            Operators::Hooked(_) if !wants_hooks && left_out > 0 => {
                "the process that loaded it has not loaded libnntrace-hooks.so".to_owned()
            }
            Operators::Hooked(_) if hooked == 0 && left_out > 0 => {
                "it calls them directly, where hooks do not reach".to_owned()
            }
            Operators::WouldNeedProbes(reason) if self.catalog.has_operators(&engine.engine) => {
                reason.clone()
            }
            _ => return,
        };
        let call_ns = self.cost.map(|cost| cost.call_ns);
        self.unrecorded.add(engine, &reason, call_ns);
    }

    /// Brings the literals of a process's own program into memory, where an engine is probed: the path of a model often is
    /// one, which nobody has read before the engine does.
    pub(crate) fn touch_literals(&mut self, processes: &Processes, pid: u32) {
        if self.engines.is_empty() {
            return;
        }
        let Ok(program) = fs::read_link(processes.dir(pid).join("exe")) else { return };
        // What is not brought in has no name, which is counted.
        if self.touched.insert((pid, program.clone()))
            && let Err(error) = target::touch_literals(processes, pid, &[&program])
        {
            log::info!("literals of process {pid} may not be in memory: {error}");
        }
    }

    /// Measures once what a probed call costs.
    fn measure(&mut self, kernel: &mut Kernel) {
        if self.cost.is_none() {
            match call_cost::measure(kernel) {
                Ok(cost) => self.cost = Some(cost),
                Err(reason) => log::info!("what the probes on engines cost is not known: {reason}"),
            }
        }
    }

    /// Says how long it will take to detach the probes of an engine, where that is long.
    fn announce_wait(&self, kernel: &Kernel, engine: &Resolved) {
        let Some(cost) = self.cost.filter(|_| kernel.probes_one_by_one()) else { return };
        let places: usize = engine.probes.iter().map(EngineProbe::places).sum();
        let wait = cost.detach * u32::try_from(places).unwrap_or(u32::MAX);
        if wait >= LONG {
            (self.announce)(&format!(
                "{} is probed in {places} places, one by one before Linux 6.6: to detach them at the end will take about \
                 {} s; --engine-level run, or --engine, probes fewer",
                engine.engine,
                wait.as_secs()
            ));
        }
    }

    /// Returns the time by which the probes make a call longer, ns, without the programs' own; `None` where it is not known.
    pub(crate) fn call_ns(&self) -> Option<u64> {
        self.cost.filter(|_| !self.engines.is_empty()).map(|cost| cost.call_ns)
    }

    /// Returns notes on engines whose operators are not recorded, as far as is known now.
    pub(crate) fn notes_on_operators(&self) -> Vec<String> {
        self.unrecorded.notes(&self.engines, &self.catalog)
    }

    /// Returns remarks on entries of maps whose names did not change with the objects that they were read from.
    ///
    /// # Errors
    /// When the kernel's table cannot be read.
    pub(crate) fn notes_on_names(&self, kernel: &Kernel) -> Result<Vec<String>, KernelError> {
        let mut notes = Vec::new();
        for (number, entry) in (1..).zip(self.compared.0.iter().take(MAX_ENTRIES - 1)) {
            if kernel.are_names_constant(number)? {
                notes.push(format!(
                    "{entry}: the text at the place of its names is the same in all objects, as if it stood elsewhere in this \
                     version: the class's or the function's name takes its place"
                ));
            }
        }
        Ok(notes)
    }

    /// Engines that are probed.
    pub(crate) fn engines(&self) -> &[ProbedEngine] {
        &self.engines
    }

    /// Takes the remarks since the last call.
    pub(crate) fn take_notes_so_far(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

/// Probes the function of a C++ runtime in this file that each handler of exceptions calls first.
fn probe_handlers(kernel: &mut Kernel, object: &Object) -> Result<(), ExamineError> {
    let Some((file, entry)) = handler_entry(object)? else { return Ok(()) };
    Ok(kernel.attach_caught(&file, entry.offset, entry.pushed)?)
}

/// Returns the first remarks on an engine in a file that concern a run.
fn notes(resolved: &Resolved) -> Vec<String> {
    let all: Vec<_> = resolved.notes.iter().filter(|note| !note.is_for_author).collect();
    let mut notes: Vec<String> = all.iter().take(MOST_NOTES).map(ToString::to_string).collect();
    let more = all.len().saturating_sub(MOST_NOTES);
    if more > 0 {
        notes.push(format!(
            "{} of this kind; see `nntrace-bpf engines FILE`",
            counted(more as u64, "more remark")
        ));
    }
    notes
}

/// Entries of maps whose names are compared with each other, in the order of their numbers, from 1.
#[derive(Default)]
struct ComparedEntries(Vec<MapLine>);

impl ComparedEntries {
    /// Returns the number of an entry; 0 where there is no room for it.
    fn number(&mut self, entry: &MapLine) -> u32 {
        let known = self.0.iter().position(|known| known == entry);
        let place = known.unwrap_or_else(|| {
            self.0.push(entry.clone());
            self.0.len() - 1
        });
        u32::try_from(place + 1).ok().filter(|&number| (number as usize) < MAX_ENTRIES).unwrap_or(0)
    }
}

/// Reason why a file could not be examined, or probed.
#[derive(Debug, Error)]
enum ExamineError {
    #[error(transparent)]
    File(#[from] ElfErrorReason),
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

/// Outcome of probing the functions of one engine.
struct Probed {
    /// Number of functions that are probed.
    functions: usize,
    /// Remarks on those that the kernel refuses.
    refused: Vec<String>,
}

/// Describes probes to the programs and attaches them.
fn attach(
    kernel: &mut Kernel,
    names: &mut Names,
    pinned: &PinnedFile,
    probes: &[EngineProbe],
    compared: &mut ComparedEntries,
    emits_begins: bool,
) -> Result<Probed, KernelError> {
    for name in [ASYNC_RUN, ASYNC_RUN_UNSEEN] {
        names.insert_for_good(mark::name_hash(name, 0), name);
    }
    // Ends of brackets refer to their begins.
    let mut ordered: Vec<&EngineProbe> = probes.iter().collect();
    ordered.sort_by_key(|probe| probe.kind == Kind::BracketEnd);
    let mut brackets: HashMap<Tag, u32> = HashMap::new();
    let mut places = Vec::new();
    let mut refused = Vec::new();
    let mut by_number = HashMap::new();
    for probe in ordered {
        let begun_by = brackets.get(&probe.tag).copied();
        let Description { probe: mut described, returns, names: texts, values, remark } =
            match describe(probe, begun_by) {
                Ok(description) => description,
                Err(reason) => {
                    refused.push(format!("{}: {}: not probed: {reason}", probe.map_line, probe.function));
                    continue;
                }
            };
        refused.extend(remark.map(|remark| format!("{}: {}: {remark}", probe.map_line, probe.function)));
        for (hash, text) in &texts {
            names.insert_for_good(*hash, text.as_bytes());
            if emits_begins {
                kernel.add_name(*hash, text.as_bytes())?;
            }
        }
        if has_own_names(probe) {
            described.entry = compared.number(&probe.map_line);
        }
        let number = kernel.add_engine_probe(described, values)?;
        if probe.kind == Kind::BracketBegin {
            brackets.insert(probe.tag, number);
        }
        by_number.insert(number, probe);
        places.push(ProbePlaces { number, entry: probe.entry, returns });
    }
    let failed = kernel.attach_engine(pinned, &places)?;
    let functions = places.len() - failed.iter().map(|(number, _)| number).collect::<HashSet<_>>().len();
    refused.extend(failed.iter().filter_map(|(number, reason)| {
        let probe = by_number.get(number)?;
        Some(format!("{}: {}: not probed: the kernel refuses: {reason}", probe.map_line, probe.function))
    }));
    Ok(Probed { functions, refused })
}

/// An engine in words: `ONNX Runtime 1.31.1 in libonnxruntime.so: 7 functions`.
impl fmt::Display for ProbedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        let functions = counted(self.functions as u64, "function");
        write!(f, "{}{version} in {}: {functions} probed", self.about, self.file)?;
        if self.hooked > 0 { write!(f, ", {} hooked", self.hooked) } else { Ok(()) }
    }
}
