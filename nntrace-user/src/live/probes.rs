//! Probed mark functions: each once, however many processes map its file.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use nntrace_common::nested_functions::FunctionKind;

use super::{
    clock, itt,
    kernel::{Kernel, KernelError},
    probe_trials::leading_nops::{NopProbe, NopProbes},
    target::{
        self, KnownMappings, LaneFunction, MarkFunction, Notification, Object, ObjectId, Objects,
        ProcessError, Processes, SearchReport, SeenFiles, SymbolSpec,
    },
};

/// Placement of the probe on a function that begins with a nop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Cheapest harmless place on the running kernel; see `probe_trials::leading_nops`.
    #[default]
    Safe,
    /// The nop, even where that kills forked children.
    Fast,
}

/// Marks of a process that may be missed before the files that it maps are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissedSince {
    /// No marks that matter: the process is stopped, or traced only from now on.
    Nothing,
    /// Marks of its new files since this time, ns.
    Since(u64),
    /// Marks of its new files since the last look at the process.
    SinceLastLook,
}

/// Attached probes, and the results of the search for them.
pub(crate) struct Probes {
    specs: Vec<SymbolSpec>,
    placement: Placement,
    /// Library of our own that targets have loaded: its functions are none of theirs.
    own_library: Option<ObjectId>,
    searched: SeenFiles,
    attached: HashSet<(ObjectId, u64)>,
    /// Loaders that were met, and whether their notifications are probed.
    loaders: HashMap<ObjectId, bool>,
    /// Time of the last look at each process, ns.
    looked: HashMap<u32, u64>,
    /// Files that were found at that look.
    mapped: HashMap<u32, KnownMappings>,
    /// Whether calls of one mark function by another are recognized.
    nesting: bool,
    report: SearchReport,
    /// Reason why the first function that was found could not be probed.
    refusal: Option<String>,
    failures: Vec<String>,
    /// Kinds of probes on nops here, from the first function on that begins with one.
    nops: NopProbes,
    /// Whether the note on nops was given.
    has_told_of_nops: bool,
}

/// Files that a process maps.
pub(crate) struct Mapped {
    pub(crate) objects: Vec<Object>,
    /// Since when (ns) it may have run code of those that are new; `None` where it has run none.
    pub(crate) missed_since: Option<u64>,
}

impl Probes {
    /// Creates the state for these functions, without any probe; `own_library` is one of ours that targets load.
    #[must_use]
    pub(crate) fn new(specs: Vec<SymbolSpec>, placement: Placement, own_library: Option<ObjectId>) -> Self {
        Self {
            specs,
            placement,
            own_library,
            searched: SeenFiles::default(),
            attached: HashSet::new(),
            loaders: HashMap::new(),
            looked: HashMap::new(),
            mapped: HashMap::new(),
            nesting: false,
            report: SearchReport::default(),
            refusal: None,
            failures: Vec::new(),
            nops: NopProbes::default(),
            has_told_of_nops: false,
        }
    }

