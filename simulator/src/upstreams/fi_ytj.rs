//! YTJ: one endpoint. "Not found" is an empty list, a bad parameter is an error with a number.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::spec::{Call, EMPTY, UpstreamSpec, fixtures, get, matches, page};

/// The spec.
pub(crate) static SPEC: UpstreamSpec = UpstreamSpec {
    name: "fi_ytj",
    hosts: &["https://avoindata.prh.fi"],
    base: "/opendata-ytj-api/v3",
    routes: &[get("company", "/companies", companies)],
    unrouted: || bad(404, "Not Found", 404),
    fixtures: fixtures!["fi_ytj/0112038-9.json", "fi_ytj/2336509-6.json", "fi_ytj/2646674-9.json"],
    ..EMPTY
};

const PAGE: usize = 100;
const FILTERS: &[&str] = &["businessId", "name", "location", "companyForm", "mainBusinessLine", "postCode"];

fn bad(status: u16, message: &str, code: u16) -> Answer {
    let timestamp = "2026-11-30T08:00:00.000+00:00";
    Answer::json(status, json!({"timestamp": timestamp, "message": message, "errorcode": code}))
}

fn companies(call: &Call) -> Answer {
    if !FILTERS.iter().any(|filter| call.query(filter).is_some()) {
        return bad(400, "Parameter businessId is missing", 1005);
    }
    let shape = |id: &str| id.len() == 9 && id.as_bytes()[7] == b'-';
    if call.query("businessId").is_some_and(|id| !shape(id)) {
        return bad(400, "Invalid value of parameter businessId", 1001);
    }
    let named = |record: &Value, query: &str| {
        let names = record["names"].as_array().into_iter().flatten();
        names.filter_map(|name| name["name"].as_str()).any(|name| matches(name, query))
    };
    let wanted = |record: &Value| {
        call.query("businessId").is_none_or(|id| record["businessId"]["value"] == id)
            && call.query("name").is_none_or(|query| named(record, query))
    };
    let found: Vec<Value> = call.records("fi_ytj/").into_iter().filter(wanted).collect();
    let total = found.len();
    let shown = page(found, PAGE * call.number("page", 1).saturating_sub(1), PAGE);
    Answer::ok(json!({"totalResults": total, "companies": shown}))
}
