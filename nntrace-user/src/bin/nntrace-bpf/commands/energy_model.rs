//! `nntrace-bpf energy-model`: makes and checks energy models.

use std::{path::Path, process::ExitCode};

use anyhow::{Context as _, Result, ensure};
use nntrace_user::{
    live::{energy_model, sysfs},
    model::energy,
    report,
};

use crate::{
    arguments::EnergyModelAction,
    output::{self, result_file},
    stderr,
};

/// Does what is asked for.
pub fn run(action: &EnergyModelAction) -> Result<ExitCode> {
    match action {
        EnergyModelAction::Init { file, force } => init(file.as_deref(), *force)?,
        EnergyModelAction::Check { model } => {
            output::print(&report::energy_model::describe(model))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn init(file: Option<&Path>, force: bool) -> Result<()> {
    let release = nix::sys::utsname::uname().context("cannot ask for the kernel's release")?;
    let release = release.release().to_string_lossy().into_owned();
    let (text, notes) =
        energy_model::template(Path::new(sysfs::CPUS), Path::new(energy_model::KERNEL_MODEL), &release);
    match file {
        Some(path) => {
            ensure!(
                energy::is_toml(path),
                "{}: the name of a model in this form must end in .toml",
                path.display()
            );
            result_file::write(path, force, &text)?;
        }
        None => output::write_stdout(text.as_bytes())?,
    }
    for note in notes {
        stderr::message(note);
    }
    Ok(())
}
