//! Which mark functions are probed: each once, however many processes map its file.

use std::collections::HashSet;

use super::{
    kernel::Kernel,
    target::{Object, ObjectId, Objects, ProcessError, Processes, SearchReport, SymbolSpec},
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

/// The probes that are in place, and what was searched for them.
pub struct Probes {
    specs: Vec<SymbolSpec>,
    placement: Placement,
    searched: HashSet<ObjectId>,
    attached: HashSet<(ObjectId, u64)>,
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
            report: SearchReport::default(),
            failures: Vec::new(),
            warned: false,
        }
    }

    /// Searches the files that a process executes and that were not searched yet, and probes what is found there.
    /// Returns how many new probes that made.
    ///
    /// # Errors
    /// When the process is gone or may not be looked at; a probe that cannot be attached is
    /// told by [`Probes::take_failures`].
    pub fn follow(
        &mut self,
        kernel: &mut Kernel,
        processes: &Processes,
        pid: u32,
    ) -> Result<usize, ProcessError> {
        let objects = Objects::mapped_by(processes, pid)?;
        let mut new = Objects { objects: Vec::new(), failed: objects.failed };
        for object in objects.objects {
            if self.searched.insert(object.id) {
                new.objects.push(object);
            }
        }
        Ok(self.search(kernel, &new))
    }

    /// Searches one file, whoever maps it.
    pub fn search_file(&mut self, kernel: &mut Kernel, object: Object) -> usize {
        self.searched.insert(object.id);
        self.search(kernel, &Objects { objects: vec![object], failed: Vec::new() })
    }

    fn search(&mut self, kernel: &mut Kernel, objects: &Objects) -> usize {
        let found = SearchReport::of(objects, &self.specs);
        let mut new = 0;
        for function in &found.functions {
            if !self.attached.insert((function.object, function.offset)) {
                continue;
            }
            let past = match self.placement {
                Placement::OnNop => 0,
                Placement::PastNop => function.nop_length,
            };
            match kernel.attach_mark(function, past) {
                Ok(()) => {
                    new += 1;
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
                }
                Err(error) => {
                    self.attached.remove(&(function.object, function.offset));
                    self.failures.push(error.to_string());
                }
            }
        }
        self.report.merge(found);
        new
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
