//! The object with the programs and their maps, by name.

use std::thread;

use aya::{
    Ebpf, EbpfLoader, Pod,
    maps::{Array, Map, MapData, MapError, RingBuf},
    programs::{
        Program, RawTracePoint, RawTracePointRunOptions, TestRun as _, TracePoint, UProbe,
        raw_trace_point::RawTracePointLinkId,
    },
};
use aya_log::EbpfLogger;
use log::Log;

use super::{
    error::{KernelError, attach_error, map_error, refused},
    multi_probes::{self, MapDescriptors, MultiProgram},
};

/// Object compiled by the build script.
pub(super) static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/nntrace-ebpf"));

/// The object once its maps are created. Dropping it detaches and unloads everything.
pub(super) struct Object(Ebpf, MapDescriptors);

impl Object {
    /// Creates the maps, with the globals and sizes set on the loader. No program is loaded yet.
    pub(super) fn load(loader: &mut EbpfLoader<'_>) -> Result<Self, KernelError> {
        let ebpf = loader.load(OBJECT).map_err(|error| refused(&error))?;
        let descriptors = MapDescriptors::of(&ebpf).map_err(|error| refused(&error))?;
        Ok(Self(ebpf, descriptors))
    }

    /// Loads programs on functions once more, in the form that one link attaches to many places.
    pub(super) fn load_multi(&self, programs: &[&str]) -> Result<Vec<MultiProgram>, KernelError> {
        multi_probes::load(OBJECT, &self.1, programs)
    }

    /// Loads a program on a raw tracepoint, if that is not done yet.
    pub(super) fn load_raw(&mut self, program: &'static str) -> Result<(), KernelError> {
        let raw = self.raw_tracepoint(program)?;
        if raw.fd().is_err() {
            raw.load().map_err(|error| refused(&error))?;
        }
        Ok(())
    }

    /// Loads programs on functions and on raw tracepoints, each in a thread of its own: the kernel verifies them at the same
    /// time. An error is reported when the program is loaded where it is needed.
    pub(super) fn load_together(&mut self, programs: &[&str]) {
        thread::scope(|scope| {
            for (_, program) in self.0.programs_mut().filter(|(name, _)| programs.contains(name)) {
                scope.spawn(move || match program {
                    Program::UProbe(program) => program.load().is_ok(),
                    Program::RawTracePoint(program) => program.load().is_ok(),
                    _ => false,
                });
            }
        });
    }

    /// Attaches a loaded program to a raw tracepoint.
    pub(super) fn attach_raw(
        &mut self,
        program: &'static str,
        point: &str,
    ) -> Result<RawTracePointLinkId, KernelError> {
        self.raw_tracepoint(program)?.attach(point).map_err(attach_error(point))
    }

    /// Loads a program on a tracepoint.
    pub(super) fn load_event(&mut self, program: &'static str) -> Result<(), KernelError> {
        self.tracepoint(program)?.load().map_err(|error| refused(&error))
    }

    /// Attaches a loaded program to a tracepoint, until the end.
    pub(super) fn attach_event(
        &mut self,
        program: &'static str,
        group: &str,
        event: &str,
    ) -> Result<(), KernelError> {
        self.tracepoint(program)?.attach(group, event).map(drop).map_err(attach_error(event))
    }

    /// Runs a program on a raw tracepoint as if the event had come with these arguments, at most twelve: on the CPU
    /// `on`, which it wakes, or on the one where this process runs.
    pub(super) fn run(
        &mut self,
        program: &'static str,
        on: Option<u32>,
        arguments: &[u64],
    ) -> Result<(), KernelError> {
        let mut options = RawTracePointRunOptions::new();
        options.args.iter_mut().zip(arguments).for_each(|(slot, argument)| *slot = *argument);
        options.cpu = on;
        self.raw_tracepoint(program)?.test_run(options).map(|_| ()).map_err(attach_error(program))
    }

    /// Returns a map for reading.
    pub(super) fn table<'a, M>(&'a self, name: &'static str) -> Result<M, KernelError>
    where
        M: TryFrom<&'a Map, Error = MapError>,
    {
        let map = self.0.map(name).ok_or(KernelError::Missing(name))?;
        map.try_into().map_err(KernelError::reading)
    }

    /// Returns an array for writing.
    pub(super) fn array<V: Pod>(
        &mut self,
        name: &'static str,
    ) -> Result<Array<&mut MapData, V>, KernelError> {
        let map = self.map_mut(name).ok_or(KernelError::Missing(name))?;
        map.try_into().map_err(map_error("use a table"))
    }

    /// Takes a ring out of the object: it is read while other maps are. The programs keep it.
    pub(super) fn take_ring(&mut self, name: &'static str) -> Result<RingBuf<MapData>, KernelError> {
        let map = self.0.take_map(name).ok_or(KernelError::Missing(name))?;
        map.try_into().map_err(map_error("map a ring"))
    }

    /// Returns a map of any kind for writing.
    pub(super) fn map_mut(&mut self, name: &str) -> Option<&mut Map> {
        self.0.map_mut(name)
    }

    /// The reader of the lines that programs log, which hands them to the collector's own log.
    pub(super) fn log_reader(&mut self) -> Result<EbpfLogger<&'static dyn Log>, KernelError> {
        EbpfLogger::init(&mut self.0).map_err(|_| KernelError::Missing("ring for log lines"))
    }

    /// A program of any kind.
    pub(super) fn program(&self, name: &str) -> Option<&Program> {
        self.0.program(name)
    }

    pub(super) fn uprobe(&mut self, name: &'static str) -> Result<&mut UProbe, KernelError> {
        let program = self.0.program_mut(name).ok_or(KernelError::Missing(name))?;
        program.try_into().map_err(|_| KernelError::Missing(name))
    }

    pub(super) fn raw_tracepoint(&mut self, name: &'static str) -> Result<&mut RawTracePoint, KernelError> {
        let program = self.0.program_mut(name).ok_or(KernelError::Missing(name))?;
        program.try_into().map_err(|_| KernelError::Missing(name))
    }

    fn tracepoint(&mut self, name: &'static str) -> Result<&mut TracePoint, KernelError> {
        let program = self.0.program_mut(name).ok_or(KernelError::Missing(name))?;
        program.try_into().map_err(|_| KernelError::Missing(name))
    }
}
