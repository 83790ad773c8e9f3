use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use super::*;

/// Builds a shared object, or an executable if `flags` ask for one, and returns its path.
fn build(dir: &Path, compiler: &str, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (file, out) = (dir.join(name), dir.join(format!("{name}.so")));
    std::fs::write(&file, source).unwrap();
    let status = Command::new(compiler)
        .args(["-shared", "-fPIC", "-O1"])
        .args(flags)
        .arg("-o")
        .arg(&out)
        .arg(&file)
        .status();
    assert!(status.unwrap().success());
    out
}

fn specs(names: &[&str]) -> Vec<SymbolSpec> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

const C: &str = r#"
    int seen;
    void tracing_mark_write(const char *text) { seen += text[0]; }
    extern __typeof(tracing_mark_write) also_mark __attribute__((alias("tracing_mark_write")));
    static __attribute__((noinline, used)) void quiet(const char *text) { seen -= text[0]; }
    int data_mark = 7;
    typedef void handler(const char *);
    static handler *choose(void) { return tracing_mark_write; }
    void indirect(const char *text) __attribute__((ifunc("choose")));
    void elsewhere(const char *);
    void calls(void) { elsewhere("x"); }
"#;

#[test]
fn a_c_function() {
    let dir = tempfile::tempdir().unwrap();
    let library = build(dir.path(), "cc", "mark.c", C, &[]);
    let search = search_file(&library, &specs(&["tracing_mark_write", "also_mark"])).unwrap();
    assert_eq!(search.functions.len(), 1, "two names, one probe: {search:?}");
    assert!(!search.stripped && search.near.is_empty());
    let found = &search.functions[0];
    assert_eq!((found.layout, found.layout_guessed), (Layout::Buf, false));

    // The offset leads to the function's code, in a segment that may be executed.
    let bytes = std::fs::read(&library).unwrap();
    let quiet = &search_file(&library, &specs(&["quiet=buf,len"])).unwrap().functions[0];
    assert_eq!(quiet.layout, Layout::BufLen);
    let code = |found: &Found| bytes[usize::try_from(found.offset).unwrap()..][..12].to_vec();
    assert_ne!(code(found), code(quiet));
    assert!(search_file(&library, &specs(&["elsewhere"])).unwrap().functions.is_empty(), "imported only");
}

#[test]
fn what_is_no_function() {
    let dir = tempfile::tempdir().unwrap();
    let library = build(dir.path(), "cc", "mark.c", C, &[]);
    for name in ["data_mark", "indirect"] {
        let search = search_file(&library, &specs(&[name])).unwrap();
        assert!(search.functions.is_empty());
        assert_eq!(search.near[0], Near { demangled: name.to_owned(), why: NearReason::NoFunction });
    }
}

#[test]
fn a_stripped_library_names_what_it_exports() {
    let dir = tempfile::tempdir().unwrap();
    let library = build(dir.path(), "cc", "mark.c", C, &["-s"]);
    let search = search_file(&library, &specs(&["tracing_mark_write", "quiet"])).unwrap();
    assert!(search.stripped);
    assert_eq!(
        search.functions.iter().map(|found| found.symbol.as_str()).collect::<Vec<_>>(),
        ["tracing_mark_write"]
    );
    let search = search_file(&library, &specs(&["quiet"])).unwrap();
    assert!(search.functions.is_empty() && search.stripped && search.named_functions > 0);
}

#[test]
fn symbol_versions() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("versions");
    std::fs::write(&script, "V1 { global: tracing_mark_write; };\n").unwrap();
    let flag = format!("-Wl,--version-script={}", script.display());
    for extra in [[].as_slice(), &["-s"]] {
        let library = build(dir.path(), "cc", "mark.c", C, &[&[flag.as_str()], extra].concat());
        let search = search_file(&library, &specs(&["tracing_mark_write"])).unwrap();
        assert_eq!(search.functions.len(), 1);
        assert_eq!(search.functions[0].symbol, "tracing_mark_write");
    }
}

