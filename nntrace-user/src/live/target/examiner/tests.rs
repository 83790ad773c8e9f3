use std::{
    fs,
    io::Write as _,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::Value;

use super::{
    connection::Connection,
    messages::{Kind, receive_until, send_raw},
    service::{Prepared, prepared, serve},
    *,
};

/// Name of the test that is run as the server.
const SERVICE: &str = "live::target::examiner::tests::service";
/// Variable with which it is run.
const RUNS_SERVICE: &str = "NNTRACE_TEST_EXAMINES";

/// Examination with scripted behaviour.
#[derive(Debug, Serialize, Deserialize)]
enum Trial {
    /// Returns the bytes, and the names in the folder of the file and in the one above it.
    Look,
    /// Fails.
    Fail(String),
    /// Opens another file.
    Open,
    /// Asks for memory that can be executed.
    Execute,
    /// Takes memory without end.
    Grow,
    /// Does not come to an end, on a CPU or asleep.
    Loop,
    Wait,
    /// Makes a process.
    Fork,
    /// Ends without an answer.
    Leave,
    /// Panics.
    Panic,
}

impl Examination for Trial {
    type Findings = (Vec<u8>, Vec<Vec<String>>);

    const NAME: &'static str = "trial";

    fn find(&self, bytes: &[u8], folders: &dyn Folders) -> Result<Self::Findings, ElfErrorReason> {
        match self {
            Self::Look => {}
            Self::Fail(reason) => return Err(ElfErrorReason::Malformed(reason.clone())),
            Self::Open => drop(File::open("/dev/null")),
            Self::Execute => drop(memmap2::MmapOptions::new().len(4096).map_anon().unwrap().make_exec()),
            Self::Grow => {
                let mut all = Vec::new();
                while all.len() < 1 << 20 {
                    all.push(vec![1_u8; 1 << 24]);
                }
                drop(all);
            }
            Self::Loop => loop {
                std::hint::spin_loop();
            },
            Self::Wait => loop {
                std::thread::park();
            },
            // SAFETY: the call fails, or ends this process.
            Self::Fork => drop(unsafe { nix::unistd::fork() }),
            // SAFETY: nothing of this process would have to be cleaned up.
            Self::Leave => unsafe { libc::_exit(0) },
            Self::Panic => panic!("as asked"),
        }
        Ok((bytes.to_vec(), vec![folders.names(0), folders.names(1), folders.names(LEVELS)]))
    }
}

fn prepare(name: &str, question: Value) -> Option<Prepared> {
    (name == Trial::NAME).then(|| prepared::<Trial>(question)).flatten()
}

/// Server, when it is run by [`connection`].
#[test]
fn service() {
    if std::env::var_os(RUNS_SERVICE).is_some() {
        std::process::exit(i32::from(serve(prepare).is_err()));
    }
}

/// Returns the command that runs the server.
fn command() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", SERVICE, "--nocapture", "--test-threads=1"]);
    command
}

fn connection(longest: Duration) -> Connection {
    let mut command = command();
    Connection::start_with(&mut command, &[(RUNS_SERVICE, "1")], longest).unwrap()
}

fn examiner() -> Examiner {
    Examiner::new("/nowhere".into(), connection(Duration::from_secs(30)))
}

fn file_in(folder: &Path) -> PathBuf {
    let path = folder.join("inner/file");
    fs::create_dir(folder.join("inner")).unwrap();
    fs::write(&path, "content").unwrap();
    fs::write(folder.join("beside-1.2"), "").unwrap();
    path
}

#[test]
fn another_process_finds_what_this_one_would() {
    let folder = tempfile::tempdir().unwrap();
    let path = file_in(folder.path());
    let (file, folders) = (File::open(&path).unwrap(), FoldersOf(&path));
    let mut examiner = examiner();
    for _ in 0..3 {
        let found = examiner.ask(&file, &folders, &Trial::Look).unwrap();
        assert_eq!(found.0, b"content");
        assert_eq!(found.1[0], ["file"]);
        assert!(found.1[1].len() == 2 && found.1[1].contains(&"beside-1.2".to_owned()), "{:?}", found.1);
        assert!(found.1[2].is_empty());
        assert_eq!(found, examine_here(&file, &folders, &Trial::Look).unwrap());
        let error = examiner.ask(&file, &folders, &Trial::Fail("badly".to_owned())).unwrap_err();
        assert!(matches!(error, ElfErrorReason::Malformed(reason) if reason == "badly"));
    }
}

#[test]
fn what_may_not_be_done_ends_the_process_of_this_file_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = file_in(folder.path());
    let (file, folders) = (File::open(&path).unwrap(), FoldersOf(&path));
    let mut examiner = examiner();
    let other = tempfile::tempfile().unwrap();
    let server = examiner.connection.as_ref().map(Connection::pid);
    for (what, expected) in [
        (Trial::Open, "it made a system call that it may not make (SIGSYS)"),
        (Trial::Execute, "it made a system call that it may not make (SIGSYS)"),
        (Trial::Fork, "it made a system call that it may not make (SIGSYS)"),
        (Trial::Grow, "it had no memory left, or aborted (SIGABRT)"),
        (Trial::Panic, "exit status: 101"),
        (Trial::Leave, "exit status: 0"),
    ] {
        let error = examiner.ask(&file, &folders, &what).unwrap_err();
        let text = error.to_string();
        let start = "not examined: the process that parses it ended: ";
        assert!(text.starts_with(start) && text.ends_with(expected), "{what:?}: {text}");
        assert!(!error.is_other_kind());
        assert_eq!(examiner.ask(&other, &folders, &Trial::Look).unwrap().0, b"");
        // This file is not tried again.
        assert_eq!(examiner.ask(&file, &folders, &Trial::Look).unwrap_err().to_string(), text);
        examiner.failed.clear();
    }
    assert_eq!(examiner.connection.as_ref().map(Connection::pid), server, "one server for all");
}

