//! Under sudo files are opened and written as the user who called sudo, whatever the profiled program does to their folders.

use std::{
    fs::{self, File, Permissions},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use nix::{sys::stat::Mode, unistd::mkfifo};
use nntrace_tests::{binaries, child::Child, live, wait};
use tempfile::TempDir;

/// `nobody`, who called sudo.
const USER: u32 = 65_534;
const GROUP: u32 = 65_533;

/// Folders of a run: one of the user's, and one of root's that nobody else may write.
struct Folders {
    root: TempDir,
}

impl Folders {
    fn new() -> Result<Self> {
        let root = tempfile::tempdir()?;
        fs::set_permissions(root.path(), Permissions::from_mode(0o755))?;
        for name in ["user", "user/dir", "root-only"] {
            fs::create_dir(root.path().join(name))?;
        }
        for name in ["user", "user/dir"] {
            chown(root.path().join(name), Some(USER), Some(GROUP))?;
        }
        fs::write(root.path().join("root-only/file"), "of root")?;
        Ok(Self { root })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Returns an invocation by sudo in the user's folder.
    fn by_sudo(&self) -> Result<Command> {
        let mut command = Command::new(binaries::profiler()?);
        command.current_dir(self.path("user"));
        command.env("SUDO_UID", USER.to_string()).env("SUDO_GID", GROUP.to_string());
        Ok(command)
    }

    /// Fails if a file of root's changed, or one was added.
    fn check_those_of_root(&self) -> Result<()> {
        let names: Vec<_> = fs::read_dir(self.path("root-only"))?.collect::<Result<_, _>>()?;
        ensure!(names.len() == 1, "{names:?}");
        ensure!(fs::read(self.path("root-only/file"))? == b"of root");
        Ok(())
    }
}

fn owner(path: &Path) -> Result<(u32, u32)> {
    let found = fs::symlink_metadata(path).with_context(|| path.display().to_string())?;
    Ok((found.uid(), found.gid()))
}

#[test]
fn a_program_that_swaps_folders_for_links_makes_root_write_nothing() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    // What the program does, in the user's folder, after the profiler has opened what it writes.
    let swaps = [
        // The folder of the recording, for one with links where its files are replaced.
        "mv run old; mkdir run; for name in files.json run.nnt threads.nnt; do \
         ln -s ../../root-only/file run/$name.part; ln -s ../../root-only/file run/$name; done",
        // The folder of a result, for a link to one of root's.
        "mv dir moved; ln -s ../root-only dir",
        // The result itself, for a link.
        "ln -s ../../root-only/new dir/out.json",
        "ln -s ../../root-only/file dir/out.json",
        "rm -rf dir; ln -s ../root-only dir",
    ];
    for swap in swaps {
        for results in [
            &["record", "--interval", "100ms", "-o", "run"][..],
            &["--json=dir/out.json"],
            &["-o", "dir/out.pftrace", "-o", "dir/out.html"],
        ] {
            let folders = Folders::new()?;
            let script = format!("sleep 0.5; ({swap}) 2>&1; id -u; sleep 0.4");
            let ended = Child::run(folders.by_sudo()?.args(results).args(["--", "sh", "-c", &script]))?;
            folders.check_those_of_root().with_context(|| format!("{swap}: {results:?}: {ended:?}"))?;
            ensure!(ended.text().contains("65534"), "the command runs as the user: {ended:?}");
        }
    }
    Ok(())
}

#[test]
fn results_are_the_users_and_go_only_where_he_may_write() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folders = Folders::new()?;
    let run = ["record", "-o", "run", "--json=out.json", "--", "true"];
    Child::run(folders.by_sudo()?.args(run))?.expect_code(0)?;
    for name in ["user/run", "user/run/run.nnt", "user/run/files.json", "user/out.json"] {
        assert_eq!(owner(&folders.path(name))?, (USER, GROUP), "{name}");
    }
    fs::create_dir(folders.path("root-only/run"))?;
    fs::set_permissions(folders.path("root-only/run"), Permissions::from_mode(0o777))?;
    for (options, reason) in [
        (
            &["--json=../root-only/out.json"][..],
            "cannot write ../root-only/out.json as nobody, who called sudo",
        ),
        (&["--force", "--json=../root-only/file"], "Permission denied"),
        (&["record", "-o", "../root-only/new"], "Permission denied"),
        (&["record", "-o", "../root-only/run"], "it belongs to user 0"),
    ] {
        let ended = Child::run(folders.by_sudo()?.args(options).args(["--", "true"]))?.expect_code(1)?;
        ensure!(ended.stderr.contains(reason), "{options:?}: {}", ended.stderr);
    }
    fs::remove_dir(folders.path("root-only/run"))?;
    folders.check_those_of_root()
}

#[test]
fn files_that_options_name_are_read_as_the_user() -> Result<()> {
    let folders = Folders::new()?;
    let secret = folders.path("root-only/file");
    fs::set_permissions(&secret, Permissions::from_mode(0o600))?;
    let secret = secret.to_string_lossy();
    for words in [
        &["--energy-model", &secret, "--", "true"][..],
        &["energy-model", "check", &secret],
        &["engines", "--map", &secret],
        &["replay", &secret],
        &["diff", &secret, &secret],
    ] {
        let ended = Child::run(folders.by_sudo()?.args(words))?;
        ensure!(!ended.status.success(), "{words:?}");
        ensure!(ended.stderr.contains("Permission denied"), "{words:?}: {}", ended.stderr);
        ensure!(!ended.stderr.contains("of root"), "{words:?}: {}", ended.stderr);
    }
    Ok(())
}

#[test]
fn commands_on_files_have_no_privileges() -> Result<()> {
    if !nix::unistd::Uid::effective().is_root() {
        return Ok(());
    }
    let folders = Folders::new()?;
    let pipe = folders.path("user/pipe");
    mkfifo(&pipe, Mode::from_bits_truncate(0o644))?;
    for by_sudo in [true, false] {
        let mut command = folders.by_sudo()?;
        if !by_sudo {
            command.env_remove("SUDO_UID").env_remove("SUDO_GID");
        }
        // As long as somebody could write to the pipe, the command waits for the first byte.
        let writer = File::options().read(true).write(true).open(&pipe)?;
        let mut child = command.args(["replay", "pipe"]).stderr(Stdio::null()).spawn()?;
        let status = format!("/proc/{}/status", child.id());
        let field = |name: &str| -> Result<String> {
            let text = fs::read_to_string(&status)?;
            let line = text.lines().find_map(|line| line.strip_prefix(name)).context("no such field")?;
            Ok(line.trim().replace('\t', " "))
        };
        let none = "0000000000000000";
        wait::until("its capabilities are gone", || Ok((field("CapEff:")? == none).then_some(())))?;
        let (uids, permitted, groups) = (field("Uid:")?, field("CapPrm:")?, field("Groups:")?);
        drop(writer);
        child.wait()?;
        if by_sudo {
            assert_eq!(
                (uids.as_str(), permitted.as_str(), groups.as_str()),
                ("65534 65534 65534 65534", none, "65533")
            );
        } else {
            // Those for files alone, out of force.
            assert_eq!((uids.as_str(), permitted.as_str()), ("0 0 0 0", "000000000000000f"));
        }
    }
    Ok(())
}
