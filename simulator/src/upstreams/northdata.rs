//! NorthData: companies by register number or name, billed per company. The same answer comes in three shapes.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fault::{Parameter, Scenario};
use crate::spec::{Call, EMPTY, UpstreamSpec, fixtures, get, matches, page};

/// The spec.
pub(crate) static SPEC: UpstreamSpec = UpstreamSpec {
    name: "northdata",
    hosts: &["https://www.northdata.com"],
    base: "/_api",
    routes: &[
        get("company", "/company/v1/company", company),
        get("suggest", "/search/v1/suggest", suggest),
        get("power", "/search/v1/power", power),
        get("billing", "/billing/v1/requests", billing),
    ],
    unrouted: || error(404, "Not found"),
    fixtures: fixtures![
        "northdata/companies/beispiel.json",
        "northdata/companies/sap.json",
        "northdata/companies/siemens.json",
        "northdata/companies/zalando.json",
    ],
    scenarios: &[
        Scenario { name: "shape_array", parameter: Parameter::None, about: "a company comes as an array of one" },
        Scenario { name: "shape_items", parameter: Parameter::None, about: "a company comes as {\"items\": […]}" },
        Scenario {
            name: "censored",
            parameter: Parameter::None,
            about: "searches are censored: the plan hides the results",
        },
    ],
    credentials: &[("NORTHDATA_API_KEY", "simulated")],
    ..EMPTY
};

fn error(status: u16, message: &str) -> Answer {
    Answer::json(status, json!({"error": message}))
}

fn refusal(call: &Call) -> Option<Answer> {
    call.header("x-api-key").is_none().then(|| error(401, "Missing or invalid API key"))
}

fn name(record: &Value) -> &str {
    record["name"].as_str().or_else(|| record["name"]["name"].as_str()).unwrap_or_default()
}

/// A register number without its spaces, since every register puts them elsewhere.
fn compact(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_lowercase()
}

fn company(call: &Call) -> Answer {
    if let Some(refusal) = refusal(call) {
        return refusal;
    }
    let wanted = |record: &Value| {
        let text = |field: &str| record["register"][field].as_str().unwrap_or_default();
        if let Some(register) = call.query("register") {
            let (id, court) = register.split_once('/').unwrap_or((register, ""));
            return compact(id) == compact(text("id"))
                && (court.is_empty() || compact(court) == compact(text("court")));
        }
        let place = call.query("address").unwrap_or_default();
        let city = record["address"]["city"].as_str().unwrap_or_default();
        call.query("name").is_some_and(|query| matches(name(record), query))
            && (place.is_empty() || matches(place, city) || matches(city, place))
    };
    if call.query("register").is_none() && call.query("name").is_none() {
        return error(400, "register or name is required");
    }
    let Some(mut found) = call.records("northdata/companies/").into_iter().find(wanted) else {
        return error(404, "Company not found");
    };
    call.memory.add("credits", 1);
    for section in ["owners", "representatives", "financials", "events"] {
        if let (Some(fields), false) = (found.as_object_mut(), call.query(section) == Some("true")) {
            fields.remove(section);
        }
    }
    match (call.scenario("shape_array"), call.scenario("shape_items")) {
        (Some(_), _) => Answer::ok(json!([found])),
        (_, Some(_)) => Answer::ok(json!({"items": [found]})),
        _ => Answer::ok(found),
    }
}

fn found(call: &Call) -> Vec<Value> {
    let query = call.query("query").unwrap_or_default();
    let records = call.records("northdata/companies/").into_iter();
    records.filter(|record| call.scenario("censored").is_none() && matches(name(record), query)).collect()
}

fn item(record: &Value) -> Value {
    let place = json!({"city": record["address"]["city"], "country": record["address"]["country"]});
    json!({"name": name(record), "address": place, "register": {"uniqueKey": record["register"]["uniqueKey"]}})
}

fn suggest(call: &Call) -> Answer {
    let items = || page(found(call).iter().map(item).collect(), 0, call.number("limit", 10));
    let document = || match call.scenario("censored") {
        Some(_) => json!({"censored": true, "items": items()}),
        None => json!({"items": items()}),
    };
    refusal(call).unwrap_or_else(|| Answer::ok(document()))
}

fn power(call: &Call) -> Answer {
    if let Some(refusal) = refusal(call) {
        return refusal;
    }
    let (start, limit, all) = (call.number("pos", 0), call.number("limit", 5), found(call));
    let items: Vec<_> = page(all.iter().map(item).collect(), start, limit);
    call.memory.add("credits", items.len() as u64);
    let mut document = json!({"censored": call.scenario("censored").is_some(), "items": items});
    if start + limit < all.len() {
        document["nextOffset"] = json!(start + limit);
        document["nextPos"] = json!((start + limit).to_string());
    }
    Answer::ok(document)
}

fn billing(call: &Call) -> Answer {
    let used = call.memory.get("credits").unwrap_or_default();
    let period = json!({"numberOfRequests": used, "periodStart": "2026-11-01", "periodEnd": "2026-11-30"});
    refusal(call).unwrap_or_else(|| Answer::ok(period))
}
