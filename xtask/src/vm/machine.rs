//! One run of an emulated machine.

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::{
    arch::Arch,
    run::{command, quietly},
    vm::{board::Board, emptied, files, kernel::Kernel, programs::GUEST},
};

/// What the guest prints.
pub const SERIAL: &str = "serial.log";
/// What the emulator prints.
const EMULATOR_LOG: &str = "qemu.log";
/// The stream of files of a guest that has no better way.
const FILES: &str = "files.bin";
/// The last line of a guest that has passed.
const PASSED: &str = "vm-guest: 0 failed";
/// A machine that takes longer hangs.
const LIMIT: Duration = Duration::from_mins(10);
/// The guest's memory holds its programs twice: packed, and as files.
const MEMORY: &str = "2G";

/// A machine.
pub struct Machine<'a> {
    /// Its architecture.
    pub arch: Arch,
    /// Its CPUs.
    pub board: Board,
    /// Whether CPUs run at once.
    pub threads: bool,
    /// Its kernel.
    pub kernel: &'a Kernel,
    /// Its first file system.
    pub archive: &'a [u8],
    /// What the first process is to check.
    pub filter: &'a [String],
}

impl Machine<'_> {
    /// Runs it in an empty folder, which then holds what came out.
    pub fn run(&self, folder: &Path) -> Result<()> {
        emptied(folder)?;
        let archive = folder.join("initramfs.cpio");
        fs::write(&archive, self.archive)?;
        let mut qemu = self.qemu();
        if self.arch == Arch::Aarch64 {
            let base = folder.join("base.dtb");
            let mut dump = self.qemu();
            dump.args(["-machine", &format!("dumpdtb={}", base.display())]);
            quietly(&mut dump)?;
            qemu.arg("-dtb").arg(self.board.lay_over(&base)?);
        }
        if self.threads {
            qemu.args(["-accel", "tcg,thread=multi"]);
        } else {
            // The clock counts instructions, and jumps over idle time.
            qemu.args(["-accel", "tcg,thread=single", "-icount", "shift=1,sleep=off"]);
            qemu.args(["-rtc", "base=2026-01-01T00:00:00,clock=vm"]);
        }
        qemu.current_dir(folder).args(["-serial", &format!("file:{SERIAL}")]);
        qemu.arg("-kernel").arg(self.kernel.image()).arg("-initrd").arg(&archive);
        let console = if self.arch == Arch::Aarch64 { "ttyAMA0" } else { "ttyS0" };
        let words = self.filter.join(" ");
        qemu.arg("-append").arg(format!("console={console} quiet panic=-1 rdinit={GUEST} -- {words}"));
        let started = Instant::now();
        let status = wait(qemu, folder)?;
        fs::remove_file(&archive)?;
        let serial = fs::read(folder.join(SERIAL)).unwrap_or_default();
        let serial = String::from_utf8_lossy(&serial);
        println!("ran        {:.1} s", started.elapsed().as_secs_f64());
        for line in serial.lines().filter_map(|line| line.trim_end().strip_prefix("vm-guest: ")) {
            println!("           {line}");
        }
        if self.arch == Arch::X86_64 {
            files::unpack(&folder.join(FILES), folder)?;
        }
        // 0 is also how it ends when the guest's kernel panics.
        if status != Some(self.passed()) || !serial.lines().any(|line| line.trim_end() == PASSED) {
            let lines: Vec<&str> = serial.lines().collect();
            let last = lines[lines.len().saturating_sub(60)..].join("\n");
            let said = fs::read_to_string(folder.join(EMULATOR_LOG)).unwrap_or_default();
            bail!("the machine ended with {status:?}; all of it is in {}\n{last}\n{said}", folder.display());
        }
        Ok(())
    }

    /// The status that QEMU ends with when the guest says that all passed.
    const fn passed(&self) -> i32 {
        match self.arch {
            Arch::Aarch64 => 42,
            // Twice what the guest says, plus one.
            Arch::X86_64 => 41,
        }
    }

    /// The machine without anything to run. Never KVM: that it can be opened does not mean that it works, and nothing would
    /// be the same twice.
    fn qemu(&self) -> Command {
        let mut qemu = command(format!("qemu-system-{}", self.arch));
        match self.arch {
            Arch::Aarch64 => {
                qemu.args(["-machine", "virt,gic-version=2", "-cpu", "cortex-a72"]);
                qemu.args(["-semihosting-config", "enable=on,userspace=on,target=native"]);
            }
            Arch::X86_64 => {
                qemu.args(["-machine", "q35", "-cpu", "max"]);
                qemu.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"]);
                qemu.args(["-chardev", &format!("file,id=files,path={FILES}")]);
                qemu.args(["-device", "isa-debugcon,iobase=0xe9,chardev=files"]);
            }
        }
        qemu.args(["-smp", &self.board.cpus().to_string(), "-m", MEMORY, "-seed", "42"]);
        qemu.args(["-nographic", "-nodefaults", "-no-reboot", "-monitor", "none"]);
        qemu
    }
}

/// Waits for its end; returns the exit status.
fn wait(mut qemu: Command, folder: &Path) -> Result<Option<i32>> {
    let log = File::create(folder.join(EMULATOR_LOG))?;
    qemu.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let mut child = qemu.spawn().context("the emulator does not start")?;
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code());
        }
        if started.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(50));
    }
}
