//! INPI: the French national register of companies, behind a log-in whose tokens expire.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fault::{Parameter, Scenario};
use crate::spec::{Call, EMPTY, UpstreamSpec, fixtures, get, matches, page, post};

/// The spec.
pub(crate) static SPEC: UpstreamSpec = UpstreamSpec {
    name: "fr_inpi",
    hosts: &["https://registre-national-entreprises.inpi.fr"],
    base: "/api",
    routes: &[
        post("login", "/sso/login", login),
        get("search", "/companies", search),
        get("company", "/companies/{}", company),
        get("attachments", "/companies/{}/attachments", |call| {
            let none = || json!({"actes": [], "bilans": [], "bilansSaisis": []});
            let found = || call.record(&format!("/attachments/{}.json", call.captured(0))).unwrap_or_else(none);
            refusal(call).unwrap_or_else(|| Answer::ok(found()))
        }),
    ],
    unrouted: || error(404, "not_found", "No route found"),
    fixtures: fixtures![
        "fr_inpi/055804124.json",
        "fr_inpi/552032534.json",
        "fr_inpi/999000300.json",
        "fr_inpi/attachments/552032534.json",
    ],
    scenarios: &[
        Scenario {
            name: "token_expires",
            parameter: Parameter::Count(1),
            about: "a token is good for this many calls",
        },
        Scenario {
            name: "connection_type",
            parameter: Parameter::None,
            about: "403: the account is not of the type for an API",
        },
    ],
    credentials: &[("INPI_USERNAME", "simulated"), ("INPI_PASSWORD", "simulated")],
    ..EMPTY
};

fn error(status: u16, code: &str, message: &str) -> Answer {
    Answer::json(status, json!({"code": status, "type": code, "message": message}))
}

fn login(call: &Call) -> Answer {
    let request = call.json();
    let given = |field: &str| request[field].as_str().is_some_and(|value| !value.is_empty());
    if !given("username") || !given("password") {
        return error(401, "invalid_credentials", "Invalid credentials.");
    }
    if let Some(refusal) = wrong_type(call) {
        return refusal;
    }
    let token = format!("simulated.token.{}", call.memory.add("logins", 1));
    let user = json!({"id": 1, "email": "operator@example.org", "firstname": "Sim", "lastname": "Ulation"});
    Answer::ok(json!({"token": token, "user": user}))
}

fn wrong_type(call: &Call) -> Option<Answer> {
    let refusal = |_| error(403, "connection_type_not_allowed", "connection_type_not_allowed");
    call.scenario("connection_type").map(refusal)
}

/// A call needs a token from a log-in; with `token_expires` each is good for a number of calls only.
fn refusal(call: &Call) -> Option<Answer> {
    if let Some(refusal) = wrong_type(call) {
        return Some(refusal);
    }
    let expired = || Some(error(401, "expired_token", "Expired JWT Token"));
    let Some(token) = call.header("authorization").and_then(|value| value.strip_prefix("Bearer ")) else {
        return Some(error(401, "missing_token", "JWT Token not found"));
    };
    let issued = call.memory.get("logins").unwrap_or_default();
    let number = token.strip_prefix("simulated.token.").and_then(|n| n.parse::<u64>().ok());
    if !number.is_some_and(|number| (1..=issued).contains(&number)) {
        return expired();
    }
    let lasts: u64 = call.scenario("token_expires")?.parse().unwrap_or(1);
    if call.memory.add(&format!("uses {token}"), 1) > lasts { expired() } else { None }
}

fn search(call: &Call) -> Answer {
    if let Some(refusal) = refusal(call) {
        return refusal;
    }
    let Some(query) = call.query("companyName") else { return error(400, "bad_request", "companyName is required") };
    let name =
        |record: &Value| record["identite"]["entreprise"]["denomination"].as_str().unwrap_or_default().to_owned();
    let found = call.records("fr_inpi/").into_iter().filter(|record| matches(&name(record), query)).collect();
    let size = call.number("pageSize", 20);
    Answer::ok(Value::Array(page(found, size * call.number("page", 1).saturating_sub(1), size)))
}

fn company(call: &Call) -> Answer {
    let missing = || error(404, "not_found", "Company not found");
    let found = || call.record(&format!("/{}.json", call.captured(0)));
    refusal(call).unwrap_or_else(|| found().map_or_else(missing, Answer::ok))
}
