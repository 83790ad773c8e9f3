//! Sections that are open.

use nntrace_common::record::Thread;

use super::Session;
use crate::{
    live::{kernel::KernelError, threads},
    model::{marks::OpenSection, unfinished_sections::OpenSections},
};

impl Session {
    /// Reads the open sections. It makes two system calls for each thread in the kernel's table.
    ///
    /// # Errors
    /// When the kernel's maps cannot be read.
    pub fn read_open_sections(&mut self, sections: &mut OpenSections) -> Result<(), KernelError> {
        sections.update(self.open_sections()?);
        for open in sections.lasting_mut() {
            open.pid = open.pid.or_else(|| self.process_of(open.tid));
            // A missing text costs the name only its words.
            let _ = self.kernel.read_name(open.name, &mut self.model.marks.names);
        }
        Ok(())
    }

    /// Returns the sections that are open; the processes of their threads are known only of those in lanes.
    pub(super) fn open_sections(&self) -> Result<Vec<OpenSection>, KernelError> {
        let mut all: Vec<OpenSection> = self.express.open().collect();
        self.kernel.visit_threads(|tid, thread| {
            if thread.is_marked != 0 && !thread.express.is_on() {
                let Thread { stack, engines, .. } = thread;
                let unseen = engines.perhaps_ended(stack.depth());
                let open = stack.open_sections().saturating_sub(unseen);
                let frames = stack.open_frames().take(open as usize);
                all.extend(frames.map(|(_, frame)| OpenSection::new(None, tid, frame, 0)));
            }
        })?;
        Ok(all)
    }

    /// Returns the process of a thread; `None` if it has ended.
    pub(super) fn process_of(&self, tid: u32) -> Option<u32> {
        self.alive.keys().copied().find(|pid| threads::is_of(*pid, tid))
    }
}
