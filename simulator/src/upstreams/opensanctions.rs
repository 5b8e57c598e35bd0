//! OpenSanctions: the match API, and the feed of all its data.
//!
//! The API passes names to a Lucene query, so certain names break it. That is bad input, not an outage. The feed is a
//! second upstream on its own host.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fault::{Parameter, Scenario};
use crate::spec::{Call, EMPTY, UpstreamSpec, fixtures, get, matches, page, post};

/// The spec of the API.
pub(crate) static API: UpstreamSpec = UpstreamSpec {
    name: "opensanctions",
    hosts: &["https://api.opensanctions.org"],
    routes: &[
        post("match", "/match/{}", match_queries),
        get("search", "/search/{}", search),
        get("entity", "/entities/{}", entity),
        get("catalog", "/catalog", catalog),
        get("algorithms", "/algorithms", |_| {
            Answer::ok(json!({"algorithms": [{"name": "logic-v1"}], "best": "logic-v1"}))
        }),
        get("ready", "/readyz", |_| Answer::ok(json!({"status": "ok"}))),
        get("health", "/healthz", |_| Answer::ok(json!({"status": "ok"}))),
    ],
    unrouted: || detail(404, "Not Found"),
    fixtures: fixtures![
        "opensanctions/entities/NK-2PacmNpiLUmoz4XD2mSt7A.json",
        "opensanctions/entities/NK-simulatedPerson00000001.json",
        "opensanctions/entities/NK-simulatedState00000001.json",
        "opensanctions/entities/NK-simulatedTrading0000001.json",
    ],
    scenarios: &[
        Scenario {
            name: "poison_500",
            parameter: Parameter::None,
            about: "names that break the query answer 500 instead of 400",
        },
        Scenario {
            name: "stale_index",
            parameter: Parameter::None,
            about: "the catalog says that the index is behind",
        },
    ],
    credentials: &[("OPENSANCTIONS_API_KEY", "simulated")],
    ..EMPTY
};

/// The spec of the feed.
pub(crate) static FEED: UpstreamSpec = UpstreamSpec {
    name: "opensanctions_feed",
    hosts: &["https://data.opensanctions.org"],
    routes: &[
        get("index", "/datasets/latest/index.json", index),
        get("dataset", "/datasets/latest/{}/index.json", |call| {
            let found = dataset(call).map(|entry| Answer::ok(entry).with_etag(call.header("if-none-match")));
            found.unwrap_or_else(no_file)
        }),
        get("file", "/datasets/latest/{}/{}", file),
        get("delta_index", "/artifacts/{}/delta.json", |call| {
            let found = if known(call.captured(0)) { call.fixed("/delta.json") } else { None };
            found.map_or_else(no_file, |bytes| Answer::bytes(200, "application/json", bytes.into()))
        }),
        get("delta", "/artifacts/{}/{}/entities.delta.json", |call| text_file(call, "entities.delta.json")),
    ],
    unrouted: no_file,
    fixtures: fixtures![
        "opensanctions_feed/default.json",
        "opensanctions_feed/delta.json",
        "opensanctions_feed/files/entities.delta.json",
        "opensanctions_feed/files/entities.ftm.json",
        "opensanctions_feed/files/names.txt",
        "opensanctions_feed/files/targets.simple.csv",
    ],
    scenarios: &[
        Scenario { name: "stale_index", parameter: Parameter::None, about: "the index has not moved for a month" },
        Scenario {
            name: "checksum_mismatch",
            parameter: Parameter::None,
            about: "files do not have the checksum of the index",
        },
        Scenario {
            name: "huge_feed",
            parameter: Parameter::Count(2),
            about: "entities.ftm.json has about this many GiB, streamed",
        },
    ],
    ..EMPTY
};

fn detail(status: u16, text: &str) -> Answer {
    Answer::json(status, json!({"detail": text}))
}

/// A name that Lucene reads as broken syntax.
fn poisons(name: &str) -> bool {
    let words: Vec<_> = name.split_whitespace().collect();
    let operator = |word: Option<&&str>| matches!(word, Some(&("AND" | "OR")));
    name.contains(['"', '/']) || name.trim_end().ends_with('+') || operator(words.first()) || operator(words.last())
}

