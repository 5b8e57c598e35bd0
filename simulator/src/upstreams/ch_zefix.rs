//! Zefix: the Swiss index of companies, through the API of its web site and through the official service.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::spec::{Call, EMPTY, UpstreamSpec, fixtures, get, matches, page, post};

/// The spec of the web site's own API.
pub(crate) static SITE: UpstreamSpec = UpstreamSpec {
    name: "ch_zefix",
    hosts: &["https://www.zefix.ch"],
    base: "/ZefixREST/api/v1",
    routes: &[
        post("search", "/firm/search.json", search),
        get("detail", "/firm/{}/withoutShabPub.json", detail),
        get("publications", "/firm/{}/shabPub.json", |call| match call.record(&details(call)) {
            Some(_) => {
                let published = call.record(&format!("/publications/{}.json", call.captured(0)));
                Answer::ok(published.unwrap_or_else(|| json!([])))
            }
            None => no_result(),
        }),
        get("legal_forms", "/legalForm.json", |call| {
            call.record("/legal_forms.json").map_or_else(no_result, Answer::ok)
        }),
    ],
    unrouted: || Answer::json(404, json!({"timestamp": "2026-11-30T08:00:00Z", "status": 404, "error": "Not Found"})),
    fixtures: fixtures![
        "ch_zefix/details/1009345.json",
        "ch_zefix/details/164800.json",
        "ch_zefix/details/348639.json",
        "ch_zefix/firms/CHE105909036.json",
        "ch_zefix/firms/CHE191546434.json",
        "ch_zefix/firms/CHE313550547.json",
        "ch_zefix/legal_forms.json",
        "ch_zefix/publications/1009345.json",
    ],
    ..EMPTY
};

/// The spec of the official service.
pub(crate) static OFFICIAL: UpstreamSpec = UpstreamSpec {
    name: "ch_zefix_official",
    hosts: &["https://www.zefix.admin.ch"],
    base: "/ZefixPublicREST/api/v1",
    routes: &[post("search", "/company/search", official_search), get("company", "/company/uid/{}", company)],
    unrouted: || Answer::json(404, json!({"status": 404, "error": "Not Found"})),
    fixtures: fixtures![
        "ch_zefix_official/CHE105909036.json",
        "ch_zefix_official/CHE191546434.json",
        "ch_zefix_official/CHE313550547.json",
    ],
    credentials: &[("ZEFIX_USER", "simulated"), ("ZEFIX_PASSWORD", "simulated")],
    ..EMPTY
};

fn no_result() -> Answer {
    Answer::json(404, json!({"error": {"code": "API.ZFR.SEARCH.NORESULT", "title": "NORESULT", "message": null}}))
}

/// Finds records by name, or by a UID with or without its punctuation.
fn find(call: &Call, folder: &str, query: &str) -> Vec<Value> {
    let uid: String = query.chars().filter(char::is_ascii_alphanumeric).collect();
    let wanted = |record: &Value| {
        record["uid"].as_str().is_some_and(|known| known.eq_ignore_ascii_case(&uid))
            || matches(record["name"].as_str().unwrap_or_default(), query)
    };
    call.records(folder).into_iter().filter(wanted).collect()
}

fn search(call: &Call) -> Answer {
    let request = call.json();
    let number = |field: &str, default| request[field].as_u64().map_or(default, |n| n as usize);
    let found = find(call, "ch_zefix/firms/", request["name"].as_str().unwrap_or_default());
    if found.is_empty() {
        return no_result();
    }
    let (offset, most, total) = (number("offset", 0), number("maxEntries", 30), found.len());
    let list = page(found, offset, most);
    let more = offset + list.len() < total;
    Answer::ok(json!({"list": list, "hasMoreResults": more, "offset": offset, "maxEntries": most, "maxOffset": null}))
}

fn details(call: &Call) -> String {
    format!("/details/{}.json", call.captured(0))
}

fn detail(call: &Call) -> Answer {
    call.record(&details(call)).map_or_else(no_result, Answer::ok)
}

fn unauthorized(call: &Call) -> Option<Answer> {
    let refusal = || Answer::json(401, json!({"status": 401, "error": "Unauthorized"}));
    (!call.authorized("Basic")).then(|| refusal().header("www-authenticate", "Basic realm=\"Zefix\""))
}

fn official(call: &Call, query: &str) -> Answer {
    let found = || find(call, "ch_zefix_official/", query);
    unauthorized(call).unwrap_or_else(|| match found() {
        none if none.is_empty() => no_result(),
        found => Answer::ok(Value::Array(found)),
    })
}

fn official_search(call: &Call) -> Answer {
    official(call, call.json()["name"].as_str().unwrap_or_default())
}

fn company(call: &Call) -> Answer {
    official(call, call.captured(0))
}
