use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};

use super::*;

/// Fake proc file system.
struct Fake(tempfile::TempDir);

impl Fake {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn add(&self, pid: u32, comm: &str, parent: u32, state: char, flags: u64) -> &Self {
        let dir = self.0.path().join(pid.to_string());
        std::fs::create_dir_all(dir.join("task").join(pid.to_string())).unwrap();
        let stat = format!(
            "{pid} ({comm}) {state} {parent} 1 1 0 -1 {flags} 0 0 0 0 1 2 3 4 20 0 1 0 77{pid} 9 9\n"
        );
        std::fs::write(dir.join("stat"), stat).unwrap();
        std::fs::write(dir.join("status"), format!("Name:\t{comm}\nTgid:\t{pid}\nPid:\t{pid}\n")).unwrap();
        self
    }

    fn processes(&self) -> Processes {
        Processes::at(self.0.path())
    }
}

struct Sleeper(Child);

impl Sleeper {
    fn new() -> Self {
        Self(Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_by_number() {
    let fake = Fake::new();
    fake.add(42, "my (odd) app", 7, 'S', 0);
    symlink("/opt/app", fake.0.path().join("42/exe")).unwrap();
    let process = fake.processes().by_pid(42).unwrap();
    assert_eq!((process.comm.as_str(), process.parent, process.started), ("my (odd) app", 7, 7742));
    assert_eq!(process.exe.as_deref(), Some(Path::new("/opt/app")));
    assert_eq!(fake.processes().threads(42).unwrap(), [42]);
}

#[test]
fn a_process_goes_on_without_its_main_thread() {
    let fake = Fake::new();
    fake.add(42, "app", 7, 'Z', 0);
    let dir = fake.0.path().join("42");
    let stat = |tid: u32, state, threads| {
        format!("{tid} (app) {state} 7 1 1 0 -1 0 0 0 0 0 1 2 3 4 20 0 {threads} 0 77 9 9\n")
    };
    std::fs::write(dir.join("stat"), stat(42, 'Z', 2)).unwrap();
    std::fs::write(dir.join("task/42/stat"), stat(42, 'Z', 2)).unwrap();
    std::fs::create_dir(dir.join("task/43")).unwrap();
    std::fs::write(dir.join("task/43/stat"), stat(43, 'S', 2)).unwrap();
    assert_eq!(fake.processes().by_pid(42).unwrap().pid, 42);
    assert_eq!(fake.processes().threads(42).unwrap(), [42, 43]);
    // The main thread has no memory and no files any more.
    assert_eq!(fake.processes().dir(42), dir.join("task/43"));
    std::fs::write(dir.join("stat"), stat(42, 'Z', 1)).unwrap();
    assert!(matches!(fake.processes().by_pid(42), Err(ProcessError::Ended { .. })));
}

#[test]
fn errors_name_the_value_and_the_next_step() {
    let fake = Fake::new();
    fake.add(42, "app", 1, 'S', 0).add(43, "app", 1, 'S', 0).add(50, "gone", 1, 'Z', 0).add(
        2,
        "kthreadd",
        0,
        'S',
        KERNEL_THREAD,
    );
    std::fs::write(fake.0.path().join("43/status"), "Name:\tworker\nTgid:\t42\n").unwrap();
    let error = |pid| fake.processes().by_pid(pid).unwrap_err().to_string();
    assert!(
        error(4242).starts_with("no process 4242: it has ended, or never was; `pgrep -a NAME` lists"),
        "{}",
        error(4242)
    );
    assert_eq!(
        error(43),
        "43 is a thread of process 42 (app), not a process: take --pid 42, all its threads are traced"
    );
    assert!(error(50).starts_with("process 50 (gone) has ended"));
    assert!(error(2).starts_with("process 2 (kthreadd) is a kernel thread"));
}

#[test]
fn processes_by_name() {
    let fake = Fake::new();
    fake.add(10, "nn_app", 1, 'S', 0).add(11, "nn_app2", 1, 'S', 0).add(12, "other", 1, 'S', 0);
    fake.add(13, "nn_dead", 1, 'Z', 0).add(14, "nn_kernel", 2, 'S', KERNEL_THREAD);
    fake.add(std::process::id(), "nn_ourselves", 1, 'S', 0);
    let processes = fake.processes();
    let pids = |pattern: &str| {
        processes.by_comm(pattern).unwrap().iter().map(|process| process.pid).collect::<Vec<_>>()
    };
    assert_eq!(pids("nn_app"), [10]);
    assert_eq!(pids("nn_*"), [10, 11]);
    let selected = processes.select(&[11], &["nn_*".to_owned()]).unwrap();
    assert_eq!(selected.iter().map(|process| process.pid).collect::<Vec<_>>(), [11, 10]);
    let text = processes.by_comm("APP").unwrap_err().to_string();
    assert!(
        text.starts_with("no process is named \"APP\", but there is \"nn_app\" (10), \"nn_app2\" (11);"),
        "{text}"
    );
    let text = processes.by_comm("othr").unwrap_err().to_string();
    assert!(text.contains("\"other\" (12)"), "{text}");
}

#[test]
fn a_name_the_kernel_cut() {
    let fake = Fake::new();
    fake.add(10, "benchmark_model", 1, 'S', 0);
    symlink("/opt/benchmark_model_performance", fake.0.path().join("10/exe")).unwrap();
    for pattern in ["benchmark_model", "benchmark_model_performance", "*performance"] {
        assert_eq!(fake.processes().by_comm(pattern).unwrap().len(), 1, "{pattern}");
    }
}

#[test]
fn children_and_theirs() {
    let fake = Fake::new();
    fake.add(10, "a", 1, 'S', 0).add(9, "b", 30, 'S', 0).add(30, "c", 10, 'S', 0).add(31, "d", 1, 'S', 0);
    fake.add(32, "dead", 10, 'Z', 0);
    let family = fake.processes().descendants(&[10]).unwrap();
    assert_eq!(family.iter().map(|process| process.pid).collect::<Vec<_>>(), [30, 9]);
}

#[test]
fn the_running_system() {
    let processes = Processes::default();
    let us = processes.by_pid(std::process::id()).unwrap();
    assert_eq!(us.exe, std::env::current_exe().ok());
    let tid = nix::unistd::gettid().as_raw().cast_unsigned();
    assert!(processes.threads(us.pid).unwrap().contains(&tid));
    if tid != us.pid {
        assert!(matches!(processes.by_pid(tid), Err(ProcessError::IsThread { pid, .. }) if pid == us.pid));
    }

    let mut child = Sleeper::new();
    let pid = child.0.id();
    assert!(processes.descendants(&[us.pid]).unwrap().iter().any(|process| process.pid == pid));
    assert_eq!(processes.by_pid(pid).unwrap().pid, pid);
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    assert!(matches!(processes.by_pid(pid), Err(ProcessError::NoSuchProcess { .. })));
}
