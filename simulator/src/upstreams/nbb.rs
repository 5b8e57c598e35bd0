//! The Belgian annual accounts: the consultation site's own API, and the official one. Both throttle with an empty list.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fault::{Parameter, Scenario};
use crate::spec::{Call, EMPTY, UpstreamSpec, fixtures, get, page};

/// The spec of the consultation site.
pub(crate) static CONSULT: UpstreamSpec = UpstreamSpec {
    name: "nbb",
    hosts: &["https://consult.cbso.nbb.be"],
    base: "/api",
    routes: &[
        get("deposits", "/rs-consult/published-deposits", deposits),
        get("company", "/rs-consult/companies/{}/{}", company),
        get("accounts", "/external/broker/public/deposits/consult/csv/{}", csv),
    ],
    unrouted: || Answer::json(404, json!({"status": 404, "error": "Not Found"})),
    fixtures: fixtures![
        "nbb/companies/0202239951.json",
        "nbb/companies/0403199702.json",
        "nbb/csv/2024-00120001.csv",
        "nbb/csv/2025-00123456.csv",
        "nbb/deposits/0202239951.json",
    ],
    scenarios: &[
        SILENT,
        Scenario {
            name: "control_chars",
            parameter: Parameter::None,
            about: "raw control characters inside JSON strings",
        },
    ],
    ..EMPTY
};

/// The spec of the official web service.
pub(crate) static OFFICIAL: UpstreamSpec = UpstreamSpec {
    name: "nbb_official",
    hosts: &["https://ws.cbso.nbb.be"],
    routes: &[
        get("deposits", "/authentic/legalEntity/{}/references", references),
        get("accounts", "/authentic/deposit/{}/accountingData", accounting),
    ],
    unrouted: || Answer::json(404, json!({"statusCode": 404, "message": "Resource not found"})),
    fixtures: fixtures![
        "nbb_official/accounts/2024-00120001.json",
        "nbb_official/accounts/2025-00123456.json",
        "nbb_official/references/0202239951.json",
    ],
    scenarios: &[SILENT],
    credentials: &[("NBB_CBSO_KEY", "simulated")],
    ..EMPTY
};

const SILENT: Scenario = Scenario {
    name: "silent_empty",
    parameter: Parameter::Count(2),
    about: "the first calls are throttled by an empty list",
};

/// Whether this call is throttled with an empty list.
fn silenced(call: &Call) -> bool {
    let throttled = call.scenario("silent_empty").and_then(|n| n.parse::<u64>().ok());
    throttled.is_some_and(|n| call.memory.add("silent", 1) <= n)
}

/// The gateway turns away what does not look like a browser.
fn robot(call: &Call) -> Option<Answer> {
    let agent = call.header("user-agent").unwrap_or_default();
    let blocked = agent.is_empty() || agent.starts_with("python");
    blocked.then(|| Answer::html(403, crate::answer::HTML_CHALLENGE))
}

fn missing() -> Answer {
    Answer::json(404, json!({"status": 404, "error": "Not Found"}))
}

fn deposits(call: &Call) -> Answer {
    if let Some(answer) = robot(call) {
        return answer;
    }
    let number = call.query("enterpriseNumber").unwrap_or_default();
    let known = if silenced(call) { None } else { call.record(&format!("/deposits/{number}.json")) };
    let all = known.and_then(|all| all.as_array().cloned()).unwrap_or_default();
    let (size, number) = (call.number("size", 10), call.number("page", 0));
    let total = all.len();
    let shown = page(all, size * number, size);
    let document = json!({
        "content": shown, "totalElements": total, "totalPages": total.div_ceil(size.max(1)), "size": size,
        "number": number, "numberOfElements": shown.len(), "first": number == 0, "empty": shown.is_empty(),
    });
    let broken = call.scenario("control_chars").is_some();
    let text = document.to_string();
    let text = if broken { text.replace("PROXIMUS", "PROXI\u{1}MUS\t") } else { text };
    Answer::text(200, "application/json", &text)
}

fn company(call: &Call) -> Answer {
    let found = || call.record(&format!("/companies/{}.json", call.captured(0)));
    robot(call).unwrap_or_else(|| found().map_or_else(missing, Answer::ok))
}

fn csv(call: &Call) -> Answer {
    let found = || call.fixture(&format!("/csv/{}.csv", call.captured(0)));
    let answer = |bytes: &'static [u8]| Answer::bytes(200, "text/csv;charset=UTF-8", bytes.into());
    robot(call).unwrap_or_else(|| found().map_or_else(missing, answer))
}

fn refusal(call: &Call) -> Option<Answer> {
    let error = |status, message: &str| Some(Answer::json(status, json!({"statusCode": status, "message": message})));
    if call.header("nbb-cbso-subscription-key").is_none() {
        return error(401, "Access denied due to missing subscription key.");
    }
    if call.header("x-request-id").is_none() {
        return error(400, "X-Request-Id is required");
    }
    let accepted = ["application/json", "application/x.jsonxbrl", "application/x.xbrl"];
    let accept = call.header("accept").unwrap_or_default();
    if !accepted.iter().any(|kind| accept.contains(kind)) {
        return error(415, "Unsupported media type");
    }
    robot(call)
}

fn references(call: &Call) -> Answer {
    if let Some(refusal) = refusal(call) {
        return refusal;
    }
    let found = call.record(&format!("/references/{}.json", call.captured(0)));
    match found {
        Some(_) if silenced(call) => Answer::ok(Value::Array(Vec::new())),
        Some(found) => Answer::ok(found),
        None => Answer::json(404, json!({"statusCode": 404, "message": "No deposits found"})),
    }
}

fn accounting(call: &Call) -> Answer {
    let found = || call.record(&format!("/accounts/{}.json", call.captured(0)));
    refusal(call).unwrap_or_else(|| found().map_or_else(missing, Answer::ok))
}
