//! Kind of a file by its content: models of the known engines, and code.
//!
//! A format without a mark of its own is recognized by the extension of its name, with the file beside it that it belongs to.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _},
    path::Path,
};

use object::{Object as _, ReadCache};
use serde::Serialize;

/// Bytes that are examined for the kind.
const HEAD: u64 = 4096;

/// First line of a network of ncnn.
const NCNN: &[u8] = b"7767517";

/// Kind of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(in crate::record) enum ImageKind {
    /// Program, library or object file.
    #[serde(rename = "elf")]
    Elf,
    /// Model of TensorFlow Lite.
    #[serde(rename = "tflite")]
    TfLite,
    /// Model of ONNX.
    #[serde(rename = "onnx")]
    Onnx,
    /// Model of llama.cpp and ggml.
    #[serde(rename = "gguf")]
    Gguf,
    /// Network of ncnn.
    #[serde(rename = "ncnn-param")]
    NcnnParam,
    /// Weights of ncnn.
    #[serde(rename = "ncnn-bin")]
    NcnnBin,
    /// Model of MNN.
    #[serde(rename = "mnn")]
    Mnn,
    /// Network of OpenVINO.
    #[serde(rename = "openvino-xml")]
    OpenVinoXml,
    /// Weights of OpenVINO.
    #[serde(rename = "openvino-bin")]
    OpenVinoBin,
    /// Any other kind, or not examined.
    #[default]
    #[serde(rename = "none")]
    None,
}

/// Kind of a file, by its content or name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Image {
    /// Kind.
    pub(super) kind: ImageKind,
    /// Identifier that the linker gave to a file with code, in hexadecimal digits.
    pub(super) build_id: Option<String>,
    /// Machine that the code is for.
    pub(super) machine: Option<String>,
}

impl Image {
    /// Examines a file of this path, which is read from its begin.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn of(path: &Path, file: &mut File) -> io::Result<Self> {
        let mut head = Vec::new();
        file.rewind()?;
        file.take(HEAD).read_to_end(&mut head)?;
        let kind = kind(path, &head);
        if kind != ImageKind::Elf {
            return Ok(Self { kind, ..Self::default() });
        }
        Ok(Self { kind, machine: machine(&head), build_id: build_id(file.try_clone()?) })
    }
}

/// Returns the kind of a file that begins with these bytes.
pub(in crate::record) fn kind(path: &Path, head: &[u8]) -> ImageKind {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let has = |wanted: &str| extension.eq_ignore_ascii_case(wanted);
    let is_beside = |other: &str| path.with_extension(other).is_file();
    match () {
        () if head.starts_with(b"\x7fELF") => ImageKind::Elf,
        () if head.get(4..8) == Some(b"TFL3") => ImageKind::TfLite,
        () if head.starts_with(b"GGUF") => ImageKind::Gguf,
        () if is_ncnn(head) => ImageKind::NcnnParam,
        () if is_openvino(head) => ImageKind::OpenVinoXml,
        () if is_onnx(head) || has("onnx") && is_message(head) => ImageKind::Onnx,
        () if has("mnn") && !head.is_empty() => ImageKind::Mnn,
        () if has("bin") && is_beside("param") => ImageKind::NcnnBin,
        () if has("bin") && is_beside("xml") => ImageKind::OpenVinoBin,
        () => ImageKind::None,
    }
}

/// Whether the first line is the number of ncnn's networks.
fn is_ncnn(head: &[u8]) -> bool {
    head.strip_prefix(NCNN).is_some_and(|rest| matches!(rest.first(), Some(b'\n' | b'\r')))
}

/// Whether it is XML whose outermost element is `net`.
fn is_openvino(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let first = match text.strip_prefix("<?xml") {
        Some(rest) => rest.split_once("?>").map_or("", |(_, rest)| rest.trim_start()),
        None => text,
    };
    first.starts_with("<net ") && first.contains("version=")
}

/// Whether it begins as models of ONNX do: the version of the format, then a text or number that a model has.
fn is_onnx(head: &[u8]) -> bool {
    /// Version of the format.
    const VERSION: u8 = 0x08;
    /// The largest one that is plausible.
    const LARGEST: u8 = 64;
    /// Name of what produced the model.
    const PRODUCER: u8 = 0x12;
    match head {
        &[VERSION, version, PRODUCER, length, ref rest @ ..] if version > 0 && version <= LARGEST => {
            let name = rest.get(..usize::from(length));
            length < 0x80 && name.is_some_and(|name| name.iter().all(|byte| (b' '..=b'~').contains(byte)))
        }
        _ => false,
    }
}

