//! Whether a probe on a leading nop is harmless on the running kernel: found out by trial, in a process of our own.
//!
//! From Linux 6.18 on, x86-64 kernels replace a probed nop (of five bytes, on later ones of ten) by a call into a
//! page that they add to the process. Linux 6.18 does not give that page to a forked child, while the call is copied:
//! a child that goes on without exec dies at its next mark. Kernel versions do not decide it, as fixes are
//! backported; a probed process that forks does. The trial takes some milliseconds, and is made when the first
//! function with such a nop is met.

use crate::live::kernel::Kernel;

/// Kind of a probe on a nop on the running kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NopProbe {
    /// A breakpoint. The nop is then a single step, or emulated.
    Breakpoint,
    /// The cheapest kind, and harmless: a call that forked children survive, or a breakpoint whose nop is simulated.
    Cheap,
    /// A call that kills forked children.
    Harmful,
    /// The trial failed, for this reason.
    Unknown(String),
}

/// Kinds of probes on nops, by the lengths that matter, once found out.
#[derive(Debug, Default)]
pub(crate) struct NopProbes {
    /// For ten bytes.
    long: Option<NopProbe>,
    /// For any other length: five on x86-64, four on arm64.
    short: Option<NopProbe>,
}

impl NopProbes {
    /// Returns the kind of a probe on a nop of this length, in bytes.
    pub(crate) fn get(&mut self, kernel: &mut Kernel, length: u8) -> &NopProbe {
        let is_long = length == 10;
        let known = if is_long { &mut self.long } else { &mut self.short };
        known.get_or_insert_with(|| trial::run(kernel, is_long))
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod trial {
    use super::NopProbe;
    use crate::live::kernel::Kernel;

    /// First release that simulates a probed `nop` (Linux commit ac4ad5c09b34).
    const SIMULATES_NOPS: (u32, u32) = (6, 13);

    /// Decides by the version: arm64 kernels replace nothing, so there is nothing to try; a probe is a breakpoint,
    /// which newer kernels handle without a single step. A wrong version costs time only.
    pub(crate) fn run(_: &mut Kernel, _: bool) -> NopProbe {
        if version().is_some_and(|version| version >= SIMULATES_NOPS) {
            NopProbe::Cheap
        } else {
            NopProbe::Breakpoint
        }
    }

    /// Returns the first two numbers of the kernel's version; `None` where it cannot be read.
    fn version() -> Option<(u32, u32)> {
        let system = nix::sys::utsname::uname().ok()?;
        let release = system.release().to_string_lossy();
        let mut numbers =
            release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
        Some((numbers.next()?, numbers.next()?))
    }
}

#[cfg(target_arch = "x86_64")]
mod trial {
    use std::{arch::global_asm, io, mem::MaybeUninit, path::Path, ptr};

    use nix::libc;

    use super::NopProbe;
    use crate::live::{
        kernel::Kernel,
        probe_trials::{OWN_FILE, offset},
    };

    /// Time limit of a trial's process, s. It needs a thousandth of that.
    const LONGEST: u32 = 5;
    /// Exit codes of the first process: the outcomes for the function and for the child that called it.
    const UNPROBED: i32 = 0x40;
    const BREAKPOINT: i32 = 0x41;
    const LIVED: i32 = 0x42;
    const DIED: i32 = 0x43;

    // Two functions that begin with a nop, as mark functions do. Each lies in one page, since kernels replace no nop
    // across pages. Global, as the code that refers to them may be compiled apart.
    global_asm!(
        ".pushsection .text.nntrace_trial,\"ax\",%progbits",
        ".balign 32",
        ".globl nntrace_trial_nop5",
        ".hidden nntrace_trial_nop5",
        "nntrace_trial_nop5: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00",
        "ret",
        ".balign 32",
        ".globl nntrace_trial_nop10",
        ".hidden nntrace_trial_nop10",
        "nntrace_trial_nop10: .byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00",
        "ret",
        ".popsection",
    );

    // SAFETY: the functions above, which take nothing and do nothing.
    unsafe extern "C" {
        safe fn nntrace_trial_nop5();
        safe fn nntrace_trial_nop10();
    }

    /// Probes a function of ours, with the nop of ten bytes or that of five, and starts a process that calls it and
    /// forks a child, which calls it again.
    pub(crate) fn run(kernel: &mut Kernel, is_long: bool) -> NopProbe {
        let function = if is_long { nntrace_trial_nop10 } else { nntrace_trial_nop5 };
        let outcome = offset(function).and_then(|offset| {
            let outcome = kernel.while_probed(Path::new(OWN_FILE), offset, || outcome(function));
            outcome.map_err(|error| error.to_string())?
        });
        match outcome {
            Ok(BREAKPOINT) => NopProbe::Breakpoint,
            Ok(LIVED) => NopProbe::Cheap,
            Ok(DIED) => NopProbe::Harmful,
            Ok(UNPROBED) => {
                NopProbe::Unknown("a probe on a function of nntrace-bpf itself did not arrive".into())
            }
            Ok(code) => NopProbe::Unknown(format!("the process that tried it ended with code {code}")),
            Err(reason) => NopProbe::Unknown(reason),
        }
    }

    /// Returns the outcome for a probed function and for a forked child that calls it: the exit code of the first
    /// process.
    fn outcome(function: extern "C" fn()) -> Result<i32, String> {
        // SAFETY: no precondition.
        let parent = unsafe { libc::getpid() };
        // SAFETY: the child makes system calls and calls functions that do nothing, until it ends: no lock that another
        // thread may hold is taken, and nothing is allocated.
        match unsafe { libc::fork() } {
            -1 => Err(format!("no process for it: {}", io::Error::last_os_error())),
            0 => first(parent, function),
            child => match wait(child) {
                Some(status) if libc::WIFEXITED(status) => Ok(libc::WEXITSTATUS(status)),
                Some(status) => {
                    Err(format!("signal {} ended the process that tried it", libc::WTERMSIG(status)))
                }
                None => Err("how the process that tried it ended was not told".to_owned()),
            },
        }
    }

    /// Runs the first process: calls the function, which has its nop replaced, and then has a child call it.
    fn first(parent: libc::pid_t, function: extern "C" fn()) -> ! {
        end_with(parent);
        // The kernel replaces the nop at its first hit.
        function();
        function();
        // SAFETY: the function's own code, which is readable; volatile, as the kernel changes it.
        exit(match unsafe { (function as *const u8).read_volatile() } {
            // Unchanged, as assembled.
            0x0f | 0x66 => UNPROBED,
            0xcc => BREAKPOINT,
            _ if child_lives(function) => LIVED,
            _ => DIED,
        })
    }

    /// Whether a forked child can call a function whose nop was replaced.
    fn child_lives(function: extern "C" fn()) -> bool {
        // SAFETY: no precondition.
        let parent = unsafe { libc::getpid() };
        // SAFETY: as above; this process has one thread.
        match unsafe { libc::fork() } {
            // Not known to live.
            -1 => false,
            0 => {
                end_with(parent);
                for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGTRAP] {
                    // SAFETY: the handler only ends the process. Without it, the kernel log and core dump collectors
                    // would report a crash.
                    unsafe { libc::signal(signal, on_fault as *const () as libc::sighandler_t) };
                }
                function();
                exit(0)
            }
            child => wait(child) == Some(0),
        }
    }

    extern "C" fn on_fault(_: libc::c_int) {
        exit(1)
    }

    /// Makes this process, a child of `parent`, end with its parent, and after [`LONGEST`] in any case.
    fn end_with(parent: libc::pid_t) {
        let mut none = MaybeUninit::uninit();
        // SAFETY: plain system calls; the set is initialised before it is read.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // The signals that end this process, and those of its children's ends, must be neither ignored nor
            // blocked.
            libc::signal(libc::SIGALRM, libc::SIG_DFL);
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
            libc::alarm(LONGEST);
            // The parent may have died before the signal was requested.
            if libc::getppid() != parent {
                libc::_exit(1);
            }
        }
    }

    /// Waits for a child and returns its wait status; `None` when that cannot be had.
    fn wait(child: libc::pid_t) -> Option<libc::c_int> {
        let mut status = 0;
        loop {
            // SAFETY: the status is ours.
            let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
            if waited == child {
                return Some(status);
            }
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return None;
            }
        }
    }

    fn exit(code: libc::c_int) -> ! {
        // SAFETY: ends the process, and runs nothing of ours.
        unsafe { libc::_exit(code) }
    }
}
