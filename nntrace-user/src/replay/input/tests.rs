use std::{fmt::Write as _, io::Write};

use flate2::{
    Compression,
    write::{GzEncoder, ZlibEncoder},
};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

/// Generates some hundred kilobytes that do not compress too well.
fn text() -> Vec<u8> {
    let mut seed = 1_u32;
    let mut text = String::new();
    for line in 0..9_000 {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        writeln!(text, " task-{} [00{}] ...1 {line}.{seed}: 0: E|{}", seed >> 12, line % 8, seed >> 3)
            .unwrap();
    }
    text.into_bytes()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    compress_to_vec(text, CompressionLevel::Fastest)
}

fn opened(bytes: &[u8]) -> Result<Input, InputError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    Input::open(file.path())
}

fn input(bytes: &[u8]) -> Input {
    opened(bytes).unwrap()
}

fn all(input: &Input) -> Vec<u8> {
    let mut bytes = Vec::new();
    input.reader().read_to_end(&mut bytes).unwrap();
    bytes
}

/// Reads an input to its error, and returns the text before it, and the error.
fn until_error(input: &Input) -> (Vec<u8>, InputError) {
    let mut bytes = Vec::new();
    let error = input.reader().read_to_end(&mut bytes).unwrap_err();
    (bytes, *error.into_inner().unwrap().downcast().unwrap())
}

#[test]
fn packed_files_are_known_by_their_bytes() {
    let text = text();
    let (first, second) = text.split_at(100_000);
    let skipped = [&[0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let atrace = |line: &str| [b"capturing trace... done\n", line.as_bytes(), &zlib(&text)].concat();
    let packed = [
        text.clone(),
        gzip(&text),
        [gzip(first), gzip(second)].concat(),
        zstd(&text),
        [skipped.clone(), zstd(first), skipped.clone(), zstd(&[]), zstd(second), skipped].concat(),
        atrace("TRACE:\n"),
        atrace("TRACE:\r\n"),
        gzip(&atrace("TRACE:\n")),
        zlib(&text),
        gzip(&gzip(&text)),
        zstd(&gzip(&zlib(&text))),
    ];
    for (case, bytes) in packed.iter().enumerate() {
        let input = input(bytes);
        assert_eq!(input.head(), &text[..HEAD as usize], "case {case}");
        for time in 0..2 {
            assert!(all(&input) == text, "case {case}, time {time}");
        }
    }
}

#[test]
fn packings_in_packings_have_an_end() {
    let mut bytes = b"hello".to_vec();
    for _ in 0..MOST_PACKINGS {
        bytes = gzip(&bytes);
    }
    assert_eq!(all(&input(&bytes)), b"hello");
    let error = opened(&gzip(&bytes)).unwrap_err().to_string();
    assert!(error.contains(&format!("is packed more than {MOST_PACKINGS} times")), "{error}");
}

#[test]
fn a_text_may_begin_like_a_stream_of_zlib() {
    let text = b"x^a-1 [000] 1.5: print: x\n";
    assert_eq!(all(&input(text)), text);
}

#[test]
fn advice_on_line_ends_is_for_texts() {
    assert!(input(b"a\rb").encoding().is_some());
    for bytes in [&b"a\r\nb"[..], b"a\rb\x01", b"ab"] {
        assert_eq!(input(bytes).encoding(), None, "{}", bytes.escape_ascii());
    }
}

#[test]
fn text_in_json_may_be_that_of_another_tracer() {
    let json = br#"{"systemTraceEvents": "CPU:0 [LOST 9 EVENTS]\n 0)   0.667 us    |  f();\n"}"#;
    let error = opened(json).unwrap_err().to_string();
    assert!(error.contains("is the text of the function_graph tracer"), "{error}");
}

#[test]
fn text_of_atrace_is_text() {
    let text = b"TRACE:\n# tracer: nop\n";
    assert_eq!(all(&input(text)), text);
    assert_eq!(input(&gzip(text)).head(), text);
    let text = b"TRACE:\nxterm-5 [000] 1.5: print: x\n";
    assert_eq!(all(&input(text)), text);
}

#[test]
fn small_files() {
    for text in [&b""[..], b"\x1f", b"x", b"TRACE:", b"TRACE:\nx"] {
        assert_eq!(all(&input(text)), text);
        assert_eq!(all(&input(&gzip(text))), text);
        assert_eq!(all(&input(&zstd(text))), text);
    }
}

#[test]
fn damage_is_told_after_what_came_before() {
    let text = text();
    let atrace = [b"TRACE:\n".to_vec(), zlib(&text)].concat();
    for (case, whole) in [gzip(&text), zstd(&text), atrace].into_iter().enumerate() {
        let half = whole.len() / 2;
        let mut changed = whole.clone();
        changed[half..half + 64].fill(0xff);
        for bytes in [&whole[..half], &whole[..whole.len() - 1], &changed] {
            let (read, error) = until_error(&input(bytes));
            let InputError::Damaged { decoded, .. } = error else { panic!("case {case}: {error}") };
            assert_eq!(decoded, read.len() as u64, "case {case}");
            assert!(read.len() > text.len() / 5, "case {case}: {} of {}", read.len(), text.len());
        }
        assert!(text.starts_with(&until_error(&input(&whole[..half])).0), "case {case}");
    }
    let damaged = input(&[0x1f, 0x8b, 0xff, 0xff]);
    assert_eq!(damaged.head(), b"");
    assert!(until_error(&damaged).1.to_string().contains("damaged after 0 bytes of text"));
}

#[test]
fn readers_do_not_disturb_each_other() {
    let input = input(b"abcdef");
    let (mut one, mut other) = (input.reader(), input.reader());
    let mut bytes = [0; 4];
    one.read_exact(&mut bytes).unwrap();
    other.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"abcd");
}

#[test]
fn pipes_are_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let writer = std::thread::spawn({
        let path = path.clone();
        move || std::fs::write(path, gzip(b"hello")).unwrap()
    });
    let input = Input::open(&path).unwrap();
    writer.join().unwrap();
    assert_eq!((all(&input), all(&input)), (b"hello".to_vec(), b"hello".to_vec()));
    // The kernel's own files, too.
    assert!(all(&Input::open(Path::new("/proc/self/status")).unwrap()).starts_with(b"Name:"));
}

#[test]
fn what_cannot_be_opened_is_named() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(Input::open(folder.path()), Err(InputError::Directory(_))));
    let error = Input::open(&folder.path().join("none")).unwrap_err().to_string();
    assert!(error.starts_with("cannot open /") && error.contains("none: No such file"), "{error}");
}
