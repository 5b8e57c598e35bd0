//! The Peppol directory: who can receive electronic invoices.
//!
//! Listing is voluntary, so absence proves nothing: a company may well be reachable and unlisted. Entries name people to
//! call; those are not read. It refuses more than two requests a second, all workers counted together.

use crate::{
    model::{Company, Facts, Status, Subject},
    parse::json::{self, Node, lacks},
    spec::{Answer, Base, Class, Countries, Flow, Need, Operation, Probe, Request, Source, SourceError, on},
};

/// The row.
pub static SOURCE: Source = Source {
    name: "peppol_directory",
    title: "Peppol Directory, receivers of electronic invoices",
    breaker: "peppol_directory",
    base: Base { env: "PEPPOL_DIRECTORY_BASE_URL", default: "https://directory.peppol.eu" },
    rules: &[on(400).not_html().means(Class::Business, "does not accept the search term, or has no such page")],
    probe: Some(Probe::json(|| Request::get(SEARCH).query("name", "test").query("rpc", "1"))),
    limits: "2 requests a second for each address",
    terms: "free; contacts are personal data and are not kept",
    operations: &[
        Operation {
            name: "peppol_directory.participant",
            answers: "whether the company is listed as a receiver, by its number",
            countries: Countries::Only(NUMBERED),
            needs: &[Need::Id],
            flow: PARTICIPANT,
            ..Operation::BLANK
        },
        Operation {
            name: "peppol_directory.search",
            answers: "receivers of the country that are called alike",
            countries: Countries::Any,
            needs: &[Need::Name],
            flow: Flow::Single { request: by_name, parse: participants },
            ..Operation::BLANK
        },
    ],
    ..Source::BLANK
};

/// How a company is looked up by its number, also in the place of a register that cannot be asked.
pub(super) const PARTICIPANT: Flow = Flow::Single { request: by_number, parse: participants };

const SEARCH: &str = "/search/1.0/json";

/// How many entries one page shows.
const PAGE: u32 = 20;

/// The scheme under which the numbers of a country's register are participants.
const SCHEMES: [(&str, &str); 9] = [
    ("BE", "0208"),
    ("NO", "0192"),
    ("DK", "0184"),
    ("NL", "0106"),
    ("FI", "0212"),
    ("FR", "0002"),
    ("EE", "0191"),
    ("CH", "0183"),
    ("SE", "0007"),
];

/// The countries of [`SCHEMES`].
const NUMBERED: &[&str] = &["BE", "NO", "DK", "NL", "FI", "FR", "EE", "CH", "SE"];

fn by_number(subject: &Subject) -> Option<Request> {
    let (_, scheme) = SCHEMES.iter().find(|(country, _)| *country == subject.country.as_str())?;
    let participant = format!("iso6523-actorid-upis::{scheme}:{}", subject.id.as_deref()?);
    Some(Request::get(SEARCH).query("participant", participant))
}

fn by_name(subject: &Subject) -> Option<Request> {
    let search = Request::get(SEARCH).query("name", subject.name.as_deref()?);
    Some(search.query("country", subject.country.as_str()).query("rpc", PAGE.to_string()))
}

fn participants(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let root = Node::root(&document);
    let total = root.get("total-result-count").count().ok_or_else(|| lacks("total-result-count"))?;
    let companies = root.require_list("matches")?.into_iter().map(participant).collect::<Result<Vec<_>, _>>()?.concat();
    match (total, companies.len() as u64) {
        (0, 0) => {
            Err(SourceError::not_found("does not list the company; listing is voluntary, so this proves nothing"))
        }
        (0, _) | (_, 0) => Err(lacks("matches")), // contradicts itself
        (total, shown) => {
            let answer = Answer::from(Facts { companies, ..Facts::default() });
            if shown >= total {
                return Ok(answer);
            }
            let reason = format!("shows the first {shown} of {total} entries");
            Ok(Answer { status: Status::Partial, reason: Some(reason), ..answer })
        }
    }
}

