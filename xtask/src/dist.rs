//! Distribution: static programs for both architectures, as archives and as packages.
//!
//! Their contents are determined by the sources and the compiler: two builds give the same bytes.

mod deb;
pub mod tree;

use std::{
    borrow::Cow,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::Args;
use sha2::{Digest, Sha256};

use crate::{
    arch::Arch,
    cross::Cross,
    dist::tree::Tree,
    emulator,
    run::{command, quietly, run, target_dir},
    target_libraries, vm,
};

/// Name of the program.
const NAME: &str = "nntrace-bpf";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// File of all checksums.
const SUMS: &str = "SHA256SUMS";
/// Texts that accompany the program.
const TEXTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];
/// Folder of headers for programs under test, if there is any.
const HEADERS: &str = "nntrace-common/include";
/// Shells, and the names of their completions.
const SHELLS: [(&str, &str, &str); 3] = [
    ("bash", "nntrace-bpf.bash", "usr/share/bash-completion/completions/nntrace-bpf"),
    ("zsh", "_nntrace-bpf", "usr/share/zsh/vendor-completions/_nntrace-bpf"),
    ("fish", "nntrace-bpf.fish", "usr/share/fish/vendor_completions.d/nntrace-bpf.fish"),
];

/// Licence section of a package, before the text of the second licence.
const COPYRIGHT: &str = "\
nntrace-bpf may be used under the Apache License, Version 2.0, or under the MIT license, at your choice.
The former is in /usr/share/common-licenses/Apache-2.0. The latter:

";

/// Options of the distribution.
#[derive(Args)]
pub struct Dist {
    /// Only for this architecture [default: both]
    #[arg(long, value_enum)]
    arch: Option<Arch>,
    /// Run what was packed in emulated machines whose root has busybox and nothing else
    #[arg(long = "try")]
    tried: bool,
}

/// Files for one architecture.
struct Built {
    program: Vec<u8>,
    /// Libraries that targets load, in the order of [`target_libraries::ALL`].
    libraries: Vec<Vec<u8>>,
}

/// Files that are the same for all architectures.
struct Shared {
    /// Manual pages, with their names.
    manuals: Vec<(String, Vec<u8>)>,
    /// Completions, in the order of [`SHELLS`].
    completions: Vec<Vec<u8>>,
    texts: Vec<(&'static str, Vec<u8>)>,
    headers: Vec<(String, Vec<u8>)>,
    /// Time of the last change, seconds, and so the date of every file.
    time: u64,
}

impl Dist {
    /// Builds and packs.
    pub fn run(&self) -> Result<()> {
        let folder = target_dir()?.join("dist");
        fs::create_dir_all(&folder)?;
        let archs = self.arch.map_or(Arch::ALL.to_vec(), |arch| vec![arch]);
        if self.tried {
            archs.iter().try_for_each(|&arch| emulator::check(arch))?;
        }
        let programs = archs.iter().map(|&arch| Ok((arch, program(arch)?))).collect::<Result<Vec<_>>>()?;
        // The program knows its own command line: the one for this host is run.
        let own = match programs.iter().find(|(arch, _)| arch.is_host()) {
            Some((_, own)) => own.clone(),
            None => program(Arch::host()?)?,
        };
        let shared = Shared::gather(&own)?;
        let (mut sums, mut archives) = (String::new(), Vec::new());
        for (arch, program) in &programs {
            let built = Built { program: read(program)?, libraries: libraries(*arch)? };
            let stem = format!("{NAME}-{VERSION}-{arch}-linux");
            let archive = shared.archive(&stem, &built).packed()?;
            let package = deb::package(*arch, shared.time, &shared.package(&built)?)?;
            for (name, bytes) in [
                (format!("{stem}.tar.gz"), &archive),
                (format!("{NAME}_{VERSION}_{}.deb", arch.debian()), &package),
            ] {
                let path = folder.join(&name);
                fs::write(&path, bytes).with_context(|| path.display().to_string())?;
                println!("packed     {} ({} kB)", path.display(), bytes.len() / 1000);
                writeln!(sums, "{:x}  {name}", Sha256::digest(bytes))?;
            }
            archives.push((*arch, archive));
        }
        fs::write(folder.join(SUMS), sums)?;
        println!("wrote      {}", folder.join(SUMS).display());
        if self.tried {
            archives.iter().try_for_each(|(arch, archive)| vm::bare::run(*arch, archive))?;
        }
        Ok(())
    }
}

/// Builds the program for an architecture, without symbols.
fn program(arch: Arch) -> Result<PathBuf> {
    let cross = Cross::find(arch)?;
    println!("building   {NAME} for {arch}");
    run(cross.cargo("build").args(["--quiet", "--release", "--locked", "--package", "nntrace-user"]))?;
    let built = cross.programs("release")?.join(NAME);
    let stripped = built.with_extension("stripped");
    quietly(command(arch.gnu("strip")).arg("--strip-all").arg("-o").arg(&stripped).arg(&built))?;
    check_places(&stripped)?;
    Ok(stripped)
}

/// Builds the libraries that targets load for an architecture, without symbols.
fn libraries(arch: Arch) -> Result<Vec<Vec<u8>>> {
    let names = target_libraries::ALL.map(|library| library.file);
    println!("building   {} for {arch}", names.join(", "));
    let checked = |library: &PathBuf| {
        check_places(library)?;
        read(library)
    };
    target_libraries::for_arch(arch)?.iter().map(checked).collect()
}

/// Checks that a file does not reveal where it was built.
fn check_places(file: &Path) -> Result<()> {
    let workspace = fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))?;
    if let Some(place) = place(&read(file)?, &workspace) {
        bail!("{} tells where it was built: {place} is in it", file.display());
    }
    Ok(())
}

