//! The Peppol directory, and a composite check that asks the directory and two registers.

use std::time::Duration;

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fault::{ENFORCE_RATE, Parameter, Scenario};
use crate::spec::{Call, EMPTY, Rate, UpstreamSpec, fixtures, get, matches, page, post};

/// The spec of the directory. A company that is absent here may still be registered.
pub(crate) static DIRECTORY: UpstreamSpec = UpstreamSpec {
    name: "peppol_directory",
    hosts: &["https://directory.peppol.eu"],
    routes: &[get("search", "/search/1.0/json", search)],
    fixtures: fixtures!["peppol_directory/participants.json"],
    scenarios: &[ENFORCE_RATE],
    rate: Some(Rate { calls: 2, window: Duration::from_secs(1), refusal: || Answer::text(429, "text/plain", "") }),
    ..EMPTY
};

/// The spec of the composite check.
pub(crate) static VERIFY: UpstreamSpec = UpstreamSpec {
    name: "peppol_verify",
    routes: &[post("verify", "/v1/peppol/verify", verify), get("evidence", "/v1/peppol/evidence/{}", evidence)],
    unrouted: || detail(404, "Not Found"),
    fixtures: fixtures!["peppol_verify/0202239951.json"],
    scenarios: &[
        Scenario {
            name: "upstream_unavailable",
            parameter: Parameter::None,
            about: "503: one of the sources it asks is down",
        },
        Scenario {
            name: "vies_silent",
            parameter: Parameter::None,
            about: "VAT_INVALID, though VIES has not answered",
        },
        Scenario {
            name: "accepted",
            parameter: Parameter::None,
            about: "202 without a callback: the result is not ready",
        },
        Scenario {
            name: "flag",
            parameter: Parameter::Word("FLAG"),
            about: "the result carries this risk flag, and the status it means",
        },
    ],
    credentials: &[("PEPPOL_VERIFY_API_KEY", "simulated")],
    ..EMPTY
};

/// The flags that mean `FAIL`; any other means `FLAG`.
const FAILING: &[&str] =
    &["ENTITY_INACTIVE", "BANKRUPTCY_DETECTED", "VAT_INVALID", "SOCIAL_DEBT_DETECTED", "TAX_DEBT_DETECTED"];

/// What a part of the check says when it raises a flag.
const GROUNDS: &[(&str, &str, &str, bool)] = &[
    ("ENTITY_INACTIVE", "entity_status", "active", false),
    ("BANKRUPTCY_DETECTED", "entity_status", "bankruptcy", true),
    ("DISSOLUTION_PENDING", "entity_status", "dissolution", true),
    ("VAT_INVALID", "vies_validation", "valid", false),
    ("SOCIAL_DEBT_DETECTED", "inhoudingsplicht", "debt_free_social", false),
    ("TAX_DEBT_DETECTED", "inhoudingsplicht", "debt_free_tax", false),
    ("NO_PEPPOL_REGISTRATION", "peppol_directory", "registered", false),
];

/// The last result that can be paged to.
const DEEPEST: usize = 1000;

fn search(call: &Call) -> Answer {
    let (size, index) = (call.number("rpc", 20), call.number("rpi", 0));
    let terms = ["participant", "q", "name", "country", "identifierScheme", "identifierValue", "doctype"];
    let given: Vec<_> = terms.iter().filter_map(|term| Some((*term, call.query(term)?))).collect();
    if given.iter().all(|(_, value)| value.is_empty()) || size == 0 || size.saturating_mul(index + 1) > DEEPEST {
        return Answer::text(400, "application/json", "");
    }
    let wanted = |participant: &Value| {
        let id = participant["participantID"]["value"].as_str().unwrap_or_default();
        let entity = &participant["entities"][0];
        let name = entity["name"][0]["name"].as_str().unwrap_or_default();
        given.iter().all(|(term, value)| match *term {
            "participant" => value.rsplit("::").next() == Some(id),
            "name" => matches(name, value),
            "country" => entity["countryCode"] == *value,
            "identifierValue" => entity["identifiers"].as_array().into_iter().flatten().any(|i| i["value"] == *value),
            "q" => matches(name, value) || id.ends_with(value),
            _ => true,
        })
    };
    let all = call.record("/participants.json").and_then(|all| all.as_array().cloned()).unwrap_or_default();
    let found: Vec<_> = all.into_iter().filter(wanted).collect();
    let (total, first) = (found.len(), size * index);
    let shown = page(found, first, size);
    let terms = given.iter().map(|(term, value)| format!("{term}={value}")).collect::<Vec<_>>().join("&");
    Answer::ok(json!({
        "version": "1.0", "total-result-count": total, "used-result-count": shown.len(), "result-page-index": index,
        "result-page-count": size, "first-result-index": first, "last-result-index": (first + shown.len()).max(1) - 1,
        "query-terms": terms, "creation-dt": "2026-11-30T02:00:00Z", "matches": shown,
    }))
}

fn detail(status: u16, text: &str) -> Answer {
    Answer::json(status, json!({"detail": text}))
}

fn verify(call: &Call) -> Answer {
    if call.header("x-api-key").is_none() {
        return detail(401, "Missing or invalid API key");
    }
    if call.scenario("upstream_unavailable").is_some() {
        return detail(503, "Upstream source (KBO, VIES, etc.) unavailable");
    }
    let request = call.json();
    let number = request["enterprise_number"].as_str().unwrap_or_default();
    if number.is_empty() {
        return detail(422, "enterprise_number: field required");
    }
    if number.len() != 10 || !number.bytes().all(|b| b.is_ascii_digit()) {
        return detail(400, "enterprise_number: 10 digits expected");
    }
    let mut document = call.record(&format!("/{number}.json")).unwrap_or_else(|| unknown(number));
    if call.scenario("accepted").is_some() {
        return accepted();
    }
    if let Some(flag) = call.scenario("flag").or(call.scenario("vies_silent").map(|_| "VAT_INVALID")) {
        let status = if FAILING.contains(&flag) { "FAIL" } else { "FLAG" };
        document["result"] = json!({"status": status, "confidence": 0.9, "risk_flags": [flag]});
        if let Some((_, part, field, value)) = GROUNDS.iter().find(|(known, ..)| *known == flag) {
            document["checks"][part][field] = json!(value);
        }
    }
    if call.scenario("vies_silent").is_some() {
        document["checks"]["vies_validation"] = Value::Null;
    }
    match request["callback_url"].as_str() {
        Some(url) => accepted().with_callback(url.to_owned(), document),
        None => Answer::ok(document),
    }
}

fn accepted() -> Answer {
    Answer::json(202, json!({"status": "accepted", "message": "Result will be delivered via webhook"}))
}

fn unknown(number: &str) -> Value {
    json!({
        "verification_id": format!("pv_sim{number}"), "timestamp": "2026-11-30T08:00:00Z",
        "input": {"enterprise_number": number},
        "result": {"status": "FAIL", "confidence": 0.5, "risk_flags": ["ENTITY_INACTIVE"]},
        "checks": {"kbo_registry": null, "vies_validation": null, "peppol_directory": {"registered": false}},
        "eui_coverage": {}, "evidence_bundle_hash": "sha256:0", "valid_until": "2026-12-30T08:00:00Z",
    })
}

fn evidence(call: &Call) -> Answer {
    let number = call.captured(0).trim_start_matches("pv_sim");
    call.record(&format!("/{number}.json")).map_or_else(|| detail(404, "Evidence not found"), Answer::ok)
}