#[test]
fn an_examination_has_an_end() {
    let file = tempfile::tempfile().unwrap();
    let start = Instant::now();
    let mut connection = connection(Duration::from_secs(1));
    for trial in [Trial::Loop, Trial::Wait] {
        let question = serde_json::to_vec(&(Trial::NAME, trial)).unwrap();
        let failure = connection.ask(&file, &FoldersOf(Path::new("a")), &question).unwrap_err();
        assert_eq!(failure.to_string(), "it takes more than 1 s to parse");
        connection = self::connection(Duration::from_secs(1));
    }
    drop(connection);
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_server_that_does_not_understand_ends() {
    let file = tempfile::tempfile().unwrap();
    for (name, question) in [("unknown", Value::Null), (Trial::NAME, Value::Null)] {
        let question = serde_json::to_vec(&(name, question)).unwrap();
        let mut connection = connection(Duration::from_secs(30));
        assert!(connection.ask(&file, &FoldersOf(Path::new("a")), &question).is_err());
        while connection.is_alive() {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let error = |program: &str| {
        let connection = Connection::start_with(&mut Command::new(program), &[], Duration::from_secs(30));
        connection.err().unwrap().to_string()
    };
    assert_eq!(error("false"), "it ended at once: exit status: 1");
    assert!(error("/nowhere").contains("No such file"));
}

#[test]
fn server_and_child_end_with_the_process_that_asked() {
    let (control, theirs) = UnixStream::pair().unwrap();
    let mut server = command();
    server.env(RUNS_SERVICE, "1").stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = server.spawn().unwrap();
    drop(server);
    let end = Instant::now() + Duration::from_secs(30);
    assert_eq!(receive_until(&control, end).unwrap().kind, Kind::Ready);
    let file = tempfile::tempfile().unwrap();
    let (_stream, theirs) = UnixStream::pair().unwrap();
    let question = serde_json::to_vec(&(Trial::NAME, Trial::Loop)).unwrap();
    send_raw(&control, (Kind::Question, &question), &[file.as_fd(), theirs.as_fd()], end).unwrap();
    let child = loop {
        let threads = fs::read_dir(format!("/proc/{}/task", running.id())).unwrap();
        let children = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap();
        let children: String = threads.map(|thread| children(thread.unwrap())).collect();
        match children.split_whitespace().next() {
            Some(child) => break PathBuf::from(format!("/proc/{child}")),
            None => std::thread::yield_now(),
        }
    };
    drop(control);
    assert!(!running.wait().unwrap().success());
    while child.exists() {
        std::thread::yield_now();
    }
}

#[test]
fn a_server_that_was_ended_by_others_is_replaced() {
    let mut examiner = examiner();
    let connection = examiner.connection.as_mut().unwrap();
    let pid = nix::unistd::Pid::from_raw(connection.pid().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    while connection.is_alive() {
        std::thread::yield_now();
    }
    let file = tempfile::tempfile().unwrap();
    let error = examiner.ask(&file, &FoldersOf(Path::new("a")), &Trial::Look).unwrap_err();
    assert!(error.to_string().contains("the server that has files parsed does not start: "), "{error}");
}

#[test]
fn a_server_without_work_is_ended() {
    let mut examiner = examiner();
    let now = examiner.last_used;
    examiner.end_if_idle(now + IDLE);
    assert!(examiner.connection.is_some());
    examiner.end_if_idle(now + IDLE + Duration::from_nanos(1));
    assert!(examiner.connection.is_none());
}

#[test]
fn the_server_has_no_rights() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"content").unwrap();
    let connection = connection(Duration::from_secs(30));
    let question = serde_json::to_vec(&(Trial::NAME, Trial::Look)).unwrap();
    connection.ask(&file, &FoldersOf(Path::new("/a")), &question).unwrap();
    // Of the thread that examines, which in this test is not the only one.
    let threads = fs::read_dir(format!("/proc/{}/task", connection.pid())).unwrap();
    let statuses = threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("status")).unwrap());
    let status = statuses.into_iter().find(|status| status.contains("nntrace-examine")).unwrap();
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(value(set), "0000000000000000", "{set}");
    }
    assert_eq!((value("NoNewPrivs:").as_str(), value("Seccomp:").as_str()), ("1", "2"));
    if nix::unistd::Uid::effective().is_root() {
        assert_eq!((value("Uid:"), value("Groups:")), ("65534 65534 65534 65534".to_owned(), String::new()));
    }
    // It has its socket, and what this test handed it is closed.
    let open = fs::read_dir(format!("/proc/{}/fd", connection.pid())).map(Iterator::count);
    assert_eq!(open.unwrap_or(3), 3);
}
