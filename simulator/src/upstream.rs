//! An upstream is a row: where it lives, what it answers to which call, its fixtures, its own faults.
//!
//! Handlers are pure: a [`Call`] goes in, an [`Answer`] comes out. They see no socket and no clock; faults, counting and
//! delays happen in front of them, once for all upstreams. What an upstream must remember between calls (a job that is
//! still running, a token that wears out) is in its [`Memory`].

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::HeaderMap;
use serde_json::Value;

use super::answer::Answer;
use super::fault::Scenario;

/// A file of `fixtures/`, embedded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fixture {
    /// The path below `fixtures/`.
    pub(super) path: &'static str,
    /// What is in it.
    pub(super) bytes: &'static [u8],
}

/// Embeds files of `fixtures/`; each is named once, in the row of the upstream that serves it.
macro_rules! fixtures {
    ($($path:literal),* $(,)?) => {
        &[$($crate::upstream::Fixture {
            path: $path,
            bytes: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/", $path)),
        }),*]
    };
}
pub(super) use fixtures;

/// How many calls an upstream allows in a window, and what it says to the next one.
#[derive(Debug)]
pub(super) struct Rate {
    pub(super) calls: usize,
    pub(super) window: Duration,
    pub(super) refusal: fn() -> Answer,
}

/// One operation of an upstream.
#[derive(Debug)]
pub(super) struct Route {
    /// The name under which its calls are counted.
    pub(super) operation: &'static str,
    pub(super) method: &'static str,
    /// The path below the base: literal segments, `{}` for one captured, `{*}` for all that remain.
    pub(super) path: &'static str,
    pub(super) answer: fn(&Call) -> Answer,
}

/// A `GET` route.
pub(super) const fn get(operation: &'static str, path: &'static str, answer: fn(&Call) -> Answer) -> Route {
    Route { operation, method: "GET", path, answer }
}

/// A `POST` route.
pub(super) const fn post(operation: &'static str, path: &'static str, answer: fn(&Call) -> Answer) -> Route {
    Route { operation, method: "POST", path, answer }
}

/// One upstream.
#[derive(Debug)]
pub(super) struct Upstream {
    /// The name, as in the catalog of sources; a second host of a source has its own (`vatsense`, `nbb_official`).
    pub(super) name: &'static str,
    /// The public origins whose links in answers must lead back to the simulator; the first is the upstream's own.
    pub(super) hosts: &'static [&'static str],
    /// The path that the base URL ends in.
    pub(super) base: &'static str,
    pub(super) routes: &'static [Route],
    /// What it says to a call that matches no route.
    pub(super) unrouted: fn() -> Answer,
    pub(super) fixtures: &'static [Fixture],
    pub(super) scenarios: &'static [Scenario],
    /// The part of the upstream that a call is about, where calls are also counted by it: a member state, a data set.
    pub(super) split: fn(&Call) -> Option<String>,
    /// Enforced while the fault `enforce_rate` is set.
    pub(super) rate: Option<Rate>,
    /// Environment variables of its credentials and values that it accepts.
    pub(super) credentials: &'static [(&'static str, &'static str)],
}

/// A row with nothing in it, for `..BLANK`.
pub(super) const BLANK: Upstream = Upstream {
    name: "",
    hosts: &[],
    base: "",
    routes: &[],
    unrouted: moved,
    fixtures: &[],
    scenarios: &[],
    split: |_| None,
    rate: None,
    credentials: &[],
};

fn moved() -> Answer {
    Answer::html(404, super::answer::HTML_MOVED)
}

/// What one upstream remembers: counters from zero, and notes.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    counters: BTreeMap<String, u64>,
    notes: BTreeMap<String, String>,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes something down under a key.
    pub(super) fn note(&self, key: &str, text: String) {
        self.lock().notes.insert(key.to_owned(), text);
    }

    /// What was written down under a key.
    pub(super) fn noted(&self, key: &str) -> Option<String> {
        self.lock().notes.get(key).cloned()
    }

    /// Adds `n` and returns the new value.
    pub(super) fn add(&self, counter: &str, n: u64) -> u64 {
        let mut remembered = self.lock();
        let value = remembered.counters.entry(counter.to_owned()).or_default();
        *value += n;
        *value
    }

    /// The value of a counter, if anything was ever added to it.
    pub(super) fn get(&self, counter: &str) -> Option<u64> {
        self.lock().counters.get(counter).copied()
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        *self.lock() = Remembered::default();
    }

    /// All counters.
    pub(super) fn all(&self) -> BTreeMap<String, u64> {
        self.lock().counters.clone()
    }
}

