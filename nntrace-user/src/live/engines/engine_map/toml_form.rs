//! The TOML form of engine maps, read entry by entry: a wrong one costs itself only.

mod fields;

use std::{ops::Range, sync::Arc};

use nntrace_common::{layer::Tag, mark::Prefix};
use serde::Deserialize;
use toml::{
    Spanned,
    de::{DeArray, DeTable, DeValue, ValueDeserializer},
};

use self::fields::{
    AsyncForm, BracketForm, EvidenceForm, NameFields, NameSource, PlaceForm, SharedNames, VersionForm,
};
use super::{EngineMap, Evidence, FunctionPlace, MapError, NameEntry, Pattern, ProbeEntry, Requirement};
use crate::live::engines::probe::{Kind, LONGEST_CHAIN, Level, MapLine, NameForm};

/// Argument registers of x86-64, the machine that has fewer.
const ARGUMENTS: u8 = 6;
/// Length of a text that finds a function at least, bytes.
const SHORTEST_TEXT: usize = 8;
/// Values of an enum at most.
const MOST_VALUES: usize = 1024;

/// An `[[engine]]` without its probes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EngineForm {
    name: Spanned<String>,
    #[serde(default)]
    about: String,
    #[serde(default)]
    tested: bool,
    #[serde(default)]
    itt: bool,
    #[serde(rename = "match", deserialize_with = "fields::one_or_more")]
    evidence: Vec<EvidenceForm>,
    #[serde(default, deserialize_with = "fields::one_or_more")]
    version: Vec<VersionForm>,
}

/// An `[[engine.probe]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own")]
struct ProbeForm {
    at: Spanned<PlaceForm>,
    mark: Spanned<String>,
    #[serde(default)]
    level: Level,
    #[serde(default, deserialize_with = "fields::one_or_more")]
    name: Vec<NameSource>,
    label: Option<Spanned<String>>,
    #[serde(default)]
    sret: bool,
    args: Option<Spanned<u8>>,
    #[serde(default)]
    nothrow: bool,
    #[serde(default)]
    workers: bool,
    versions: Option<Requirement>,
    #[serde(default)]
    optional: bool,
    #[serde(default, deserialize_with = "fields::one_or_more")]
    except: Vec<Pattern>,
    r#async: Option<Spanned<AsyncForm>>,
    bracket: Option<Spanned<BracketForm>>,
}

/// Parses a map: its engines as far as they are right, and what is wrong.
pub(in crate::live) fn parse(file: &str, text: &str) -> (Vec<EngineMap>, Vec<MapError>) {
    let mut reader = Reader { file: file.into(), text, names: SharedNames::new(), errors: Vec::new() };
    let engines = match DeTable::parse(text) {
        Ok(table) => reader.file(table.into_inner()),
        Err(error) => {
            reader.error(
                &error.span().unwrap_or(0..0),
                format!("{}; nothing of it is used", sentence(error.message())),
            );
            Vec::new()
        }
    };
    (engines, reader.errors)
}

/// The message of the parser in one line.
fn sentence(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

struct Reader<'a> {
    file: Arc<str>,
    text: &'a str,
    /// Sources of names that probes may refer to.
    names: SharedNames,
    errors: Vec<MapError>,
}

impl<'a> Reader<'a> {
    fn line(&self, span: &Range<usize>) -> MapLine {
        let before = self.text.as_bytes().get(..span.start).unwrap_or_default();
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        MapLine { map: Arc::clone(&self.file), line: u32::try_from(line).unwrap_or(u32::MAX) }
    }

    fn error(&mut self, span: &Range<usize>, what: String) {
        let at = self.line(span);
        self.errors.push(MapError { at, what });
    }

    /// Takes note of a wrong value, and of what is lost by it.
    fn refuse(&mut self, span: &Range<usize>, what: impl std::fmt::Display, lost: &str) {
        self.error(span, format!("{what}; {lost} is left out"));
    }

    fn file(&mut self, mut table: DeTable<'a>) -> Vec<EngineMap> {
        let mut engines = Vec::new();
        if let Some(names) = table.remove("names") {
            self.names = self.value(names, "all of `[names]`").unwrap_or_default();
        }
        for (key, value) in table {
            let (span, key) = (key.span(), key.into_inner());
            if key == "engine" {
                for engine in self.tables(value, "engine") {
                    engines.extend(self.engine(engine));
                }
            } else {
                self.refuse(&span, format!("unknown key `{key}`, expected `[[engine]]` or `[names]`"), "it");
            }
        }
        if engines.is_empty() && self.errors.is_empty() {
            self.error(&(0..0), "expected at least one `[[engine]]`, found none".into());
        }
        engines
    }