fn refusal(call: &Call) -> Option<Answer> {
    (!call.authorized("ApiKey")).then(|| detail(401, "Invalid API key"))
}

fn poisoned(call: &Call) -> Answer {
    let status = if call.scenario("poison_500").is_some() { 500 } else { 400 };
    detail(status, "Failed to parse query")
}

/// How well an entity fits a query, from 0 to 1.
fn score(entity: &Value, names: &[&str]) -> f64 {
    let known: Vec<_> =
        entity["properties"]["name"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let one = |query: &str, name: &str| match (matches(name, query), matches(query, name)) {
        (true, true) => 1.0,
        (true, false) | (false, true) => 0.78,
        (false, false) => 0.0,
    };
    names.iter().flat_map(|query| known.iter().map(move |name| one(query, name))).fold(0.0, f64::max)
}

fn match_queries(call: &Call) -> Answer {
    if let Some(refusal) = refusal(call) {
        return refusal;
    }
    if call.captured(0) != "default" && call.captured(0) != "sanctions" {
        return detail(404, &format!("No such dataset: {}", call.captured(0)));
    }
    let request = call.json();
    let Some(queries) = request["queries"].as_object() else { return detail(422, "queries: field required") };
    let threshold = call.query("threshold").and_then(|t| t.parse().ok()).unwrap_or(0.7);
    let cutoff = call.query("cutoff").and_then(|t| t.parse().ok()).unwrap_or(0.5);
    let mut responses = serde_json::Map::new();
    for (key, query) in queries {
        let names = query["properties"]["name"].as_array().into_iter().flatten();
        let names: Vec<_> = names.filter_map(Value::as_str).collect();
        if names.iter().any(|name| poisons(name)) {
            return poisoned(call);
        }
        let scored = call.records("opensanctions/entities/").into_iter().map(|entity| (score(&entity, &names), entity));
        let mut hits: Vec<_> = scored.filter(|(score, _)| *score >= cutoff).collect();
        hits.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let result = |(score, mut entity): (f64, Value)| {
            entity["score"] = json!(score);
            entity["match"] = json!(score >= threshold);
            entity["explanations"] = json!({"name_match": {"score": score}});
            entity
        };
        let total = hits.len();
        let results = page(hits.into_iter().map(result).collect(), 0, call.number("limit", 5));
        let response = json!({
            "status": 200, "results": results, "total": {"value": total, "relation": "eq"}, "query": query,
        });
        responses.insert(key.clone(), response);
    }
    Answer::ok(json!({"responses": responses, "matcher": {}, "limit": call.number("limit", 5)}))
}

fn search(call: &Call) -> Answer {
    if let Some(refusal) = refusal(call) {
        return refusal;
    }
    let query = call.query("q").unwrap_or_default();
    if poisons(query) {
        return poisoned(call);
    }
    let records = call.records("opensanctions/entities/");
    let found: Vec<_> = records.into_iter().filter(|entity| score(entity, &[query]) > 0.0).collect();
    let (limit, offset, total) = (call.number("limit", 10), call.number("offset", 0), found.len());
    Answer::ok(json!({
        "results": page(found, offset, limit), "facets": {}, "limit": limit, "offset": offset,
        "total": {"value": total, "relation": "eq"},
    }))
}

/// An entity by its id. An id that was merged into another redirects to it.
fn entity(call: &Call) -> Answer {
    if let Some(refusal) = refusal(call) {
        return refusal;
    }
    let wanted = call.captured(0);
    if let Some(found) = call.record(&format!("/entities/{wanted}.json")) {
        return Answer::ok(found);
    }
    let merged = |entity: &Value| entity["referents"].as_array().is_some_and(|ids| ids.iter().any(|id| id == wanted));
    match call.records("opensanctions/entities/").into_iter().find(merged) {
        Some(found) => {
            let place = format!("/entities/{}", found["id"].as_str().unwrap_or_default());
            Answer::text(308, "text/plain", "").header("location", &place)
        }
        None => detail(404, "No such entity!"),
    }
}

fn catalog(call: &Call) -> Answer {
    let stale = call.scenario("stale_index").is_some();
    let (current, outdated) = if stale { (json!([]), json!(["default"])) } else { (json!(["default"]), json!([])) };
    let dataset = json!({
        "name": "default", "title": "OpenSanctions Default", "version": "20261129125702-sim",
        "updated_at": "2026-11-29T12:57:02", "index_current": !stale,
    });
    Answer::ok(json!({"datasets": [dataset], "current": current, "outdated": outdated, "index_stale": stale}))
}

fn no_file() -> Answer {
    Answer::text(404, "text/xml", "<?xml version='1.0' encoding='UTF-8'?><Error><Code>NoSuchKey</Code></Error>")
}

fn known(dataset: &str) -> bool {
    matches!(dataset, "default" | "sanctions" | "peps")
}

/// The only line of a feed with the fault `not_found`: a company that no investigation asks about.
const OTHER_COMPANY: &str = concat!(
    r#"{"id":"NK-simulatedNobody0000001","caption":"Nobody At All Ltd","schema":"Company","properties":"#,
    r#"{"name":["Nobody At All Ltd"],"topics":["sanction"],"country":["zz"]},"datasets":["eu_fsf"],"target":true}"#,
    "\n"
);

fn dataset(call: &Call) -> Option<Value> {
    let entry = call.fixed("/default.json").filter(|_| call.captured.is_empty() || known(call.captured(0)))?;
    let mut entry: Value = serde_json::from_slice(entry).ok()?;
    // A feed that is alive was made today.
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT00:00:00").to_string();
    for field in ["updated_at", "last_change", "last_export"] {
        entry[field] = json!(now);
    }
    if call.not_found {
        entry["resources"][0]["checksum"] = json!(crate::digest::sha1(OTHER_COMPANY.as_bytes()));
        entry["resources"][0]["size"] = json!(OTHER_COMPANY.len());
    }
    if let Some(name) = call.captured.first() {
        entry["name"] = json!(name);
    }
    if call.scenario("stale_index").is_some() {
        for field in ["updated_at", "last_change", "last_export"] {
            entry[field] = json!("2026-10-29T12:57:02");
        }
        entry["version"] = json!("20261029125702-sim");
    }
    if call.scenario("checksum_mismatch").is_some() {
        for resource in entry["resources"].as_array_mut().into_iter().flatten() {
            resource["checksum"] = json!("0000000000000000000000000000000000000000");
        }
    }
    Some(entry)
}

fn index(call: &Call) -> Answer {
    let Some(entry) = dataset(call) else { return no_file() };
    let updated = entry["updated_at"].clone();
    Answer::ok(json!({"datasets": [entry], "run_time": updated.clone(), "updated_at": updated}))
}

fn text_file(call: &Call, name: &str) -> Answer {
    let content_type = if name.ends_with(".json") { "application/json+ftm" } else { "text/plain; charset=utf-8" };
    let entities = call.not_found && name == "entities.ftm.json";
    let delta = call.not_found && name == "entities.delta.json";
    let found = match known(call.captured(0)) {
        true if entities => Some(OTHER_COMPANY.as_bytes()),
        true if delta => Some(&br#"{"op":"DEL","entity":{"id":"NK-simulatedGone000000001"}}"#[..]),
        true => call.fixture(&format!("/files/{name}")),
        false => None,
    };
    found.map_or_else(no_file, |bytes| Answer::bytes(200, content_type, bytes.into()))
}

fn file(call: &Call) -> Answer {
    let name = call.captured(1);
    let (Some(gibibytes), "entities.ftm.json") = (call.scenario("huge_feed"), name) else {
        return text_file(call, name);
    };
    let lines = call.fixture("/files/entities.ftm.json").unwrap_or_default();
    let chunk = lines.repeat((1_usize << 20) / lines.len().max(1));
    let wanted = gibibytes.parse::<u64>().unwrap_or_default().saturating_mul(1 << 30);
    let times = wanted / (chunk.len() as u64).max(1);
    Answer::repeated("application/json+ftm", chunk, times)
}