/// The companies behind one participant id: usually one, sometimes a group's several.
fn participant(entry: Node<'_>) -> Result<Vec<Company>, SourceError> {
    let id = entry.require("participantID")?.require_text("value")?;
    let documents = entry.get("docTypes").items().filter_map(|kind| document(&kind.get("value").text()?));
    let documents = documents.collect::<Vec<_>>().join(", ");
    let mut registrations = vec![format!("Peppol participant: {id}")];
    if !documents.is_empty() {
        registrations.push(format!("Peppol documents: {documents}"));
    }
    let entities = entry.require_list("entities")?;
    if entities.is_empty() {
        return Err(lacks("entities"));
    }
    let company = |entity: Node<'_>| {
        let country = entity.get("countryCode").text();
        let scheme = |country: &str| SCHEMES.iter().find(|(known, _)| *known == country).map(|(_, scheme)| *scheme);
        let own = country.as_deref().and_then(scheme).and_then(|scheme| id.strip_prefix(scheme)?.strip_prefix(':'));
        let is_vat = |identifier: &Node<'_>| {
            identifier.get("scheme").text().is_some_and(|scheme| scheme.eq_ignore_ascii_case("VAT"))
        };
        let vat = entity.get("identifiers").items().find(is_vat).and_then(|identifier| identifier.get("value").text());
        let since = entity.get("regDate").text().map(|date| format!("Peppol directory: since {date}"));
        let names = entity.get("name");
        Company {
            name: names.text().or_else(|| names.items().find_map(|name| name.get("name").text())),
            id: own.map(str::to_owned),
            country,
            vat,
            website: entity.get("websites").items().find_map(Node::text),
            registrations: registrations.iter().cloned().chain(since).collect(),
            ..Company::default()
        }
    };
    Ok(entities.into_iter().map(company).collect())
}

/// `urn:…:xsd:Invoice-2::Invoice##…` is an invoice.
fn document(kind: &str) -> Option<String> {
    let (_, rest) = kind.split_once("::")?;
    rest.split("##").next().filter(|name| !name.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    fn body(total: u32) -> String {
        let all = json::parse(include_bytes!("../../../simulator/fixtures/peppol_directory/participants.json"))
            .expect("participants");
        format!(r#"{{"version":"1.0","total-result-count":{total},"used-result-count":1,"matches":[{}]}}"#, all[0])
    }

    #[test]
    fn an_entry_says_what_can_be_received_and_nothing_about_people() {
        let answer = participants(body(1).as_bytes()).expect("an entry");
        let company = &answer.facts.companies[0];
        assert_eq!((company.name.as_deref(), company.id.as_deref()), (Some("PROXIMUS"), Some("0202239951")));
        assert_eq!(company.vat.as_deref(), Some("BE0202239951"));
        assert!(company.registrations.contains(&"Peppol documents: Invoice, CreditNote".to_owned()));
        let facts = serde_json::to_string(&answer.facts).expect("facts");
        assert!(!facts.contains("Example Desk") && !facts.contains("desk@example.org") && !facts.contains("+32"));
        assert_survives_corruption("peppol_directory.participant", participants, body(1).as_bytes());
    }

    #[test]
    fn absence_differs_from_a_broken_answer_and_a_page_of_many() {
        let unknown = participants(br#"{"total-result-count":0,"matches":[]}"#).expect_err("no participant");
        assert!(unknown.class == Class::NotFound && unknown.reason.contains("voluntary"));
        for body in [
            &b"{}"[..],
            br#"{"matches":[]}"#,
            br#"{"total-result-count":3,"matches":[]}"#,
            br#"{"total-result-count":0}"#,
        ] {
            assert_eq!(participants(body).expect_err("no answer").class, Class::BadShape);
        }
        assert_eq!(participants(body(30).as_bytes()).expect("a page").status, Status::Partial);
    }

    #[test]
    fn every_numbered_country_has_a_scheme() {
        assert_eq!(SCHEMES.map(|(country, _)| country), *NUMBERED);
    }
}
