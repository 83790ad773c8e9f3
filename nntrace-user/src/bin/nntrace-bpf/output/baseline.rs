//! The run that another one is compared with: a snapshot in JSON, or a trace.

use std::{
    fs::File,
    io::{BufReader, Read as _},
    path::Path,
};

use anyhow::{Context as _, Result, bail};
use nntrace_user::{
    replay,
    report::snapshot::{SCHEMA, Snapshot},
};

use crate::arguments::HostOptions;

/// Reads it; of several snapshots in a file the last. A trace is of the machine that the command line describes.
pub fn read(path: &Path, described: &HostOptions) -> Result<Snapshot> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot open the baseline {name}"))?;
    let mut reader = BufReader::new(file);
    let mut first = [0];
    let is_json = matches!(reader.read(&mut first), Ok(1)) && first == *b"{";
    if is_json {
        let reader = first.chain(reader);
        let last = serde_json::Deserializer::from_reader(reader).into_iter::<Snapshot>().last();
        return match last {
            Some(Ok(snapshot)) if snapshot.schema == SCHEMA => Ok(snapshot),
            Some(Err(error)) => bail!("the baseline {name} is JSON, but no snapshot of --json: {error}"),
            _ => bail!("the baseline {name} is JSON, but no snapshot of --json"),
        };
    }
    let options = replay::Options {
        files: vec![path.to_owned()],
        topology: described.topology.clone(),
        clusters: described.clusters.clone(),
        ..replay::Options::default()
    };
    let replayed = replay::replay(&options).with_context(|| format!("cannot use the baseline {name}"))?;
    Ok(Snapshot::of(&replayed.findings()))
}
