//! Lines that the programs log, and how many of them were left out.

use aya::{EbpfLoader, maps::Array};
use aya_log::EbpfLogger;
use log::Log;
use nntrace_common::log_limit::{LogGate, LogKind};

use super::{Kernel, KernelError, object::Object};

/// The level of the programs' lines: that of the collector's own.
pub(super) struct LogLevel(u8);

impl LogLevel {
    pub(super) fn of_collector() -> Self {
        // Both number their levels alike, with 0 for none.
        Self(log::max_level() as u8)
    }

    pub(super) fn configure<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        loader.override_global(aya_log::LEVEL, &self.0, true);
        if self.0 == 0 {
            // Nobody writes to it: of the smallest size there is.
            loader.map_max_entries("AYA_LOGS", 4096);
        }
    }
}

/// The ring with the lines.
pub(super) struct KernelLog {
    reader: EbpfLogger<&'static dyn Log>,
    /// Lines that were left out so far, by kind.
    left_out: [u64; LogKind::COUNT],
}

impl KernelLog {
    /// `None` where no program logs.
    pub(super) fn open(object: &mut Object, level: &LogLevel) -> Result<Option<Self>, KernelError> {
        if level.0 == 0 {
            return Ok(None);
        }
        Ok(Some(Self { reader: object.log_reader()?, left_out: [0; LogKind::COUNT] }))
    }
}

impl Kernel {
    /// Hands the lines that the programs logged to the collector's log.
    pub(crate) fn drain_log(&mut self) {
        if let Some(log) = &mut self.log {
            log.reader.flush();
        }
    }

    /// Logs how many lines of the programs were left out since the last call.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn log_left_out(&mut self) -> Result<(), KernelError> {
        let Self { log: Some(log), object, .. } = self else { return Ok(()) };
        let gates: Array<_, LogGate> = object.table("LOG_GATES")?;
        for kind in LogKind::all() {
            let left_out = gates.get(&kind.number(), 0).map_err(KernelError::reading)?.left_out;
            let before = std::mem::replace(&mut log.left_out[kind.number() as usize], left_out);
            if left_out > before {
                log::warn!(target: "kernel", "{} lines were left out: {}", left_out - before, kind.name());
            }
        }
        Ok(())
    }
}
