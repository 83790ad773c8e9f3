//! Hooked functions of a run: which functions of a file are hooked instead of probed, and in which processes.

use std::{collections::HashSet, fs, path::Path};

use super::plan::Plan;
use crate::live::{
    engines::probe::EngineProbe,
    express::offers,
    hooks::Hooks,
    kernel::{Kernel, KernelError, lanes::LaneProbe},
    target::{Object, ObjectId, Processes, has_interpreter},
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
    planned: HashSet<ObjectId>,
    /// Processes that map such a file without the library.
    without: HashSet<u32>,
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
    /// Whether it has run no code of those that are new.
    pub(crate) is_held: bool,
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

    /// Whether functions of the files that a process maps can be hooked: it has the library, and is held.
    pub(super) fn is_possible(&self, process: Option<Mapping<'_>>) -> bool {
        let has_library =
            |hooks: &Hooks, process: Mapping<'_>| process.is_held && has_library(hooks, process);
        self.hooks.as_ref().zip(process).is_some_and(|(hooks, process)| has_library(hooks, process))
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
            hooks.write(object.id, &plan.text()).map_err(|error| {
                format!("{}: not hooked, but probed: {error}", object.display_path.display())
            })?;
            self.planned.insert(object.id);
            for probes in groups {
                probes.retain(|probe| !plan.has(probe));
            }
        }
        Ok(counts)
    }

    /// Returns a note if a process maps a file with hooked functions and has no library.
    pub(super) fn note_without(&mut self, process: Mapping<'_>, objects: &[Object]) -> Option<String> {
        let hooks = self.hooks.as_ref()?;
        let planned = objects.iter().find(|object| self.planned.contains(&object.id))?;
        if self.without.len() >= MOST_NOTES
            || has_library(hooks, process)
            || !self.without.insert(process.pid)
        {
            return None;
        }
        Some(format!(
            "operators of {} in process {} are not seen: it does not load {}, as a static or setuid program or without LD_PRELOAD; \
             leave out --hooks to have them probed",
            planned.display_path.display(),
            process.pid,
            hooks.library().display()
        ))
    }
}

/// Whether a process has loaded the library or will have, before any engine: by its environment, as a program that has only
/// just begun maps nothing else yet.
fn has_library(hooks: &Hooks, Mapping { processes, pid, .. }: Mapping<'_>) -> bool {
    let folder = processes.dir(pid);
    let environment = fs::read(folder.join("environ")).unwrap_or_default();
    hooks.is_in(&environment) && has_interpreter(&folder.join("exe")) && !is_secure(&folder)
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
        let us = Mapping { processes: &processes, pid: std::process::id(), is_held: true };
        let mut without = Hooking::new(None);
        assert!(!without.is_possible(Some(us)));
        let object = Object::at(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!(without.plan(&object, &mut [&mut Vec::new()]), Ok(vec![0]));
        assert_eq!(without.note_without(us, &[object]), None);
    }

    #[test]
    fn our_own_program_is_not_secure() {
        assert!(!is_secure(Path::new("/proc/self")));
        assert!(is_secure(Path::new("/nowhere")));
    }
}
