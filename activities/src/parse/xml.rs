//! XML as SOAP services write it: any prefixes, values as text, one element where several are promised.
//!
//! The reader is made for answers of unknown servers. Names lose their namespaces, because services change prefixes from one
//! release to the next and no two elements here differ by namespace alone. A document type is refused and entities beyond
//! XML's own five stay as they are written, so nothing expands; depth and number of elements have limits, so nothing piles
//! up either. As with JSON, what a conclusion rests on is *required*, and everything else may be missing.

use encoding_rs::{Encoding, UTF_8};
use jiff::Timestamp;
use quick_xml::{
    Reader, XmlVersion,
    errors::{Error, SyntaxError},
    escape::resolve_predefined_entity,
    events::{BytesStart, Event},
};

use super::json::{lacks, moment};
use super::place::{Child, Place};
use crate::spec::SourceError;

/// Deepest nesting that is read. SOAP answers have about ten levels.
const DEPTH: usize = 64;

/// Most elements and attributes that are read.
const NODES: usize = 200_000;

/// An element with everything inside it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    text: String,
    children: Vec<Element>,
}

/// A place in an XML document, or the absence of one.
pub type Node<'a> = Place<'a, Element>;

impl Child for Element {
    fn child(&self, name: &str) -> Option<&Self> {
        self.root().all(name).next().and_then(|node| node.0)
    }
}

/// Parses a body, in the encoding that it declares.
///
/// # Errors
/// An outage, if it is a page or was cut short; a bad shape if it is neither that nor XML.
pub fn parse(body: &[u8]) -> Result<Element, SourceError> {
    let text = decoded(body);
    let text = text.trim_start();
    if text.is_empty() {
        return Err(SourceError::unavailable("answered nothing at all"));
    }
    if !text.starts_with('<') {
        return Err(no_xml());
    }
    let mut reader = Reader::from_str(text);
    reader.config_mut().allow_dangling_amp = true; // as in "Smith & Sons", unescaped
    let (mut open, mut root, mut nodes) = (Vec::<Element>::new(), None, 0);
    loop {
        let event = reader.read_event().map_err(|error| malformed(&error))?;
        let closed = match event {
            Event::Start(tag) => {
                open.push(element(&tag, root.is_some(), &mut nodes)?);
                if open.len() > DEPTH {
                    return Err(SourceError::bad_shape("answered XML that is nested too deeply to be meant"));
                }
                None
            }
            Event::Empty(tag) => Some(element(&tag, root.is_some(), &mut nodes)?),
            Event::End(_) => open.pop(),
            Event::Text(text) => write(&mut open, &text.xml10_content()),
            Event::CData(text) => write(&mut open, &text.xml10_content()),
            Event::GeneralRef(reference) => {
                let character = reference.resolve_char_ref().ok().flatten().map(String::from);
                let known = character.or_else(|| resolve_predefined_entity(&reference).map(str::to_owned));
                write(&mut open, &known.unwrap_or_else(|| format!("&{};", &*reference)))
            }
            Event::DocType(kind) if is_html(kind.split_ascii_whitespace().next().unwrap_or_default()) => {
                return Err(page());
            }
            Event::DocType(_) => return Err(SourceError::bad_shape("answered XML with a document type of its own")),
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) => None,
            Event::Eof => break,
        };
        if let Some(element) = closed {
            match open.last_mut() {
                Some(parent) => parent.children.push(element),
                None => root = Some(element),
            }
        }
    }
    root.filter(|_| open.is_empty()).ok_or_else(cut_short)
}

/// Text for the inside of an element.
#[must_use]
pub fn escape(text: &str) -> String {
    quick_xml::escape::escape(text).into_owned()
}

/// The body as text: by its byte order mark, else by its declaration, else as UTF-8. Bytes that mean nothing become `�`.
fn decoded(body: &[u8]) -> std::borrow::Cow<'_, str> {
    let head = String::from_utf8_lossy(&body[..body.len().min(200)]);
    let declaration = head.split_once("?>").map(|(declaration, _)| declaration);
    let declared = declaration.and_then(|text| text.split_once("encoding")).and_then(|(_, rest)| {
        let label = rest.trim_start_matches(|c: char| c == '=' || c.is_ascii_whitespace());
        let quote = label.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        Encoding::for_label(label[1..].split(quote).next()?.as_bytes())
    });
    declared.unwrap_or(UTF_8).decode(body).0
}

