//! VMs: the profiler and its live tests on other kernels and on the other architecture.
//!
//! Fully emulated, in an order that depends on the inputs alone: by default the guest's clock counts instructions, so
//! that two runs give the same bytes, including timestamps. Emulation shows the effects and the order of programs,
//! and nothing about speed, power or caches.

pub mod bare;
mod board;
mod busybox;
mod cpio;
mod features;
mod files;
mod golden;
mod kernel;
mod machine;
mod programs;
mod python;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::{
    arch::Arch,
    cross::Cross,
    debian, emulator, side_by_side,
    vm::{
        board::Board,
        busybox::Busybox,
        cpio::Archive,
        kernel::{Kernel, Version},
        machine::{End, First, Machine, SEED},
        programs::{GUEST, Programs},
    },
};

/// Options for the VMs and their checks.
#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Vm {
    /// Architecture of the VM
    #[arg(long, value_enum, default_value_t = Arch::Aarch64)]
    arch: Arch,
    /// Kernels to run
    #[arg(long = "kernel", value_enum, default_values = ["6.1"])]
    kernels: Vec<Version>,
    /// All kernels
    #[arg(long, conflicts_with = "kernels")]
    all: bool,
    /// Board with the CPUs of the device tree; x86-64 has none
    #[arg(long, value_enum, default_value_t = Board::Lab)]
    board: Board,
    /// A thread of the host for each CPU: real concurrency, and another order in each run
    #[arg(long)]
    threads: bool,
    /// Seed of the VM's random numbers: another one places programs elsewhere, and events come at other times
    #[arg(long, default_value_t = SEED)]
    seed: u32,
    /// Run twice and compare every byte of the results
    #[arg(long, conflicts_with = "threads")]
    twice: bool,
    /// Keep the recording of each kernel that passes under tests/fixtures/vm, with what replaying it gives, and write the
    /// table of kernels
    #[arg(long, conflicts_with_all = ["threads", "seed"])]
    bless: bool,
    /// Where a tool is missing or unavailable, print a message and succeed
    #[arg(long)]
    if_possible: bool,
    /// Names of checks or of modules of the `kernel` tests, after `--` [default: all]
    #[arg(last = true)]
    filter: Vec<String>,
}

impl Vm {
    /// Runs the VMs.
    pub fn run(&self) -> Result<()> {
        let (cross, busybox, kernels) = match self.prepare() {
            Err(error) if self.if_possible => {
                println!("vm: skipped, no virtual machine can run here: {error:#}");
                return Ok(());
            }
            prepared => prepared?,
        };
        let programs = Programs::build(self.arch, &cross, busybox, &self.filter)?;
        let shares = self.shares();
        let jobs = kernels.iter().flat_map(|kernel| shares.iter().map(move |share| (kernel, share)));
        let jobs: Vec<_> = jobs.collect();
        // A VM whose CPUs run concurrently takes all of ours.
        let at_once = if self.threads { 1 } else { side_by_side::cpus() };
        let failed = side_by_side::jobs(&jobs, at_once, |(kernel, share)| {
            let error = self.run_share(kernel, &programs, share).err()?;
            println!("vm: {} {}, {}: FAILED: {error:#}", self.arch, kernel.version, share.name);
            Some(kernel.version)
        });
        let failed: Vec<Version> = failed.into_iter().flatten().collect();
        let passed = kernels.iter().map(|kernel| kernel.version).filter(|version| !failed.contains(version));
        for version in passed.filter(|_| self.bless) {
            let folders: Vec<_> =
                shares.iter().map(|share| self.folder(version, share)).collect::<Result<_>>()?;
            golden::keep(&folders, &self.name(version))?;
        }
        ensure!(failed.is_empty(), "machines that did not pass: {} of {}", failed.len(), jobs.len());
        println!("vm: {} machines passed", jobs.len());
        Ok(())
    }

    /// Distributes the work to VMs that can run concurrently.
    fn shares(&self) -> Vec<Share> {
        if self.filter.is_empty() {
            let share = |name| Share { name, words: vec![name.to_owned()] };
            ["checks", "tests"].map(share).into()
        } else {
            vec![Share { name: "some", words: self.filter.clone() }]
        }
    }

    fn board(&self) -> Board {
        if self.arch == Arch::X86_64 { Board::Plain } else { self.board }
    }

    fn name(&self, version: Version) -> String {
        format!("{}-{version}-{}", self.arch, self.board())
    }

    fn folder(&self, version: Version, share: &Share) -> Result<PathBuf> {
        Ok(debian::cache()?.join("runs").join(format!("{}-{}", self.name(version), share.name)))
    }

    /// Provides everything that is needed before the first VM starts.
    fn prepare(&self) -> Result<(Cross, Busybox, Vec<Kernel>)> {
        emulator::check(self.arch)?;
        let cross = Cross::find(self.arch)?;
        let versions = if self.all { Version::ALL.to_vec() } else { self.kernels.clone() };
        let kernels = versions.into_iter().map(|version| Kernel::get(self.arch, version));
        Ok((cross, Busybox::get(self.arch)?, kernels.collect::<Result<_>>()?))
    }

    fn run_share(&self, kernel: &Kernel, programs: &Programs, share: &Share) -> Result<()> {
        let folder = self.folder(kernel.version, share)?;
        let mut archive = Archive::default();
        programs.pack(&mut archive)?;
        for (number, module) in kernel.modules().iter().enumerate() {
            let file = module.file_stem().unwrap_or_default().to_string_lossy();
            let content = fs::read(module)?;
            archive
                .add(&format!("modules/{number}-{file}.ko"), cpio::Node::File { content, executable: false });
        }
        let machine = Machine {
            arch: self.arch,
            board: self.board(),
            threads: self.threads,
            seed: self.seed,
            kernel,
            archive: &archive.bytes(),
            first: First {
                path: GUEST,
                words: &share.words,
                name: "vm-guest",
                passed: "0 failed",
                end: End::Status,
            },
        };
        machine.run(&folder)?;
        if self.twice {
            let mut again = folder.clone().into_os_string();
            again.push("-again");
            let again = PathBuf::from(again);
            machine.run(&again)?;
            golden::assert_same(&folder, &again)?;
        }
        Ok(())
    }
}

/// Work of one VM.
struct Share {
    name: &'static str,
    /// Arguments of its first process.
    words: Vec<String>,
}

/// Empties a folder.
fn emptied(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}
