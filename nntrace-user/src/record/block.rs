//! Blocks as they are stored: header and content, compressed where that makes it smaller.

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::{
    error::RecordError,
    facts::Checkpoint,
    format::{BlockHeader, Content},
};

/// Returns the bytes of a block. Sizes and checksum of the header are filled in.
pub(super) fn stored(header: &BlockHeader, content: &[u8]) -> Vec<u8> {
    let compressed = compress_to_vec(content, CompressionLevel::Fastest);
    let is_compressed = compressed.len() < content.len();
    let stored = if is_compressed { &compressed } else { content };
    let header = BlockHeader {
        is_compressed,
        stored: stored.len() as u32,
        plain: content.len() as u32,
        checksum: crc32fast::hash(stored),
        ..*header
    };
    [&header.bytes()[..], stored].concat()
}

/// Returns the bytes of the block of a state after the event of this number.
///
/// # Errors
/// When the state has no form in JSON, or is longer than a block may be.
pub(super) fn stored_state(number: u64, state: &Checkpoint) -> Result<Vec<u8>, RecordError> {
    let content = serde_json::to_vec(state).map_err(|error| RecordError::Failed(error.to_string()))?;
    let (length, longest) = (content.len(), Content::Checkpoint.longest() as usize);
    if length > longest {
        return Err(RecordError::Failed(format!(
            "the state of the run takes {length} bytes, more than the {longest} of a block: use smaller tables with --memory"
        )));
    }
    let header = BlockHeader {
        content: Content::Checkpoint,
        is_compressed: false,
        stored: 0,
        plain: 0,
        events: 0,
        first: number,
        last: number,
        first_time: state.window.end_ns,
        last_time: state.window.end_ns,
        checksum: 0,
    };
    Ok(stored(&header, &content))
}
