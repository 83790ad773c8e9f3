//! Outlets of marks: the function that profilers probe, or ftrace's file.

use std::{
    fs::File,
    io::{self, Write as _},
    mem,
    path::PathBuf,
};

use nntrace_common::emit::{self, Payload, Section};

use super::{
    error::EmitError,
    shared::{Counter, Shared},
    texts::Line,
};

/// Places of ftrace's file for marks, the preferred one first.
const TRACE_MARKERS: [&str; 2] =
    ["/sys/kernel/tracing/trace_marker", "/sys/kernel/debug/tracing/trace_marker"];

/// Kind of an outlet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutletKind {
    /// Calls of `tracing_mark_write`.
    #[default]
    Function,
    /// Writes to ftrace's file.
    TraceMarker,
}

/// Outlet that is open.
#[derive(Debug)]
pub(super) enum Outlet {
    Function,
    TraceMarker(File),
}

impl Outlet {
    /// Opens an outlet.
    ///
    /// # Errors
    /// When the file is not there, or may not be written.
    pub(super) fn open(kind: OutletKind) -> Result<Self, EmitError> {
        if kind == OutletKind::Function {
            return Ok(Self::Function);
        }
        let mut refused = None;
        for path in TRACE_MARKERS.map(PathBuf::from) {
            match File::options().write(true).open(&path) {
                Ok(file) => return Ok(Self::TraceMarker(file)),
                Err(reason) if reason.kind() == io::ErrorKind::NotFound && refused.is_some() => {}
                Err(reason) => refused = Some(EmitError::TraceMarker { path, reason }),
            }
        }
        let [path, _] = TRACE_MARKERS.map(PathBuf::from);
        let reason = io::Error::from(io::ErrorKind::NotFound);
        Err(refused.unwrap_or(EmitError::TraceMarker { path, reason }))
    }
}

/// Marks of one thread.
pub(super) struct Writer<'a> {
    outlet: &'a Outlet,
    shared: &'a Shared,
    pid: u32,
    /// Open sections whose begins took the function, or were not received: their ends take the same way.
    open: Vec<Section<'static>>,
}

impl<'a> Writer<'a> {
    /// Creates the writer of a thread of this process.
    pub(super) fn new(outlet: &'a Outlet, shared: &'a Shared) -> Self {
        Self { outlet, shared, pid: std::process::id(), open: Vec::new() }
    }

    /// Begins a section.
    pub(super) fn begin(&mut self, text: impl FnOnce(u32) -> Line) {
        let pid = self.pid;
        match self.outlet {
            Outlet::Function => {
                self.open.push(Section::begin_with(|| Payload::of_text(text(pid).bytes())));
            }
            Outlet::TraceMarker(file) => self.write(file, &text(pid)),
        }
    }

    /// Ends the innermost section.
    pub(super) fn end(&mut self) {
        match self.outlet {
            Outlet::Function => drop(self.open.pop()),
            Outlet::TraceMarker(file) => self.write(file, &Line::end(self.pid)),
        }
    }

    /// Writes any other event.
    pub(super) fn event(&mut self, text: impl FnOnce(u32) -> Line) {
        let pid = self.pid;
        match self.outlet {
            Outlet::Function => emit::event(|| Payload::of_text(text(pid).bytes())),
            Outlet::TraceMarker(file) => self.write(file, &text(pid)),
        }
    }

    fn write(&self, mut file: &File, line: &Line) {
        if file.write(line.bytes()).is_err() {
            self.shared.add(Counter::Refused, 1);
        }
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        // What is open at the end was open at the end of the recording.
        mem::take(&mut self.open).into_iter().for_each(mem::forget);
    }
}
