//! KVK: the Dutch register, billed per profile, with an error code for each case; and its open data, which has no names.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fault::{Parameter, Scenario};
use crate::spec::{Call, EMPTY, UpstreamSpec, fixtures, get, matches, page};

/// The spec of the API.
pub(crate) static API: UpstreamSpec = UpstreamSpec {
    name: "nl_kvk",
    hosts: &["https://api.kvk.nl"],
    base: "/api",
    routes: &[
        get("search", "/v2/zoeken", search),
        get("profile", "/v1/basisprofielen/{}", |call| profile(call, Clone::clone)),
        get("owner", "/v1/basisprofielen/{}/eigenaar", |call| profile(call, |p| p["_embedded"]["eigenaar"].clone())),
        get("main_branch", "/v1/basisprofielen/{}/hoofdvestiging", |call| {
            profile(call, |p| p["_embedded"]["hoofdvestiging"].clone())
        }),
        get("names", "/v1/naamgevingen/kvknummer/{}", |call| {
            profile(call, |p| {
                let trade = &p["handelsnamen"];
                json!({"kvkNummer": p["kvkNummer"], "statutaireNaam": p["statutaireNaam"], "vestigingen": [{"handelsnamen": trade}]})
            })
        }),
    ],
    unrouted: || fault("IPD9999", "Onbekend adres"),
    fixtures: fixtures!["nl_kvk/profiles/17085815.json", "nl_kvk/profiles/33011433.json", "nl_kvk/undeliverable.json"],
    scenarios: &[Scenario {
        name: "ipd",
        parameter: Parameter::Word("CODE"),
        about: "every call answers this code: IPD1002, IPD0005, …",
    }],
    credentials: &[("KVK_API_KEY", "simulated")],
    ..EMPTY
};

/// The spec of the open data.
pub(crate) static OPEN: UpstreamSpec = UpstreamSpec {
    name: "nl_kvk_open",
    hosts: &["https://opendata.kvk.nl"],
    base: "/api/v1/hvds",
    routes: &[get("company", "/basisbedrijfsgegevens/kvknummer/{}", |call| {
        let missing = || Answer::json(404, json!({"status": 404, "title": "Not Found"}));
        call.record(&format!("/{}.json", call.captured(0))).map_or_else(missing, Answer::ok)
    })],
    unrouted: || Answer::json(404, json!({"status": 404, "title": "Not Found"})),
    fixtures: fixtures!["nl_kvk_open/17085815.json"],
    ..EMPTY
};

/// Each error code and its HTTP status.
const CODES: &[(&str, u16)] = &[
    ("IPD0004", 400),
    ("IPD0005", 404),
    ("IPD0006", 400),
    ("IPD0007", 404),
    ("IPD0010", 400),
    ("IPD1002", 500),
    ("IPD1003", 500),
    ("IPD1998", 400),
    ("IPD1999", 400),
    ("IPD5200", 404),
    ("IPD9999", 500),
];

fn fault(code: &str, text: &str) -> Answer {
    let status = CODES.iter().find(|(known, _)| *known == code).map_or(500, |(_, status)| *status);
    Answer::json(status, json!({"fout": [{"code": code, "omschrijving": text}]}))
}

fn refusal(call: &Call) -> Option<Answer> {
    if call.header("apikey").is_none() {
        return Some(Answer::json(401, json!({"fout": [{"code": "401", "omschrijving": "API key ontbreekt"}]})));
    }
    call.scenario("ipd").map(|code| fault(code, "De gevraagde gegevens zijn niet leverbaar"))
}

fn search(call: &Call) -> Answer {
    if let Some(refusal) = refusal(call) {
        return refusal;
    }
    let (name, number) = (call.query("naam"), call.query("kvkNummer"));
    if name.is_none() && number.is_none() {
        return fault("IPD1998", "Minimaal één zoekparameter is verplicht");
    }
    let wanted = |profile: &Value| {
        name.is_none_or(|name| matches(profile["naam"].as_str().unwrap_or_default(), name))
            && number.is_none_or(|number| profile["kvkNummer"] == number)
    };
    let row = |profile: Value| {
        let address = &profile["_embedded"]["hoofdvestiging"]["adressen"][0];
        let place = json!({"type": "bezoekadres", "straatnaam": address["straatnaam"], "plaats": address["plaats"]});
        let number = profile["kvkNummer"].as_str().unwrap_or_default();
        let link = format!("https://api.kvk.nl/api/v1/basisprofielen/{number}");
        json!({
            "kvkNummer": number, "naam": profile["naam"], "adres": {"binnenlandsAdres": place}, "type": "rechtspersoon",
            "links": [{"rel": "basisprofiel", "href": link}],
        })
    };
    let found: Vec<_> = call.records("nl_kvk/profiles/").into_iter().filter(wanted).map(row).collect();
    if found.is_empty() {
        return fault("IPD5200", "Geen resultaat gevonden");
    }
    let (size, number, total) = (call.number("resultatenPerPagina", 10), call.number("pagina", 1), found.len());
    let shown = page(found, size * number.saturating_sub(1), size);
    Answer::ok(
        json!({"pagina": number, "resultatenPerPagina": size, "totaal": total, "resultaten": shown, "links": []}),
    )
}

fn profile(call: &Call, part: fn(&Value) -> Value) -> Answer {
    let number = call.captured(0);
    if let Some(refusal) = refusal(call) {
        return refusal;
    }
    if number.len() != 8 || !number.bytes().all(|b| b.is_ascii_digit()) {
        return fault("IPD0004", "KVK-nummer is niet valide");
    }
    let undeliverable =
        call.record("/undeliverable.json").and_then(|list| list.as_array().cloned()).unwrap_or_default();
    if undeliverable.contains(&json!(number)) {
        return fault("IPD0005", "Het product is niet leverbaar: de inschrijving is beëindigd");
    }
    let Some(found) = call.record(&format!("/profiles/{number}.json")) else {
        return fault("IPD5200", "Geen resultaat gevonden");
    };
    call.memory.add("billed", 1);
    Answer::ok(part(&found))
}
