//! Libraries, in C, that targets load: they mark what engines do inside of the targets.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{
    arch::Arch,
    run::{command, quietly, target_dir},
};

/// All libraries.
pub const ALL: [TargetLibrary; 2] = [
    TargetLibrary {
        file: "libnntrace-itt.so",
        sources: "nntrace-common/itt",
        more_flags: &["-D_POSIX_C_SOURCE=200809L", "-Wl,-z,defs"],
        links: &[],
    },
    TargetLibrary {
        file: "libnntrace-hooks.so",
        sources: "nntrace-common/hooks",
        more_flags: &[
            "-D_GNU_SOURCE",
            "-ftls-model=initial-exec",
            "-fno-stack-protector",
            "-fno-exceptions",
            // It names no C library, so that it can be loaded with any.
            "-nodefaultlibs",
        ],
        // Atomic operations of arm64, from the archive.
        links: &["-lgcc"],
    },
];
/// Flags of the compiler for each of them. What is exported is marked in the sources; everything that is called is in the C
/// library, and known when the library is loaded.
const FLAGS: [&str; 12] = [
    "-std=c11",
    "-O2",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-pedantic",
    "-Inntrace-common/include",
    "-Wl,-z,now",
    "-Wl,-z,relro",
];
/// Extensions of sources: C, and assembly with directives of the C preprocessor.
const EXTENSIONS: [&str; 2] = ["c", "S"];

/// Library that targets load.
#[derive(Clone, Copy, Debug)]
pub struct TargetLibrary {
    /// File name, which is its name for the loader, too.
    pub file: &'static str,
    /// Folder of its sources, from the workspace on.
    sources: &'static str,
    /// Flags of the compiler that the others do not have.
    more_flags: &'static [&'static str],
    /// Flags of the linker, after the sources.
    links: &'static [&'static str],
}

/// Compiles all of them for this host, beside the programs of a profile, where the profiler finds them.
pub fn beside(profile: &str) -> Result<()> {
    let folder = target_dir()?.join(profile);
    ALL.iter().try_for_each(|library| library.compile("cc", &folder.join(library.file), &[]))
}

/// Compiles all of them for an architecture, without symbols; returns their paths, in the order of [`ALL`].
pub fn for_arch(arch: Arch) -> Result<Vec<PathBuf>> {
    let folder = target_dir()?.join(arch.triple());
    fs::create_dir_all(&folder)?;
    let compiled = |library: &TargetLibrary| {
        let path = folder.join(library.file);
        library.compile(&arch.gnu("gcc"), &path, &["-s"])?;
        Ok(path)
    };
    ALL.iter().map(compiled).collect()
}

impl TargetLibrary {
    fn compile(&self, compiler: &str, to: &Path, more: &[&str]) -> Result<()> {
        // Beside it first: a program may have the old one mapped.
        let new = to.with_extension("new");
        let mut compile = command(compiler);
        compile.args(FLAGS).arg(format!("-Wl,-soname,{}", self.file)).args(self.more_flags).args(more);
        compile.args(self.source_files()?).args(self.links).arg("-o").arg(&new);
        quietly(&mut compile)?;
        fs::rename(&new, to).with_context(|| to.display().to_string())
    }

    /// Returns the sources from the workspace on, always in the same order.
    fn source_files(&self) -> Result<Vec<PathBuf>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(self.sources);
        let mut sources = Vec::new();
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let name = PathBuf::from(entry?.file_name());
            if name.extension().is_some_and(|extension| EXTENSIONS.iter().any(|source| extension == *source))
            {
                sources.push(Path::new(self.sources).join(name));
            }
        }
        sources.sort();
        Ok(sources)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::on_path;

    /// Exported symbols of each library.
    const EXPORTED: [&[&str]; ALL.len()] = [
        &["__itt_api_init", "nntrace_itt_collector"],
        &["__libc_start_main", "dlclose", "dlopen", "dlsym", "nntrace_hooks_library"],
    ];
    /// Libraries that each needs.
    const NEEDED: [&[&str]; ALL.len()] = [&["[libc.so.6]"], &[]];
    /// Functions that the library of the hooks takes from its program's C library, glibc of any age or musl, beside those that
    /// compilers add.
    const TAKEN: [&str; 27] = [
        "__cxa_atexit",
        "__errno_location",
        "clock_gettime",
        "dl_iterate_phdr",
        "getauxval",
        "getenv",
        "getpid",
        "memchr",
        "memcmp",
        "memcpy",
        "memmove",
        "memset",
        "mmap",
        "mprotect",
        "munmap",
        "process_vm_readv",
        "sched_yield",
        "strchr",
        "strcmp",
        "strlen",
        "strncmp",
        "strrchr",
        "strspn",
        "strstr",
        "strtoull",
        "syscall",
        "sysconf",
    ];

    fn last_words(text: &str) -> Vec<&str> {
        text.lines().filter_map(|line| line.split_whitespace().next_back()).collect()
    }

    #[test]
    fn they_are_the_same_each_time_export_their_interfaces_and_need_no_more_than_a_c_library() {
        for arch in Arch::ALL.into_iter().filter(|arch| on_path(&arch.gnu("gcc"))) {
            let read = || -> Vec<(PathBuf, Vec<u8>)> {
                let paths = for_arch(arch).unwrap().into_iter();
                paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
            };
            let libraries = read();
            assert!(read() == libraries, "{arch}: other bytes");
            for ((path, _), (exported, needed)) in libraries.iter().zip(EXPORTED.iter().zip(NEEDED)) {
                let what = format!("{} for {arch}", path.display());
                let shown = |program: &str, arguments: &[&str]| {
                    quietly(command(arch.gnu(program)).args(arguments).arg(path)).unwrap()
                };
                let symbols = shown("nm", &["-D", "--defined-only"]);
                assert_eq!(last_words(&symbols), *exported, "{what}");
                let entries = shown("readelf", &["-d", "-W"]);
                let with = |tag: &str| -> Vec<&str> {
                    entries.lines().filter(|line| line.contains(tag)).flat_map(last_words).collect()
                };
                assert_eq!(with("(NEEDED)"), needed, "{what}");
                if needed.is_empty() {
                    let undefined = shown("nm", &["-D", "--undefined-only"]);
                    let strong = undefined.lines().filter(|line| line.contains(" U ")).flat_map(last_words);
                    let others: Vec<_> = strong.filter(|name| !TAKEN.contains(name)).collect();
                    assert_eq!(others, [""; 0], "{what}");
                }
                let name = path.file_name().unwrap().display();
                assert_eq!(with("(SONAME)"), [format!("[{name}]")], "{what}");
                let notes = shown("readelf", &["-n", "-W"]);
                assert!(
                    notes.contains("Provider: nntrace"),
                    "{what}: the mark function is found by its note: {notes}"
                );
            }
        }
    }
}
