//! One request, as an upstream's handler reads it.

use axum::http::HeaderMap;
use serde_json::Value;

use super::fixture::Fixture;
use super::memory::Memory;
use super::xml::element;

/// One request, as an upstream's handler reads it.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    /// The decoded segments of the path below the base.
    pub(crate) segments: Vec<String>,
    /// What the `{}` of the route captured, in order.
    pub(crate) captured: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
    /// The scenario that is set, with its argument.
    pub(crate) scenario: Option<(&'static str, String)>,
    /// The fault `not_found` is set: the upstream knows no company.
    pub(crate) not_found: bool,
    pub(crate) fixtures: &'static [Fixture],
    pub(crate) memory: &'a Memory,
}

impl Call<'_> {
    /// The path below the base, as the upstream would repeat it in an error.
    pub(crate) fn path(&self) -> String {
        format!("/{}", self.segments.join("/"))
    }

    /// The `n`th captured segment, from 0; empty if there is none.
    pub(crate) fn captured(&self, n: usize) -> &str {
        self.captured.get(n).map_or("", String::as_str)
    }

    /// The first value of a query parameter.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A query parameter as a number, or the default; at most a million, so that pages can be multiplied.
    pub(crate) fn number(&self, name: &str, default: usize) -> usize {
        self.query(name).and_then(|value| value.parse().ok()).unwrap_or(default).min(1_000_000)
    }

    /// A header, if it is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok()).filter(|value| !value.is_empty())
    }

    /// Whether the call carries credentials of a scheme (`Bearer`, `Basic`, `ApiKey`); any will do.
    pub(crate) fn authorized(&self, scheme: &str) -> bool {
        let sent = self.header("authorization").and_then(|value| value.split_once(' '));
        sent.is_some_and(|(given, secret)| given.eq_ignore_ascii_case(scheme) && !secret.trim().is_empty())
    }

    /// The text of the first XML element of this local name in the body, whatever its prefix.
    pub(crate) fn element(&self, name: &str) -> Option<&str> {
        element(self.text(), name)
    }

    /// The body as JSON; `null` if it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(self.body).unwrap_or(Value::Null)
    }

    /// The body as text; empty if it is none.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(self.body).unwrap_or("")
    }

    /// The argument of the scenario of this name, if that one is set.
    pub(crate) fn scenario(&self, name: &str) -> Option<&str> {
        self.scenario.as_ref().filter(|(set, _)| *set == name).map(|(_, argument)| argument.as_str())
    }

    /// A fixture by the end of its path (`/923609016.json`), if the upstream may know companies.
    pub(crate) fn fixture(&self, ending: &str) -> Option<&'static [u8]> {
        if self.not_found {
            return None;
        }
        self.fixed(ending)
    }

    /// A fixture that is not about a company (a status page, an index), by the end of its path.
    pub(crate) fn fixed(&self, ending: &str) -> Option<&'static [u8]> {
        self.fixtures.iter().find(|fixture| fixture.path.ends_with(ending)).map(|fixture| fixture.bytes)
    }

    /// A JSON fixture by the end of its path.
    pub(crate) fn record(&self, ending: &str) -> Option<Value> {
        self.fixture(ending).and_then(|bytes| serde_json::from_slice(bytes).ok())
    }

    /// Every JSON fixture below a folder (`gleif/records/`), in the order of the spec.
    pub(crate) fn records(&self, folder: &str) -> Vec<Value> {
        let known = if self.not_found { &[] } else { self.fixtures };
        let files = known.iter().filter(|fixture| fixture.path.starts_with(folder));
        files.filter_map(|fixture| serde_json::from_slice(fixture.bytes).ok()).collect()
    }
}
