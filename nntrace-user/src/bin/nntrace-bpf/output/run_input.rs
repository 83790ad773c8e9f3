//! A run that is compared: a snapshot in JSON, a recording, or a trace.

use std::{
    fs::File,
    io::{BufReader, Read as _},
    path::Path,
};

use anyhow::{Context as _, Result, bail};
use nntrace_user::{
    record, replay,
    report::snapshot::{SCHEMA, Snapshot, VERSION},
};
use serde::Deserialize;

use crate::arguments::HostOptions;

/// Reads a run; of several snapshots in a file the last. A trace is of the machine that the command line describes.
pub fn read(path: &Path, described: &HostOptions) -> Result<Snapshot> {
    let name = path.display();
    if record::is_recording(path) {
        if described.topology.is_some() || !described.clusters.is_empty() {
            bail!("{name} is a recording, which has its own host: --topology and --cluster are for traces");
        }
        let options =
            record::ReplayOptions { energy_model: described.energy_model.clone(), ..Default::default() };
        let recorded =
            record::replay(path, &options).with_context(|| format!("cannot use the recording {name}"))?;
        return Ok(Snapshot::of(&recorded.findings()));
    }
    let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
    let mut reader = BufReader::new(file);
    let mut first = [0];
    let is_json = matches!(reader.read(&mut first), Ok(1)) && first == *b"{";
    if is_json {
        return last_snapshot(path, first.chain(reader));
    }
    let options = replay::Options {
        files: vec![path.to_owned()],
        topology: described.topology.clone(),
        clusters: described.clusters.clone(),
        energy_model: described.energy_model.clone(),
        ..replay::Options::default()
    };
    let replayed = replay::replay(&options).with_context(|| format!("cannot use {name}"))?;
    Ok(Snapshot::of(&replayed.findings()))
}

/// Form of a snapshot and its version.
#[derive(Deserialize)]
struct Form {
    schema: String,
    version: u32,
}

fn last_snapshot(path: &Path, reader: impl std::io::Read) -> Result<Snapshot> {
    let name = path.display();
    let last = serde_json::Deserializer::from_reader(reader).into_iter::<Snapshot>().last();
    let error = match last {
        Some(Ok(snapshot)) if snapshot.schema == SCHEMA && snapshot.version == VERSION => {
            return Ok(snapshot);
        }
        Some(Err(error)) => format!(": {error}"),
        _ => String::new(),
    };
    // Another version may have other keys: its number is looked for when it cannot be read.
    let file = BufReader::new(File::open(path).with_context(|| format!("cannot open {name}"))?);
    match serde_json::Deserializer::from_reader(file).into_iter::<Form>().next() {
        Some(Ok(Form { schema, version })) if schema == SCHEMA && version != VERSION => bail!(
            "{name} is a snapshot of version {version}, and this program reads version {VERSION}: take the nntrace-bpf that \
             wrote it, or make it anew"
        ),
        _ => bail!("{name} is JSON, but no snapshot of --json{error}"),
    }
}
