//! CVR: the Danish register, by an unofficial service that all use, and by the official one for those who have a key.
//!
//! The unofficial one says everything with status 200: not found, not introduced, banned, broken, and that the fifty answers of
//! the day are used up. The official one is asked in GraphQL, one kind of record at a time.

use circuit_registry::CallError;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::{
    model::{Address, Company, Facts, Owner, Standing},
    parse::json::{self as reader, Node, lacks},
    spec::{
        Answer, Auth, Base, Class, Countries, Credential, Fallback, Flow, Need, Operation, Probe, Request, Session,
        Source, SourceError, Stay, on,
    },
};

/// The row of cvrapi.dk.
pub static SOURCE: Source = Source {
    name: "dk_cvr",
    title: "CVR, Danish business register, by cvrapi.dk",
    breaker: "dk_cvr",
    base: Base { env: "DK_CVR_BASE_URL", default: "https://cvrapi.dk" },
    credentials: &[Credential {
        any_of: &["CVRAPI_USER_AGENT"],
        obtain: "say who you are, as `company - project - contact name phone or mail`; the service demands it",
    }],
    user_agent: Some("CVRAPI_USER_AGENT"),
    rules: &[
        on(0).with("\"NOT_FOUND\"").means(Class::NotFound, "knows no such company"),
        on(0).with("\"INVALID_VAT\"").means(Class::Business, "does not accept the number"),
        on(0)
            .with("\"QUOTA_EXCEEDED\"")
            .means(Class::Throttled, "has given all its free answers of the day")
            .stay(Stay::Midnight("Europe/Copenhagen")),
        on(0).with("\"BANNED\"").means(Class::Throttled, "has banned our address").stay(Stay::Seconds(24 * 3600)),
        on(0)
            .with("\"INVALID_UA\"")
            .means(Class::Denied, "does not accept how we introduce ourselves: check CVRAPI_USER_AGENT"),
        on(0).with("\"INTERNAL_ERROR\"").means(Class::Unavailable, "has an error of its own"),
    ],
    limits: "about 50 answers a day for each address range without a contract",
    terms: "data of the Danish Business Authority; companies with advertising protection must not be advertised to",
    operations: &[
        Operation {
            name: "dk_cvr.company",
            answers: "the register entry",
            needs: &[Need::Id],
            flow: Flow::Single { request: |s| Some(asking("vat", s.id.as_deref()?)), parse: company },
            fallbacks: &[Fallback {
                via: "dk_cvr_datafordeler",
                proves: "the official data distributor answered instead",
                source: &DATAFORDELER,
                flow: Flow::Steps(official),
            }],
            ..DANISH
        },
        Operation {
            name: "dk_cvr.search",
            answers: "the company whose name is nearest",
            needs: &[Need::Name],
            flow: Flow::Single { request: |s| Some(asking("name", s.name.as_deref()?)), parse: company },
            ..DANISH
        },
    ],
    ..Source::BLANK
};

/// The row of Datafordeler.
pub static DATAFORDELER: Source = Source {
    name: "dk_cvr_datafordeler",
    title: "Datafordeler, official distributor of CVR",
    breaker: "dk_cvr_datafordeler",
    base: Base { env: "DK_CVR_DATAFORDELER_BASE_URL", default: "https://graphql.datafordeler.dk" },
    credentials: &[Credential {
        any_of: &["CVR_DENMARK_API_KEY"],
        obtain: "create a user and an API key at https://datafordeler.dk",
    }],
    auth: Auth::Query { name: "apiKey", env: "CVR_DENMARK_API_KEY" },
    probe: Some(Probe {
        request: || record("CVR_Virksomhed", 24_256_790),
        read: |body| nodes(body, "CVR_Virksomhed").map(drop),
    }),
    terms: "free basic data",
    ..Source::BLANK
};

const DANISH: Operation = Operation { countries: Countries::Only(&["DK"]), ..Operation::BLANK };

fn asking(by: &'static str, text: &str) -> Request {
    Request::get("/api").query(by, text).query("country", "dk").query("format", "json")
}

