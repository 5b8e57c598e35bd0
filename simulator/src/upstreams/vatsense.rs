//! VATSense: asks VIES itself, and answers 412 when VIES is down.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fault::{Parameter, Scenario};
use crate::spec::{Call, EMPTY, UpstreamSpec, fixtures, get};

/// The spec.
pub(crate) static SPEC: UpstreamSpec = UpstreamSpec {
    name: "vatsense",
    base: "/1.0",
    routes: &[get("validate", "/validate", validate)],
    unrouted: || error(404, "Not found", "No such endpoint"),
    fixtures: fixtures!["vatsense/numbers.json"],
    scenarios: &[Scenario {
        name: "412",
        parameter: Parameter::None,
        about: "VIES or HMRC is down, and this call is not billed",
    }],
    key: |call| call.query("vat_number").and_then(|number| number.get(..2)).map(str::to_owned),
    credentials: &[("VATSENSE_API_KEY", "simulated")],
    ..EMPTY
};

fn error(status: u16, title: &str, detail: &str) -> Answer {
    Answer::json(status, json!({"success": false, "code": status, "error": {"title": title, "detail": detail}}))
}

fn validate(call: &Call) -> Answer {
    if !call.authorized("Basic") {
        return error(401, "Unauthorized", "Missing or invalid API key");
    }
    if call.scenario("412").is_some() {
        return error(412, "Precondition failed", "The VAT number could not be checked: VIES or HMRC is unavailable");
    }
    let number = call.query("vat_number").unwrap_or_default().to_uppercase();
    if number.len() < 4 || !number.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return error(400, "Bad request", "The VAT number is not valid");
    }
    call.memory.add("credits", 1);
    let known = call.record("/numbers.json").map_or(Value::Null, |numbers| numbers[&number].clone());
    let (valid, company) = (known.is_object(), if known.is_object() { known } else { Value::Null });
    let data = json!({"valid": valid, "company": company, "consultation_number": null});
    Answer::ok(json!({"success": true, "code": 200, "data": data}))
}
