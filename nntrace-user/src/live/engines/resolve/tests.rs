//! Maps on compiled libraries.

mod jumps;

use std::{path::Path, sync::LazyLock};

use proptest::prelude::*;

use super::*;
use crate::live::engines::{
    catalog::Catalog,
    examination::examine,
    image::Image,
    probe::{End, NameForm},
    recognition,
    test_files::library,
};
use crate::live::target::{ElfErrorReason, PinnedFile, examiner::FoldersOf};

const SOURCE: &str = r#"
    #include <stdlib.h>
    extern "C" int other(int);
    namespace engine {
        struct Result { long a, b, c; Result(const Result &); Result(long n) : a(n), b(n), c(n) {} };
        struct Layer {
            virtual ~Layer();
            virtual int forward(int n) { return n; }
            virtual int both(int n) = 0;
        };
        Layer::~Layer() {}
        struct Conv : Layer { int forward(int n) override { return n * other(n); } int both(int n) override { return n + 2; } };
        struct Pool : Layer { int both(int n) override { return other(n) + 5; } };
        struct Final : Layer { int forward(int n) override { return 3 - other(n); } int both(int n) override { return n + 3; } };
        struct Alone { virtual int run(int n) { return other(n) - 1; } };
        namespace ops { int eval_add(int n) { return other(n) + 1; } int eval_mul(int n) { return other(n) * 2; } }
        Result load(const char *path) { return Result(other(path != nullptr)); }
        void say(const char *);
        int say_load(int n) { say("loading the model"); return other(n) + 11; }
        int say_one(int n) { say("said twice"); return other(n) + 12; }
        int say_two(int n) { say("said twice"); return other(n) + 13; }
    }
    extern "C" {
        int engine_run(int n) { return other(n) + 7; }
        int engine_jump(int n) { return other(n + 1); }
        int some_jump(int n) { return n > 7 ? n * 3 : other(n + 1); }
        void engine_free(int *p) { if (p) { other(*p); } free(p); }
        int engine_begin(int n) { return other(n) - 9; }
        engine::Layer *engine_make(int n) {
            if (n == 1) return new engine::Conv;
            if (n == 2) return new engine::Final;
            return new engine::Pool;
        }
        engine::Alone *engine_alone() { return new engine::Alone; }
        typedef int function(int);
        static function *const functions[] = { engine_run, engine_jump, engine_run };
        static function *const *get(unsigned version) { return version ? functions : nullptr; }
        static const char *version() { return "2.5.1-rc"; }
        static void *const base[] = { (void *)get, (void *)version };
        void *const *EngineApi() { return base; }
    }
"#;

static STRIPPED: LazyLock<Vec<u8>> =
    LazyLock::new(|| library("cc", SOURCE, &["-O2", "-s", "-fvisibility=default"]));

/// Resolves the engines of a map in a library.
fn resolved_in(data: &[u8], path: &str, map: &str, level: Level) -> Vec<Resolved> {
    let mut catalog = Catalog::compiled_in();
    assert_eq!(catalog.add("my.toml", map), []);
    let image = Image::parse(data).unwrap();
    let (name, folders) = (path.rsplit('/').next().unwrap(), FoldersOf(Path::new(path)));
    let library = Library::new(name, &folders, data, &image);
    let recognized = recognition::engines_in(&library, &catalog);
    resolve(&library, &recognized, level, false)
}

