//! Maps, right and wrong.

use super::*;

const ENGINE: &str = r#"
[[engine]]
name = "example"
about = "An example"
match = { export = "example_run" }
"#;

/// Parses a map of one engine and this text after its head.
fn engine(rest: &str) -> (Option<EngineMap>, Vec<String>) {
    let (maps, errors) = parse("my.toml", &format!("{ENGINE}{rest}"));
    (maps.into_iter().next(), errors.iter().map(MapError::to_string).collect())
}

/// Parses a probe of `example_run` with this text in it.
fn probe(rest: &str) -> ProbeEntry {
    let (map, errors) = engine(&format!("[[engine.probe]]\nat = {{ export = \"example_run\" }}\n{rest}"));
    assert_eq!(errors, [""; 0]);
    map.unwrap().probes.remove(0)
}

/// Returns the error of a probe with this text in it, which is from line 7 on, and which another probe follows.
fn probe_error(rest: &str) -> String {
    let good = "[[engine.probe]]\nat = { export = \"example_free\" }\nmark = \"LR_PT\"\n";
    let (map, errors) = engine(&format!("[[engine.probe]]\n{rest}\n{good}"));
    assert_eq!(map.unwrap().probes.len(), 1, "the good one is kept");
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors[0].clone()
}

#[test]
fn a_probe_with_little_has_the_usual_meaning() {
    let probe = probe("mark = \"LR_PE\"");
    assert_eq!((probe.prefix, probe.tag.to_string().as_str()), (Prefix::None, "LR_PE"));
    assert_eq!((probe.level, probe.kind), (Level::Run, Kind::Section));
    assert!(probe.names.is_empty() && probe.versions.is_none());
    assert!(!probe.returns_in_memory && !probe.is_nothrow && !probe.on_workers);
    assert_eq!(probe.line.to_string(), "my.toml:6");
    assert!(matches!(&probe.places[..], [FunctionPlace::Export(name)] if name.to_string() == "example_run"));
}

#[test]
fn a_probe_with_all_of_it() {
    let probe = probe(
        r#"
        mark = "[SUB] LC_PCO"
        level = "op"
        name = [
            { arg = 0, chain = [8, -16, 0x20], as = "std_string", versions = "<2" },
            { arg = 1, as = "enum", chain = [4], values = ["a", "b"], machine = "arm64" },
        ]
        label = "run"
        sret = true
        nothrow = true
        workers = true
        versions = ">=1.2, <3"
        except = ["*_cold", "x"]
        async = { end = 4 }
        "#,
    );
    assert_eq!((probe.prefix, probe.tag.to_string().as_str()), (Prefix::Subtract, "LC_PCO"));
    assert_eq!((probe.level, probe.kind), (Level::Op, Kind::AsyncEnd { argument: 4 }));
    let [first, second] = &probe.names[..] else { panic!("{:?}", probe.names) };
    assert_eq!((&first.chain[..], first.form), (&[8, -16, 32][..], NameForm::StdString));
    assert_eq!((second.argument, &second.values[..]), (1, &["a".to_owned(), "b".to_owned()][..]));
    assert_eq!(second.machine, Some(MachineName::Arm64));
    assert_eq!(probe.label.as_deref(), Some("run"));
    assert!(probe.returns_in_memory && probe.is_nothrow && probe.on_workers);
    assert_eq!(probe.except.len(), 2);
    assert!(probe.versions.unwrap().allows(&Version::of("2.9").unwrap()));
}

#[test]
fn probes_share_sources_of_names() {
    let map = |name: &str| {
        format!(
            "[names]\npath = [{{ arg = 0, as = \"cstr\", versions = \"1.2\" }}, {{ arg = 0, chain = [8], as = \"cstr\" }}]\n\
             [[engine]]\nname = \"example\"\nmatch = {{ export = \"x\" }}\n[[engine.probe]]\nat = {{ export = \"x\" \
             }}\nmark = \"LR_PE\"\nname = {name}\n"
        )
    };
    let (engines, errors) = parse("my.toml", &map("\"path\""));
    assert_eq!(errors, []);
    let names = &engines[0].probes[0].names;
    assert_eq!(names.iter().map(|name| &name.chain[..]).collect::<Vec<_>>(), [&[][..], &[8]]);
    let (engines, errors) = parse("my.toml", &map("[\"path\", { arg = 1, as = \"cstr\" }]"));
    assert_eq!((errors.len(), engines[0].probes[0].names.len()), (0, 3));
    let (_, errors) = parse("my.toml", &map("\"paht\""));
    assert_eq!(
        errors.iter().map(MapError::to_string).collect::<Vec<_>>(),
        ["my.toml:6: expected a name of `[names]`, found \"paht\"; the probe is left out"]
    );
    let (_, errors) = parse("my.toml", &map("\"path\"").replace("arg = 0, chain", "chain"));
    assert!(errors[0].to_string().contains("missing field `arg`"), "{errors:?}");
}

