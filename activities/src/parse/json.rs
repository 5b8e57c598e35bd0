//! JSON as registers write it: numbers in quotes, single things where lists are promised, raw control characters.
//!
//! Leniency ends where an answer could be misread. A value that is optional may be missing or odd and is then simply not
//! known; a value that the conclusion rests on is *required*, and without it the answer is [`SourceError`]. In particular a
//! list that should be there and is not must never read as "nothing found".

use jiff::{Timestamp, civil, tz::TimeZone};
use serde_json::Value;

use super::{
    date::iso,
    place::{Child, Place},
};
use crate::spec::SourceError;

/// A place in a JSON document, or the absence of one.
pub type Node<'a> = Place<'a, Value>;

impl Child for Value {
    fn child(&self, name: &str) -> Option<&Self> {
        self.get(name).filter(|value| !value.is_null())
    }
}

/// Parses a body.
///
/// # Errors
/// An outage, if it is a page or was cut short; a bad shape if it is neither that nor JSON.
pub fn parse(body: &[u8]) -> Result<Value, SourceError> {
    begins_as_data(body)?;
    serde_json::from_slice(body).or_else(|error| {
        if error.is_eof() {
            return Err(SourceError::unavailable("broke off its answer"));
        }
        // A raw line break inside a string is the usual reason; outside of strings a space means the same.
        let tamed: Vec<u8> = body.iter().map(|byte| if *byte < b' ' { b' ' } else { *byte }).collect();
        serde_json::from_str(&String::from_utf8_lossy(&tamed)).map_err(|error| {
            if error.is_eof() {
                SourceError::unavailable("broke off its answer")
            } else {
                SourceError::bad_shape("answered something that is no JSON")
            }
        })
    })
}

/// Whether a body begins as data may begin.
///
/// # Errors
/// An outage, if there is nothing in it or a page.
pub fn begins_as_data(body: &[u8]) -> Result<(), SourceError> {
    match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => Err(SourceError::unavailable("answered nothing at all")),
        Some(b'<') => Err(SourceError::unavailable("answered a page where data was promised: an outage or a block")),
        Some(_) => Ok(()),
    }
}

impl<'a> Node<'a> {
    /// The root of a document.
    #[must_use]
    pub const fn root(value: &'a Value) -> Self {
        Self(Some(value))
    }

    /// A text, also where the source writes a number or a truth value; blank is absent.
    #[must_use]
    pub fn text(self) -> Option<String> {
        let text = match self.0? {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            _ => return None,
        };
        Some(text).filter(|text| !text.is_empty())
    }

    /// A number, also in quotes.
    #[must_use]
    pub fn number(self) -> Option<f64> {
        let number = match self.0? {
            Value::Number(number) => number.as_f64()?,
            Value::String(text) => text.trim().parse().ok()?,
            _ => return None,
        };
        Some(number).filter(|number: &f64| number.is_finite())
    }

