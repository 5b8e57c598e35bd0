//! The Czech register of beneficial owners: closed to the public since 17 December 2025.

use serde_json::json;

use crate::answer::Answer;
use crate::fault::{Arg, Scenario};
use crate::upstream::{BLANK, Call, Upstream, get};

/// The row.
pub(super) static ROW: Upstream = Upstream {
    name: "cz_ubo",
    hosts: &["https://esm.justice.cz"],
    routes: &[get("owners", "/ias/issm/rejstrik-$sm", owners)],
    scenarios: &[
        Scenario { name: "login_page", arg: Arg::None, about: "the form to log in, with status 200" },
        Scenario {
            name: "authenticated",
            arg: Arg::None,
            about: "as an obliged entity sees it; the JSON is this simulator's",
        },
    ],
    ..BLANK
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
