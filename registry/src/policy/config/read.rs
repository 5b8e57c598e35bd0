//! Reading the tree: blocks of known keys, and scalars that become durations, rates and counts.

use std::{num::NonZeroU32, time::Duration};

use super::{
    error::{ConfigError, Place},
    tree::{Key, Node, Value},
};
use crate::policy::Rate;

/// No duration in a configuration is longer: ten years.
const LONGEST: Duration = Duration::from_secs(3650 * 86_400);

/// Units of time and their length in seconds.
const UNITS: [(&str, f64); 10] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("min", 60.0),
    ("h", 3600.0),
    ("d", 86_400.0),
    ("w", 604_800.0),
];

/// A value that knows its place and its key's path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) node: &'a Node,
    pub(crate) key: &'a str,
}

/// A mapping.
pub(crate) struct Block<'a> {
    entries: &'a [(Key, Node)],
    path: &'a str,
}

/// An entry of a [`Block`].
pub(crate) struct EntryAt<'a> {
    pub(crate) name: &'a str,
    /// Where the name stands.
    pub(crate) place: Place,
    /// The name with its path.
    pub(crate) path: String,
    pub(crate) node: &'a Node,
}

impl<'a> Block<'a> {
    /// The mapping at `at`; every key must be one of `known`, and none may stand twice.
    pub(crate) fn of(at: At<'a>, known: &[&str]) -> Result<Self, ConfigError> {
        let block = Self::open(at)?;
        match block.entries.iter().find(|(key, _)| !known.contains(&key.name.as_str())) {
            None => Ok(block),
            Some((key, _)) => {
                let message = format!("unknown key; valid keys here: {}", known.join(", "));
                Err(ConfigError::new(key.place, &join(at.key, &key.name), message))
            }
        }
    }

    /// The mapping at `at`, with keys of the user's choice, none twice.
    pub(crate) fn open(at: At<'a>) -> Result<Self, ConfigError> {
        let entries: &[_] = match &at.node.value {
            Value::Map(entries) => entries,
            Value::Null => &[],
            Value::Scalar(_) | Value::List(_) => return Err(at.error("expected a block of `key: value` entries")),
        };
        let mut seen = std::collections::BTreeMap::new();
        for (key, _) in entries {
            if key.name == "<<" {
                let message = "merge keys are not accepted here: write the values out";
                return Err(ConfigError::new(key.place, &join(at.key, "<<"), message));
            }
            if let Some(first) = seen.insert(key.name.as_str(), key.place) {
                let message = format!("duplicate key; the first one is on line {}", first.line);
                return Err(ConfigError::new(key.place, &join(at.key, &key.name), message));
            }
        }
        Ok(Self { entries, path: at.key })
    }

    /// Every entry.
    pub(crate) fn entries(&self) -> impl Iterator<Item = EntryAt<'a>> {
        self.entries.iter().map(|(key, node)| EntryAt {
            name: &key.name,
            place: key.place,
            path: join(self.path, &key.name),
            node,
        })
    }

    /// The value of `key`.
    pub(crate) fn node(&self, key: &str) -> Option<&'a Node> {
        self.entries.iter().find(|(k, _)| k.name == key).map(|(_, node)| node)
    }

    /// What `key` is, read by `read`; `None` if it is not there.
    pub(crate) fn get<T>(
        &self,
        key: &str,
        read: impl FnOnce(At<'_>) -> Result<T, ConfigError>,
    ) -> Result<Option<T>, ConfigError> {
        match self.entries.iter().find(|(k, _)| k.name == key) {
            Some((_, node)) => read(At { node, key: &join(self.path, key) }).map(Some),
            None => Ok(None),
        }
    }
}

pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

