//! Functions that may be hooked, and the words in a file's data that lead to them.

use std::collections::HashMap;

use super::candidates::Candidate;
use crate::live::engines::{
    engine_map::ProbeEntry,
    image::{Image, Target},
    probe::{EngineProbe, Hook, Kind, Level},
};

/// Returns the hook of a function, still without its words; `None` if it may not be hooked.
pub(super) fn hook(entry: &ProbeEntry, candidate: &Candidate) -> Option<Hook> {
    let is_operator = entry.level == Level::Op && entry.kind == Kind::Section;
    let has_known_arguments = entry.arguments.is_some() && !candidate.has_other_arguments;
    (is_operator && has_known_arguments).then(|| Hook { address: candidate.address, words: Vec::new() })
}

/// Finds the words of all hooks, in one pass over the file's pointers; takes away hooks without any.
pub(super) fn find_words<'probe>(image: &Image<'_>, probes: impl Iterator<Item = &'probe mut EngineProbe>) {
    let hooked: Vec<_> = probes.filter(|probe| probe.hook.is_some()).collect();
    if hooked.is_empty() {
        return;
    }
    let addresses = hooked.iter().flat_map(|probe| &probe.hook).map(|hook| hook.address);
    let words = words(image, addresses);
    for probe in hooked {
        probe.hook = probe.hook.take().and_then(|hook| {
            let words = words.get(&hook.address)?.clone();
            (!words.is_empty()).then_some(Hook { words, ..hook })
        });
    }
}

