//! Selection of the compiler and the linker of the kernel programs, and their command lines.
//!
//! Shared by the build script of `nntrace-user` and by xtask. It is compiled before everything else, and therefore
//! uses nothing but std; and it depends on the installed tools only: no variable has to be set after
//! `cargo xtask setup`.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

/// Oldest release of bpf-linker that is accepted, and the one that setup installs.
pub const LINKER_VERSION: &str = "0.13.0";

/// Debian's compiler: its packages contain compiled `core` for BPF.
const SYSTEM_RUSTC: &str = "/usr/bin/rustc";

/// Variables of an outer cargo that may reach the inner one. The rest describes the user-space build (compiler,
/// flags, profile overrides, target), which must not leak into the kernel programs.
const KEPT: [&str; 6] =
    ["CARGO_HOME", "CARGO_HTTP_", "CARGO_MAKEFLAGS", "CARGO_NET_", "CARGO_REGISTRIES_", "CARGO_REGISTRY_"];

/// Compiler for BPF.
#[derive(Debug)]
pub struct Compiler {
    /// Path; `None` for rustup's nightly, which also compiles `core`.
    rustc: Option<PathBuf>,
    /// Version, for people.
    pub version: String,
    /// Major version of its LLVM, whose bitcode the linker has to read.
    pub llvm: u32,
}

impl Compiler {
    /// Returns rustup's nightly, if it has the sources of `core`.
    ///
    /// # Errors
    /// Names what is missing.
    pub fn nightly() -> Result<Self, String> {
        let rustc = |question| output(Command::new("rustup").args(["run", "nightly", "rustc", question]));
        let sysroot = rustc("--print=sysroot").ok_or("rustup's nightly")?;
        if !Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/core").is_dir() {
            return Err("the component rust-src of rustup's nightly".into());
        }
        Self::from_version(None, rustc("-vV"))
    }

    /// Returns the distribution's compiler, if it comes with `core` for BPF.
    ///
    /// # Errors
    /// Names what is missing.
    pub fn system() -> Result<Self, String> {
        if !Path::new("/usr/lib/rustlib/bpfel-unknown-none/lib").is_dir() {
            return Err("core for BPF in /usr/lib/rustlib (Debian: libstd-rust-web-dev-bpf)".into());
        }
        Self::from_version(Some(SYSTEM_RUSTC.into()), output(Command::new(SYSTEM_RUSTC).arg("-vV")))
    }

    /// Parses the output of `rustc -vV`.
    fn from_version(rustc: Option<PathBuf>, text: Option<String>) -> Result<Self, String> {
        let name = rustc.as_deref().unwrap_or(Path::new("rustup's nightly")).display().to_string();
        let text = text.ok_or_else(|| format!("the version of {name}, which does not start"))?;
        let version = text.lines().next().unwrap_or_default().to_owned();
        let llvm = text
            .lines()
            .find_map(|line| line.strip_prefix("LLVM version: ")?.split('.').next()?.parse().ok())
            .ok_or_else(|| format!("the LLVM version of {name}, which says: {text}"))?;
        Ok(Self { rustc, version, llvm })
    }

    /// Returns the `cargo-clippy` that belongs to a system compiler.
    #[must_use]
    pub fn clippy(&self) -> Option<PathBuf> {
        self.rustc.as_ref().map(|rustc| rustc.with_file_name("cargo-clippy"))
    }
}

/// Compiler and the linker that reads its bitcode.
#[derive(Debug)]
pub struct Toolchain {
    /// Compiler.
    pub compiler: Compiler,
    /// Path of bpf-linker.
    pub linker: PathBuf,
}

impl Toolchain {
    /// Finds the first complete compiler with its linker.
    ///
    /// # Errors
    /// Names what is missing for each.
    pub fn find() -> Result<Self, String> {
        let with_linker = |compiler: Compiler| Ok(Self { linker: linker(compiler.llvm)?, compiler });
        Compiler::nightly().and_then(with_linker).or_else(|nightly| {
            Compiler::system().and_then(with_linker).map_err(|system| format!("{nightly}; {system}"))
        })
    }

