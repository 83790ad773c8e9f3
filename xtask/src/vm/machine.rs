//! One run of a VM.

use std::{
    fmt::Write as _,
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
    vm::{board::Board, emptied, files, kernel::Kernel},
};

/// Output of the guest.
pub const SERIAL: &str = "serial.log";
/// Output of the emulator.
const EMULATOR_LOG: &str = "qemu.log";
/// Stream of files, from a guest without a better way.
const FILES: &str = "files.bin";
/// Time limit: a VM that takes longer hangs.
const LIMIT: Duration = Duration::from_mins(40);
/// Default seed of the random numbers.
pub const SEED: u32 = 42;
/// Memory of the guest, which holds its programs twice: packed, and as files.
const MEMORY: &str = "2G";

/// VM.
pub struct Machine<'a> {
    /// Architecture.
    pub arch: Arch,
    /// Board with the CPUs.
    pub board: Board,
    /// Whether CPUs run concurrently.
    pub threads: bool,
    /// Seed of the random numbers.
    pub seed: u32,
    /// Kernel.
    pub kernel: &'a Kernel,
    /// First file system.
    pub archive: &'a [u8],
    /// First process.
    pub first: First<'a>,
}

/// First process of a VM, and how it reports success.
pub struct First<'a> {
    /// Path in the first file system.
    pub path: &'a str,
    /// Arguments.
    pub words: &'a [String],
    /// Prefix of the lines with results.
    pub name: &'a str,
    /// Last of these lines after success, and never otherwise.
    pub passed: &'a str,
    /// Way of ending.
    pub end: End,
}

/// Way in which a first process ends its VM.
#[derive(Clone, Copy)]
pub enum End {
    /// Through the emulator, whose exit status shows success.
    Status,
    /// By switching the VM off. The status is that of a kernel panic, too: only the last line shows success.
    PowerOff,
}

impl First<'_> {
    /// Returns the result lines on the console.
    fn lines<'s>(&self, serial: &'s str) -> impl Iterator<Item = &'s str> {
        serial.lines().filter_map(|line| line.trim_end().strip_prefix(self.name)?.strip_prefix(": "))
    }

    /// Whether everything passed, by the result lines and by the emulator's exit status.
    fn has_passed(&self, arch: Arch, serial: &str, status: Option<i32>) -> bool {
        status == Some(self.end.status(arch)) && self.lines(serial).last() == Some(self.passed)
    }
}

impl End {
    /// Returns the emulator's exit status for success.
    const fn status(self, arch: Arch) -> i32 {
        match (self, arch) {
            // Twice the guest's value, plus one.
            (Self::Status, Arch::X86_64) => 41,
            (Self::Status, Arch::Aarch64) => 42,
            (Self::PowerOff, _) => 0,
        }
    }
}

impl Machine<'_> {
    /// Runs the VM in an empty folder, which then contains the results.
    pub fn run(&self, folder: &Path) -> Result<()> {
        emptied(folder)?;
        let archive = folder.join("initramfs.cpio");
        fs::write(&archive, self.archive)?;
        let mut qemu = self.qemu();
        // Without a device tree of ours the emulator generates its own.
        if self.arch == Arch::Aarch64 && self.board != Board::Plain {
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
        let (path, words) = (self.first.path, self.first.words.join(" "));
        qemu.arg("-append").arg(format!("console={console} quiet panic=-1 rdinit={path} -- {words}"));
        let name = folder.file_name().unwrap_or_default().display();
        println!("booting    {name}: {}, {} MB of files", self.kernel.package, self.archive.len() >> 20);
        let started = Instant::now();
        let status = wait(qemu, folder)?;
        fs::remove_file(&archive)?;
        let serial = fs::read(folder.join(SERIAL)).unwrap_or_default();
        let serial = String::from_utf8_lossy(&serial);
        let mut told = format!("ran        {name}: {:.1} s\n", started.elapsed().as_secs_f64());
        for line in self.first.lines(&serial) {
            let _ = writeln!(told, "           {line}");
        }
        // In one go: others may run concurrently.
        print!("{told}");
        if self.arch == Arch::X86_64 {
            files::unpack(&folder.join(FILES), folder)?;
        }
        if !self.first.has_passed(self.arch, &serial, status) {
            let lines: Vec<&str> = serial.lines().collect();
            let last = lines[lines.len().saturating_sub(60)..].join("\n");
            let said = fs::read_to_string(folder.join(EMULATOR_LOG)).unwrap_or_default();
            bail!("the machine ended with {status:?}; all of it is in {}\n{last}\n{said}", folder.display());
        }
        Ok(())
    }

    /// Returns the emulator's command without anything to run. Never with KVM: that it can be opened does not mean
    /// that it works, and no two runs would be equal.
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
        qemu.args(["-smp", &self.board.cpus().to_string(), "-m", MEMORY]);
        qemu.args(["-seed", &self.seed.to_string()]);
        qemu.args(["-nographic", "-nodefaults", "-no-reboot", "-monitor", "none"]);
        qemu
    }
}

/// Waits for the end of the emulator; returns the exit status.
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

#[cfg(test)]
mod tests {
    use super::*;

    const fn first(end: End) -> First<'static> {
        First { path: "/init", words: &[], name: "guest", passed: "0 failed", end }
    }

    #[test]
    fn only_the_last_line_of_the_first_process_tells_that_all_passed() {
        let first = first(End::PowerOff);
        let passed = |serial| first.has_passed(Arch::X86_64, serial, Some(0));
        assert!(passed("boot\r\nguest: ok a\r\nguest: 0 failed\r\n[    3.1] reboot: Power down\r\n"));
        assert!(!passed("guest: 0 failed\nguest: 1 failed\n"));
        assert!(!passed("guest: ok a\n[    3.1] Kernel panic\n"));
        assert!(!passed("# echo guest: 0 failed\n"));
        assert!(!first.has_passed(Arch::X86_64, "guest: 0 failed\n", None), "it hung and was ended");
    }

    #[test]
    fn a_status_has_to_agree_with_the_last_line() {
        let first = first(End::Status);
        let passed = |arch, status| first.has_passed(arch, "guest: 0 failed\n", Some(status));
        assert!(passed(Arch::Aarch64, 42) && passed(Arch::X86_64, 41));
        assert!(!passed(Arch::Aarch64, 0) && !passed(Arch::X86_64, 42));
    }
}
