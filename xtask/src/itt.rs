//! `libnntrace-itt.so`: the library, in C, that makes marks of the tasks that oneDNN and others show by ITT.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{
    arch::Arch,
    run::{command, quietly, target_dir},
};

/// File name of the library.
pub const LIBRARY: &str = "libnntrace-itt.so";
/// Its sources, from the workspace on.
const SOURCES: &str = "nntrace-common/itt";
/// Flags of the compiler, besides the sources and the result. There is one exported function; everything that it calls is
/// in the C library, and known when the library is loaded.
const FLAGS: [&str; 15] = [
    "-std=c11",
    "-D_POSIX_C_SOURCE=200809L",
    "-O2",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-pedantic",
    "-Inntrace-common/include",
    "-Wl,-soname,libnntrace-itt.so",
    "-Wl,-z,defs",
    "-Wl,-z,now",
    "-Wl,-z,relro",
];

/// Compiles the library for this host, beside the programs of a profile, where the profiler finds it.
pub fn beside(profile: &str) -> Result<()> {
    compile("cc", &target_dir()?.join(profile).join(LIBRARY), &[])
}

/// Compiles the library for an architecture, without symbols; returns its path.
pub fn for_arch(arch: Arch) -> Result<PathBuf> {
    let folder = target_dir()?.join(arch.triple());
    fs::create_dir_all(&folder)?;
    let library = folder.join(LIBRARY);
    compile(&arch.gnu("gcc"), &library, &["-s"])?;
    Ok(library)
}

fn compile(compiler: &str, library: &Path, more: &[&str]) -> Result<()> {
    // Beside it first: a program may have the old one mapped.
    let new = library.with_extension("new");
    let mut compile = command(compiler);
    compile.args(FLAGS).args(more).args(sources()?).arg("-o").arg(&new);
    quietly(&mut compile)?;
    fs::rename(&new, library).with_context(|| library.display().to_string())
}

/// Returns the sources from the workspace on, always in the same order.
fn sources() -> Result<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(SOURCES);
    let mut sources = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let name = PathBuf::from(entry?.file_name());
        if name.extension().is_some_and(|extension| extension == "c") {
            sources.push(Path::new(SOURCES).join(name));
        }
    }
    sources.sort();
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::on_path;

    fn last_words(text: &str) -> Vec<&str> {
        text.lines().filter_map(|line| line.split_whitespace().next_back()).collect()
    }

    #[test]
    fn it_is_the_same_each_time_exports_its_interface_and_needs_the_c_library_alone() {
        for arch in Arch::ALL.into_iter().filter(|arch| on_path(&arch.gnu("gcc"))) {
            let library = for_arch(arch).unwrap();
            let bytes = fs::read(&library).unwrap();
            assert_eq!(fs::read(for_arch(arch).unwrap()).unwrap(), bytes, "{arch}");
            let symbols =
                quietly(command(arch.gnu("nm")).args(["-D", "--defined-only"]).arg(&library)).unwrap();
            assert_eq!(last_words(&symbols), ["__itt_api_init", "nntrace_itt_collector"], "{arch}");
            let entries = quietly(command(arch.gnu("readelf")).args(["-d", "-W"]).arg(&library)).unwrap();
            let needed: Vec<&str> = entries.lines().filter(|line| line.contains("(NEEDED)")).collect();
            assert_eq!(last_words(&needed.join("\n")), ["[libc.so.6]"], "{arch}");
            let notes = quietly(command(arch.gnu("readelf")).args(["-n", "-W"]).arg(&library)).unwrap();
            assert!(
                notes.contains("Provider: nntrace"),
                "{arch}: the mark function is found by its note: {notes}"
            );
        }
    }
}
