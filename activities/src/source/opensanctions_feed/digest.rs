//! What is kept of the lists: a line for each organisation and person on them, with what it takes to recognise it.
//!
//! Files of entities are read in the memory of their longest line. Ships, aircraft and securities are not kept.

use std::collections::{BTreeMap, HashSet};

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use serde::{Deserialize, Serialize};

use crate::{
    editions::hex,
    model::Hit,
    parse::json::{self, Node},
    parse::stream::RECORD,
    source::watch_list::entry,
    spec::{SourceError, Take},
};

/// What is kept of all lists together; a tenth is usual.
const KEPT: usize = 256_000_000;

/// An organisation or a person on a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) id: String,
    pub(super) name: String,
    names: Vec<String>,
    /// LEIs and register numbers.
    pub(super) numbers: Vec<String>,
    pub(super) countries: Vec<String>,
    pub(super) schema: Option<String>,
    pub(super) topics: Vec<String>,
    pub(super) datasets: Vec<String>,
    /// Aliases that the list itself calls weak.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    weak: Vec<String>,
    /// Dates of birth.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) births: Vec<String>,
}

/// Entities that a party of an investigation may be.
const KINDS: [&str; 5] = ["Company", "Organization", "LegalEntity", "PublicBody", "Person"];

impl Line {
    /// Its names, and whether the list calls them weak.
    pub(super) fn all_names(&self) -> impl Iterator<Item = (&str, bool)> {
        let strong = std::iter::once(&self.name).chain(&self.names).map(|name| (name.as_str(), false));
        strong.chain(self.weak.iter().map(|name| (name.as_str(), true)))
    }

    /// True if the list names that country.
    pub(super) fn is_of(&self, country: &str) -> bool {
        self.countries.iter().any(|listed| listed.eq_ignore_ascii_case(country))
    }

    /// The entity, if it is of such a kind and listed for a reason.
    ///
    /// # Errors
    /// If it is no entity.
    fn of(entity: Node<'_>) -> Result<Option<Self>, SourceError> {
        let Hit { id, name, schema, topics, datasets, .. } = entry(entity)?;
        let schema = schema.ok_or_else(|| json::lacks("schema"))?;
        if !KINDS.contains(&schema.as_str()) || topics.is_empty() {
            return Ok(None);
        }
        let properties = entity.require("properties")?;
        let all = |names: &[&str]| names.iter().flat_map(|name| properties.get(name).texts()).collect::<Vec<_>>();
        Ok(Some(Self {
            names: all(&["name", "alias", "previousName", "abbreviation"]),
            weak: all(&["weakAlias"]),
            births: all(&["birthDate"]),
            numbers: all(&["leiCode", "registrationNumber", "idNumber", "taxNumber", "vatCode"]),
            countries: all(&["jurisdiction", "country", "mainCountry", "nationality", "citizenship"]),
            id,
            name,
            schema: Some(schema),
            topics,
            datasets,
        }))
    }
}

/// Cuts what comes into lines.
#[derive(Debug, Default)]
struct Lines {
    rest: Vec<u8>,
    left: u64,
}

impl Lines {
    fn take(
        &mut self,
        chunk: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        self.left = self
            .left
            .checked_sub(chunk.len() as u64)
            .ok_or_else(|| SourceError::bad_shape("sent a file larger than it announces"))?;
        let mut chunk = chunk;
        while let Some(end) = chunk.iter().position(|byte| *byte == b'\n') {
            self.grow(&chunk[..end])?;
            each(&std::mem::take(&mut self.rest))?;
            chunk = &chunk[end + 1..];
        }
        self.grow(chunk)
    }

    fn grow(&mut self, part: &[u8]) -> Result<(), SourceError> {
        if (self.rest.len() + part.len()) as u64 > RECORD {
            return Err(SourceError::bad_shape("sent a line without an end"));
        }
        self.rest.extend_from_slice(part);
        Ok(())
    }
}

/// Condenses a file of entities.
pub(super) struct Condenser {
    sha1: Context,
    lines: Lines,
    kept: Kept,
}

#[derive(Debug, Default)]
struct Kept {
    seen: HashSet<String>,
    bytes: Vec<u8>,
    entities: u64,
}

impl Kept {
    fn add(&mut self, line: &[u8]) -> Result<(), SourceError> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let document = json::parse(line)?;
        self.entities += 1;
        let Some(line) = Line::of(Node::root(&document))? else { return Ok(()) };
        if !self.seen.insert(line.id.clone()) {
            return Ok(());
        }
        write(&mut self.bytes, &line);
        if self.bytes.len() > KEPT {
            return Err(SourceError::bad_shape("lists more than it can"));
        }
        Ok(())
    }
}

fn write(bytes: &mut Vec<u8>, line: &Line) {
    if let Ok(text) = serde_json::to_vec(line) {
        bytes.extend_from_slice(&text);
        bytes.push(b'\n');
    }
}

