//! `nntrace-bpf energy-model`: makes and checks energy models.

use std::{ops::ControlFlow, path::Path, process::ExitCode};

use anyhow::{Context as _, Result, ensure};
use nntrace_user::{
    analyze::energy_fit::{EnergyFit, Fit},
    live::{energy_model, rails::RailReader, sysfs},
    model::energy::{self, EnergyModel},
    record::{self, ReplayOptions},
    report,
};

use super::recording_folder;
use crate::{
    arguments::{EnergyModelAction, without_rails},
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
        EnergyModelAction::Fit { folder, model, rail, output, residuals, force } => {
            let fit = fit(folder, model, rail)?;
            if let Some(path) = residuals {
                result_file::write(path, *force, &fit.residuals())?;
            }
            let comments = fit.comments();
            write_model(output.as_deref(), *force, &format!("{comments}\n{}", fit.model()))?;
            if output.is_some() {
                output::print(&comments)?;
            }
        }
        EnergyModelAction::Rails { rails_from } => {
            let reader = RailReader::find(rails_from, None);
            ensure!(reader.count() > 0, without_rails(rails_from));
            output::print(&report::rails::list(&reader.read()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn init(file: Option<&Path>, force: bool) -> Result<()> {
    let release = nix::sys::utsname::uname().context("cannot ask for the kernel's release")?;
    let release = release.release().to_string_lossy().into_owned();
    let (text, notes) =
        energy_model::template(Path::new(sysfs::CPUS), Path::new(energy_model::KERNEL_MODEL), &release);
    write_model(file, force, &text)?;
    for note in notes {
        stderr::message(note);
    }
    Ok(())
}

/// Writes a model to a file, or to stdout.
fn write_model(file: Option<&Path>, force: bool, text: &str) -> Result<()> {
    let Some(path) = file else { return output::write_stdout(text.as_bytes()) };
    ensure!(energy::is_toml(path), "{}: the name of a model in this form must end in .toml", path.display());
    result_file::write(path, force, text)
}

/// Fits a model to a rail by the states of a recording.
fn fit(folder: &Path, model: &EnergyModel, rail: &str) -> Result<Fit> {
    recording_folder::check(folder, "`energy-model fit`")?;
    let mut fit = EnergyFit::new(model.clone(), rail.to_owned())?;
    record::play(folder, &ReplayOptions::default(), |recorded| {
        fit.take(&recorded.findings());
        ControlFlow::Continue(())
    })?;
    fit.fit().with_context(|| format!("{} cannot be fitted to", folder.display()))
}
