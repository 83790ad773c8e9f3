//! `nntrace.h` in all ways of building programs: the mark function exists once, starts with the nop, and is found.

use std::{
    fs,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{
    child::Child,
    live,
    native::{compile, source},
    profiler::{Profiler, Run},
    results::Results as _,
};
use nntrace_user::live::target::{Layout, SymbolSpec, search_file};

/// Way of combining the parts of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Static,
    Pie,
    Shared,
    Stripped,
    Lto,
    ManyFiles,
}

const FORMS: [Form; 6] = [Form::Static, Form::Pie, Form::Shared, Form::Stripped, Form::Lto, Form::ManyFiles];

/// Way of building.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// `gcc` or `clang`.
    compiler: &'static str,
    is_cxx: bool,
    optimisation: &'static str,
    form: Form,
}

/// First bytes of the function: the nops, the return, and the padding.
const CODE: &[u8] = if cfg!(target_arch = "aarch64") {
    &[0x1f, 0x20, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6]
} else {
    &[0x0f, 0x1f, 0x44, 0x00, 0x00, 0x90, 0xc3, 0xcc]
};

impl Way {
    fn all() -> Vec<Self> {
        let mut ways = Vec::new();
        for compiler in ["gcc", "clang"] {
            for is_cxx in [false, true] {
                for optimisation in ["-O0", "-O1", "-O2", "-O3"] {
                    ways.extend(FORMS.map(|form| Self { compiler, is_cxx, optimisation, form }));
                }
            }
        }
        ways
    }

    /// Returns the compiler command for the language, which decides the libraries.
    fn driver(&self) -> &'static str {
        match (self.compiler, self.is_cxx) {
            ("gcc", true) => "g++",
            ("clang", true) => "clang++",
            (plain, _) => plain,
        }
    }

    /// Builds `marks` in a folder; returns the program, and other files with a mark function.
    fn build(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let language = if self.is_cxx { ["-xc++", "-std=c++11"] } else { ["-xc", "-std=c99"] };
        let compile = |flags: &[&str], sources: &[&Path], out: &Path| {
            // The language applies to the sources after it.
            let words = [&[self.driver(), self.optimisation], flags].concat();
            compile_as(&words, &language, sources, out)
        };
        let program = folder.join("marks");
        let (main, part) = (source("marks.c"), source("marks-part.c"));
        let both: [&Path; 2] = [&main, &part];
        match self.form {
            Form::Static => compile(&["-static"], &both, &program)?,
            Form::Pie => compile(&["-fPIE", "-pie"], &both, &program)?,
            Form::Stripped => compile(&["-fPIE", "-pie", "-s"], &both, &program)?,
            // Only clang's own linker reads its intermediate files.
            Form::Lto if self.compiler == "clang" => compile(&["-flto", "-fuse-ld=lld"], &both, &program)?,
            Form::Lto => compile(&["-flto"], &both, &program)?,
            Form::ManyFiles => {
                let more = (0..4).map(|number| {
                    let file = folder.join(format!("more-{number}.c"));
                    let function = format!("more_{number}");
                    let text = format!(
                        "#include <nntrace.h>\nint {function}(void);\nint {function}(void) {{\n    \
                         NNTRACE_RT(NNTRACE_PHASE_EXECUTION, \"more\");\n    return {number};\n}}\n"
                    );
                    fs::write(&file, text).map(|()| file)
                });
                let more: Vec<PathBuf> = more.collect::<Result<_, _>>()?;
                let all: Vec<&Path> = both.into_iter().chain(more.iter().map(PathBuf::as_path)).collect();
                compile(&[], &all, &program)?;
            }
            Form::Shared => {
                let library = folder.join("libpart.so");
                compile(&["-shared", "-fPIC", "-s"], &[&part], &library)?;
                let place = folder.to_str().context("the folder's name is text")?;
                let (search, run) = (format!("-L{place}"), format!("-Wl,-rpath,{place}"));
                compile(&[&search, &run, "-lpart"], &[&main], &program)?;
                return Ok(vec![program, library]);
            }
        }
        Ok(vec![program])
    }

    /// Builds, checks the function in each file, and runs the program unprobed.
    fn check(&self) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let files = self.build(folder.path())?;
        for file in &files {
            let found = search_file(file, &[SymbolSpec::default()])?.functions;
            ensure!(found.len() == 1, "not one mark function in {}: {found:?}", file.display());
            let function = &found[0];
            ensure!(function.layout == Layout::Buf && !function.layout_guessed, "{function:?}");
            let points = function.points;
            ensure!(points.nop.is_some() && points.is_emulated && function.offset % 16 == 0, "{function:?}");
            let mut code = [0; CODE.len()];
            fs::File::open(file)?.read_exact_at(&mut code, function.offset)?;
            ensure!(code == CODE, "the function's code is {code:x?}");
        }
        Child::run(&mut Command::new(&files[0]))?.expect_code(0)?;
        Ok(())
    }
}

