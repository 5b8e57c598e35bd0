//! HTML as registers write it: tables of labels and values, and pages about anything but the company asked for.
//!
//! A page cannot say that it is an error, so leniency ends early here. What has no end tag was cut short; what is no page is
//! not searched for rows; and a page without the row that every entry has is an outage, until the register's own words
//! for "not found" say otherwise. Which words those are, its source knows.
//!
//! Browsers build a tree from any bytes, some of them in a time that grows with the square of their number: tags that
//! never close, and formatting that is opened again in every paragraph. Such pages are refused before the tree is built.

use std::collections::{HashMap, HashSet};

use encoding_rs::Encoding;
use scraper::{ElementRef, Html, Node};

use crate::spec::SourceError;

/// The longest page that is read, in bytes. Those of registers stay below a tenth.
const LONGEST: usize = 4_000_000;
/// The most tags.
const TAGS: usize = 40_000;
/// The most tags open at a time.
const DEPTH: usize = 400;
/// The most formatting that is open at a time. It may all be opened again in every paragraph.
const FORMATS: usize = 8;
/// The most different ways to open formatting. This many may stay open, whatever the tags that should close it say.
const STYLES: usize = 24;

/// Elements that have no end, or whose end goes without saying.
const LEAVES: [&str; 27] = [
    "td", "tr", "th", "br", "p", "li", "dt", "dd", "tbody", "thead", "tfoot", "caption", "colgroup", "col", "option",
    "optgroup", "img", "input", "hr", "meta", "link", "area", "base", "embed", "source", "track", "wbr",
];
/// Elements that browsers open again after whatever closed them.
const FORMATTING: [&str; 13] =
    ["b", "i", "em", "strong", "font", "u", "s", "big", "code", "nobr", "small", "strike", "tt"];

/// A whole page.
#[derive(Debug)]
pub struct Page(Html);

/// An element of a page.
#[derive(Debug, Clone, Copy)]
pub struct Element<'a>(ElementRef<'a>);

/// A row of a table: its cells, in order.
#[derive(Debug, Clone)]
pub struct Row<'a>(Vec<Element<'a>>);

/// A link of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The address as it is written: mostly relative.
    pub target: String,
    /// What it says.
    pub text: String,
}

/// Bytes to text: by its byte order mark, else as the header says, else as the page itself says, else as its source is
/// known to write.
#[must_use]
pub fn decode(body: &[u8], content_type: Option<&str>, otherwise: &'static Encoding) -> String {
    let named = |text: &str| {
        let text = text.to_ascii_lowercase();
        let (_, rest) = text.split_once("charset")?;
        let rest = rest.trim_start().strip_prefix('=')?.trim_start_matches([' ', '"', '\'']);
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-_:.".contains(c))).unwrap_or(rest.len());
        Encoding::for_label(&rest.as_bytes()[..end])
    };
    let head = String::from_utf8_lossy(&body[..body.len().min(1024)]);
    let encoding = content_type.and_then(named).or_else(|| named(&head)).unwrap_or(otherwise);
    encoding.decode(body).0.into_owned()
}

impl Page {
    /// Parses a page in whatever encoding it names, else in the one given.
    ///
    /// # Errors
    /// An outage, if there is nothing or the end is missing; a bad shape if it is no page, or none that is meant to be read.
    pub fn read(body: &[u8], content_type: Option<&str>, otherwise: &'static Encoding) -> Result<Self, SourceError> {
        match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
            None => return Err(SourceError::unavailable("answered nothing at all")),
            Some(b'{' | b'[') => return Err(SourceError::bad_shape("answered data where a page was promised")),
            Some(_) if body.len() > LONGEST => return Err(excessive()),
            Some(_) => {}
        }
        let text = decode(body, content_type, otherwise);
        if !text.trim_start_matches('\u{feff}').trim_start().starts_with('<') {
            return Err(SourceError::bad_shape("answered something that is no page"));
        }
        if !ends(&text) {
            return Err(SourceError::unavailable("broke off its answer"));
        }
        sane(&text)?;
        Ok(Self(Html::parse_document(&text)))
    }

    /// All of the page.
    #[must_use]
    pub fn root(&self) -> Element<'_> {
        Element(self.0.root_element())
    }
}

