//! The Estonian register's autocomplete: JSON with the content type of HTML.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::spec::{Call, EMPTY, UpstreamSpec, fixtures, get, matches, page};

/// The spec.
pub(crate) static SPEC: UpstreamSpec = UpstreamSpec {
    name: "ee_ariregister",
    hosts: &["https://ariregister.rik.ee"],
    routes: &[get("autocomplete", "/est/api/autocomplete", autocomplete)],
    fixtures: fixtures!["ee_ariregister/companies.json"],
    ..EMPTY
};

const MOST: usize = 10;

fn autocomplete(call: &Call) -> Answer {
    if call.header("user-agent").is_none() {
        return Answer::html(
            403,
            "<html><head><title>403 Forbidden</title></head><body><h1>Forbidden</h1></body></html>",
        );
    }
    let query = call.query("q").unwrap_or_default();
    let names = |company: &Value| {
        let former = company["historical_names"].as_array().into_iter().flatten();
        let all = former.chain([&company["name"]]).filter_map(Value::as_str);
        all.map(str::to_owned).collect::<Vec<_>>()
    };
    let wanted = |company: &Value| {
        query.parse().is_ok_and(|code: u64| company["reg_code"] == code)
            || names(company).iter().any(|name| matches(name, query))
    };
    let all = call.record("/companies.json").and_then(|all| all.as_array().cloned()).unwrap_or_default();
    let found = page(all.into_iter().filter(wanted).collect(), 0, MOST);
    Answer::ok(json!({"status": "OK", "data": found})).header("content-type", "text/html; charset=utf-8")
}
