//! RÚZ: the Slovak register of financial statements.
//!
//! Everything is found by the register's own ids, from a number to its unit, from the unit to its statements and reports;
//! and it lists ids only to those who say since when they want to know. The figures of a statement are cells of a
//! template without names, so what is read is which statements there are, for which periods, filed when.

use circuit_registry::CallError;
use futures::future::BoxFuture;

use crate::{
    model::{Accounts, Address, Company, Facts, Notice, Standing},
    parse::json::{self, Node, lacks},
    spec::{Answer, Base, Confidence, Countries, Flow, Need, Operation, Probe, Request, Session, Source, SourceError},
};

/// The row.
pub static SOURCE: Source = Source {
    name: "sk_ruz",
    title: "RÚZ, Slovak register of financial statements",
    breaker: "sk_ruz",
    base: Base { env: "SK_RUZ_BASE_URL", default: "https://www.registeruz.sk/cruz-public/api" },
    probe: Some(Probe::json(|| units("31333532"))),
    limits: "none published",
    terms: "free; public data",
    operations: &[
        Operation { name: "sk_ruz.unit", answers: "who the accounting unit is", flow: Flow::Steps(identity), ..SLOVAK },
        Operation {
            name: "sk_ruz.statements",
            answers: "the latest financial statements on file",
            flow: Flow::Steps(statements),
            ..SLOVAK
        },
        Operation {
            name: "sk_ruz.annual_reports",
            answers: "the latest annual reports on file",
            flow: Flow::Steps(annual_reports),
            ..SLOVAK
        },
    ],
    confidence: Confidence::A,
    ..Source::BLANK
};

const SLOVAK: Operation = Operation { countries: Countries::Only(&["SK"]), needs: &[Need::Id], ..Operation::BLANK };

/// How many filings are looked at, each by a request of its own: the last years.
const LATEST: usize = 3;

/// Ids of a number. The date is mandatory; this one is before the register.
fn units(number: &str) -> Request {
    Request::get("/uctovne-jednotky").query("zmenene-od", "2000-01-01").query("ico", number)
}

fn by_id(path: &'static str, id: u64) -> Request {
    Request::get(path).query("id", id.to_string())
}

/// The unit, with the ids of what it filed. The register leaves out every list that is empty.
#[derive(Debug, Clone, Default, PartialEq)]
struct Unit {
    company: Company,
    statements: Vec<u64>,
    reports: Vec<u64>,
}

async fn ask(session: &Session<'_>) -> Result<Unit, CallError<SourceError>> {
    let number = session.subject().id.as_deref().unwrap_or_default();
    let id = session.ask(units(number), |reply| newest(&reply.body)).await?;
    session.ask(by_id("/uctovna-jednotka", id), |reply| unit(&reply.body)).await
}

fn identity<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move { Ok(ask(session).await?.company.into()) })
}

fn statements<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let ids = ask(session).await?.statements;
        let mut accounts = Vec::new();
        for id in latest(&ids, "has no financial statement of this company")? {
            accounts.extend(session.ask(by_id("/uctovna-zavierka", id), |reply| statement(&reply.body)).await?);
        }
        accounts.sort_by(|a, b| b.to.cmp(&a.to));
        Ok(of_filed(Facts { accounts, ..Facts::default() }, &ids))
    })
}

fn annual_reports<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let ids = ask(session).await?.reports;
        let mut notices = Vec::new();
        for id in latest(&ids, "has no annual report of this company")? {
            notices.extend(session.ask(by_id("/vyrocna-sprava", id), |reply| annual_report(&reply.body)).await?);
        }
        Ok(of_filed(Facts { notices, ..Facts::default() }, &ids))
    })
}

/// The newest ids, newest first: the register counts upwards.
fn latest(ids: &[u64], none: &'static str) -> Result<Vec<u64>, CallError<SourceError>> {
    let mut ids = ids.to_vec();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids.truncate(LATEST);
    if ids.is_empty() { Err(CallError::Upstream(SourceError::not_found(none))) } else { Ok(ids) }
}

/// The facts of the latest filings, and how many of all they are.
fn of_filed(facts: Facts, ids: &[u64]) -> Answer {
    Answer::from(facts).of_total(ids.len().min(LATEST), u64::try_from(ids.len()).ok())
}

/// The ids of a list. The register leaves an empty one out; one that is null is not a list.
fn ids(parent: Node<'_>, name: &'static str) -> Result<Vec<u64>, SourceError> {
    let list = parent.get(name);
    if !list.exists() && parent.members().any(|(member, _)| member == name) {
        return Err(lacks(name));
    }
    list.items().map(|id| id.count().ok_or_else(|| lacks("id"))).collect()
}

