//! Profiles for pprof, decoded by a program that shares no code with the project.

use std::{collections::BTreeMap, path::Path, process::Command};

use anyhow::Result;
use serde::Deserialize;

use crate::{child::Child, wheels};

/// Decoder of pprof's format, by its schema alone; prints the profile as JSON.
const DECODER: &str = r#"
import gzip, json, sys

def fields(data):
    at = 0
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            length = varint()
            assert at + length <= len(data), "a field ends behind its message"
            yield key >> 3, data[at:at + length]
            at += length
        else:
            raise ValueError(f"a field of kind {key & 7}")

def message(data):
    found = {}
    for number, value in fields(data):
        found.setdefault(number, []).append(value)
    return found

def numbers(values):
    for value in values:
        if isinstance(value, int):
            yield value
        else:  # packed
            number = shift = 0
            for byte in value:
                number |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    yield number
                    number = shift = 0

def one(found, number):
    return found.get(number, [0])[-1]

packed = open(sys.argv[1], "rb").read()
profile = message(gzip.decompress(packed))
texts = [text.decode() for text in profile[6]]
assert texts[0] == "" and len(set(texts)) == len(texts)
functions = {one(f, 1): texts[one(f, 2)] for f in map(message, profile[5])}
places = {}
for place in map(message, profile[4]):
    places[one(place, 1)] = functions[one(message(place[4][0]), 1)]
samples = []
for sample in map(message, profile[2]):
    labels = {}
    for label in map(message, sample.get(3, [])):
        text, number = one(label, 2), one(label, 3)
        assert text or one(label, 4), "a label without a value"
        labels[texts[one(label, 1)]] = texts[text] if text else str(number)
    stack = [places[number] for number in numbers(sample[1])][::-1]
    samples.append({"stack": stack, "values": list(numbers(sample[2])), "labels": labels})
types = [[texts[one(t, 1)], texts[one(t, 2)]] for t in map(message, profile[1])]
print(json.dumps({
    "modified": int.from_bytes(packed[4:8], "little"), "types": types, "samples": samples,
    "time": one(profile, 9), "duration": one(profile, 10), "shown_first": texts[one(profile, 14)],
}))
"#;

/// Profile, as it is decoded.
#[derive(Debug, Deserialize)]
pub struct Profile {
    /// Time in the head of the file, s since 1970.
    pub modified: u32,
    /// Types of values, with their units.
    pub types: Vec<[String; 2]>,
    /// Samples.
    pub samples: Vec<Sample>,
    /// Begin, ns since 1970.
    pub time: u64,
    /// Duration, ns.
    pub duration: u64,
    /// Type of values that is shown first.
    pub shown_first: String,
}

/// Sample, with its stack from the outermost frame in.
#[derive(Debug, Deserialize)]
pub struct Sample {
    /// Functions.
    pub stack: Vec<String>,
    /// Values, by their types.
    pub values: Vec<u64>,
    /// Labels, by key.
    pub labels: BTreeMap<String, String>,
}

/// Returns a profile; `None`, with a message, where there is no Python to decode it.
///
/// # Errors
/// When it is none, or when Python is missing and live tests are required.
pub fn decoded(profile: &Path) -> Result<Option<Profile>> {
    let Some(python) = wheels::readers()? else { return Ok(None) };
    let mut decoder = Command::new(python);
    let ended = Child::run(decoder.args(["-c", DECODER]).arg(profile))?.expect_code(0)?;
    Ok(Some(serde_json::from_slice(&ended.stdout)?))
}