/// Resolves one engine with this text after its head, which has five lines.
fn resolved(rest: &str, level: Level) -> Resolved {
    let map = format!(
        "[[engine]]\nname = \"example\"\nabout = \"it\"\nmatch = {{ export = \"engine_run\" }}\nversion = {{ table = \
         \"EngineApi\" }}\n{rest}"
    );
    let mut all = resolved_in(&STRIPPED, "libengine.so", &map, level);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Resolves a probe with this text in it.
fn probes(at: &str, rest: &str) -> (Vec<EngineProbe>, Vec<String>) {
    let resolved =
        resolved(&format!("[[engine.probe]]\nat = {{ {at} }}\nmark = \"LR_PE\"\n{rest}"), Level::Op);
    (resolved.probes, resolved.notes.iter().map(Note::to_string).collect())
}

/// The names of functions and sections.
fn names(at: &str, rest: &str) -> Vec<(String, String)> {
    probes(at, rest).0.into_iter().map(|probe| (probe.function, probe.fallback_name)).collect()
}

fn pairs(names: &[(&str, &str)]) -> Vec<(String, String)> {
    names.iter().map(|(function, name)| ((*function).to_owned(), (*name).to_owned())).collect()
}

#[test]
fn functions_are_found_by_name_and_pattern() {
    assert_eq!(names("export = \"engine_run\"", ""), pairs(&[("engine_run", "engine_run")]));
    assert_eq!(
        names("symbol = \"_ZN6engine3ops*\"", ""),
        pairs(&[
            ("engine::ops::eval_add(int)", "ops::eval_add"),
            ("engine::ops::eval_mul(int)", "ops::eval_mul")
        ])
    );
    assert_eq!(
        names("demangled = \"engine::ops::eval_{name}(int)\"", "except = \"*_mul*\""),
        pairs(&[("engine::ops::eval_add(int)", "add")])
    );
    assert_eq!(names("export = \"engine_run\"", "label = \"Run\""), pairs(&[("engine_run", "Run")]));
}

#[test]
fn a_name_that_nothing_has_is_noted() {
    let (found, notes) = probes("symbol = [\"absent\", \"gone*\"]", "");
    assert!(found.is_empty());
    assert_eq!(notes, ["my.toml:6: the file has no function absent, nor gone*, it names its exports only"]);
    assert_eq!(probes("symbol = \"absent\"", "optional = true").1, [""; 0]);
    assert_eq!(probes("symbol = [\"absent\", \"engine_run\"]", "").1, [""; 0], "another candidate is there");
}

#[test]
fn classes_are_found_by_patterns() {
    let exact = names("rtti = \"engine::Layer\", slot = 3", "");
    assert!(!exact.is_empty());
    for pattern in ["*::Layer", "engine::*yer", "N6engine5Lay*"] {
        assert_eq!(names(&format!("rtti = \"{pattern}\", slot = 3"), ""), exact, "{pattern}");
    }
    let none = probes("rtti = \"engine::Lair*\", slot = 3", "").1;
    assert_eq!(none, ["my.toml:6: the file has no class engine::Lair*"]);
}

#[test]
fn functions_are_found_by_texts_that_they_refer_to() {
    let found = names("refers_to = \"loading the model\"", "");
    assert_eq!(found, pairs(&[("the function that refers to \"loading the model\"", "loading the model")]));
    let (found, notes) = probes("refers_to = \"said twice\"", "");
    assert_eq!(
        (found.len(), &notes[..]),
        (
            0,
            &["my.toml:6: 2 functions refer to \"said twice\", expected one; `all = true` takes them"
                .to_owned()][..]
        )
    );
    assert_eq!(names("refers_to = \"said twice\", all = true", "").len(), 2);
    let (found, notes) = probes("refers_to = [\"not there\", \"nor this\"]", "");
    assert!(found.is_empty());
    assert_eq!(
        notes,
        ["my.toml:6: the file has no function that refers to \"not there\", nor that refers to \"nor this\""]
    );
    assert_eq!(probes("refers_to = [\"not there\", \"loading the model\"]", "").1, [""; 0]);
}

#[test]
fn the_first_entry_that_finds_a_function_has_it() {
    let resolved = resolved(
        r#"
        [[engine.probe]]
        at = { export = "engine_run" }
        mark = "LR_PE"
        [[engine.probe]]
        at = { export = ["engine_r*", "engine_begin"] }
        mark = "LR_PI"
        "#,
        Level::Run,
    );
    let marks: Vec<_> =
        resolved.probes.iter().map(|probe| (probe.function.as_str(), probe.tag.to_string())).collect();
    assert_eq!(marks, [("engine_run", "LR_PE".to_owned()), ("engine_begin", "LR_PI".to_owned())]);
    assert_eq!((resolved.probes[1].map_line.to_string().as_str(), resolved.notes.len()), ("my.toml:10", 0));
}

#[test]
fn virtual_functions_of_a_class_and_its_descendants() {
    let (found, notes) = probes("rtti = \"engine::Layer\", slot = 3", "");
    let mut names: Vec<_> =
        found.iter().map(|probe| (probe.function.as_str(), probe.fallback_name.as_str())).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            ("engine::Conv::slot 3", "Conv"),
            ("engine::Final::slot 3", "Final"),
            ("engine::Pool::slot 3", "Pool")
        ]
    );
    assert_eq!(notes, [""; 0]);
    assert_eq!(
        names_of("rtti = \"engine::Alone\", slot = 0"),
        ["engine::Alone::slot 0"],
        "nothing derives from it"
    );
}

/// The functions of a place, by name.
fn names_of(at: &str) -> Vec<String> {
    let mut names: Vec<_> = probes(at, "").0.into_iter().map(|probe| probe.function).collect();
    names.sort_unstable();
    names
}

