//! Zefix: the Swiss index of companies, by the API of its web site, and by the official service for those who have an account.
//!
//! Both answer 404 for "no such company", with a code of their own inside; a 404 without it is an address that moved.
//! Persons are in neither. Publications name persons in their text, so only their date and kind are kept.

use circuit_registry::CallError;
use futures::future::BoxFuture;
use serde_json::json;

use crate::{
    model::{Address, Company, Facts, Notice, Standing, Subject},
    parse::json::{self as reader, Node, lacks},
    spec::{
        Answer, Auth, Base, Class, Countries, Credential, Fallback, Flow, Need, Operation, Probe, Request, Rule,
        Session, Source, SourceError, on,
    },
};

/// The row of the web site's API.
pub static SOURCE: Source = Source {
    name: "ch_zefix",
    title: "Zefix, Swiss index of companies",
    breaker: "ch_zefix",
    base: Base { env: "CH_ZEFIX_BASE_URL", default: "https://www.zefix.ch/ZefixREST/api/v1" },
    rules: NO_RESULT,
    probe: Some(Probe::json(|| Request::get("/legalForm.json"))),
    limits: "none published; one request a second out of courtesy",
    terms: "free; not an official extract",
    operations: &[
        Operation {
            name: "ch_zefix.company",
            answers: "the entry in the commercial register",
            needs: &[Need::Id],
            flow: Flow::Steps(company),
            fallbacks: &[Fallback {
                via: "ch_zefix_official",
                proves: "the official service of Zefix answered instead",
                source: &OFFICIAL,
                flow: Flow::Single {
                    request: |s| Some(Request::get("/company/uid").segment(s.id.as_deref()?)),
                    parse: official,
                },
            }],
            ..SWISS
        },
        Operation {
            name: "ch_zefix.search",
            answers: "companies of that name",
            needs: &[Need::Name],
            flow: Flow::Single { request: |s| Some(search(s.name.as_deref()?)), parse: hits },
            fallbacks: &[Fallback {
                via: "ch_zefix_official",
                proves: "the official service of Zefix answered instead",
                source: &OFFICIAL,
                flow: Flow::Single { request: official_search, parse: official },
            }],
            ..SWISS
        },
        Operation {
            name: "ch_zefix.publications",
            answers: "date and kind of what the Swiss gazette of commerce published",
            needs: &[Need::Id],
            flow: Flow::Steps(publications),
            ..SWISS
        },
    ],
    ..Source::BLANK
};

/// The row of the official service.
pub static OFFICIAL: Source = Source {
    name: "ch_zefix_official",
    title: "Zefix, official service",
    breaker: "ch_zefix_official",
    base: Base { env: "CH_ZEFIX_OFFICIAL_BASE_URL", default: "https://www.zefix.admin.ch/ZefixPublicREST/api/v1" },
    credentials: &[
        Credential { any_of: &["ZEFIX_USER"], obtain: ACCOUNT },
        Credential { any_of: &["ZEFIX_PASSWORD"], obtain: ACCOUNT },
    ],
    auth: Auth::Basic { user: "ZEFIX_USER", password: "ZEFIX_PASSWORD" },
    rules: NO_RESULT,
    probe: Some(Probe::json(|| Request::get("/company/uid/CHE191546434"))),
    limits: "by account",
    terms: "free; not an official extract",
    ..Source::BLANK
};

const ACCOUNT: &str = "ask zefix@bj.admin.ch for an account";

const SWISS: Operation = Operation { countries: Countries::Only(&["CH"]), ..Operation::BLANK };

static NO_RESULT: &[Rule] = &[on(0).with("API.ZFR.SEARCH.NORESULT").means(Class::NotFound, "knows no such company")];

fn search(name: &str) -> Request {
    Request::post("/firm/search.json", &json!({"languageKey": "en", "maxEntries": 20, "offset": 0, "name": name}))
}

/// A number is looked up where a name is; the index knows it by its form.
fn lookup(uid: &str) -> Request {
    let document = json!({"languageKey": "en", "maxEntries": 20, "offset": 0, "name": uid, "searchType": "exact"});
    Request::post("/firm/search.json", &document)
}