    /// Searches the new files that a process executes, probes the functions found and the loader; returns all files that
    /// it executes. Marks that may have been missed are noted with the failures.
    ///
    /// # Errors
    /// When the process is gone or may not be inspected; a probe that cannot be attached is among
    /// [`Probes::take_failures`].
    pub(crate) fn follow(
        &mut self,
        kernel: &mut Kernel,
        processes: &Processes,
        pid: u32,
        missed: MissedSince,
    ) -> Result<Mapped, ProcessError> {
        let now = clock::now();
        let last_look = self.looked.insert(pid, now);
        let objects = Objects::mapped_since(processes, pid, self.mapped.entry(pid).or_default())?;
        if objects.objects.is_empty() && objects.failed.is_empty() {
            // Every process that runs a program maps a file; one that has ended does not, until its parent reaps it.
            return Err(ProcessError::NoSuchProcess { pid });
        }
        // Before the search, which takes a while, in which the process may load more.
        self.follow_loader(kernel, processes, pid, &objects);
        let mut new = Objects { objects: Vec::new(), failed: objects.failed };
        let mapped = objects.objects;
        let is_new =
            |object: &&Object| self.searched.is_new(object.state) && !is_probed(&self.attached, object);
        new.objects.extend(mapped.iter().filter(is_new).cloned());
        if let Some(own) = new.objects.iter().position(|object| Some(object.id()) == self.own_library) {
            let own = Objects { objects: vec![new.objects.remove(own)], failed: Vec::new() };
            // Its lanes are taken in all processes as it is.
            self.probe_found(kernel, &SearchReport::of(&own, &self.specs));
        }
        let files = self.search(kernel, &new);
        if !kernel.waits_for_pages() && (last_look.is_none() || missed != MissedSince::SinceLastLook) {
            self.touch_literals(processes, pid, &mapped);
        }
        let since = match missed {
            MissedSince::Nothing => None,
            MissedSince::Since(time) => Some(time),
            MissedSince::SinceLastLook => last_look,
        };
        if let Some(since) = since {
            let us = clock::now().saturating_sub(since).div_ceil(1_000);
            self.failures.extend(files.into_iter().map(|file| {
                format!("marks of {file} in its first {us} us may be missing: process {pid} ran on meanwhile")
            }));
        }
        Ok(Mapped { objects: mapped, missed_since: since })
    }

    /// Brings the literals of a process into memory, those of probed files: on kernels before 6.0 a mark whose text
    /// is not in memory is lost.
    fn touch_literals(&mut self, processes: &Processes, pid: u32, mapped: &[Object]) {
        let probed = mapped.iter().filter(|object| is_probed(&self.attached, object));
        let files: Vec<&Path> = probed.map(|object| object.display_path.as_path()).collect();
        if files.is_empty() {
            return;
        }
        match target::touch_literals(processes, pid, &files) {
            // The process has ended, or everything is in memory.
            Ok(0) | Err(ProcessError::NoSuchProcess { .. }) => {}
            Ok(left_out) => self.failures.push(format!(
                "marks of process {pid} may be unreadable: {} MiB of its read-only memory are more than is brought in \
                 for it, and this kernel has no programs that wait for a page (Linux 6.0)",
                left_out.div_ceil(1 << 20)
            )),
            Err(error) => self.failures.push(format!("marks of process {pid} may be unreadable: {error}")),
        }
    }

    /// Probes the notifications of a process's loader, if that is new.
    fn follow_loader(&mut self, kernel: &mut Kernel, processes: &Processes, pid: u32, objects: &Objects) {
        let Some(loader) = target::loader_of(processes, pid, objects) else { return };
        if self.loaders.contains_key(&loader.id()) {
            return;
        }
        let attached = match target::notification(processes, pid, loader) {
            Notification::At(offset) => loader.pin().map_err(|error| error.to_string()).and_then(|pinned| {
                let points = target::probe_points(&pinned, offset).map_err(|error| error.to_string())?;
                kernel.attach_loader(&pinned, points.plain).map_err(|error| error.to_string())
            }),
            Notification::NotYet => return,
            // A static program loads nothing.
            Notification::Nowhere if objects.objects.len() == 1 => Ok(()),
            Notification::Nowhere => {
                Err(format!("{} has no function that tells of new libraries", loader.display_path.display()))
            }
        };
        self.loaders.insert(loader.id(), attached.is_ok());
        if let Err(reason) = attached {
            self.failures
                .push(format!("libraries that are loaded later are found at the next update only: {reason}"));
        }
    }

    /// Prepares for functions in libraries that are loaded later, if none was found yet and a loader is probed.
    pub(crate) fn expect_libraries(&self, kernel: &mut Kernel) {
        if !self.has_attached() && self.loaders.values().any(|&tells| tells) {
            kernel.expect_functions(&self.specs);
        }
    }