fn element(tag: &BytesStart<'_>, second: bool, nodes: &mut usize) -> Result<Element, SourceError> {
    let name = tag.local_name().into_inner().to_owned();
    if *nodes == 0 && is_html(&name) {
        return Err(page());
    }
    if second {
        return Err(no_xml());
    }
    let mut attributes = Vec::new();
    for attribute in tag.attributes().with_checks(false).flatten() {
        let value = attribute
            .normalized_value(XmlVersion::Implicit1_0)
            .map_or_else(|_| attribute.value.to_string(), String::from);
        attributes.push((attribute.key.local_name().into_inner().to_owned(), value));
        if *nodes + attributes.len() > NODES {
            break;
        }
    }
    *nodes += 1 + attributes.len();
    if *nodes > NODES {
        return Err(SourceError::bad_shape("answered more XML elements than can be meant"));
    }
    Ok(Element { name, attributes, ..Element::default() })
}

/// Adds to the innermost open element; text outside of the root is dropped.
fn write(open: &mut [Element], text: &str) -> Option<Element> {
    if let Some(element) = open.last_mut() {
        element.text.push_str(text);
    }
    None
}

fn is_html(name: &str) -> bool {
    name.eq_ignore_ascii_case("html")
}

fn page() -> SourceError {
    SourceError::unavailable("answered a page where data was promised: an outage or a block")
}

fn no_xml() -> SourceError {
    SourceError::bad_shape("answered something that is no XML")
}

fn cut_short() -> SourceError {
    SourceError::unavailable("broke off its answer")
}

fn malformed(error: &Error) -> SourceError {
    match error {
        Error::Syntax(SyntaxError::InvalidBangMarkup) => no_xml(),
        Error::Syntax(_) => cut_short(), // all others are about something that begins and does not end
        _ => no_xml(),
    }
}

impl Element {
    /// The element as a place to start from.
    #[must_use]
    pub const fn root(&self) -> Node<'_> {
        Place(Some(self))
    }
}

/// For the suite, which spoils documents.
#[cfg(test)]
impl Element {
    /// How many elements there are.
    pub(super) fn places(&self) -> usize {
        1 + self.children.iter().map(Self::places).sum::<usize>()
    }

    /// Writes the document with `replacement` in the place of what is inside the element that the countdown ends at.
    pub(super) fn write(&self, out: &mut String, countdown: &mut usize, replacement: &str) {
        *countdown = countdown.wrapping_sub(1);
        out.push_str(&format!("<{}", self.name));
        for (name, value) in &self.attributes {
            out.push_str(&format!(" {name}=\"{}\"", escape(value)));
        }
        out.push('>');
        if *countdown == 0 {
            out.push_str(replacement);
            *countdown = usize::MAX;
        } else {
            out.push_str(&escape(&self.text));
            for child in &self.children {
                child.write(out, countdown, replacement);
            }
        }
        out.push_str(&format!("</{}>", self.name));
    }
}

