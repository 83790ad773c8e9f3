//! Virtual machines: the profiler and its live tests on other kernels and on the other architecture.
//!
//! Emulated throughout, in an order that depends on nothing but its inputs: by default the guest's clock counts
//! instructions, so that two runs bring the same bytes, timestamps included. What is emulated shows what programs do and in
//! what order, and nothing about speed, power or caches.

pub mod bare;
mod board;
mod busybox;
mod cpio;
mod features;
mod files;
mod golden;
mod kernel;
mod machine;
mod needs;
mod programs;

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{
    arch::Arch,
    cross::Cross,
    debian,
    vm::{
        board::Board,
        cpio::Archive,
        kernel::{Kernel, Version},
        machine::{End, First, Machine},
        programs::{GUEST, Programs},
    },
};

pub use needs::{check, install};

/// Which machines, and what is checked in them.
#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Vm {
    /// The machine's architecture
    #[arg(long, value_enum, default_value_t = Arch::Aarch64)]
    arch: Arch,
    /// The kernels it runs, one after the other
    #[arg(long = "kernel", value_enum, default_values = ["6.1"])]
    kernels: Vec<Version>,
    /// All kernels of this architecture
    #[arg(long, conflicts_with = "kernels")]
    all: bool,
    /// What the device tree says of the CPUs; for x86-64 there is none
    #[arg(long, value_enum, default_value_t = Board::Lab)]
    board: Board,
    /// A thread of the host for each CPU: real concurrency, and another order in each run
    #[arg(long)]
    threads: bool,
    /// Run twice and compare every byte that came out
    #[arg(long, conflicts_with = "threads")]
    twice: bool,
    /// Keep the recording of the run under tests/fixtures/vm, with what replaying it gives, and write the table of
    /// kernels
    #[arg(long, conflicts_with = "threads")]
    bless: bool,
    /// Where a tool is missing or cannot be had, say so and succeed
    #[arg(long)]
    if_possible: bool,
    /// Names of checks or of test programs, after `--` [default: all]
    #[arg(last = true)]
    filter: Vec<String>,
}

impl Vm {
    /// Runs them.
    pub fn run(&self) -> Result<()> {
        let (cross, kernels) = match self.prepare() {
            Err(error) if self.if_possible => {
                println!("vm: skipped, no virtual machine can run here: {error:#}");
                return Ok(());
            }
            prepared => prepared?,
        };
        let programs = Programs::build(self.arch, &cross, &self.filter)?;
        let mut failed = Vec::new();
        for (version, kernel) in &kernels {
            if let Err(error) = self.run_kernel(*version, kernel, &programs) {
                println!("vm: {} {version} FAILED: {error:#}", self.arch);
                failed.push(version.to_string());
            }
        }
        if !failed.is_empty() {
            bail!("kernels that did not pass: {}", failed.join(", "));
        }
        Ok(())
    }

    /// What has to be there, or to be had.
    fn prepare(&self) -> Result<(Cross, Vec<(Version, Kernel)>)> {
        check(self.arch)?;
        let cross = Cross::find(self.arch)?;
        let versions = if self.all { Version::of(self.arch) } else { self.kernels.clone() };
        let kernels = versions.into_iter().map(|version| Ok((version, Kernel::get(self.arch, version)?)));
        Ok((cross, kernels.collect::<Result<_>>()?))
    }

    fn run_kernel(&self, version: Version, kernel: &Kernel, programs: &Programs) -> Result<()> {
        let board = if self.arch == Arch::X86_64 { Board::Plain } else { self.board };
        let name = format!("{}-{version}-{board}", self.arch);
        let folder = debian::cache()?.join("runs").join(&name);
        let mut archive = Archive::default();
        programs.pack(&mut archive)?;
        for (number, module) in kernel.modules().iter().enumerate() {
            let file = module.file_stem().unwrap_or_default().to_string_lossy();
            let content = fs::read(module)?;
            archive
                .add(&format!("modules/{number}-{file}.ko"), cpio::Node::File { content, executable: false });
        }
        let archive = archive.bytes();
        println!("booting    {name}: {}, {} MB of programs", kernel.package, archive.len() >> 20);
        let machine = Machine {
            arch: self.arch,
            board,
            threads: self.threads,
            kernel,
            archive: &archive,
            first: First {
                path: GUEST,
                words: &self.filter,
                name: "vm-guest",
                passed: "0 failed",
                end: End::Status,
            },
        };
        machine.run(&folder)?;
        if self.twice {
            let again = folder.with_file_name(format!("{name}-again"));
            machine.run(&again)?;
            golden::assert_same(&folder, &again)?;
        }
        if self.bless {
            golden::keep(&folder, &name)?;
        }
        println!("vm: {name} passed");
        Ok(())
    }
}

/// A folder with nothing in it.
fn emptied(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}
