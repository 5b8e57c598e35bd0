//! GLEIF: who a legal entity identifier belongs to, and who consolidates whom.
//!
//! A company without a parent is a 404 here, and so is a company whose parent is unknown: which of the two it is, only the
//! reporting exception says. Numbers are found only in the spelling of their own register.

use circuit_registry::CallError;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::{
    identifiers::{
        Kind,
        authority::{is_court, without_court},
    },
    model::{Address, Company, Facts, Parent, Standing, Status, Subject},
    names::{MATCH, Name},
    parse::json::{self, Node, lacks},
    spec::{
        Answer, Base, Class, Confidence, Countries, Flow, Need, Operation, Probe, Request, Session, Source,
        SourceError, on, sift,
    },
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
    confidence: Confidence::A,
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
    let search = request("/lei-records").query("filter[entity.registeredAs]", number).query("page[size]", "10");
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
        // Its records hold the number without the court.
        "DE" => return vec![without_court(&id).0],
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
            other => return other.map(|answer| unambiguous(subject, answer)),
        }
    }
    Err(CallError::Upstream(SourceError::not_found("knows no LEI for this registration number")))
}

/// A number of the German register is unique within a court only. With the court, the court decides; without it, several
/// records are a question to a person.
fn unambiguous(subject: &Subject, mut answer: Answer) -> Answer {
    let court = subject.id.as_deref().filter(|_| subject.country.as_str() == "DE").and_then(|id| without_court(id).1);
    if let Some(court) = court {
        let of_court = |company: &Company| {
            let seat = company.address.as_ref().and_then(|address| address.city.as_deref());
            let at_court = company.registered_at.as_deref().is_some_and(|authority| is_court(authority, &court));
            at_court
                || seat.is_some_and(|seat| {
                    Name::read(seat)
                        .ok()
                        .zip(Name::read(&court).ok())
                        .is_some_and(|(a, b)| a.compare(&b).is_some_and(|likeness| likeness.score >= MATCH))
                })
        };
        let theirs: Vec<_> = answer.facts.companies.iter().filter(|company| of_court(company)).cloned().collect();
        if theirs.len() == 1 {
            answer.facts.companies = theirs;
        }
    }
    let count = answer.facts.companies.len();
    if count < 2 && answer.status != Status::Partial {
        return answer;
    }
    // They are shown as notes, so nothing is learnt from them.
    let notes = answer.facts.companies.iter().map(|company| {
        let (lei, name) = (company.lei.as_deref().unwrap_or_default(), company.name.as_deref().unwrap_or_default());
        format!("candidate: {lei} {name}")
    });
    let reason = format!("{count} companies are registered under this number, in different registers; name the court");
    let facts = Facts { notes: notes.collect(), ..Facts::default() };
    Answer { status: Status::NeedsReview, reason: Some(reason), facts, ..answer }
}

