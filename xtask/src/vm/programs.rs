//! Programs for the VM: the profiler, the network, the checks, and programs that write marks.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{
    arch::Arch,
    cross::Cross,
    debian,
    run::{command, quietly},
    vm::{
        busybox::Busybox,
        cpio::{Archive, Node},
        python::Python,
    },
};

/// Program with the tests that use the kernel.
const TESTS: &str = "kernel";
/// Modules of it that run in machines. The others need a compiler or take too long, and `idle_against_ftrace` has its counterpart in
/// the machine's own checks, as here another CPU may get its turn between two readings of the clock that elsewhere are one
/// microsecond apart.
const SUITES: [&str; 7] =
    ["evidence", "hotplug", "initial_state", "kernel_log", "power_programs", "replay_and_kernel", "verify"];
/// Modules that write marks as fast as they can, or start dozens of programs: emulated, each is a matter of many minutes.
/// They are run when they are named.
const SLOW_SUITES: [&str; 8] = [
    "bad_targets",
    "clean_exit",
    "flood",
    "launched_command",
    "odd_marks",
    "table_sizes",
    "targets",
    "workload_truth",
];
/// Test that starts the example network, whose engine takes longest to build.
const WITH_NETWORK: &str = "workload_truth";
/// Programs that the tests start.
const HELPERS: [&str; 8] = [
    "counter-truth",
    "mark-family",
    "mark-flood",
    "mark-forks",
    "mark-raw",
    "mark-streams",
    "mark-threads",
    "slow-runs",
];
/// Tools of every system that the tests start.
const TOOLS: [&str; 3] = ["id", "sh", "sleep"];
/// Check that needs Python.
const WITH_PYTHON: &str = "python";
/// First process.
pub const GUEST: &str = "/nntrace/deps/vm-guest";
const PROFILE: &str = "guest";

/// Built programs for one architecture.
pub struct Programs {
    arch: Arch,
    built: PathBuf,
    names: Vec<&'static str>,
    /// Program with tests, and the modules of it that are to run.
    tests: Option<(PathBuf, Vec<&'static str>)>,
    targets: Vec<PathBuf>,
    engine: Vec<PathBuf>,
    calls: Vec<PathBuf>,
    busybox: Busybox,
    python: Option<Python>,
}

impl Programs {
    /// Builds the selected programs: with an empty filter all.
    pub fn build(arch: Arch, cross: &Cross, busybox: Busybox, filter: &[String]) -> Result<Self> {
        let named = |name: &&str| filter.iter().any(|it| it == name);
        let wanted: Vec<&str> = if filter.is_empty() || filter.iter().any(|it| it == "tests") {
            println!(
                "left out   {}: too slow where all is emulated; name them to run them",
                SLOW_SUITES.join(", ")
            );
            SUITES.to_vec()
        } else {
            SUITES.into_iter().chain(SLOW_SUITES).filter(named).collect()
        };
        println!("building   the programs for {arch}");
        // In one go: separately, each would compile the libraries again with the features that it needs.
        let mut cargo = cross.cargo("build");
        cargo.args([
            "--quiet",
            "--profile",
            PROFILE,
            "--package",
            "nntrace-user",
            "--package",
            "nntrace-tests",
        ]);
        let mut names = vec!["nntrace-bpf"];
        names.extend(HELPERS);
        if wanted.contains(&WITH_NETWORK) {
            cargo.args(["--package", "nntrace-workload"]);
            names.push("nntrace-workload");
        }
        // Artifacts as JSON: the names of test programs have hashes in them.
        cargo.args(["--bins", "--message-format=json-render-diagnostics"]);
        if !wanted.is_empty() {
            cargo.args(["--test", TESTS]);
        }
        let messages = quietly(&mut cargo)?;
        let tests = if wanted.is_empty() { None } else { Some((executable(&messages, TESTS)?, wanted)) };
        let needs_python = filter.is_empty() || filter.iter().any(|it| it == "checks" || it == WITH_PYTHON);
        let python = needs_python.then(|| Python::get(arch)).transpose()?;
        Ok(Self {
            arch,
            built: cross.programs(PROFILE)?,
            names,
            tests,
            targets: targets(arch)?,
            engine: engine(arch)?,
            calls: calls(arch)?,
            busybox,
            python,
        })
    }

