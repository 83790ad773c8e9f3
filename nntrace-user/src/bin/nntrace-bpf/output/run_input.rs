//! A run that is compared: a snapshot in JSON, a recording, or a trace.

use std::{
    cell::Cell,
    io::{self, BufReader, Read},
    path::Path,
};

use anyhow::{Context as _, Error, Result, bail};
use nntrace_user::{
    caller, record, replay,
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
    let file = caller::open(path).map_err(|reason| cannot_open(path, reason))?;
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

/// Returns the error of a file or a folder that cannot be opened, with what to do.
pub fn cannot_open(path: &Path, reason: io::Error) -> Error {
    let text = format!("cannot open {}: {reason}; check the path and its permissions", path.display());
    Error::new(reason).context(text)
}

/// Form of a snapshot and its version.
#[derive(Deserialize)]
struct Form {
    schema: String,
    version: u32,
}

/// Bytes of one snapshot at most.
const LARGEST_SNAPSHOT: u64 = 256 << 20;

/// Reader that ends with an error where no snapshot ends for too long.
struct Bounded<'a, R> {
    reader: R,
    /// Bytes that may come before the end of a snapshot.
    left: &'a Cell<u64>,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(bytes)?;
        let left = self.left.get().checked_sub(read as u64).ok_or_else(|| {
            let most = LARGEST_SNAPSHOT >> 20;
            io::Error::other(format!("a snapshot in it is larger than {most} MiB, which none is"))
        })?;
        self.left.set(left);
        Ok(read)
    }
}

fn last_snapshot(path: &Path, reader: impl Read) -> Result<Snapshot> {
    let name = path.display();
    let left = Cell::new(LARGEST_SNAPSHOT);
    let reader = Bounded { reader, left: &left };
    let snapshots = serde_json::Deserializer::from_reader(reader).into_iter::<Snapshot>();
    let last = snapshots.inspect(|_| left.set(LARGEST_SNAPSHOT)).last();
    let error = match last {
        Some(Ok(snapshot)) if snapshot.schema == SCHEMA && snapshot.version == VERSION => {
            return Ok(snapshot);
        }
        Some(Err(error)) => format!(": {error}"),
        _ => String::new(),
    };
    // Another version may have other keys: its number is looked for when it cannot be read.
    let file = BufReader::new(
        caller::open(path).with_context(|| format!("cannot open {name}"))?.take(LARGEST_SNAPSHOT),
    );
    match serde_json::Deserializer::from_reader(file).into_iter::<Form>().next() {
        Some(Ok(Form { schema, version })) if schema == SCHEMA && version != VERSION => bail!(
            "{name} is a snapshot of version {version}, and this program reads version {VERSION}: take the nntrace-bpf that \
             wrote it, or make it again"
        ),
        _ => bail!("{name} is JSON, but no snapshot of --json{error}"),
    }
}
