//! Building of static programs for either architecture, with a compiler that has its standard library.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use toolchain::remapped;

use crate::{
    arch::Arch,
    debian::{self, Debian},
    run::{cargo, command, on_path, quietly, target_dir},
    setup,
};

/// Debian's compiler, whose standard library for another architecture is a package.
const SYSTEM_RUSTC: &str = "/usr/bin/rustc";

/// Build environment for one architecture.
pub struct Cross {
    arch: Arch,
    /// Debian's standard library, to be used with Debian's compiler; `None` if the default compiler has one.
    debian: Option<PathBuf>,
}

impl Cross {
    /// Finds a compiler; unpacks Debian's library when no other has one.
    pub fn find(arch: Arch) -> Result<Self> {
        setup::build()?;
        let linker = arch.gnu("gcc");
        ensure!(
            on_path(&linker),
            "{linker} is missing, which links for {arch}; run: cargo xtask setup --vm, or install the packages \
             gcc-{0}-linux-gnu and libc6-dev-{1}-cross",
            arch.name().replace('_', "-"),
            arch.debian()
        );
        let own = quietly(command("rustc").args(["--print=target-libdir", "--target", arch.triple()]));
        if own.is_ok_and(|folder| has_std(Path::new(folder.trim()))) {
            return Ok(Self { arch, debian: None });
        }
        Ok(Self { arch, debian: Some(debian_std(arch)?) })
    }

    /// Returns cargo's `subcommand` for static programs without traces of the place where they were built.
    pub fn cargo(&self, subcommand: &str) -> Command {
        let mut flags: Vec<OsString> = vec!["-Ctarget-feature=+crt-static".into()];
        flags.extend(remapped());
        let mut cargo = cargo(subcommand);
        if let Some(library) = &self.debian {
            let mut flag = OsString::from("-L");
            flag.push(library);
            flags.push(flag);
            cargo.env("RUSTC", SYSTEM_RUSTC);
        }
        cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}".as_ref()));
        let linker = format!("CARGO_TARGET_{}_LINKER", self.arch.triple().to_uppercase().replace('-', "_"));
        cargo.env(linker, self.arch.gnu("gcc")).args(["--target", self.arch.triple()]);
        cargo
    }

    /// Returns the folder of the programs of a profile.
    pub fn programs(&self, profile: &str) -> Result<PathBuf> {
        Ok(target_dir()?.join(self.arch.triple()).join(profile))
    }
}

/// Returns Debian's standard library for an architecture, of the release of the compiler.
fn debian_std(arch: Arch) -> Result<PathBuf> {
    let version = quietly(command("dpkg-query").args(["--show", "--showformat=${Version}", "rustc-web"]))
        .with_context(|| {
            format!(
                "no compiler has a standard library for {arch}: run rustup target add {}, or install Debian's rustc-web",
                arch.triple()
            )
        })?;
    let root = debian::cache()?.join(format!("std-{}-{}", arch.debian(), version.replace(':', "_")));
    let library = root.join("usr/lib/rustlib").join(arch.triple()).join("lib");
    if has_std(&library) {
        return Ok(library);
    }
    let debian = Debian::open()?;
    let package = debian.download(&format!("libstd-rust-web-dev:{}={version}", arch.debian()))?;
    fs::create_dir_all(&library)?;
    package.files(|path, content| {
        if path.parent().is_some_and(|folder| root.join(folder) == library) {
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes)?;
            fs::write(root.join(path), bytes)?;
        }
        Ok(())
    })?;
    ensure!(has_std(&library), "{} has no standard library for {arch}", package.name());
    println!("unpacked   {}", package.name());
    Ok(library)
}

/// Whether there is a standard library.
fn has_std(folder: &Path) -> bool {
    let is_std = |name: &str| {
        name.starts_with("libstd-") && Path::new(name).extension().is_some_and(|it| it == "rlib")
    };
    fs::read_dir(folder).is_ok_and(|mut entries| {
        entries.any(|entry| entry.is_ok_and(|it| is_std(&it.file_name().to_string_lossy())))
    })
}