fn parent<'a>(
    session: &'a Session<'_>,
    level: &'static Level,
) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let lei = match &session.subject().lei {
            Some(lei) => lei.clone(),
            None => {
                let found = find(session).await?;
                if found.status == Status::NeedsReview {
                    return Ok(found);
                }
                let lei = found.facts.companies.into_iter().find_map(|company| company.lei);
                lei.ok_or_else(|| CallError::Upstream(lacks("lei")))?
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
    let companies = sift("records", records, company)?;
    if companies.read.is_empty() {
        return Err(SourceError::not_found("has no record that fits"));
    }
    let total = Node::root(&document).at("meta.pagination.total").count();
    Ok(answer(&document, companies.read).of_total(companies.listed, total).noting(companies.note))
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

/// The kind of a name that the company had before.
const FORMER: &str = "PREVIOUS_LEGAL_NAME";

const STATES: &[(&str, Standing)] = &[("ACTIVE", Standing::Active), ("INACTIVE", Standing::Ceased)];
/// What events say beside the state of the entity, unless they were withdrawn.
const EVENTS: &[(&str, Standing)] = &[
    ("BANKRUPTCY", Standing::Insolvent),
    ("INSOLVENCY", Standing::Insolvent),
    ("LIQUIDATION", Standing::Liquidation),
    ("VOLUNTARY_ARRANGEMENT", Standing::Restructuring),
    // Active records with a completed dissolution exist: it is no proof of the end.
    ("DISSOLUTION", Standing::Unknown),
];

/// The state of the entity, made graver by its events and by a registration that is not its own.
fn standing(attributes: Node<'_>) -> Standing {
    let entity = attributes.get("entity");
    let word = |node: Node<'_>| node.text().unwrap_or_default();
    let events = entity.get("eventGroups").items().flat_map(|group| group.get("events").items());
    let events = events.filter(|event| word(event.get("status")) != "WITHDRAWN_CANCELLED").filter_map(|event| {
        let kind = word(event.get("type"));
        EVENTS.iter().find(|(known, _)| *known == kind).map(|(_, standing)| *standing)
    });
    let registration = match word(attributes.at("registration.status")).as_str() {
        "ANNULLED" | "DUPLICATE" | "CANCELLED" => Standing::Unknown,
        _ => Standing::Active,
    };
    events.fold(Standing::of(&word(entity.get("status")), STATES).and(registration), Standing::and)
}

fn address_of(address: Node<'_>) -> Option<Address> {
    address.exists().then(|| Address {
        street: Some(address.get("addressLines").texts().join(", ")).filter(|lines| !lines.is_empty()),
        postal_code: address.get("postalCode").text(),
        city: address.get("city").text(),
        country: address.get("country").text(),
    })
}

fn company(record: Node<'_>) -> Result<Company, SourceError> {
    let attributes = record.require("attributes")?;
    let entity = attributes.require("entity")?;
    let text = |path: &str| entity.at(path).text();
    let names = |lists: &[&str], wanted: fn(&str) -> bool| {
        let names = lists.iter().flat_map(|list| entity.get(list).items());
        let fits = names.filter(|name| wanted(&name.get("type").text().unwrap_or_default()));
        fits.filter_map(|name| name.get("name").text()).collect::<Vec<_>>()
    };
    Ok(Company {
        lei: Some(attributes.require_text("lei").or_else(|_| record.require_text("id"))?),
        name: Some(entity.require("legalName")?.require_text("name")?),
        id: text("registeredAs"),
        country: text("jurisdiction").map(|jurisdiction| jurisdiction.chars().take(2).collect()),
        standing: standing(attributes),
        other_names: names(&["otherNames", "transliteratedOtherNames"], |kind| kind != FORMER),
        former_names: names(&["otherNames"], |kind| kind == FORMER),
        headquarters: address_of(entity.get("headquartersAddress")),
        successor: entity
            .get("successorEntities")
            .items()
            .chain(entity.get("successorEntity").items())
            .find_map(|successor| successor.joined(&["lei", "name"], " ")),
        // `LAPSED` is common and says that the fee is overdue, not that the company is gone.
        status: attributes.at("registration.status").text().map(|status| format!("LEI {status}")),
        legal_form: entity.at("legalForm.other").text().or_else(|| text("legalForm.id")),
        address: address_of(entity.get("legalAddress")),
        founded: text("creationDate").map(|date| date.chars().take(10).collect()),
        registrations: attributes
            .at("registration.nextRenewalDate")
            .text()
            .map(|d| format!("LEI renewal due: {d}"))
            .into_iter()
            .collect(),
        registered_at: text("registeredAt.id"),
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
    fn a_number_of_two_companies_is_not_believed() {
        let nowhere = Subject::new("NO".parse().expect("a country"));
        let two = hits(&wrapped(r#"{"data":[RECORD,RECORD]}"#))
            .map(|answer| unambiguous(&nowhere, answer))
            .expect("two records");
        assert_eq!((two.status, two.facts.companies.len(), two.facts.notes.len()), (Status::NeedsReview, 0, 2));
        let one = hits(&wrapped(r#"{"data":[RECORD]}"#)).map(|answer| unambiguous(&nowhere, answer)).expect("a record");
        assert_eq!((one.status, one.facts.companies.len()), (Status::Complete, 1));
    }

    #[test]
    fn events_outweigh_the_state_of_the_entity() {
        let standing = |event: &str, status: &str| {
            let body = format!(
                r#"{{"data":[{{"id":"X","attributes":{{"lei":"X","entity":{{"legalName":{{"name":"X"}},"status":"ACTIVE",
                "eventGroups":[{{"events":[{{"type":"{event}","status":"{status}"}}]}}]}}}}}}]}}"#
            );
            hits(body.as_bytes()).expect("a record").facts.companies[0].standing
        };
        assert_eq!(standing("BANKRUPTCY", "IN_PROGRESS"), Standing::Insolvent);
        assert_eq!(standing("BANKRUPTCY", "WITHDRAWN_CANCELLED"), Standing::Active);
        assert_eq!(standing("CHANGE_LEGAL_NAME", "COMPLETED"), Standing::Active);
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
