//! Hooked functions of a run: which functions of a file are hooked instead of probed, and in which processes.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::Path,
};

use super::plan::Plan;
use crate::live::{
    engines::probe::EngineProbe,
    express::offers,
    hooks::{self, Hooks},
    kernel::{Kernel, KernelError, lanes::LaneProbe},
    target::{FileState, Object, ObjectId, Processes, has_interpreter},
};

/// Key of the auxiliary vector that says whether a program runs with other rights than its caller (getauxval(3)): its loader
/// preloads nothing then.
const AT_SECURE: u64 = 23;
/// Notes on processes without the library at most.
const MOST_NOTES: usize = 20;

/// Hooked functions of a run.
#[derive(Debug, Default)]
pub(super) struct Hooking {
    hooks: Option<Hooks>,
    /// Files with hooked functions.
    planned: HashSet<FileState>,
    /// Files that programs need not wait for any more, in their last states.
    answered: HashMap<ObjectId, FileState>,
    /// Processes that map such a file without the library.
    without: HashSet<u32>,
    /// Files that offer lanes, and whether each is the library, of this run or of another one.
    libraries: HashMap<ObjectId, bool>,
    /// Probes on the function by which its threads offer lanes.
    offers: Vec<LaneProbe>,
}

/// Process that maps files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapping<'a> {
    /// Where it is looked up.
    pub(crate) processes: &'a Processes,
    /// Its id.
    pub(crate) pid: u32,
}

impl Hooking {
    /// Creates the state for a run with hooks, or without.
    pub(super) fn new(hooks: Option<Hooks>) -> Self {
        Self { hooks, ..Self::default() }
    }

    /// Takes the lanes that threads offer by the library, in all processes: only our targets load this copy of it.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn take_lanes(&mut self, kernel: &mut Kernel) -> Result<(), KernelError> {
        if let Some(hooks) = &self.hooks {
            self.offers = offers::take_everywhere(kernel, hooks.library())?;
        }
        Ok(())
    }

    /// Whether a file is the library.
    pub(super) fn is_library(&self, object: ObjectId) -> bool {
        self.hooks.as_ref().is_some_and(|hooks| hooks.id() == object)
    }

    /// Whether a file is the library, of this run or of another one.
    pub(super) fn is_any_library(&mut self, object: ObjectId, path: &Path) -> bool {
        *self.libraries.entry(object).or_insert_with(|| hooks::is_library(path))
    }

    /// Whether functions of the files that a process maps can be hooked: the library is among them, or will be. Without a
    /// process they are in files that the command is expected to load.
    pub(super) fn is_possible(&self, process: Option<Mapping<'_>>, objects: &[Object]) -> bool {
        let Some(hooks) = &self.hooks else { return false };
        process.is_none_or(|process| {
            objects.iter().any(|object| self.is_library(object.id())) || will_have_library(hooks, process)
        })
    }

    /// Whether a process waits until what it has loaded is examined: it has the library, and may use it.
    pub(super) fn is_waited_for(&self, process: Mapping<'_>, objects: &[Object]) -> bool {
        self.is_possible(Some(process), objects) && !is_filtered(&process.processes.dir(process.pid))
    }

    /// Says that a file is being examined.
    pub(super) fn announce(&self, object: &Object) {
        if let Some(hooks) =
            self.hooks.as_ref().filter(|_| self.answered.get(&object.id()) != Some(&object.state))
        {
            hooks.announce_plan(object.state);
        }
    }

    /// Publishes what is to be hooked in a file, or that nothing is, which processes with the library wait for; returns a note
    /// when that fails.
    pub(super) fn answer(&mut self, object: &Object) -> Option<String> {
        let hooks = self.hooks.as_ref()?;
        match self.answered.insert(object.id(), object.state) {
            Some(before) if before == object.state => return None,
            Some(before) => hooks.remove_plan(before),
            None => {}
        }
        let error = hooks.publish(object.state).err()?;
        // Those that wait go on after a while.
        log::info!("cannot publish the plan for {}: {error}", object.display_path.display());
        self.planned.contains(&object.state).then(|| {
            format!(
                "operators of {} are not recorded: their hooks cannot be passed to the command ({error})",
                object.display_path.display()
            )
        })
    }

    /// Says whether files are being examined.
    pub(super) fn set_busy(&self, is_busy: bool) {
        if let Some(hooks) = &self.hooks {
            hooks.set_busy(is_busy);
        }
    }

    /// Ends the hooking of processes.
    pub(super) fn end(&mut self) {
        if let Some(hooks) = &self.hooks {
            hooks.remove_plans();
        }
    }

    /// Keeps the library.
    pub(super) fn keep_library(&self) {
        if let Some(hooks) = &self.hooks {
            hooks.keep_library();
        }
    }

    /// Plans the functions among these probes that can be hooked, and takes them out; returns their number for each of the groups.
    ///
    /// # Errors
    /// When the plan cannot be written: then all are left in.
    pub(super) fn plan(
        &mut self,
        object: &Object,
        groups: &mut [&mut Vec<EngineProbe>],
    ) -> Result<Vec<usize>, String> {
        let Some(hooks) = &self.hooks else { return Ok(vec![0; groups.len()]) };
        let mut plan = Plan::default();
        let counts =
            groups.iter().map(|probes| probes.iter().filter(|probe| plan.add(probe)).count()).collect();
        if !plan.is_empty() {
            hooks.prepare_plan(object.state, &plan.text()).map_err(|error| {
                format!("{}: not hooked, but probed: {error}", object.display_path.display())
            })?;
            self.planned.insert(object.state);
            for probes in groups {
                probes.retain(|probe| !plan.has(probe));
            }
        }
        Ok(counts)
    }

    /// Returns a note if a process maps a file with hooked functions without having the library.
    pub(super) fn note_without(&mut self, process: Mapping<'_>, objects: &[Object]) -> Option<String> {
        let hooks = self.hooks.as_ref()?;
        let planned = objects.iter().find(|object| self.planned.contains(&object.state))?;
        let has_library = objects.iter().any(|object| self.is_library(object.id()))
            || (is_program(process, planned.id()) && will_have_library(hooks, process));
        let has_library = has_library && !is_filtered(&process.processes.dir(process.pid));
        if self.without.len() >= MOST_NOTES || has_library || !self.without.insert(process.pid) {
            return None;
        }
        Some(format!(
            "operators of {} in process {} may be missing: it has not loaded {}, or may not use it (statically linked, setuid, \
             started without LD_PRELOAD, or under a seccomp filter); --no-hooks --engine-level op records them by probes",
            planned.display_path.display(),
            process.pid,
            hooks.library().display()
        ))
    }
}