#[test]
fn the_number_of_arguments_is_for_operators_with_all_of_them_in_registers() {
    let operator = "mark = \"LC_PE\"\nlevel = \"op\"\n";
    assert_eq!(probe(operator).arguments, None);
    for (rest, arguments) in [("args = 1", 1), ("args = 6", 6), ("sret = true\nargs = 5", 5)] {
        assert_eq!(probe(&format!("{operator}{rest}")).arguments, Some(arguments));
    }
    let at = "at = { export = \"f\" }\n";
    for (rest, line, most, found) in
        [("args = 0", 10, 6, 0), ("args = 7", 10, 6, 7), ("sret = true\nargs = 6", 11, 5, 6)]
    {
        let error = format!(
            "my.toml:{line}: expected 1 to {most} arguments, which are in registers; found {found}; the probe is left out"
        );
        assert_eq!(probe_error(&format!("{at}{operator}{rest}")), error);
    }
    for rest in [
        "mark = \"LC_PE\"\nargs = 2",
        "mark = \"LC_PE\"\nlevel = \"run\"\nargs = 2",
        "mark = \"[SUB]LC_PE\"\nlevel = \"op\"\nargs = 2",
        "mark = \"LC_PE\"\nlevel = \"op\"\nargs = 2\nworkers = true",
        "mark = \"LC_PE\"\nlevel = \"op\"\nargs = 2\nasync = { begin = 0 }",
        "mark = \"LC_PE\"\nlevel = \"op\"\nargs = 2\nbracket = \"end\"",
    ] {
        let error = probe_error(&format!("{at}{rest}"));
        assert!(
            error.ends_with(
                ": expected `args` only with `level = \"op\"`, and without `[SUB]`, `workers`, `async` and `bracket`; the \
                 probe is left out"
            ),
            "{error}"
        );
    }
}

#[test]
fn places_of_all_kinds() {
    let (map, errors) = engine(
        r#"
        [[engine.probe]]
        at = { export = ["a", "b*"], symbol = "c", demangled = "x::{name}(*", table = "t", index = 9, rtti = "x::Y", slot = [2, 3] }
        mark = "LR_PE"
        "#,
    );
    assert_eq!(errors, [""; 0]);
    let places = map.unwrap().probes.remove(0).places;
    assert_eq!(places.len(), 7);
    assert!(matches!(&places[4], FunctionPlace::Table { export, index: 9 } if export == "t"));
    assert!(
        matches!(&places[6], FunctionPlace::Rtti { class, slot: 3, with_base: false } if class.mangled.to_string() == "N1x1YE")
    );
}

#[test]
fn evidence_is_of_the_content() {
    let (maps, errors) = parse(
        "my.toml",
        r#"
        [[engine]]
        name = "a"
        match = [{ rtti = ["x::Y", "N1x1ZE"], file = "lib*.so*" }, { symbol = "f", without = "g*" }]
        version = [{ table = "t" }, { beside = "a-{version}.dist-info" }]
        [[engine.probe]]
        at = { export = "f" }
        mark = "LR_PE"

        [[engine]]
        name = "b"
        match = { file = "libb.so" }
        [[engine.probe]]
        at = { export = "f" }
        mark = "LR_PE"
        "#,
    );
    let [map] = &maps[..] else { panic!("{maps:?}") };
    assert_eq!(map.evidence[0].classes.len(), 2);
    assert!(map.evidence[0].file.is_some() && map.evidence[1].absent.len() == 1);
    let VersionSource::Beside(affixes) = &map.versions[1] else { panic!("{:?}", map.versions) };
    assert_eq!(affixes.version_in("a-1.2.3.dist-info").unwrap().to_string(), "1.2.3");
    assert_eq!(affixes.version_in("b-1.2.3.dist-info"), None);
    let errors: Vec<_> = errors.iter().map(MapError::to_string).collect();
    assert_eq!(
        errors,
        [
            "my.toml:10: expected in each `match` an `export`, `symbol` or `rtti`: names of files alone are no evidence; \
         the engine is left out"
        ]
    );
}