    /// Puts the programs where the first process expects them.
    pub fn pack(&self, archive: &mut Archive) -> Result<()> {
        let program = |path: &Path| -> Result<Node> {
            let content = fs::read(path).with_context(|| path.display().to_string())?;
            Ok(Node::File { content, executable: true })
        };
        for folder in ["proc", "sys", "dev", "tmp"] {
            archive.add(folder, Node::Folder);
        }
        archive.add(GUEST, program(&self.built.join("vm-guest"))?);
        for name in &self.names {
            archive.add(&format!("nntrace/{name}"), program(&self.built.join(name))?);
        }
        if let Some((path, modules)) = &self.tests {
            archive.add("nntrace/deps/tests", program(path)?);
            let content = modules.join("\n").into_bytes();
            archive.add("nntrace/modules", Node::File { content, executable: false });
            self.busybox.add(&TOOLS, archive);
            // Their location when the tests were compiled.
            for name in HELPERS {
                let path = self.built.join(name);
                archive.add(&path.to_string_lossy(), Node::Link(format!("/nntrace/{name}")));
            }
        }
        for path in &self.targets {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            archive.add(&format!("targets/{name}"), program(path)?);
        }
        for path in &self.engine {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            archive.add(&format!("engine/{name}"), program(path)?);
        }
        for path in &self.calls {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            archive.add(&format!("calls/{name}"), program(path)?);
        }
        if let Some(python) = &self.python {
            python.pack(archive)?;
        }
        for (name, path) in libraries(self.arch) {
            archive.add(name, program(Path::new(path))?);
        }
        Ok(())
    }
}

/// Returns the path of a test program, from cargo's messages.
fn executable(messages: &str, name: &str) -> Result<PathBuf> {
    for line in messages.lines() {
        let message: serde_json::Value = serde_json::from_str(line)?;
        if message["target"]["name"] == name
            && let Some(path) = message["executable"].as_str()
        {
            return Ok(path.into());
        }
    }
    anyhow::bail!("cargo built no test program named {name}")
}

/// Target written in C++.
const CPP: &str = "marks.cpp";

/// Compiles programs that write marks, linked in every possible way.
fn targets(arch: Arch) -> Result<Vec<PathBuf>> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("vm/targets");
    let folder = debian::cache()?.join(format!("targets-{arch}"));
    fs::create_dir_all(&folder)?;
    let kinds: [(&str, &str, &[&str]); 7] = [
        ("c-static", "marks.c", &["-static", "-no-pie"]),
        ("c-static-pie", "marks.c", &["-static-pie", "-fPIE"]),
        ("c-pie", "marks.c", &["-pie", "-fPIE"]),
        // Without `.symtab`: only the symbols for the dynamic linker are left.
        ("c-stripped", "marks.c", &["-pie", "-fPIE", "-rdynamic", "-s"]),
        ("cpp-method", CPP, &["-pie", "-fPIE", "-fno-exceptions", "-fno-rtti"]),
        ("lanes-static", "lanes.c", &["-static", "-no-pie", "-Inntrace-common/include", "-pthread"]),
        ("lanes-stripped", "lanes.c", &["-pie", "-fPIE", "-s", "-Inntrace-common/include", "-pthread"]),
    ];
    let mut programs = Vec::new();
    for (name, source, flags) in kinds {
        let program = folder.join(name);
        let compiler = arch.gnu(if source == CPP { "g++" } else { "gcc" });
        let mut compile = command(compiler);
        compile.args(["-O2", "-Wall", "-Werror", "-Wl,--build-id=none"]).args(flags);
        // Only the C library: C++'s own is not in the VM.
        compile.arg("-o").arg(&program).arg(sources.join(source));
        // On arm64 the compiler's own library has the atomic operations.
        compile.args(["-nodefaultlibs", "-lc", "-lgcc"]);
        if name.contains("static") {
            compile.args(["-lgcc", "-lgcc_eh", "-lc"]);
        }
        quietly(&mut compile)?;
        programs.push(program);
    }
    Ok(programs)
}

