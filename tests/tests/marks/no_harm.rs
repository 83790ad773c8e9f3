//! No probe of ours harms a target: its forked children live, and it may leave mark functions in any way.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use nntrace_tests::{
    bpf::{self, Objects},
    c,
    child::Child,
    live,
    native::{Program, compile, source},
    profiler::{Profiler, Run},
    results::Results as _,
    snapshot,
};
use nntrace_user::report::snapshot::Snapshot;

/// Returns the count of sections of this name, in all processes.
fn counted(snapshot: &Snapshot, name: &str) -> u64 {
    snapshot.functions.iter().filter(|row| row.name == name).map(|row| row.count).sum()
}

#[test]
fn forked_children_live_and_all_their_marks_count() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let program = Program::build("forks.c")?;
    let Run { snapshot, ended } = Profiler::new()?.launch([program.path(), Path::new("400")])?;
    ended.expect_code(0)?;
    assert_eq!(counted(&snapshot, "section"), 401 * 3, "{:?}", snapshot.diagnostics);
    // Only the profiler reads their texts. Older kernels cannot wait for them.
    if live::waits_for_pages()? {
        assert_eq!(counted(&snapshot, "literal"), 401, "{:?}", snapshot.diagnostics);
    }
    Ok(())
}

#[test]
fn processes_that_python_forks_live_and_all_their_marks_count() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let library = folder.path().join("libmarks.so");
    compile(&["cc", "-std=c99", "-O2", "-shared", "-fPIC"], &[&source("library.c")], &library)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/forks.py");
    // The interpreter itself, not a wrapper that selects one of several.
    let asked = Child::run(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]))
        .context("python3: run `cargo xtask test`, which installs it")?
        .expect_code(0)?;
    let words = [Path::new(asked.text().trim()), &script, &library, Path::new("20")].map(Path::to_owned);
    let Run { snapshot, ended } = Profiler::new()?.launch(&words)?;
    let text = ended.expect_code(0)?.text();
    // The library is probed before the first mark, as the command is held when it loads it.
    assert_eq!(
        (counted(&snapshot, "work"), counted(&snapshot, "part")),
        (21, 21),
        "{text}: {:?}",
        snapshot.notes
    );
    assert_eq!(snapshot.odd_marks(), [].into());
    Ok(())
}

/// From Linux 6.13 on the kernel gives programs a stack per CPU, which a program on a user function would share with
/// those that preempt it, or run while it waits for a page.
#[test]
#[cfg(target_arch = "x86_64")]
fn no_program_on_a_function_has_a_stack_that_it_shares() -> Result<()> {
    /// Whether the code has `movabs r9, imm64`, `add r9, gs:disp32`: only a private stack is addressed by these.
    fn has_private_stack(image: &[u8]) -> bool {
        image
            .windows(15)
            .any(|code| code[..2] == [0x49, 0xb9] && code[10..] == [0x65, 0x4c, 0x03, 0x0c, 0x25])
    }
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let program = c::program(folder.path(), "untouched.c")?;
    let target = Child::start(Command::new(program).args(["waiting", "1"]))?;
    let profiler = Profiler::new()?.args(["--pid", &target.pid().to_string()]).attach()?;
    let held = Objects::held_by(profiler.pid())?;
    let mut images = bpf::images_on_functions(&held)?;
    images.retain(|_, image| has_private_stack(image));
    assert_eq!(images.into_keys().collect::<Vec<_>>(), [""; 0]);
    Ok(())
}

/// Functions are left by exceptions, jumps over frames, the end or the cancellation of a thread, and by jumps from
/// one mark function to another.
#[test]
fn mark_functions_can_be_left_in_every_way() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    // With optimisation only the compiler turns the last calls into jumps; without it only there are frame pointers.
    for flags in [&["-O2"][..], &["-O0"], &["-O2", "-fno-omit-frame-pointer", "-fcf-protection=none"]] {
        if cfg!(not(target_arch = "x86_64")) && flags.len() > 1 {
            continue;
        }
        let program = folder.path().join("leaves");
        let words = [&["c++", "-std=c++11"], flags].concat();
        compile(&words, &[&source("leaves.cc")], &program)?;
        let Run { snapshot, ended } = Profiler::new()?.launch([&program])?;
        ended.expect_code(0)?;
        assert_eq!(snapshot.odd_marks(), [].into(), "{flags:?}: {:?}", snapshot.diagnostics);
        // Fifty rounds of five ways each.
        for name in ["plain", "with_length", "method", "method_with_length", "body", "ndk"] {
            assert_eq!(counted(&snapshot, name), 250, "{flags:?}: {name}");
        }
        assert_eq!(snapshot.functions.len(), 6, "{flags:?}: {:?}", snapshot.functions);
    }
    Ok(())
}

