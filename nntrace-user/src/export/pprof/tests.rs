//! A profile of a small run, decoded.

use std::io::Read as _;

use flate2::read::GzDecoder;
use prost::Message as _;

use super::{messages::Profile, render};
use crate::export::tests::small_run;

fn decoded(bytes: &[u8]) -> Profile {
    let mut unpacked = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut unpacked).unwrap();
    Profile::decode(&*unpacked).unwrap()
}

/// Returns a sample as text: its stack from the outermost frame in, its values, its labels.
fn samples(profile: &Profile) -> Vec<String> {
    let text = |index: i64| profile.string_table[usize::try_from(index).unwrap()].as_str();
    let frame = |id: &u64| {
        let location = profile.location.iter().find(|location| location.id == *id).unwrap();
        let function = profile.function.iter().find(|function| function.id == location.line[0].function_id);
        text(function.unwrap().name)
    };
    let label = |label: &super::messages::Label| match label.str {
        0 => format!("{}={}{}", text(label.key), label.num, text(label.num_unit)),
        str => format!("{}={}", text(label.key), text(str)),
    };
    let sample = |sample: &super::Sample| {
        let stack: Vec<&str> = sample.location_id.iter().rev().map(frame).collect();
        let labels: Vec<String> = sample.label.iter().map(label).collect();
        format!("{} {:?} {}", stack.join(";"), sample.value, labels.join(" "))
    };
    profile.sample.iter().map(sample).collect()
}

#[test]
fn samples_are_stacks_with_their_labels() {
    let run = small_run();
    let profile = decoded(&render(&run.findings(), Some(1_700_000_000_000_000_007)).unwrap());
    let expected = [
        "app;LA_PO;main [1, 849000] process=app pid=70pid",
        "app;LA_PO;LC_PCO;a;b [1, 1000] process=app pid=70pid iteration=0iteration iteration_of=a;b",
        "app;LA_PO;LR_PE;conv 3 [1, 100000] process=app pid=70pid account=bar",
        "app;LA_PO;LR_PE;conv 3 [1, 50000] process=app pid=70pid account=foo",
    ];
    assert_eq!(samples(&profile), expected);
    let text = |index: i64| profile.string_table[usize::try_from(index).unwrap()].as_str();
    let types: Vec<_> =
        profile.sample_type.iter().map(|value| (text(value.r#type), text(value.unit))).collect();
    assert_eq!(types, [("sections", "count"), ("wall", "nanoseconds")]);
    assert_eq!((text(0), text(profile.default_sample_type)), ("", "wall"));
    assert_eq!((profile.time_nanos, profile.duration_nanos), (1_700_000_000_000_000_007, 1_000_000));
    assert!(profile.mapping[0].has_functions && profile.location.iter().all(|place| place.mapping_id == 1));
}

#[test]
fn a_run_gives_the_same_bytes_again() {
    let bytes = || render(&small_run().findings(), None).unwrap();
    let (one, two) = (bytes(), bytes());
    assert!(one == two && decoded(&one).time_nanos == 0);
}
