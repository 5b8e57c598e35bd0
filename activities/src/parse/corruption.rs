//! What every parser must survive: answers cut short at every byte, answers with anything in the place of anything, and
//! bytes that belong nowhere.
//!
//! An error is always fine. What is not is a panic, half an answer that claims to be whole, and "nothing found" read out of
//! an answer that merely lost its list.

use serde_json::{Value, json};

use super::xml::{self, Element};
use crate::{
    model::Status,
    spec::{Answer, Class, Parse, SourceError},
};

/// One way of spoiling an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Corruption {
    /// The rest is missing, and the format can tell.
    Cut,
    /// The rest is missing, and the format cannot tell.
    Torn,
    /// A list, an object or an element became an empty one, which is how a true "nothing found" looks.
    Emptied,
    /// A text became another text: it may mean something else now, and who is to say that it does not.
    Reworded,
    /// Something stands where something else belongs, and no reader could take it for that.
    Replaced,
}

/// Puts a parser through it, beginning from a body that it reads.
pub(crate) fn assert_survives_corruption(name: &str, parse: Parse, body: &[u8]) {
    let whole = parse(body).unwrap_or_else(|error| panic!("{name}: the fixture itself does not read: {error}"));
    for (corruption, body) in corrupted(body, usize::MAX).chain(nonsense()) {
        if let Some(objection) = objection(&whole, corruption, &parse(&body)) {
            panic!("{name}: {objection}, read from {}", String::from_utf8_lossy(&body));
        }
    }
}

/// What is wrong with what was read of a spoilt body, beside what its whole was read as.
pub(crate) fn objection(whole: &Answer, corruption: Corruption, read: &Result<Answer, SourceError>) -> Option<String> {
    match read {
        Ok(answer) if corruption == Corruption::Cut && answer.status == Status::Complete => {
            Some(format!("cut short it is {answer:?}"))
        }
        Ok(answer) => {
            let valid = |answer: &Answer| answer.facts.vat.as_ref().map(|vat| vat.valid);
            let turned = valid(whole) == Some(true) && valid(answer) == Some(false);
            let lost = answer.status == Status::Complete && size(whole) > 0 && size(answer) == 0;
            match corruption {
                Corruption::Emptied => None,
                Corruption::Cut | Corruption::Torn | Corruption::Replaced if turned => {
                    Some("a valid number has become an invalid one".to_owned())
                }
                _ => lost.then(|| "everything is lost, silently".to_owned()),
            }
        }
        Err(error) => {
            let silent = error.class == Class::NotFound && matches!(corruption, Corruption::Cut | Corruption::Replaced);
            (silent || error.class == Class::Ok).then(|| format!("it reads as \"{error}\""))
        }
    }
}

/// How much was learnt.
fn size(answer: &Answer) -> usize {
    let facts = &answer.facts;
    let hits = facts.screening.as_ref().map_or(0, |screening| screening.hits.len());
    let records = facts.companies.len() + facts.establishments.len() + facts.notices.len() + facts.accounts.len();
    records + facts.articles.len() + hits
}

/// Everything that can be done to a body: to each of its elements, and to as many of its bytes, evenly spread.
pub(crate) fn corrupted(body: &[u8], places: usize) -> impl Iterator<Item = (Corruption, Vec<u8>)> {
    let end = body.iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |last| last + 1);
    let json = serde_json::from_slice::<Value>(body).ok();
    let xml = xml::parse(body).ok();
    let html = xml.is_none() && body.trim_ascii_start().starts_with(b"<");
    let cut = if json.is_some() || xml.is_some() || html { Corruption::Cut } else { Corruption::Torn };
    let step = end.div_ceil(places).max(1);
    let cuts = (0..end).step_by(step).map(move |length| (cut, body[..length].to_vec()));
    // One byte after another becomes one that no text has, or that means something to the format.
    let bytes = (0..end).step_by(step.max(end / 500)).enumerate().map(move |(nth, at)| {
        let mut changed = body.to_vec();
        changed[at] = [0x00, 0x01, 0x0b, 0x1f, 0x80, 0xff, b'"', b'<'][nth % 8];
        (Corruption::Reworded, changed)
    });
    let bytes = bytes.filter(move |_| cut == Corruption::Cut);
    let pages = html.then(|| strange_html(body.to_vec()));
    let documents = json.into_iter().flat_map(strange_json).chain(xml.into_iter().flat_map(strange_xml));
    cuts.chain(bytes).chain(documents).chain(pages.into_iter().flatten())
}

