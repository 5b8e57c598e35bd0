//! The Danish register twice: the unofficial API, whose errors are all 200s, and the official GraphQL.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fault::{Parameter, Scenario};
use crate::spec::{Call, EMPTY, UpstreamSpec, fixtures, get, matches, post};

/// The spec of cvrapi.dk.
pub(crate) static CVRAPI: UpstreamSpec = UpstreamSpec {
    name: "dk_cvr",
    hosts: &["https://cvrapi.dk"],
    routes: &[get("company", "/api", company)],
    fixtures: fixtures![
        "dk_cvr/companies/22756214.json",
        "dk_cvr/companies/24256790.json",
        "dk_cvr/companies/36213728.json",
        "dk_cvr/companies/99000104.json",
    ],
    scenarios: &[
        Scenario {
            name: "quota",
            parameter: Parameter::Count(50),
            about: "QUOTA_EXCEEDED with 200 after this many calls",
        },
        Scenario {
            name: "error",
            parameter: Parameter::Word("CODE"),
            about: "this error with status 200: BANNED, INTERNAL_ERROR, …",
        },
        Scenario { name: "not_found_404", parameter: Parameter::None, about: "NOT_FOUND comes with status 404" },
    ],
    credentials: &[("CVRAPI_USER_AGENT", "Simulation - osint - Operator operator@example.org")],
    ..EMPTY
};

/// The spec of Datafordeler.
pub(crate) static DATAFORDELER: UpstreamSpec = UpstreamSpec {
    name: "dk_cvr_datafordeler",
    hosts: &["https://graphql.datafordeler.dk"],
    routes: &[post("company", "/CVR/v2", graphql)],
    fixtures: fixtures![
        "dk_cvr_datafordeler/22756214.json",
        "dk_cvr_datafordeler/24256790.json",
        "dk_cvr_datafordeler/36213728.json",
        "dk_cvr_datafordeler/99000104.json",
    ],
    credentials: &[("CVR_DENMARK_API_KEY", "simulated")],
    ..EMPTY
};

fn error(status: u16, code: &str) -> Answer {
    Answer::json(status, json!({"error": code, "t": 0, "version": 6}))
}

fn company(call: &Call) -> Answer {
    if call.header("user-agent").is_none_or(|agent| agent.starts_with("python-requests")) {
        return error(200, "INVALID_UA");
    }
    if let Some(code) = call.scenario("error") {
        return error(200, code);
    }
    let free = call.scenario("quota").and_then(|n| n.parse::<u64>().ok());
    if free.is_some_and(|free| call.memory.add("quota", 1) > free) {
        return error(200, "QUOTA_EXCEEDED");
    }
    let vat = call.query("vat").or_else(|| call.query("search").filter(|s| s.bytes().all(|b| b.is_ascii_digit())));
    if vat.is_some_and(|vat| vat.len() != 8 || !vat.bytes().all(|b| b.is_ascii_digit())) {
        return error(200, "INVALID_VAT");
    }
    let name = call.query("name").or_else(|| call.query("search")).unwrap_or_default();
    let wanted = |record: &Value| match vat {
        Some(vat) => vat.parse().is_ok_and(|vat: u64| record["vat"] == vat),
        None => matches(record["name"].as_str().unwrap_or_default(), name),
    };
    let status = if call.scenario("not_found_404").is_some() { 404 } else { 200 };
    let found = call.records("dk_cvr/companies/").into_iter().find(wanted);
    found.map_or_else(|| error(status, "NOT_FOUND"), Answer::ok)
}

/// The root fields; a query has exactly one.
const ROOTS: &[&str] = &["CVR_Virksomhedsform", "CVR_Virksomhed", "CVR_Navn", "CVR_Adressering", "CVR_Branche"];

fn graphql(call: &Call) -> Answer {
    if call.query("apiKey").is_none_or(str::is_empty) {
        return Answer::json(401, json!({"message": "Unauthorized"}));
    }
    let errors = |message: &str| Answer::ok(json!({"errors": [{"message": message}]}));
    let request = call.json();
    let query = request["query"].as_str().unwrap_or_default();
    // The longer name goes first and is cut out, as the shorter begins like it.
    let mut rest = query.to_owned();
    let mut asked = Vec::new();
    for root in ROOTS {
        if rest.contains(root) {
            asked.push(*root);
            rest = rest.replace(root, "");
        }
    }
    let [root] = asked[..] else { return errors("Exactly one root field is allowed per query.") };
    let digits = |text: &str| text.split(|c: char| !c.is_ascii_digit()).find(|run| run.len() == 8).map(str::to_owned);
    let Some(number) = digits(query).or_else(|| digits(&request["variables"].to_string())) else {
        return errors("A filter on CVRNummer is required.");
    };
    let found = call.record(&format!("/{number}.json")).map(|record| record[root].clone());
    Answer::ok(json!({"data": {root: {"nodes": found.into_iter().collect::<Vec<_>>()}}}))
}