#[test]
fn what_a_class_does_not_override_is_left_out() {
    let place = "rtti = \"engine::Layer\", slot = 2";
    assert_eq!(names_of(place), ["engine::Conv::slot 2", "engine::Final::slot 2"]);
    assert_eq!(
        probes(place, "").1,
        [
            "my.toml:6: engine::Layer's own function in slot 2, which 1 derived class shares, is left out; `base = true` \
          takes it"
        ]
    );
    assert_eq!(names_of(&format!("{place}, base = true")).len(), 3);
    let (found, _) = probes(
        "rtti = \"N6engine5LayerE\", slot = [2, 3]",
        "except = [\"engine::Final*\", \"engine::Pool*\"]",
    );
    assert_eq!(
        found.iter().map(|probe| probe.function.as_str()).collect::<Vec<_>>(),
        ["engine::Conv::slot 2", "engine::Conv::slot 3"]
    );
}

#[test]
fn slots_and_classes_that_are_not_there_are_noted() {
    let note = |at: &str| {
        let (found, notes) = probes(at, "");
        assert!(found.is_empty());
        notes.join("\n")
    };
    assert_eq!(note("rtti = \"engine::Lair\", slot = 2"), "my.toml:6: the file has no class engine::Lair");
    let beyond = note("rtti = \"engine::Layer\", slot = 9");
    assert!(beyond.starts_with("my.toml:6: slot 9 of engine::"), "{beyond}");
    assert!(beyond.contains("the virtual table has 4 slots"), "{beyond}");
}

#[test]
fn functions_of_a_table() {
    assert_eq!(
        names("table = \"EngineApi\", index = 1", "label = \"Jump\""),
        pairs(&[("EngineApi, function 1", "Jump")])
    );
    let notes = |at: &str| probes(at, "").1.join("\n");
    assert_eq!(
        notes("table = \"EngineApi\", index = 3"),
        "my.toml:6: the table behind EngineApi has 3 functions, expected one with number 3"
    );
    assert_eq!(notes("table = \"Absent\", index = 3"), "my.toml:6: the file exports no function Absent");
}

#[test]
fn ends_of_functions() {
    let end = |function: &str, rest: &str| {
        let (found, notes) = probes(&format!("export = \"{function}\""), rest);
        assert_eq!(found.len(), 1);
        (found[0].end.clone(), notes)
    };
    let returns = |end: &End| matches!(end, End::Returns(places) if !places.is_empty());
    let (run, notes) = end("engine_run", "");
    assert!(returns(&run) && notes.is_empty(), "{run:?} {notes:?}");
    let (jump, notes) = end("engine_jump", "");
    assert_eq!(jump, End::StackPointer);
    assert_eq!(
        notes,
        ["my.toml:6: ends by jumps to other functions, and is closed by the stack pointer: engine_jump"]
    );
    let (some, notes) = end("some_jump", "");
    assert!(matches!(&some, End::SomeReturns(places) if !places.is_empty()), "{some:?}");
    assert!(notes[0].contains("ends by jumps to other functions too"), "{notes:?}");
    let (free, notes) = end("engine_free", "");
    assert!(returns(&free) && notes.is_empty(), "a jump to free is as good as a return: {free:?} {notes:?}");
    assert_eq!(end("engine_jump", "nothrow = true"), (End::ReturnProbe, Vec::new()));
    assert_eq!(end("engine_jump", "bracket = \"begin\""), (End::None, Vec::new()));
}

#[test]
fn arguments_are_registers_of_the_machine() {
    let probe = |rest: &str| probes("symbol = \"_ZN6engine4loadEPKc\"", rest).0.remove(0);
    let shifted = u8::from(cfg!(target_arch = "x86_64"));
    let plain = probe("name = { arg = 0, as = \"cstr\" }").name.unwrap();
    assert_eq!((plain.argument, plain.length, plain.form), (0, 0, NameForm::CString));
    let returned = probe("sret = true\nname = { arg = 0, as = \"enum\", chain = [8, -4], values = [\"a\"] }")
        .name
        .unwrap();
    assert_eq!((returned.argument, returned.length), (shifted, 2));
    assert_eq!((returned.chain, returned.values), ([8, -4, 0, 0], vec!["a".to_owned()]));
    assert_eq!(probe("sret = true\nasync = { begin = 2 }").kind, Kind::AsyncBegin { argument: 2 + shifted });
    assert_eq!(probe("async = { end = 2 }").kind, Kind::AsyncEnd { argument: 2 });
    let in_memory = if cfg!(target_arch = "x86_64") { IN_MEMORY } else { 1 };
    let batch =
        probe("name = { arg = 1, by_value = true, chain = [0], as = \"tokens\", element = 4 }").name.unwrap();
    assert_eq!((batch.argument, batch.form, batch.element), (in_memory, NameForm::Tokens, 4));
}