#[test]
fn cxx_functions() {
    let dir = tempfile::tempdir().unwrap();
    let source = r"
        volatile int seen;
        struct tracer_client { void tracing_mark_write(const char *text, int length); void helper() const; };
        void tracer_client::tracing_mark_write(const char *text, int length) { seen = text[length - 1]; }
        namespace nn { void tracing_mark_write(const char *text) { seen = text[0] + 1; } }
        void tracing_mark_write(const char *text, unsigned long length) { seen = text[length - 2]; }
        namespace { __attribute__((noinline, used)) void tracing_mark_write(const char *text) { seen = text[0] + 2; } }
        void tracing_mark_write(int number) { seen = number; }
    ";
    let library = build(dir.path(), "c++", "mark.cc", source, &[]);
    let search = search_file(&library, &specs(&["tracing_mark_write"])).unwrap();
    let mut found: Vec<_> =
        search.functions.iter().map(|f| (f.demangled.as_str(), f.layout, f.layout_guessed)).collect();
    found.sort_unstable_by_key(|&(name, ..)| name);
    assert_eq!(
        found,
        [
            ("(anonymous namespace)::tracing_mark_write(char const*)", Layout::Buf, false),
            ("nn::tracing_mark_write(char const*)", Layout::ThisBuf, true),
            ("tracer_client::tracing_mark_write(char const*, int)", Layout::ThisBufLen, true),
            ("tracing_mark_write(char const*, unsigned long)", Layout::BufLen, false),
        ]
    );

    let only = |spec: &str| search_file(&library, &specs(&[spec])).unwrap().functions;
    assert_eq!(only("nn::tracing_mark_write=buf")[0].layout, Layout::Buf);
    assert_eq!(only("nn::tracing_mark_write").len(), 1);
    assert_eq!(only("_ZN13tracer_client18tracing_mark_writeEPKci").len(), 1);
    assert_eq!(only("tracing_mark_write(char const*, unsigned long)").len(), 1);
    assert!(only("n::tracing_mark_write").is_empty());
}

#[test]
fn near_matches() {
    let dir = tempfile::tempdir().unwrap();
    let mut source =
        "int s;\nvoid tracing_mark_write(double x) { s = (int)x; }\nint tracing_mark_writ;\n".to_owned();
    for name in [
        "trace_markwrite",
        "my_trace_mark",
        "tracing_mark_writer",
        "ATrace_beginSection",
        "atrace_begin_body",
        "other",
    ] {
        writeln!(source, "extern \"C\" void {name}(const char *t) {{ s += t[0]; }}").unwrap();
    }
    let library = build(dir.path(), "c++", "near.cc", &source, &[]);
    let search = search_file(&library, &specs(&["tracing_mark_write"])).unwrap();
    assert!(search.functions.is_empty());
    assert_eq!(search.near.len(), 2);
    assert_eq!(search.near[0].demangled, "tracing_mark_write(double)");
    assert_eq!(search.near[0].why, NearReason::Arguments);
    assert_eq!(search.near[1], Near { demangled: "tracing_mark_writer".to_owned(), why: NearReason::Name });
    let similar = similar_in_file(&library, &specs(&["tracing_mark_write"])).unwrap();
    let similar: Vec<_> = similar.iter().map(|near| near.demangled.as_str()).collect();
    assert_eq!(similar.len(), 5);
    assert!(similar.contains(&"my_trace_mark") && !similar.contains(&"other"), "{similar:?}");
    let slip = similar_in_file(&library, &specs(&["othr"])).unwrap();
    assert!(slip.iter().any(|near| near.demangled == "other"));
}

