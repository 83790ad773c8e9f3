//! The picture of the terminal interface in the README, from a real run.

use anyhow::Result;

use crate::{
    run::{as_root, cargo, command, run, target_dir},
    setup,
};

/// The picture, as the documentation has it.
const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../nntrace-user/docs/screen.svg");

/// Sets up, builds, and renders the picture from a run on the example network.
pub fn render() -> Result<()> {
    setup::all()?;
    setup::tests()?;
    run(cargo("build").arg("--quiet"))?;
    let mut picture = command(target_dir()?.join("debug/tui-picture"));
    picture.arg(PICTURE);
    run(&mut as_root(picture)?)
}
