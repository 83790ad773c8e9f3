//! Probes on functions, and the choice of their programs.

use std::{collections::HashMap, io, path::Path};

use aya::programs::{
    ProgramError, UProbe,
    uprobe::{UProbeAttachLocation, UProbeLinkId, UProbeScope},
};
use nntrace_common::nested_functions::{FunctionKind, MarkCode};

use thiserror::Error;

use super::{
    Kernel, KernelError, detaching,
    error::attach_error,
    multi_probes::{MultiLink, MultiProgram},
    object::Object,
    processes::ENGINE_THREAD_END,
};
use crate::live::{
    privilege,
    target::{self, Layout, MarkFunction, ObjectId, PinnedFile, Role, SymbolSpec, present_name},
};

/// Programs that take marks from functions, one per argument layout, and their forms that may wait for a page.
pub(super) const MARK_PROGRAMS: [&str; 18] = [
    "mark_buf",
    "mark_buf_len",
    "mark_this_buf",
    "mark_this_buf_len",
    "section_begin",
    "section_begin_this",
    "section_end",
    "ndk_section_begin",
    "ndk_section_begin_this",
    "ndk_section_end",
    "mark_buf_sleepable",
    "mark_buf_len_sleepable",
    "mark_this_buf_sleepable",
    "mark_this_buf_len_sleepable",
    "section_begin_sleepable",
    "section_begin_this_sleepable",
    "ndk_section_begin_sleepable",
    "ndk_section_begin_this_sleepable",
];
/// Program on the loader's notifications.
const LOADER_PROGRAM: &str = "loader_event";
/// Program that stops a target.
const HOLD_PROGRAM: &str = "hold_at_entry";

/// Probe at the entry point of a program; see [`Kernel::hold_at_entry`].
#[must_use = "the probe stays until it is handed back to `Kernel::release_entry`"]
pub(crate) struct EntryProbe(Probe);

/// Probe at one place of a file.
enum Probe {
    /// A perf event, with the name of its program.
    Event(&'static str, UProbeLinkId),
    /// A link for many places.
    Multi(MultiLink),
}

/// Programs on functions, and the probes that stay until the end of the window.
pub(super) struct FunctionProbes {
    /// Whether programs wait for the page of a text; assumed until tried.
    waits_for_pages: bool,
    /// Probes on mark functions and loaders, with the file of each.
    probes: Vec<(ObjectId, Probe)>,
    /// Programs for many places, by name, where a user may not have perf events on functions.
    multi: HashMap<&'static str, MultiProgram>,
}

impl FunctionProbes {
    /// Creates the state without any probe.
    pub(super) fn new(may_wait_for_pages: bool) -> Self {
        Self { waits_for_pages: may_wait_for_pages, probes: Vec::new(), multi: HashMap::new() }
    }

    /// Whether a thread may be waiting for a page in one of the programs.
    pub(super) fn may_stall(&self) -> bool {
        self.waits_for_pages && !self.probes.is_empty()
    }

    /// Detaches the probes that stay until the end of the window.
    pub(super) fn detach(&mut self, object: &mut Object) {
        for (_, probe) in std::mem::take(&mut self.probes) {
            // One that is already gone needs no detaching.
            let _ = probe.detach(object);
        }
    }

    /// Detaches the probes on a file.
    pub(super) fn detach_file(&mut self, object: &mut Object, file: ObjectId) {
        for (_, probe) in self.probes.extract_if(.., |(of, _)| *of == file) {
            // As above.
            let _ = probe.detach(object);
        }
    }

    /// Probes an offset of a file until the end of the window.
    fn attach(
        &mut self,
        object: &mut Object,
        program: &'static str,
        file: &PinnedFile,
        offset: u64,
    ) -> Result<(), ProbeError> {
        let probe = self.probe(object, program, file, offset)?;
        self.probes.push((file.id(), probe));
        Ok(())
    }

    /// Probes an offset of a file. The kernel lets only root, or `CAP_SYS_ADMIN`, have perf events on functions, but
    /// `CAP_PERFMON` have links for many places (Linux 6.6). Source: kernel/events/core.c, `perf_uprobe_event_init`.
    fn probe(
        &mut self,
        object: &mut Object,
        program: &'static str,
        path: &Path,
        offset: u64,
    ) -> Result<Probe, ProbeError> {
        let refused = match object.probe(program, path, offset) {
            Ok(link) => return Ok(Probe::Event(program, link)),
            Err(error) => error,
        };
        if !privilege::is_refusal(&refused) {
            return Err(refused.into());
        }
        if !self.multi.contains_key(program) {
            let loaded = object.load_multi(&[program]).ok().and_then(|mut programs| programs.pop());
            let Some(loaded) = loaded.filter(MultiProgram::can_be_attached) else {
                return Err(refused.into());
            };
            self.multi.insert(program, loaded);
        }
        Ok(Probe::Multi(self.multi[program].attach(path, &[offset], &[0], false)?))
    }

