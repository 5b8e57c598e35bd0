//! Justice: the Czech collection of deeds, by the JSON behind its portal.
//!
//! The portal's front door takes automated clients for robots and sends them a page, with a 200 as often as with a 403.
//! The older site knows the same deeds and is the fallback.

use std::time::Duration;

use super::{cz_justice_legacy, czech_deeds::filed};
use crate::{
    model::{Notice, Subject},
    parse::date::iso,
    parse::json::{self, Node},
    spec::{
        Answer, Base, Class, Countries, Fallback, Flow, Need, Operation, Probe, Request, Source, SourceError, Stay, on,
    },
};

/// The row.
pub static SOURCE: Source = Source {
    name: "cz_justice",
    title: "Justice, Czech collection of deeds",
    breaker: "cz_justice",
    base: Base { env: "CZ_JUSTICE_BASE_URL", default: "https://verejnerejstriky.msp.gov.cz" },
    rules: &[on(403).means(Class::Throttled, "takes us for a robot and has barred us").stay(Stay::Seconds(3600))],
    probe: Some(Probe::json(|| by_number("27082440"))),
    limits: "none published; automated clients have been blocked since July 2026",
    terms: "public register",
    operations: &[Operation {
        name: "cz_justice.deeds",
        answers: "the documents in the collection of deeds",
        countries: Countries::Only(&["CZ"]),
        needs: &[Need::Id],
        fresh: Some(Duration::from_secs(15 * 60)), // every call may be the one that has us taken for a robot
        flow: Flow::Single { request, parse: deeds },
        fallbacks: &[Fallback {
            via: "cz_justice_legacy",
            proves: "the register's older site answered instead",
            source: &cz_justice_legacy::SOURCE,
            flow: Flow::Steps(cz_justice_legacy::deeds),
        }],
        ..Operation::BLANK
    }],
    ..Source::BLANK
};

fn request(subject: &Subject) -> Option<Request> {
    Some(by_number(subject.id.as_deref()?))
}

/// Numbers are asked for without their leading zeros.
fn by_number(number: &str) -> Request {
    Request::get("/api/sbirka-listin/subjekty").segment(number.trim_start_matches('0'))
}

fn deeds(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let list = Node::root(&document).require("vysledekdetail")?.require_list("prehledlistin")?;
    filed(list.into_iter().map(deed).collect::<Result<_, _>>()?)
}

fn deed(entry: Node<'_>) -> Result<Notice, SourceError> {
    let id = entry.get("detail").items().find_map(|detail| detail.at("obsah.digitalnipodoba.documentid").text());
    Ok(Notice {
        kind: Some(entry.require_text("typlistiny")?),
        date: ["datumzalozeni", "datumdoslo"].into_iter().find_map(|name| iso(&entry.get(name).text()?)),
        text: entry.get("cislolistiny").text(),
        publisher: None,
        url: id
            .filter(|id| id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
            .map(|id| format!("{}/dokumenty/sbirka-listin/{id}", SOURCE.base.default)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const DEEDS: &[u8] = include_bytes!("../../../simulator/fixtures/cz_justice/deeds/27082440.json");
    const BOTH: &[u8] = include_bytes!("../../../simulator/fixtures/cz_justice/deeds/45274649.json");

    #[test]
    fn deeds_are_listed_with_the_years_of_the_accounts() {
        let facts = deeds(DEEDS).expect("deeds").facts;
        assert_eq!((facts.notices.len(), facts.notices[0].date.as_deref()), (3, Some("2025-07-15")));
        let url = facts.notices[0].url.as_deref().expect("an address");
        assert!(url.starts_with("https://verejnerejstriky.msp.gov.cz/dokumenty/sbirka-listin/8a7f"), "{url}");
        let years: Vec<_> = facts.accounts.iter().map(|accounts| accounts.to.as_deref()).collect();
        assert_eq!(years, [Some("2024"), Some("2023")]);
        assert_eq!(deeds(BOTH).expect("deeds").facts.accounts.len(), 1, "one document may be two kinds");
        assert_survives_corruption("cz_justice.deeds", deeds, DEEDS);
    }

    #[test]
    fn an_empty_collection_differs_from_a_page() {
        let empty = br#"{"vysledekdetail":{"prehledlistin":[]}}"#;
        assert_eq!(deeds(empty).expect_err("none").class, Class::NotFound);
        assert_eq!(deeds(br#"{"vysledekdetail":{}}"#).expect_err("no list").class, Class::BadShape);
        let challenge = include_bytes!("../../../simulator/fixtures/html/challenge.html");
        assert_eq!(deeds(challenge).expect_err("a challenge").class, Class::Unavailable);
    }

    #[test]
    fn an_address_is_never_taken_from_the_answer() {
        let body = br#"{"vysledekdetail":{"prehledlistin":[{"typlistiny":"x","detail":[{"obsah":{"digitalnipodoba":
            {"documentid":"../../@evil.example/"}}}]}]}}"#;
        assert_eq!(deeds(body).expect("a deed").facts.notices[0].url, None);
    }
}
