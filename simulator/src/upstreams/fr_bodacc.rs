//! BODACC: French legal notices on an open-data platform. Nested parts are JSON inside strings.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fault::{Parameter, Scenario};
use crate::spec::{Call, EMPTY, UpstreamSpec, fixtures, get, page};

/// The spec.
pub(crate) static SPEC: UpstreamSpec = UpstreamSpec {
    name: "fr_bodacc",
    hosts: &["https://bodacc-datadila.opendatasoft.com"],
    base: "/api/explore/v2.1",
    routes: &[get("notices", "/catalog/datasets/annonces-commerciales/records", notices)],
    unrouted: || error(404, "Unknown dataset", "UnknownDatasetError"),
    fixtures: fixtures!["fr_bodacc/notices.json"],
    scenarios: &[Scenario {
        name: "quota",
        parameter: Parameter::None,
        about: "429: the quota of the domain is used up",
    }],
    ..EMPTY
};

fn error(status: u16, message: &str, code: &str) -> Answer {
    Answer::json(status, json!({"message": message, "error_code": code}))
}

/// The values that a query compares a field with: the text in quotes after each mention of the field.
fn compared<'a>(query: &'a str, field: &str) -> Vec<&'a str> {
    let value = |behind: &'a str| {
        let quote = behind.find(['"', '\''])?;
        let mark = &behind[quote..=quote];
        behind[quote + 1..].split_once(mark).map(|(value, _)| value)
    };
    query.split(field).skip(1).filter_map(value).collect()
}

fn notices(call: &Call) -> Answer {
    if call.scenario("quota").is_some() {
        return error(429, "You have exceeded the requests limit for anonymous users.", "TooManyRequestsError");
    }
    let query = call.query("where").unwrap_or_default();
    if query.matches('"').count() % 2 == 1 || query.matches('\'').count() % 2 == 1 {
        return error(400, "ODSQL query is malformed", "ODSQLError");
    }
    let (limit, offset) = (call.number("limit", 10), call.number("offset", 0));
    if limit > 100 || limit.saturating_add(offset) > 10_000 {
        return error(400, "Invalid value for limit: it must be at most 100", "InvalidRESTParameterError");
    }
    let wanted = |notice: &Value| {
        let registered = |number: &str| notice["registre"].as_array().into_iter().flatten().any(|n| n == number);
        let (numbers, families) = (compared(query, "registre"), compared(query, "familleavis"));
        (numbers.is_empty() || numbers.into_iter().any(registered))
            && (families.is_empty() || families.into_iter().any(|family| notice["familleavis"] == family))
    };
    let all = call.record("/notices.json").and_then(|all| all.as_array().cloned()).unwrap_or_default();
    let mut found: Vec<_> = all.into_iter().filter(wanted).collect();
    found.sort_by_key(|notice| notice["dateparution"].as_str().map(str::to_owned));
    if call.query("order_by").is_some_and(|order| order.ends_with("desc")) {
        found.reverse();
    }
    Answer::ok(json!({"total_count": found.len(), "results": page(found, offset, limit)}))
}
