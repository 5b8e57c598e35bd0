//! VIES: the Commission's gateway before one service per member state. Its failures come with status 200.
//!
//! The REST and the SOAP interface are two upstreams, because either can fail without the other. They know the same
//! numbers. Certain numbers stand for certain outcomes, as in the Commission's own test service: see [`TEST_NUMBERS`].

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fault::{Parameter, Scenario};
use crate::spec::{Call, EMPTY, UpstreamSpec, escape, fixtures, get, post};

/// The spec of the REST interface.
pub(crate) static REST: UpstreamSpec = UpstreamSpec {
    name: "vies",
    base: "/taxation_customs/vies/rest-api",
    routes: &[
        get("check", "/ms/{}/vat/{}", check),
        post("check_number", "/check-vat-number", check_number),
        post("check_test", "/check-vat-test-service", check_number),
        get("status", "/check-status", status),
    ],
    fixtures: fixtures!["vies/numbers.json"],
    scenarios: &[
        Scenario {
            name: "ms_unavailable",
            parameter: Parameter::Word("CC[,CC]"),
            about: "these member states are down, in userError",
        },
        Scenario {
            name: "user_error",
            parameter: Parameter::Word("CODE"),
            about: "every check answers 200 with this userError",
        },
        Scenario {
            name: "error_wrapper",
            parameter: Parameter::Word("CODE"),
            about: "every check answers 200 with this in errorWrappers",
        },
    ],
    key: |call| Some(asked(call).0).filter(|country| !country.is_empty()),
    ..EMPTY
};

/// The spec of the SOAP interface.
pub(crate) static SOAP: UpstreamSpec = UpstreamSpec {
    name: "vies_soap",
    base: "/taxation_customs/vies/services",
    routes: &[post("check", "/checkVatService", check_soap), post("check_test", "/checkVatTestService", check_soap)],
    fixtures: fixtures!["vies/numbers.json"],
    scenarios: &[
        Scenario {
            name: "ms_unavailable",
            parameter: Parameter::Word("CC[,CC]"),
            about: "these member states are down: a fault with 200",
        },
        Scenario {
            name: "soap_fault",
            parameter: Parameter::Word("CODE"),
            about: "every check is a SOAP fault with status 200",
        },
        Scenario {
            name: "soap_fault_500",
            parameter: Parameter::Word("CODE"),
            about: "every check is a SOAP fault with status 500",
        },
    ],
    key: |call| Some(asked(call).0).filter(|country| !country.is_empty()),
    ..EMPTY
};

/// Numbers that stand for an outcome: valid, invalid, or a code.
const TEST_NUMBERS: &[(&str, &str)] = &[
    ("100", "VALID"),
    ("200", "INVALID"),
    ("201", "INVALID_INPUT"),
    ("202", "INVALID_REQUESTER_INFO"),
    ("300", "SERVICE_UNAVAILABLE"),
    ("301", "MS_UNAVAILABLE"),
    ("302", "TIMEOUT"),
    ("400", "VAT_BLOCKED"),
    ("401", "IP_BLOCKED"),
    ("500", "GLOBAL_MAX_CONCURRENT_REQ"),
    ("501", "GLOBAL_MAX_CONCURRENT_REQ_TIME"),
    ("600", "MS_MAX_CONCURRENT_REQ"),
    ("601", "MS_MAX_CONCURRENT_REQ_TIME"),
];

const MEMBER_STATES: &str = "AT BE BG CY CZ DE DK EE EL ES FI FR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK XI";
const NOW: &str = "2026-11-30T08:00:00.000Z";

/// The answer of the member state.
enum Outcome {
    Valid { name: String, address: String },
    Invalid,
    Code(String),
}

/// The country and number that a call asks for, from its path, its JSON or its XML.
fn asked(call: &Call) -> (String, String) {
    let body = call.json();
    let either = |captured: usize, name: &str| {
        let text = body[name].as_str().or_else(|| call.element(name)).unwrap_or_else(|| call.captured(captured));
        text.to_uppercase()
    };
    (either(0, "countryCode"), either(1, "vatNumber"))
}

fn down(call: &Call, country: &str) -> bool {
    call.scenario("ms_unavailable").is_some_and(|list| list.split(',').any(|down| down.eq_ignore_ascii_case(country)))
}

fn outcome(call: &Call, country: &str, number: &str) -> Outcome {
    let code = |code: &str| Outcome::Code(code.to_owned());
    let test = TEST_NUMBERS.iter().find(|(test, _)| *test == number).map(|(_, outcome)| *outcome);
    let known = call.record("/numbers.json").map(|numbers| numbers[format!("{country}{number}")].clone());
    match (test, known) {
        _ if !MEMBER_STATES.split(' ').any(|state| state == country) => code("INVALID_INPUT"),
        _ if down(call, country) => code("MS_UNAVAILABLE"),
        (Some("VALID"), _) => {
            Outcome::Valid { name: "John Doe".to_owned(), address: "123 Main St, Anytown".to_owned() }
        }
        (Some("INVALID"), _) => Outcome::Invalid,
        (Some(error), _) => code(error),
        (None, _)
            if number.is_empty() || !number.chars().all(|c| c.is_ascii_alphanumeric() || c == '+' || c == '*') =>
        {
            code("INVALID_INPUT")
        }
        (None, Some(Value::Object(record))) => {
            let text = |field: &str| record[field].as_str().unwrap_or("---").to_owned();
            Outcome::Valid { name: text("name"), address: text("address") }
        }
        (None, _) => Outcome::Invalid,
    }
}