/// One request, as an upstream's handler sees it.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// The decoded segments of the path below the base.
    pub(super) segments: Vec<String>,
    /// What the `{}` of the route captured, in order.
    pub(super) captured: Vec<String>,
    pub(super) query: Vec<(String, String)>,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
    /// The upstream's own fault that is set, with its argument.
    pub(super) scenario: Option<(&'static str, String)>,
    /// No company is known.
    pub(super) blank: bool,
    pub(super) fixtures: &'static [Fixture],
    pub(super) memory: &'a Memory,
}

impl Call<'_> {
    /// The path below the base, as the upstream would repeat it in an error.
    pub(super) fn path(&self) -> String {
        format!("/{}", self.segments.join("/"))
    }

    /// The `n`th captured segment, from 0; empty if there is none.
    pub(super) fn captured(&self, n: usize) -> &str {
        self.captured.get(n).map_or("", String::as_str)
    }

    /// The first value of a query parameter.
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A query parameter as a number, or the default; at most a million, so that pages can be multiplied.
    pub(super) fn number(&self, name: &str, default: usize) -> usize {
        self.query(name).and_then(|value| value.parse().ok()).unwrap_or(default).min(1_000_000)
    }

    /// A header, where it is text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok()).filter(|value| !value.is_empty())
    }

    /// Whether the call carries credentials of a scheme (`Bearer`, `Basic`, `ApiKey`); any will do.
    pub(super) fn authorized(&self, scheme: &str) -> bool {
        let sent = self.header("authorization").and_then(|value| value.split_once(' '));
        sent.is_some_and(|(given, secret)| given.eq_ignore_ascii_case(scheme) && !secret.trim().is_empty())
    }

    /// The text of the first XML element of this local name in the body, whatever its prefix.
    pub(super) fn element(&self, name: &str) -> Option<&str> {
        element(self.text(), name)
    }

    /// The body as JSON; `null` where it is none.
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(self.body).unwrap_or(Value::Null)
    }

    /// The body as text; empty where it is none.
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(self.body).unwrap_or("")
    }

    /// The argument of the upstream's own fault of this name, if that is the one set.
    pub(super) fn scenario(&self, name: &str) -> Option<&str> {
        self.scenario.as_ref().filter(|(set, _)| *set == name).map(|(_, argument)| argument.as_str())
    }

    /// A fixture by the end of its path (`/923609016.json`), unless no company is known.
    pub(super) fn fixture(&self, ending: &str) -> Option<&'static [u8]> {
        if self.blank {
            return None;
        }
        self.fixed(ending)
    }

    /// A fixture that is not about a company (a status page, an index).
    pub(super) fn fixed(&self, ending: &str) -> Option<&'static [u8]> {
        self.fixtures.iter().find(|fixture| fixture.path.ends_with(ending)).map(|fixture| fixture.bytes)
    }

    /// A JSON fixture by the end of its path.
    pub(super) fn record(&self, ending: &str) -> Option<Value> {
        self.fixture(ending).and_then(|bytes| serde_json::from_slice(bytes).ok())
    }

    /// Every JSON fixture below a folder (`gleif/records/`), in the order of the row.
    pub(super) fn records(&self, folder: &str) -> Vec<Value> {
        let known = if self.blank { &[] } else { self.fixtures };
        let files = known.iter().filter(|fixture| fixture.path.starts_with(folder));
        files.filter_map(|fixture| serde_json::from_slice(fixture.bytes).ok()).collect()
    }
}

fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let opens = |(at, _): &(usize, &str)| {
        let before = xml[..*at].rsplit('<').next().unwrap_or_default();
        let (tag, after) = (before.trim_end_matches(':'), &xml[*at + name.len()..]);
        (before.is_empty() || before.ends_with(':') && tag.chars().all(char::is_alphanumeric))
            && after.starts_with(['>', ' '])
    };
    let (at, _) = xml.match_indices(name).find(opens)?;
    let text = xml[at..].split_once('>')?.1;
    text.split_once('<').map(|(text, _)| text.trim())
}

