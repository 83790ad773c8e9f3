//! Unmodified kernels of Debian.

use std::{
    fmt, fs,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use crate::{
    arch::Arch,
    debian::{self, Debian},
    run::{command, quietly},
};

/// Kernel version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Version {
    /// Debian 11
    #[value(name = "5.10")]
    V5_10,
    /// Debian 12
    #[value(name = "6.1")]
    V6_1,
    /// Debian 13, also for 12
    #[value(name = "6.12")]
    V6_12,
    /// Backports of Debian 13
    #[value(name = "6.18")]
    V6_18,
    /// Backports of Debian 13, the newest
    #[value(name = "7.2")]
    V7_2,
}

impl Version {
    /// All versions, the oldest first.
    pub const ALL: [Self; 5] = [Self::V5_10, Self::V6_1, Self::V6_12, Self::V6_18, Self::V7_2];

    const fn name(self) -> &'static str {
        match self {
            Self::V5_10 => "5.10",
            Self::V6_1 => "6.1",
            Self::V6_12 => "6.12",
            Self::V6_18 => "6.18",
            Self::V7_2 => "7.2",
        }
    }

    /// Returns the names of its packages: that of the kernel and, where it is separate, that of its modules. The
    /// cloud flavours have no cpufreq.
    fn packages(self, arch: Arch) -> (String, Option<&'static str>) {
        let arch = arch.debian();
        match self {
            Self::V5_10 => (format!(r"^linux-image-5\.10\.0-[0-9]+-{arch}$"), None),
            Self::V6_1 => (format!(r"^linux-image-6\.1\.0-[0-9]+-{arch}$"), None),
            Self::V6_12 => (format!(r"^linux-image-6\.12\.[0-9]+\+deb12-{arch}$"), None),
            Self::V6_18 => (format!(r"^linux-image-6\.18\.[0-9]+\+deb13-{arch}$"), None),
            Self::V7_2 => (format!(r"^linux-binary-7\.2\.[0-9]+\+deb13-{arch}$"), Some("linux-modules")),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Modules to load, in this order: frequency policies from the device tree, and a governor that switches on request.
/// Everything else that is needed is built into these kernels.
const MODULES: [&str; 2] = ["cpufreq-dt", "cpufreq_userspace"];
/// File with the name of the package.
const NAME: &str = "package";
/// File of the kernel.
const IMAGE: &str = "vmlinuz";

/// Unpacked kernel.
pub struct Kernel {
    folder: PathBuf,
    /// Version of the kernel.
    pub version: Version,
    /// Package of the kernel, with its version.
    pub package: String,
}

impl Kernel {
    /// Returns the cached kernel, else Debian's newest.
    pub fn get(arch: Arch, version: Version) -> Result<Self> {
        let folder = debian::cache()?.join("kernels").join(format!("{arch}-{version}"));
        // Written last.
        if let Ok(package) = fs::read_to_string(folder.join(NAME)) {
            return Ok(Self { folder, version, package: package.trim().into() });
        }
        Self::fetch(arch, version, folder)
            .with_context(|| format!("kernel {version} for {arch} cannot be had"))
    }

    fn fetch(arch: Arch, version: Version, folder: PathBuf) -> Result<Self> {
        let debian = Debian::open()?;
        let (pattern, modules) = version.packages(arch);
        let image = debian.newest(&pattern)?;
        let modules = modules.map(|modules| image.replacen("linux-binary", modules, 1));
        fs::create_dir_all(&folder)?;
        let mut names = Vec::new();
        for package in std::iter::once(image).chain(modules) {
            let package = debian.download(&format!("{package}:{}", arch.debian()))?;
            package.files(|path, content| take(&folder, path, content))?;
            names.push(package.name());
        }
        ensure!(folder.join(IMAGE).is_file(), "{} has no kernel", names.join(", "));
        let package = names.join(", ");
        fs::write(folder.join(NAME), format!("{package}\n"))?;
        println!("unpacked   {package}");
        Ok(Self { folder, version, package })
    }

    /// Returns the path of the kernel.
    pub fn image(&self) -> PathBuf {
        self.folder.join(IMAGE)
    }

    /// Returns the modules, in the order of loading.
    pub fn modules(&self) -> Vec<PathBuf> {
        let paths = MODULES.map(|name| self.folder.join(name).with_extension("ko"));
        paths.into_iter().filter(|path| path.is_file()).collect()
    }
}

/// Whether a file of a package is the kernel: `boot/vmlinuz-RELEASE`, in newer packages `vmlinuz` beside the modules.
fn is_image(path: &Path, name: &str) -> bool {
    name == IMAGE || path.parent() == Some(Path::new("boot")) && name.starts_with("vmlinuz-")
}

/// Keeps a file of a package if it is needed.
fn take(folder: &Path, path: &Path, content: &mut dyn Read) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let module = MODULES
        .iter()
        .find(|module| name.strip_prefix(**module).is_some_and(|rest| rest == ".ko" || rest == ".ko.xz"));
    let into = match module {
        Some(_) => folder.join(&*name),
        None if is_image(path, &name) => folder.join(IMAGE),
        None => return Ok(()),
    };
    let mut bytes = Vec::new();
    content.read_to_end(&mut bytes)?;
    fs::write(&into, bytes)?;
    if name.ends_with(".xz") {
        quietly(command("xz").args(["--decompress", "--force"]).arg(&into))?;
    }
    Ok(())
}