/// Whether it may begin a message of protobuf that is a model: one of its fields.
fn is_message(head: &[u8]) -> bool {
    /// Field of a model at most: those of ONNX are numbered to 26.
    const LAST: u8 = 26;
    let Some(&first) = head.first() else { return false };
    let field = if first < 0x80 { first >> 3 } else { LAST };
    (1..=LAST).contains(&field) && matches!(first & 7, 0 | 2)
}

/// Returns the machine of an ELF file by its header.
fn machine(head: &[u8]) -> Option<String> {
    let bytes: [u8; 2] = head.get(18..20)?.try_into().ok()?;
    let is_little = head.get(5) == Some(&object::elf::ELFDATA2LSB.0);
    let number = if is_little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) };
    Some(match object::elf::Machine(number) {
        object::elf::EM_X86_64 => "x86_64".into(),
        object::elf::EM_AARCH64 => "aarch64".into(),
        object::elf::EM_386 => "x86".into(),
        object::elf::EM_ARM => "arm".into(),
        object::elf::EM_RISCV => "riscv".into(),
        object::elf::Machine(number) => format!("machine{number}"),
    })
}

fn build_id(file: File) -> Option<String> {
    let cache = ReadCache::new(file);
    let id = object::File::parse(&cache).ok()?.build_id().ok()??.to_vec();
    Some(super::super::hex::digits(&id))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn kind_of(name: &str, head: &[u8]) -> ImageKind {
        kind(Path::new(name), head)
    }

    #[test]
    fn kinds_with_a_mark_are_recognized_whatever_their_names() {
        assert_eq!(kind_of("/m/net", b"\x1c\0\0\0TFL3\0"), ImageKind::TfLite);
        assert_eq!(kind_of("/m/net.bin", b"GGUF\x03\0\0\0"), ImageKind::Gguf);
        assert_eq!(kind_of("/m/net.txt", b"7767517\n75 83\n"), ImageKind::NcnnParam);
        assert_eq!(kind_of("/m/net", b"\x08\x08\x12\x07pytorch\x1a\x032.1"), ImageKind::Onnx);
        assert_eq!(
            kind_of("/m/net", b"<?xml version=\"1.0\"?>\n<net name=\"n\" version=\"11\">"),
            ImageKind::OpenVinoXml
        );
    }

    #[test]
    fn a_mark_at_another_place_is_none() {
        assert_eq!(kind_of("/m/net.tflite", b"TFL3\0\0\0\0"), ImageKind::None);
        assert_eq!(kind_of("/m/net", b"77675170\n"), ImageKind::None);
        assert_eq!(kind_of("/m/net", b"\x08\x08\x12\x07py\x01orch"), ImageKind::None);
        assert_eq!(kind_of("/m/net", b"<?xml version=\"1.0\"?><network version=\"1\"/>"), ImageKind::None);
        assert_eq!(kind_of("/m/net", b""), ImageKind::None);
    }

    #[test]
    fn kinds_without_a_mark_are_recognized_by_name() {
        assert_eq!(kind_of("/m/net.ONNX", b"\x3a\x10graph"), ImageKind::Onnx);
        assert_eq!(kind_of("/m/net.onnx", b"<html>"), ImageKind::None);
        assert_eq!(kind_of("/m/net.mnn", b"\x20\0\0\0"), ImageKind::Mnn);
        let dir = tempfile::tempdir().unwrap();
        for (other, kind) in [("a.param", ImageKind::NcnnBin), ("b.xml", ImageKind::OpenVinoBin)] {
            let other = dir.path().join(other);
            let weights = other.with_extension("bin");
            assert_eq!(kind_of(weights.to_str().unwrap(), b"\0\0"), ImageKind::None);
            fs::write(other, "").unwrap();
            assert_eq!(kind_of(weights.to_str().unwrap(), b"\0\0"), kind);
        }
    }

    #[test]
    fn code_has_a_machine_and_damaged_code_no_identifier() {
        let path = std::env::current_exe().unwrap();
        let image = Image::of(&path, &mut File::open(&path).unwrap()).unwrap();
        assert_eq!((image.kind, image.machine.as_deref()), (ImageKind::Elf, Some(std::env::consts::ARCH)));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("arm.so");
        fs::write(&path, b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x28\0").unwrap();
        let image = Image::of(&path, &mut File::open(&path).unwrap()).unwrap();
        assert_eq!(image, Image { kind: ImageKind::Elf, machine: Some("arm".into()), build_id: None });
    }
}