#[test]
fn entries_and_names_are_for_versions_and_machines() {
    let found = |rest: &str| probes("export = \"engine_run\"", rest);
    assert_eq!(
        resolved("[[engine.probe]]\nat = { export = \"engine_run\" }\nmark = \"LR_PE\"", Level::Run).version,
        Version::of("2.5.1")
    );
    assert_eq!(found("versions = \">=2.5, <3\"").0.len(), 1);
    let (none, notes) = found("versions = \"<2.5\"");
    assert!(none.is_empty());
    assert_eq!(notes, ["my.toml:1: none of the entries for certain versions is for 2.5.1"]);
    let own = if cfg!(target_arch = "x86_64") { "x86-64" } else { "arm64" };
    let other = if own == "arm64" { "x86-64" } else { "arm64" };
    let names = |first: &str| {
        let rest = format!(
            "name = [{{ arg = 1, as = \"cstr\", {first} }}, {{ arg = 2, as = \"cstr\", versions = \"2.5\" }}]"
        );
        let (found, notes) = found(&rest);
        assert_eq!(notes, [""; 0]);
        found[0].name.as_ref().map(|name| name.argument)
    };
    assert_eq!(names("versions = \"3\""), Some(2));
    assert_eq!(names(&format!("machine = \"{own}\"")), Some(1));
    assert_eq!(names(&format!("machine = \"{other}\"")), Some(2));
    let (_, notes) = found("name = { arg = 1, as = \"cstr\", versions = \"3\" }");
    assert_eq!(notes, ["my.toml:6: no `name` is for this version and machine: engine_run"]);
}

#[test]
fn without_a_version_entries_for_certain_ones_are_not_used() {
    let map = r#"
        [[engine]]
        name = "example"
        match = { export = "engine_run" }
        [[engine.probe]]
        at = { export = "engine_run" }
        mark = "LR_PE"
        versions = ">=1"
    "#;
    let resolved = resolved_in(&STRIPPED, "libengine.so", map, Level::Run).remove(0);
    assert!(resolved.probes.is_empty());
    assert_eq!(
        resolved.notes[0].to_string(),
        "my.toml:5: it is for versions >=1, and that of the file is not known"
    );
}

#[test]
fn versions_beside_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("engine/lib");
    std::fs::create_dir_all(&inner).unwrap();
    let version = || {
        let map = "[[engine]]\nname = \"example\"\nmatch = { export = \"engine_run\" }\nversion = { beside = \
                   \"engine-{version}.dist-info\" }\n[[engine.probe]]\nat = { export = \"engine_run\" }\nmark = \"LR_PE\"";
        let path = inner.join("libengine.so");
        resolved_in(&STRIPPED, &path.display().to_string(), map, Level::Run).remove(0).version
    };
    assert_eq!(version(), None);
    std::fs::create_dir(folder.path().join("engine-4.2.dist-info")).unwrap();
    assert_eq!(version(), Version::of("4.2"));
    std::fs::create_dir(folder.path().join("engine-4.3.dist-info")).unwrap();
    assert_eq!(version(), None, "it may be either");
}

#[test]
fn a_level_has_the_entries_of_those_below() {
    let map = r#"
        [[engine.probe]]
        at = { export = "engine_free" }
        mark = "LR_PT"
        [[engine.probe]]
        at = { export = "engine_run" }
        mark = "LC_PE"
        level = "op"
    "#;
    assert_eq!(resolved(map, Level::Op).probes.len(), 2);
    let run = resolved(map, Level::Run);
    assert_eq!(run.probes.len(), 1);
    assert_eq!(
        run.notes.iter().map(Note::to_string).collect::<Vec<_>>(),
        ["my.toml:1: whole runs are not seen in this file, its operators are: --engine-level op"]
    );
}

