//! Which mark functions are probed: each once, however many processes map its file.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use super::{
    clock,
    kernel::{Kernel, KernelError},
    target::{
        self, MarkFunction, Notification, Object, ObjectId, Objects, ProcessError, Processes, SearchReport,
        SymbolSpec,
    },
};

/// Where a function is probed that begins with a nop which the kernel can replace by a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// On the nop: the cheapest there is. Linux 6.18 on x86-64 (seen on 6.18.44) does not give a forked child the
    /// page that is called then: a child that goes on without exec dies of its next mark.
    #[default]
    OnNop,
    /// Behind the nop, by a breakpoint: tens of times slower, and safe for such programs.
    PastNop,
}

/// What a process may have marked before the files that it maps are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// Nothing that matters: it is stopped, or it is traced only from now on.
    Nothing,
    /// What its new files marked since this moment, ns.
    Since(u64),
    /// What its new files marked since it was last looked at.
    SinceLastLook,
}

/// The probes that are in place, and what was searched for them.
pub struct Probes {
    specs: Vec<SymbolSpec>,
    placement: Placement,
    searched: HashSet<ObjectId>,
    attached: HashSet<(ObjectId, u64)>,
    /// The loaders that were met, and whether they tell what they map.
    loaders: HashMap<ObjectId, bool>,
    /// When each process was last looked at, ns.
    looked: HashMap<u32, u64>,
    /// Whether the returns of mark functions are seen, as one may call another.
    nesting: bool,
    report: SearchReport,
    failures: Vec<String>,
    /// Whether the user was told what probes on nops mean for forks.
    warned: bool,
}

/// Whether this kernel replaces a probed nop by a call: x86-64 from Linux 6.18 on.
fn replaces_nops() -> bool {
    let Ok(system) = nix::sys::utsname::uname() else { return false };
    let release = system.release().to_string_lossy();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (6, 18) && system.machine() == "x86_64"
}

impl Probes {
    /// Probes for these functions; none is in place yet.
    #[must_use]
    pub fn new(specs: Vec<SymbolSpec>, placement: Placement) -> Self {
        Self {
            specs,
            placement,
            searched: HashSet::new(),
            attached: HashSet::new(),
            loaders: HashMap::new(),
            looked: HashMap::new(),
            nesting: false,
            report: SearchReport::default(),
            failures: Vec::new(),
            warned: false,
        }
    }

    /// Searches the files that a process executes and that were not searched yet, and probes what is found there, and
    /// its loader. If it may have marked something before, that is told with the failures.
    ///
    /// # Errors
    /// When the process is gone or may not be looked at; a probe that cannot be attached is
    /// told by [`Probes::take_failures`].
    pub fn follow(
        &mut self,
        kernel: &mut Kernel,
        processes: &Processes,
        pid: u32,
        missed: Missed,
    ) -> Result<(), ProcessError> {
        let now = clock::now();
        let last_look = self.looked.insert(pid, now);
        let objects = Objects::mapped_by(processes, pid)?;
        if objects.objects.is_empty() && objects.failed.is_empty() {
            // All that runs a program maps a file; one that has ended does not until its parent has heard of it.
            return Err(ProcessError::NoSuchProcess { pid });
        }
        // Before the search, which takes a while in which the process may load more.
        self.follow_loader(kernel, processes, pid, &objects);
        let mut new = Objects { objects: Vec::new(), failed: objects.failed };
        let mapped = objects.objects;
        new.objects.extend(mapped.iter().filter(|object| self.searched.insert(object.id)).cloned());
        let files = self.search(kernel, &new);
        if !kernel.waits_for_pages() && (last_look.is_none() || missed != Missed::SinceLastLook) {
            self.touch_literals(processes, pid, &mapped);
        }
        let since = match missed {
            Missed::Nothing => None,
            Missed::Since(time) => Some(time),
            Missed::SinceLastLook => last_look,
        };
        if let Some(since) = since {
            let us = clock::now().saturating_sub(since).div_ceil(1_000);
            self.failures.extend(files.into_iter().map(|file| {
                format!("marks of {file} in its first {us} us may be missing: process {pid} ran on meanwhile")
            }));
        }
        Ok(())
    }

    /// Has the literals of a process in memory, those of probed files: on kernels before 6.0 a mark whose text is not there
    /// is lost.
    fn touch_literals(&mut self, processes: &Processes, pid: u32, mapped: &[Object]) {
        let is_probed = |object: &&Object| self.attached.iter().any(|(id, _)| *id == object.id);
        let files: Vec<&Path> =
            mapped.iter().filter(is_probed).map(|object| object.display_path.as_path()).collect();
        if files.is_empty() {
            return;
        }
        match target::touch_literals(processes, pid, &files) {
            // It has ended, or all is there.
            Ok(0) | Err(ProcessError::NoSuchProcess { .. }) => {}
            Ok(left_out) => self.failures.push(format!(
                "marks of process {pid} may be unreadable: {} MiB of its read-only memory are more than is brought in \
                 for it, and this kernel has no programs that wait for a page (Linux 6.0)",
                left_out.div_ceil(1 << 20)
            )),
            Err(error) => self.failures.push(format!("marks of process {pid} may be unreadable: {error}")),
        }
    }

