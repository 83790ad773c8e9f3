//! Which mark functions are probed: each once, however many processes map its file.

use std::collections::HashSet;

use super::{
    kernel::Kernel,
    target::{Object, ObjectId, Objects, ProcessError, Processes, SearchReport, SymbolSpec},
};

/// The probes that are in place, and what was searched for them.
pub struct Probes {
    specs: Vec<SymbolSpec>,
    searched: HashSet<ObjectId>,
    attached: HashSet<(ObjectId, u64)>,
    report: SearchReport,
    failures: Vec<String>,
}

impl Probes {
    /// Probes for these functions; none is in place yet.
    #[must_use]
    pub fn new(specs: Vec<SymbolSpec>) -> Self {
        Self {
            specs,
            searched: HashSet::new(),
            attached: HashSet::new(),
            report: SearchReport::default(),
            failures: Vec::new(),
        }
    }

    /// Searches the files that a process executes and that were not searched yet, and probes what is found there.
    /// Returns how many new probes that made.
    ///
    /// # Errors
    /// When the process is gone or may not be looked at; a probe that cannot be attached is a [`Probes::failures`].
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
            match kernel.attach_mark(function) {
                Ok(()) => {
                    new += 1;
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
