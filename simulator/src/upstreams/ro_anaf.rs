//! ANAF: Romanian taxpayers, up to a hundred a call, behind a firewall that refuses with status 200.

use std::time::Duration;

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fault::{ENFORCE_RATE, Parameter, Scenario};
use crate::spec::{Call, EMPTY, Rate, UpstreamSpec, fixtures, get, post};

/// The spec.
pub(crate) static SPEC: UpstreamSpec = UpstreamSpec {
    name: "ro_anaf",
    hosts: &["https://webservicesp.anaf.ro"],
    routes: &[
        post("vat", "/api/PlatitorTvaRest/v9/tva", vat),
        get("balance_sheet", "/bilant", balance_sheet),
        post("e_invoice", "/api/registruroefactura/v1/interogare", e_invoice),
    ],
    fixtures: fixtures![
        "ro_anaf/balance/14399840.json",
        "ro_anaf/vat/14399840.json",
        "ro_anaf/vat/1590082.json",
        "ro_anaf/vat/99000107.json",
    ],
    scenarios: &[
        ENFORCE_RATE,
        Scenario { name: "f5_page", parameter: Parameter::None, about: "the firewall's page with status 200" },
        Scenario { name: "wrapper", parameter: Parameter::None, about: "answers carry the documented cod and message" },
        Scenario {
            name: "wrapper_error",
            parameter: Parameter::Word("COD"),
            about: "status 200 with this cod and no result",
        },
    ],
    rate: Some(Rate { calls: 1, window: Duration::from_secs(1), refusal: f5_page }),
    ..EMPTY
};

fn f5_page() -> Answer {
    Answer::html(
        200,
        "<html><head><title>Request Rejected</title></head><body>The requested URL was rejected. Please consult with \
         your administrator.<br><br>Your support ID is: 1234567890123456789<br><br>\
         <a href='javascript:history.back();'>[Go Back]</a></body></html>",
    )
}

/// The records for the numbers of a request, and the numbers that have none.
fn taxpayers(call: &Call) -> (Vec<Value>, Vec<Value>) {
    let request = call.json();
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for item in request.as_array().into_iter().flatten() {
        match call.record(&format!("/vat/{}.json", item["cui"])) {
            Some(mut record) => {
                record["date_generale"]["data"] = item["data"].clone();
                found.push(record);
            }
            None => missing.push(item["cui"].clone()),
        }
    }
    (found, missing)
}

fn vat(call: &Call) -> Answer {
    if call.scenario("f5_page").is_some() {
        return f5_page();
    }
    if let Some(cod) = call.scenario("wrapper_error") {
        let cod: u64 = cod.parse().unwrap_or(500);
        return Answer::ok(json!({"cod": cod, "message": "ERROR", "found": [], "notFound": []}));
    }
    let request = call.json();
    let valid = |item: &Value| item["cui"].is_u64() && item["data"].as_str().is_some_and(|date| date.len() == 10);
    match request.as_array() {
        Some(items) if items.len() <= 100 && !items.is_empty() && items.iter().all(valid) => {}
        _ => {
            return Answer::json(
                400,
                json!({"timestamp": 1_796_000_000_000_u64, "status": 400, "error": "Bad Request"}),
            );
        }
    }
    let (found, missing) = taxpayers(call);
    let mut document = json!({"found": found, "notFound": missing});
    if call.scenario("wrapper").is_some() {
        document["cod"] = json!(200);
        document["message"] = json!("SUCCESS");
    }
    Answer::ok(document)
}

fn e_invoice(call: &Call) -> Answer {
    if call.scenario("f5_page").is_some() {
        return f5_page();
    }
    let (found, missing) = taxpayers(call);
    let status = if found.is_empty() { 404 } else { 200 };
    let row = |record: Value| {
        let general = &record["date_generale"];
        json!({"cui": general["cui"], "denumire": general["denumire"], "registru": "Registrul RO e-Factura obligatoriu"})
    };
    Answer::json(status, json!({"found": found.into_iter().map(row).collect::<Vec<_>>(), "notFound": missing}))
}

fn balance_sheet(call: &Call) -> Answer {
    if call.scenario("f5_page").is_some() {
        return f5_page();
    }
    let year = call.number("an", 0);
    let number: u64 = call.query("cui").and_then(|cui| cui.parse().ok()).unwrap_or_default();
    // Sheets are on file for every second year, so that last year's may be missing in any year.
    let mut found = call.record(&format!("/balance/{number}.json")).filter(|_| year.is_multiple_of(2));
    if let Some(sheet) = &mut found {
        sheet["an"] = json!(year);
    }
    // A sheet that does not exist has the shape of one, without a name and without indicators.
    Answer::ok(
        found.unwrap_or_else(|| json!({"an": year, "cui": number, "deni": "", "caen": 0, "den_caen": "", "i": []})),
    )
}
