//! Debian's packages of any architecture, downloaded and unpacked, never installed.
//!
//! apt gets a root of its own under `target/vm/apt`: own sources, own lists, no package installed. It shares no lock
//! with the system's and needs no rights.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};

use crate::run::{command, on_path, quietly, target_dir};

/// Keyring with the signers of Debian's archive.
pub const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Mirror to use when the system's own sources name none.
const MIRROR: &str = "http://deb.debian.org";
/// Releases that have a required kernel or compiler.
const SUITES: [(&str, &str); 4] = [
    ("debian", "bookworm"),
    ("debian", "bullseye"),
    ("debian", "trixie-backports"),
    ("debian-security", "bookworm-security"),
];

/// Private root of apt, held by one user at a time, as apt does not wait for its own locks.
pub struct Debian {
    root: PathBuf,
    /// Locked until it is closed.
    _lock: File,
}

/// Returns the folder of all parts of VMs.
pub fn cache() -> Result<PathBuf> {
    Ok(target_dir()?.join("vm"))
}

impl Debian {
    /// Creates the root, with fresh package lists; waits until nobody else uses it.
    pub fn open() -> Result<Self> {
        for program in ["apt-get", "dpkg-deb"] {
            ensure!(
                on_path(program),
                "{program} is missing: packages of Debian can be had by Debian's tools only"
            );
        }
        ensure!(
            Path::new(KEYRING).is_file(),
            "{KEYRING} is missing; as root, run:\n  apt-get install debian-archive-keyring"
        );
        let root = cache()?.join("apt");
        for folder in [
            "etc/apt/apt.conf.d",
            "etc/apt/preferences.d",
            "etc/apt/trusted.gpg.d",
            "var/lib/apt/lists/partial",
            "var/lib/dpkg",
            "var/cache/apt/archives/partial",
            "debs",
        ] {
            fs::create_dir_all(root.join(folder))?;
        }
        let lock = File::create(root.join("lock"))?;
        lock.lock()?;
        fs::write(root.join("var/lib/dpkg/status"), "")?;
        let mirror = mirror();
        let sources = SUITES.map(|(archive, suite)| {
            format!("deb [arch=arm64,amd64 signed-by={KEYRING}] {mirror}/{archive} {suite} main\n")
        });
        fs::write(root.join("etc/apt/sources.list"), sources.concat())?;
        let dir = root.display();
        fs::write(
            root.join("apt.conf"),
            format!(
                "Dir \"{dir}\";\nDir::State::status \"{dir}/var/lib/dpkg/status\";\nAPT::Architecture \"arm64\";\n\
                 APT::Architectures {{ \"arm64\"; \"amd64\"; }};\nAPT::Sandbox::User \"root\";\nAcquire::Languages \"none\";\n"
            ),
        )?;
        let debian = Self { root, _lock: lock };
        println!("fetching   Debian's lists of packages");
        quietly(debian.apt("apt-get").args(["-qq", "update"]))
            .context("Debian's lists of packages cannot be had")?;
        Ok(debian)
    }

    /// Returns the package with the highest number among those whose names match a regular expression.
    pub fn newest(&self, pattern: &str) -> Result<String> {
        let found = quietly(self.apt("apt-cache").args(["search", "--names-only", pattern]))?;
        let names = found.lines().filter_map(|line| line.split_whitespace().next());
        let newest = names.max_by_key(|name| numbers(name)).map(str::to_owned);
        newest.with_context(|| format!("Debian's archive has no package {pattern} any more"))
    }

    /// Downloads `name:arch`, or `name:arch=version`.
    pub fn download(&self, package: &str) -> Result<Package> {
        let folder = self.root.join("debs");
        let before = debs(&folder)?;
        println!("fetching   {package}");
        quietly(self.apt("apt-get").args(["-qq", "download", package]).current_dir(&folder))
            .with_context(|| format!("{package} cannot be had"))?;
        let new = debs(&folder)?.into_iter().find(|path| !before.contains(path));
        let file = new.with_context(|| format!("apt-get downloaded no new file for {package}"))?;
        Ok(Package { file })
    }

    fn apt(&self, program: &str) -> Command {
        let mut apt = command(program);
        apt.env("APT_CONFIG", self.root.join("apt.conf"));
        apt
    }
}

/// Package as a file, which is removed with this value, after the needed parts were unpacked.
pub struct Package {
    file: PathBuf,
}

impl Package {
    /// Returns the name, version and architecture, as in the file name.
    pub fn name(&self) -> String {
        self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Passes each plain file in it to `take`, by its path.
    pub fn files(&self, mut take: impl FnMut(&Path, &mut dyn Read) -> Result<()>) -> Result<()> {
        let mut unpack = command("dpkg-deb");
        unpack.arg("--fsys-tarfile").arg(&self.file).stdout(Stdio::piped());
        let mut unpack = unpack.spawn().context("dpkg-deb does not start")?;
        let mut archive = tar::Archive::new(unpack.stdout.take().context("dpkg-deb has an output")?);
        for entry in archive.entries()? {
            let mut entry = entry?;
            if entry.header().entry_type().is_file() {
                let path = entry.path()?.into_owned();
                take(path.strip_prefix("./").unwrap_or(&path), &mut entry)?;
            }
        }
        // The rest after the last entry; otherwise the program ends by SIGPIPE.
        io::copy(&mut archive.into_inner(), &mut io::sink())?;
        let status = unpack.wait()?;
        if !status.success() {
            bail!("{} cannot be unpacked: {status}", self.file.display());
        }
        Ok(())
    }
}

impl Drop for Package {
    fn drop(&mut self) {
        // A file that stays only takes space.
        let _ = fs::remove_file(&self.file);
    }
}

fn debs(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let paths = entries.into_iter().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|extension| extension == "deb")).collect())
}

/// Returns the mirror that the system itself uses, without the name of the archive.
pub fn mirror() -> String {
    let text = fs::read_to_string("/etc/apt/sources.list.d/debian.sources").unwrap_or_default();
    let uri = text.lines().find_map(|line| line.strip_prefix("URIs:")?.split_whitespace().next());
    let mirror = uri.and_then(|uri| uri.trim_end_matches('/').strip_suffix("/debian"));
    mirror.unwrap_or(MIRROR).to_owned()
}

/// Returns the numbers in a name, for comparing versions.
fn numbers(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}
