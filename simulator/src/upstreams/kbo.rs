//! KBO: the Belgian register's public search, as HTML in English and French. Every answer is a 200, also "not found".

use crate::answer::Answer;
use crate::fault::{Parameter, Scenario};
use crate::spec::{Call, EMPTY, UpstreamSpec, fixtures, get};

/// The spec.
pub(crate) static SPEC: UpstreamSpec = UpstreamSpec {
    name: "kbo",
    hosts: &["https://kbopub.economie.fgov.be"],
    base: "/kbopub",
    routes: &[
        get("entity", "/toonondernemingps.html", |call| show(call, "entities", "ondernemingsnummer")),
        get("form", "/zoeknummerform.html", |call| show(call, "entities", "nummer")),
        get("establishments", "/vestiginglijst.html", |call| show(call, "establishments", "ondernemingsnummer")),
    ],
    fixtures: fixtures![
        "kbo/entities/0202239951.en.html",
        "kbo/entities/0202239951.fr.html",
        "kbo/entities/0403199702.en.html",
        "kbo/entities/0403199702.fr.html",
        "kbo/entities/0999000129.en.html",
        "kbo/entities/0999000129.fr.html",
        "kbo/establishments/0202239951.en.html",
        "kbo/establishments/0202239951.fr.html",
        "kbo/establishments/0403199702.en.html",
        "kbo/establishments/0403199702.fr.html",
        "kbo/establishments/0999000129.en.html",
        "kbo/establishments/0999000129.fr.html",
        "kbo/invalid.en.html",
        "kbo/invalid.fr.html",
        "kbo/notfound.en.html",
        "kbo/notfound.fr.html",
    ],
    scenarios: &[Scenario { name: "blocked", parameter: Parameter::None, about: "403: the address is banned" }],
    ..EMPTY
};

fn show(call: &Call, folder: &str, parameter: &str) -> Answer {
    if call.scenario("blocked").is_some() {
        return Answer::html(403, "<html><head><title>Forbidden</title></head><body><h1>Forbidden</h1></body></html>");
    }
    let language = if call.query("lang") == Some("fr") { "fr" } else { "en" };
    let digits: String = call.query(parameter).unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
    let number = format!("{digits:0>10}");
    let valid = |number: &str| {
        let (body, check) = number.split_at(8);
        matches!((body.parse::<u64>(), check.parse::<u64>()), (Ok(body), Ok(check)) if 97 - body % 97 == check)
    };
    let html = |file: String, found: Option<&'static [u8]>| {
        let bytes = found.or_else(|| call.fixed(&file)).unwrap_or_default();
        Answer::bytes(200, "text/html;charset=UTF-8", bytes.into())
    };
    if number.len() != 10 || !valid(&number) {
        return html(format!("kbo/invalid.{language}.html"), None);
    }
    let found = call.fixture(&format!("/{folder}/{number}.{language}.html"));
    html(format!("kbo/notfound.{language}.html"), found)
}
