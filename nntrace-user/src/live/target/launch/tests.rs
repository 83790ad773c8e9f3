use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use nix::unistd::{Gid, Uid};

use std::{os::unix::process::ExitStatusExt as _, process::ExitStatus};

use super::{error::shell_code, *};

fn write(path: &Path, mode: u32, content: &str) {
    std::fs::write(path, content).unwrap();
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn refusal(argv: &[OsString]) -> String {
    Launch::new(argv).output(ChildOutput::Null).spawn().unwrap_err().to_string()
}

/// Returns the output of a command that runs as `user`.
fn output(argv: &[OsString], user: Option<RunAs>) -> String {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("out");
    let output = ChildOutput::File(File::create(&file).unwrap());
    let mut running = Launch::new(argv).output(output).run_as(user).spawn().unwrap().release().unwrap();
    running.wait().unwrap();
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn both_streams_go_to_the_file_and_there_is_no_input() {
    let script = "echo out; echo err >&2; read line; echo \"[$line]\"; echo $0 $1";
    assert_eq!(output(&words(["sh", "-c", script, "zero", "one two"]), None), "out\nerr\n[]\nzero one two\n");
}

#[test]
fn a_script_is_run_by_its_interpreter() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script");
    write(&script, 0o755, "#!/bin/sh\nexit 12\n");
    let held = Launch::new(&[script.into_os_string()]).output(ChildOutput::Null).spawn().unwrap();
    let exe = std::fs::read_link(format!("/proc/{}/exe", held.pid())).unwrap();
    assert_eq!(exe, std::fs::canonicalize("/bin/sh").unwrap());
    assert_eq!(shell_code(held.release().unwrap().wait().unwrap()), 12);
}

#[test]
fn errors_name_the_value_and_the_next_step() {
    assert!(refusal(&[]).starts_with("no command to launch: write it after `--`"));
    let text = refusal(&words(["no-such-command-here"]));
    assert!(text.starts_with("command \"no-such-command-here\" not found in PATH="), "{text}");
    assert!(text.contains(std::env::var("PATH").unwrap().as_str()), "{text}");
    let text = refusal(&words(["/no/such/file"]));
    assert_eq!(text, "no file /no/such/file: check the path, relative ones start in the current directory");

    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, mode, content| {
        write(&dir.path().join(name), mode, content);
        [dir.path().join(name).into_os_string()]
    };
    let text = refusal(&file("plain", 0o644, "#!/bin/sh\n"));
    assert!(text.contains("plain cannot be executed: its mode has no x: `chmod +x` it"), "{text}");
    let text = refusal(&file("text", 0o755, "hello\n"));
    assert!(
        text.contains("text: exec format error: neither an ELF file nor a script with a #! line"),
        "{text}"
    );
    let text = refusal(&file("orphan", 0o755, "#!/no/such/python\n"));
    assert!(text.contains("its interpreter /no/such/python does not exist; install that"), "{text}");
    let text = refusal(&[dir.path().as_os_str().to_owned()]);
    assert!(text.contains("it is a directory"), "{text}");
}

#[test]
fn as_another_user() {
    if !Uid::effective().is_root() {
        eprintln!("skipped: changing the user needs root");
        return;
    }
    let nobody = RunAs::user(Uid::from_raw(65_534), Some(Gid::from_raw(65_533))).unwrap();
    let ids = "id -u; id -g; id -G; echo \"${SUDO_UID-none}\"; grep -E '^CapEff' /proc/self/status";
    let text = output(&words(["sh", "-c", ids]), Some(nobody.clone()));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[..2], ["65534", "65533"]);
    assert!(lines[2].split(' ').all(|group| group != "0"), "no group of root's: {text}");
    assert_eq!(lines[3..], ["none", "CapEff:\t0000000000000000"]);

    let dir = tempfile::tempdir().unwrap();
    let private = dir.path().join("private");
    write(&private, 0o700, "#!/bin/sh\n");
    let refused = Launch::new(&[private.into_os_string()]).run_as(Some(nobody.clone())).spawn().unwrap_err();
    assert!(matches!(&refused, LaunchError::Permission { user, .. } if *user == nobody.name()), "{refused}");
    assert!(refused.to_string().contains("namei -l"), "{refused}");
}

#[test]
fn codes_of_a_shell() {
    assert_eq!(shell_code(ExitStatus::from_raw(7 << 8)), 7);
    assert_eq!(shell_code(ExitStatus::from_raw(libc::SIGSEGV)), 139);
}
