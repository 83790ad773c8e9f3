//! Architectures that the profiler runs on.

use std::fmt;

use anyhow::{Context as _, Result};
use clap::ValueEnum;

/// Architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Arch {
    /// 64-bit ARM
    #[value(name = "aarch64", alias = "arm64")]
    Aarch64,
    /// 64-bit x86
    #[value(name = "x86_64", alias = "amd64")]
    X86_64,
}

impl Arch {
    /// Both architectures.
    pub const ALL: [Self; 2] = [Self::Aarch64, Self::X86_64];

    /// Returns the architecture of the host.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn host() -> Result<Self> {
        Self::ALL.into_iter().find(|arch| arch.is_host()).with_context(|| {
            format!("the profiler is not for machines like this one: {}", std::env::consts::ARCH)
        })
    }

    /// Returns the name in Rust and `uname -m`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aarch64 => "aarch64",
            Self::X86_64 => "x86_64",
        }
    }

    /// Returns the name in Debian.
    pub const fn debian(self) -> &'static str {
        match self {
            Self::Aarch64 => "arm64",
            Self::X86_64 => "amd64",
        }
    }

    /// Returns the compilation target: glibc, which is linked statically.
    pub const fn triple(self) -> &'static str {
        match self {
            Self::Aarch64 => "aarch64-unknown-linux-gnu",
            Self::X86_64 => "x86_64-unknown-linux-gnu",
        }
    }

    /// Returns the name of a binutils or GCC program for it.
    pub fn gnu(self, program: &str) -> String {
        if self.is_host() { program.into() } else { format!("{}-linux-gnu-{program}", self.name()) }
    }

    /// Whether it is the host's.
    pub fn is_host(self) -> bool {
        self.name() == std::env::consts::ARCH
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}