impl<'a> Element<'a> {
    /// Every element of that name in it, in the order of the page.
    pub fn all(self, name: &str) -> impl Iterator<Item = Element<'a>> {
        self.0.descendent_elements().skip(1).filter(move |element| element.value().name() == name).map(Element)
    }

    /// The first element with that class.
    #[must_use]
    pub fn of_class(self, class: &str) -> Option<Self> {
        let is = |element: &ElementRef<'_>| element.value().classes().any(|own| own == class);
        self.0.descendent_elements().find(is).map(Self)
    }

    /// Its name, in small letters.
    #[must_use]
    pub fn name(self) -> &'a str {
        self.0.value().name()
    }

    /// An attribute.
    #[must_use]
    pub fn attribute(self, name: &str) -> Option<&'a str> {
        self.0.value().attr(name)
    }

    /// What it says, on one line: white space of any kind and breaks are one space.
    #[must_use]
    pub fn text(self) -> String {
        self.lines().join(" ")
    }

    /// What it says, line by line as a browser breaks them; blank lines are left out.
    #[must_use]
    pub fn lines(self) -> Vec<String> {
        self.lines_without("")
    }

    /// The same, without what is inside elements of that class.
    #[must_use]
    pub fn lines_without(self, class: &str) -> Vec<String> {
        let mut lines = vec![String::new()];
        let mut walk = vec![(*self.0, false)];
        while let Some((node, leaving)) = walk.pop() {
            match node.value() {
                Node::Text(text) => {
                    if let Some(line) = lines.last_mut() {
                        line.push_str(text);
                    }
                }
                Node::Element(element) => {
                    if BREAKS.contains(&element.name()) {
                        lines.push(String::new());
                    }
                    let silent =
                        matches!(element.name(), "script" | "style") || element.classes().any(|own| own == class);
                    if !leaving && !silent {
                        walk.push((node, true));
                        walk.extend(node.children().rev().map(|child| (child, false)));
                    }
                }
                _ => {}
            }
        }
        lines.iter().map(|line| collapsed(line)).filter(|line| !line.is_empty()).collect()
    }

    /// The rows of all tables in it. A row around another table is there for its looks and left out.
    pub fn rows(self) -> impl Iterator<Item = Row<'a>> {
        self.every_row().filter(|row| row.0.iter().all(|cell| cell.is_text()))
    }

    fn every_row(self) -> impl Iterator<Item = Row<'a>> {
        self.all("tr").map(|row| {
            let cells = row.0.child_elements().filter(|cell| matches!(cell.value().name(), "td" | "th"));
            Row(cells.map(Element).collect())
        })
    }

    /// The cell beside the one with any of these labels. Case, apostrophes and a colon at the end do not matter.
    #[must_use]
    pub fn labelled(self, labels: &[&str]) -> Option<Element<'a>> {
        // What a label belongs to may be a table.
        self.every_row().find_map(|row| {
            let place = row.0.iter().position(|cell| cell.is_text() && is_any(&cell.text(), labels))?;
            row.0.get(place + 1).copied()
        })
    }

    /// The rows below the heading with any of these titles, up to the next heading.
    #[must_use]
    pub fn section(self, titles: &[&str]) -> Vec<Row<'a>> {
        let titled = |row: &Row<'_>| row.heading().is_some_and(|title| is_any(&title, titles));
        let below = self.rows().skip_while(|row| !titled(row)).skip(1);
        below.take_while(|row| row.heading().is_none()).collect()
    }

    /// The links in it, in order.
    pub fn links(self) -> impl Iterator<Item = Link> {
        self.all("a")
            .filter_map(|link| Some(Link { target: link.attribute("href")?.trim().to_owned(), text: link.text() }))
    }

    /// No table is in it.
    fn is_text(self) -> bool {
        self.all("table").next().is_none()
    }
}

impl<'a> Row<'a> {
    /// Its cells.
    #[must_use]
    pub fn cells(&self) -> &[Element<'a>] {
        &self.0
    }

    /// What the cell at that place says, if it is there and says anything.
    #[must_use]
    pub fn text(&self, place: usize) -> Option<String> {
        self.0.get(place).map(|cell| cell.text()).filter(|text| !text.is_empty())
    }

    fn heading(&self) -> Option<String> {
        let [cell] = self.0.as_slice() else { return None };
        ["h1", "h2", "h3", "h4"].iter().find_map(|name| cell.all(name).next()).map(Element::text)
    }
}

impl Link {
    /// A parameter of its address. Only what can stand there unescaped is read: numbers and tokens.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        let query = query.split('#').next().unwrap_or_default();
        let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
        (!value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || "-_.~".contains(c))).then_some(value)
    }
}

const BREAKS: [&str; 16] =
    ["br", "p", "div", "table", "tr", "td", "th", "ul", "ol", "li", "dl", "dd", "dt", "h1", "h2", "h3"];

/// White space of any kind, the non-breaking too, is one space.
fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_any(text: &str, labels: &[&str]) -> bool {
    let text = text.trim_end_matches([':', ' ']).replace('\u{2019}', "'").to_lowercase();
    labels.iter().any(|label| label.to_lowercase() == text)
}

fn excessive() -> SourceError {
    SourceError::bad_shape("answered a page too large or too deeply nested to be meant for reading")
}

/// Whether a browser's tree stays small. Counts tags without building anything.
fn sane(text: &str) -> Result<(), SourceError> {
    let mut open: HashMap<&str, usize> = HashMap::new();
    let mut styles = HashSet::new();
    let (mut tags, mut depth, mut formats) = (0_usize, 0_usize, 0_usize);
    for (at, _) in text.match_indices('<') {
        let rest = &text[at + 1..];
        let (closing, rest) = rest.strip_prefix('/').map_or((false, rest), |rest| (true, rest));
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let name = &rest[..end];
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            continue;
        }
        tags += 1;
        if listed(&LEAVES, name) {
            continue;
        }
        let count = open.entry(name).or_default();
        let format = usize::from(listed(&FORMATTING, name));
        if !closing {
            *count += 1;
            depth += 1;
            formats += format;
            if format > 0 {
                styles.insert(rest.split('>').next().unwrap_or_default());
            }
        } else if *count > 0 {
            *count -= 1;
            depth -= 1;
            formats -= format;
        }
        if tags > TAGS || depth > DEPTH || formats > FORMATS || styles.len() > STYLES {
            return Err(excessive());
        }
    }
    Ok(())
}

fn listed(names: &[&str], name: &str) -> bool {
    names.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// Whether the page has its last tag. Comments may follow.
fn ends(text: &str) -> bool {
    text.rmatch_indices("</").any(|(at, _)| {
        let tag = &text.as_bytes()[at + 2..];
        let name = tag.get(..4).is_some_and(|name| name.eq_ignore_ascii_case(b"html"));
        name && tag.get(4..).is_some_and(|rest| rest.trim_ascii_start().starts_with(b">"))
    })
}

#[cfg(test)]
mod tests;
