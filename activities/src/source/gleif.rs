//! GLEIF: who a legal entity identifier belongs to, and who consolidates whom.
//!
//! A company without a parent is a 404 here, and so is a company whose parent is unknown: which of the two it is, only the
//! reporting exception says. Numbers are found only in the spelling of their own register.

use circuit_registry::CallError;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::{
    identifiers::Kind,
    model::{Address, Company, Facts, Parent, Standing, Subject},
    parse::json::{self, Node, lacks},
    spec::{Answer, Base, Class, Countries, Flow, Need, Operation, Probe, Request, Session, Source, SourceError, on},
};

/// The row.
pub static SOURCE: Source = Source {
    name: "gleif",
    title: "GLEIF, the register of legal entity identifiers",
    breaker: "gleif",
    base: Base { env: "GLEIF_BASE_URL", default: "https://api.gleif.org/api/v1" },
    rules: &[on(404).json().means(Class::NotFound, "knows no such LEI")],
    probe: Some(Probe::json(|| request("/lei-records").query("page[size]", "1"))),
    limits: "60 requests a minute",
    terms: "CC0",
    operations: &[
        Operation {
            name: "gleif.record",
            answers: "the LEI record",
            countries: Countries::Any,
            needs: &[Need::Lei, Need::Id],
            flow: RECORD,
            ..Operation::BLANK
        },
        Operation {
            name: "gleif.search",
            answers: "LEI records of companies with that name",
            countries: Countries::Any,
            needs: &[Need::Name],
            flow: Flow::Single { request: by_name, parse: hits },
            ..Operation::BLANK
        },
        Operation {
            name: "gleif.direct_parent",
            answers: "the direct consolidating parent, or why none is reported",
            countries: Countries::Any,
            needs: &[Need::Lei, Need::Id],
            flow: Flow::Steps(|session| parent(session, &DIRECT)),
            ..Operation::BLANK
        },
        Operation {
            name: "gleif.ultimate_parent",
            answers: "the ultimate consolidating parent, or why none is reported",
            countries: Countries::Any,
            needs: &[Need::Lei, Need::Id],
            flow: Flow::Steps(|session| parent(session, &ULTIMATE)),
            ..Operation::BLANK
        },
    ],
    ..Source::BLANK
};

/// How the record is found, also in the place of a register that cannot be asked.
pub(super) const RECORD: Flow = Flow::Steps(record);

/// A level of consolidation and its endpoints.
struct Level {
    name: &'static str,
    parent: &'static str,
    exception: &'static str,
}

static DIRECT: Level =
    Level { name: "direct", parent: "direct-parent", exception: "direct-parent-reporting-exception" };
static ULTIMATE: Level =
    Level { name: "ultimate", parent: "ultimate-parent", exception: "ultimate-parent-reporting-exception" };

fn request(path: &'static str) -> Request {
    Request::get(path).accept("application/vnd.api+json")
}

fn by_name(subject: &Subject) -> Option<Request> {
    let name = subject.name.as_deref()?;
    Some(request("/lei-records").query("filter[entity.legalName]", name).query("page[size]", "10"))
}

fn by_lei(lei: &str) -> Request {
    request("/lei-records").segment(lei)
}

fn by_number(subject: &Subject, number: &str) -> Request {
    let search = request("/lei-records").query("filter[entity.registeredAs]", number).query("page[size]", "2");
    match subject.country.as_str() {
        // Their jurisdictions are states and provinces, which the subject does not name.
        "US" | "CA" | "AE" => search,
        country => search.query("filter[entity.jurisdiction]", country),
    }
}

/// The number in the spelling that its register uses, and as it is stored, most likely first.
fn spellings(subject: &Subject) -> Vec<String> {
    let Some(id) = subject.id.clone() else { return Vec::new() };
    let shown = match subject.country.as_str() {
        "SE" if id.len() == 10 => format!("{}-{}", &id[..6], &id[6..]),
        "FR" => id.clone(),
        _ => Kind::of_register(subject.country)
            .and_then(|kind| kind.read(&id).ok())
            .map_or(id.clone(), |i| i.to_string()),
    };
    if shown == id { vec![id] } else { vec![shown, id] }
}

