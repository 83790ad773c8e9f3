//! Finding and installing of the other tasks' requirements.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, anyhow, bail};
use toolchain::{Compiler, LINKER_VERSION, Toolchain};

use crate::{
    apt, emulator,
    run::{NeedsRoot, as_root, cargo, command, on_path, quietly, run},
};

/// Sets up building and live profiling.
pub fn all() -> Result<()> {
    build()?;
    live()
}

/// Sets up everything, including linting or emulating if asked for.
pub fn asked(for_lint: bool, for_vm: bool) -> Result<()> {
    if for_lint {
        lint()?;
        live()?;
    } else {
        all()?;
    }
    if for_vm { emulator::install() } else { Ok(()) }
}

/// Sets up the further requirements of the tests: compilers for their example programs, clang with the linker for its
/// intermediate files; disassemblers for both architectures; an interpreter that forks, a terminal to drive,
/// another tool that probes, what runs Perfetto's importer, a browser, and Graphviz.
pub fn tests() -> Result<()> {
    let other_objdump = if cfg!(target_arch = "x86_64") {
        ("aarch64-linux-gnu-objdump", "binutils-aarch64-linux-gnu")
    } else {
        ("x86_64-linux-gnu-objdump", "binutils-x86-64-linux-gnu")
    };
    let needed = [
        ("objdump", "binutils"),
        other_objdump,
        ("c++", "g++"),
        ("clang", "clang"),
        ("ld.lld", "lld"),
        ("python3", "python3"),
        ("setcap", "libcap2-bin"),
        ("tmux", "tmux"),
        ("bpftrace", "bpftrace"),
        ("node", "nodejs"),
        ("chromium", "chromium"),
        ("dot", "graphviz"),
    ];
    for (program, package) in needed {
        if !on_path(program) {
            apt::install(&[package])?;
        }
        println!("found      {program}");
    }
    Ok(())
}

/// Sets up building: a C compiler, which links, and the toolchain of the kernel programs.
pub fn build() -> Result<Toolchain> {
    c_compiler()?;
    toolchain()
}

/// A C compiler, which links.
pub fn c_compiler() -> Result<()> {
    if !on_path("cc") {
        apt::install(&["gcc", "libc6-dev"])?;
    }
    println!("found      a C compiler: cc");
    Ok(())
}

/// The toolchain of the kernel programs.
pub fn toolchain() -> Result<Toolchain> {
    let toolchain = Toolchain::find().or_else(|_| install_toolchain())?;
    println!("found      {} (LLVM {})", toolchain.compiler.version, toolchain.compiler.llvm);
    println!("found      {}", toolchain.linker.display());
    Ok(toolchain)
}

/// Sets up live profiling: the kernel's tracing files.
pub fn live() -> Result<()> {
    const TRACEFS: &str = "/sys/kernel/tracing";
    let mounts =
        fs::read_to_string("/proc/self/mounts").context("mounts are not known: /proc/self/mounts")?;
    if mounts.lines().any(|mount| mount.split(' ').nth(1) == Some(TRACEFS)) {
        println!("found      tracefs: {TRACEFS}");
        return Ok(());
    }
    println!("missing    tracefs: {TRACEFS}");
    let mut mount = Command::new("mount");
    mount.args(["-t", "tracefs", "tracefs", TRACEFS]);
    run(&mut as_root(mount)?)?;
    println!("mounted    tracefs: {TRACEFS}");
    Ok(())
}

/// Sets up linting, beyond building: rustfmt, clippy, and the clippy of a system compiler.
pub fn lint() -> Result<Toolchain> {
    let toolchain = build()?;
    for (component, subcommand) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        if quietly(cargo(subcommand).arg("--version")).is_err() {
            println!("installing {component} (rustup)");
            quietly(command("rustup").args(["component", "add", component]))?;
        }
        println!("found      cargo {subcommand}");
    }
    if let Some(clippy) = toolchain.compiler.clippy() {
        if !clippy.is_file() {
            apt::install(&["rust-web-clippy"])?;
        }
        println!("found      {}", clippy.display());
    }
    Ok(toolchain)
}

/// Installs a toolchain in the first way that works: the installed nightly, Debian's packages, a new nightly.
fn install_toolchain() -> Result<Toolchain> {
    let ways: [fn() -> Result<Compiler>; 3] = [nightly, debian, new_nightly];
    for way in ways {
        match way().and_then(with_linker) {
            Ok(toolchain) => return Ok(toolchain),
            // The user has to type a command; further attempts would download things that it makes unnecessary.
            Err(error) if error.is::<NeedsRoot>() => return Err(error),
            Err(error) => println!("missing    {error:#}"),
        }
    }
    bail!("no compiler for the kernel programs could be installed; the lines above say what each way lacks")
}

/// Returns rustup's installed nightly.
fn nightly() -> Result<Compiler> {
    Compiler::nightly().map_err(|missing| anyhow!(missing))
}

/// Installs Debian's compiler, which needs no sources: its `core` for BPF is a package.
fn debian() -> Result<Compiler> {
    Compiler::system().or_else(|_| {
        apt::install(&["rustc-web", "libstd-rust-web-dev-bpf"])?;
        Compiler::system().map_err(|missing| anyhow!(missing))
    })
}

/// Downloads rustup's nightly.
fn new_nightly() -> Result<Compiler> {
    println!("installing nightly with rust-src (rustup)");
    quietly(command("rustup").args([
        "toolchain",
        "install",
        "nightly",
        "--profile=minimal",
        "--component=rust-src",
    ]))?;
    nightly()
}

/// Adds the linker, compiled against the LLVM of the compiler.
fn with_linker(compiler: Compiler) -> Result<Toolchain> {
    let linker = toolchain::linker(compiler.llvm).or_else(|_| install_linker(compiler.llvm))?;
    Ok(Toolchain { compiler, linker })
}

/// Compiles bpf-linker, after its LLVM is there: a linker that only lacked the library is found then.
fn install_linker(llvm: u32) -> Result<std::path::PathBuf> {
    let prefix = format!("/usr/lib/llvm-{llvm}");
    if !Path::new(&prefix).join("include/llvm").is_dir() {
        apt::install(&[&format!("llvm-{llvm}-dev")])?;
    }
    toolchain::linker(llvm).or_else(|_| {
        println!("installing bpf-linker {LINKER_VERSION} for LLVM {llvm} (cargo)");
        let mut install = cargo("install");
        install.args(["bpf-linker", "--version", LINKER_VERSION, "--locked", "--force", "--quiet"]);
        install.args(["--no-default-features", &format!("--features=llvm-{llvm}"), "--root"]);
        install.arg(toolchain::linker_root(llvm)).env("LLVM_PREFIX", prefix);
        // It links one small program: what counts is how soon it is there.
        install.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0").env("CARGO_PROFILE_RELEASE_LTO", "off");
        install
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
            .env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo");
        quietly(&mut install)?;
        println!("installed  bpf-linker {LINKER_VERSION}");
        toolchain::linker(llvm).map_err(|missing| anyhow!(missing))
    })
}