impl<'a> Node<'a> {
    /// The name without its prefix.
    #[must_use]
    pub fn name(self) -> &'a str {
        self.0.map_or("", |element| &element.name)
    }

    /// The elements directly inside.
    pub fn children(self) -> impl Iterator<Item = Node<'a>> {
        let children: &'a [Element] = self.0.map_or(&[], |element| &element.children);
        children.iter().map(|element| Place(Some(element)))
    }

    /// The elements of that name directly inside, none, one or many. Those marked as nil are none.
    pub fn all(self, name: &str) -> impl Iterator<Item = Node<'a>> {
        self.children().filter(move |child| child.name() == name && child.attribute("nil") != Some("true"))
    }

    /// An attribute of that local name.
    #[must_use]
    pub fn attribute(self, name: &str) -> Option<&'a str> {
        self.0?.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The text directly inside; blank is absent.
    #[must_use]
    pub fn text(self) -> Option<&'a str> {
        Some(self.0?.text.trim()).filter(|text| !text.is_empty())
    }

    /// A truth value, in either spelling of XML.
    #[must_use]
    pub fn flag(self) -> Option<bool> {
        match self.text()? {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        }
    }

    /// A whole number that is not negative.
    #[must_use]
    pub fn count(self) -> Option<u64> {
        self.text()?.parse().ok()
    }

    /// A time, or the first moment of a day.
    #[must_use]
    pub fn time(self) -> Option<Timestamp> {
        moment(self.text()?)
    }

    /// The first element of that name directly inside, which must be there.
    ///
    /// # Errors
    /// If it is not.
    pub fn require(self, name: &str) -> Result<Self, SourceError> {
        let node = self.get(name);
        if node.exists() { Ok(node) } else { Err(lacks(name)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Class;

    fn class(body: &[u8]) -> Class {
        parse(body).expect_err("no XML").class
    }

    #[test]
    fn names_lose_their_prefixes_and_values_are_text() {
        let document = parse(
            b"\xef\xbb\xbf<?xml version=\"1.0\"?><!-- x --><a:list xmlns:a='u' a:kind=\"x &amp; y\">\
              <b:one> 1 </b:one><one>T &lt;<![CDATA[&]]>&#233;</one><two i:nil='true'>3</two><ok>true</ok>\
              <at>2026-11-30T08:00:00+01:00</at><deep><er>x</er></deep></a:list>\n",
        )
        .expect("XML");
        let list = document.root();
        assert_eq!((list.name(), list.attribute("kind")), ("list", Some("x & y")));
        assert_eq!(list.all("one").map(Node::text).collect::<Vec<_>>(), [Some("1"), Some("T <&é")]);
        assert_eq!((list.get("one").count(), list.get("ok").flag()), (Some(1), Some(true)));
        assert!(!list.get("two").exists() && list.require("two").is_err(), "nil is nothing");
        assert_eq!(list.at("deep.er").text(), Some("x"));
        assert_eq!(list.at("gone.er").text(), None);
        assert_eq!(list.get("at").time().map(Timestamp::as_second), Some(1_796_022_000));
    }

    #[test]
    fn broken_xml_has_errors_of_its_own() {
        assert_eq!(class(b" \n"), Class::Unavailable);
        assert_eq!(class(b"{\"a\":1}"), Class::BadShape);
        assert_eq!(class(b"<!DOCTYPE html>\n<html><p>maintenance"), Class::Unavailable);
        assert_eq!(class(b"<HTML><br></HTML>"), Class::Unavailable);
        for cut in [&b"<a><b>"[..], b"<a", b"<a b='", b"<?xml version", b"<!-- x", b"<a><![CDATA[x"] {
            assert_eq!(class(cut), Class::Unavailable, "{}", String::from_utf8_lossy(cut));
        }
        for odd in [&b"<a></b>"[..], b"<a/><b/>", b"<a><!BANG></a>", b"</a>"] {
            assert_eq!(class(odd), Class::BadShape, "{}", String::from_utf8_lossy(odd));
        }
    }

    #[test]
    fn nothing_expands_and_nothing_piles_up() {
        let bomb = b"<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><x>&b;</x>";
        assert_eq!(class(bomb), Class::BadShape);
        let document = parse(b"<x>&nbsp;&b;</x>").expect("XML");
        assert_eq!(document.root().text(), Some("&nbsp;&b;"), "unknown entities stay as they are written");
        assert_eq!(class("<a>".repeat(1_000_000).as_bytes()), Class::BadShape);
        assert_eq!(class(format!("<r>{}</r>", "<a/>".repeat(NODES)).as_bytes()), Class::BadShape);
        assert_eq!(class(format!("<r {}/>", "a='' ".repeat(NODES + 1)).as_bytes()), Class::BadShape);
    }

    #[test]
    fn foreign_bytes_encodings_and_ampersands_are_survived() {
        let text = |body: &[u8]| parse(body).expect("XML").root().text().map(str::to_owned);
        assert_eq!(text(b"<?xml version='1.0' encoding='windows-1250'?><a>\x9akoda</a>").as_deref(), Some("škoda"));
        assert_eq!(text(b"<a>Smith & Sons\x01\xff</a>").as_deref(), Some("Smith & Sons\u{1}\u{fffd}"));
        assert_eq!(text(b"<?xml encoding='nonsense'?><a>x</a>").as_deref(), Some("x"));
    }
}
