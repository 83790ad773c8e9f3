//! The dynamic loader of a process, and the function that it calls for debuggers when libraries come and go.

use std::path::Path;

use super::command;
use super::layout::{Layout, SymbolSpec};
use super::objects::{Object, ObjectId, Objects};
use super::process::Processes;
use super::symbols::search_file;

/// Its names in glibc and musl, and in Android's linker.
const NOTIFICATIONS: [&str; 3] = ["_dl_debug_state", "rtld_db_dlactivity", "__dl_rtld_db_dlactivity"];

/// The loader among the files that a process maps: the interpreter that its executable asks for, or that executable
/// itself, when the loader was started as a program. Of a static program it is the program, in which no such function
/// is found.
#[must_use]
pub fn loader_of<'a>(processes: &Processes, pid: u32, objects: &'a Objects) -> Option<&'a Object> {
    let dir = processes.dir(pid);
    let exe = dir.join("exe");
    let file = match command::interpreter(&exe) {
        Some(interpreter) => {
            let interpreter = Path::new(&interpreter);
            dir.join("root").join(interpreter.strip_prefix("/").unwrap_or(interpreter))
        }
        None => exe,
    };
    let id = ObjectId::from(&std::fs::metadata(file).ok()?);
    objects.objects.iter().find(|object| object.id == id)
}

/// Where in a loader that function is, as an offset in its file; `None` when it has none by a name that is known.
#[must_use]
pub fn notification(loader: &Object) -> Option<u64> {
    // It takes nothing, so that no layout can be wrong.
    let spec = |name| SymbolSpec { layout: Some(Layout::Buf), ..SymbolSpec::named(name) };
    let found = search_file(&loader.path, &NOTIFICATIONS.map(spec)).ok()?;
    found.functions.first().map(|function| function.offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_loader_is_found_and_tells_debuggers() {
        let processes = Processes::default();
        let objects = Objects::mapped_by(&processes, std::process::id()).unwrap();
        let loader = loader_of(&processes, std::process::id(), &objects).unwrap();
        if cfg!(target_feature = "crt-static") {
            assert_eq!(notification(loader), None);
        } else {
            let name = loader.display_path.file_name().unwrap().to_string_lossy().into_owned();
            assert!(name.starts_with("ld"), "{name}");
            assert!(notification(loader).is_some(), "{loader:?}");
        }
    }

    #[test]
    fn what_is_no_loader_has_no_such_function() {
        let exe = Object::at(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!(notification(&exe), None);
    }
}
