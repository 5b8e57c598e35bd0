//! The Slovak register of financial statements: from a number to ids, from ids to units, statements, reports.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::spec::{Call, EMPTY, UpstreamSpec, fixtures, get};

/// The spec.
pub(crate) static SPEC: UpstreamSpec = UpstreamSpec {
    name: "sk_ruz",
    hosts: &["https://www.registeruz.sk"],
    base: "/cruz-public/api",
    routes: &[
        get("units", "/uctovne-jednotky", units),
        get("unit", "/uctovna-jednotka", |call| by_id(call, "units")),
        get("statement", "/uctovna-zavierka", |call| by_id(call, "statements")),
        get("report", "/uctovny-vykaz", |call| by_id(call, "reports")),
        get("annual_report", "/vyrocna-sprava", |call| by_id(call, "annual")),
    ],
    unrouted: || Answer::json(404, json!({"status": 404, "message": "Not Found"})),
    fixtures: fixtures![
        "sk_ruz/annual/8000001.json",
        "sk_ruz/reports/7000001.json",
        "sk_ruz/reports/7000002.json",
        "sk_ruz/statements/9000001.json",
        "sk_ruz/statements/9000002.json",
        "sk_ruz/units/123456.json",
        "sk_ruz/units/123457.json",
    ],
    ..EMPTY
};

fn units(call: &Call) -> Answer {
    if call.query("zmenene-od").is_none() {
        return Answer::json(400, json!({"status": 400, "message": "Povinný parameter zmenene-od nie je zadaný"}));
    }
    let after: u64 = call.query("pokracovat-za-id").and_then(|id| id.parse().ok()).unwrap_or_default();
    let most = call.number("max-zaznamov", 1000).min(10_000);
    let wanted = |unit: &Value| {
        call.query("ico").is_none_or(|ico| unit["ico"] == ico) && unit["id"].as_u64().is_some_and(|id| id > after)
    };
    let found: Vec<_> =
        call.records("sk_ruz/units/").into_iter().filter(wanted).map(|unit| unit["id"].clone()).collect();
    Answer::ok(json!({"id": found.iter().take(most).collect::<Vec<_>>(), "existujeDalsieId": found.len() > most}))
}

fn by_id(call: &Call, folder: &str) -> Answer {
    let id = call.query("id").unwrap_or_default();
    let missing = || Answer::json(404, json!({"status": 404, "message": "Objekt neexistuje"}));
    call.record(&format!("/{folder}/{id}.json")).map_or_else(missing, Answer::ok)
}