/// Whether a file is the program that a process runs: it is mapped before any library.
fn is_program(Mapping { processes, pid, .. }: Mapping<'_>, object: ObjectId) -> bool {
    fs::metadata(processes.dir(pid).join("exe")).is_ok_and(|metadata| ObjectId::from(&metadata) == object)
}

/// Whether a process that has only just begun will load the library, by its environment.
fn will_have_library(hooks: &Hooks, Mapping { processes, pid, .. }: Mapping<'_>) -> bool {
    let folder = processes.dir(pid);
    let environment = fs::read(folder.join("environ")).unwrap_or_default();
    hooks.is_in(&environment) && has_interpreter(&folder.join("exe")) && !is_secure(&folder)
}

/// Whether a process, by its folder, runs under a seccomp filter: the library does nothing there.
fn is_filtered(folder: &Path) -> bool {
    let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() != "0"))
}

fn is_secure(folder: &Path) -> bool {
    let auxiliary = fs::read(folder.join("auxv")).unwrap_or_default();
    let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    // What cannot be read is not ours to trace.
    auxiliary.chunks_exact(16).find(|pair| word(pair) == AT_SECURE).is_none_or(|pair| word(&pair[8..]) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_hooked_without_the_library() {
        let processes = Processes::default();
        let us = Mapping { processes: &processes, pid: std::process::id() };
        let mut without = Hooking::new(None);
        let object = Object::at(&std::env::current_exe().unwrap()).unwrap();
        assert!(!without.is_possible(Some(us), std::slice::from_ref(&object)));
        assert!(is_program(us, object.id()));
        assert_eq!(without.plan(&object, &mut [&mut Vec::new()]), Ok(vec![0]));
        assert_eq!(without.answer(&object), None);
        assert_eq!(without.note_without(us, &[object]), None);
    }

    #[test]
    fn our_own_program_is_not_secure() {
        assert!(!is_secure(Path::new("/proc/self")));
        assert!(is_secure(Path::new("/nowhere")));
    }
}
