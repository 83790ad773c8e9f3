//! Processes in which making a lane could do harm.

use std::{fs::File, os::fd::IntoRawFd as _};

use nix::{
    libc,
    sys::resource::{Resource, setrlimit},
};

use crate::{
    SECTIONS_BEFORE, alone,
    hooks::{Call, calls, pass},
    in_child, next_offered, section,
};

#[test]
fn no_lane_is_made_where_it_might_kill() {
    alone(|| {
        in_child(|| {
            setrlimit(Resource::RLIMIT_FSIZE, 16 * 1024, libc::RLIM_INFINITY).unwrap();
            (0..2 * SECTIONS_BEFORE).for_each(|_| section());
            assert!(next_offered().is_none());
            setrlimit(Resource::RLIMIT_FSIZE, 20 * 1024, libc::RLIM_INFINITY).unwrap();
            // It is tried again, but not at once.
            section();
            assert!(next_offered().is_none());
            pass(1);
            section();
            assert!(next_offered().is_some());
        });
        in_child(|| {
            confine();
            (0..2 * SECTIONS_BEFORE).for_each(|_| section());
            assert!(next_offered().is_none());
        });
    });
}

/// Forbids system calls, on pain of death, but those that marks and the end of the process need.
fn confine() {
    let statement = |code: u32, k| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut filter = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for allowed in [libc::SYS_prctl, libc::SYS_clock_gettime, libc::SYS_exit_group] {
        let k = u32::try_from(allowed).unwrap();
        filter.push(libc::sock_filter { jf: 1, ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k) });
        filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    }
    filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_KILL_PROCESS));
    let program = libc::sock_fprog { len: u16::try_from(filter.len()).unwrap(), filter: filter.as_mut_ptr() };
    // The first marks ask for the process id and open ftrace's file.
    section();
    // SAFETY: the program is as long as it says, and the kernel copies it.
    let confined = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    assert!(confined);
}

#[test]
fn a_lane_is_none_of_the_standard_streams() {
    alone(|| {
        in_child(|| {
            section();
            // SAFETY: nothing reads it any more.
            unsafe { libc::close(0) };
            (1..SECTIONS_BEFORE).for_each(|_| section());
            let Some(Call::Offer(file, _)) = calls().pop() else { panic!("no offer") };
            assert!(file > 2);
            assert_eq!(File::open("/dev/null").unwrap().into_raw_fd(), 0);
        });
    });
}
