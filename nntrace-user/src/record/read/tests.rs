//! Files with damage of every kind.

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tempfile::TempDir;

use super::*;

/// Returns a block of events with numbers from `first` to `last`.
fn block(first: u64, last: u64, content: &[u8]) -> Vec<u8> {
    sealed(header(first, last, content), content)
}

fn header(first: u64, last: u64, content: &[u8]) -> BlockHeader {
    BlockHeader {
        content: Content::Events,
        is_compressed: false,
        stored: content.len() as u32,
        plain: content.len() as u32,
        events: 1,
        first,
        last,
        first_time: 0,
        last_time: 0,
        checksum: crc32fast::hash(content),
    }
}

fn sealed(header: BlockHeader, stored: &[u8]) -> Vec<u8> {
    [&header.bytes()[..], stored].concat()
}

/// Writes a recording whose stream of CPU 0 has these blocks.
fn recording(blocks: &[Vec<u8>]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, RUN_FILE, &[&FileHeader::new(Stream::Run, 7).bytes()]);
    let header = FileHeader::new(Stream::Cpu(0), 7).bytes();
    write(&folder, "cpu0.nnt", &[&header, &blocks.concat()]);
    folder
}

fn write(folder: &TempDir, name: &str, parts: &[&[u8]]) {
    fs::write(folder.path().join(name), parts.concat()).unwrap();
}

/// Returns the numbers of the blocks that are found, and of the damaged places.
fn scan(folder: &TempDir) -> (Vec<u64>, Vec<(u64, HoleKind)>) {
    let files = Files::open(folder.path()).unwrap();
    let blocks = files.blocks.iter().map(|block| block.header.first).collect();
    (blocks, files.holes.iter().map(|hole| (hole.after, hole.kind)).collect())
}

#[test]
fn a_damaged_header_costs_its_block() {
    let mut blocks = [block(1, 2, b"NNB\n"), block(3, 4, b"bb"), block(5, 6, b"c")];
    blocks[1][30] ^= 1;
    assert_eq!(scan(&recording(&blocks)), (vec![1, 5], vec![(2, HoleKind::Header)]));
}

#[test]
fn a_damaged_content_costs_its_block() {
    let mut blocks = [block(1, 2, b"aaaa"), block(3, 4, b"bb")];
    blocks[0][BLOCK_HEADER] ^= 1;
    let folder = recording(&blocks);
    let files = Files::open(folder.path()).unwrap();
    let contents: Vec<_> = files.blocks.iter().map(|block| files.content(block)).collect();
    assert!(contents[0].as_ref().is_err_and(|error| error.contains("its checksum is wrong")), "{contents:?}");
    assert_eq!(contents[1].as_deref(), Ok(&b"bb"[..]));
}

#[test]
fn a_file_may_end_anywhere() {
    let whole = [block(1, 2, b"aaaa"), block(3, 4, b"bb")].concat();
    for end in 0..whole.len() {
        let (blocks, holes) = scan(&recording(&[whole[..end].to_vec()]));
        let first = BLOCK_HEADER + 4;
        assert_eq!(blocks.len(), usize::from(end >= first), "{end}");
        assert_eq!(holes.is_empty(), end == 0 || end == first, "{end}");
    }
}

#[test]
fn numbers_that_do_not_go_up_are_damage() {
    let blocks = [block(3, 4, b"a"), block(2, 5, b"b"), block(4, 4, b"c"), block(5, 5, b"d")];
    assert_eq!(scan(&recording(&blocks)), (vec![3, 5], vec![(4, HoleKind::Header)]));
}

#[test]
fn blocks_of_later_versions_are_passed_over() {
    let later = BlockHeader { content: Content::Other(9), last: 2, ..header(2, 2, b"later") };
    let blocks = [block(1, 2, b"a"), sealed(later, b"later"), block(3, 3, b"b")];
    assert_eq!(scan(&recording(&blocks)), (vec![1, 3], vec![]));
}

#[test]
fn content_is_as_long_as_its_header_has_it() {
    let content = [7; 1_000];
    let compressed = compress_to_vec(&content[..], CompressionLevel::Fastest);
    for (plain, is_right) in [(1_000, true), (999, false), (1_001, false), (16 << 20, false)] {
        let stored = compressed.len() as u32;
        let checksum = crc32fast::hash(&compressed);
        let header =
            BlockHeader { is_compressed: true, stored, plain, checksum, ..header(1, 1, &compressed) };
        let folder = recording(&[sealed(header, &compressed)]);
        let files = Files::open(folder.path()).unwrap();
        let read = files.content(&files.blocks[0]);
        assert_eq!(read.is_ok_and(|read| read == content), is_right, "{plain}");
    }
}

#[test]
fn files_of_other_recordings_are_refused() {
    let folder = recording(&[]);
    write(&folder, "cpu1.nnt", &[&FileHeader::new(Stream::Cpu(1), 8).bytes()]);
    let error = Files::open(folder.path()).unwrap_err().to_string();
    assert!(
        error.ends_with("cpu1.nnt: it is of another recording than the files before it: remove it"),
        "{error}"
    );
}

#[test]
fn what_is_no_file_of_a_recording_is_ignored() {
    let folder = recording(&[block(1, 1, b"a")]);
    write(&folder, "notes.txt", &[b"NNTREC"]);
    fs::create_dir(folder.path().join("folder.nnt")).unwrap();
    assert_eq!(scan(&folder), (vec![1], vec![]));
}
