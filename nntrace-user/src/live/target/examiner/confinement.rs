//! Confinement of the processes that parse files: they can compute, and use the descriptors that they have.

use std::{collections::BTreeMap, ffi::CStr, fs, io, os::fd::AsRawFd as _, os::unix::net::UnixStream};

use nix::{
    libc,
    sys::{
        prctl,
        resource::{Resource, getrlimit, setrlimit},
        signal::Signal,
    },
    unistd::{Gid, Pid, Uid, getppid, setgroups, setresgid, setresuid},
};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

use crate::caller;

/// Name of the processes, for people.
const NAME: &CStr = c"nntrace-examine";
/// User and group without rights, by convention (Linux Standard Base, user names).
const NOBODY: u32 = 65534;
/// Memory for data at most, bytes; mapped files do not count.
const MOST_MEMORY: u64 = 2 << 30;
/// Memory for data on a machine with little of it, bytes.
const LEAST_MEMORY: u64 = 256 << 20;
/// Descriptors at most.
const MOST_DESCRIPTORS: u64 = 16;
/// CPU time for a file at most, s.
const MOST_CPU_TIME: u64 = 20;

/// System calls that are needed to parse a file: memory, sockets, the length of a file, signals, time, and the end.
const FOR_FILES: [libc::c_long; 25] = [
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_read,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_setsockopt,
    libc::SYS_sigaltstack,
    libc::SYS_statx,
];

/// System calls that the server needs besides, to have a child parse a file, and confine itself further.
const FOR_CHILDREN: &[libc::c_long] = &[
    libc::SYS_clone,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    libc::SYS_getppid,
    libc::SYS_pidfd_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_prctl,
    libc::SYS_prlimit64,
    libc::SYS_rseq,
    libc::SYS_seccomp,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_wait4,
];

/// Condition of a system call: the place of an argument, a mask, and the value of the bits under it.
type Condition = (u8, u32, u32);

/// System calls that are allowed with some arguments only. Signals are those to `own`, where that is known.
fn conditions(own: Option<u32>) -> [(libc::c_long, Vec<Vec<Condition>>); 8] {
    const ALL: u32 = u32::MAX;
    let never = |place, bits: libc::c_int| vec![(place, bits.cast_unsigned(), 0)];
    let is = |place, value: libc::c_int| (place, ALL, value.cast_unsigned());
    let ending = [libc::SIGABRT, libc::SIGBUS];
    let to_own = || own.into_iter().map(|own| (0, ALL, own));
    [
        (libc::SYS_mmap, vec![never(2, libc::PROT_EXEC)]),
        (libc::SYS_mprotect, vec![never(2, libc::PROT_EXEC)]),
        // Rust's debug builds check the descriptors that they close.
        (libc::SYS_fcntl, vec![vec![is(1, libc::F_GETFD)]]),
        // For the length of a file, where `statx` is refused.
        (libc::SYS_newfstatat, vec![vec![is(3, libc::AT_EMPTY_PATH)]]),
        // Rust says on the standard error, which nobody reads, that it gets no memory, and ends the process.
        (libc::SYS_write, vec![vec![is(0, libc::STDERR_FILENO)]]),
        (libc::SYS_writev, vec![vec![is(0, libc::STDERR_FILENO)]]),
        (libc::SYS_tgkill, ending.map(|signal| to_own().chain([is(2, signal)]).collect()).into()),
        (libc::SYS_tkill, ending.map(|signal| to_own().chain([is(1, signal)]).collect()).into()),
    ]
}

/// Gives up all rights of this process for good: user, groups, capabilities, memory beyond a limit, and most system calls.
///
/// # Errors
/// When the kernel refuses.
pub(super) fn give_up_rights() -> io::Result<()> {
    close_others();
    prctl::set_name(NAME)?;
    // If memory runs out, this process should end, and not the one that profiles. Where that cannot be set, the kernel chooses.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    let memory = (memory_of_machine() / 2).clamp(LEAST_MEMORY, MOST_MEMORY);
    limit(Resource::RLIMIT_CORE, 0)?;
    limit(Resource::RLIMIT_DATA, memory)?;
    limit(Resource::RLIMIT_FSIZE, 0)?;
    limit(Resource::RLIMIT_NOFILE, MOST_DESCRIPTORS)?;
    give_up_user();
    caller::drop_all()?;
    prctl::set_no_new_privs()?;
    // Other processes of this user may neither trace it nor read its memory.
    prctl::set_dumpable(false)?;
    filter_calls(FOR_CHILDREN, None)
}

/// Gives up what a child of the server does not need: its socket, its life after that of the server, CPU time beyond a limit,
/// and the system calls that make processes.
///
/// # Errors
/// When the kernel refuses, or the server has ended.
pub(super) fn confine_child(server: Pid, control: &UnixStream) -> io::Result<()> {
    prctl::set_pdeathsig(Some(Signal::SIGKILL))?;
    if getppid() != server {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    // SAFETY: the child ends without using it, or dropping its owner.
    unsafe { libc::close(control.as_raw_fd()) };
    limit(Resource::RLIMIT_CPU, MOST_CPU_TIME)?;
    filter_calls(&[], Some(std::process::id()))
}

/// Closes all descriptors but the standard ones, as far as the kernel can; descriptors are closed by exec as well.
fn close_others() {
    // SAFETY: nothing in this process has opened them; they were inherited.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
}

/// Sets a limit, or leaves a lower one as it is.
fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let (_, hard) = getrlimit(resource)?;
    let most = most.min(hard);
    Ok(setrlimit(resource, most, most)?)
}

/// Returns the memory of the machine, bytes; 0 if it is not known.
fn memory_of_machine() -> u64 {
    // SAFETY: they only return numbers.
    let [pages, page] = [libc::_SC_PHYS_PAGES, libc::_SC_PAGESIZE].map(|name| unsafe { libc::sysconf(name) });
    u64::try_from(pages.saturating_mul(page)).unwrap_or(0)
}

/// Becomes the user without rights where this one is root, as far as the kernel allows it: in a user namespace that user may
/// not exist, or groups may be fixed. Capabilities are given up in any case.
fn give_up_user() {
    if Uid::effective().is_root() {
        let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        let _ = setgroups(&[]);
        let _ = setresgid(group, group, group);
        let _ = setresuid(user, user, user);
    }
}

/// Has the kernel kill this process when it makes any system call but those for files and these. A kernel without filters
/// (`CONFIG_SECCOMP_FILTER`) leaves it as it is.
fn filter_calls(others: &[libc::c_long], own: Option<u32>) -> io::Result<()> {
    match apply_filter(&filter(others, own).map_err(io::Error::other)?) {
        Err(seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error))
            if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) =>
        {
            Ok(())
        }
        applied => applied.map_err(io::Error::other),
    }
}

fn filter(others: &[libc::c_long], own: Option<u32>) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<libc::c_long, Vec<SeccompRule>> =
        FOR_FILES.iter().chain(others).map(|&call| (call, Vec::new())).collect();
    for (call, any) in conditions(own) {
        let rule = |all: Vec<Condition>| {
            let all = all.into_iter().map(|(place, mask, value)| {
                let is = SeccompCmpOp::MaskedEq(mask.into());
                SeccompCondition::new(place, SeccompCmpArgLen::Dword, is, value.into())
            });
            SeccompRule::new(all.collect::<Result<_, _>>()?)
        };
        rules.insert(call, any.into_iter().map(rule).collect::<Result<_, _>>()?);
    }
    let machine = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::KillProcess, SeccompAction::Allow, machine)?.try_into()
}