fn official_search(subject: &Subject) -> Option<Request> {
    let document = json!({"name": subject.name.as_deref()?, "languageKey": "en", "maxEntries": 20, "offset": 0});
    Some(Request::post("/company/search", &document))
}

fn company<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let request = Request::get("/firm").segment(number(session).await?).segment("withoutShabPub.json");
        session.ask(request, |reply| detail(&reply.body)).await
    })
}

fn publications<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let request = Request::get("/firm").segment(number(session).await?).segment("shabPub.json");
        session.ask(request, |reply| notices(&reply.body)).await
    })
}

/// The index's own number of the subject, which its other addresses want.
async fn number(session: &Session<'_>) -> Result<String, CallError<SourceError>> {
    let uid = session.subject().id.as_deref().unwrap_or_default();
    session.ask(lookup(uid), |reply| ehraid(&reply.body, uid)).await
}

fn ehraid(body: &[u8], uid: &str) -> Result<String, SourceError> {
    let document = reader::parse(body)?;
    let list = Node::root(&document).require_list("list")?;
    for firm in list {
        if firm.require_text("uid")? == uid {
            return firm.require_text("ehraid");
        }
    }
    Err(SourceError::not_found("knows no company of this number"))
}

fn hits(body: &[u8]) -> Result<Answer, SourceError> {
    let document = reader::parse(body)?;
    companies(Node::root(&document).require_list("list")?)
}

fn detail(body: &[u8]) -> Result<Answer, SourceError> {
    let document = reader::parse(body)?;
    companies(vec![Node::root(&document)])
}

/// The official service answers a list, also for a single number.
fn official(body: &[u8]) -> Result<Answer, SourceError> {
    let document = reader::parse(body)?;
    companies(Node::root(&document).items().collect())
}

fn companies(firms: Vec<Node<'_>>) -> Result<Answer, SourceError> {
    let companies = firms.into_iter().map(firm).collect::<Result<Vec<_>, _>>()?;
    Answer::listing(companies)
}

/// Reads an entry of either service; what one of them leaves out is absent.
fn firm(firm: Node<'_>) -> Result<Company, SourceError> {
    let text = |path: &str| firm.at(path).text();
    let status = text("status");
    let dissolved = text("deleteDate").or_else(|| text("deletionDate"));
    let standing = match status.as_deref() {
        _ if dissolved.is_some() => Standing::Ceased,
        Some("EXISTIEREND" | "ACTIVE") => Standing::Active,
        Some("AUFGELOEST" | "BEING_CANCELLED") => Standing::Liquidation,
        Some("GELOESCHT" | "CANCELLED") => Standing::Ceased,
        _ => Standing::Unknown,
    };
    let (address, seat) = (firm.get("address"), text("legalSeat"));
    let former = |item: Node<'_>| item.get("name").text().or_else(|| item.text());
    Ok(Company {
        id: Some(firm.require_text("uid")?),
        name: Some(firm.require_text("name")?),
        country: Some("CH".to_owned()),
        standing,
        status,
        legal_form: text("legalForm.name.en").or_else(|| legal_form(firm.get("legalFormId").count()?)),
        address: (address.exists() || seat.is_some()).then(|| Address {
            street: address.joined(&["street", "houseNumber"], " "),
            postal_code: address.get("swissZipCode").text(),
            city: address.get("town").text().or_else(|| address.get("city").text()).or(seat),
            country: address.get("country").text().or_else(|| Some("CH".to_owned())),
        }),
        dissolved,
        former_names: firm.get("oldNames").items().filter_map(former).collect(),
        registrations: text("chid").map(|number| format!("commercial register: {number}")).into_iter().collect(),
        ..Company::default()
    })
}

/// The web site codes legal forms; these are the common ones.
fn legal_form(code: u64) -> Option<String> {
    let name = match code {
        3 => "Public limited company (AG)",
        4 => "Limited liability company (GmbH)",
        7 => "Foundation (Stiftung)",
        _ => return None,
    };
    Some(name.to_owned())
}

