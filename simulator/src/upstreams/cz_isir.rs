//! ISIR: the Czech insolvency register over SOAP. "Nothing found" and "the database is down" are codes of the same field.

use std::time::Duration;

use serde_json::Value;

use crate::answer::{Answer, HTML_CHALLENGE};
use crate::fault::{ENFORCE_RATE, Parameter, Scenario};
use crate::spec::{Call, EMPTY, Rate, UpstreamSpec, escape, fixtures, post};

/// The spec.
pub(crate) static SPEC: UpstreamSpec = UpstreamSpec {
    name: "cz_isir",
    hosts: &["https://isir.justice.cz"],
    base: "/isir_cuzk_ws",
    routes: &[post("search", "/IsirWsCuzkService", search)],
    fixtures: fixtures!["cz_isir/99000105.json"],
    scenarios: &[
        ENFORCE_RATE,
        Scenario {
            name: "code",
            parameter: Parameter::Word("CODE"),
            about: "every search answers 200 with this kodChyby",
        },
    ],
    rate: Some(Rate { calls: 50, window: Duration::from_secs(60), refusal: || Answer::html(403, HTML_CHALLENGE) }),
    ..EMPTY
};

/// The fields of a case, in the order of the schema.
const FIELDS: &[&str] = &[
    "ic",
    "rc",
    "cisloSenatu",
    "druhVec",
    "bcVec",
    "rocnik",
    "nazevOrganizace",
    "datumNarozeni",
    "titulPred",
    "titulZa",
    "jmeno",
    "nazevOsoby",
    "druhAdresy",
    "mesto",
    "ulice",
    "cisloPopisne",
    "okres",
    "zeme",
    "psc",
    "druhStavKonkursu",
    "urlDetailRizeni",
    "dalsiDluznikVRizeni",
    "datumPmZahajeniUpadku",
    "datumPmUkonceniUpadku",
];

fn error(code: &str) -> String {
    let text = match code {
        "WS1" => "Nebyla zadána platná kritéria vyhledávání",
        "WS2" => "Prázdný výsledek",
        "WS3" => "Neplatná kombinace kritérií",
        "WS4" => "Překročen maximální počet výsledků",
        _ => "Interní chyba",
    };
    let code = escape(code);
    format!("<kodChyby>{code}</kodChyby><textChyby>{text}</textChyby><popisChyby>{text}</popisChyby>")
}

fn case(record: &Value) -> String {
    let field = |name: &&str| Some(format!("<{name}>{}</{name}>", escape(record[*name].as_str()?)));
    format!("<data>{}</data>", FIELDS.iter().filter_map(field).collect::<String>())
}

fn search(call: &Call) -> Answer {
    let number = call.element("ic").unwrap_or_default();
    let (data, count, error) = match (call.scenario("code"), number) {
        (Some(code), _) => (String::new(), 0, error(code)),
        (None, "") => (String::new(), 0, error("WS1")),
        (None, number) => match call.record(&format!("/{number:0>8}.json")) {
            Some(record) => (case(&record), 1, String::new()),
            None => (String::new(), 0, error("WS2")),
        },
    };
    let relevance = if count > 0 { "<relevanceVysledku>2</relevanceVysledku>" } else { "" };
    let content = format!(
        "<ns2:getIsirWsCuzkDataResponse xmlns:ns2=\"http://isirws.cca.cz/types/\">{data}\
         <stav><pocetVysledku>{count}</pocetVysledku>{relevance}\
         <casSynchronizace>2026-11-30T07:55:00.000+01:00</casSynchronizace>{error}</stav>\
         </ns2:getIsirWsCuzkDataResponse>"
    );
    Answer::soap(200, &content)
}