    /// Returns cargo's `subcommand` on the kernel programs for hosts of this architecture and endianness (both as in
    /// `CARGO_CFG_TARGET_ARCH` and `_ENDIAN`), and the path of the object that a build creates.
    ///
    /// It works in a directory of its own under `target_dir`: an outer cargo holds the locks of the others.
    #[must_use]
    pub fn cargo(&self, subcommand: &str, arch: &str, endian: &str, target_dir: &Path) -> (Command, PathBuf) {
        let target = if endian == "big" { "bpfeb-unknown-none" } else { "bpfel-unknown-none" };
        let target_dir = target_dir.join(format!("ebpf-{arch}"));
        let mut cargo = match self.compiler.clippy().filter(|_| subcommand == "clippy") {
            Some(clippy) => Command::new(clippy),
            None if self.compiler.rustc.is_some() => {
                Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            }
            None => Command::new("rustup"),
        };
        for (name, _) in env::vars_os().filter(|(name, _)| leaks(&name.to_string_lossy())) {
            cargo.env_remove(name);
        }
        match &self.compiler.rustc {
            // The BPF crates need features that only the bootstrap switch enables in a stable compiler.
            Some(rustc) => cargo.env("RUSTC", rustc).env("RUSTC_BOOTSTRAP", "1").arg(subcommand),
            None => cargo.args(["run", "nightly", "cargo", subcommand, "-Zbuild-std=core"]),
        };
        let mut flags = vec![
            // aya reads a probed function's arguments from the registers of this architecture.
            format!("--cfg=bpf_target_arch=\"{arch}\"").into(),
            "--check-cfg=cfg(bpf_target_arch,values(any()))".into(),
            "-Cdebuginfo=2".into(),
            "-Clink-arg=--btf".into(),
            // With that order, no memset is expanded: each would be a call that goes byte by byte.
            "-Clink-arg=--disable-expand-memcpy-in-order".into(),
            format!("-Clinker={}", self.linker.display()).into(),
        ];
        // The description of types and lines for the kernel is in every binary.
        flags.extend(remapped());
        cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f".as_ref()));
        cargo.args(["--release", "--package", "nntrace-ebpf", "--target", target]);
        cargo.arg("--target-dir").arg(&target_dir);
        (cargo, target_dir.join(target).join("release/nntrace-ebpf"))
    }
}

/// Returns the flags that remove the build's paths from the results: those of the sources, of the libraries, and of
/// the compiler itself.
#[must_use]
pub fn remapped() -> Vec<OsString> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(Path::to_owned);
    let home = |variable: &str, folder: &str| {
        let set = env::var_os(variable).filter(|dir| !dir.is_empty()).map(PathBuf::from);
        set.or_else(|| Some(env::home_dir()?.join(folder)))
    };
    let folders = [
        (workspace, "=nntrace-bpf"),
        (home("CARGO_HOME", ".cargo"), "=cargo"),
        (home("RUSTUP_HOME", ".rustup"), "=rustup"),
    ];
    let flag = |(from, to): (Option<PathBuf>, &str)| {
        let mut flag = OsString::from("--remap-path-prefix=");
        flag.push(from?);
        flag.push(to);
        Some(flag)
    };
    folders.into_iter().filter_map(flag).collect()
}

/// Returns the folder of the tools that setup compiled: outside of `target`, so that `cargo clean` and the next clone
/// find them.
#[must_use]
pub fn tools() -> PathBuf {
    let cache = env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    cache.unwrap_or_else(|| env::home_dir().unwrap_or_default().join(".cache")).join("nntrace-bpf")
}

/// Returns the directory of the bpf-linker that setup installs for this LLVM.
#[must_use]
pub fn linker_root(llvm: u32) -> PathBuf {
    tools().join(format!("bpf-linker-{LINKER_VERSION}-llvm-{llvm}"))
}

/// Finds the bpf-linker for this LLVM: setup's, else one on `PATH`, whose LLVM cannot be determined.
///
/// # Errors
/// Names what is missing.
pub fn linker(llvm: u32) -> Result<PathBuf, String> {
    let own = linker_root(llvm).join("bin/bpf-linker");
    let path = env::var_os("PATH").unwrap_or_default();
    let mut candidates =
        std::iter::once(own.clone()).chain(env::split_paths(&path).map(|dir| dir.join("bpf-linker")));
    candidates.find(|linker| usable(linker)).ok_or_else(|| {
        format!("bpf-linker {LINKER_VERSION} for LLVM {llvm}, at {} or on PATH", own.display())
    })
}

/// Whether this linker starts (its LLVM may be gone) and is recent enough.
fn usable(linker: &Path) -> bool {
    let release = |version: &str| -> Option<(u32, u32)> {
        let mut numbers = version.split_whitespace().next_back()?.split('.').map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    };
    linker.is_file()
        && output(Command::new(linker).arg("--version"))
            .is_some_and(|version| release(&version) >= release(LINKER_VERSION))
}

/// Whether a variable of the outer cargo must not reach the inner one.
fn leaks(name: &str) -> bool {
    let starts_with = |prefix: &&str| name.starts_with(prefix);
    ["CARGO_", "RUSTC", "RUSTDOC", "RUSTFLAGS"].iter().any(starts_with) && !KEPT.iter().any(starts_with)
}

/// Returns the output of a command, if it starts and succeeds.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}