/// Text as it must be written inside an XML element.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Whether a search for `query` finds something called `name`: every word of the query begins a word of the name.
///
/// Case, accents and punctuation do not matter, as in the registers' own search boxes.
pub(super) fn matches(name: &str, query: &str) -> bool {
    let name = words(name);
    let query = words(query);
    !query.is_empty() && query.iter().all(|q| name.iter().any(|n| n.starts_with(q)))
}

fn words(text: &str) -> Vec<String> {
    let plain: String = text.chars().flat_map(char::to_lowercase).map(plain).collect();
    plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn plain(c: char) -> char {
    const FOLDS: &[(&str, char)] = &[
        ("áàâäãåą", 'a'),
        ("čćç", 'c'),
        ("ď", 'd'),
        ("éèêëěę", 'e'),
        ("íìîï", 'i'),
        ("ľĺł", 'l'),
        ("ňñń", 'n'),
        ("óòôöõøő", 'o'),
        ("řŕ", 'r'),
        ("šśșş", 's'),
        ("ťțţ", 't'),
        ("úùûüůű", 'u'),
        ("ýÿ", 'y'),
        ("žźż", 'z'),
    ];
    FOLDS.iter().find(|(accented, _)| accented.contains(c)).map_or(c, |(_, plain)| *plain)
}

/// The page of `items` that `start` and `size` select.
pub(super) fn page(items: Vec<Value>, start: usize, size: usize) -> Vec<Value> {
    items.into_iter().skip(start).take(size).collect()
}

/// Splits a path into decoded segments.
pub(super) fn segments(path: &str) -> Vec<String> {
    path.split('/').filter(|segment| !segment.is_empty()).map(decode).collect()
}

/// Splits a query string into decoded pairs.
pub(super) fn pairs(query: &str) -> Vec<(String, String)> {
    let split = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(&key.replace('+', " ")), decode(&value.replace('+', " ")))
    };
    query.split('&').filter(|pair| !pair.is_empty()).map(split).collect()
}

fn decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let hex = if byte == b'%' { tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()) } else { None };
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                rest = &tail[2..];
            }
            None => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

impl Route {
    /// What the path captures, if the route matches.
    pub(super) fn captures(&self, method: &str, segments: &[String]) -> Option<Vec<String>> {
        if self.method != method {
            return None;
        }
        let mut captured = Vec::new();
        let mut given = segments.iter();
        for expected in self.path.split('/').filter(|segment| !segment.is_empty()) {
            match expected {
                "{*}" => {
                    captured.push(given.by_ref().map(String::as_str).collect::<Vec<_>>().join("/"));
                }
                "{}" => captured.push(given.next()?.clone()),
                literal => {
                    if given.next()? != literal {
                        return None;
                    }
                }
            }
        }
        given.next().is_none().then_some(captured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_capture_what_their_braces_name() {
        let route = get("op", "/a/{}/b/{*}", |_| moved());
        assert_eq!(route.captures("GET", &segments("/a/x%20y/b/c/d")), Some(vec!["x y".into(), "c/d".into()]));
        assert_eq!(route.captures("GET", &segments("/a/x/c/d")), None);
        assert_eq!(route.captures("POST", &segments("/a/x/b/c")), None);
        assert_eq!(get("op", "/a", |_| moved()).captures("GET", &segments("/a/b")), None);
    }

    #[test]
    fn queries_decode_plus_percent_and_broken_escapes() {
        assert_eq!(
            pairs("q=a+b%26c&filter%5Bx%5D=%zz&flag"),
            [("q".into(), "a b&c".into()), ("filter[x]".into(), "%zz".into()), ("flag".into(), String::new())]
        );
    }

    #[test]
    fn elements_are_found_under_any_prefix() {
        let xml = "<e:Envelope><a:check><a:countryCode x='1'> DE </a:countryCode><code>7</code></a:check></e:Envelope>";
        assert_eq!(
            (element(xml, "countryCode"), element(xml, "code"), element(xml, "other")),
            (Some("DE"), Some("7"), None)
        );
    }

    #[test]
    fn names_match_by_beginnings_of_words() {
        assert!(matches("ČEZ, a. s.", "cez"));
        assert!(matches("NOVO NORDISK A/S", "Novo Nordisk"));
        assert!(matches("Alza.cz a.s.", "alza"));
        assert!(!matches("EQUINOR ASA", "quinor"));
        assert!(!matches("EQUINOR ASA", ""));
    }
}
