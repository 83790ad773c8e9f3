use std::collections::BTreeMap;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::*;

/// Limit that no archive here reaches.
const AMPLE: u64 = 1 << 30;
/// Type of a plain file.
const PLAIN: u8 = b'0';

/// Entry of an archive, as it is made up.
#[derive(Clone)]
struct Made {
    name: Vec<u8>,
    kind: u8,
    content: Vec<u8>,
    /// Size in the header.
    size: u64,
}

fn made(name: &str, content: &[u8]) -> Made {
    Made { name: name.into(), kind: PLAIN, content: content.into(), size: content.len() as u64 }
}

/// Makes the bytes of an entry by hand: a library would refuse most of these names.
fn raw(Made { name, kind, content, size }: &Made) -> Vec<u8> {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name);
    header[100..108].copy_from_slice(b"0000644\0");
    header[108..116].copy_from_slice(b"0000000\0");
    header[116..124].copy_from_slice(b"0000000\0");
    header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    header[136..148].copy_from_slice(b"00000000000\0");
    header[148..156].fill(b' ');
    header[156] = *kind;
    if matches!(kind, b'1' | b'2') {
        header[157..168].copy_from_slice(b"/etc/passwd");
    }
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let padding = content.len().next_multiple_of(512) - content.len();
    [&header[..], content, &vec![0; padding]].concat()
}

fn list(entries: &[Made]) -> Value {
    let entries = entries.iter().map(|Made { name, content, .. }| {
        let name = String::from_utf8_lossy(name);
        json!({"name": name, "size": content.len(), "sha256": format!("{:x}", Sha256::digest(content))})
    });
    json!({"kind": KIND, "version": VERSION, "tool": "0", "entries": entries.collect::<Vec<_>>()})
}

fn compressed(archive: &[u8]) -> Vec<u8> {
    compress_to_vec(archive, CompressionLevel::Fastest)
}

/// Makes an archive with this list of contents; its compressed form is a pack.
fn archive(list: &Value, entries: &[Made]) -> Vec<u8> {
    let first = made(CONTENTS, list.to_string().as_bytes());
    let mut bytes: Vec<u8> = std::iter::once(&first).chain(entries).flat_map(raw).collect();
    bytes.extend([0; 1024]);
    bytes
}

fn pack_of(list: &Value, entries: &[Made]) -> Vec<u8> {
    compressed(&archive(list, entries))
}

/// Returns the entries of an intact pack.
fn intact() -> Vec<Made> {
    vec![
        made("recording/run.nnt", b"a run"),
        made("recording/files.json", b"{}"),
        made("replay_file_map.json", b"[]"),
        made("files/0_app", &[7; 700]),
        made("files/1_lib.so", b""),
    ]
}

/// Folder with a pack in it.
struct Place(TempDir);

impl Place {
    fn with(pack: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("x.nnpack"), pack).unwrap();
        Self(folder)
    }

    fn unpack(&self, max_size: u64) -> Result<Unpacked, UnpackError> {
        unpack(&self.0.path().join("x.nnpack"), &self.0.path().join("out"), max_size)
    }

    /// Returns the reason for which the pack is not unpacked, after a check that nothing is left of it.
    fn refusal(&self, case: &str) -> UnpackError {
        let error = self.unpack(AMPLE).expect_err(case);
        let left: Vec<_> = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["x.nnpack"], "{case}: {error}");
        error
    }
}

fn refused(pack: &[u8], case: &str, reason: &str) {
    let error = Place::with(pack).refusal(case);
    assert!(matches!(error, UnpackError::Refused { .. }), "{case}: {error:?}");
    assert!(error.to_string().contains(reason), "{case}: {error}");
}

/// Returns all files below a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            found.extend(
                files(&path).into_iter().map(|(inner, content)| (format!("{name}/{inner}"), content)),
            );
        } else {
            found.insert(name, fs::read(&path).unwrap());
        }
    }
    found
}

fn expected() -> BTreeMap<String, Vec<u8>> {
    let place = |name: &[u8]| String::from_utf8_lossy(name).trim_start_matches(RECORDING).to_owned();
    intact().into_iter().map(|entry| (place(&entry.name), entry.content)).collect()
}

#[test]
fn an_intact_pack_is_unpacked() {
    let place = Place::with(&pack_of(&list(&intact()), &intact()));
    assert_eq!(place.unpack(709).unwrap(), Unpacked { files: 2, bytes: 709 });
    assert_eq!(files(&place.0.path().join("out")), expected());
}