/// Like [`compile`], with the sources in a given language, and libraries after them.
fn compile_as(words: &[&str], language: &[&str; 2], sources: &[&Path], out: &Path) -> Result<()> {
    let (libraries, mut flags): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| word.starts_with("-l"));
    flags.extend(language);
    let texts = sources.iter().map(|file| file.to_str().context("a source's name is text"));
    flags.extend(texts.collect::<Result<Vec<_>>>()?);
    // No sources follow.
    flags.push("-xnone");
    flags.extend(libraries);
    compile(&flags, &[], out)
}

#[test]
fn every_build_starts_the_function_with_the_nop() {
    let ways = Way::all();
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(way) = ways.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = way.check() {
                        let text = format!("{way:?}: {error:#}");
                        failures.lock().unwrap_or_else(PoisonError::into_inner).push(text);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(ways.len(), 96);
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), ways.len(), failures.join("\n"));
}

#[test]
fn the_examples_of_the_documentation_compile() -> Result<()> {
    const TEXT: &str = include_str!("../../../nntrace-common/docs/marking.md");
    let folder = tempfile::tempdir()?;
    let mut examples = 0;
    for (fence, suffix, words) in
        [("```c\n", "c", ["cc", "-std=c99", "-c"]), ("```cpp\n", "cc", ["c++", "-std=c++11", "-c"])]
    {
        for example in TEXT.split(fence).skip(1) {
            let (code, _) = example.split_once("```").context("an example has an end")?;
            let file = folder.path().join("example").with_extension(suffix);
            fs::write(&file, code)?;
            compile(&words, &[&file], &folder.path().join("example.o")).context(code)?;
            examples += 1;
        }
    }
    assert_eq!(examples, 2);
    Ok(())
}

#[test]
fn every_form_writes_its_marks_to_the_profiler() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    for (number, form) in FORMS.into_iter().enumerate() {
        // Each compiler and language three times.
        let compiler = if number % 2 == 0 { "gcc" } else { "clang" };
        let way = Way { compiler, is_cxx: number / 2 % 2 == 0, optimisation: "-O2", form };
        writes_its_marks(way).with_context(|| format!("{way:?}"))?;
    }
    Ok(())
}

fn writes_its_marks(way: Way) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let files = way.build(folder.path())?;
    let Run { snapshot, ended } = Profiler::new()?.launch([&files[0]])?;
    ended.expect_code(0)?;
    ensure!(snapshot.odd_marks().is_empty(), "{:?}", snapshot.diagnostics);
    let pids = snapshot.pids();
    ensure!(pids.len() == 1, "{pids:?}");
    // Five rounds; a part of execution without the execution of its layer around it also counts as one.
    let expected = [
        ("LA_PO", 1),
        ("LC_PCO", 10),
        ("LC_PE", 15),
        ("LC_PTR", 5),
        ("LR_PC", 5),
        ("LR_PE", 5),
        ("LR_PT", 5),
    ];
    let counts = snapshot.counts(pids[0]);
    let counts: Vec<(&str, u64)> = counts.iter().map(|(tag, &count)| (tag.as_str(), count)).collect();
    ensure!(counts == expected, "{counts:?}");
    Ok(())
}