#[test]
fn leading_nops() {
    let dir = tempfile::tempdir().unwrap();
    let (nop, pad) = if cfg!(target_arch = "x86_64") {
        (".byte 0x0f, 0x1f, 0x44, 0, 0", ".byte 0xf3, 0x0f, 0x1e, 0xfa")
    } else {
        ("nop", ".inst 0xd503245f")
    };
    let function = |name: &str, code: &str| {
        format!(
            "asm(\".text\\n.p2align 4\\n.globl {name}\\n.type {name}, %function\\n{name}: {code}; ret\\n.size {name}, .-{name}\");\n"
        )
    };
    let source =
        function("with_nop", nop) + &function("without", "") + &function("padded", &format!("{pad}; {nop}"));
    let source = source + &function("only_pad", pad);
    let library = build(dir.path(), "cc", "nop.c", &source, &[]);
    let find = |name: &str| search_file(&library, &specs(&[name])).unwrap().functions[0].clone();
    let places = |name: &str| {
        let found = find(name);
        let nop = found.points.nop.map(|nop| nop.offset - found.offset);
        (nop, found.points.plain - found.offset)
    };
    // After the nop is a return, which arm64 simulates.
    let (behind, behind_pad) = if cfg!(target_arch = "x86_64") { (5, 0) } else { (4, 8) };
    assert_eq!(places("with_nop"), (Some(0), behind));
    assert_eq!(places("padded"), (Some(4), behind_pad), "behind the landing pad");
    assert_eq!((places("without"), places("only_pad")), ((None, 0), (None, 0)));
}

/// Program that writes marks by `nntrace.h`.
const NOTED: &str = r#"
    #include "nntrace.h"
    void work(void) { NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "work"); }
"#;

#[test]
fn a_function_by_its_note() {
    let dir = tempfile::tempdir().unwrap();
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../nntrace-common/include");
    let whole = build(dir.path(), "cc", "noted.c", NOTED, &[include]);
    let search = search_file(&whole, &specs(&["tracing_mark_write"])).unwrap();
    assert_eq!(search.functions.len(), 1, "its symbol and its note, one probe: {search:?}");
    let named = &search.functions[0];
    assert!(named.points.nop.is_some() && named.offset.is_multiple_of(16), "{named:?}");
    assert!(named.points.is_emulated, "{named:?}");

    let stripped = build(dir.path(), "cc", "bare.c", NOTED, &[include, "-s"]);
    let search = search_file(&stripped, &specs(&["tracing_mark_write", "work"])).unwrap();
    assert!(search.stripped);
    let found: Vec<_> = search.functions.iter().map(|found| found.symbol.as_str()).collect();
    assert_eq!(found, ["work", "tracing_mark_write"], "the second by its note only");
    assert_eq!(search.functions[1].layout, Layout::Buf);
    assert_eq!(search.functions[1].points.is_emulated, named.points.is_emulated);
    assert!(search_file(&stripped, &specs(&["mark"])).unwrap().functions.is_empty(), "not asked for");

    let bytes = std::fs::read(&stripped).unwrap();
    let code = &bytes[usize::try_from(search.functions[1].offset).unwrap()..];
    assert_eq!(code[..8], std::fs::read(&whole).unwrap()[usize::try_from(named.offset).unwrap()..][..8]);
}

#[test]
fn several_functions_of_one_file_by_their_notes() {
    let dir = tempfile::tempdir().unwrap();
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../nntrace-common/include");
    // Made local, so that the linker does not merge them: as in a program that was linked in steps.
    for name in ["one", "two"] {
        let (source, part) = (dir.path().join(format!("{name}.c")), dir.path().join(format!("{name}.o")));
        std::fs::write(&source, NOTED.replace("work", name)).unwrap();
        let compiled =
            Command::new("cc").args(["-c", "-fPIC", include, "-o"]).arg(&part).arg(&source).status();
        assert!(compiled.unwrap().success());
        let hidden = Command::new("objcopy")
            .args(["--localize-symbol=tracing_mark_write", "--remove-section=.group"])
            .arg(&part)
            .status();
        assert!(hidden.unwrap().success());
    }
    let out = dir.path().join("both.so");
    let linked = Command::new("cc")
        .args(["-shared", "-s", "-o"])
        .arg(&out)
        .args([dir.path().join("one.o"), dir.path().join("two.o")])
        .status();
    assert!(linked.unwrap().success());
    let search = search_file(&out, &specs(&["tracing_mark_write"])).unwrap();
    assert_eq!(search.functions.len(), 2, "{search:?}");
    assert_ne!(search.functions[0].offset, search.functions[1].offset);
}