/// The newest unit of a number. A list that is empty is left out; what says so then is that nothing follows it, in the
/// counter of either edition of the interface.
fn newest(body: &[u8]) -> Result<u64, SourceError> {
    let document = json::parse(body)?;
    let root = Node::root(&document);
    let more = root.get("pocetZostavajucichId").count().map(|more| more > 0);
    let list = root.get("id");
    match (list.exists(), more.or_else(|| root.get("existujeDalsieId").flag())) {
        (true, _) | (false, Some(false)) => {}
        (false, _) => return Err(lacks("id")),
    }
    ids(root, "id")?.into_iter().max().ok_or_else(|| SourceError::not_found("knows no such number"))
}

/// Whether the register has emptied a record, which it then keeps by its id.
fn deleted(record: Node<'_>) -> bool {
    record.get("stav").text().is_some_and(|state| state.to_uppercase() == "ZMAZANÉ")
}

fn unit(body: &[u8]) -> Result<Unit, SourceError> {
    let document = json::parse(body)?;
    let record = Node::root(&document);
    if deleted(record) {
        return Err(SourceError::not_found("has deleted its record of this number"));
    }
    let text = |name: &str| record.get(name).text();
    let state = text("stav");
    if state.as_deref().is_some_and(|state| state.to_lowercase() == "neverejná") {
        return Err(SourceError::business("keeps its record of this number from the public"));
    }
    let dissolved = text("datumZrusenia");
    let company = Company {
        name: Some(record.require_text("nazovUJ")?),
        id: Some(record.require_text("ico")?),
        country: Some("SK".to_owned()),
        standing: match (&dissolved, &state) {
            (Some(_), _) => Standing::Ceased,
            (None, None) => Standing::Active, // the register writes a state only into records that are not in force
            (None, Some(_)) => Standing::Unknown,
        },
        status: state,
        headcount: text("velkostOrganizacie").map(|code| format!("code {code} of the register's size classes")),
        legal_form: text("pravnaForma"),
        address: Some(Address { street: text("ulica"), postal_code: text("psc"), city: text("mesto"), country: None })
            .filter(|address| *address != Address::default()),
        founded: text("datumZalozenia"),
        dissolved,
        activities: text("skNace").into_iter().collect(),
        registrations: text("dic").map(|number| format!("tax number: {number}")).into_iter().collect(),
        ..Company::default()
    };
    Ok(Unit { company, statements: ids(record, "idUctovnychZavierok")?, reports: ids(record, "idVyrocnychSprav")? })
}

/// A statement, unless it was deleted.
fn statement(body: &[u8]) -> Result<Option<Accounts>, SourceError> {
    let document = json::parse(body)?;
    let record = Node::root(&document);
    if deleted(record) {
        return Ok(None);
    }
    let text = |name: &str| record.get(name).text();
    let consolidated = (record.get("konsolidovana").flag() == Some(true)).then(|| "konsolidovaná".to_owned());
    let filed = text("datumPodania").map(|date| format!("filed {date}"));
    let approved = text("datumSchvalenia").map(|date| format!("approved {date}"));
    let filing: Vec<_> = [text("typ"), consolidated, filed, approved].into_iter().flatten().collect();
    Ok(Some(Accounts {
        from: text("obdobieOd"),
        to: Some(record.require_text("obdobieDo")?),
        filing: Some(filing.join(", ")).filter(|filing| !filing.is_empty()),
        ..Accounts::default()
    }))
}