    /// Forgets a process that is gone.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.looked.remove(&pid);
        self.mapped.remove(&pid);
    }

    /// Whether a process was looked at after this time, ns.
    #[must_use]
    pub(crate) fn looked_after(&self, pid: u32, time: u64) -> bool {
        self.looked.get(&pid).is_some_and(|&looked| looked > time)
    }

    /// Whether the notifications of a process's loader are probed.
    #[must_use]
    pub(crate) fn hears_loader(&self, processes: &Processes, pid: u32) -> bool {
        let Ok(objects) = Objects::mapped_by(processes, pid) else { return false };
        let loader = target::loader_of(processes, pid, &objects);
        loader.is_some_and(|loader| self.loaders.get(&loader.id()) == Some(&true))
    }

    /// Searches one file, whichever processes map it.
    pub(crate) fn search_file(&mut self, kernel: &mut Kernel, object: Object) {
        self.searched.is_new(object.state);
        self.search(kernel, &Objects { objects: vec![object], failed: Vec::new() });
    }

    /// Probes the functions found in files; returns the files that have any.
    fn search(&mut self, kernel: &mut Kernel, objects: &Objects) -> Vec<String> {
        let mut found = SearchReport::of(objects, &self.specs);
        for object in &objects.objects {
            log::debug!("searched {} for mark functions", object.display_path.display());
        }
        for lonely in target::take_unpaired(&mut found.functions) {
            self.failures.push(format!(
                "{} in {} is not probed: the function that belongs to it is not there",
                lonely.found.demangled,
                lonely.display_path.display()
            ));
        }
        if let Err(error) = self.see_nesting(kernel, &found.functions) {
            self.failures.push(format!(
                "marks that pass two functions, such as ATrace_beginSection and atrace_begin_body, are counted \
                 twice: {error}"
            ));
        }
        self.failures.append(&mut found.notes);
        let files = self.probe_found(kernel, &found);
        self.report.merge(found);
        files
    }

    /// Probes functions that were found; returns the files that have any.
    fn probe_found(&mut self, kernel: &mut Kernel, found: &SearchReport) -> Vec<String> {
        let mut files = Vec::new();
        for function in &found.functions {
            if !self.attached.insert((function.object, function.found.offset)) {
                continue;
            }
            match self.attach(kernel, function) {
                Ok(()) => {
                    let file = function.display_path.display().to_string();
                    if files.last() != Some(&file) {
                        files.push(file);
                    }
                }
                Err(error) => {
                    self.attached.remove(&(function.object, function.found.offset));
                    self.refusal.get_or_insert_with(|| error.to_string());
                    self.failures.push(error.to_string());
                }
            }
        }
        files
    }

    /// Whether a function of the targets is probed.
    fn has_attached(&self) -> bool {
        self.attached.iter().any(|(object, _)| Some(*object) != self.own_library)
    }

    fn attach(&mut self, kernel: &mut Kernel, function: &MarkFunction) -> Result<(), KernelError> {
        let at = self.place(kernel, function);
        // First, so that the calls of this function are recognized.
        kernel.set_mark_code(function, at)?;
        kernel.attach_mark(function, at)?;
        if itt::is_collector(&function.path) {
            self.failures.push(format!(
                "tasks that OpenVINO, oneDNN and others show by ITT are marks, by {}, which the target has loaded ({} in its \
                 environment)",
                function.display_path.display(),
                itt::VARIABLE
            ));
        }
        if function.found.layout_guessed {
            self.failures.push(format!(
                "took the arguments of {} in {} for ({}); --symbol {}=LAYOUT says otherwise",
                function.found.demangled,
                function.display_path.display(),
                function.found.layout,
                function.found.wanted,
            ));
        }
        Ok(())
    }

    /// Returns where to probe a function, as an offset in its file.
    fn place(&mut self, kernel: &mut Kernel, function: &MarkFunction) -> u64 {
        let points = function.found.points;
        let Some(nop) = points.nop else { return points.plain };
        let probe = self.nops.get(kernel, nop.length).clone();
        let at = match (self.placement, &probe) {
            (Placement::Fast, NopProbe::Breakpoint | NopProbe::Harmful) | (_, NopProbe::Cheap) => nop.offset,
            // A probe on the nop is harmless too, and newer kernels emulate the nop.
            (_, NopProbe::Breakpoint) if !points.is_emulated => nop.offset,
            _ => points.plain,
        };
        self.tell_of_nops(&probe);
        if at == points.plain && !points.is_emulated {
            self.failures.push(format!(
                "a mark of {} in {} costs some 15 us instead of 1: after its leading nop is an instruction \
                 that the kernel runs by a single step; one built with the current nntrace.h or nntrace-common is \
                 cheaper, or --fast-probes where no child is forked that goes on without exec",
                function.found.demangled,
                function.display_path.display()
            ));
        }
        at
    }

    /// Notes, once, the effect of probes on nops on forked children here.
    fn tell_of_nops(&mut self, probe: &NopProbe) {
        let text = match (probe, self.placement) {
            (NopProbe::Harmful, Placement::Safe) => {
                "a probe on the nop that mark functions begin with kills forked children on this kernel (tried with a \
                 process of our own): they are probed after it; --fast-probes probes the nop, for targets whose children \
                 all exec"
                    .to_owned()
            }
            (NopProbe::Harmful, Placement::Fast) => {
                "on this kernel a child of the target that forks and goes on without exec dies of its next mark (tried with \
                 a process of our own), which it does not without --fast-probes"
                    .to_owned()
            }
            (NopProbe::Unknown(reason), _) => format!(
                "mark functions are probed after their leading nop: whether a probe on it harms forked children \
                 could not be tried: {reason}"
            ),
            _ => return,
        };
        if !std::mem::replace(&mut self.has_told_of_nops, true) {
            self.failures.push(text);
        }
    }

    /// Lets the programs take a mark function called by another one for a part of that one's mark, once there are
    /// functions of more than one kind: of one kind, each is a mark.
    fn see_nesting(&mut self, kernel: &mut Kernel, new: &[MarkFunction]) -> Result<(), KernelError> {
        let known = self.report.functions.iter().filter(|function| self.is_attached(function));
        let mut kinds: Vec<FunctionKind> = known.chain(new).map(target::kind).collect();
        kinds.dedup();
        if !self.nesting && kinds.len() > 1 {
            kernel.set_nesting()?;
            self.nesting = true;
        }
        Ok(())
    }

    fn is_attached(&self, function: &MarkFunction) -> bool {
        self.attached.contains(&(function.object, function.found.offset))
    }

    /// Returns the functions that offer lanes, in the files searched so far.
    #[must_use]
    pub(crate) fn lanes(&self) -> &[LaneFunction] {
        &self.report.lanes
    }

    /// Returns the number of attached probes.
    #[must_use]
    pub(crate) fn count(&self) -> usize {
        self.attached.len()
    }

    /// Returns the files in which a function is probed.
    #[must_use]
    pub(crate) fn files(&self) -> Vec<String> {
        let mut files: Vec<String> = self
            .report
            .functions
            .iter()
            .map(|function| function.display_path.display().to_string())
            .collect();
        files.sort();
        files.dedup();
        files
    }

    /// Returns the reason why nothing is probed: the files searched, or what was found and could not be probed. `None` once
    /// something is.
    #[must_use]
    pub(crate) fn nothing_found(&self, target: &str, engines: Option<&str>) -> Option<String> {
        let nothing = || self.refusal.clone().unwrap_or_else(|| self.report.nothing_found(target, engines));
        (!self.has_attached()).then(nothing)
    }

    /// Takes the messages on failures since the last call.
    pub(crate) fn take_failures(&mut self) -> Vec<String> {
        std::mem::take(&mut self.failures)
    }
}

/// Whether functions of a file are probed. If it is written to, its probes go, and it is not searched again.
fn is_probed(attached: &HashSet<(ObjectId, u64)>, object: &Object) -> bool {
    attached.iter().any(|(id, _)| *id == object.id())
}