impl Condenser {
    /// For a file of this many bytes.
    pub(super) fn new(size: u64) -> Self {
        let lines = Lines { left: size, ..Lines::default() };
        Self { sha1: Context::new(&SHA1_FOR_LEGACY_USE_ONLY), lines, kept: Kept::default() }
    }

    /// What is kept, if the file was whole.
    pub(super) fn finish(&mut self, sha1: &str) -> Result<Vec<u8>, SourceError> {
        if hex(self.sha1.clone().finish().as_ref()) != sha1 {
            return Err(SourceError::bad_shape("sent a file that does not match its checksum"));
        }
        self.kept.add(&std::mem::take(&mut self.lines.rest))?;
        if self.kept.entities == 0 {
            return Err(json::lacks("entities"));
        }
        Ok(std::mem::take(&mut self.kept.bytes))
    }
}

impl Take for Condenser {
    fn take(&mut self, chunk: &[u8]) -> Result<(), SourceError> {
        self.sha1.update(chunk);
        self.lines.take(chunk, |line| self.kept.add(line))
    }
}

/// What an edition did to an entity.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Change {
    /// It is listed like this; `None` if it is nothing that is kept.
    Put(String, Option<Box<Line>>),
    /// It is not listed any more.
    Remove(String),
}

impl Change {
    /// True for the second of the two.
    pub(super) const fn is_removal(&self) -> bool {
        matches!(self, Self::Remove(_))
    }

    /// How the entity is listed now, if it is kept.
    pub(super) fn line(&self) -> Option<&Line> {
        match self {
            Self::Put(_, line) => line.as_deref(),
            Self::Remove(_) => None,
        }
    }

    fn read(line: &[u8]) -> Result<Self, SourceError> {
        let document = json::parse(line)?;
        let root = Node::root(&document);
        let entity = root.require("entity")?;
        let id = entity.require_text("id")?;
        match root.require_text("op")?.as_str() {
            "ADD" | "MOD" => Ok(Self::Put(id, Line::of(entity)?.map(Box::new))),
            "DEL" => Ok(Self::Remove(id)),
            _ => Err(json::lacks("op")),
        }
    }
}

/// Reads a file of changes.
#[derive(Debug)]
pub(super) struct Changes {
    lines: Lines,
    read: Vec<Change>,
}

impl Changes {
    /// For a file of at most this many bytes.
    pub(super) fn new(most: u64) -> Self {
        Self { lines: Lines { left: most, ..Lines::default() }, read: Vec::new() }
    }

    /// All of them, once the file has ended.
    pub(super) fn finish(&mut self) -> Result<Vec<Change>, SourceError> {
        let last = std::mem::take(&mut self.lines.rest);
        if !last.iter().all(u8::is_ascii_whitespace) {
            self.read.push(Change::read(&last)?);
        }
        Ok(std::mem::take(&mut self.read))
    }
}

impl Take for Changes {
    fn take(&mut self, chunk: &[u8]) -> Result<(), SourceError> {
        self.lines.take(chunk, |line| {
            if !line.iter().all(u8::is_ascii_whitespace) {
                self.read.push(Change::read(line)?);
            }
            Ok(())
        })
    }
}

/// The lines of a copy.
pub(super) fn lines(kept: &[u8]) -> impl Iterator<Item = Result<Line, SourceError>> {
    let broken = |_| SourceError::bad_shape("left a copy that cannot be read");
    let lines = kept.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(move |line| serde_json::from_slice(line).map_err(broken))
}