#[test]
fn an_empty_folder_stays_the_same_one() {
    use std::os::unix::fs::MetadataExt as _;
    let place = Place::with(&pack_of(&list(&intact()), &intact()));
    let out = place.0.path().join("out");
    fs::create_dir(&out).unwrap();
    let number = fs::metadata(&out).unwrap().ino();
    place.unpack(AMPLE).unwrap();
    assert_eq!(fs::metadata(&out).unwrap().ino(), number);
    assert_eq!(files(&out), expected());
    // It is not empty any more.
    assert!(matches!(place.unpack(AMPLE), Err(UnpackError::Exists(_))));
    assert_eq!(files(&out), expected());
}

#[test]
fn a_refused_pack_leaves_an_empty_folder_empty() {
    let mut entries = intact();
    let contents = list(&entries);
    entries[3].content[0] = 8;
    let place = Place::with(&pack_of(&contents, &entries));
    let out = place.0.path().join("out");
    fs::create_dir(&out).unwrap();
    assert!(place.unpack(AMPLE).is_err());
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
}

#[test]
fn files_and_dangling_links_are_no_folders_to_unpack_to() {
    let place = Place::with(&pack_of(&list(&intact()), &intact()));
    let out = place.0.path().join("out");
    fs::write(&out, "mine").unwrap();
    assert!(matches!(place.unpack(AMPLE), Err(UnpackError::Exists(_))));
    fs::remove_file(&out).unwrap();
    std::os::unix::fs::symlink("/nowhere", &out).unwrap();
    assert!(matches!(place.unpack(AMPLE), Err(UnpackError::Exists(_))));
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for name in [
        "/etc/cron.d/evil",
        "../evil",
        "files/../../evil",
        "recording/../../evil.nnt",
        "files/..",
        "files/.",
        "files/",
        "files/a/b",
        "evil",
        "./files/a",
        "files//a",
        "files/a\nb",
        "files/\u{1b}[2Ja",
        "recording/evil.sh",
        "",
    ] {
        let entries = [intact(), vec![made(name, b"evil")]].concat();
        refused(&pack_of(&list(&entries), &entries), name, "is no name that a pack has");
        // Where the list has a good name instead.
        let listed = [intact(), vec![made("files/2_a", b"evil")]].concat();
        refused(&pack_of(&list(&listed), &entries), name, "is where its contents.json has \"files/2_a\"");
    }
    let not_text = Made { name: b"files/\xff".into(), ..made("", b"evil") };
    let listed = [intact(), vec![made("files/\u{fffd}", b"evil")]].concat();
    refused(&pack_of(&list(&listed), &[intact(), vec![not_text]].concat()), "bytes", "is no text");
}

#[test]
fn what_is_no_plain_file_is_refused() {
    for (kind, word) in [
        (b'1', "link"),
        (b'2', "link"),
        (b'3', "device"),
        (b'4', "device"),
        (b'5', "folder"),
        (b'6', "pipe"),
        (b'7', "no plain file"),
        (b'L', "no plain file"),
        (b'x', "no plain file"),
        (b'g', "no plain file"),
        (b'S', "no plain file"),
        (b'?', "no plain file"),
    ] {
        let mut entries = intact();
        entries[4].kind = kind;
        refused(&pack_of(&list(&entries), &entries), &char::from(kind).to_string(), word);
    }
}

#[test]
fn a_name_is_there_once() {
    let again = made("files/1_lib.so", b"other");
    let entries = [intact(), vec![again]].concat();
    refused(&pack_of(&list(&entries), &entries), "listed", "is twice");
    refused(&pack_of(&list(&intact()), &entries), "not listed", "is not in its contents.json");
}

#[test]
fn entries_are_those_of_the_list() {
    let contents = list(&intact());
    let changed = |change: fn(&mut Vec<Made>)| {
        let mut entries = intact();
        change(&mut entries);
        pack_of(&contents, &entries)
    };
    refused(&changed(|entries| entries[3].content[0] = 1), "content", "is not the one of its contents.json");
    refused(&changed(|entries| entries.swap(3, 4)), "order", "is where its contents.json has");
    refused(&changed(|entries| entries[4] = made("files/1_lib.so", b"x")), "size", "has 1 bytes, and 0");
    refused(&changed(|entries| drop(entries.pop())), "missing", "it ends before");
    refused(&changed(|entries| entries[3].size = 600), "size in the header", "has 600 bytes, and 700");
}

#[test]
fn a_pack_has_a_run() {
    let entries = intact().split_off(1);
    refused(&pack_of(&list(&entries), &entries), "no run", "it has no recording/run.nnt");
}

