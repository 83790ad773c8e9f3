//! Probes on functions: which program goes where.

use std::path::Path;

use aya::programs::{
    ProgramError,
    uprobe::{UProbeAttachLocation, UProbeLinkId, UProbeScope},
};

use super::{
    kernel::{Kernel, KernelError, attach_error},
    target::{Layout, MarkFunction, Role, SymbolSpec},
};

/// The programs that take marks from functions, one per argument layout.
pub(super) const MARK_PROGRAMS: [&str; 7] = [
    "mark_buf",
    "mark_buf_len",
    "mark_this_buf",
    "mark_this_buf_len",
    "section_begin",
    "section_begin_this",
    "section_end",
];
/// The program on returns of mark functions.
pub(super) const RETURN_PROGRAM: &str = "mark_return";
/// The program on the loader's notifications.
const LOADER_PROGRAM: &str = "loader_event";

/// A probe at the entry point of a program; see [`Kernel::hold_at_entry`].
#[must_use = "the probe stays until it is handed back to `Kernel::release_entry`"]
pub struct EntryProbe(UProbeLinkId);

impl Kernel {
    /// Probes a mark function, `past` so many bytes of its first instructions: in every process that maps the object,
    /// of which only the targets are counted.
    ///
    /// A probe for one process would not be in its children, and what they mark before it could be put there would
    /// be lost.
    ///
    /// # Errors
    /// When the kernel refuses, with the object and the symbol.
    pub fn attach_mark(&mut self, function: &MarkFunction, past: u8) -> Result<(), KernelError> {
        self.attach_function(program_for(function.role, function.layout), function, past)
    }

    /// Loads the programs for functions that may turn up: checking one takes the kernel a tenth of a second, in which
    /// a process that runs on would not wait for its probe. One that cannot be loaded tells so when it is attached.
    pub fn expect_functions(&mut self, specs: &[SymbolSpec]) {
        let wanted = specs.iter().map(|spec| program_for(spec.role, spec.layout.unwrap_or(Layout::Buf)));
        for name in wanted.chain([RETURN_PROGRAM]) {
            if let Ok(program) = self.uprobe(name)
                && program.fd().is_err()
            {
                let _ = program.load();
            }
        }
    }

    /// Has the programs learn when this mark function, probed or to be probed, returns; see
    /// [`Kernel::set_nesting`].
    ///
    /// # Errors
    /// When the kernel refuses, with the object and the symbol.
    pub fn attach_return(&mut self, function: &MarkFunction, past: u8) -> Result<(), KernelError> {
        self.attach_function(RETURN_PROGRAM, function, past)
    }

    fn attach_function(
        &mut self,
        program: &'static str,
        function: &MarkFunction,
        past: u8,
    ) -> Result<(), KernelError> {
        let point = format!("{} in {}", function.demangled, function.display_path.display());
        let link = self
            .probe(program, &function.path, function.offset + u64::from(past))
            .map_err(attach_error(&point))?;
        self.mark_links.push((program, link));
        Ok(())
    }

    /// From now on a mark function that is entered before another one of the same thread has returned is taken for a
    /// part of that. The returns of all functions that are probed have to be seen.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_nesting(&mut self) -> Result<(), KernelError> {
        self.array::<u32>("NESTING")?.set(0, 1, 0).map_err(KernelError::writing)
    }

    /// Has the loader's notifications told, at this offset of its file; it goes with [`Kernel::detach_marks`].
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn attach_loader(&mut self, path: &Path, offset: u64) -> Result<(), KernelError> {
        let link = self
            .probe(LOADER_PROGRAM, path, offset)
            .map_err(attach_error(&format!("the loader {}", path.display())))?;
        self.mark_links.push((LOADER_PROGRAM, link));
        Ok(())
    }

    /// Lets targets stop by SIGSTOP when they get to `offset` of the file, the entry point of a program.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn hold_at_entry(&mut self, path: &Path, offset: u64) -> Result<EntryProbe, KernelError> {
        self.probe("hold_at_entry", path, offset)
            .map(EntryProbe)
            .map_err(attach_error(&format!("the entry point of {}", path.display())))
    }

    /// Takes the probe at the entry point away.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn release_entry(&mut self, probe: EntryProbe) -> Result<(), KernelError> {
        self.uprobe("hold_at_entry")?.detach(probe.0).map_err(attach_error("the entry point"))
    }

    fn probe(
        &mut self,
        program: &'static str,
        path: &Path,
        offset: u64,
    ) -> Result<UProbeLinkId, ProgramError> {
        let program = self.uprobe(program).map_err(|_| ProgramError::NotLoaded)?;
        // Loaded when it is first needed: checking a mark program takes the kernel a tenth of a second.
        if program.fd().is_err() {
            program.load()?;
        }
        program.attach(UProbeAttachLocation::AbsoluteOffset(offset), path, UProbeScope::AllProcesses)
    }
}

/// The program for a mark function.
fn program_for(role: Role, layout: Layout) -> &'static str {
    match (role, layout) {
        (Role::Mark, Layout::Buf) => "mark_buf",
        (Role::Mark, Layout::BufLen) => "mark_buf_len",
        (Role::Mark, Layout::ThisBuf) => "mark_this_buf",
        (Role::Mark, Layout::ThisBufLen) => "mark_this_buf_len",
        // A length is not asked for: names of sections end at a NUL.
        (Role::Begin, Layout::Buf | Layout::BufLen) => "section_begin",
        (Role::Begin, Layout::ThisBuf | Layout::ThisBufLen) => "section_begin_this",
        (Role::End, _) => "section_end",
    }
}
