//! Values of the keys of a map.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use toml::Spanned;

use crate::live::engines::{
    engine_map::{Affixes, ClassName, Evidence, MachineName, Pattern, Requirement, VersionSource},
    probe::NameForm,
};

/// `at`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlaceForm {
    #[serde(default, deserialize_with = "one_or_more")]
    pub(super) export: Vec<Pattern>,
    #[serde(default, deserialize_with = "one_or_more")]
    pub(super) symbol: Vec<Pattern>,
    #[serde(default, deserialize_with = "one_or_more")]
    pub(super) demangled: Vec<Pattern>,
    #[serde(default, deserialize_with = "one_or_more")]
    pub(super) refers_to: Vec<String>,
    #[serde(default)]
    pub(super) all: bool,
    pub(super) table: Option<String>,
    pub(super) index: Option<u32>,
    pub(super) rtti: Option<ClassName>,
    #[serde(default, deserialize_with = "one_or_more")]
    pub(super) slot: Vec<u32>,
    #[serde(default)]
    pub(super) base: bool,
}

/// One `match`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EvidenceForm {
    #[serde(default, deserialize_with = "one_or_more")]
    export: Vec<Pattern>,
    #[serde(default, deserialize_with = "one_or_more")]
    symbol: Vec<Pattern>,
    #[serde(default, deserialize_with = "one_or_more")]
    rtti: Vec<ClassName>,
    #[serde(default, deserialize_with = "one_or_more")]
    without: Vec<Pattern>,
    file: Option<Pattern>,
}

impl From<EvidenceForm> for Evidence {
    fn from(form: EvidenceForm) -> Self {
        Self {
            exports: form.export,
            symbols: form.symbol,
            classes: form.rtti,
            absent: form.without,
            file: form.file,
        }
    }
}

/// One `version`.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum VersionForm {
    Table(String),
    Beside(Affixes),
}

impl From<VersionForm> for VersionSource {
    fn from(form: VersionForm) -> Self {
        match form {
            VersionForm::Table(export) => Self::Table(export),
            VersionForm::Beside(affixes) => Self::Beside(affixes),
        }
    }
}

/// `name`: a source of names, or the name of a list of them in `[names]`.
pub(super) enum NameSource {
    Own(NameFields),
    Shared(String),
}

/// Source of names.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NameFields {
    pub(super) arg: Spanned<u8>,
    #[serde(default)]
    pub(super) chain: Vec<i32>,
    #[serde(rename = "as")]
    pub(super) form: NameForm,
    #[serde(default)]
    pub(super) values: Vec<String>,
    pub(super) other: Option<i32>,
    #[serde(default)]
    pub(super) element: Option<u8>,
    #[serde(default)]
    pub(super) by_value: bool,
    pub(super) versions: Option<Requirement>,
    pub(super) machine: Option<MachineName>,
}

/// `[names]`: lists of sources that several probes share.
pub(super) type SharedNames = BTreeMap<String, SharedName>;

/// One of these lists.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct SharedName {
    #[serde(deserialize_with = "one_or_more")]
    pub(super) sources: Vec<NameFields>,
}

/// `async`: the argument that is the object.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AsyncForm {
    Begin(u8),
    End(u8),
}

/// `bracket`.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum BracketForm {
    Begin,
    End,
}

impl<'de> Deserialize<'de> for NameSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Source;
        impl<'de> Visitor<'de> for Source {
            type Value = NameSource;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table with `arg` and `as`, or a name of `[names]`")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<NameSource, E> {
                Ok(NameSource::Shared(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<NameSource, A::Error> {
                NameFields::deserialize(MapAccessDeserializer::new(map)).map(NameSource::Own)
            }
        }
        deserializer.deserialize_any(Source)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Requirement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ClassName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_name = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
        if text.is_empty() || !text.bytes().all(is_name) {
            return Err(D::Error::custom(format!("expected a class such as \"ov::Core\", found {text:?}")));
        }
        Self::parse(&text).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Affixes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const PLACES: [(&str, bool); 2] = [("{version}", false), ("{joined_version}", true)];
        let text = String::deserialize(deserializer)?;
        let found = PLACES.iter().find_map(|(place, is_joined)| Some((text.split_once(place)?, *is_joined)));
        match found {
            Some(((before, after), is_joined))
                if !before.is_empty() && !PLACES.iter().any(|(place, _)| after.contains(place)) =>
            {
                Ok(Self { before: before.to_owned(), after: after.to_owned(), is_joined })
            }
            _ => Err(D::Error::custom(format!(
                "expected a text with {{version}} or {{joined_version}} once and something before it, found {text:?}"
            ))),
        }
    }
}

/// Reads a value, or a list of such.
pub(super) fn one_or_more<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct OneOrMore<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMore<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("one value or a list of such")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
            T::deserialize(serde::de::value::StrDeserializer::new(text)).map(|one| vec![one])
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<Vec<T>, E> {
            T::deserialize(serde::de::value::I64Deserializer::new(number)).map(|one| vec![one])
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<T>, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map)).map(|one| vec![one])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut all = Vec::new();
            while let Some(one) = list.next_element()? {
                all.push(one);
            }
            Ok(all)
        }
    }
    deserializer.deserialize_any(OneOrMore(PhantomData))
}