/// A mark counts once, through any number of functions, and each of several counts, wherever the stack is.
#[test]
fn one_mark_through_several_functions_counts_once() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let with_frames: &[&str] = &["-O2", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"];
    for flags in [&["-O2"][..], &["-O0"], with_frames] {
        let program = folder.path().join("nested");
        compile(&[&["cc", "-std=gnu11"], flags].concat(), &[&source("nested.c")], &program)?;
        let Run { snapshot, ended } = Profiler::new()?.launch([&program])?;
        ended.expect_code(0)?;
        assert_eq!(snapshot.odd_marks(), [].into(), "{flags:?}: {:?}", snapshot.diagnostics);
        let mut names =
            vec!["called", "jumped", "sibling", "deeper", "same place", "recursive", "signal", "coroutine"];
        // A function between them is visible by its frame only.
        if flags != ["-O2"] || cfg!(target_arch = "aarch64") {
            names.push("between");
        }
        for name in names {
            assert_eq!(
                counted(&snapshot, name),
                100,
                "{flags:?}: {name}: {:?}",
                snapshot.stack_counts(snapshot.pids()[0])
            );
        }
    }
    Ok(())
}

/// Existing programs may contain the function of older headers.
#[test]
fn programs_with_an_older_header_are_probed_at_their_return_and_told_of() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let include = nntrace_tests::native::older_header(folder.path())?;
    let program = folder.path().join("forks");
    compile(&["cc", "-std=gnu99", "-O2", &include], &[&source("forks.c")], &program)?;
    let Run { snapshot, ended } = Profiler::new()?.launch([&program, Path::new("20")])?;
    ended.expect_code(0)?;
    assert_eq!(counted(&snapshot, "section"), 21 * 3, "{:?}", snapshot.diagnostics);
    let told = |part: &str| snapshot.notes.iter().any(|note| note.contains(part));
    ensure!(told("kills forked children") == told("15 us instead of 1"), "{:?}", snapshot.notes);
    Ok(())
}

/// Library with a mark function that returns a number, in two versions with other instructions at its begin.
const VERSIONED: &str = r"
    #ifdef NEW
    __attribute__((noinline, aligned(256))) int tracing_mark_write(const char *text) { return text[0] == 'B' ? 7 : 0; }
    #else
    static int sum;
    __attribute__((noinline, aligned(256))) int tracing_mark_write(const char *text) {
        volatile int numbers[4] = {1, 2, 3, 4};
        for (int i = 0; text[i]; i++) sum += numbers[i & 3];
        return sum;
    }
    #endif
";

#[test]
fn a_library_that_is_overwritten_computes_what_its_new_code_does() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    fs::write(path("lib.c"), VERSIONED)?;
    fs::write(
        path("main.c"),
        r#"
        #include <stdio.h>
        #include <unistd.h>
        int tracing_mark_write(const char *);
        int main(int count, char **words) {
            (void)words;
            if (count > 1) { printf("%d\n", tracing_mark_write("B|1|x")); return 0; }
            tracing_mark_write("B|1|[NN_LR_PE]x");
            tracing_mark_write("E|1");
            /* Its code is another one soon. */
            pause();
        }"#,
    )?;
    let library = path("libversioned.so");
    let new = path("new.so");
    compile(&["cc", "-O0", "-fPIC", "-shared"], &[&path("lib.c")], &library)?;
    compile(&["cc", "-O2", "-DNEW", "-fPIC", "-shared"], &[&path("lib.c")], &new)?;
    let program = path("main");
    let search = format!("-L{}", folder.path().display());
    compile(
        &["cc", &search, "-Wl,-rpath,$ORIGIN", "-lversioned", "-Wl,--no-as-needed"],
        &[&path("main.c")],
        &program,
    )?;
    let target = Child::start(&mut Command::new(&program))?;
    let pid = target.pid().to_string();
    // Long after the file has changed, which does not wait for an update.
    let mut profiler = Profiler::new()?.args(["--json-lines", "--interval", "30s", "--pid", &pid]);
    let profiler = Child::start(profiler.command())?;
    profiler.lines(1)?;
    // In place, as `cp` does: whatever has mapped it may not survive.
    fs::copy(&new, &library)?;
    thread::sleep(Duration::from_millis(500));
    let number = Child::run(Command::new(&program).arg("once"))?.expect_code(0)?.text();
    target.signal(Signal::SIGKILL)?;
    let ended = profiler.wait()?.expect_code(0)?;
    ensure!(number == "7\n", "the new code computes {number}");
    let last = ended.text().lines().last().context("a snapshot")?.to_owned();
    let notes = snapshot::read(last.as_bytes())?.notes;
    ensure!(
        notes.iter().any(|note| note.contains("was opened for writing while it was probed")),
        "{notes:?}"
    );
    Ok(())
}

