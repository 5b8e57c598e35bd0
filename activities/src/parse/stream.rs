//! Large JSON, a record at a time: a file of 200 MB is read in the memory of its longest record.
//!
//! A server could send a larger file, or one record without an end, so both are limited; what comes out of
//! a decompression counts, not what goes into it.

use std::{cell::Cell, fmt, io, rc::Rc};

use serde::{
    Deserialize as _, Deserializer as _,
    de::{DeserializeSeed, SeqAccess, Visitor},
};
use serde_json::Value;

use crate::spec::SourceError;

/// The longest record.
pub const RECORD: u64 = 1_000_000;

/// Reads as far as the limits allow.
struct Limited<R> {
    inner: R,
    /// Of the record being read.
    record: Rc<Cell<u64>>,
    whole: u64,
}

impl<R: io::Read> io::Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.record.get().min(self.whole)).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 && !buffer.is_empty() {
            return Err(io::Error::other("too large"));
        }
        let n = self.inner.read(&mut buffer[..most])?;
        self.record.set(self.record.get() - n as u64);
        self.whole -= n as u64;
        Ok(n)
    }
}

/// Hands every object that lies in a list, or in a list of lists, to `each`. Returns how many there were.
///
/// # Errors
/// An outage if the text breaks off, a bad shape if it is no such JSON or exceeds `whole` bytes or [`RECORD`].
pub fn records(text: impl io::Read, whole: u64, each: &mut dyn FnMut(Value)) -> Result<u64, SourceError> {
    let record = Rc::new(Cell::new(RECORD));
    // Bytes are counted as they are consumed, so the buffer lies below.
    let limited = Limited { inner: io::BufReader::with_capacity(1 << 16, text), record: record.clone(), whole };
    let mut reader = serde_json::Deserializer::from_reader(limited);
    let mut count = 0;
    let mut counted = |value: Value| {
        record.set(RECORD);
        count += 1;
        each(value);
    };
    let list = List { each: &mut counted, depth: 0 };
    reader.deserialize_any(list).and_then(|()| reader.end()).map_err(|error| source_error(&error))?;
    Ok(count)
}

fn source_error(error: &serde_json::Error) -> SourceError {
    match error.classify() {
        serde_json::error::Category::Eof => SourceError::unavailable("broke off its file"),
        serde_json::error::Category::Io if error.to_string().contains("too large") => {
            SourceError::bad_shape("sent a file or a record larger than it can be")
        }
        serde_json::error::Category::Io => SourceError::bad_shape("sent a file that does not unpack"),
        _ => SourceError::bad_shape("sent a file of another shape"),
    }
}

/// A list on the way to the records.
struct List<'a> {
    each: &'a mut dyn FnMut(Value),
    depth: u8,
}

/// A record, or a list of them.
struct Item<'a>(List<'a>);

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Item(List { each: &mut *self.each, depth: self.depth + 1 }))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, members: A) -> Result<(), A::Error> {
        if self.depth == 0 {
            return Err(serde::de::Error::invalid_type(serde::de::Unexpected::Map, &self));
        }
        let record = Value::deserialize(serde::de::value::MapAccessDeserializer::new(members))?;
        (self.each)(record);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Item<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        if self.0.depth > 2 {
            return Err(serde::de::Error::custom("nested more deeply than lists of lists"));
        }
        reader.deserialize_any(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Class;

    fn read(text: &[u8], whole: u64) -> Result<Vec<String>, Class> {
        let mut seen = Vec::new();
        let count = records(text, whole, &mut |record| seen.push(record["a"].to_string()));
        count.map(|count| assert_eq!(count, seen.len() as u64)).map(|()| seen).map_err(|error| error.class)
    }

    #[test]
    fn records_come_out_of_lists_and_lists_of_lists() {
        assert_eq!(read(br#"[{"a":1},{"a":{"b":[2]}}]"#, 1000), Ok(vec!["1".into(), r#"{"b":[2]}"#.into()]));
        assert_eq!(read(br#"[[{"a":0}],[{"a":1},{"a":2}]]"#, 1000), Ok(vec!["0".into(), "1".into(), "2".into()]));
        assert_eq!(read(b"[]", 1000), Ok(vec![]));
    }

    #[test]
    fn nothing_else_is_a_list_of_records() {
        let body = br#"[[{"a":0}],[{"a":1}]]"#;
        for length in 0..body.len() {
            assert_eq!(read(&body[..length], 1000), Err(Class::Unavailable), "cut at {length}");
        }
        let deep = "[".repeat(10_000);
        for body in [&b"{}"[..], b"7", b"[7]", b"[[[{}]]]", b"[{}]x", b"<html>", deep.as_bytes()] {
            assert_eq!(read(body, 100_000), Err(Class::BadShape), "{}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn neither_the_whole_nor_a_record_may_be_without_end() {
        let whole = format!("[{}]", vec![r#"{"a":1}"#; 100].join(","));
        assert_eq!(read(whole.as_bytes(), 1000).map(|seen| seen.len()), Ok(100));
        assert_eq!(read(whole.as_bytes(), 500), Err(Class::BadShape));
        let record = format!(r#"[{{"a":"{}"}}]"#, "x".repeat(2_000_000));
        assert_eq!(read(record.as_bytes(), u64::MAX), Err(Class::BadShape));
    }
}