/// An annual report, unless it was deleted.
fn annual_report(body: &[u8]) -> Result<Option<Notice>, SourceError> {
    let document = json::parse(body)?;
    let record = Node::root(&document);
    if deleted(record) {
        return Ok(None);
    }
    let text = |name: &str| record.get(name).text();
    let period = [text("obdobieOd"), Some(record.require_text("obdobieDo")?)];
    Ok(Some(Notice {
        date: text("datumPodania"),
        kind: text("typ"),
        text: Some(period.into_iter().flatten().collect::<Vec<_>>().join(" – ")),
        publisher: Some("RÚZ".to_owned()),
        url: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::Status, parse::corruption::assert_survives_corruption, spec::Class};

    const UNIT: &[u8] = include_bytes!("../../../simulator/fixtures/sk_ruz/units/123456.json");
    const STATEMENT: &[u8] = include_bytes!("../../../simulator/fixtures/sk_ruz/statements/9000002.json");
    const REPORT: &[u8] = include_bytes!("../../../simulator/fixtures/sk_ruz/annual/8000001.json");

    #[test]
    fn a_unit_is_read_with_what_it_filed() {
        let read = unit(UNIT).expect("a unit");
        assert_eq!(
            (read.company.name.as_deref(), read.company.id.as_deref()),
            (Some("ESET, spol. s r.o."), Some("31333532"))
        );
        let address = read.company.address.clone().and_then(Address::line);
        assert_eq!(address.as_deref(), Some("Einsteinova 24, 85101 Bratislava"));
        assert_eq!((read.statements, read.reports), (vec![9_000_001, 9_000_002], vec![8_000_001]));
        let whole = |body: &[u8]| unit(body).map(|unit| unit.company.into());
        assert_survives_corruption("sk_ruz.unit", whole, UNIT);
        let deleted = include_bytes!("../../../simulator/fixtures/sk_ruz/units/123457.json");
        assert_eq!(unit(deleted).expect_err("deleted").class, Class::NotFound);
        let hidden = r#"{"id":1,"stav":"Neverejná"}"#.as_bytes();
        assert_eq!(unit(hidden).expect_err("hidden").class, Class::Business);
    }

    #[test]
    fn a_state_that_is_not_known_is_not_good_news() {
        let read = |more: &str| unit(format!(r#"{{"nazovUJ":"X","ico":"1"{more}}}"#).as_bytes()).expect("a unit");
        assert_eq!(read("").company.standing, Standing::Active);
        let odd = read(r#","stav":"Vymyslená""#).company;
        assert_eq!((odd.standing, odd.status.as_deref()), (Standing::Unknown, Some("Vymyslená")));
        assert_eq!(read(r#","datumZrusenia":"2020-01-01""#).company.standing, Standing::Ceased);
        assert_eq!(read("").statements, Vec::<u64>::new(), "a list that is left out is empty");
    }

    #[test]
    fn an_empty_list_of_ids_is_left_out() {
        assert!(units("31333532").target().contains("zmenene-od=2000-01-01"), "which is refused without it");
        assert_eq!(newest(br#"{"id":[3,"12",7],"existujeDalsieId":false}"#), Ok(12));
        for body in [&br#"{"id":[]}"#[..], br#"{"pocetZostavajucichId":0}"#, br#"{"existujeDalsieId":false}"#] {
            assert_eq!(newest(body).expect_err("none").class, Class::NotFound);
        }
        for body in [
            &br#"{}"#[..],
            br#"{"id":null}"#,
            br#"{"id":null,"existujeDalsieId":false}"#,
            br#"{"id":["x"]}"#,
            br#"{"pocetZostavajucichId":3}"#,
        ] {
            assert_eq!(newest(body).expect_err("no list").class, Class::BadShape);
        }
    }

    #[test]
    fn the_latest_filings_come_first_and_the_rest_is_counted() {
        let ids = [1, 9, 4, 7];
        assert_eq!(latest(&ids, "none").expect("some"), [9, 7, 4]);
        let answer = of_filed(Facts::default(), &ids);
        assert_eq!((answer.status, answer.reason.as_deref()), (Status::Partial, Some("3 of 4 were read")));
        assert_eq!(of_filed(Facts::default(), &ids[1..]).status, Status::Complete);
        assert!(latest(&[], "none").is_err());
    }

    #[test]
    fn filings_have_a_period() {
        let accounts = statement(STATEMENT).expect("an answer").expect("a statement");
        assert_eq!((accounts.from.as_deref(), accounts.to.as_deref()), (Some("2024-01"), Some("2024-12")));
        assert_eq!(accounts.filing.as_deref(), Some("Riadna, filed 2025-06-30, approved 2025-06-15"));
        let notice = annual_report(REPORT).expect("an answer").expect("a report");
        assert_eq!(
            (notice.kind.as_deref(), notice.text.as_deref()),
            (Some("Výročná správa"), Some("2024-01 – 2024-12"))
        );
        let gone = r#"{"id":1,"stav":"ZMAZANÉ"}"#.as_bytes();
        assert_eq!((statement(gone), annual_report(gone)), (Ok(None), Ok(None)));
        let accounts = |body: &[u8]| {
            statement(body).map(|read| Facts { accounts: read.into_iter().collect(), ..Facts::default() }.into())
        };
        assert_survives_corruption("sk_ruz.statements", accounts, STATEMENT);
        let notices = |body: &[u8]| {
            annual_report(body).map(|read| Facts { notices: read.into_iter().collect(), ..Facts::default() }.into())
        };
        assert_survives_corruption("sk_ruz.annual_reports", notices, REPORT);
    }
}