    /// Returns the program for a mark function: where the kernel supports it, the form that may wait for the page of
    /// a text. A form that the kernel has refused is not tried again.
    fn mark_program(
        &mut self,
        object: &mut Object,
        kind: FunctionKind,
        role: Role,
        layout: Layout,
    ) -> &'static str {
        let (plain, sleepable) = programs_for(kind, role, layout);
        match sleepable {
            Some(sleepable) if self.waits_for_pages => {
                self.waits_for_pages = object.load_function(sleepable).is_ok();
                if self.waits_for_pages { sleepable } else { plain }
            }
            _ => plain,
        }
    }
}

impl Probe {
    fn detach(self, object: &mut Object) -> Result<(), KernelError> {
        match self {
            Self::Event(program, link) => {
                object.uprobe(program)?.detach(link).map_err(attach_error("a function"))
            }
            Self::Multi(link) => {
                drop(link);
                Ok(())
            }
        }
    }
}

/// Reason why a place of a file cannot be probed.
#[derive(Debug, Error)]
enum ProbeError {
    #[error(transparent)]
    Event(#[from] ProgramError),
    #[error(transparent)]
    Multi(#[from] io::Error),
}

impl Object {
    /// Loads a program on functions, if that is not done yet: verifying a mark program takes the kernel a tenth of a
    /// second.
    pub(super) fn load_function(&mut self, program: &'static str) -> Result<&mut UProbe, ProgramError> {
        let program = self.uprobe(program).map_err(|_| ProgramError::NotLoaded)?;
        if program.fd().is_err() {
            program.load()?;
        }
        Ok(program)
    }

    fn probe(
        &mut self,
        program: &'static str,
        path: &Path,
        offset: u64,
    ) -> Result<UProbeLinkId, ProgramError> {
        let program = self.load_function(program)?;
        program.attach(UProbeAttachLocation::AbsoluteOffset(offset), path, UProbeScope::AllProcesses)
    }
}

/// Whether the kernel probes functions. Source: `perf_uprobe` in kernel/events/core.c.
pub(crate) fn has_uprobes() -> bool {
    Path::new("/sys/bus/event_source/devices/uprobe").exists()
}

impl Kernel {
    /// Probes a mark function, at an offset of its file, in every process that maps it; only the marks of targets
    /// count.
    ///
    /// A probe for one process would not be inherited by its children, and marks before it could be attached to them
    /// would be lost.
    ///
    /// # Errors
    /// When the kernel refuses, with the object and the symbol.
    pub(crate) fn attach_mark(&mut self, function: &MarkFunction, at: u64) -> Result<(), KernelError> {
        let Self { functions, object, probed_files, .. } = self;
        probed_files.add(&function.path);
        let program = functions.mark_program(
            object,
            target::kind(function),
            function.found.role,
            function.found.layout,
        );
        let point = format!("{} in {}", function.found.demangled, function.display_path.display());
        functions.attach(object, program, &function.path, at).map_err(attach_error(&point))?;
        log::info!("{program} is on {point}, offset {at:#x} of the file");
        Ok(())
    }

    /// Loads the programs whose verification takes longest, at the same time: that for the first of these functions, which is
    /// the usual one, and that on the end of threads.
    pub(in crate::live) fn load_slowest(&mut self, specs: &[SymbolSpec]) {
        let usual = specs.first().map(|spec| {
            let (kind, layout) = (target::kind_of(spec.role, &spec.name), spec.layout.unwrap_or(Layout::Buf));
            let (plain, sleepable) = programs_for(kind, spec.role, layout);
            sleepable.filter(|_| self.functions.waits_for_pages).unwrap_or(plain)
        });
        if let Some(usual) = usual {
            self.object.load_together(&[usual, ENGINE_THREAD_END]);
        }
    }

    /// Loads the programs for functions that may turn up: verifying one takes the kernel a tenth of a second, in
    /// which a process runs on without its probe. An error in loading is reported when the program is attached.
    pub(crate) fn expect_functions(&mut self, specs: &[SymbolSpec]) {
        for spec in specs {
            let (kind, layout) = (target::kind_of(spec.role, &spec.name), spec.layout.unwrap_or(Layout::Buf));
            let program = self.functions.mark_program(&mut self.object, kind, spec.role, layout);
            let _ = self.object.load_function(program);
        }
    }

    /// Whether the programs wait for the page of a text that is not in memory, as far as is known.
    pub(in crate::live) fn waits_for_pages(&self) -> bool {
        self.functions.waits_for_pages
    }

    /// Enables nesting: from now on a mark function that another one calls, or jumps to, is part of that one's mark.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn set_nesting(&mut self) -> Result<(), KernelError> {
        self.object.array::<u32>("NESTING")?.set(0, 1, 0).map_err(KernelError::writing)
    }

    /// Registers the code of a function that is probed at an offset of its file, so that calls from it are
    /// recognized.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn set_mark_code(&mut self, function: &MarkFunction, at: u64) -> Result<(), KernelError> {
        let length = function.found.offset.saturating_add(function.found.length).saturating_sub(at);
        let mut codes = self.object.array::<MarkCode>("MARK_CODE")?;
        let index = (at & 0xfff) as u32;
        let known = codes.get(&index, 0).map_err(KernelError::reading)?;
        let code = MarkCode {
            length: known.length.max(u32::try_from(length).unwrap_or(u32::MAX)),
            jumps: known.jumps.max(u32::from(function.found.may_jump)),
        };
        codes.set(index, code, 0).map_err(KernelError::writing)
    }