/// Compiles the engine whose functions end in every way, and the program that calls it; returns them and their map.
fn engine(arch: Arch) -> Result<Vec<PathBuf>> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/native/engine-ends");
    let folder = debian::cache()?.join(format!("engine-{arch}"));
    fs::create_dir_all(&folder)?;
    let (library, program) = (folder.join("libengine.so"), folder.join("calls"));
    let compile = |sources: &[PathBuf], to: &Path, flags: &[&str]| {
        let mut compile = command(arch.gnu("g++"));
        compile.args(["-std=c++11", "-O2", "-Wall", "-Werror", "-pthread", "-Wl,--build-id=none"]);
        compile.arg("-Itests/native").args(sources).args(flags).arg("-o").arg(to);
        quietly(&mut compile)
    };
    let of_library = ["-shared", "-fPIC", "-fvisibility=hidden", "-s", "-Wl,-soname,libengine.so"];
    compile(&[sources.join("engine.cc")], &library, &of_library)?;
    let search = format!("-L{}", folder.display());
    let of_program = [&search, "-lengine", "-Wl,-rpath,$ORIGIN"];
    compile(&[sources.join("calls.cc"), sources.join("coroutines.cc")], &program, &of_program)?;
    Ok(vec![library, program, sources.join("engine.toml")])
}

/// Compiles a library whose calls are recorded, and the program that calls it; returns them.
fn calls(arch: Arch) -> Result<Vec<PathBuf>> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/native/calls");
    let folder = debian::cache()?.join(format!("calls-{arch}"));
    fs::create_dir_all(&folder)?;
    let (library, program) = (folder.join("libcalls.so.1"), folder.join("program"));
    let compile = |source: &str, to: &Path, flags: &[&str]| {
        let mut compile = command(arch.gnu("g++"));
        compile.args(["-std=c++11", "-O2", "-Wl,--build-id=none"]).arg(sources.join(source)).args(flags);
        quietly(compile.arg("-o").arg(to))
    };
    compile("library.cc", &library, &["-shared", "-fPIC", "-Wl,-soname,libcalls.so.1"])?;
    compile("program.cc", &program, &[&library.to_string_lossy(), "-pthread", "-Wl,-rpath,$ORIGIN"])?;
    Ok(vec![library, program])
}

/// Returns the dynamic linker, the C library with its mathematics, and that of C++ with its part for exceptions: the path in
/// programs, and the path here.
fn libraries(arch: Arch) -> [(&'static str, &'static str); 5] {
    match (arch, arch.is_host()) {
        (Arch::Aarch64, false) => [
            ("lib/ld-linux-aarch64.so.1", "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1"),
            ("lib/libc.so.6", "/usr/aarch64-linux-gnu/lib/libc.so.6"),
            ("lib/libm.so.6", "/usr/aarch64-linux-gnu/lib/libm.so.6"),
            ("lib/libstdc++.so.6", "/usr/aarch64-linux-gnu/lib/libstdc++.so.6"),
            ("lib/libgcc_s.so.1", "/usr/aarch64-linux-gnu/lib/libgcc_s.so.1"),
        ],
        (Arch::Aarch64, true) => [
            ("lib/ld-linux-aarch64.so.1", "/lib/ld-linux-aarch64.so.1"),
            ("lib/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6"),
            ("lib/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6"),
            ("lib/libstdc++.so.6", "/usr/lib/aarch64-linux-gnu/libstdc++.so.6"),
            ("lib/libgcc_s.so.1", "/lib/aarch64-linux-gnu/libgcc_s.so.1"),
        ],
        (Arch::X86_64, false) => [
            ("lib64/ld-linux-x86-64.so.2", "/usr/x86_64-linux-gnu/lib/ld-linux-x86-64.so.2"),
            ("lib/libc.so.6", "/usr/x86_64-linux-gnu/lib/libc.so.6"),
            ("lib/libm.so.6", "/usr/x86_64-linux-gnu/lib/libm.so.6"),
            ("lib/libstdc++.so.6", "/usr/x86_64-linux-gnu/lib/libstdc++.so.6"),
            ("lib/libgcc_s.so.1", "/usr/x86_64-linux-gnu/lib/libgcc_s.so.1"),
        ],
        (Arch::X86_64, true) => [
            ("lib64/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2"),
            ("lib/libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6"),
            ("lib/libm.so.6", "/lib/x86_64-linux-gnu/libm.so.6"),
            ("lib/libstdc++.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"),
            ("lib/libgcc_s.so.1", "/lib/x86_64-linux-gnu/libgcc_s.so.1"),
        ],
    }
}
