//! YAML as a tree in which every key and value knows its line and column.
//!
//! The schema reads this tree instead of deriving its types, because then every error — a wrong type, an unknown key, a
//! duplicate, a number out of range — is ours to word, and names its place the same way.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::{DuplicateKeyPolicy, MergeKeyPolicy, Spanned};

use super::error::{ConfigError, Place};

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) place: Place,
}

/// What stands there.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    /// Numbers and booleans too, as text.
    Scalar(String),
    List(Vec<Node>),
    /// In the order of the file; keys may repeat.
    Map(Vec<(Key, Node)>),
}

/// A key and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) place: Place,
}

/// Reads one document. An empty one is `Null`.
pub(crate) fn parse(yaml: &str) -> Result<Node, ConfigError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_anchors: 0, max_aliases: 0, max_depth: 32, max_nodes: 200_000, },
        duplicate_keys: DuplicateKeyPolicy::PassThrough, // reported by the schema, which knows the key's path
        merge_keys: MergeKeyPolicy::AsOrdinary,
        strict_booleans: true,
    };
    serde_saphyr::from_str_with_options::<Raw>(yaml, options).map(|raw| node(raw.0)).map_err(|error| {
        let place = error.location().map_or_else(Place::start, |at| Place { line: at.line(), column: at.column() });
        let text = error.without_snippet().to_string();
        let says = |word: &str| text.to_lowercase().contains(word);
        let message = if says("anchor") || says("alias") {
            "anchors and aliases are not accepted here: write the values out".to_owned()
        } else {
            format!("not valid YAML: {}", text.lines().next().unwrap_or("unreadable"))
        };
        ConfigError::new(place, "", message)
    })
}

fn node(raw: Spanned<RawValue>) -> Node {
    let place = place(&raw.referenced);
    let value = match raw.value {
        RawValue::Null => Value::Null,
        RawValue::Scalar(text) => Value::Scalar(text),
        RawValue::List(items) => Value::List(items.into_iter().map(|raw| node(raw.0)).collect()),
        RawValue::Map(entries) => Value::Map(
            entries
                .into_iter()
                .map(|(key, raw)| (Key { place: self::place(&key.0.referenced), name: key.0.value.0 }, node(raw.0)))
                .collect(),
        ),
    };
    Node { value, place }
}

fn place(at: &serde_saphyr::Location) -> Place {
    Place { line: at.line(), column: at.column() }
}

struct Raw(Spanned<RawValue>);
struct RawKey(Spanned<Text>);
struct Text(String);

enum RawValue {
    Null,
    Scalar(String),
    List(Vec<Raw>),
    Map(Vec<(RawKey, Raw)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for RawKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(AnyValue)? {
            RawValue::Scalar(text) => Ok(Self(text)),
            RawValue::Null => Ok(Self("null".into())),
            RawValue::List(_) | RawValue::Map(_) => Err(D::Error::custom("a key must be a plain word")),
        }
    }
}

impl<'de> Deserialize<'de> for RawValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

/// Whatever stands there; scalars as text.
struct AnyValue;

macro_rules! scalars_as_text {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E>(self, value: $type) -> Result<RawValue, E> {
            Ok(RawValue::Scalar(value.to_string()))
        })*
    };
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = RawValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    scalars_as_text!(
        visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_i128: i128, visit_u128: u128, visit_f64: f64, visit_str: &str
    );

    fn visit_unit<E>(self) -> Result<RawValue, E> {
        Ok(RawValue::Null)
    }

    fn visit_none<E>(self) -> Result<RawValue, E> {
        Ok(RawValue::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawValue, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<RawValue, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(RawValue::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawValue, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(RawValue::Map(entries))
    }
}