/// A target puts another file in the place of its library as soon as somebody opens that, as the profiler does to look into it.
#[test]
fn a_file_that_takes_the_name_of_a_library_is_not_probed() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    fs::write(path("lib.c"), VERSIONED)?;
    let (library, other) = (path("libversioned.so"), path("other.so"));
    compile(&["cc", "-O0", "-fPIC", "-shared"], &[&path("lib.c")], &library)?;
    compile(&["cc", "-O2", "-DNEW", "-fPIC", "-shared"], &[&path("lib.c")], &other)?;
    symlink(&other, path("link"))?;
    fs::write(
        path("target.c"),
        r#"
        #include <dlfcn.h>
        #include <stdio.h>
        #include <sys/inotify.h>
        #include <unistd.h>
        int main(int count, char **words) {
            char event[4096];
            int watch = inotify_init();
            if (count != 3 || !dlopen(words[1], RTLD_NOW) || inotify_add_watch(watch, words[1], IN_OPEN) < 0) {
                return 1;
            }
            puts("ready");
            fflush(stdout);
            if (read(watch, event, sizeof event) <= 0 || rename(words[2], words[1])) { return 2; }
            puts("swapped");
            fflush(stdout);
            pause();
        }"#,
    )?;
    // Compares the code of a library in memory with its file.
    fs::write(
        path("reader.c"),
        r#"
        #include <dlfcn.h>
        #include <stdio.h>
        #include <string.h>
        int main(int count, char **words) {
            static unsigned char bytes[1 << 20];
            char line[4096], rights[8];
            unsigned long begin, end, offset;
            FILE *file = fopen(words[count - 1], "rb");
            FILE *maps = dlopen(words[count - 1], RTLD_NOW) ? fopen("/proc/self/maps", "r") : NULL;
            while (maps && fgets(line, sizeof line, maps)) {
                if (strstr(line, words[count - 1]) &&
                    sscanf(line, "%lx-%lx %7s %lx", &begin, &end, rights, &offset) == 4 && rights[2] == 'x') {
                    fseek(file, (long)offset, SEEK_SET);
                    size_t length = fread(bytes, 1, end - begin, file);
                    puts(memcmp(bytes, (void *)begin, length) ? "changed" : "same");
                }
            }
            return 0;
        }"#,
    )?;
    let (target, reader) = (path("target"), path("reader"));
    compile(&["cc", "-O1"], &[&path("target.c")], &target)?;
    compile(&["cc", "-O1"], &[&path("reader.c")], &reader)?;
    let target = Child::start(Command::new(&target).arg(&library).arg(path("link")))?;
    target.lines(1)?;
    let pid = target.pid().to_string();
    let mut profiler = Profiler::new()?.args(["--json-lines", "--interval", "200ms", "--pid", &pid]);
    let profiler = Child::start(profiler.command())?;
    target.lines(2)?;
    profiler.lines(3)?;
    let code = Child::run(Command::new(&reader).arg(&other))?.expect_code(0)?.text();
    target.signal(Signal::SIGKILL)?;
    profiler.wait()?.expect_code(0)?;
    ensure!(code == "same\n", "the code of another file: {code}");
    Ok(())
}