#[test]
fn errors_name_file_and_line_and_what_was_expected() {
    let at = "at = { export = \"f\" }";
    for (text, error) in [
        (
            format!("{at}\nmark = \"LR_PX\""),
            "my.toml:8: expected a layer and a phase such as \"LR_PE\" or \"[SUB]LR_PC\", found \"LR_PX\"; the probe is left out",
        ),
        (
            format!("{at}\n\nmark = 3"),
            "my.toml:9: invalid type: integer `3`, expected a string; the probe is left out",
        ),
        (at.to_owned(), "my.toml:6: missing field `mark`; the probe is left out"),
        (
            format!("{at}\nmark = \"LR_PE\"\nmork = 1"),
            "my.toml:9: unknown field `mork`, expected one of `at`, `mark`, `level`, `name`, `label`, `sret`, `args`, \
             `nothrow`, `workers`, `versions`, `optional`, `except`, `async`, `bracket`; the probe is left out",
        ),
        (
            "at = { exports = \"f\" }\nmark = \"LR_PE\"".to_owned(),
            "my.toml:7: unknown field `exports`, expected one of `export`, `symbol`, `demangled`, `refers_to`, `all`, `table`, `index`, `rtti`, \
             `slot`, `base`; the probe is left out",
        ),
        (
            "at = {}\nmark = \"LR_PE\"".to_owned(),
            "my.toml:7: expected an `export`, `symbol`, `demangled`, `refers_to`, `table` with `index`, or `rtti` with `slot`; the probe \
             is left out",
        ),
        (
            "at = { table = \"f\" }\nmark = \"LR_PE\"".to_owned(),
            "my.toml:7: expected `table` and `index` together; the probe is left out",
        ),
        (
            "at = { rtti = \"x::Y\" }\nmark = \"LR_PE\"".to_owned(),
            "my.toml:7: expected `rtti` and `slot` together, and `base` only with them; the probe is left out",
        ),
        (
            format!("{at}\nmark = \"LR_PE\"\nlevel = \"ops\""),
            "my.toml:9: unknown variant `ops`, expected `run` or `op`; the probe is left out",
        ),
        (
            format!("{at}\nmark = \"LR_PE\"\nname = {{ arg = 6, as = \"cstr\" }}"),
            "my.toml:9: expected one of the first 6 arguments, from 0, which are in registers; found 6; the probe is left out",
        ),
        (
            format!("{at}\nmark = \"LR_PE\"\nsret = true\nname = {{ arg = 5, as = \"cstr\" }}"),
            "my.toml:10: expected one of the first 5 arguments, from 0, which are in registers; found 5; the probe is left out",
        ),
        (
            format!(
                "{at}\nmark = \"LR_PE\"\nname = [\n{{ arg = 0, as = \"cstr\", chain = [1, 2, 3, 4, 5] }}]"
            ),
            "my.toml:10: expected a chain of 4 offsets at most, found 5; the probe is left out",
        ),
        (
            format!("{at}\nmark = \"LR_PE\"\nname = {{ arg = 0, as = \"enum\" }}"),
            "my.toml:9: expected `values` with the names of the numbers from 0 on; the probe is left out",
        ),
        (
            format!("{at}\nmark = \"LR_PE\"\nname = {{ arg = 0, as = \"cstr\", element = 4 }}"),
            "my.toml:9: expected `element` only with `as = \"tokens\"`; the probe is left out",
        ),
        (
            format!(
                "{at}\nmark = \"LR_PE\"\nname = {{ arg = 0, chain = [8], as = \"tokens\", element = 0 }}"
            ),
            "my.toml:9: expected a size of elements from 1 on, found 0; the probe is left out",
        ),
        (
            format!("{at}\nmark = \"LR_PE\"\nname = {{ arg = 0, as = \"tokens\", element = 4 }}"),
            "my.toml:9: expected a `chain` that leads to the vector, found none; the probe is left out",
        ),
        (
            format!("{at}\nmark = \"LR_PE\"\nname = {{ arg = 0, by_value = true, as = \"tokens\" }}"),
            "my.toml:9: expected a `chain` into the structure that is passed by value, found none; the probe is left out",
        ),
        (
            format!("{at}\nmark = \"LR_PE\"\nversions = \"new\""),
            "my.toml:9: expected versions such as \">=1.21\", \">=2.14, <2.17\" or \"1.31\", found \"new\"; the probe is left \
             out",
        ),
        (
            format!("{at}\nmark = \"LR_PE\"\nbracket = \"begin\"\nasync = {{ begin = 0 }}"),
            "my.toml:10: expected `async` or `bracket`, not both; the probe is left out",
        ),
        (
            format!("{at}\nmark = \"LR_PE\"\nlabel = \"a#b\""),
            "my.toml:9: expected a name without `#`, found \"a#b\"; the probe is left out",
        ),
    ] {
        assert_eq!(probe_error(&text), error);
    }
}

