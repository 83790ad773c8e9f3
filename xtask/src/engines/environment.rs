//! Wheels: installed into virtual environments, or unpacked.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use super::folder;
use crate::{
    apt,
    run::{command, quietly},
};

/// Tags of wheels for arm64 that Linux distributions of the last years run.
const GLIBC_MINORS: [u32; 12] = [17, 24, 26, 27, 28, 31, 34, 35, 36, 37, 38, 39];

/// Begin of the packages that environments share, as each needs them and they are large.
const SHARED: &str = "numpy==";

/// Wheels of one environment.
pub struct Wheels {
    /// Name of the environment.
    pub name: &'static str,
    /// Their names and versions, the engine's first.
    pub packages: &'static [&'static str],
}

impl Wheels {
    /// Returns the Python of the environment, which is created if it is missing or of other packages.
    pub fn environment(&self) -> Result<PathBuf> {
        let place = folder()?.join(self.name);
        let python = place.join("bin/python");
        let host = host_python()?;
        let wanted = format!("{host}{}\n", self.packages.join("\n"));
        // Only a complete environment has this file.
        let stamp = place.join("packages.txt");
        if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) && python.exists() {
            return Ok(python);
        }
        println!("fetching   {} (pip)", self.packages[0]);
        emptied(&place)?;
        quietly(command("python3").args(["-m", "venv", "--without-pip"]).arg(&place))?;
        let packages = site_packages(&python)?;
        let (shared, own): (Vec<&str>, Vec<&str>) =
            self.packages.iter().partition(|package| package.starts_with(SHARED));
        install(&own, &packages)?;
        for package in shared {
            let link = packages.join("shared.pth");
            let line = format!("{}\n", shared_package(package, &host)?.display());
            fs::write(&link, line).with_context(|| link.display().to_string())?;
        }
        fs::write(&stamp, wanted).with_context(|| stamp.display().to_string())?;
        Ok(python)
    }

    /// Returns the folder of the packages of the environment, which is created if it is missing.
    pub fn packages(&self) -> Result<PathBuf> {
        site_packages(&self.environment()?)
    }

    /// Returns a folder with the libraries of the first wheel for arm64, which is fetched if it is missing.
    pub fn arm64_libraries(&self) -> Result<PathBuf> {
        let place = folder()?.join("arm64").join(self.name);
        let stamp = place.join("packages.txt");
        let wheel = self.packages[0];
        if fs::read_to_string(&stamp).is_ok_and(|found| found == wheel) {
            return Ok(place);
        }
        println!("fetching   {wheel} for arm64 (pip)");
        emptied(&place)?;
        let download = place.join("wheel");
        let mut fetch = pip()?;
        fetch.args(["download", "--no-deps", "--only-binary=:all:", "--platform", "manylinux2014_aarch64"]);
        for minor in GLIBC_MINORS {
            fetch.args(["--platform", &format!("manylinux_2_{minor}_aarch64")]);
        }
        quietly(fetch.arg("--dest").arg(&download).arg(wheel))
            .with_context(|| format!("{wheel} for arm64 cannot be had"))?;
        let mut files = fs::read_dir(&download)?;
        let file = files.next().with_context(|| format!("pip downloaded nothing for {wheel}"))??.path();
        quietly(command("python3").args(["-m", "zipfile", "--extract"]).arg(&file).arg(&place))?;
        fs::remove_dir_all(&download).with_context(|| download.display().to_string())?;
        keep_libraries(&place)?;
        fs::write(&stamp, wheel).with_context(|| stamp.display().to_string())?;
        Ok(place)
    }
}

/// Returns the version of the system's Python, after its module for environments was found or installed.
fn host_python() -> Result<String> {
    if quietly(command("python3").args(["-c", "import ensurepip, venv"])).is_err() {
        apt::install(&["python3", "python3-venv"])?;
    }
    quietly(command("python3").arg("--version"))
}

/// Returns the folder of a package that environments share, which is fetched if it is missing.
fn shared_package(package: &str, host: &str) -> Result<PathBuf> {
    let place = folder()?.join("shared").join(package);
    let stamp = place.join("host.txt");
    if !fs::read_to_string(&stamp).is_ok_and(|found| found == host) {
        emptied(&place)?;
        install(&[package], &place)?;
        fs::write(&stamp, host).with_context(|| stamp.display().to_string())?;
    }
    Ok(place)
}

/// Returns the folder where a Python looks for packages.
fn site_packages(python: &Path) -> Result<PathBuf> {
    let script = "import sysconfig; print(sysconfig.get_path('purelib'))";
    Ok(PathBuf::from(quietly(command(python).args(["-c", script]))?.trim_end()))
}

/// Puts packages, and nothing that they need, into a folder.
fn install(packages: &[&str], folder: &Path) -> Result<()> {
    let mut install = pip()?;
    install.args(["install", "--no-compile", "--no-deps", "--only-binary=:all:", "--target"]);
    quietly(install.arg(folder).args(packages))
        .with_context(|| format!("the wheels of {} cannot be had", packages.join(", ")))?;
    Ok(())
}

/// Returns a pip that asks nothing and says little, in the only environment that has one.
fn pip() -> Result<Command> {
    let place = folder()?.join("pip");
    let python = place.join("bin/python");
    let stamp = place.join("host.txt");
    let host = host_python()?;
    if !fs::read_to_string(&stamp).is_ok_and(|found| found == host) {
        emptied(&place)?;
        quietly(command("python3").args(["-m", "venv"]).arg(&place))?;
        fs::write(&stamp, host).with_context(|| stamp.display().to_string())?;
    }
    let mut pip = command(python);
    pip.args(["-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check"]);
    // It warns of root, who may do in this folder what he wants.
    pip.env("PIP_ROOT_USER_ACTION", "ignore");
    Ok(pip)
}

/// Creates an empty folder.
fn emptied(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}

/// Removes all files but libraries; folders stay, as the names of some tell versions.
fn keep_libraries(folder: &Path) -> Result<()> {
    let mut libraries = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if is_library(&path) {
                libraries += 1;
            } else {
                fs::remove_file(&path).with_context(|| path.display().to_string())?;
            }
        }
    }
    ensure!(libraries > 0, "{} has no library", folder.display());
    Ok(())
}

/// Whether this is the name of a library: `a.so`, `a.so.1.2`.
fn is_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.extension().is_some_and(|extension| extension == "so") || name.contains(".so.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_folders_are_kept() -> Result<()> {
        let folder = std::env::temp_dir().join(format!("nntrace-xtask-{}", std::process::id()));
        emptied(&folder.join("engine-1.0.dist-info"))?;
        for name in ["a.so", "libb.so.1.2", "c.py", "engine-1.0.dist-info/RECORD"] {
            fs::write(folder.join(name), "")?;
        }
        keep_libraries(&folder)?;
        let has = |name: &str| folder.join(name).exists();
        let found = [
            has("a.so"),
            has("libb.so.1.2"),
            has("c.py"),
            has("engine-1.0.dist-info"),
            has("engine-1.0.dist-info/RECORD"),
        ];
        fs::remove_dir_all(&folder)?;
        assert_eq!(found, [true, true, false, true, false]);
        Ok(())
    }
}
