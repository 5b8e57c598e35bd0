//! The Slovak commercial register three ways: its JSON, its HTML in windows-1250, and the statistical office's copy.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::spec::{Call, EMPTY, UpstreamSpec, fixtures, get, matches, page};

/// The spec of the JSON service.
pub(crate) static JSON: UpstreamSpec = UpstreamSpec {
    name: "registry_sk",
    hosts: &["https://sluzby.orsr.sk"],
    base: "/api",
    routes: &[get("search", "/legal-person", search), get("extract", "/legal-person/extract", extract)],
    unrouted: || problem(404, "Not Found"),
    fixtures: fixtures![
        "registry_sk/extracts/Sa-1001-T.json",
        "registry_sk/extracts/Sa-1973-B.json",
        "registry_sk/extracts/Sro-3586-B.json",
        "registry_sk/persons/31333532.json",
        "registry_sk/persons/35757442.json",
    ],
    ..EMPTY
};

/// The spec of the HTML site.
pub(crate) static HTML: UpstreamSpec = UpstreamSpec {
    name: "registry_sk_html",
    hosts: &["https://www.orsr.sk"],
    routes: &[
        get("search", "/hladaj_ico.asp", |call| {
            let number = call.query("ICO").unwrap_or_default();
            windows_1250(call.fixture(&format!("/search/{number}.html")).or_else(|| call.fixed("/nothing.html")))
        }),
        get("search_name", "/hladaj_subjekt.asp", |call| {
            let name = call.query("OBMENO").unwrap_or_default();
            let known = if call.not_found { &[] } else { call.fixtures };
            let mut files = known.iter().filter(|file| file.path.contains("/search/"));
            let found = files.find(|file| matches(&String::from_utf8_lossy(file.bytes), name)).map(|file| file.bytes);
            windows_1250(found.or_else(|| call.fixed("/nothing.html")))
        }),
        get("extract", "/vypis.asp", |call| {
            let id = call.query("ID").unwrap_or_default();
            windows_1250(call.fixture(&format!("/extracts/{id}.html")).or_else(|| call.fixed("/nothing.html")))
        }),
    ],
    fixtures: fixtures![
        "registry_sk_html/extracts/1319.html",
        "registry_sk_html/nothing.html",
        "registry_sk_html/search/31333532.html",
    ],
    ..EMPTY
};

/// The spec of the statistical office's register of legal persons.
pub(crate) static RPO: UpstreamSpec = UpstreamSpec {
    name: "registry_sk_rpo",
    hosts: &["https://api.statistics.sk"],
    base: "/rpo/v1",
    routes: &[get("search", "/search", rpo_search), get("entity", "/entity/{}", rpo_entity)],
    unrouted: || Answer::json(404, json!({"message": "Not Found"})),
    fixtures: fixtures!["registry_sk_rpo/31333532.json", "registry_sk_rpo/35757442.json"],
    ..EMPTY
};

fn problem(status: u16, title: &str) -> Answer {
    Answer::json(status, json!({"title": title, "status": status, "errors": {}}))
}

fn search(call: &Call) -> Answer {
    let query = call.query("Filter.CorporateBodyFullNameOrRegistrationNumber").unwrap_or_default();
    if query.is_empty() {
        return problem(400, "One or more validation errors occurred.");
    }
    let files = call.records("registry_sk/persons/").into_iter();
    let rows = files.flat_map(|rows| rows.as_array().cloned().unwrap_or_default());
    let found: Vec<Value> = rows
        .filter(|row| {
            row["registrationNumber"] == query || matches(row["corporateBodyFullName"].as_str().unwrap_or(""), query)
        })
        .collect();
    Answer::ok(
        json!({"filteredCount": found.len(), "data": page(found, call.number("Skip", 0), call.number("Take", 10))}),
    )
}

fn extract(call: &Call) -> Answer {
    let part = |name: &str| call.query(name).unwrap_or_default();
    let file = format!("/extracts/{}-{}-{}.json", part("oddiel"), part("vlozka"), part("sud"));
    call.record(&file).map_or_else(|| problem(404, "Not Found"), Answer::ok)
}

/// A page from a fixture in UTF-8, in the encoding of the site. The header does not name that encoding.
fn windows_1250(page: Option<&'static [u8]>) -> Answer {
    let text = String::from_utf8_lossy(page.unwrap_or_default());
    let (bytes, _, _) = encoding_rs::WINDOWS_1250.encode(&text);
    Answer::bytes(200, "text/html", bytes.into_owned().into())
}

fn rpo_search(call: &Call) -> Answer {
    let (number, name) = (call.query("identifier"), call.query("fullName"));
    if number.is_none() && name.is_none() {
        return Answer::json(400, json!({"message": "At least one search parameter is required"}));
    }
    let value = |record: &Value, list: &str| record[list][0]["value"].as_str().unwrap_or_default().to_owned();
    let wanted = |record: &Value| {
        number.is_none_or(|number| value(record, "identifiers") == number)
            && name.is_none_or(|name| matches(&value(record, "fullNames"), name))
    };
    let results: Vec<_> = call.records("registry_sk_rpo/").into_iter().filter(wanted).collect();
    Answer::ok(json!({"results": results, "license": "CC BY 4.0"}))
}

fn rpo_entity(call: &Call) -> Answer {
    let wanted = |record: &Value| call.captured(0).parse().is_ok_and(|id: u64| record["id"] == id);
    let found = call.records("registry_sk_rpo/").into_iter().find(wanted);
    found.map_or_else(|| Answer::json(404, json!({"message": "Not Found"})), Answer::ok)
}
