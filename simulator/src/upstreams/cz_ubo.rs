//! The Czech register of beneficial owners: closed to the public since 17 December 2025.

use serde_json::json;

use crate::answer::Answer;
use crate::fault::{Parameter, Scenario};
use crate::spec::{Call, EMPTY, UpstreamSpec, get};

/// The spec.
pub(crate) static SPEC: UpstreamSpec = UpstreamSpec {
    name: "cz_ubo",
    hosts: &["https://esm.justice.cz"],
    routes: &[get("owners", "/ias/issm/rejstrik-$sm", owners)],
    scenarios: &[
        Scenario { name: "login_page", parameter: Parameter::None, about: "the form to log in, with status 200" },
        Scenario {
            name: "authenticated",
            parameter: Parameter::None,
            about: "as an obliged entity sees it; the JSON is this simulator's",
        },
    ],
    ..EMPTY
};

const CLOSED: &str = "<!DOCTYPE html>\n<html lang=\"cs\"><head><meta charset=\"utf-8\"><title>Přístup odepřen</title></head>\n\
    <body><h1>Přístup odepřen</h1><p>Veřejný přístup do evidence skutečných majitelů byl ukončen 17. 12. 2025.</p></body></html>\n";
const LOGIN: &str = "<!DOCTYPE html>\n<html lang=\"cs\"><head><meta charset=\"utf-8\"><title>Přihlášení</title></head>\n\
    <body><form action=\"/ias/login\" method=\"post\"><input name=\"username\"><input name=\"password\"></form></body></html>\n";

fn owners(call: &Call) -> Answer {
    if call.scenario("login_page").is_some() {
        return Answer::html(200, LOGIN);
    }
    if call.scenario("authenticated").is_none() {
        return Answer::html(403, CLOSED);
    }
    let owner = json!({"jmeno": "Jana", "prijmeni": "Vzorová", "podil": "100 %", "datumZapisu": "2021-06-01"});
    Answer::ok(json!({"ico": call.query("ico"), "skutecniMajitele": [owner]}))
}