    /// A whole number that is not negative, also in quotes.
    #[must_use]
    pub fn count(self) -> Option<u64> {
        match self.0? {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// Yes or no, also in quotes.
    #[must_use]
    pub fn flag(self) -> Option<bool> {
        match self.0? {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
                "true" => Some(true),
                "false" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    /// A time, or the first moment of a day.
    #[must_use]
    pub fn time(self) -> Option<Timestamp> {
        moment(&self.text()?)
    }

    /// A time that the source writes as its clock on the wall shows it. In the hour that comes twice it is the first.
    #[must_use]
    pub fn local_time(self, zone: &str) -> Option<Timestamp> {
        local(&self.text()?, TimeZone::get(zone).unwrap_or(TimeZone::UTC))
    }

    /// The items of a list; a single thing is a list of one, nothing is an empty one.
    pub fn items(self) -> impl Iterator<Item = Node<'a>> {
        let items: &'a [Value] = match self.0 {
            Some(Value::Array(items)) => items,
            Some(single) => std::slice::from_ref(single),
            None => &[],
        };
        items.iter().map(Node::root)
    }

    /// The members of an object with their names.
    pub fn members(self) -> impl Iterator<Item = (&'a str, Node<'a>)> {
        let members = self.0.and_then(Value::as_object);
        members.into_iter().flatten().map(|(name, value)| (name.as_str(), Node::root(value)))
    }

    /// The texts of a list.
    #[must_use]
    pub fn texts(self) -> Vec<String> {
        self.items().filter_map(Self::text).collect()
    }

    /// The document inside a string, as some sources nest one; a part that is no string is what it is. `None` if the string
    /// is no JSON.
    #[must_use]
    pub fn unwrapped(self) -> Option<Value> {
        match self.0? {
            Value::String(text) => serde_json::from_str(text).ok(),
            other => Some(other.clone()),
        }
    }

    /// The texts of these members on one line, as of the parts of a street; `None` if there are none.
    #[must_use]
    pub fn joined(self, names: &[&str], separator: &str) -> Option<String> {
        let parts: Vec<_> = names.iter().filter_map(|name| self.get(name).text()).collect();
        (!parts.is_empty()).then(|| parts.join(separator))
    }

    /// The date in a text, however it is written.
    #[must_use]
    pub fn date(self) -> Option<String> {
        iso(&self.text()?)
    }

    /// The member of that name, which must be there.
    ///
    /// # Errors
    /// If it is not.
    pub fn require(self, name: &'static str) -> Result<Self, SourceError> {
        let node = self.get(name);
        if node.exists() { Ok(node) } else { Err(lacks(name)) }
    }

    /// A text that must be there.
    ///
    /// # Errors
    /// If it is not.
    pub fn require_text(self, name: &'static str) -> Result<String, SourceError> {
        self.get(name).text().ok_or_else(|| lacks(name))
    }

    /// The first of these texts that is there, and one of them must be.
    ///
    /// # Errors
    /// If none is.
    pub fn require_any(self, names: &[&'static str]) -> Result<String, SourceError> {
        let found = names.iter().find_map(|name| self.get(name).text());
        found.ok_or_else(|| lacks(names.first().copied().unwrap_or_default()))
    }

    /// A list of objects that must be there, though it may be empty. A single object is a list of one.
    ///
    /// # Errors
    /// If it is not, or contains anything else.
    pub fn require_list(self, name: &'static str) -> Result<Vec<Self>, SourceError> {
        let list = self.require(name)?;
        let items: Vec<_> = list.items().collect();
        if items.iter().all(|item| item.is_object()) { Ok(items) } else { Err(lacks(name)) }
    }

    /// True for an object.
    #[must_use]
    pub fn is_object(self) -> bool {
        self.0.is_some_and(Value::is_object)
    }
}

/// A time, or the first moment of a day. Where no zone is named it is UTC.
pub(super) fn moment(text: &str) -> Option<Timestamp> {
    local(text, TimeZone::UTC)
}

/// The same, where no zone is named in this one.
fn local(text: &str, zone: TimeZone) -> Option<Timestamp> {
    text.parse().ok().or_else(|| {
        let date: civil::DateTime =
            text.parse().or_else(|_| text.parse::<civil::Date>().map(civil::DateTime::from)).ok()?;
        date.to_zoned(zone).ok().map(|zoned| zoned.timestamp())
    })
}

/// The answer lacks something that the conclusion rests on.
#[must_use]
pub fn lacks(name: &str) -> SourceError {
    SourceError::bad_shape(format!("answered without a usable '{name}'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Class;

    #[test]
    fn broken_json_has_errors_of_its_own() {
        let class = |body: &[u8]| parse(body).expect_err("no JSON").class;
        assert_eq!(class(b""), Class::Unavailable);
        assert_eq!(class(b" \n"), Class::Unavailable);
        assert_eq!(class(b"\n<!DOCTYPE html><p>maintenance"), Class::Unavailable);
        assert_eq!(class(br#"{"a":[1,2"#), Class::Unavailable);
        assert_eq!(class(b"Account is suspended"), Class::BadShape);
        assert_eq!(class(&[b'['; 100_000]), Class::BadShape, "nested too deeply to be meant");
    }

    #[test]
    fn raw_control_characters_and_foreign_bytes_are_survived() {
        let value = parse(b"{\"a\":\"one\ntwo\x01\",\n \"b\":\"\xff\"}").expect("readable");
        assert_eq!(Node::root(&value).get("a").text().as_deref(), Some("one two"));
    }

    #[test]
    fn values_are_read_as_they_are_meant() {
        let value = serde_json::json!({
            "n": "12.5", "c": 7, "q": "8", "t": " x ", "blank": " ", "null": null, "yes": "True", "one": {"a": 1},
            "date": "2026-11-30", "local": "2026-11-30T02:00:00", "time": "2026-11-30T02:00:00Z", "nan": "NaN"
        });
        let node = Node::root(&value);
        assert_eq!(node.get("n").number(), Some(12.5));
        assert_eq!(node.get("nan").number(), None);
        assert_eq!((node.get("c").text().as_deref(), node.get("q").count()), (Some("7"), Some(8)));
        assert_eq!((node.get("t").text().as_deref(), node.get("blank").text()), (Some("x"), None));
        assert_eq!((node.get("yes").flag(), node.get("null").exists()), (Some(true), false));
        assert_eq!(node.at("one.a").count(), Some(1));
        assert_eq!(node.at("one.b.c").text(), None);
        assert_eq!(node.get("one").items().count(), 1);
        assert_eq!(node.get("null").items().count(), 0);
        let times = ["date", "local", "time"].map(|name| node.get(name).time().map(Timestamp::as_second));
        if let Ok(zone) = TimeZone::get("Europe/Paris") {
            let at = |text| local(text, zone.clone()).map(|time| time.to_string());
            assert_eq!(at("2026-11-30T02:00:00").as_deref(), Some("2026-11-30T01:00:00Z"));
            assert_eq!(at("2026-10-25T02:30:00").as_deref(), Some("2026-10-25T00:30:00Z"), "the first of two");
            assert_eq!(at("2026-03-29T02:30:00").as_deref(), Some("2026-03-29T01:30:00Z"), "which there is not");
            assert_eq!(at("2026-11-30T02:00:00Z").as_deref(), Some("2026-11-30T02:00:00Z"));
        }
        assert_eq!(times, [Some(1_795_996_800), Some(1_796_004_000), Some(1_796_004_000)]);
        assert!(node.require_list("c").is_err() && node.require_list("gone").is_err());
        assert_eq!(node.require_list("one").map(|list| list.len()), Ok(1));
        assert_eq!(node.joined(&["t", "blank", "gone", "c"], " ").as_deref(), Some("x 7"));
        assert_eq!((node.joined(&["blank"], " "), node.get("local").date().as_deref()), (None, Some("2026-11-30")));
    }
}