fn company(body: &[u8]) -> Result<Answer, SourceError> {
    let document = reader::parse(body)?;
    let entry = Node::root(&document);
    if entry.get("error").exists() {
        return Err(SourceError::unavailable("gave a code that it does not document"));
    }
    let bankrupt = entry.get("creditbankrupt").flag() == Some(true);
    let ended = entry.get("enddate").date();
    let owner = |owner: Node<'_>| {
        Some(Owner { name: Some(owner.get("name").text().or_else(|| owner.text())?), ..Owner::default() })
    };
    let company = Company {
        name: Some(entry.require_text("name")?),
        standing: match (&ended, bankrupt) {
            (_, true) => Standing::Insolvent,
            (Some(_), false) => Standing::Ceased,
            (None, false) => Standing::Active,
        },
        legal_form: entry.get("companydesc").text(),
        address: Some(Address {
            street: entry.get("address").text(),
            postal_code: entry.get("zipcode").text(),
            city: entry.get("city").text(),
            country: Some("DK".to_owned()),
        }),
        founded: entry.get("startdate").date(),
        dissolved: ended,
        activities: entry.joined(&["industrycode", "industrydesc"], " ").into_iter().collect(),
        employees: entry.get("employees").count(),
        ..blank(entry.require_text("vat")?)
    };
    let protected = entry.get("protected").flag() == Some(true);
    let notes = protected.then(|| "protected from advertising".to_owned()).into_iter().collect();
    let owners = entry.get("owners").items().filter_map(owner).collect();
    Ok(Facts { companies: vec![company], owners, notes, ..Facts::default() }.into())
}

fn blank(number: String) -> Company {
    Company { vat: Some(format!("DK{number}")), id: Some(number), country: Some("DK".to_owned()), ..Company::default() }
}

/// The kinds of records that describe a company, and their fields. One query may ask for one kind.
const RECORDS: [(&str, &str); 5] = [
    ("CVR_Virksomhed", "CVRNummer status virksomhedStartdato virksomhedOphoersdato virkningTil"),
    ("CVR_Navn", "vaerdi virkningTil"),
    ("CVR_Adressering", "AdresseringAnvendelse CVRAdresse_vejnavn CVRAdresse_postnummer CVRAdresse_postdistrikt"),
    ("CVR_Virksomhedsform", "vaerdi vaerdiTekst"),
    ("CVR_Branche", "vaerdi vaerdiTekst"),
];

/// Asks for the records of one kind.
fn record(kind: &str, number: u32) -> Request {
    let fields = RECORDS.iter().find(|(known, _)| *known == kind).map_or("id", |(_, fields)| fields);
    let query =
        format!("{{ {kind}(first: 20, where: {{ CVRNummer: {{ eq: {number} }} }}) {{ nodes {{ {fields} }} }} }}");
    Request::post("/CVR/v2", &json!({"query": query}))
}

fn official<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let number = session.subject().id.as_deref().and_then(|id| id.parse().ok());
        let number =
            number.ok_or_else(|| CallError::Upstream(SourceError::business("can only be asked about a number")))?;
        let mut records = Map::new();
        for (kind, _) in RECORDS {
            let found = session.ask(record(kind, number), |reply| nodes(&reply.body, kind)).await?;
            records.insert(kind.to_owned(), Value::Array(found));
        }
        put_together(&Value::Object(records)).map_err(CallError::Upstream)
    })
}

fn nodes(body: &[u8], kind: &str) -> Result<Vec<Value>, SourceError> {
    let document = reader::parse(body)?;
    if Node::root(&document).get("errors").exists() {
        return Err(SourceError::unavailable("reports an error of its own inside a 200"));
    }
    let list = document.get("data").and_then(|data| data.get(kind)?.get("nodes")?.as_array());
    list.cloned().ok_or_else(|| lacks("nodes"))
}

