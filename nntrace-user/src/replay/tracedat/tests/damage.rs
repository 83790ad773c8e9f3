//! Files that are truncated, modified or inconsistent.

use std::collections::BTreeSet;

use super::*;

/// Returns sub-buffers of two CPUs.
fn cpus(shape: &Shape) -> [Vec<Vec<u8>>; 2] {
    [0_u32, 1].map(|cpu| {
        let mut pages = Pages::new(shape);
        for page in 0..5 {
            let start = 1_000 * page + u64::from(cpu);
            pages.begin(start, (page == 3).then_some(Some(4)));
            for event in 0..10 {
                let what = if event % 2 == 0 { mark("B|1|[NN_LA_PE]x") } else { What::Idle(1, cpu) };
                pages.record(start + event * 10, &shape.data(7, &what), event == 4);
            }
        }
        pages.finish()
    })
}

/// Returns a file with some events on two CPUs, and of an instance on one, and its lines.
fn sample(shape: &Shape) -> (Vec<u8>, Vec<String>) {
    let cpus = cpus(shape);
    let file = shape.file(&[(4, b"[local] mono\0".to_vec())], &[("", &cpus), ("other", &cpus[..1])]);
    let lines = steps(&open(&file).unwrap());
    assert_eq!(lines.len(), 3 * 51);
    (file, lines)
}

/// Returns the lines of a file, or why there are none.
fn result(file: &[u8]) -> Result<Vec<String>, String> {
    Ok(steps(&open(file).map_err(|damage| damage.to_string())?))
}

/// Returns the position of a text.
fn find(file: &[u8], text: &[u8]) -> usize {
    memchr::memmem::find(file, text).unwrap()
}

#[test]
fn what_a_cut_file_has_is_kept() {
    for shape in shapes() {
        let (file, whole) = sample(&shape);
        let known: BTreeSet<_> = whole.iter().collect();
        let mut before = 0;
        for length in (0..file.len()).step_by(7) {
            match result(&file[..length]) {
                Ok(lines) => {
                    let (cuts, events): (Vec<&String>, Vec<&String>) =
                        lines.iter().partition(|line| line.starts_with("cut "));
                    assert!(!cuts.is_empty() || length + 1024 > file.len(), "{length} of {}", file.len());
                    // The number of lost events may be cut off, too.
                    let is_known = |line: &&String| {
                        known.contains(line) || line.starts_with("lost ") && line.ends_with(" None")
                    };
                    assert!(events.iter().all(is_known), "{length}: {events:?}");
                    if shape.version == 6 {
                        assert!(events.len() >= before, "{length}");
                        before = events.len();
                    }
                }
                Err(why) => assert!(why.starts_with("at byte "), "{why}"),
            }
        }
        // In version 7, the list of the data comes last.
        assert_eq!(before > whole.len() * 3 / 4, shape.version == 6, "{before}");
    }
}

#[test]
fn a_cut_is_told_with_its_place() {
    let (file, whole) = sample(&SHAPE);
    let end = file.len() - 1024 - 900;
    let lines = result(&file[..end]).unwrap();
    let cuts: Vec<_> = lines.iter().filter(|line| line.starts_with("cut ")).collect();
    let [one] = &cuts[..] else { panic!("{cuts:?}") };
    assert!(
        one.starts_with(&format!("cut CPU 0: at byte {end}: the end of the file, 1924 bytes before")),
        "{one}"
    );
    assert!(one.ends_with(", and 1 more"), "{one}");
    // Three events of the last but one sub-buffer are there.
    assert_eq!(lines.len(), whole.len() - 10 - 7 + 1);
}

#[test]
fn heads_that_allow_nothing() {
    let (file, _) = sample(&SHAPE);
    let changed = |at: usize, bytes: &[u8]| {
        let mut file = file.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        result(&file).unwrap_err()
    };
    let systems = find(&file, b"power\0") - 4;
    let cases = [
        (3, &b"tr4cing"[..], "at byte 3: `tr4cing`, where `tracing` was expected"),
        (10, b"8", "at byte 10: version `8`, where 6 or 7 was expected"),
        (12, b"\x07", "at byte 12: byte order 7, where 0 or 1 was expected"),
        (14, &[0xff; 4], "the main buffer: sub-buffers of 4294967295 bytes for CPU 0, where 512 to 16777216"),
        (18, b"footer", "at byte 18: `footer_page\\x00`, where `header_page\\x00` was expected"),
        (30, &[0xff; 8], "at byte 38: 18446744073709551615 bytes of header_page, where 134217728 at most"),
        (find(&file, b"timestamp"), b"timest0mp", "at byte 38: `\\tfield: u64 timest0mp"),
        (systems, &[0xff; 4], "bytes of a format, where 134217728 at most was expected"),
        (find(&file, b"flyrecord"), b"latency  ", "the text of a latency tracer, where events"),
        (find(&file, b"flyrecord"), b"nothing  ", "where `options`, `flyrecord` or `latency` was expected"),
    ];
    for (at, bytes, message) in cases {
        let error = changed(at, bytes);
        assert!(error.contains(message), "{error}, not {message}");
    }
    let shape = Shape { version: 7, ..SHAPE };
    let (file, _) = sample(&shape);
    let changed = |from: &[u8], to: &[u8]| {
        let mut file = file.clone();
        let at = find(&file, from);
        file[at..at + to.len()].copy_from_slice(to);
        result(&file).unwrap_err()
    };
    let error = changed(b"none\0", b"lzma");
    assert_eq!(error, "at byte 18: compression `lzma`, where `zstd`, `zlib` or `none` was expected");
    let error = changed(b"1.5\0", &[b'1', b'.', b'5', 0, 0xff, 0xff, 0xff, 0]);
    assert_eq!(error, "at byte 16777215: the end, where a section was expected");
    let file = shape.file(&[], &[("", &cpus(&shape))]);
    let error = result(&file[..file.len() - 20]).unwrap_err();
    assert!(error.starts_with("at byte 18: no list of the data of the CPUs: at byte "), "{error}");
}