fn notices(body: &[u8]) -> Result<Answer, SourceError> {
    let document = reader::parse(body)?;
    let list = Node::root(&document);
    if !document.is_array() {
        return Err(lacks("list of publications"));
    }
    let mut notices = list.items().map(notice).collect::<Result<Vec<_>, _>>()?;
    if notices.is_empty() {
        return Err(SourceError::not_found("has no publications about this company"));
    }
    notices.sort_by(|a, b| b.date.cmp(&a.date));
    Ok(Facts { notices, ..Facts::default() }.into())
}

fn notice(publication: Node<'_>) -> Result<Notice, SourceError> {
    let kinds: Vec<_> = publication.get("mutationTypes").items().filter_map(|kind| kind.get("key").text()).collect();
    Ok(Notice {
        date: Some(publication.require_text("shabDate")?),
        kind: (!kinds.is_empty()).then(|| kinds.join(", ")),
        publisher: Some("SHAB/FOSC".to_owned()),
        ..Notice::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const FIRM: &[u8] = include_bytes!("../../../simulator/fixtures/ch_zefix/details/1009345.json");
    const OFFICIAL: &[u8] = include_bytes!("../../../simulator/fixtures/ch_zefix_official/CHE191546434.json");
    const PUBLICATIONS: &[u8] = include_bytes!("../../../simulator/fixtures/ch_zefix/publications/1009345.json");

    #[test]
    fn both_services_describe_the_same_company() {
        let site = detail(FIRM).expect("an entry").facts.companies.remove(0);
        let official = official(OFFICIAL).expect("an entry").facts.companies.remove(0);
        assert_eq!((site.name.as_deref(), site.id.as_deref()), (Some("Swiss Re AG"), Some("CHE191546434")));
        assert_eq!(site.standing, Standing::Active);
        assert_eq!((&site.name, &site.id, &site.address), (&official.name, &official.id, &official.address));
        assert_eq!(site.address.and_then(Address::line).as_deref(), Some("Mythenquai 50/60, 8022 Zürich"));
        assert!(site.legal_form.is_some() && official.legal_form.as_deref() == Some("Public limited company"));
        assert_survives_corruption("ch_zefix.company", detail, FIRM);
        assert_survives_corruption("ch_zefix_official", super::official, OFFICIAL);
    }

    #[test]
    fn the_number_of_another_company_is_not_ours() {
        let list = |uid: &str| format!(r#"{{"list":[{{"name":"X","uid":"{uid}","ehraid":7}}]}}"#).into_bytes();
        assert_eq!(ehraid(&list("CHE191546434"), "CHE191546434").as_deref(), Ok("7"));
        assert_eq!(ehraid(&list("CHE105909036"), "CHE191546434").expect_err("another").class, Class::NotFound);
        assert_eq!(ehraid(b"{}", "CHE191546434").expect_err("no list").class, Class::BadShape);
        assert_survives_corruption("ch_zefix.search", hits, &list("CHE191546434"));
    }

    #[test]
    fn a_struck_off_entry_has_ceased_one_in_liquidation_has_not() {
        let standing = |rest: &str| {
            let body = format!(r#"{{"name":"X","uid":"CHE1",{rest}}}"#);
            detail(body.as_bytes()).expect("an entry").facts.companies[0].standing
        };
        assert_eq!(standing(r#""status":"GELOESCHT""#), Standing::Ceased);
        assert_eq!(standing(r#""status":"EXISTIEREND","deleteDate":"2023-01-15""#), Standing::Ceased);
        assert_eq!(standing(r#""status":"AUFGELOEST""#), Standing::Liquidation);
        assert_eq!(standing(r#""status":"NEUARTIG""#), Standing::Unknown);
    }

    #[test]
    fn publications_come_newest_first_and_without_their_text() {
        let read = notices(PUBLICATIONS).expect("publications").facts.notices;
        assert!(read.len() > 1 && read.is_sorted_by(|a, b| a.date >= b.date));
        assert!(read.iter().all(|notice| notice.text.is_none() && notice.kind.is_some()));
        assert_eq!(notices(b"[]").expect_err("none").class, Class::NotFound);
        assert_eq!(notices(b"{}").expect_err("no list").class, Class::BadShape);
        assert_survives_corruption("ch_zefix.publications", notices, PUBLICATIONS);
    }
}