    /// Returns the tables of an array of tables.
    fn tables(&mut self, value: Spanned<DeValue<'a>>, key: &str) -> Vec<Spanned<DeTable<'a>>> {
        let span = value.span();
        let array = match value.into_inner() {
            DeValue::Array(array) => array,
            other => {
                self.refuse(&span, format!("expected `[[{key}]]`, found {}", other.type_str()), "it");
                DeArray::new()
            }
        };
        let mut tables = Vec::new();
        for item in array {
            let span = item.span();
            match item.into_inner() {
                DeValue::Table(table) => tables.push(Spanned::new(span, table)),
                other => {
                    self.refuse(&span, format!("expected `[[{key}]]`, found {}", other.type_str()), "it");
                }
            }
        }
        tables
    }

    fn engine(&mut self, table: Spanned<DeTable<'a>>) -> Option<EngineMap> {
        let span = table.span();
        let mut table = table.into_inner();
        let probes = table.remove("probe");
        let form: EngineForm = self.read(span.clone(), table, "the engine")?;
        let name = form.name.get_ref().clone();
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name == "none" || !name.chars().all(is_plain) {
            let what =
                format!("expected a name of a-z, 0-9, `-`, `_` and `.` that is not \"none\", found {name:?}");
            self.refuse(&form.name.span(), what, "the engine");
            return None;
        }
        let evidence: Vec<Evidence> = form.evidence.into_iter().map(Evidence::from).collect();
        if evidence.is_empty() || !evidence.iter().all(Evidence::is_of_content) {
            let what = "expected in each `match` an `export`, `symbol` or `rtti`: names of files alone are no evidence";
            self.refuse(&span, what, "the engine");
            return None;
        }
        let mut entries = Vec::new();
        let probes = probes.map(|probes| self.tables(probes, "engine.probe")).unwrap_or_default();
        if probes.is_empty() {
            self.refuse(&span, "expected at least one `[[engine.probe]]`, found none", "the engine");
            return None;
        }
        for probe in probes {
            entries.extend(self.probe(probe));
        }
        Some(EngineMap {
            name,
            about: form.about,
            is_tested: form.tested,
            shows_itt: form.itt,
            line: self.line(&span),
            evidence,
            versions: form.version.into_iter().map(Into::into).collect(),
            probes: entries,
        })
    }

    /// Reads a table as a form.
    fn read<T: Deserialize<'a>>(&mut self, span: Range<usize>, table: DeTable<'a>, lost: &str) -> Option<T> {
        self.value(Spanned::new(span, DeValue::Table(table)), lost)
    }

