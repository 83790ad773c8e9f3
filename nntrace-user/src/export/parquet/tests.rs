//! Tables, written and read back by the same crate's reader; the end-to-end tests read them by DuckDB.

use std::{borrow::Cow, collections::BTreeSet, fs, fs::File};

use nntrace_common::{
    layer::{Layer, Phase, Tag},
    stack::Class,
};
use parquet::{
    file::{
        metadata::RowGroupMetaData,
        reader::{FileReader as _, SerializedFileReader},
    },
    record::Field,
};
use tempfile::TempDir;

use super::{Label, Spans, rails, schema::SPANS, table::Table};
use crate::model::{
    rails::{RailKind, RailRow, RailSource, Rails},
    section::Section,
};

fn label() -> Label {
    Label { board: "b \"7\"; DROP TABLE spans; --".into(), run: "läuft\0".into() }
}

fn section<'a>(name: &'a str, attributes: &'a str, end_ns: u64) -> Section<'a> {
    Section {
        pid: 7,
        tid: u32::MAX,
        begin_ns: end_ns.saturating_sub(5),
        end_ns,
        own_ns: 4,
        exclusive_ns: 3,
        depth: 2,
        tag: Tag::new(Layer::Runtime, Phase::Execution),
        class: Class::Subtract,
        path: u64::MAX - 1,
        name: Cow::Borrowed(name),
        attributes: Cow::Borrowed(attributes),
        is_provisional: false,
        in_itself: false,
        sequences: (0, 0),
    }
}

/// Writes sections; returns their folder.
fn written<'a>(sections: impl IntoIterator<Item = Section<'a>>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut spans = Spans::create(folder.path(), &label()).unwrap();
    let mut count = 0;
    for section in sections {
        spans.add(&section);
        count += 1;
    }
    assert_eq!(spans.finish().unwrap(), count);
    folder
}

fn reader(folder: &TempDir) -> SerializedFileReader<File> {
    reader_of(folder, "spans.parquet")
}

fn reader_of(folder: &TempDir, file: &str) -> SerializedFileReader<File> {
    SerializedFileReader::new(File::open(folder.path().join(file)).unwrap()).unwrap()
}

fn rows(folder: &TempDir) -> Vec<Vec<Field>> {
    rows_of(folder, "spans.parquet")
}

fn rows_of(folder: &TempDir, file: &str) -> Vec<Vec<Field>> {
    let reader = reader_of(folder, file);
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| row.unwrap().into_columns().into_iter().map(|(_, field)| field).collect()).collect()
}

#[test]
fn what_is_written_is_read() {
    let text = |text: &str| Field::Str(text.into());
    let folder = written([section("f", "", 100), section("g", "#iter=1", u64::MAX)]);
    let Label { board, run } = label();
    let row = |name: &str, attributes, begin, end| {
        vec![
            text(&board),
            text(&run),
            Field::UInt(7),
            Field::UInt(u32::MAX),
            text("LR"),
            text("PE"),
            text(name),
            attributes,
            Field::Long(begin),
            Field::Long(end),
            Field::Long(4),
            Field::Long(3),
            Field::UInt(2),
            text("subtracted"),
            Field::ULong(u64::MAX - 1),
            Field::Bool(false),
            Field::Bool(false),
        ]
    };
    // The largest time is one that readers know.
    let expected = [row("f", Field::Null, 95, 100), row("g", text("#iter=1"), i64::MAX, i64::MAX)];
    assert_eq!(rows(&folder), expected);
}

#[test]
fn rails_have_a_row_each_and_may_be_below_0() {
    let rail = RailRow {
        source: RailSource::Hwmon,
        chip: "ina226".into(),
        name: "VBAT \"0\"".into(),
        kind: RailKind::Sampled,
        energy_nj: -750_000_000,
        begin_ns: 1_000,
        end_ns: 9_000,
        readings: 21,
        wraps: 0,
        gaps: 2,
        gap_ns: 3_000,
        failed: 1,
        failure: Some("power1_input: No such device".into()),
    };
    let counter = RailRow {
        source: RailSource::Powercap,
        kind: RailKind::Counter,
        energy_nj: i64::MAX,
        failure: None,
        ..rail.clone()
    };
    let rails = Rails { rails: vec![rail, counter], ..Rails::default() };
    let folder = tempfile::tempdir().unwrap();
    rails::write(folder.path(), &label(), Some(&rails)).unwrap();
    let text = |text: &str| Field::Str(text.into());
    let row = |[source, kind]: [&str; 2], energy, failure| {
        let Label { board, run } = label();
        let names = [&board, &run, source, "ina226", "VBAT \"0\"", kind].map(text);
        // The time that is known is without the gaps.
        let numbers = [energy, 1_000, 9_000, 5_000, 21, 0, 2, 1].map(Field::Long);
        names.into_iter().chain(numbers).chain([failure]).collect::<Vec<Field>>()
    };
    let expected = [
        row(["hwmon", "sampled"], -750_000_000, text("power1_input: No such device")),
        row(["powercap", "counter"], i64::MAX, Field::Null),
    ];
    assert_eq!(rows_of(&folder, "rails.parquet"), expected);
    rails::write(folder.path(), &label(), None).unwrap();
    assert!(rows_of(&folder, "rails.parquet").is_empty());
}