#[test]
fn errors_of_whole_engines_and_files() {
    let errors = |text: &str| -> Vec<String> {
        let (maps, errors) = parse("my.toml", text);
        assert!(maps.is_empty());
        errors.iter().map(MapError::to_string).collect()
    };
    assert_eq!(errors(""), ["my.toml:1: expected at least one `[[engine]]`, found none"]);
    assert_eq!(
        errors("x = 1"),
        ["my.toml:1: unknown key `x`, expected `[[engine]]` or `[names]`; it is left out"]
    );
    assert_eq!(
        errors("[engine]\nname = \"x\""),
        ["my.toml:1: expected `[[engine]]`, found table; it is left out"]
    );
    let [syntax] = &errors("[[engine]]\nname = x\n")[..] else { panic!() };
    assert!(syntax.starts_with("my.toml:2: ") && syntax.ends_with("; nothing of it is used"), "{syntax}");
    assert_eq!(
        errors(ENGINE),
        ["my.toml:2: expected at least one `[[engine.probe]]`, found none; the engine is left out"]
    );
    let named = |name: &str| errors(&ENGINE.replace("example\"\nabout", &format!("{name}\"\nabout")));
    assert!(named("none")[0].starts_with("my.toml:3: expected a name of a-z"));
    assert!(named("Example")[0].ends_with("found \"Example\"; the engine is left out"));
}

#[test]
fn classes_are_named_as_people_or_compilers_do() {
    for (text, mangled) in [
        ("onnxruntime::OpKernel", "N11onnxruntime8OpKernelE"),
        ("N11onnxruntime8OpKernelE", "N11onnxruntime8OpKernelE"),
        ("Layer", "5Layer"),
        ("5Layer", "5Layer"),
        ("std::exception", "St9exception"),
        ("a::(anonymous namespace)::B", "N1a12_GLOBAL__N_11BE"),
        ("x::Y<int>", "x::Y<int>"),
        ("NodE", "4NodE"),
        ("cv::dnn::*::Layer", "N2cv3dnn*5LayerE"),
        ("cv::dnn::dnn4_v*::Layer", "N2cv3dnn*dnn4_v*5LayerE"),
        ("*Layer", "*Layer"),
        ("N2cv3dnn*5LayerE", "N2cv3dnn*5LayerE"),
    ] {
        assert_eq!(ClassName::parse(text).unwrap().mangled.to_string(), mangled, "{text}");
    }
}

proptest::proptest! {
    /// No text makes it panic, and one that gives nothing is said to be wrong.
    #[test]
    fn any_text_is_a_map_or_wrong(text in "(\\[\\[engine(\\.probe)?\\]\\]\n|name|match|at|mark|=|\\{|\\}|\"|export|LR_PE|[a-z0-9\n ,]){0,40}") {
        let (maps, errors) = parse("my.toml", &text);
        proptest::prop_assert!(!maps.is_empty() || !errors.is_empty());
    }
}
