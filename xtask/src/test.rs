//! All tests of the workspace.

use anyhow::Result;

use crate::{
    run::{as_root, cargo, command, is_root, run},
    setup,
};

/// Compiles as the user and runs the tests as root, which load kernel programs.
pub fn run_all(args: &[String]) -> Result<()> {
    setup::all()?;
    setup::tests()?;
    // The live tests call the binaries, which `cargo test` alone would not build.
    run(cargo("build").arg("--quiet"))?;
    let mut test = cargo("test");
    // Here a live test that cannot run is a failed test.
    test.env("NNTRACE_LIVE", "required");
    if !is_root()? {
        as_root(command("true"))?;
        test.args(["--config", r#"target."cfg(all())".runner = ["sudo", "-E", "--"]"#]);
    }
    run(test.args(["--workspace", "--exclude", "nntrace-ebpf"]).args(args))
}