    fn value<T: Deserialize<'a>>(&mut self, value: Spanned<DeValue<'a>>, lost: &str) -> Option<T> {
        let span = value.span();
        match T::deserialize(ValueDeserializer::from(value)) {
            Ok(form) => Some(form),
            Err(error) => {
                self.refuse(&error.span().unwrap_or(span), sentence(error.message()), lost);
                None
            }
        }
    }

    fn probe(&mut self, table: Spanned<DeTable<'a>>) -> Option<ProbeEntry> {
        const LOST: &str = "the probe";
        let span = table.span();
        let form: ProbeForm = self.read(span.clone(), table.into_inner(), LOST)?;
        let mut sources = Vec::new();
        for source in form.name {
            match source {
                NameSource::Own(fields) => sources.push(fields),
                NameSource::Shared(name) => {
                    let Some(shared) = self.names.get(&name) else {
                        self.refuse(&span, format!("expected a name of `[names]`, found {name:?}"), LOST);
                        return None;
                    };
                    sources.extend(shared.sources.iter().cloned());
                }
            }
        }
        let mut check = |span: Range<usize>, checked: Result<(), String>| match checked {
            Ok(()) => Some(()),
            Err(what) => {
                self.refuse(&span, what, LOST);
                None
            }
        };
        let places = form.at.get_ref().places();
        check(form.at.span(), places.as_ref().map(drop).map_err(Clone::clone))?;
        let mark = mark(form.mark.get_ref());
        check(form.mark.span(), mark.as_ref().map(drop).map_err(Clone::clone))?;
        let registers = ARGUMENTS - u8::from(form.sret);
        let mut names = Vec::new();
        for fields in sources {
            let span = fields.arg.span();
            let entry = name_entry(fields, registers);
            check(span, entry.as_ref().map(drop).map_err(Clone::clone))?;
            names.extend(entry.ok());
        }
        if let Some(label) = &form.label {
            let found = label.get_ref();
            let is_name = !found.is_empty() && !found.contains(['#', '\n', '\0']);
            check(
                label.span(),
                is_name.then_some(()).ok_or_else(|| format!("expected a name without `#`, found {found:?}")),
            )?;
        }
        let kind =
            kind(form.r#async.as_ref().map(Spanned::get_ref), form.bracket.as_ref().map(Spanned::get_ref));
        let pairing = form.r#async.map(|it| it.span()).or_else(|| form.bracket.map(|it| it.span()));
        if let Some(span) = pairing {
            let checked = match kind {
                Ok(Kind::AsyncBegin { argument } | Kind::AsyncEnd { argument }) => {
                    register(argument, registers)
                }
                Ok(_) => Ok(()),
                Err(ref what) => Err(what.clone()),
            };
            check(span, checked)?;
        }
        if let Some(count) = &form.args {
            let is_plain = matches!(mark, Ok((Prefix::None, _))) && matches!(kind, Ok(Kind::Section));
            let is_hookable = form.level == Level::Op && is_plain && !form.workers;
            check(count.span(), arguments(*count.get_ref(), registers, is_hookable))?;
        }
        let (prefix, tag) = mark.ok()?;
        Some(ProbeEntry {
            line: self.line(&span),
            places: places.ok()?,
            except: form.except,
            prefix,
            tag,
            level: form.level,
            names,
            label: form.label.map(Spanned::into_inner),
            returns_in_memory: form.sret,
            arguments: form.args.map(Spanned::into_inner),
            is_nothrow: form.nothrow,
            on_workers: form.workers,
            versions: form.versions,
            is_optional: form.optional,
            kind: kind.ok()?,
        })
    }
}

/// Parses `LR_PE` or `[SUB]LR_PE`.
fn mark(text: &str) -> Result<(Prefix, Tag), String> {
    let (prefix, tag) = match text.strip_prefix("[SUB]") {
        Some(tag) => (Prefix::Subtract, tag.trim_start()),
        None => (Prefix::None, text),
    };
    match tag.parse() {
        Ok(tag) => Ok((prefix, tag)),
        Err(_) => {
            Err(format!("expected a layer and a phase such as \"LR_PE\" or \"[SUB]LR_PC\", found {text:?}"))
        }
    }
}

fn register(argument: u8, registers: u8) -> Result<(), String> {
    if argument < registers {
        return Ok(());
    }
    Err(format!(
        "expected one of the first {registers} arguments, from 0, which are in registers; found {argument}"
    ))
}

/// Checks the number of a function's arguments, which is for functions that may be hooked.
fn arguments(count: u8, registers: u8, is_hookable: bool) -> Result<(), String> {
    if !is_hookable {
        return Err(
            "expected `args` only with `level = \"op\"`, and without `[SUB]`, `workers`, `async` and `bracket`".into(),
        );
    }
    if (1..=registers).contains(&count) {
        return Ok(());
    }
    Err(format!("expected 1 to {registers} arguments, which are in registers; found {count}"))
}

