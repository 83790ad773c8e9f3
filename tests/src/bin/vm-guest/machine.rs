//! Setup of the VM, and load on its CPUs.

use std::{
    fs::{self, Permissions},
    io::ErrorKind,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context as _, Result};
use nix::{
    kmod::{ModuleInitFlags, finit_module},
    mount::{MsFlags, mount},
};
use nntrace_tests::cpus;

/// Folder of the kernel's modules, loaded in the order of their names.
const MODULES: &str = "/modules";

/// Mounts the usual file systems, and loads the kernel's modules.
pub fn set_up() -> Result<()> {
    for (kind, at) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        mount_at(kind, at)?;
    }
    // Nothing is mounted over it: it may contain programs, at the paths of their build.
    fs::set_permissions("/tmp", Permissions::from_mode(0o1777)).context("/tmp")?;
    mount_debugging()?;
    let mut modules = match fs::read_dir(MODULES) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error).context(MODULES),
    };
    modules.sort();
    for path in modules {
        let file = fs::File::open(&path)?;
        if let Err(error) = finit_module(file, c"", ModuleInitFlags::empty()) {
            println!("{} is not loaded: {error}", path.display());
        }
    }
    Ok(())
}

/// Mounts the kernel's debugging file systems.
pub fn mount_debugging() -> Result<()> {
    mount_at("tracefs", "/sys/kernel/tracing")?;
    mount_at("debugfs", "/sys/kernel/debug")
}

fn mount_at(kind: &str, at: &str) -> Result<()> {
    mount(Some(kind), at, Some(kind), MsFlags::empty(), None::<&str>)
        .with_context(|| format!("{at} cannot be mounted"))
}

/// Load on one CPU until this is dropped.
pub struct Load {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    /// Runs without a pause.
    pub fn busy(cpu: u32) -> Result<Self> {
        Self::start(cpu, std::hint::spin_loop)
    }

    /// Sleeps repeatedly, with these lengths in turn.
    pub fn naps(cpu: u32, lengths: &'static [Duration]) -> Result<Self> {
        let mut turn = lengths.iter().cycle();
        Self::start(cpu, move || thread::sleep(turn.next().copied().unwrap_or_default()))
    }

    fn start(cpu: u32, mut work: impl FnMut() + Send + 'static) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (told, (pinned, is_pinned)) = (Arc::clone(&stop), std::sync::mpsc::channel());
        let thread = thread::spawn(move || {
            // Nobody waits for it any more when the first check has failed.
            let _ = pinned.send(cpus::pin(cpu));
            while !told.load(Ordering::Relaxed) {
                work();
            }
        });
        let load = Self { stop, thread: Some(thread) };
        is_pinned.recv().context("the load died")??;
        Ok(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            println!("a load died");
        }
    }
}