#[test]
fn a_damaged_sub_buffer_costs_itself_only() {
    for shape in shapes().into_iter().filter(|shape| shape.compression == "none") {
        let (mut file, whole) = sample(&shape);
        // The third sub-buffer of the first CPU, which also occurs in the instance: only one of them is damaged.
        let start = find(&file, &shape.u64(2_000));
        let commit = start + 8..start + 8 + shape.long;
        file[commit].fill(0x0f);
        let lines = result(&file).unwrap();
        let cut = format!("cut CPU 0: at byte {start}: a sub-buffer with ");
        assert_eq!(lines.iter().filter(|line| line.starts_with(&cut)).count(), 1, "{lines:?}");
        assert_eq!(lines.len(), whole.len() - 10 + 1);
        // A record that is longer than the remaining bytes.
        let (mut file, whole) = sample(&shape);
        let start = find(&file, &shape.u64(2_000)) + 8 + shape.long;
        let records = find(&file[start..], b"B|1") + start;
        let record = records - 8 - shape.long - 4;
        file[record..record + 8].fill(0);
        let lines = result(&file).unwrap();
        let cut = "cut CPU 0: at byte ";
        let cuts: Vec<_> = lines.iter().filter(|line| line.starts_with(cut)).collect();
        assert!(cuts.len() == 1 && cuts[0].contains("a record of 0 bytes, with "), "{cuts:?}");
        assert_eq!(lines.len(), whole.len() - 10 + 1);
    }
}

#[test]
fn a_damaged_chunk_costs_itself_only() {
    for shape in shapes().into_iter().filter(|shape| shape.compression != "none") {
        let (file, whole) = sample(&shape);
        let first = find(&file, &shape.chunks(&cpus(&shape)[0]));
        let mut damaged = file.clone();
        damaged[first + 12..first + 20].fill(0xff);
        let lines = result(&damaged).unwrap();
        let cut = format!("cut CPU 0: at byte {}: a chunk cannot be unpacked: ", first + 12);
        assert!(lines.iter().any(|line| line.starts_with(&cut)), "{lines:?}");
        assert_eq!(lines.len(), whole.len() - 20 + 1);
        let mut damaged = file.clone();
        damaged[first + 8..first + 12].fill(0xff);
        let lines = result(&damaged).unwrap();
        let cut = "a chunk of 4294967295 bytes, where 16777216 at most was expected";
        assert!(lines.iter().any(|line| line.contains(cut)), "{lines:?}");
        assert_eq!(lines.len(), whole.len() - 51 + 1);
    }
}

#[test]
fn options_that_lead_back_end() {
    let shape = Shape { version: 7, ..SHAPE };
    let cpus = [events(&shape, &[(5, 7, What::Nothing)])];
    let mut file = shape.file(&[], &[("", &cpus)]);
    let first: [u8; 8] = file[27..35].try_into().unwrap();
    let end = file.len() - 8;
    file[end..].copy_from_slice(&first);
    assert_eq!(result(&file).unwrap(), [expected(0, 5, 7, &What::Nothing)]);
}

#[test]
fn data_that_is_there_once_is_read_once() {
    let cpus = vec![events(&SHAPE, &vec![(5, 7, What::Nothing); 20]); 4];
    let mut file = SHAPE.file(&[], &[("", &cpus)]);
    let table = find(&file, b"flyrecord") + 10;
    let whole = [SHAPE.u64(0), SHAPE.u64(1 << 60)].concat();
    for cpu in 0..4 {
        file[table + 16 * cpu..table + 16 * cpu + 16].copy_from_slice(&whole);
    }
    let lines = result(&file).unwrap();
    assert!(lines[0].starts_with("cut the data of some CPUs overlaps"), "{lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("cut CPU 1")), "{lines:?}");
}

#[test]
fn an_unreadable_format_leaves_the_others() {
    let (mut file, whole) = sample(&SHAPE);
    let id = find(&file, b"ID: 20\n");
    file[id] = b'i';
    let lines = result(&file).unwrap();
    assert!(
        lines[0].starts_with("cut at byte ") && lines[0].contains("where the format of an event"),
        "{lines:?}"
    );
    assert_eq!(lines.len(), whole.len() + 1);
    assert_eq!(lines.iter().filter(|line| line.ends_with(" unknown: ")).count(), 75);
}

proptest! {
    #[test]
    fn changed_bytes_never_panic(
        shape in shape(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        near in any::<prop::sample::Index>(),
        is_near in any::<bool>(),
    ) {
        let shape = Shape { page_size: 1024, ..shape };
        let (mut file, _) = sample(&shape);
        let start = near.index(file.len());
        for (at, byte) in changes {
            let at = if is_near { (start + at.index(32)).min(file.len() - 1) } else { at.index(file.len()) };
            file[at] = byte;
        }
        if let Ok(lines) = result(&file) {
            prop_assert!(lines.len() < 20_000);
        }
    }

    #[test]
    fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..2000), version in 6..8_u8) {
        let head = [&[0x17, 0x08, 0x44][..], b"tracing", &[b'0' + version, 0]].concat();
        let _ = result(&[head, noise].concat());
    }
}
