//! YAML as a tree in which every key and value knows its line and column.
//!
//! The schema reads this tree instead of deriving its types, because then every error — a wrong type, an unknown key, a
//! duplicate, a number out of range — is ours to word, and names its place the same way.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::{DuplicateKeyPolicy, Location, MergeKeyPolicy, Spanned, options::NonFiniteFloatPolicy};

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
    /// Numbers and booleans too, as they are written.
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

/// A document nested deeper than this is refused, and one with more nodes.
const DEEPEST: usize = 32;
const MOST_NODES: usize = 200_000;

/// Reads one document. An empty one is `Null`.
pub(crate) fn parse(yaml: &str) -> Result<Node, ConfigError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_anchors: 0, max_aliases: 0, max_depth: DEEPEST, max_nodes: MOST_NODES, },
        duplicate_keys: DuplicateKeyPolicy::PassThrough, // reported by the schema, which knows the key's path
        merge_keys: MergeKeyPolicy::AsOrdinary,
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough, // the schema wants no floats, and says where
    };
    match serde_saphyr::from_str_with_options::<Raw>(yaml, options) {
        Ok(raw) => Ok(node(raw.0, yaml)),
        Err(error) => {
            let place = error.location().map_or_else(Place::start, |at| place(&at));
            Err(ConfigError::new(place, "", words(error.without_snippet())))
        }
    }
}

/// What is wrong with text that is no tree, in words of ours.
fn words(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let says = |word: &str| text.to_lowercase().contains(word);
    if says("anchor") || says("alias") {
        "anchors and aliases are not accepted here: write the values out".to_owned()
    } else if says("breached: depth") || says("recursion limit") {
        format!("nested deeper than {DEEPEST} levels")
    } else if says("budget breached") {
        format!("has more than {MOST_NODES} values")
    } else if matches!(error, serde_saphyr::Error::MultipleDocuments { .. }) {
        "a second document begins before here: a configuration is one document".to_owned()
    } else {
        let line = text.lines().next().unwrap_or("unreadable");
        let wrong = line.rsplit_once(" at line ").map_or(line, |(wrong, _)| wrong);
        format!("not valid YAML: {wrong}")
    }
}

fn node(raw: Spanned<RawValue>, yaml: &str) -> Node {
    let value = match raw.value {
        RawValue::Null => Value::Null,
        RawValue::Word(word) => Value::Scalar(as_written(&raw.referenced, yaml).unwrap_or(word)),
        RawValue::Text(text) => Value::Scalar(text),
        RawValue::List(items) => Value::List(items.into_iter().map(|raw| node(raw.0, yaml)).collect()),
        RawValue::Map(entries) => {
            Value::Map(entries.into_iter().map(|(raw, value)| (key(raw.0, yaml), node(value.0, yaml))).collect())
        }
    };
    Node { value, place: place(&raw.referenced) }
}

fn key(raw: Spanned<KeyText>, yaml: &str) -> Key {
    let name = match raw.value {
        KeyText::Word(word) => as_written(&raw.referenced, yaml).unwrap_or(word),
        KeyText::Text(text) => text,
    };
    Key { name, place: place(&raw.referenced) }
}

/// A plain word as it stands in the file: `007` is neither 7 nor a number here before the schema says so.
fn as_written(at: &Location, yaml: &str) -> Option<String> {
    let span = at.span();
    let from = usize::try_from(span.byte_offset()?).ok()?;
    let to = from.checked_add(usize::try_from(span.byte_len()?).ok()?)?;
    yaml.get(from..to).map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned)
}

fn place(at: &Location) -> Place {
    Place { line: at.line(), column: at.column() }
}

struct Raw(Spanned<RawValue>);
struct RawKey(Spanned<KeyText>);

enum KeyText {
    /// A number, a boolean or a null, as the parser would write it.
    Word(String),
    Text(String),
}

enum RawValue {
    Null,
    /// A number or a boolean, as the parser would write it.
    Word(String),
    Text(String),
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

impl<'de> Deserialize<'de> for KeyText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(AnyValue)? {
            RawValue::Word(word) => Ok(Self::Word(word)),
            RawValue::Text(text) => Ok(Self::Text(text)),
            RawValue::Null => Ok(Self::Word("null".into())),
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

macro_rules! words_as_text {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E>(self, value: $type) -> Result<RawValue, E> {
            Ok(RawValue::Word(value.to_string()))
        })*
    };
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = RawValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    words_as_text!(
        visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_i128: i128, visit_u128: u128, visit_f64: f64
    );

    fn visit_str<E>(self, text: &str) -> Result<RawValue, E> {
        Ok(RawValue::Text(text.to_owned()))
    }

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
