//! Builds the kernel programs and puts the object into `OUT_DIR`, from where the loader embeds it.

use std::{env, fs, path::PathBuf, process::ExitCode};

use toolchain::Toolchain;

/// Architectures that the profiler runs on.
const ARCHITECTURES: [&str; 2] = ["aarch64", "x86_64"];

fn main() -> ExitCode {
    for source in
        ["nntrace-ebpf", "nntrace-common/Cargo.toml", "nntrace-common/src", "Cargo.toml", "Cargo.lock"]
    {
        println!("cargo::rerun-if-changed=../{source}");
    }
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error={error}");
            ExitCode::FAILURE
        }
    }
}

/// Compiles for the architecture of the user-space side.
fn build() -> Result<(), String> {
    let toolchain = Toolchain::find()
        .map_err(|missing| format!("missing for the kernel programs: {missing}; run: cargo xtask setup"))?;
    println!("cargo::rerun-if-changed={}", toolchain.linker.display());

    let out_dir = PathBuf::from(variable("OUT_DIR")?);
    // `target`, from target/<profile>/build/<package>/out: debug, release and lint builds share one object.
    let target_dir = out_dir.ancestors().nth(4).unwrap_or(&out_dir);
    let arch = variable("CARGO_CFG_TARGET_ARCH")?;
    if !ARCHITECTURES.contains(&arch.as_str()) {
        return Err(format!(
            "nntrace-bpf is not for {arch}: its kernel programs read the argument registers of 64-bit code; \
             build for one of {}",
            ARCHITECTURES.join(", ")
        ));
    }
    let endian = variable("CARGO_CFG_TARGET_ENDIAN")?;
    let (mut cargo, object) = toolchain.cargo("build", &arch, &endian, target_dir);
    let status = cargo.status().map_err(|error| format!("{cargo:?} does not start: {error}"))?;
    if !status.success() {
        return Err(format!(
            "the kernel programs do not compile ({status}) with {} and {}; the messages are below",
            toolchain.compiler.version,
            toolchain.linker.display(),
        ));
    }
    fs::copy(&object, out_dir.join("nntrace-ebpf"))
        .map_err(|error| format!("the object {} cannot be copied: {error}", object.display()))?;
    Ok(())
}

/// Returns a variable that cargo sets for build scripts.
fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("{name}: {error}; this is a build script, run by cargo"))
}