/// Finds a text in a program that reveals where it was built: the folder of the sources, of the libraries, or of the
/// compiler.
fn place<'a>(program: &[u8], workspace: &'a Path) -> Option<Cow<'a, str>> {
    let places = [workspace.to_string_lossy(), "/.cargo/".into(), "/.rustup/".into()];
    places.into_iter().find(|place| program.windows(place.len()).any(|bytes| bytes == place.as_bytes()))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}

impl Built {
    /// Adds the libraries to a folder of a tree.
    fn add_libraries(&self, tree: &mut Tree, folder: &str) {
        for (library, content) in target_libraries::ALL.iter().zip(&self.libraries) {
            tree.add(format!("{folder}/{}", library.file), content, false);
        }
    }
}

impl Shared {
    /// Gathers the files from `program`, the one for this host.
    fn gather(program: &Path) -> Result<Self> {
        let ask =
            |words: &[&str]| -> Result<Vec<u8>> { Ok(quietly(command(program).args(words))?.into_bytes()) };
        let mut manuals = Vec::new();
        for subcommand in String::from_utf8(ask(&["man", "--list"])?)?.lines() {
            let words: Vec<&str> = subcommand.split_whitespace().collect();
            let name = [&[NAME][..], &words].concat().join("-");
            manuals.push((name, ask(&[&["man"][..], &words].concat())?));
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut headers = Vec::new();
        if let Ok(entries) = fs::read_dir(root.join(HEADERS)) {
            for entry in entries {
                let path = entry?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                headers.push((name, read(&path)?));
            }
        }
        Ok(Self {
            manuals,
            completions: SHELLS
                .iter()
                .map(|(shell, ..)| ask(&["completions", shell]))
                .collect::<Result<_>>()?,
            texts: TEXTS.iter().map(|name| Ok((*name, read(&root.join(name))?))).collect::<Result<_>>()?,
            headers,
            time: source_time()?,
        })
    }

    /// Creates the archive to unpack anywhere: everything in one folder.
    fn archive(&self, stem: &str, built: &Built) -> Tree {
        let mut tree = Tree::new(self.time);
        tree.add(format!("{stem}/{NAME}"), &built.program, true);
        built.add_libraries(&mut tree, stem);
        for (name, text) in &self.manuals {
            tree.add(format!("{stem}/man/{name}.1"), text, false);
        }
        for ((_, name, _), text) in SHELLS.iter().zip(&self.completions) {
            tree.add(format!("{stem}/completions/{name}"), text, false);
        }
        for (name, text) in &self.texts {
            tree.add(format!("{stem}/{name}"), text, false);
        }
        for (name, text) in &self.headers {
            tree.add(format!("{stem}/include/{name}"), text, false);
        }
        tree
    }

    /// Creates the files of the package: everything in Debian's places.
    fn package(&self, built: &Built) -> Result<Tree> {
        let mut tree = Tree::new(self.time);
        tree.add(format!("usr/bin/{NAME}"), &built.program, true);
        built.add_libraries(&mut tree, &format!("usr/lib/{NAME}"));
        for (name, text) in &self.manuals {
            tree.add(format!("usr/share/man/man1/{name}.1.gz"), &tree::gzip(text)?, false);
        }
        for ((.., path), text) in SHELLS.iter().zip(&self.completions) {
            tree.add((*path).to_owned(), text, false);
        }
        for (name, text) in &self.texts {
            match *name {
                // Debian itself contains this one.
                "LICENSE-APACHE" => {}
                "LICENSE-MIT" => {
                    let licences = [COPYRIGHT.as_bytes(), text].concat();
                    tree.add(format!("usr/share/doc/{NAME}/copyright"), &licences, false);
                }
                _ => tree.add(format!("usr/share/doc/{NAME}/{name}"), text, false),
            }
        }
        for (name, text) in &self.headers {
            tree.add(format!("usr/include/{name}"), text, false);
        }
        Ok(tree)
    }
}

/// Returns `SOURCE_DATE_EPOCH` (reproducible-builds.org), else the time of the commit.
fn source_time() -> Result<u64> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => quietly(command("git").args(["log", "-1", "--format=%ct"]))?,
    };
    text.trim().parse().with_context(|| format!("SOURCE_DATE_EPOCH is no number of seconds: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_are_where_the_program_looks_for_them() {
        let shared = Shared {
            manuals: Vec::new(),
            completions: vec![Vec::new(); SHELLS.len()],
            texts: Vec::new(),
            headers: Vec::new(),
            time: 7,
        };
        let libraries = target_libraries::ALL.map(|library| library.file.as_bytes().to_vec()).to_vec();
        let built = Built { program: b"program".to_vec(), libraries };
        let path_of = |tree: &Tree, wanted: &[u8]| {
            let found = tree.files().find(|(_, content)| *content == wanted);
            found.map(|(path, _)| PathBuf::from(path)).unwrap()
        };
        let archive = shared.archive("nntrace", &built);
        let package = shared.package(&built).unwrap();
        let [beside, program] = [&archive, &package].map(|tree| path_of(tree, &built.program));
        let usr = program.ancestors().nth(2).unwrap();
        for (library, content) in target_libraries::ALL.iter().zip(&built.libraries) {
            assert_eq!(path_of(&archive, content), beside.with_file_name(library.file));
            assert_eq!(path_of(&package, content), usr.join("lib/nntrace-bpf").join(library.file));
        }
    }

    #[test]
    fn a_program_that_tells_where_it_was_built_is_found() {
        let told = |program: &[u8]| place(program, Path::new("/src/ours")).map(Cow::into_owned);
        assert_eq!(told(b"\x7fELF panicked at nntrace-bpf/src/main.rs cargo/registry/src"), None);
        assert_eq!(told(b"\x7fELF panicked at /src/ours/main.rs").as_deref(), Some("/src/ours"));
        assert_eq!(told(b"/home/a/.cargo/registry/src\0").as_deref(), Some("/.cargo/"));
    }
}