fn record<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(find(session))
}

/// The record by LEI, or the one that is registered under the subject's number.
async fn find(session: &Session<'_>) -> Result<Answer, CallError<SourceError>> {
    let subject = session.subject();
    if let Some(lei) = &subject.lei {
        return session.ask(by_lei(lei), |reply| one(&reply.body)).await;
    }
    for number in spellings(subject) {
        let found = session.ask(by_number(subject, &number), |reply| hits(&reply.body)).await;
        match found {
            Err(CallError::Upstream(error)) if error.class == Class::NotFound => {}
            other => return other,
        }
    }
    Err(CallError::Upstream(SourceError::not_found("knows no LEI for this registration number")))
}

fn parent<'a>(
    session: &'a Session<'_>,
    level: &'static Level,
) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let lei = match &session.subject().lei {
            Some(lei) => lei.clone(),
            None => {
                let companies = find(session).await?.facts.companies;
                companies
                    .into_iter()
                    .find_map(|company| company.lei)
                    .ok_or_else(|| CallError::Upstream(lacks("lei")))?
            }
        };
        let found = session.ask(by_lei(&lei).segment(level.parent), |reply| one(&reply.body)).await;
        match found {
            Ok(answer) => Ok(reported(level, answer)),
            Err(CallError::Upstream(error)) if error.class == Class::NotFound => {
                let asked = session.ask(by_lei(&lei).segment(level.exception), |reply| exception(&reply.body)).await;
                let parent =
                    Parent { level: level.name.to_owned(), company: None, exception: Some(asked.map_err(unreported)?) };
                Ok(Facts { parents: vec![parent], ..Facts::default() }.into())
            }
            Err(stop) => Err(stop),
        }
    })
}

fn unreported(stop: CallError<SourceError>) -> CallError<SourceError> {
    match stop {
        CallError::Upstream(error) if error.class == Class::NotFound => {
            CallError::Upstream(SourceError::not_found("has neither a parent nor a reason for not reporting one"))
        }
        other => other,
    }
}

fn reported(level: &Level, answer: Answer) -> Answer {
    let companies = answer.facts.companies.clone().into_iter();
    let parents =
        companies.map(|company| Parent { level: level.name.to_owned(), company: Some(company), exception: None });
    Answer { facts: Facts { parents: parents.collect(), ..Facts::default() }, ..answer }
}

/// Reads a search.
fn hits(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let records = Node::root(&document).require_list("data")?;
    let companies = records.into_iter().map(company).collect::<Result<Vec<_>, _>>()?;
    if companies.is_empty() {
        return Err(SourceError::not_found("has no record that fits"));
    }
    Ok(answer(&document, companies))
}

/// Reads a record.
fn one(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let record = company(Node::root(&document).require("data")?)?;
    Ok(answer(&document, vec![record]))
}

/// Reads the reason for which no parent is reported.
fn exception(body: &[u8]) -> Result<String, SourceError> {
    let document = json::parse(body)?;
    Node::root(&document).at("data.attributes").require_text("reason")
}

fn answer(document: &Value, companies: Vec<Company>) -> Answer {
    let published = Node::root(document).at("meta.goldenCopy.publishDate").time();
    Answer::from(Facts { companies, ..Facts::default() }).dated(published)
}

