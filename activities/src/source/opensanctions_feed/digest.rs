//! What is kept of the lists: a line for each organisation that is on them, with what it takes to recognise it.
//!
//! Files of entities are read in the memory of their longest line. Persons are not kept: a company is looked for.

use std::collections::{BTreeMap, HashSet};

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use serde::{Deserialize, Serialize};

use crate::{
    editions::hex,
    model::{Hit, Subject},
    parse::json::{self, Node},
    parse::stream::RECORD,
    parse::text,
    source::opensanctions::entry,
    spec::{SourceError, Take},
};

/// What is kept of all lists together; a tenth is usual.
const KEPT: usize = 256_000_000;

/// The best candidates.
const HITS: usize = 20;

/// An organisation on a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Line {
    id: String,
    name: String,
    names: Vec<String>,
    /// LEIs and register numbers.
    numbers: Vec<String>,
    countries: Vec<String>,
    schema: Option<String>,
    topics: Vec<String>,
    datasets: Vec<String>,
}

impl Line {
    /// The entity, if it is an organisation and listed for a reason.
    ///
    /// # Errors
    /// If it is no entity.
    fn of(entity: Node<'_>) -> Result<Option<Self>, SourceError> {
        let Hit { id, name, schema, topics, datasets, .. } = entry(entity)?;
        let schema = schema.ok_or_else(|| json::lacks("schema"))?;
        let organisation = matches!(schema.as_str(), "Company" | "Organization" | "LegalEntity" | "PublicBody");
        if !organisation || topics.is_empty() {
            return Ok(None);
        }
        let properties = entity.require("properties")?;
        let all = |names: &[&str]| names.iter().flat_map(|name| properties.get(name).texts()).collect::<Vec<_>>();
        Ok(Some(Self {
            names: all(&["name", "alias", "weakAlias", "previousName"]),
            numbers: all(&["leiCode", "registrationNumber", "idNumber", "taxNumber", "vatCode"]),
            countries: all(&["jurisdiction", "country", "mainCountry"]),
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
    Put(String, Option<Line>),
    /// It is not listed any more.
    Remove(String),
}

impl Change {
    /// True for the second of the two.
    pub(super) const fn is_removal(&self) -> bool {
        matches!(self, Self::Remove(_))
    }

    fn read(line: &[u8]) -> Result<Self, SourceError> {
        let document = json::parse(line)?;
        let root = Node::root(&document);
        let entity = root.require("entity")?;
        let id = entity.require_text("id")?;
        match root.require_text("op")?.as_str() {
            "ADD" | "MOD" => Ok(Self::Put(id, Line::of(entity)?)),
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

fn lines(kept: &[u8]) -> impl Iterator<Item = Result<Line, SourceError>> {
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
                listed.insert(id, line);
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

/// Whom to look for.
#[derive(Debug)]
pub(super) struct Likeness {
    words: Vec<String>,
    country: String,
    id: Option<String>,
    lei: Option<String>,
}

impl Likeness {
    /// The subject, if its name has anything to compare.
    pub(super) fn of(subject: &Subject) -> Option<Self> {
        let words = words(subject.name.as_deref()?);
        let country = subject.country.as_str().to_lowercase();
        let (id, lei) = (subject.id.as_deref().map(bare), subject.lei.as_deref().map(bare));
        (!words.is_empty()).then_some(Self { words, country, id, lei })
    }

    /// How much an entry resembles it, 0 to 1: the same number or the same words, or all words of the shorter name.
    fn score(&self, line: &Line) -> f64 {
        let here = line.countries.iter().any(|country| country.eq_ignore_ascii_case(&self.country));
        let has = |number: &Option<String>| number.as_ref().is_some_and(|n| line.numbers.iter().any(|m| bare(m) == *n));
        if has(&self.lei) || (here && has(&self.id)) {
            return 1.0;
        }
        let alike = |name: &String| {
            let theirs = words(name);
            let within = |a: &[String], b: &[String]| !a.is_empty() && a.iter().all(|word| b.contains(word));
            match (within(&self.words, &theirs), within(&theirs, &self.words)) {
                (true, true) => 1.0,
                (true, false) | (false, true) if theirs.len().min(self.words.len()) > 1 => 0.7,
                _ => 0.0,
            }
        };
        line.names.iter().chain([&line.name]).map(alike).fold(0.0, f64::max)
    }

    fn hit(&self, line: &Line) -> Option<Hit> {
        let score = self.score(line);
        let Line { id, name, schema, topics, datasets, .. } = line.clone();
        (score > 0.0).then_some(Hit { id, name, schema, score, matched: score >= 1.0, topics, datasets })
    }
}

fn bare(number: &str) -> String {
    number.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}

/// The words of a name: `a.s.` is one, `A/S` are two.
fn words(name: &str) -> Vec<String> {
    text::words(&name.replace('.', ""))
}

fn best(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.sort_by(|a, b| b.score.total_cmp(&a.score));
    hits.truncate(HITS);
    hits
}

/// The entries of a copy that resemble it, best first.
///
/// # Errors
/// If the copy does not read: a gap is not a clear screening.
pub(super) fn search(kept: &[u8], likeness: &Likeness) -> Result<Vec<Hit>, SourceError> {
    let mut hits = Vec::new();
    for line in lines(kept) {
        hits.extend(likeness.hit(&line?));
    }
    Ok(best(hits))
}

/// Those among changes.
pub(super) fn among(changes: &[Change], likeness: &Likeness) -> Vec<Hit> {
    let line = |change: &Change| match change {
        Change::Put(_, Some(line)) => likeness.hit(line),
        _ => None,
    };
    best(changes.iter().filter_map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{editions::sha1, spec::Class};

    const FEED: &[u8] = include_bytes!("../../../../simulator/fixtures/opensanctions_feed/files/entities.ftm.json");
    const DELTA: &[u8] = include_bytes!("../../../../simulator/fixtures/opensanctions_feed/files/entities.delta.json");

    fn condensed(feed: &[u8], piece: usize) -> Result<Vec<u8>, SourceError> {
        let mut condenser = Condenser::new(feed.len() as u64);
        feed.chunks(piece).try_for_each(|chunk| condenser.take(chunk))?;
        condenser.finish(&sha1(feed))
    }

    fn found(kept: &[u8], country: &str, name: &str) -> Vec<(String, f64)> {
        let subject = Subject { name: Some(name.into()), ..Subject::new(country.parse().expect("a country")) };
        let hits = search(kept, &Likeness::of(&subject).expect("a name")).expect("a copy that reads");
        hits.into_iter().map(|hit| (hit.name, hit.score)).collect()
    }

    #[test]
    fn organisations_are_kept_and_persons_are_not() {
        let kept = condensed(FEED, 7).expect("a feed");
        assert_eq!(kept, condensed(FEED, FEED.len()).expect("a feed"), "however it is cut");
        assert_eq!(lines(&kept).count(), 3);
        assert!(!String::from_utf8_lossy(&kept).contains("Voorbeeld"));
        assert_eq!(found(&kept, "NL", "EXAMPLE Trading B.V."), [("Example Trading BV".to_owned(), 1.0)]);
        assert_eq!(found(&kept, "NL", "Example Trading"), [("Example Trading BV".to_owned(), 0.7)]);
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
            search(&kept, &Likeness::of(&subject).expect("a name")).expect("a copy").len()
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
        assert_eq!(among(&changes, &Likeness::of(&subject).expect("a name")).len(), 1);
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