/// Returns the words that lead to each of these addresses, ascending.
fn words(image: &Image<'_>, addresses: impl Iterator<Item = u64>) -> HashMap<u64, Vec<u64>> {
    let mut words: HashMap<u64, Vec<u64>> = addresses.map(|address| (address, Vec::new())).collect();
    image.for_each_loaded_pointer(|at, target| {
        if let Target::Address(to) = target
            && let Some(found) = words.get_mut(&to)
            && image.is_data_word(at)
        {
            found.push(at);
        }
    });
    for found in words.values_mut() {
        found.sort_unstable();
        found.dedup();
    }
    words
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::live::{
        engines::{
            catalog::Catalog,
            examined_file::Library,
            image::{Machine, Pointer},
            recognition,
            resolve::resolve,
            rtti::Rtti,
            test_files::{Pointers, Writer, library},
        },
        target::examiner::FoldersOf,
    };

    const SOURCE: &str = r#"
        extern "C" int other(int);
        struct Layer { virtual ~Layer(); virtual int forward(int n) = 0; };
        Layer::~Layer() {}
        struct Conv : Layer { int forward(int n) override { return n * other(n); } };
        struct Deep : Conv { int more; };
        struct Pool : Layer { int forward(int n) override { return n - other(n); } };
        extern "C" {
            Layer *engine_make(int n) {
                if (n == 1) return new Conv;
                if (n == 2) return new Deep;
                return new Pool;
            }
            int engine_run(int n) { return other(n) + 7; }
            int engine_listed(int n) { return other(n) + 9; }
            int engine_calls(int n) { return engine_run(n) + 1; }
            int (*engine_list[])(int) = { engine_listed };
        }
    "#;

    /// Resolves the virtual functions and the exported ones with this text in each of their entries.
    fn probes(data: &[u8], rest: &str, wants_hooks: bool) -> Vec<EngineProbe> {
        let places = ["rtti = \"Layer\", slot = 2", "export = \"engine_*\""];
        let probes = places.map(|place| {
            format!("[[engine.probe]]\nat = {{ {place} }}\nmark = \"LC_PE\"\nlevel = \"op\"\n{rest}\n")
        });
        let map = format!(
            "[[engine]]\nname = \"example\"\nmatch = {{ export = \"engine_run\" }}\n{}",
            probes.concat()
        );
        let mut catalog = Catalog::compiled_in();
        assert_eq!(catalog.add("my.toml", &map), []);
        let image = Image::parse(data).unwrap();
        let folders = FoldersOf(Path::new("a.so"));
        let library = Library::new("a.so", &folders, data, &image);
        let recognized = recognition::engines_in(&library, &catalog);
        resolve(&library, &recognized, Level::Op, wants_hooks).remove(0).probes
    }

    #[test]
    fn functions_that_data_leads_to_may_be_hooked() {
        for flags in [&["-O1"][..], &["-O1", "-s", "-Wl,-z,pack-relative-relocs"], &["-O1", "-Wl,-z,lazy"]] {
            let data = library("cc", SOURCE, flags);
            let image = Image::parse(&data).unwrap();
            let all = probes(&data, "args = 2", true);
            let hook = |function: &str| {
                all.iter().find(|probe| probe.function.starts_with(function)).unwrap().hook.clone()
            };
            let rtti = Rtti::of(&image);
            let slot = |class: &str| rtti.class(class).unwrap().vtable + 16;
            let hook_of = |class: &str| {
                let word = slot(class);
                all.iter()
                    .filter_map(|probe| probe.hook.clone())
                    .find(|hook| hook.words.contains(&word))
                    .unwrap()
            };
            let mut of_conv = vec![slot("4Conv"), slot("4Deep")];
            of_conv.sort_unstable();
            let (conv, pool) = (hook_of("4Conv"), hook_of("4Pool"));
            assert_eq!(conv.words, of_conv, "{flags:?}");
            assert_eq!(pool.words, [slot("4Pool")], "{flags:?}");
            let listed = hook("engine_listed").unwrap();
            assert_eq!(listed.words.len(), 1, "{flags:?}");
            assert_eq!(listed.address, image.exported("engine_listed").unwrap().address);
            for hook in [conv, pool, listed] {
                let leads_to_it = |&word: &u64| image.pointer(word) == Some(Pointer::Address(hook.address));
                assert!(hook.words.iter().all(leads_to_it), "{hook:x?}");
            }
            // Its callers have no word, or one that need not be written yet.
            assert_eq!(hook("engine_run"), None, "{flags:?}");
        }
    }

    #[test]
    fn hooks_are_for_entries_with_arguments_and_if_wanted() {
        let data = library("cc", SOURCE, &["-O1"]);
        for (rest, wants_hooks, has_hooks) in
            [("args = 2", true, true), ("args = 2", false, false), ("", true, false)]
        {
            let probes = probes(&data, rest, wants_hooks);
            assert!(probes.len() > 4);
            assert_eq!(probes.iter().any(|probe| probe.hook.is_some()), has_hooks, "{rest} {wants_hooks}");
        }
    }

    #[test]
    fn words_are_those_of_writable_data_that_are_relocated() {
        for machine in [Machine::X86_64, Machine::Arm64] {
            for pointers in [Pointers::Relocated, Pointers::Packed, Pointers::Fixed] {
                let mut writer = Writer::new(machine, pointers);
                let [first, second, third] = [(); 3].map(|()| writer.function(&[0; 16]));
                writer.export("second", second, 16);
                let by_name = writer.symbol("second");
                let words = [first, second, first].map(|function| writer.pointer(function));
                // Looks like an address, and is none.
                writer.word(third);
                let mut file = writer.file();
                let found = |file: &[u8]| {
                    let image = Image::parse(file).unwrap();
                    let found = super::words(&image, [first, second, third].into_iter());
                    [first, second, third].map(|function| found[&function].clone())
                };
                let expected = if pointers == Pointers::Fixed {
                    [vec![], vec![by_name], vec![]]
                } else {
                    [vec![words[0], words[2]], vec![by_name, words[1]], vec![]]
                };
                assert_eq!(found(&file), expected, "{machine} {pointers:?}");
                // The data's flags, in the first program header: readable, no more.
                file[64 + 4] = 4;
                let none: [Vec<u64>; 3] = Default::default();
                assert_eq!(found(&file), none, "{machine} {pointers:?}");
            }
        }
    }
}
