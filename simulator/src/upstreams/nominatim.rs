//! Nominatim: places by address. A client must name itself, and the calls of all clients count together.

use std::time::Duration;

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fault::{ENFORCE_RATE, Parameter, Scenario};
use crate::spec::{Call, EMPTY, Rate, UpstreamSpec, fixtures, get, matches, page};

/// The spec.
pub(crate) static SPEC: UpstreamSpec = UpstreamSpec {
    name: "nominatim",
    hosts: &["https://nominatim.openstreetmap.org"],
    routes: &[get("search", "/search", search), get("status", "/status", status)],
    fixtures: fixtures!["nominatim/places.json"],
    scenarios: &[
        ENFORCE_RATE,
        Scenario { name: "blocked", parameter: Parameter::None, about: "403: the application is blocked" },
        Scenario { name: "database_down", parameter: Parameter::None, about: "status 700 in a 200, searches fail" },
    ],
    rate: Some(Rate { calls: 1, window: Duration::from_secs(1), refusal: blocked }),
    credentials: &[("NOMINATIM_USER_AGENT", "osint-simulation/1.0 (operator@example.org)")],
    ..EMPTY
};

/// The beginnings of the user agents that libraries send by default.
const DEFAULT_AGENTS: &[&str] = &["reqwest/", "python-requests/", "curl/", "Java/", "Go-http-client/", "axios/"];

fn blocked() -> Answer {
    let text = "Usage limit reached\n\nYou have exceeded the usage policy of this service. Access is blocked.";
    Answer::text(403, "text/plain; charset=utf-8", text)
}

fn bad(message: &str) -> Answer {
    Answer::json(400, json!({"error": {"code": 400, "message": message}}))
}

fn anonymous(call: &Call) -> bool {
    let named = |agent: &str| !DEFAULT_AGENTS.iter().any(|default| agent.starts_with(default));
    call.header("referer").is_none() && !call.header("user-agent").is_some_and(named)
}

fn search(call: &Call) -> Answer {
    if anonymous(call) || call.scenario("blocked").is_some() {
        return blocked();
    }
    if call.scenario("database_down").is_some() {
        return Answer::json(500, json!({"error": {"code": 500, "message": "Database connection failed"}}));
    }
    let structured = ["street", "city", "county", "state", "country", "postalcode"].map(|part| call.query(part));
    let structured = structured.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let query = match (call.query("q"), structured.is_empty()) {
        (Some(_), false) => return bad("Structured query parameters (…) cannot be used together with 'q' parameter."),
        (None, true) => return bad("Nothing to search for."),
        (Some(query), true) => query.to_owned(),
        (None, false) => structured,
    };
    let Some(format) = call.query("format").filter(|format| matches!(*format, "json" | "jsonv2")) else {
        return Answer::html(200, "<!DOCTYPE html><html><head><title>Nominatim</title></head><body></body></html>");
    };
    let at = |place: &Value| {
        let part = |name: &str| place["address"][name].as_str().unwrap_or_default().to_owned();
        let country =
            call.query("countrycodes").is_none_or(|codes| codes.split(',').any(|c| c == part("country_code")));
        country && matches(&query, &part("road")) && matches(&query, &part("house_number"))
    };
    let places = call.record("/places.json").and_then(|places| places.as_array().cloned()).unwrap_or_default();
    let mut found = page(places.into_iter().filter(at).collect(), 0, call.number("limit", 10).clamp(1, 40));
    for place in &mut found {
        let Some(place) = place.as_object_mut() else { continue };
        if format == "json" {
            let category = place.remove("category").unwrap_or_default();
            place.insert("class".to_owned(), category);
        }
        if call.query("addressdetails") != Some("1") {
            place.remove("address");
        }
    }
    Answer::ok(Value::Array(found))
}

fn status(call: &Call) -> Answer {
    let down = call.scenario("database_down").is_some();
    match (call.query("format"), down) {
        (Some("json"), false) => {
            let updated = "2026-11-30T07:45:00+00:00";
            let version = "5.1.0-0";
            Answer::ok(json!({"status": 0, "message": "OK", "data_updated": updated, "software_version": version}))
        }
        (Some("json"), true) => Answer::ok(json!({"status": 700, "message": "Database connection failed"})),
        (_, false) => Answer::text(200, "text/plain; charset=utf-8", "OK"),
        (_, true) => Answer::text(500, "text/plain; charset=utf-8", "ERROR: Database connection failed"),
    }
}