/// Bodies that are an answer to nothing.
fn nonsense() -> impl Iterator<Item = (Corruption, Vec<u8>)> {
    let texts =
        ["", " \n", "null", "0", "\"\"", "{}", "[]", "[[]]", "[{}]", "<a/>", "<html></html>", "OK", "\u{feff}", "\0"];
    let deep = ["[", "{\"a\":", "<a>", "<div>"].map(|open| open.repeat(20_000));
    texts.map(str::to_owned).into_iter().chain(deep).map(|text| (Corruption::Emptied, text.into_bytes()))
}

fn strange_json(document: Value) -> impl Iterator<Item = (Corruption, Vec<u8>)> {
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let replacements = [
        (Corruption::Replaced, json!(null)),
        (Corruption::Reworded, json!(true)),
        (Corruption::Reworded, json!(-1.5e300)),
        (Corruption::Reworded, json!("x")),
        (Corruption::Replaced, json!("")),
        (Corruption::Emptied, json!([])),
        (Corruption::Emptied, json!({})),
        (Corruption::Replaced, deep),
    ];
    let places = nodes(&document);
    (0..places).flat_map(move |place| {
        let spoilt = |(corruption, replacement): &(Corruption, Value)| {
            let mut changed = document.clone();
            replace(&mut changed, &mut (place + 1), replacement);
            (*corruption, changed.to_string().into_bytes())
        };
        replacements.iter().map(spoilt).collect::<Vec<_>>()
    })
}

fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(nodes).sum(),
        Value::Object(members) => members.values().map(nodes).sum(),
        _ => 0,
    }
}

/// Replaces the node that the countdown ends at, counting depth first.
fn replace(value: &mut Value, countdown: &mut usize, replacement: &Value) {
    *countdown -= 1;
    if *countdown == 0 {
        *value = replacement.clone();
        return;
    }
    let inner: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(members) => members.values_mut().collect(),
        _ => Vec::new(),
    };
    for inner in inner {
        if *countdown > 0 {
            replace(inner, countdown, replacement);
        }
    }
}

/// Stray tags in the place of every tag, and anything in the place of every text.
fn strange_html(body: Vec<u8>) -> impl Iterator<Item = (Corruption, Vec<u8>)> {
    pieces(&body).into_iter().flat_map(move |(from, to)| {
        // What hides everything after it makes a page that says nothing.
        let spoilt = |(corruption, replacement): (Corruption, &str)| {
            let corruption = if body[from..].starts_with(b"</title") { Corruption::Emptied } else { corruption };
            (corruption, [&body[..from], replacement.as_bytes(), &body[to..]].concat())
        };
        let (tag, text) = (body[from] == b'<', body[from] != b'<');
        let replacements = [
            (tag, Corruption::Replaced, ""),
            (tag, Corruption::Replaced, "<td>"),
            (tag, Corruption::Replaced, "</table><p>"),
            (tag, Corruption::Replaced, "<table>"),
            (tag, Corruption::Emptied, "<!--"),
            (tag, Corruption::Emptied, "<svg><title>"),
            (text, Corruption::Emptied, "<textarea>"),
            (text, Corruption::Reworded, ""),
            (text, Corruption::Reworded, "x&#0;<b>"),
        ];
        let fitting = replacements.into_iter().filter(|(fits, ..)| *fits);
        fitting.map(|(_, corruption, replacement)| spoilt((corruption, replacement))).collect::<Vec<_>>()
    })
}

/// The tags of a page and the texts between them, as ranges.
fn pieces(body: &[u8]) -> Vec<(usize, usize)> {
    let mut pieces = Vec::new();
    let mut from = 0;
    while from < body.len() {
        let tag = body[from] == b'<';
        let mark = if tag { b'>' } else { b'<' };
        let end = body[from..].iter().position(|byte| *byte == mark).map(|at| from + at + usize::from(tag));
        let to = end.unwrap_or(body.len());
        if !body[from..to].trim_ascii().is_empty() {
            pieces.push((from, to));
        }
        from = to;
    }
    pieces
}

fn strange_xml(document: Element) -> impl Iterator<Item = (Corruption, Vec<u8>)> {
    let places = document.places();
    (0..places).flat_map(move |place| {
        let spoilt = |(corruption, replacement): (Corruption, &str)| {
            let mut text = String::new();
            document.write(&mut text, &mut (place + 1), replacement);
            (corruption, text.into_bytes())
        };
        let deep = format!("{}{}", "<x>".repeat(100), "</x>".repeat(100));
        [
            (Corruption::Reworded, "x"),
            (Corruption::Reworded, "-1"),
            (Corruption::Reworded, "&unknown;"),
            (Corruption::Replaced, "<a/>"),
            (Corruption::Replaced, "<a>true</a>"),
            (Corruption::Replaced, &deep),
            (Corruption::Emptied, ""),
        ]
        .map(spoilt)
    })
}