    /// Has the loader of a process tell what it maps, if it is not known yet.
    fn follow_loader(&mut self, kernel: &mut Kernel, processes: &Processes, pid: u32, objects: &Objects) {
        let Some(loader) = target::loader_of(processes, pid, objects) else { return };
        if self.loaders.contains_key(&loader.id) {
            return;
        }
        let attached = match target::notification(processes, pid, loader) {
            Notification::At(offset) => {
                kernel.attach_loader(&loader.path, offset).map_err(|error| error.to_string())
            }
            Notification::NotYet => return,
            // A static program, which loads nothing.
            Notification::Nowhere if objects.objects.len() == 1 => Ok(()),
            Notification::Nowhere => {
                Err(format!("{} has no function that tells of new libraries", loader.display_path.display()))
            }
        };
        self.loaders.insert(loader.id, attached.is_ok());
        if let Err(reason) = attached {
            self.failures
                .push(format!("libraries that are loaded later are found at the next update only: {reason}"));
        }
    }

    /// Makes ready for functions in libraries that are loaded later, if there is none yet and a loader tells of them.
    pub fn expect_libraries(&self, kernel: &mut Kernel) {
        if self.attached.is_empty() && self.loaders.values().any(|&tells| tells) {
            kernel.expect_functions(&self.specs);
        }
    }

    /// Whether a process was looked at after this moment, ns.
    #[must_use]
    pub fn looked_after(&self, pid: u32, time: u64) -> bool {
        self.looked.get(&pid).is_some_and(|&looked| looked > time)
    }

    /// Whether the loader of a process tells what it maps.
    #[must_use]
    pub fn hears_loader(&self, processes: &Processes, pid: u32) -> bool {
        let Ok(objects) = Objects::mapped_by(processes, pid) else { return false };
        let loader = target::loader_of(processes, pid, &objects);
        loader.is_some_and(|loader| self.loaders.get(&loader.id) == Some(&true))
    }

    /// Searches one file, whoever maps it.
    pub fn search_file(&mut self, kernel: &mut Kernel, object: Object) {
        self.searched.insert(object.id);
        self.search(kernel, &Objects { objects: vec![object], failed: Vec::new() });
    }

    /// Probes what is found in files; returns those in which that was something.
    fn search(&mut self, kernel: &mut Kernel, objects: &Objects) -> Vec<String> {
        let mut found = SearchReport::of(objects, &self.specs);
        for lonely in target::take_lonely(&mut found.functions) {
            self.failures.push(format!(
                "{} in {} is not probed: the function that belongs to it is not there",
                lonely.demangled,
                lonely.display_path.display()
            ));
        }
        if let Err(error) = self.see_nesting(kernel, &found.functions) {
            self.failures.push(format!(
                "marks that pass two functions, such as ATrace_beginSection and atrace_begin_body, are counted \
                 twice: {error}"
            ));
        }
        let mut files = Vec::new();
        for function in &found.functions {
            if !self.attached.insert((function.object, function.offset)) {
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
                    self.attached.remove(&(function.object, function.offset));
                    self.failures.push(error.to_string());
                }
            }
        }
        self.report.merge(found);
        files
    }

    fn attach(&mut self, kernel: &mut Kernel, function: &MarkFunction) -> Result<(), KernelError> {
        let past = self.past(function);
        if self.nesting {
            // First, so that whoever is seen to enter is seen to return.
            kernel.attach_return(function, past)?;
        }
        kernel.attach_mark(function, past)?;
        self.warned |= past == 0 && function.nop_length > 0 && self.warn_of_forks();
        if function.layout_guessed {
            self.failures.push(format!(
                "took the arguments of {} in {} for ({}); --symbol {}=LAYOUT says otherwise",
                function.demangled,
                function.display_path.display(),
                function.layout,
                function.wanted,
            ));
        }
        Ok(())
    }

    fn past(&self, function: &MarkFunction) -> u8 {
        match self.placement {
            Placement::OnNop => 0,
            Placement::PastNop => function.nop_length,
        }
    }

    /// Has the returns of all probed functions seen once these and they are of more than one kind: then one may call
    /// another.
    fn see_nesting(&mut self, kernel: &mut Kernel, new: &[MarkFunction]) -> Result<(), KernelError> {
        let known = || self.report.functions.iter().filter(|function| self.is_attached(function));
        let kinds: HashSet<usize> = known().chain(new).map(target::kind).collect();
        if self.nesting || new.is_empty() || kinds.len() < 2 {
            return Ok(());
        }
        for function in known() {
            kernel.attach_return(function, self.past(function))?;
        }
        kernel.set_nesting()?;
        self.nesting = true;
        Ok(())
    }

    fn is_attached(&self, function: &MarkFunction) -> bool {
        self.attached.contains(&(function.object, function.offset))
    }

    /// Tells once what a probe on a nop means on a kernel that replaces it; returns whether it is told now.
    fn warn_of_forks(&mut self) -> bool {
        let told = !self.warned && replaces_nops();
        if told {
            self.failures.push(
                "on this kernel a child of the target that forks and goes on without exec may die of its next mark; \
                 if the target has such children, use --plain-probes (slower)"
                    .into(),
            );
        }
        told
    }

    /// How many probes are in place.
    #[must_use]
    pub fn count(&self) -> usize {
        self.attached.len()
    }

    /// The files in which a function is probed.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
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

    /// What was searched when nothing was found, for people; `None` once something is probed.
    #[must_use]
    pub fn nothing_found(&self, target: &str) -> Option<String> {
        self.attached.is_empty().then(|| self.report.nothing_found(target))
    }

    /// What did not work, in words, since the last call.
    pub fn take_failures(&mut self) -> Vec<String> {
        std::mem::take(&mut self.failures)
    }
}