/// Moves the code and leaves the notes unchanged, as prelink does.
#[test]
fn a_note_of_a_file_that_was_moved() {
    let dir = tempfile::tempdir().unwrap();
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../nntrace-common/include");
    let library = build(dir.path(), "cc", "moved.c", NOTED, &[include, "-s"]);
    let expected = search_file(&library, &specs(&["tracing_mark_write"])).unwrap().functions;
    let mut bytes = std::fs::read(&library).unwrap();
    let words = b"nntrace\0mark\0";
    let at = bytes.windows(words.len()).position(|window| window == words).unwrap() - 24;
    for address in [at, at + 8] {
        let field: &mut [u8; 8] = bytes[address..].first_chunk_mut().unwrap();
        *field = (u64::from_ne_bytes(*field) - 0x1000).to_ne_bytes();
    }
    std::fs::write(&library, &bytes).unwrap();
    assert_eq!(search_file(&library, &specs(&["tracing_mark_write"])).unwrap().functions, expected);
    // Without the base it is unknown that it was moved.
    let removed = Command::new("objcopy").arg("--remove-section=.stapsdt.base").arg(&library).status();
    assert!(removed.unwrap().success());
    let found = search_file(&library, &specs(&["tracing_mark_write"])).unwrap().functions;
    assert_ne!(found, expected);
}

/// Small deterministic random number generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

#[test]
fn damaged_files_are_refused_or_survived() {
    let dir = tempfile::tempdir().unwrap();
    let good = std::fs::read(build(dir.path(), "cc", "mark.c", C, &[])).unwrap();
    let specs = specs(&["tracing_mark_write"]);
    let look = |bytes: Vec<u8>| {
        if let Ok(elf) = Elf::parse(&bytes) {
            let _ = elf.interpreter();
        }
        let _ = similar(&bytes, &specs);
        search(&bytes, &specs)
    };
    assert_eq!(look(good.clone()).unwrap().functions.len(), 1);

    let mut numbers = Numbers(42);
    let headers = usize::from(u16::from_le_bytes([good[54], good[55]])) * 16 + 64;
    let sections = usize::try_from(u64::from_le_bytes(good[40..48].try_into().unwrap())).unwrap();
    for round in 0..600 {
        let mut bytes = good.clone();
        for _ in 0..=numbers.below(8) {
            // Most damage goes to the most sensitive part: the headers.
            let at = match round % 3 {
                0 => numbers.below(headers),
                1 => sections + numbers.below(bytes.len() - sections),
                _ => numbers.below(bytes.len()),
            };
            bytes[at] = u8::try_from(numbers.below(256)).unwrap();
        }
        if round % 5 == 0 {
            bytes.truncate(numbers.below(good.len()));
        }
        let _ = look(bytes);
    }
    for length in (0..good.len()).step_by(good.len() / 200) {
        let _ = look(good[..length].to_vec());
    }
    for length in [0, 1, 4, 19, 20, 64, 500] {
        assert!(look((0..length).map(|_| u8::try_from(numbers.below(256)).unwrap()).collect()).is_err());
    }
}

#[test]
fn errors_name_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text");
    std::fs::write(&text, "#!/bin/sh\n").unwrap();
    let error = search_file(&text, &[SymbolSpec::default()]).unwrap_err();
    assert_eq!(error.to_string(), format!("{}: not an ELF file: nothing to probe in it", text.display()));
    let error = search_file(&dir.path().join("none"), &[SymbolSpec::default()]).unwrap_err();
    assert!(matches!(error.reason, ElfErrorReason::Io(_)));
}
