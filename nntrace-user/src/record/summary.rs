//! Facts about a recording without its events: its run, its files, and whether they are whole.

use std::{collections::BTreeMap, path::Path};

use serde::Serialize;

use super::{
    RunDescription,
    contents::Contents,
    decode::EventReader,
    early,
    error::ReadError,
    file_identity::FileIdentity,
    format::{BlockHeader, Content},
    read::{Block, Files},
};
use crate::model::{
    plurals::counted,
    rails::Rails,
    run_facts::{Host, Loss, Source, Window},
    topology::ClusterDescription,
};

/// Facts about a recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Folder of the recording.
    pub recording: String,
    /// Description of the run.
    pub run: RunDescription,
    /// Whether it was ended: everything is in it.
    pub is_ended: bool,
    /// Begin, ns since 1970.
    pub began_ns: u64,
    /// Window of the run, or of what is kept of it.
    pub window: Window,
    /// Notes on which part of the run is kept, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub part: Vec<String>,
    /// Host.
    pub host: Host,
    /// Clusters of CPUs; empty where power events are not recorded.
    pub clusters: Vec<ClusterDescription>,
    /// CPUs whose frequency is changed together.
    pub policies: Vec<Vec<u32>>,
    /// Source of the marks, with engines.
    pub source: Source,
    /// Files that were probed.
    pub probed: Vec<FileIdentity>,
    /// Names of processes.
    pub processes: BTreeMap<u32, String>,
    /// Losses of the run.
    pub loss: Loss,
    /// Measured energy of the host's power rails; null where it was not looked for.
    pub rails: Option<Rails>,
    /// Number of files.
    pub files: usize,
    /// Bytes of the files.
    pub bytes: u64,
    /// Events that the last state covers, of those that are kept.
    pub events: u64,
    /// Events in whole blocks that it covers.
    pub events_found: u64,
    /// Streams, in the order of their files.
    pub streams: Vec<StreamSummary>,
    /// Whether the contents of all blocks were checked.
    pub is_checked: bool,
    /// Texts on what is damaged.
    pub damage: Vec<String>,
}

/// Blocks of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamSummary {
    /// Name of the file without its ending: of a thread, its name by ancestry.
    pub name: String,
    /// Blocks of events.
    pub blocks: u64,
    /// Events.
    pub events: u64,
    /// Bytes of the events before compression.
    pub plain_bytes: u64,
    /// Bytes of the events in the file.
    pub stored_bytes: u64,
    /// States of the run.
    pub checkpoints: u64,
    /// Bytes of these.
    pub checkpoint_bytes: u64,
}

impl Summary {
    /// Reads the facts about a recording. With `check`, the contents of all blocks are read.
    ///
    /// # Errors
    /// When nothing is known of its run.
    pub fn read(folder: &Path, check: bool) -> Result<Self, ReadError> {
        let files = Files::open(folder)?;
        let (until, state, mut damage) = files.state()?;
        if check {
            damage.extend(damaged_contents(&files));
        }
        let (number, bytes) = files.size();
        let topology = state.host_at_begin.as_ref().map(|host| &host.topology);
        Ok(Self {
            recording: folder.display().to_string(),
            is_ended: state.is_last,
            began_ns: state.run.clocks.realtime_ns,
            window: early::window(&state),
            part: early::notes(&state),
            host: state.host.clone(),
            clusters: topology.map(|topology| topology.clusters.clone()).unwrap_or_default(),
            policies: topology.map(|topology| topology.policies.clone()).unwrap_or_default(),
            source: state.source.clone(),
            probed: state.probed.clone(),
            processes: state.processes.clone(),
            rails: state.rails.clone(),
            loss: state.loss.clone(),
            files: number,
            bytes,
            events: state.count_to(until),
            events_found: files.events_within(state.first_event(), until),
            streams: streams(&files),
            is_checked: check,
            damage,
            run: state.run,
        })
    }

    /// Whether everything that was looked at is whole.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.damage.is_empty() && self.events_found >= self.events
    }
}

/// Returns the sums of the blocks of each file.
fn streams(files: &Files) -> Vec<StreamSummary> {
    let mut streams: BTreeMap<String, StreamSummary> = BTreeMap::new();
    for block in files.all_blocks() {
        let name = files.name(block);
        let stream = streams.entry(name).or_default();
        let (plain, stored) = (u64::from(block.header.plain), u64::from(block.header.stored));
        match block.header.content {
            Content::Events => {
                stream.blocks += 1;
                stream.events += u64::from(block.header.events);
                stream.plain_bytes += plain;
                stream.stored_bytes += stored;
            }
            // Of a later minor version.
            Content::Other(_) => stream.blocks += 1,
            Content::Checkpoint => {
                stream.checkpoints += 1;
                stream.checkpoint_bytes += stored;
            }
        }
    }
    streams.into_iter().map(|(name, stream)| StreamSummary { name, ..stream }).collect()
}

/// Returns texts on blocks whose content is damaged.
fn damaged_contents(files: &Files) -> Vec<String> {
    let blocks: Vec<Block> = files.all_blocks().copied().collect();
    let mut contents = Contents::read(files, blocks.clone());
    let mut damage = Vec::new();
    for block in &blocks {
        let whole = contents.next().and_then(|content| match block.header.content {
            Content::Events => {
                events(content, block).map_err(|reason| format!("{}: {reason}", files.name(block)))
            }
            Content::Checkpoint | Content::Other(_) => Ok(()),
        });
        damage.extend(whole.err());
    }
    damage
}

/// Reads all events of a block.
fn events(content: Vec<u8>, block: &Block) -> Result<(), String> {
    let BlockHeader { first, last, events: expected, .. } = block.header;
    let mut reader = EventReader::new(content, first);
    let mut events = 0;
    while reader.next().map_err(|unreadable| unreadable.to_string())?.is_some() {
        events += 1;
    }
    if events != expected {
        return Err(format!("a block has {}, not {expected}", counted(events.into(), "event")));
    }
    if reader.number() != last {
        let number = reader.number();
        return Err(format!("a block ends with event {number}, and its header says {last}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::record::{
        format::{BLOCK_HEADER, FILE_HEADER},
        made_up::{recorded, span},
    };

    #[test]
    fn a_wrong_last_number_is_damage_and_loses_nothing() {
        let folder = recorded(&[span(7, 1, 5, 0, 1), span(7, 9, 5, 0, 1)], &[]);
        let folder = folder.path().join("run");
        let whole = Summary::read(&folder, true).unwrap();
        assert!(whole.is_whole() && whole.events_found == whole.events, "{whole:?}");

        let threads = folder.join("threads.nnt");
        let mut bytes = fs::read(&threads).unwrap();
        let header: &mut [u8; BLOCK_HEADER] = bytes[FILE_HEADER..].first_chunk_mut().unwrap();
        let read = BlockHeader::read(header).unwrap();
        *header = BlockHeader { last: u64::MAX, ..read }.bytes();
        fs::write(&threads, bytes).unwrap();
        let checked = Summary::read(&folder, true).unwrap();
        assert_eq!(checked.events_found, checked.events);
        let (last, wrong) = (read.last, u64::MAX);
        let text = format!("threads: a block ends with event {last}, and its header says {wrong}");
        assert_eq!(checked.damage, [text]);
        assert!(!checked.is_whole());
    }
}
