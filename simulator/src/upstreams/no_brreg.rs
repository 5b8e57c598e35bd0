//! Brønnøysund: entities, roles and accounts. A deleted entity is a 200, one removed by
//! law is a 410, the accounts of a bank are a 500.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fault::{Parameter, Scenario};
use crate::spec::{Call, EMPTY, UpstreamSpec, fixtures, get, matches, page};

/// The spec.
pub(crate) static SPEC: UpstreamSpec = UpstreamSpec {
    name: "no_brreg",
    hosts: &["https://data.brreg.no"],
    routes: &[
        get("search", "/enhetsregisteret/api/enheter", search),
        get("entity", "/enhetsregisteret/api/enheter/{}", entity),
        get("roles", "/enhetsregisteret/api/enheter/{}/roller", roles),
        get("subentity", "/enhetsregisteret/api/underenheter/{}", |call| not_found(&call.path())),
        get("accounts", "/regnskapsregisteret/regnskap/{}", accounts),
    ],
    fixtures: fixtures![
        "no_brreg/entities/923609016.json",
        "no_brreg/entities/974760673.json",
        "no_brreg/entities/982463718.json",
        "no_brreg/entities/984851006.json",
        "no_brreg/entities/989000705.json",
        "no_brreg/entities/990888213.json",
        "no_brreg/deleted/989000101.json",
        "no_brreg/gone/989000500.json",
        "no_brreg/roles/923609016.json",
        "no_brreg/roles/982463718.json",
        "no_brreg/accounts/923609016.json",
        "no_brreg/accounts/982463718.json",
    ],
    scenarios: &[
        Scenario { name: "deleted", parameter: Parameter::None, about: "every entity is deleted: 200 with slettedato" },
        Scenario { name: "gone", parameter: Parameter::None, about: "every entity is removed from disclosure: 410" },
        Scenario { name: "accounts_500", parameter: Parameter::None, about: "the accounts of every entity answer 500" },
        Scenario {
            name: "app_unavailable",
            parameter: Parameter::None,
            about: "the platform's page for an application that is off",
        },
    ],
    ..EMPTY
};

/// Banks, insurers and foundations: their accounts are never served.
const NO_ACCOUNTS: &[&str] = &["984851006"];
/// The last result that a search can page to.
const DEEPEST: usize = 10_000;

fn fault(status: u16, title: &str, path: &str) -> Answer {
    let timestamp = "2026-11-30T08:00:00.000+00:00";
    Answer::json(status, json!({"timestamp": timestamp, "status": status, "error": title, "path": path}))
}

fn not_found(path: &str) -> Answer {
    fault(404, "Not Found", path)
}

fn off(call: &Call) -> Option<Answer> {
    call.scenario("app_unavailable")?;
    Some(Answer::html(503, "<html><body><h1>Application is not available</h1></body></html>"))
}

fn entity(call: &Call) -> Answer {
    let number = call.captured(0);
    if let Some(answer) = off(call) {
        return answer;
    }
    if number.len() != 9 || !number.bytes().all(|b| b.is_ascii_digit()) {
        let why = "organisasjonsnummer må ha 9 sifre";
        return Answer::json(400, json!({"status": 400, "feilmelding": "Ugyldig organisasjonsnummer", "hjelp": why}));
    }
    if call.scenario("gone").is_some() {
        return fault(410, "Gone", &call.path());
    }
    if call.scenario("deleted").is_some() {
        let mut record = call.record("/deleted/989000101.json").unwrap_or_default();
        record["organisasjonsnummer"] = json!(number);
        return Answer::ok(record);
    }
    let live =
        call.record(&format!("/entities/{number}.json")).or_else(|| call.record(&format!("/deleted/{number}.json")));
    match (live, call.record(&format!("/gone/{number}.json"))) {
        (Some(record), _) => Answer::ok(record),
        (None, Some(gone)) => Answer::json(410, gone),
        (None, None) => not_found(&call.path()),
    }
}

fn roles(call: &Call) -> Answer {
    let number = call.captured(0);
    let known = call.record(&format!("/entities/{number}.json")).is_some();
    let roles = call.record(&format!("/roles/{number}.json"));
    match (off(call), roles) {
        (Some(answer), _) => answer,
        (None, Some(roles)) => Answer::ok(roles),
        (None, None) if known => Answer::ok(json!({"rollegrupper": []})),
        (None, None) => not_found(&call.path()),
    }
}

fn accounts(call: &Call) -> Answer {
    let number = call.captured(0);
    if let Some(answer) = off(call) {
        return answer;
    }
    if call.scenario("accounts_500").is_some() || NO_ACCOUNTS.contains(&number) {
        return fault(500, "Internal Server Error", &call.path());
    }
    call.record(&format!("/accounts/{number}.json")).map_or_else(|| not_found(&call.path()), Answer::ok)
}

fn search(call: &Call) -> Answer {
    if let Some(answer) = off(call) {
        return answer;
    }
    let (size, number) = (call.number("size", 20), call.number("page", 0));
    if size == 0 || size.saturating_mul(number + 1) > DEEPEST {
        let help = "size * page må være mindre enn 10 000";
        let why = "Spørringen returnerer for mange treff";
        return Answer::json(400, json!({"status": 400, "feilmelding": why, "hjelp": help}));
    }
    let wanted = |record: &Value| {
        let name = record["navn"].as_str().unwrap_or_default();
        let number = record["organisasjonsnummer"].as_str().unwrap_or_default();
        call.query("navn").is_none_or(|query| matches(name, query))
            && call.query("organisasjonsnummer").is_none_or(|list| list.split(',').any(|wanted| wanted == number))
    };
    let found: Vec<Value> = call.records("no_brreg/entities/").into_iter().filter(wanted).collect();
    let total = found.len();
    let shown = page(found, number * size, size);
    let mut document = json!({
        "_links": {"self": {"href": format!("https://data.brreg.no{}", call.path())}},
        "page": {"size": size, "totalElements": total, "totalPages": total.div_ceil(size), "number": number},
    });
    // An empty result has no `_embedded` at all.
    if !shown.is_empty() {
        document["_embedded"] = json!({"enheter": shown});
    }
    Answer::ok(document)
}