    /// Probes the loader's notifications at this offset of its file, until [`Kernel::detach_marks`].
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn attach_loader(&mut self, file: &PinnedFile, offset: u64) -> Result<(), KernelError> {
        self.probed_files.add(file);
        self.functions
            .attach(&mut self.object, LOADER_PROGRAM, file, offset)
            .map_err(attach_error(&format!("the loader {}", present_name(file).display())))?;
        log::debug!("{LOADER_PROGRAM} is on the loader {}, offset {offset:#x}", present_name(file).display());
        Ok(())
    }

    /// Makes targets stop by SIGSTOP when they reach `offset` of the file, the entry point of a program.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn hold_at_entry(&mut self, path: &Path, offset: u64) -> Result<EntryProbe, KernelError> {
        self.functions
            .probe(&mut self.object, HOLD_PROGRAM, path, offset)
            .map(EntryProbe)
            .map_err(attach_error(&format!("the entry point of {}", present_name(path).display())))
    }

    /// Runs `act` while an offset of a file is probed by a program that ignores processes other than targets.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(in crate::live) fn while_probed<T>(
        &mut self,
        path: &Path,
        offset: u64,
        act: impl FnOnce() -> T,
    ) -> Result<T, KernelError> {
        let point = present_name(path).display().to_string();
        let refused = attach_error(&point);
        let probe = self.functions.probe(&mut self.object, LOADER_PROGRAM, path, offset).map_err(&refused)?;
        let done = act();
        match probe {
            Probe::Event(program, link) => {
                let link = self.object.uprobe(program)?.take_link(link).map_err(attach_error(&point))?;
                detaching::in_background(link);
            }
            Probe::Multi(link) => detaching::in_background(link),
        }
        Ok(done)
    }

    /// Detaches the probe at the entry point.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn release_entry(&mut self, probe: EntryProbe) -> Result<(), KernelError> {
        probe.0.detach(&mut self.object)
    }
}

/// Returns the program for a mark function, and its form that may wait for a page; an end has no text.
fn programs_for(kind: FunctionKind, role: Role, layout: Layout) -> (&'static str, Option<&'static str>) {
    let is_ndk = kind == FunctionKind::Ndk;
    let (plain, sleepable) = match (role, layout) {
        (Role::Mark, Layout::Buf) => ("mark_buf", "mark_buf_sleepable"),
        (Role::Mark, Layout::BufLen) => ("mark_buf_len", "mark_buf_len_sleepable"),
        (Role::Mark, Layout::ThisBuf) => ("mark_this_buf", "mark_this_buf_sleepable"),
        (Role::Mark, Layout::ThisBufLen) => ("mark_this_buf_len", "mark_this_buf_len_sleepable"),
        // The length is not needed: names of sections end at a NUL.
        (Role::Begin, Layout::Buf | Layout::BufLen) if is_ndk => {
            ("ndk_section_begin", "ndk_section_begin_sleepable")
        }
        (Role::Begin, Layout::Buf | Layout::BufLen) => ("section_begin", "section_begin_sleepable"),
        (Role::Begin, Layout::ThisBuf | Layout::ThisBufLen) if is_ndk => {
            ("ndk_section_begin_this", "ndk_section_begin_this_sleepable")
        }
        (Role::Begin, Layout::ThisBuf | Layout::ThisBufLen) => {
            ("section_begin_this", "section_begin_this_sleepable")
        }
        (Role::End, _) if is_ndk => return ("ndk_section_end", None),
        (Role::End, _) => return ("section_end", None),
    };
    (plain, Some(sleepable))
}
