//! Debian's Python, a library that writes marks, and a program that forks processes which use it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::{
    arch::Arch,
    debian::{self, Debian},
    run::{command, quietly},
    vm::{
        cpio::{Archive, Node},
        emptied,
    },
};

/// Path of the interpreter in the VM.
const PROGRAM: &str = "usr/bin/python3";
/// Packages with libraries of the interpreter and of its module `ctypes`, besides the C library's.
const LIBRARIES: [&str; 3] = ["libexpat1", "libffi8", "zlib1g"];

/// Library that the program loads in the VM.
const LIBRARY: &str = "nntrace/libmarks.so";
const SCRIPT: &str = "nntrace/forks.py";

/// The interpreter, its modules and libraries, in a folder that is laid out as in the VM.
pub struct Python {
    folder: PathBuf,
    /// Library that writes marks.
    library: PathBuf,
}

impl Python {
    /// Returns the cached interpreter, else Debian's.
    ///
    /// # Errors
    /// When it is not available.
    pub fn get(arch: Arch) -> Result<Self> {
        let folder = debian::cache()?.join(format!("python-{arch}"));
        if !folder.is_dir() {
            fetch(arch, &folder)?;
        }
        let library = debian::cache()?.join(format!("targets-{arch}/libmarks.so"));
        fs::create_dir_all(library.parent().unwrap_or(&folder))?;
        let mut compile = command(arch.gnu("gcc"));
        compile.args(["-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-Wl,--build-id=none"]);
        compile.arg("-I").arg(project("nntrace-common/include")).arg("-o").arg(&library);
        quietly(compile.arg(project("tests/native/library.c")))?;
        Ok(Self { folder, library })
    }

    /// Adds it to an archive.
    pub fn pack(&self, archive: &mut Archive) -> Result<()> {
        for (place, file) in [(LIBRARY, &self.library), (SCRIPT, &project("tests/programs/forks.py"))] {
            archive.add(place, Node::File { content: fs::read(file)?, executable: false });
        }
        pack(&self.folder, "", archive)
    }
}

/// Returns the path of a file of this project.
fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn pack(folder: &Path, name: &str, archive: &mut Archive) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = format!("{name}/{}", path.file_name().unwrap_or_default().to_string_lossy());
        if path.is_dir() {
            pack(&path, &name, archive)?;
        } else {
            let content = fs::read(&path).with_context(|| path.display().to_string())?;
            archive.add(&name, Node::File { content, executable: name.ends_with(PROGRAM) });
        }
    }
    Ok(())
}

fn fetch(arch: Arch, folder: &Path) -> Result<()> {
    let debian = Debian::open()?;
    let modules = debian.newest(r"^libpython3\.[0-9]+-stdlib$")?;
    let library = modules.trim_end_matches("-stdlib");
    let python = library.trim_start_matches("lib");
    let packages = [format!("{python}-minimal"), format!("{library}-minimal"), modules.clone()];
    // Only a complete folder gets the final name.
    let draft = folder.with_extension("new");
    emptied(&draft)?;
    for package in packages.iter().map(String::as_str).chain(LIBRARIES) {
        let package = debian.download(&format!("{package}:{}", arch.debian()))?;
        package.files(|path, content| {
            if let Some(place) = place(path, python) {
                let place = draft.join(place);
                fs::create_dir_all(place.parent().unwrap_or(&draft))?;
                io::copy(content, &mut fs::File::create(place)?)?;
            }
            Ok(())
        })?;
    }
    ensure!(draft.join(PROGRAM).is_file(), "Debian's package {python}-minimal has no interpreter");
    fs::rename(&draft, folder).with_context(|| folder.display().to_string())
}

/// Returns the place of a package's file in the VM, if it is needed there.
fn place(path: &Path, python: &str) -> Option<PathBuf> {
    if path.ends_with(Path::new("bin").join(python)) {
        return Some(PROGRAM.into());
    }
    if path.starts_with(Path::new("usr/lib").join(python)) {
        return Some(path.into());
    }
    // Programs are linked with the library by its number alone: libz.so.1, where the file is libz.so.1.2.13.
    let (name, version) = path.file_name()?.to_str()?.split_once(".so.")?;
    let number = version.split('.').next()?;
    Some(format!("lib/{name}.so.{number}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_where_they_are_looked_for() {
        let place = |path: &str| place(Path::new(path), "python3.11").map(|path| path.display().to_string());
        assert_eq!(place("usr/bin/python3.11").as_deref(), Some("usr/bin/python3"));
        let module = "usr/lib/python3.11/multiprocessing/util.py";
        assert_eq!(place(module).as_deref(), Some(module));
        assert_eq!(place("lib/aarch64-linux-gnu/libz.so.1.2.13").as_deref(), Some("lib/libz.so.1"));
        assert_eq!(place("usr/share/doc/zlib1g/copyright"), None);
        assert_eq!(place("usr/share/python3/debian_defaults"), None);
    }
}