#[test]
fn nothing_is_hidden_between_entries_or_behind_the_end() {
    let whole = archive(&list(&intact()), &intact());
    let last = whole.len() - 1;
    refused(&compressed(&[&whole[..], &[0]].concat()), "a zero more", "more bytes");
    refused(&[&compressed(&whole)[..], &compressed(b"more")].concat(), "a frame more", "more bytes");
    refused(&[&compressed(&whole)[..], b"more"].concat(), "bytes behind", "damaged");
    refused(&compressed(&whole[..last]), "a zero less", "is cut");
    refused(&compressed(&whole[..whole.len() - 512]), "a block less", "is cut");
    let mut hidden = whole.clone();
    hidden[last] = 1;
    refused(&compressed(&hidden), "in the end", "follows its end");
    let end_of_content = whole.iter().rposition(|byte| *byte == 7).unwrap();
    let mut hidden = whole;
    hidden[end_of_content + 1] = 1;
    refused(&compressed(&hidden), "in the padding", "behind the content");
}

#[test]
fn a_newer_pack_says_what_reads_it() {
    let mut contents = list(&intact());
    contents["version"] = json!(7);
    contents["entries"] = json!("of another form");
    let error = Place::with(&pack_of(&contents, &intact())).refusal("newer");
    assert!(matches!(error, UnpackError::Newer { version: 7, .. }), "{error:?}");
    assert!(error.to_string().contains("newer"), "{error}");
}

#[test]
fn other_files_are_no_packs() {
    let mut other = list(&intact());
    other["kind"] = json!("something else");
    let texts = [
        ("empty", Vec::new()),
        ("text", b"not a pack".to_vec()),
        ("other program", pack_of(&other, &intact())),
        ("no list", pack_of(&json!([]), &intact())),
        ("other archive", compressed(&[raw(&made("a.txt", b"x")), vec![0; 1024]].concat())),
    ];
    for (case, bytes) in texts {
        let error = Place::with(&bytes).refusal(case);
        assert!(matches!(error, UnpackError::NoPack { .. }), "{case}: {error:?}");
    }
}

#[test]
fn a_pack_that_is_too_large_is_refused_before_it_is_unpacked() {
    let place = Place::with(&pack_of(&list(&intact()), &intact()));
    let error = place.unpack(708).unwrap_err();
    assert!(matches!(error, UnpackError::TooLarge { size: 709, limit: 708, .. }), "{error:?}");
    let mut contents = list(&intact());
    for size in [AMPLE + 1, u64::MAX] {
        contents["entries"][3]["size"] = json!(size);
        contents["entries"][4]["size"] = json!(size);
        let error = Place::with(&pack_of(&contents, &intact())).refusal("bomb");
        assert!(matches!(error, UnpackError::TooLarge { .. }), "{error:?}");
    }
}

#[test]
fn bytes_are_counted_while_they_are_unpacked() {
    // A gigabyte of zeros is some kilobytes.
    let zeros = vec![0; 64 << 20];
    let frame = compressed(&zeros);
    let bomb = [compressed(&archive(&list(&intact()), &intact())), frame.repeat(16)].concat();
    assert!(bomb.len() < 1 << 20);
    refused(&bomb, "behind the end", "more bytes");
    let large = Made { size: 1 << 32, ..made(CONTENTS, b"") };
    refused(&[compressed(&raw(&large)), frame.repeat(16)].concat(), "list", "has 4294967296 bytes");
}

#[test]
fn a_window_that_takes_much_memory_is_refused() {
    // A frame with a window of 1 GiB and one empty block.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 20 << 3, 0x01, 0x00, 0x00];
    refused(&frame, "window", "damaged");
}

#[test]
fn whatever_is_cut_is_refused() {
    let whole = pack_of(&list(&intact()), &intact());
    for length in 0..whole.len() {
        Place::with(&whole[..length]).refusal(&format!("{length} bytes"));
    }
}

#[test]
fn whatever_is_changed_is_refused_or_makes_no_difference() {
    let whole = pack_of(&list(&intact()), &intact());
    let mut harmless = 0;
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        let place = Place::with(&bytes);
        if place.unpack(AMPLE).is_ok() {
            assert_eq!(files(&place.0.path().join("out")), expected(), "byte {at}");
            harmless += 1;
        } else {
            place.refusal(&format!("byte {at}"));
        }
    }
    // Such as the size of a window, or which one of some zeros is copied.
    assert!(harmless < whole.len() / 20, "{harmless} of {}", whole.len());
}
