//! ARES: an entity, a search and the public register. It has two kinds of 404. Only one of them means "not found".

use std::time::Duration;

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fault::{ENFORCE_RATE, Parameter, Scenario};
use crate::spec::{Call, EMPTY, Rate, UpstreamSpec, fixtures, get, matches, page, post};

/// The spec.
pub(crate) static SPEC: UpstreamSpec = UpstreamSpec {
    name: "cz_ares",
    hosts: &["https://ares.gov.cz"],
    base: "/ekonomicke-subjekty-v-be/rest",
    routes: &[
        post("search", "/ekonomicke-subjekty/vyhledat", search),
        get("entity", "/ekonomicke-subjekty/{}", |call| entity(call, "entities")),
        get("public_register", "/ekonomicke-subjekty-vr/{}", public_register),
    ],
    unrouted: moved,
    fixtures: fixtures![
        "cz_ares/entities/26168685.json",
        "cz_ares/entities/27082440.json",
        "cz_ares/entities/45274649.json",
        "cz_ares/entities/99000105.json",
        "cz_ares/vr/26168685.json",
        "cz_ares/vr/27082440.json",
        "cz_ares/vr/45274649.json",
    ],
    scenarios: &[
        ENFORCE_RATE,
        Scenario {
            name: "moved",
            parameter: Parameter::None,
            about: "404 of the framework: the endpoint is gone, not the company",
        },
        Scenario { name: "too_many", parameter: Parameter::None, about: "every search has more than 1000 hits" },
        Scenario {
            name: "vr_down",
            parameter: Parameter::None,
            about: "the public register fails while the rest answers",
        },
    ],
    rate: Some(Rate { calls: 500, window: Duration::from_secs(60), refusal: blocked }),
    ..EMPTY
};

fn error(status: u16, code: &str, text: &str, sub: &str) -> Answer {
    Answer::json(status, json!({"kod": code, "popis": text, "subKod": sub}))
}

fn unknown() -> Answer {
    error(404, "NENALEZENO", "Požadovaný ekonomický subjekt nebyl nalezen.", "VYSTUP_SUBJEKT_NENALEZEN")
}

fn too_many() -> Answer {
    let text = "Dotaz vrátil příliš mnoho výsledků, upřesněte zadání.";
    error(400, "CHYBA_VSTUPU", text, "VYSTUP_PRILIS_MNOHO_VYSLEDKU")
}

fn blocked() -> Answer {
    Answer::json(403, json!({"kod": "PRISTUP_ODMITNUT", "popis": "Překročen limit dotazů."}))
}

fn moved() -> Answer {
    let path = "/ekonomicke-subjekty-v-be/rest";
    Answer::json(
        404,
        json!({"timestamp": "2026-11-30T08:00:00.000+00:00", "status": 404, "error": "Not Found", "path": path}),
    )
}

fn entity(call: &Call, folder: &str) -> Answer {
    let ico = call.captured(0);
    if call.scenario("moved").is_some() {
        return moved();
    }
    // The check digit is not looked at.
    if ico.len() != 8 || !ico.bytes().all(|b| b.is_ascii_digit()) {
        return error(400, "CHYBA_VSTUPU", "IČO nemá platný formát.", "VSTUP_NEVALIDNI_FORMAT_ICO");
    }
    call.record(&format!("/{folder}/{ico}.json")).map_or_else(unknown, Answer::ok)
}

fn public_register(call: &Call) -> Answer {
    if call.scenario("vr_down").is_some() {
        return error(500, "OBECNA_CHYBA", "Obecná chyba aplikace.", "OBECNA_CHYBA");
    }
    entity(call, "vr")
}

fn search(call: &Call) -> Answer {
    let query = call.json();
    let (name, icos) = (query["obchodniJmeno"].as_str().unwrap_or_default(), query["ico"].as_array());
    if call.scenario("moved").is_some() {
        return moved();
    }
    if name.is_empty() && icos.is_none() {
        return error(400, "CHYBA_VSTUPU", "Nebyl zadán žádný filtr.", "VSTUP_PRAZDNY");
    }
    // One letter begins the name of far more companies than may be listed.
    if call.scenario("too_many").is_some() || name.chars().count() == 1 {
        return too_many();
    }
    let wanted = |record: &Value| {
        let named = name.is_empty() || matches(record["obchodniJmeno"].as_str().unwrap_or_default(), name);
        named && icos.is_none_or(|icos| icos.contains(&record["ico"]))
    };
    let found: Vec<Value> = call.records("cz_ares/entities/").into_iter().filter(wanted).collect();
    let number = |field: &str, default: u64| query[field].as_u64().unwrap_or(default) as usize;
    let total = found.len();
    let shown = page(found, number("start", 0), number("pocet", 10));
    Answer::ok(json!({"pocetCelkem": total, "ekonomickeSubjekty": shown}))
}