impl At<'_> {
    pub(crate) fn error(&self, message: impl AsRef<str>) -> ConfigError {
        ConfigError::new(self.node.place, self.key, message)
    }

    /// Where the value of `path`, keys with dots between them, stands below here.
    pub(crate) fn place_of(&self, path: &str) -> Option<Place> {
        let mut node = self.node;
        for name in path.split('.') {
            let Value::Map(entries) = &node.value else { return None };
            node = entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)?;
        }
        Some(node.place)
    }

    /// `None` if `off` stands here, and else what `read` makes of it.
    pub(crate) fn unless_off<T>(
        self,
        read: impl FnOnce(Self) -> Result<T, ConfigError>,
    ) -> Result<Option<T>, ConfigError> {
        if matches!(&self.node.value, Value::Scalar(text) if text.trim() == "off") {
            Ok(None)
        } else {
            read(self).map(Some)
        }
    }

    /// A plain word or number, as text.
    pub(crate) fn text(&self) -> Result<&str, ConfigError> {
        match &self.node.value {
            Value::Scalar(text) => Ok(text.trim()),
            Value::Null => Err(self.error("has no value")),
            Value::List(_) | Value::Map(_) => Err(self.error("expected a single value, not a list or a block")),
        }
    }

    /// A whole number of at least 1.
    pub(crate) fn count(&self) -> Result<NonZeroU32, ConfigError> {
        let text = self.text()?;
        let number: i128 =
            text.parse().map_err(|_| self.error(format!("expected a whole number of at least 1, not `{text}`")))?;
        if number < 1 {
            return Err(self.error(format!("must be at least 1, not {number} (leave the key out for the default)")));
        }
        u32::try_from(number)
            .ok()
            .and_then(NonZeroU32::new)
            .ok_or_else(|| self.error(format!("must be at most {}, not {number}", u32::MAX)))
    }

    /// A duration with its unit, longer than nothing.
    pub(crate) fn duration(&self) -> Result<Duration, ConfigError> {
        let duration = self.duration_or_zero()?;
        if duration.is_zero() { Err(self.error("must be longer than zero")) } else { Ok(duration) }
    }

    /// A duration with its unit.
    pub(crate) fn duration_or_zero(&self) -> Result<Duration, ConfigError> {
        parse_duration(self.text()?).map_err(|message| self.error(message))
    }

    /// A share such as `50%`, more than nothing.
    pub(crate) fn rate(&self) -> Result<Rate, ConfigError> {
        let text = self.text()?;
        let bad = || self.error(format!("expected a percentage such as 50%, not `{text}`"));
        let percent: f64 = text.strip_suffix('%').ok_or_else(bad)?.trim().parse().map_err(|_| bad())?;
        if !percent.is_finite() || percent <= 0.0 || percent > 100.0 {
            return Err(self.error(format!("must be more than 0% and at most 100%, not {text}")));
        }
        // Rounded to the nearest millionth, and never down to nothing.
        Rate::from_ppm((percent * 10_000.0).round().max(1.0) as u32).ok_or_else(bad)
    }

    /// A decimal number between 1 and 1000, in thousandths.
    pub(crate) fn factor_milli(&self) -> Result<u32, ConfigError> {
        let text = self.text()?;
        let factor: f64 = text.parse().map_err(|_| self.error(format!("expected a number such as 2, not `{text}`")))?;
        if !(1.0..=1000.0).contains(&factor) {
            return Err(self.error(format!("must be between 1 and 1000, not {text}")));
        }
        Ok((factor * 1000.0).round() as u32)
    }

    /// One of a closed set of words.
    pub(crate) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, ConfigError> {
        let text = self.text()?;
        words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
            let valid: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            self.error(format!("expected one of {}, not `{text}`", valid.join(", ")))
        })
    }

    /// A list of names.
    pub(crate) fn names(&self) -> Result<Vec<String>, ConfigError> {
        let Value::List(items) = &self.node.value else { return Err(self.error("expected a list of names")) };
        items
            .iter()
            .map(|node| {
                let at = At { node, key: self.key };
                match at.text()? {
                    "" => Err(at.error("a name must not be empty")),
                    name => Ok(name.to_owned()),
                }
            })
            .collect()
    }
}

/// A duration such as `30s`, `2500ms`, `1.5h`, `30d`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("expected a duration with its unit such as 30s, 2500ms or 10m, not `{text}`");
    let split = text.find(char::is_alphabetic).ok_or_else(bad)?;
    let (number, unit) = text.split_at(split);
    let scale = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale).ok_or_else(bad)?;
    let seconds = number.trim().parse::<f64>().map_err(|_| bad())? * scale;
    if seconds < 0.0 {
        return Err(format!("must not be negative, but is {text}"));
    }
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if duration <= LONGEST => Ok(duration),
        _ => Err(format!("must be at most ten years, not {text}")),
    }
}
