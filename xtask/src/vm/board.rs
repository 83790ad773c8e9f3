//! Boards: the CPUs in a VM's device tree.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use clap::ValueEnum;

use crate::run::{command, quietly};

/// Board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Board {
    /// Four small and two large CPUs, three idle states, a frequency policy for each cluster
    Lab,
    /// Eight CPUs like an RK3588: 4+2+2, three policies, two idle states
    Rk3588,
    /// The lab without idle states: CPUs wait for interrupts, in an unknown state
    NoIdle,
    /// Nothing but CPUs
    Plain,
}

impl Board {
    /// Returns the number of CPUs. The interrupt controller, of version 2, takes eight at most; one of version 3 does
    /// not wake CPUs from idle states here.
    pub const fn cpus(self) -> u32 {
        match self {
            Self::Lab | Self::NoIdle | Self::Plain => 6,
            Self::Rk3588 => 8,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Lab => "lab",
            Self::Rk3588 => "rk3588",
            Self::NoIdle => "no-idle",
            Self::Plain => "plain",
        }
    }

    /// Overlays our CPUs on the emulator's device tree (`base`); returns the result.
    ///
    /// The emulator's is dumped again for each run: it differs between its versions.
    pub fn lay_over(self, base: &Path) -> Result<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vm/boards");
        let source = folder.join(self.name()).with_extension("dts");
        let (overlay, result) = (base.with_file_name("overlay.dtbo"), base.with_file_name("board.dtb"));
        // Ours has no sockets, like real boards.
        quietly(command("fdtput").arg("-r").arg(base).arg("/cpus/cpu-map/socket0"))?;
        quietly(
            command("dtc")
                .args(["-q", "-@", "-I", "dts", "-O", "dtb", "-i"])
                .arg(folder)
                .arg("-o")
                .arg(&overlay)
                .arg(source),
        )?;
        quietly(command("fdtoverlay").arg("-i").arg(base).arg("-o").arg(&result).arg(&overlay))?;
        fs::remove_file(overlay)?;
        Ok(result)
    }
}

impl fmt::Display for Board {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}
