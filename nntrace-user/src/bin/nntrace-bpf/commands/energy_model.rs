//! `nntrace-bpf energy-model`, and reading models.

use std::{fs, path::Path, process::ExitCode};

use anyhow::{Context as _, Result, ensure};
use nntrace_user::{
    live::{energy_model, sysfs},
    model::energy::{self, EnergyModel},
    report,
};

use crate::{
    arguments::EnergyModelAction,
    output::{self, result_file},
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

/// The model in a file.
pub fn read(path: &Path) -> Result<EnergyModel, String> {
    let bytes = fs::read(path).map_err(|error| format!("cannot read it: {error}"))?;
    let name = path.to_string_lossy();
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        format!("{name}:{line}: expected text, found bytes that are no UTF-8")
    })?;
    energy::parse(&name, &text).map_err(|error| error.to_string())
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
        output::message(note);
    }
    Ok(())
}