fn wrapped(code: &str) -> Answer {
    Answer::ok(json!({"actionSucceed": false, "errorWrappers": [{"error": code, "message": code}]}))
}

fn check(call: &Call) -> Answer {
    if let Some(code) = call.scenario("error_wrapper") {
        return wrapped(code);
    }
    let (country, number) = asked(call);
    let outcome = match call.scenario("user_error") {
        Some(code) => Outcome::Code(code.to_owned()),
        None => outcome(call, &country, &number),
    };
    let (valid, error, name, address) = match outcome {
        Outcome::Valid { name, address } => (true, "VALID".to_owned(), name, address),
        Outcome::Invalid => (false, "INVALID".to_owned(), "---".to_owned(), "---".to_owned()),
        Outcome::Code(code) => (false, code, "---".to_owned(), "---".to_owned()),
    };
    let unmatched = json!({
        "name": "---", "street": "---", "postalCode": "---", "city": "---", "companyType": "---",
        "matchName": 3, "matchStreet": 3, "matchPostalCode": 3, "matchCity": 3, "matchCompanyType": 3,
    });
    Answer::ok(json!({
        "isValid": valid, "requestDate": NOW, "userError": error, "name": name, "address": address,
        "requestIdentifier": "", "originalVatNumber": number, "vatNumber": number, "viesApproximate": unmatched,
    }))
}

fn check_number(call: &Call) -> Answer {
    let (country, number) = asked(call);
    let forced = call.scenario("error_wrapper").or_else(|| call.scenario("user_error"));
    let outcome = match forced {
        Some(code) => Outcome::Code(code.to_owned()),
        None => outcome(call, &country, &number),
    };
    let (valid, name, address) = match outcome {
        Outcome::Valid { name, address } => (true, name, address),
        Outcome::Invalid => (false, "---".to_owned(), "---".to_owned()),
        Outcome::Code(code) => return wrapped(&code),
    };
    let body = call.json();
    let requested = valid && body["requesterNumber"].as_str().is_some_and(|number| !number.is_empty());
    let not_processed = "NOT_PROCESSED";
    Answer::ok(json!({
        "countryCode": country, "vatNumber": number, "requestDate": NOW, "valid": valid,
        "requestIdentifier": if requested { "WAPIAAAASimulated1" } else { "" },
        "name": name, "address": address,
        "traderName": "---", "traderStreet": "---", "traderPostalCode": "---", "traderCity": "---",
        "traderCompanyType": "---", "traderNameMatch": not_processed, "traderStreetMatch": not_processed,
        "traderPostalCodeMatch": not_processed, "traderCityMatch": not_processed,
        "traderCompanyTypeMatch": not_processed,
    }))
}

fn status(call: &Call) -> Answer {
    let availability = |country: &str| if down(call, country) { "Unavailable" } else { "Available" };
    let countries: Vec<_> = MEMBER_STATES
        .split(' ')
        .map(|country| json!({"countryCode": country, "availability": availability(country)}))
        .collect();
    Answer::ok(json!({"vow": {"available": true}, "countries": countries}))
}

fn check_soap(call: &Call) -> Answer {
    let fault = |status, code: &str| {
        let code = escape(code);
        Answer::soap(
            status,
            &format!("<env:Fault><faultcode>env:Server</faultcode><faultstring>{code}</faultstring></env:Fault>"),
        )
    };
    if let Some(code) = call.scenario("soap_fault_500") {
        return fault(500, code);
    }
    if let Some(code) = call.scenario("soap_fault") {
        return fault(200, code);
    }
    let (country, number) = asked(call);
    let (valid, name, address) = match outcome(call, &country, &number) {
        Outcome::Valid { name, address } => (true, name, address),
        Outcome::Invalid => (false, "---".to_owned(), "---".to_owned()),
        Outcome::Code(code) => return fault(200, &code),
    };
    let (name, address) = (escape(&name), escape(&address));
    Answer::soap(
        200,
        &format!(
            "<ns2:checkVatResponse xmlns:ns2=\"urn:ec.europa.eu:taxud:vies:services:checkVat:types\">\
             <ns2:countryCode>{country}</ns2:countryCode><ns2:vatNumber>{number}</ns2:vatNumber>\
             <ns2:requestDate>2026-11-30+01:00</ns2:requestDate><ns2:valid>{valid}</ns2:valid>\
             <ns2:name>{name}</ns2:name><ns2:address>{address}</ns2:address></ns2:checkVatResponse>"
        ),
    )
}
