//! One run of an emulated machine.

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

/// What the guest prints.
pub const SERIAL: &str = "serial.log";
/// What the emulator prints.
const EMULATOR_LOG: &str = "qemu.log";
/// The stream of files of a guest that has no better way.
const FILES: &str = "files.bin";
/// A machine that takes longer hangs.
const LIMIT: Duration = Duration::from_mins(40);
/// What random numbers begin from if nothing else is said.
pub const SEED: u32 = 42;
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
    /// What its random numbers begin from.
    pub seed: u32,
    /// Its kernel.
    pub kernel: &'a Kernel,
    /// Its first file system.
    pub archive: &'a [u8],
    /// Its first process.
    pub first: First<'a>,
}

/// The first process of a machine, and how it tells that all passed.
pub struct First<'a> {
    /// Its path in the first file system.
    pub path: &'a str,
    /// Its arguments.
    pub words: &'a [String],
    /// What the lines that are meant for us begin with.
    pub name: &'a str,
    /// What it says there in the end when all passed, and never otherwise.
    pub passed: &'a str,
    /// How it ends.
    pub end: End,
}

/// How a first process ends its machine.
#[derive(Clone, Copy)]
pub enum End {
    /// Through the emulator, whose exit status says that all passed.
    Status,
    /// By switching the machine off. The status is that of a kernel that panicked, too: only the last line tells.
    PowerOff,
}

impl First<'_> {
    /// What it told us on the console.
    fn lines<'s>(&self, serial: &'s str) -> impl Iterator<Item = &'s str> {
        serial.lines().filter_map(|line| line.trim_end().strip_prefix(self.name)?.strip_prefix(": "))
    }

    /// Whether all passed, by what it told and by the status that the emulator ended with.
    fn has_passed(&self, arch: Arch, serial: &str, status: Option<i32>) -> bool {
        status == Some(self.end.status(arch)) && self.lines(serial).last() == Some(self.passed)
    }
}

impl End {
    /// The status that the emulator ends with when all passed.
    const fn status(self, arch: Arch) -> i32 {
        match (self, arch) {
            // Twice what the guest says, plus one.
            (Self::Status, Arch::X86_64) => 41,
            (Self::Status, Arch::Aarch64) => 42,
            (Self::PowerOff, _) => 0,
        }
    }
}

impl Machine<'_> {
    /// Runs it in an empty folder, which then holds what came out.
    pub fn run(&self, folder: &Path) -> Result<()> {
        emptied(folder)?;
        let archive = folder.join("initramfs.cpio");
        fs::write(&archive, self.archive)?;
        let mut qemu = self.qemu();
        // Without a device tree of ours the emulator makes its own.
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
        // In one go: others may run at the same time.
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
        qemu.args(["-smp", &self.board.cpus().to_string(), "-m", MEMORY]);
        qemu.args(["-seed", &self.seed.to_string()]);
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
