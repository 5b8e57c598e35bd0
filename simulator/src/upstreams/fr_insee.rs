//! Sirene: units and establishments of the French statistical office, and the open search, its fallback.

use std::time::Duration;

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fault::{ENFORCE_RATE, Parameter, Scenario};
use crate::spec::{Call, EMPTY, Rate, UpstreamSpec, fixtures, get, matches, page};

/// The spec of Sirene.
pub(crate) static SIRENE: UpstreamSpec = UpstreamSpec {
    name: "fr_insee",
    hosts: &["https://api.insee.fr"],
    base: "/api-sirene/3.11",
    routes: &[
        get("search", "/siren", search),
        get("unit", "/siren/{}", unit),
        get("establishment", "/siret/{}", establishment),
        get("status", "/informations", status),
    ],
    unrouted: || error(404, "Ressource non trouvée"),
    fixtures: fixtures![
        "fr_insee/establishments/55203253400646.json",
        "fr_insee/hidden.json",
        "fr_insee/units/055804124.json",
        "fr_insee/units/552032534.json",
        "fr_insee/units/780129987.json",
        "fr_insee/units/999000201.json",
    ],
    scenarios: &[
        ENFORCE_RATE,
        Scenario { name: "non_diffusible", parameter: Parameter::None, about: "403: every unit is hidden by law" },
        Scenario { name: "maintenance", parameter: Parameter::None, about: "503 of an announced maintenance" },
    ],
    rate: Some(Rate { calls: 30, window: Duration::from_secs(60), refusal: too_many }),
    credentials: &[("INSEE_API_KEY", "simulated")],
    ..EMPTY
};

/// The spec of the open search.
pub(crate) static OPEN: UpstreamSpec = UpstreamSpec {
    name: "recherche_entreprises",
    hosts: &["https://recherche-entreprises.api.gouv.fr"],
    routes: &[get("search", "/search", open_search)],
    unrouted: || Answer::json(404, json!({"erreur": "Ressource non trouvée"})),
    fixtures: fixtures![
        "recherche_entreprises/055804124.json",
        "recherche_entreprises/552032534.json",
        "recherche_entreprises/780129987.json",
    ],
    scenarios: &[ENFORCE_RATE],
    rate: Some(Rate { calls: 7, window: Duration::from_secs(1), refusal: open_too_many }),
    ..EMPTY
};

fn error(status: u16, message: &str) -> Answer {
    Answer::json(status, json!({"header": {"statut": status, "message": message}}))
}

fn too_many() -> Answer {
    error(429, "Vous avez dépassé le quota de votre souscription").header("retry-after", "60")
}

fn open_too_many() -> Answer {
    Answer::json(429, json!({"erreur": "Trop de requêtes"})).header("retry-after", "1")
}

fn refusal(call: &Call) -> Option<Answer> {
    if call.header("x-insee-api-key-integration").is_none() {
        return Some(error(401, "Clé d'API manquante ou invalide"));
    }
    call.scenario("maintenance").map(|_| error(503, "Service en maintenance"))
}

fn header() -> Value {
    json!({"statut": 200, "message": "OK"})
}

fn unit(call: &Call) -> Answer {
    let siren = call.captured(0);
    if let Some(refusal) = refusal(call) {
        return refusal;
    }
    if siren.len() != 9 || !siren.bytes().all(|b| b.is_ascii_digit()) {
        return error(400, "Erreur de syntaxe dans le paramètre siren");
    }
    let hidden =
        call.record("/hidden.json").is_some_and(|list| list.as_array().is_some_and(|l| l.contains(&json!(siren))));
    if hidden || call.scenario("non_diffusible").is_some() {
        return error(403, &format!("Unité légale non diffusable ({siren})"));
    }
    match call.record(&format!("/units/{siren}.json")) {
        Some(unit) => Answer::ok(json!({"header": header(), "uniteLegale": unit})),
        None => error(404, &format!("Aucun élément trouvé pour le siren {siren}")),
    }
}

fn establishment(call: &Call) -> Answer {
    let siret = call.captured(0);
    let found = || match call.record(&format!("/establishments/{siret}.json")) {
        Some(found) => Answer::ok(json!({"header": header(), "etablissement": found})),
        None => error(404, &format!("Aucun élément trouvé pour le siret {siret}")),
    };
    refusal(call).unwrap_or_else(found)
}

fn search(call: &Call) -> Answer {
    if let Some(refusal) = refusal(call) {
        return refusal;
    }
    // `field:value`, the value in quotes or not.
    let query = call.query("q").unwrap_or_default();
    let Some((field, value)) = query.split_once(':').filter(|_| query.matches('"').count().is_multiple_of(2)) else {
        return error(400, "Erreur de syntaxe dans le paramètre q=");
    };
    let (field, value) = (field.trim(), value.trim().trim_matches('"'));
    let wanted = |unit: &Value| match field {
        "siren" => unit["siren"] == value,
        _ => matches(unit["periodesUniteLegale"][0]["denominationUniteLegale"].as_str().unwrap_or_default(), value),
    };
    let found: Vec<_> = call.records("fr_insee/units/").into_iter().filter(wanted).collect();
    if found.is_empty() {
        return error(404, "Aucun élément trouvé pour les critères de recherche");
    }
    let (size, start, total) = (call.number("nombre", 20), call.number("debut", 0), found.len());
    let shown = page(found, start, size);
    let header = json!({"statut": 200, "message": "OK", "total": total, "debut": start, "nombre": shown.len()});
    Answer::ok(json!({"header": header, "unitesLegales": shown}))
}

fn status(call: &Call) -> Answer {
    let up = |name: &str| json!({"Collection": name, "etatCollection": "UP"});
    let states = json!([up("Unités Légales"), up("Établissements"), up("Liens de succession")]);
    let report = json!({"versionService": "3.11", "etatService": "UP", "etatsDesServices": states});
    refusal(call).unwrap_or_else(|| Answer::ok(report))
}

fn open_search(call: &Call) -> Answer {
    let query = call.query("q").unwrap_or_default();
    if query.chars().count() < 3 {
        let text = "3 caractères minimum pour les termes de la requête";
        return Answer::json(400, json!({"erreur": text}));
    }
    let name = |record: &Value| record["nom_complet"].as_str().unwrap_or_default().to_owned();
    let wanted = |record: &Value| record["siren"] == query || matches(&name(record), query);
    let found: Vec<_> = call.records("recherche_entreprises/").into_iter().filter(wanted).collect();
    let (number, size, total) = (call.number("page", 1), call.number("per_page", 10), found.len());
    Answer::ok(json!({
        "results": page(found, size * number.saturating_sub(1), size), "total_results": total, "page": number,
        "per_page": size, "total_pages": total.div_ceil(size.max(1)),
    }))
}