fn name_entry(fields: NameFields, registers: u8) -> Result<NameEntry, String> {
    let argument = *fields.arg.get_ref();
    register(argument, registers)?;
    if fields.chain.len() > LONGEST_CHAIN {
        return Err(format!(
            "expected a chain of {LONGEST_CHAIN} offsets at most, found {}",
            fields.chain.len()
        ));
    }
    match (fields.form, fields.values.len()) {
        (NameForm::Enum, 0) => return Err("expected `values` with the names of the numbers from 0 on".into()),
        (NameForm::Enum, count) if count > MOST_VALUES => {
            return Err(format!("expected {MOST_VALUES} values at most, found {count}"));
        }
        (NameForm::Enum, _) | (_, 0) => {}
        _ => return Err("expected `values` only with `as = \"enum\"`".into()),
    }
    let other = other(&fields)?;
    match (fields.form, fields.element) {
        (_, None) => {}
        (NameForm::Tokens, Some(1..)) if !fields.chain.is_empty() => {}
        (NameForm::Tokens, Some(0)) => return Err("expected a size of elements from 1 on, found 0".into()),
        (NameForm::Tokens, Some(_)) => {
            return Err("expected a `chain` that leads to the vector, found none".into());
        }
        _ => return Err("expected `element` only with `as = \"tokens\"`".into()),
    }
    if fields.by_value && fields.chain.is_empty() {
        return Err("expected a `chain` into the structure that is passed by value, found none".into());
    }
    Ok(NameEntry {
        argument,
        chain: fields.chain,
        form: fields.form,
        values: fields.values,
        other,
        element: fields.element.unwrap_or(0),
        is_by_value: fields.by_value,
        versions: fields.versions,
        machine: fields.machine,
    })
}

/// Returns the distance from the number to the pointer to the text that stands for it; 0 without one.
fn other(fields: &NameFields) -> Result<i16, String> {
    let Some(other) = fields.other else { return Ok(0) };
    let (NameForm::Enum, Some(field)) = (fields.form, fields.chain.last()) else {
        return Err(
            "expected `other` only with `as = \"enum\"` and a `chain` that leads to the number".into()
        );
    };
    match i16::try_from(i64::from(other) - i64::from(*field)) {
        Ok(distance) if distance != 0 => Ok(distance),
        _ => Err(format!(
            "expected another offset for `other` than that of the number, {field}, and near it; found {other}"
        )),
    }
}

fn kind(asynchronous: Option<&AsyncForm>, bracket: Option<&BracketForm>) -> Result<Kind, String> {
    match (asynchronous, bracket) {
        (None, None) => Ok(Kind::Section),
        (Some(AsyncForm::Begin(argument)), None) => Ok(Kind::AsyncBegin { argument: *argument }),
        (Some(AsyncForm::End(argument)), None) => Ok(Kind::AsyncEnd { argument: *argument }),
        (None, Some(BracketForm::Begin)) => Ok(Kind::BracketBegin),
        (None, Some(BracketForm::End)) => Ok(Kind::BracketEnd),
        (Some(_), Some(_)) => Err("expected `async` or `bracket`, not both".into()),
    }
}

impl PlaceForm {
    /// Returns the places, or what was expected.
    fn places(&self) -> Result<Vec<FunctionPlace>, String> {
        let named = |patterns: &[Pattern], place: fn(Pattern) -> FunctionPlace| {
            patterns.iter().cloned().map(place).collect::<Vec<_>>()
        };
        let mut places = named(&self.export, FunctionPlace::Export);
        places.extend(named(&self.symbol, FunctionPlace::Symbol));
        places.extend(named(&self.demangled, FunctionPlace::Demangled));
        match (&self.table, self.index) {
            (Some(export), Some(index)) => {
                places.push(FunctionPlace::Table { export: export.clone(), index });
            }
            (None, None) => {}
            _ => return Err("expected `table` and `index` together".into()),
        }
        match (&self.rtti, &self.slot[..]) {
            (None, []) if !self.base => {}
            (Some(class), [_, ..]) => places.extend(self.slot.iter().map(|&slot| FunctionPlace::Rtti {
                class: class.clone(),
                slot,
                with_base: self.base,
            })),
            _ => return Err("expected `rtti` and `slot` together, and `base` only with them".into()),
        }
        if self.all && self.refers_to.is_empty() {
            return Err("expected `all` only with `refers_to`".into());
        }
        for text in &self.refers_to {
            // Short ones are a part of the code, and none refers to them.
            if text.len() < SHORTEST_TEXT || text.contains('\0') {
                return Err(format!(
                    "expected a text of at least {SHORTEST_TEXT} bytes, without a zero byte, found {text:?}"
                ));
            }
            places.push(FunctionPlace::Text { text: text.clone(), all: self.all });
        }
        if places.is_empty() {
            return Err(
                "expected an `export`, `symbol`, `demangled`, `refers_to`, `table` with `index`, or \
                        `rtti` with `slot`"
                    .into(),
            );
        }
        Ok(places)
    }
}