fn put_together(records: &Value) -> Result<Answer, SourceError> {
    let records = Node::root(records);
    let current = |kind: &str| records.get(kind).items().find(|node| node.get("virkningTil").text().is_none());
    let first = records.require_list("CVR_Virksomhed")?.first().copied(); // a company of the past has only records that ended
    let Some(entry) = current("CVR_Virksomhed").or(first) else {
        return Err(SourceError::not_found("knows no such company"));
    };
    let status = entry.get("status").text();
    let ended = entry.get("virksomhedOphoersdato").text();
    let standing = match status.as_deref().map(str::to_uppercase).as_deref() {
        Some(status) if status.contains("KONKURS") => Standing::Insolvent,
        Some(status) if status.contains("LIKVIDATION") => Standing::Liquidation,
        Some(status) if status.contains("REKONSTRUKTION") => Standing::Restructuring,
        _ if ended.is_some() => Standing::Ceased,
        Some("AKTIV" | "NORMAL") => Standing::Active,
        Some("OPHOERT" | "OPHØRT") => Standing::Ceased,
        _ => Standing::Unknown,
    };
    let named = |kind: &str, fields: &[&str]| current(kind).and_then(|node| node.joined(fields, " "));
    let address = current("CVR_Adressering").map(|node| Address {
        street: node.get("CVRAdresse_vejnavn").text(),
        postal_code: node.get("CVRAdresse_postnummer").text(),
        city: node.get("CVRAdresse_postdistrikt").text(),
        country: Some("DK".to_owned()),
    });
    let company = Company {
        name: Some(named("CVR_Navn", &["vaerdi"]).ok_or_else(|| lacks("CVR_Navn"))?),
        standing,
        status,
        legal_form: named("CVR_Virksomhedsform", &["vaerdiTekst"]),
        address,
        founded: entry.get("virksomhedStartdato").text(),
        dissolved: ended,
        activities: named("CVR_Branche", &["vaerdi", "vaerdiTekst"]).into_iter().collect(),
        ..blank(entry.require_text("CVRNummer")?)
    };
    Ok(company.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const NOVO: &[u8] = include_bytes!("../../../simulator/fixtures/dk_cvr/companies/24256790.json");
    const BANKRUPT: &[u8] = include_bytes!("../../../simulator/fixtures/dk_cvr/companies/99000104.json");

    #[test]
    fn an_entry_is_read_whole_but_for_the_telephone() {
        let answer = company(NOVO).expect("an entry");
        let novo = &answer.facts.companies[0];
        assert_eq!((novo.name.as_deref(), novo.id.as_deref()), (Some("NOVO NORDISK A/S"), Some("24256790")));
        assert_eq!((novo.founded.as_deref(), novo.standing), (Some("1931-11-28"), Standing::Active));
        assert_eq!((novo.employees, answer.facts.notes.len()), (None, 1), "1000+ is no number");
        assert!(!format!("{answer:?}").contains("00000000"));
        assert_eq!(company(BANKRUPT).expect("an entry").facts.companies[0].standing, Standing::Insolvent);
        assert_survives_corruption("dk_cvr.company", company, NOVO);
    }

    #[test]
    fn owners_come_as_one_or_many_and_an_end_is_an_end() {
        let body = br#"{"vat":"1","name":"X","enddate":"01/02 - 2024","employees":"7","owners":[{"name":"EKSEMPEL"},"ANDEN"]}"#;
        let facts = company(body).expect("an entry").facts;
        let owners: Vec<_> = facts.owners.iter().filter_map(|owner| owner.name.as_deref()).collect();
        assert_eq!((owners, facts.companies[0].employees), (vec!["EKSEMPEL", "ANDEN"], Some(7)));
        assert_eq!(
            (facts.companies[0].standing, facts.companies[0].dissolved.as_deref()),
            (Standing::Ceased, Some("2024-02-01"))
        );
    }

    #[test]
    fn an_unknown_code_is_an_outage() {
        let unknown = company(br#"{"error":"SOMETHING_NEW","t":0,"version":6}"#).expect_err("no entry");
        assert_eq!(unknown.class, Class::Unavailable);
    }

    #[test]
    fn the_official_records_are_put_together() {
        let fixture = include_str!("../../../simulator/fixtures/dk_cvr_datafordeler/24256790.json");
        let records: Value = serde_json::from_str(fixture).expect("JSON");
        let ours = put_together(&records).expect("an entry").facts.companies.remove(0);
        let theirs = company(NOVO).expect("an entry").facts.companies.remove(0);
        assert_eq!((&ours.name, &ours.id, &ours.address), (&theirs.name, &theirs.id, &theirs.address));
        assert_eq!(ours.activities, theirs.activities);
        assert_survives_corruption(
            "dk_cvr_datafordeler",
            |body| put_together(&reader::parse(body)?),
            fixture.as_bytes(),
        );
        assert_eq!(put_together(&json!({"CVR_Virksomhed": []})).expect_err("none").class, Class::NotFound);
        let mut past = records.clone();
        past["CVR_Virksomhed"]["virkningTil"] = json!("2020-01-31T00:00:00Z");
        past["CVR_Virksomhed"]["virksomhedOphoersdato"] = json!("2020-01-31");
        assert_eq!(put_together(&past).expect("an entry").facts.companies[0].standing, Standing::Ceased);
    }

    #[test]
    fn graphql_errors_and_missing_lists_are_outages() {
        let class = |body: &str| nodes(body.as_bytes(), "CVR_Navn").expect_err("no records").class;
        assert_eq!(class(r#"{"errors":[{"message":"x"}]}"#), Class::Unavailable);
        assert_eq!(class(r#"{"data":{"CVR_Navn":{}}}"#), Class::BadShape);
        assert_eq!(nodes(br#"{"data":{"CVR_Navn":{"nodes":[]}}}"#, "CVR_Navn"), Ok(vec![]));
    }
}