#[test]
fn an_engine_is_recognized_by_all_of_a_sign() {
    let engines = |evidence: &str, path: &str| {
        let map = format!(
            "[[engine]]\nname = \"example\"\nmatch = {evidence}\n[[engine.probe]]\nat = {{ export = \"engine_run\" }}\nmark = \
             \"LR_PE\""
        );
        let mut all = resolved_in(&STRIPPED, path, &map, Level::Run);
        (!all.is_empty()).then(|| all.remove(0)).map(|found| (found.sureness, found.signs))
    };
    let certain =
        |signs: &[&str]| Some((Sureness::Certain, signs.iter().map(|&sign| sign.to_owned()).collect()));
    assert_eq!(engines("{ export = \"engine_run\" }", "a.so"), certain(&["exports engine_run"]));
    assert_eq!(
        engines("{ symbol = \"engine_ru*\" }", "a.so"),
        Some((Sureness::Likely, vec!["has the symbol engine_run".to_owned()]))
    );
    assert_eq!(
        engines("{ symbol = \"engine_ru*\", rtti = \"engine::Layer\" }", "a.so"),
        certain(&["has the symbol engine_run", "has the class engine::Layer"])
    );
    assert_eq!(engines("{ export = [\"engine_run\", \"absent\"] }", "a.so"), None);
    assert_eq!(
        engines("[{ export = \"absent\" }, { rtti = \"engine::Pool\" }]", "a.so"),
        certain(&["has the class engine::Pool"])
    );
    assert_eq!(engines("{ export = \"engine_run\", without = \"engine_f*\" }", "a.so"), None);
    assert_eq!(
        engines("{ export = \"engine_run\", without = \"absent\" }", "a.so"),
        certain(&["exports engine_run"])
    );
    assert_eq!(engines("{ export = \"engine_run\", file = \"lib*.so\" }", "x/a.so"), None);
    assert_eq!(
        engines("{ export = \"engine_run\", file = \"lib*.so\" }", "x/liba.so"),
        certain(&["exports engine_run"])
    );
}

#[test]
fn parts_of_an_engine_are_one() {
    let part = |about: &str, class: &str, function: &str| {
        format!(
            "[[engine]]\nname = \"example\"\nabout = \"{about}\"\nmatch = {{ rtti = \"{class}\" }}\n[[engine.probe]]\nat = {{ export = \
             \"{function}\" }}\nmark = \"LR_PE\"\n"
        )
    };
    let map = [
        part("one", "engine::Layer", "engine_run"),
        part("two", "engine::Alone", "engine_*"),
        part("three", "engine::Absent", "engine_free"),
    ];
    let all = resolved_in(&STRIPPED, "a.so", &map.concat(), Level::Run);
    let [engine] = &all[..] else { panic!("{all:?}") };
    assert_eq!(engine.parts, ["one", "two"]);
    let functions: Vec<&str> = engine.probes.iter().map(|probe| probe.function.as_str()).collect();
    assert_eq!(functions[0], "engine_run");
    assert_eq!(functions.iter().filter(|&&function| function == "engine_run").count(), 1);
    assert!(functions.len() > 3);
}

#[test]
fn files_that_are_none_are_refused() {
    let catalog = Catalog::compiled_in();
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "engine_run").unwrap();
    let examined = |file: PinnedFile| examine(&file, &catalog, Level::Op, true);
    let pinned = |path: &Path| PinnedFile::at(path).map_err(ElfErrorReason::from);
    let error = |path: &Path| pinned(path).and_then(examined).unwrap_err().to_string();
    assert_eq!(error(&text), "not an ELF file: nothing to probe in it");
    assert!(error(folder.path()).starts_with("cannot read it: not a regular file"));
    assert!(error(&folder.path().join("absent")).starts_with("cannot read it: No such file"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever bytes a file has, nothing panics, and each probe is in the file.
    #[test]
    fn damaged_files_do_no_harm(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40), cut in any::<prop::sample::Index>()) {
        let mut data = STRIPPED.clone();
        for (place, byte) in changes {
            let place = place.index(data.len());
            data[place] = byte;
        }
        data.truncate(data.len() - cut.index(data.len() / 4));
        let map = r#"
            [[engine]]
            name = "example"
            match = [{ symbol = "e*" }, { rtti = "engine::Layer" }]
            version = { table = "EngineApi" }
            [[engine.probe]]
            at = { symbol = "e*", demangled = "engine::*", table = "EngineApi", index = 1, rtti = "engine::Layer", slot = [0, 1, 2, 3, 9] }
            mark = "LC_PE"
            level = "op"
            args = 2
        "#;
        let mut catalog = Catalog::compiled_in();
        prop_assert!(catalog.add("my.toml", map).is_empty());
        if let Ok(image) = Image::parse(&data) {
            let folders = FoldersOf(Path::new("a.so"));
            let library = Library::new("a.so", &folders, &data, &image);
            let recognized = recognition::engines_in(&library, &catalog);
            for resolved in resolve(&library, &recognized, Level::Op, true) {
                let hooks = resolved.probes.iter().filter_map(|probe| probe.hook.as_ref());
                prop_assert!(hooks.flat_map(|hook| &hook.words).all(|&word| image.is_data_word(word)));
                prop_assert!(resolved.probes.iter().all(|probe| probe.entry < data.len() as u64));
            }
        }
    }
}
