//! Sections of the functions of a path, collected while a run is replayed.

use std::{cell::RefCell, rc::Rc};

use nntrace_common::stamp::Stamp;
use rustc_hash::FxHashMap;

use super::Path;
use crate::model::{
    input::Observer,
    section::{Section, SectionObserver},
};

/// Section of a function of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step {
    /// Begin.
    pub(super) begin: Stamp,
    /// End.
    pub(super) end: Stamp,
    /// Place of its function in the path; a function that is in it twice has a step for each.
    pub(super) place: usize,
}

/// Sections of one thread, ascending.
pub(super) type Steps = FxHashMap<u32, Vec<Step>>;

/// Collected sections.
#[derive(Debug, Default)]
struct Collected {
    steps: Steps,
    count: u64,
}

/// Collector of the sections of a path.
#[derive(Debug)]
pub struct PathCollector {
    path: Path,
    most: u64,
    collected: Rc<RefCell<Collected>>,
}

impl PathCollector {
    /// Creates a collector that takes so much memory at most, bytes.
    #[must_use]
    pub fn new(path: Path, memory: u64) -> Self {
        // A vector that grows has room for twice as many.
        Self { path, most: memory / (2 * size_of::<Step>() as u64), collected: Rc::default() }
    }

    /// Returns an observer of a model that collects again.
    #[must_use]
    pub fn observer(&self) -> Observer {
        self.collected.take();
        let (path, most, collected) = (self.path.clone(), self.most, Rc::clone(&self.collected));
        Observer::new(SectionObserver::new(move |section: &Section<'_>| {
            let all = &mut *collected.borrow_mut();
            for place in (0..path.0.len()).filter(|place| *path.0[*place] == *section.name) {
                all.count += 1;
                if all.count <= most {
                    let step = Step { begin: section.begin_stamp(), end: section.end_stamp(), place };
                    all.steps.entry(section.tid).or_default().push(step);
                }
            }
        }))
    }

    /// Returns the path and its sections, by thread.
    ///
    /// # Errors
    /// With the reason, when there were more than there is room for.
    pub(super) fn finish(&self) -> Result<(&Path, Steps), String> {
        let Collected { mut steps, count } = self.collected.take();
        if count > self.most {
            return Err(format!(
                "{count} sections of the path are more than there is room for ({}): give more with --memory",
                self.most
            ));
        }
        for all in steps.values_mut() {
            all.sort_unstable();
        }
        Ok((&self.path, steps))
    }
}