/// What is kept after these changes.
///
/// # Errors
/// If it does not read.
pub(super) fn apply(kept: &[u8], changes: Vec<Change>) -> Result<Vec<u8>, SourceError> {
    let mut listed: BTreeMap<String, Line> = BTreeMap::new();
    for line in lines(kept) {
        let line = line?;
        listed.insert(line.id.clone(), line);
    }
    for change in changes {
        match change {
            Change::Put(id, Some(line)) => {
                listed.insert(id, *line);
            }
            Change::Put(id, None) | Change::Remove(id) => {
                listed.remove(&id);
            }
        }
    }
    let mut bytes = Vec::with_capacity(kept.len());
    listed.values().for_each(|line| write(&mut bytes, line));
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::search::Wanted;
    use super::*;
    use crate::{editions::sha1, model::Subject, spec::Class};

    const FEED: &[u8] = include_bytes!("../../../../simulator/fixtures/opensanctions_feed/files/entities.ftm.json");
    const DELTA: &[u8] = include_bytes!("../../../../simulator/fixtures/opensanctions_feed/files/entities.delta.json");

    fn condensed(feed: &[u8], piece: usize) -> Result<Vec<u8>, SourceError> {
        let mut condenser = Condenser::new(feed.len() as u64);
        feed.chunks(piece).try_for_each(|chunk| condenser.take(chunk))?;
        condenser.finish(&sha1(feed))
    }

    fn found(kept: &[u8], country: &str, name: &str) -> Vec<(String, f64)> {
        let subject = Subject { name: Some(name.into()), ..Subject::new(country.parse().expect("a country")) };
        let hits = Wanted::of(&subject).search(kept).expect("a copy that reads").hits;
        hits.into_iter().map(|hit| (hit.name, hit.score)).collect()
    }

    #[test]
    fn organisations_and_persons_are_kept() {
        let kept = condensed(FEED, 7).expect("a feed");
        assert_eq!(kept, condensed(FEED, FEED.len()).expect("a feed"), "however it is cut");
        assert_eq!(lines(&kept).count(), 4);
        assert_eq!(found(&kept, "NL", "VOORBEELD Jan"), [("Jan Voorbeeld".to_owned(), 1.0)]);
        assert_eq!(found(&kept, "NL", "EXAMPLE Trading B.V."), [("Example Trading BV".to_owned(), 1.0)]);
        assert_eq!(found(&kept, "NL", "Example Trading"), [("Example Trading BV".to_owned(), 1.0)]);
        assert_eq!(found(&kept, "IR", "Islamic Revolutionary Guard Corps"), [("IRGC".to_owned(), 1.0)]);
        assert_eq!(found(&kept, "CZ", "Alza.cz a.s."), []);
    }

    #[test]
    fn numbers_are_recognised_in_their_country_and_leis_everywhere() {
        let kept = condensed(FEED, 100).expect("a feed");
        let count = |country: &str, id: &str, lei: &str| {
            let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            let subject = Subject::new(country.parse().expect("a country"));
            let subject = Subject { id: known(id), lei: known(lei), name: known("Something else"), ..subject };
            Wanted::of(&subject).search(&kept).expect("a copy").hits.len()
        };
        assert_eq!(count("NO", "923609016", ""), 1);
        assert_eq!(count("DE", "923609016", ""), 0);
        assert_eq!(count("DE", "", "OW6OFBNCKXC4US5C7523"), 1);
    }

    #[test]
    fn a_feed_that_is_not_whole_is_not_believed() {
        for length in [0, 1, 100, FEED.len() - 1] {
            let mut condenser = Condenser::new(FEED.len() as u64);
            let taken = condenser.take(&FEED[..length]);
            assert!(taken.and_then(|()| condenser.finish(&sha1(FEED))).is_err(), "{length}");
        }
        assert_eq!(condensed(b"", 1).expect_err("no entry at all").class, Class::BadShape);
        assert_eq!(condensed(b"\n\n", 1).expect_err("no entry at all").class, Class::BadShape);
        assert!(condensed(b"{\"id\":7}\n", 9).is_err() && condensed(b"<html>\n", 9).is_err());
        let mut condenser = Condenser::new(10);
        assert_eq!(condenser.take(FEED).expect_err("more than announced").class, Class::BadShape);
        let mut condenser = Condenser::new(u64::MAX);
        let endless = vec![b'x'; 700_000];
        assert!(condenser.take(&endless).is_ok() && condenser.take(&endless).is_err(), "a line without an end");
    }

    #[test]
    fn a_huge_feed_takes_no_more_memory_than_a_small_one() {
        let mut condenser = Condenser::new(u64::MAX);
        let whole = condensed(FEED, 1000).expect("a feed").len();
        for _ in 0..2_000 {
            condenser.take(FEED).expect("a chunk");
            assert!(condenser.kept.bytes.len() <= whole && condenser.lines.rest.len() <= FEED.len());
        }
        assert_eq!(condenser.kept.entities, 8_000);
    }

    #[test]
    fn changes_lead_from_one_edition_to_the_next() {
        let kept = condensed(FEED, 100).expect("a feed");
        let mut reader = Changes::new(LARGE);
        DELTA.chunks(13).for_each(|chunk| reader.take(chunk).expect("a chunk"));
        let changes = reader.finish().expect("changes");
        assert_eq!(changes.iter().map(Change::is_removal).collect::<Vec<_>>(), [false, true]);
        let subject = Subject { name: Some("Example Trading BV".into()), ..Subject::new("NL".parse().expect("NL")) };
        assert_eq!(Wanted::of(&subject).among(&changes).hits.len(), 1);
        let removed = vec![Change::Remove("NK-simulatedTrading0000001".into())];
        let after = apply(&kept, removed).expect("applied");
        assert_eq!(found(&after, "NL", "Example Trading BV"), []);
        let back = apply(&after, changes).expect("applied");
        assert_eq!(found(&back, "NL", "Example Trading BV").len(), 1);
        assert!(apply(b"{half", vec![]).is_err());
    }

    const LARGE: u64 = 1_000_000;

    #[test]
    fn half_a_change_is_none() {
        for text in [&br#"{"op":"ADD"}"#[..], br#"{"op":"NEW","entity":{"id":"x"}}"#, br#"{"entity":{"id":"x"}}"#, b"{"]
        {
            let mut reader = Changes::new(LARGE);
            assert!(reader.take(text).and_then(|()| reader.finish().map(drop)).is_err());
        }
    }
}