fn company(record: Node<'_>) -> Result<Company, SourceError> {
    let attributes = record.require("attributes")?;
    let entity = attributes.require("entity")?;
    let address = entity.get("legalAddress");
    let text = |path: &str| entity.at(path).text();
    Ok(Company {
        lei: Some(attributes.require_text("lei").or_else(|_| record.require_text("id"))?),
        name: Some(entity.require("legalName")?.require_text("name")?),
        id: text("registeredAs"),
        country: text("jurisdiction").map(|jurisdiction| jurisdiction.chars().take(2).collect()),
        standing: match text("status").as_deref() {
            Some("ACTIVE") => Standing::Active,
            Some("INACTIVE") => Standing::Ceased,
            _ => Standing::Unknown,
        },
        // `LAPSED` is common and says that the fee is overdue, not that the company is gone.
        status: attributes.at("registration.status").text().map(|status| format!("LEI {status}")),
        legal_form: entity.at("legalForm.other").text().or_else(|| text("legalForm.id")),
        address: address.exists().then(|| Address {
            street: Some(address.get("addressLines").texts().join(", ")).filter(|lines| !lines.is_empty()),
            postal_code: address.get("postalCode").text(),
            city: address.get("city").text(),
            country: address.get("country").text(),
        }),
        founded: text("creationDate").map(|date| date.chars().take(10).collect()),
        registrations: attributes
            .at("registration.nextRenewalDate")
            .text()
            .map(|d| format!("LEI renewal due: {d}"))
            .into_iter()
            .collect(),
        ..Company::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const RECORD: &[u8] = include_bytes!("../../../simulator/fixtures/gleif/records/213800LH1BZH3DI6G760.json");

    fn wrapped(template: &str) -> Vec<u8> {
        template.replace("RECORD", std::str::from_utf8(RECORD).expect("a text")).into_bytes()
    }

    #[test]
    fn a_record_is_read_whole() {
        let body = wrapped(r#"{"meta":{"goldenCopy":{"publishDate":"2026-11-29T16:00:00Z"}},"data":RECORD}"#);
        let answer = one(&body).expect("a record");
        let company = &answer.facts.companies[0];
        assert_eq!(company.name.as_deref(), Some("BP P.L.C."));
        assert_eq!((company.country.as_deref(), company.id.as_deref()), (Some("GB"), Some("00102498")));
        assert_eq!(company.standing, Standing::Active);
        assert!(company.address.as_ref().is_some_and(|address| address.city.as_deref() == Some("London")));
        assert!(answer.as_of.is_some());
        assert_survives_corruption("gleif.record", one, &body);
        assert_survives_corruption("gleif.search", hits, &wrapped(r#"{"data":[RECORD]}"#));
    }

    #[test]
    fn no_hits_is_not_found_and_no_list_is_no_answer() {
        assert_eq!(hits(br#"{"data":[]}"#).expect_err("nothing").class, Class::NotFound);
        for body in [&br#"{"data":null}"#[..], br#"{}"#, br#"{"data":[1]}"#, br#"{"data":"x"}"#] {
            assert_eq!(hits(body).expect_err("no list").class, Class::BadShape);
        }
    }

    #[test]
    fn numbers_are_spelt_as_their_register_does() {
        let spelt = |country: &str, id: &str| {
            let subject = Subject { id: Some(id.into()), ..Subject::new(country.parse().expect(country)) };
            spellings(&subject)
        };
        assert_eq!(spelt("NO", "923609016"), ["923 609 016", "923609016"]);
        assert_eq!(spelt("BE", "0202239951"), ["0202.239.951", "0202239951"]);
        assert_eq!(spelt("SE", "5560160680"), ["556016-0680", "5560160680"]);
        assert_eq!(spelt("FR", "552032534"), ["552032534"]);
        assert_eq!(spelt("CZ", "27082440"), ["27082440"]);
    }

    #[test]
    fn an_exception_has_a_reason() {
        let body = br#"{"data":{"type":"reporting-exceptions","attributes":{"reason":"NATURAL_PERSONS"}}}"#;
        assert_eq!(exception(body).as_deref(), Ok("NATURAL_PERSONS"));
        assert!(exception(br#"{"data":{"attributes":{}}}"#).is_err());
    }
}
