//! The dynamic loader of a process, and the function that it calls for debuggers when libraries are loaded or
//! unloaded.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use object::elf;

use super::argument_layout::{Layout, SymbolSpec};
use super::command_lookup;
use super::mapped_files::{Object, Objects};
use super::object_id::ObjectId;
use super::proc_maps;
use super::process::Processes;
use super::symbols::search_file;

/// Names of that function in glibc and musl, and in Android's linker.
const NOTIFICATIONS: [&str; 3] = ["_dl_debug_state", "rtld_db_dlactivity", "__dl_rtld_db_dlactivity"];

/// Entries of the auxiliary vector: address and number of the program's headers (getauxval(3)).
const AT_PHDR: u64 = 3;
const AT_PHNUM: u64 = 5;
/// Entry of a dynamic section: address of the loader's data for debuggers.
const DT_DEBUG: u64 = 21;
/// Size of a 64-bit program header, bytes.
const HEADER: u64 = 56;
/// Size of a header table or dynamic section at most, bytes; memory with a larger one is damaged.
const LONGEST_TABLE: u64 = 1 << 16;

/// Returns the loader among the files that a process maps: the interpreter that its executable names, or that
/// executable itself, when the loader was started as a program. For a static program it is the program, in which no
/// such function is found.
#[must_use]
pub(crate) fn loader_of<'a>(processes: &Processes, pid: u32, objects: &'a Objects) -> Option<&'a Object> {
    let dir = processes.dir(pid);
    let exe = dir.join("exe");
    let file = match command_lookup::interpreter(&exe) {
        Some(interpreter) => {
            let interpreter = Path::new(&interpreter);
            dir.join("root").join(interpreter.strip_prefix("/").unwrap_or(interpreter))
        }
        None => exe,
    };
    let id = ObjectId::from(&std::fs::metadata(file).ok()?);
    objects.objects.iter().find(|object| object.id() == id)
}

/// Location of a loader's function for debuggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notification {
    /// Offset in the loader's file.
    At(u64),
    /// Unknown so far: the loader has only just been started.
    NotYet,
    /// The loader has none.
    Nowhere,
}

/// Finds the loader's notification function in a process: by name, or else in the loader's data for debuggers.
#[must_use]
pub(crate) fn notification(processes: &Processes, pid: u32, loader: &Object) -> Notification {
    by_name(loader)
        .map_or_else(|| by_address(&processes.dir(pid)).unwrap_or(Notification::Nowhere), Notification::At)
}

fn by_name(loader: &Object) -> Option<u64> {
    // It takes no arguments, so no layout can be wrong.
    let spec = |name| SymbolSpec { layout: Some(Layout::Buf), ..SymbolSpec::named(name) };
    let found = search_file(&loader.pin().ok()?, &NOTIFICATIONS.map(spec)).ok()?;
    found.functions.first().map(|function| function.offset)
}

/// Finds the function by `r_brk` of `struct r_debug` (link.h), to which `DT_DEBUG` in the program's dynamic section
/// leads once the loader has written it there. `None` when there is no such section, or when the memory cannot be
/// read.
fn by_address(dir: &Path) -> Option<Notification> {
    let auxiliary = std::fs::read(dir.join("auxv")).ok()?;
    let memory = File::open(dir.join("mem")).ok()?;
    let read = |address: u64, length: u64| {
        let mut bytes = vec![0; usize::try_from(length.min(LONGEST_TABLE)).ok()?];
        memory.read_exact_at(&mut bytes, address).ok().map(|()| bytes)
    };
    let headers = value(&auxiliary, AT_PHDR)?;
    let table = read(headers, value(&auxiliary, AT_PHNUM)?.saturating_mul(HEADER))?;
    let segment = |wanted: u32| {
        let is_it = |header: &&[u8]| header.starts_with(&wanted.to_ne_bytes());
        table.chunks_exact(HEADER as usize).find(is_it)
    };
    // The program's load address is the difference between the actual and the linked address of its headers.
    let moved = headers.wrapping_sub(word(segment(elf::PT_PHDR.0)?, 16)?);
    let dynamic = segment(elf::PT_DYNAMIC.0)?;
    let entries = read(moved.wrapping_add(word(dynamic, 16)?), word(dynamic, 40)?)?;
    let debug = value(&entries, DT_DEBUG)?;
    if debug == 0 {
        return Some(Notification::NotYet);
    }
    let address = word(&read(debug, 24)?, 16)?;
    if address == 0 {
        return Some(Notification::NotYet);
    }
    let maps = std::fs::read(dir.join("maps")).ok()?;
    let mapping =
        proc_maps::executable(&maps).find(|mapping| (mapping.start..mapping.end).contains(&address))?;
    Some(Notification::At(address - mapping.start + mapping.offset))
}

/// Returns the value of a key in a table of pairs.
fn value(pairs: &[u8], number: u64) -> Option<u64> {
    pairs.chunks_exact(16).find(|pair| word(pair, 0) == Some(number)).and_then(|pair| word(pair, 8))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_loader_is_found_and_tells_debuggers() {
        let (processes, us) = (Processes::default(), std::process::id());
        let objects = Objects::mapped_by(&processes, us).unwrap();
        let loader = loader_of(&processes, us, &objects).unwrap();
        if cfg!(target_feature = "crt-static") {
            assert_eq!(by_name(loader), None);
            return;
        }
        let name = loader.display_path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(name.starts_with("ld"), "{name}");
        let offset = by_name(loader).unwrap();
        assert_eq!(notification(&processes, us, loader), Notification::At(offset));
        assert_eq!(by_address(&processes.dir(us)), Some(Notification::At(offset)));
    }

    #[test]
    fn what_is_no_loader_has_no_such_function() {
        let exe = Object::at(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!(by_name(&exe), None);
        assert_eq!(by_address(Path::new("/nowhere")), None);
    }
}
