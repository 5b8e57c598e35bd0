//! GLEIF: JSON:API records, and parents: either another record, or the reason why there is none.

use std::time::Duration;

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fault::ENFORCE_RATE;
use crate::spec::{Call, EMPTY, Rate, UpstreamSpec, fixtures, get, matches, page};

/// The spec.
pub(crate) static SPEC: UpstreamSpec = UpstreamSpec {
    name: "gleif",
    hosts: &["https://api.gleif.org"],
    base: "/api/v1",
    routes: &[
        get("search", "/lei-records", search),
        get("record", "/lei-records/{}", record),
        get("direct_parent", "/lei-records/{}/direct-parent", |call| parent(call, "direct-parent")),
        get("ultimate_parent", "/lei-records/{}/ultimate-parent", |call| parent(call, "ultimate-parent")),
        get("direct_children", "/lei-records/{}/direct-children", children),
        get("direct_parent_exception", "/lei-records/{}/direct-parent-reporting-exception", |call| {
            exception(call, "direct-parent", "DIRECT_ACCOUNTING_CONSOLIDATION_PARENT")
        }),
        get("ultimate_parent_exception", "/lei-records/{}/ultimate-parent-reporting-exception", |call| {
            exception(call, "ultimate-parent", "ULTIMATE_ACCOUNTING_CONSOLIDATION_PARENT")
        }),
    ],
    unrouted: not_found,
    fixtures: fixtures![
        "gleif/records/213800LH1BZH3DI6G760.json",
        "gleif/records/529900PS9YW3YY29F326.json",
        "gleif/records/529900S5R9YHJHYKKG94.json",
        "gleif/records/549300A0JPRWG1KI7U06.json",
        "gleif/records/549300CWRXC5EP004533.json",
        "gleif/records/549300DAQ1CVT6CXN342.json",
        "gleif/records/724500Y6DUVHQD6OXN27.json",
        "gleif/records/969500KMUQ2B6CBAF162.json",
        "gleif/records/98450073EGD581D89F03.json",
        "gleif/records/999900SIM000ALZA0094.json",
        "gleif/records/999900SIM000BOLT0009.json",
        "gleif/records/999900SIM000ESET0018.json",
        "gleif/records/999900SIM00DANTE0082.json",
        "gleif/records/999900SIM0SUPERCEL85.json",
        "gleif/records/999900SIM0TELENOR025.json",
        "gleif/records/KY37LUS27QQX7BB93L28.json",
        "gleif/records/OW6OFBNCKXC4US5C7523.json",
        "gleif/relationships.json",
    ],
    scenarios: &[ENFORCE_RATE],
    rate: Some(Rate { calls: 60, window: Duration::from_secs(60), refusal: too_many }),
    ..EMPTY
};

const JSON_API: &str = "application/vnd.api+json";

fn json_api(status: u16, document: Value) -> Answer {
    Answer::json(status, document).header("content-type", JSON_API)
}

fn error(status: u16, title: &str) -> Answer {
    json_api(status, json!({"errors": [{"status": status.to_string(), "title": title}]}))
}

fn not_found() -> Answer {
    error(404, "Not Found")
}

fn too_many() -> Answer {
    error(429, "Too Many Requests").header("retry-after", "60")
}

fn golden_copy() -> Value {
    json!({"publishDate": "2026-11-29T16:00:00Z"})
}

fn one(data: Value) -> Answer {
    json_api(200, json!({"meta": {"goldenCopy": golden_copy()}, "data": data}))
}

fn many(call: &Call, found: Vec<Value>) -> Answer {
    let (size, number) = (call.number("page[size]", 15), call.number("page[number]", 1));
    if !(1..=200).contains(&size) || number == 0 {
        return error(400, "Invalid Query Parameter");
    }
    let total = found.len();
    let (first, last) = ((number - 1) * size, total.div_ceil(size).max(1));
    let data = page(found, first, size);
    let bound = |n: usize| if data.is_empty() { Value::Null } else { json!(n) };
    let link = |n: usize| format!("https://api.gleif.org/api/v1/lei-records?page[size]={size}&page[number]={n}");
    let pagination = json!({
        "currentPage": number, "perPage": size, "from": bound(first + 1), "to": bound(first + data.len()),
        "total": total, "lastPage": last,
    });
    json_api(
        200,
        json!({
            "meta": {"goldenCopy": golden_copy(), "pagination": pagination},
            "links": {"first": link(1), "last": link(last)},
            "data": data,
        }),
    )
}

fn find(call: &Call, lei: &str) -> Option<Value> {
    call.record(&format!("/records/{lei}.json"))
}

fn record(call: &Call) -> Answer {
    find(call, call.captured(0)).map_or_else(not_found, one)
}

fn search(call: &Call) -> Answer {
    let wanted = |record: &Value| {
        let entity = &record["attributes"]["entity"];
        let text = |pointer: &str| entity.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        call.query.iter().all(|(filter, value)| match filter.as_str() {
            "filter[lei]" => value.split(',').any(|lei| record["id"] == lei),
            "filter[entity.legalName]" | "filter[entity.names]" => matches(text("/legalName/name"), value),
            "filter[fulltext]" => {
                matches(text("/legalName/name"), value) || record["id"] == *value || text("/registeredAs") == value
            }
            // Exact: the number must be written as its register writes it.
            "filter[entity.registeredAs]" => text("/registeredAs") == value,
            "filter[entity.jurisdiction]" => text("/jurisdiction") == value,
            "filter[entity.legalAddress.country]" => text("/legalAddress/country") == value,
            _ => true,
        })
    };
    many(call, call.records("gleif/records/").into_iter().filter(wanted).collect())
}

/// The entry of a record in the table of relationships.
fn relationship(call: &Call, lei: &str) -> Value {
    call.record("/relationships.json").map_or(Value::Null, |table| table[lei].clone())
}

fn parent(call: &Call, kind: &str) -> Answer {
    let lei = relationship(call, call.captured(0))[kind].clone();
    lei.as_str().and_then(|lei| find(call, lei)).map_or_else(not_found, one)
}

fn children(call: &Call) -> Answer {
    let child =
        |record: &Value| relationship(call, record["id"].as_str()?)["direct-parent"].as_str().map(str::to_owned);
    let found = call.records("gleif/records/");
    many(call, found.into_iter().filter(|record| child(record).as_deref() == Some(call.captured(0))).collect())
}

fn exception(call: &Call, kind: &str, category: &str) -> Answer {
    let lei = call.captured(0);
    let relationship = relationship(call, lei);
    let Some(reason) = relationship["exception"].as_str() else { return not_found() };
    one(json!({
        "type": "reporting-exceptions",
        "id": format!("{lei}-{kind}"),
        "attributes": {
            "validFrom": null, "validTo": null, "lei": lei, "category": category, "reason": reason, "reference": null,
        },
    }))
}