#[test]
fn names_may_be_anything() {
    let replaced = String::from_utf8_lossy(b"\xff\xfe").into_owned();
    let long = "x".repeat(5_000_000);
    let names =
        ["", "\0", "a\0b", "'; --", "\"", "\\", "\n\r\t", "\u{202e}", "\u{1f980}", "NULL", &replaced, &long];
    let folder = written(names.iter().map(|name| section(name, name, 9)));
    let expected = names.map(|name| {
        let attributes = if name.is_empty() { Field::Null } else { Field::Str(name.into()) };
        (Field::Str(name.into()), attributes)
    });
    let found: Vec<(Field, Field)> =
        rows(&folder).into_iter().map(|row| (row[6].clone(), row[7].clone())).collect();
    assert_eq!(found, expected);
}

#[test]
fn an_empty_table_has_its_columns() {
    let folder = written([]);
    assert!(rows(&folder).is_empty());
    let reader = reader(&folder);
    let metadata = reader.metadata().file_metadata();
    assert_eq!(metadata.schema_descr().num_columns(), SPANS.columns().count());
    let keys = metadata.key_value_metadata().unwrap();
    let version = keys.iter().find(|pair| pair.key == "nntrace.schema_version").unwrap();
    assert_eq!(version.value.as_deref(), Some("1"));
}

#[test]
fn equal_sections_give_equal_bytes() {
    let names: Vec<String> = (0..20_000).map(|number| format!("f{}", number % 7_919)).collect();
    let bytes = || {
        let sections = names.iter().zip(0..).map(|(name, number)| section(name, "#a=b", number * 13));
        fs::read(written(sections).path().join("spans.parquet")).unwrap()
    };
    assert!(bytes() == bytes());
}

#[test]
fn memory_is_bounded_by_rows_and_by_text() {
    let folder = tempfile::tempdir().unwrap();
    let mut spans = Spans::create(folder.path(), &label()).unwrap();
    for number in 0..300_000 {
        spans.add(&section("f", "", number));
        assert!(spans.table.gathered().0 < 128 << 10, "{number}");
    }
    // Marks with attributes that never come again.
    for number in 0..40 {
        let attributes = format!("#{}{number}", "x".repeat(1 << 20));
        spans.add(&section("f", &attributes, number));
        assert!(spans.table.gathered().1 < 16 << 20, "{number}");
    }
    spans.finish().unwrap();
    let reader = reader(&folder);
    let groups: Vec<i64> = reader.metadata().row_groups().iter().map(RowGroupMetaData::num_rows).collect();
    assert_eq!(groups.iter().sum::<i64>(), 300_040);
    assert_eq!(groups[..2], [128 << 10; 2]);
    assert!(groups.len() > 5, "{groups:?}");
}

#[test]
fn sections_are_small() {
    let names = ["conv2d", "relu", "softmax", "add"];
    let sections = (0..100_000_u64).map(|number| {
        let name = names[number as usize % names.len()];
        section(name, "", number * 1_000 + number * 7_919 % 500)
    });
    let bytes = fs::metadata(written(sections).path().join("spans.parquet")).unwrap().len();
    assert!(bytes < 100_000 * 20, "{bytes}");
}

#[test]
fn a_full_disk_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("spans.parquet")).unwrap();
    let mut spans = Spans::create(folder.path(), &label()).unwrap();
    for number in 0..200_000 {
        spans.add(&section("f", "", number));
    }
    let error = spans.finish().unwrap_err().to_string();
    assert!(error.contains("spans.parquet") && error.contains("No space left"), "{error}");
}

#[test]
fn a_row_that_does_not_fit_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for row in [&[][..], &["text".into()]] {
        let mut table = Table::create(folder.path(), &SPANS, &label()).unwrap();
        assert!(table.push(row).is_err());
    }
}

#[test]
fn every_table_is_a_file_of_an_export() {
    let names: BTreeSet<String> =
        super::schema::ALL.iter().map(|schema| format!("{}.parquet", schema.name)).collect();
    assert_eq!(names, super::FILES.map(str::to_owned).into());
}
