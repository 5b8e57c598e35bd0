//! The Belgian central balance sheet office: which annual accounts a company has filed, and their key figures.
//!
//! It throttles without a word: a client that asks too much gets an empty list of filings. So an empty list is believed only
//! when it comes three times, with pauses between. The site's own interface needs no key; with one, the official service
//! is the fallback.

use std::time::Duration;

use circuit_registry::CallError;
use futures::future::BoxFuture;

use super::nbb_official;
use crate::{
    model::{Accounts, Address, Company, Facts, Standing, Status, Subject},
    parse::json::{self, Node, lacks},
    spec::{
        Answer, Base, Class, Countries, Fallback, Flow, Need, Operation, Probe, Request, Session, Source, SourceError,
        on,
    },
};

/// The row.
pub static SOURCE: Source = Source {
    name: "nbb",
    title: "National Bank of Belgium, annual accounts",
    breaker: "nbb",
    base: Base { env: "NBB_BASE_URL", default: "https://consult.cbso.nbb.be/api" },
    user_agent: Some("NBB_USER_AGENT"),
    rules: &[on(404).not_html().means(Class::NotFound, "has nothing on file under this number")],
    probe: Some(Probe::json(|| company_of("0203201340"))),
    limits: "4 to 8 requests a second, as observed",
    terms: "public; Central Balance Sheet Office",
    operations: &[
        Operation {
            name: "nbb.company",
            answers: "name, legal form and address, as the balance sheet office knows them",
            flow: COMPANY,
            ..BELGIAN
        },
        Operation {
            name: "nbb.deposits",
            answers: "the annual accounts on file",
            flow: Flow::Steps(deposits),
            fallbacks: &[Fallback {
                via: "nbb_official",
                proves: "the official service answered instead, about the same filings",
                source: &nbb_official::SOURCE,
                flow: Flow::Steps(nbb_official::deposits),
            }],
            ..BELGIAN
        },
        Operation {
            name: "nbb.accounts",
            answers: "key figures of the last annual accounts",
            flow: Flow::Steps(accounts),
            fallbacks: &[Fallback {
                via: "nbb_official",
                proves: "the official service answered instead, about the same filings",
                source: &nbb_official::SOURCE,
                flow: Flow::Steps(nbb_official::accounts),
            }],
            ..BELGIAN
        },
    ],
    ..Source::BLANK
};

const BELGIAN: Operation = Operation { countries: Countries::Only(&["BE"]), needs: &[Need::Id], ..Operation::BLANK };

/// How the company itself is looked up, also in the place of a register that cannot be asked.
pub(super) const COMPANY: Flow =
    Flow::Single { request: |subject| Some(company_of(subject.id.as_deref()?)), parse: company };

/// The pauses before an empty list is asked for again.
const PAUSES: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(12)];

/// Accounts as filed, without their figures.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Filing {
    /// The office's reference.
    pub(super) reference: String,
    /// Period, currency and kind.
    pub(super) accounts: Accounts,
}

/// What the parts of a filing are called, which differs between the site and the service.
pub(super) struct Fields {
    pub(super) reference: &'static str,
    pub(super) from: &'static str,
    pub(super) to: &'static str,
    pub(super) currency: &'static str,
    pub(super) model: &'static str,
    pub(super) filed: &'static str,
}

impl Fields {
    /// Reads a filing, which has a reference and a period.
    pub(super) fn filing(&self, entry: Node<'_>) -> Result<Filing, SourceError> {
        let text = |path: &str| entry.at(path).text();
        let filed = text(self.filed).map(|date| format!("filed {date}"));
        let kind: Vec<_> = text(self.model).into_iter().chain(filed).collect();
        Ok(Filing {
            reference: text(self.reference).ok_or_else(|| lacks(self.reference))?,
            accounts: Accounts {
                from: text(self.from),
                to: Some(text(self.to).ok_or_else(|| lacks(self.to))?),
                currency: text(self.currency),
                filing: (!kind.is_empty()).then(|| kind.join(" ")),
                ..Accounts::default()
            },
        })
    }
}

/// The site answers to its own pages.
fn site(request: Request) -> Request {
    request.header("Referer", "https://consult.cbso.nbb.be/")
}

fn company_of(number: &str) -> Request {
    site(Request::get("/rs-consult/companies").segment(number).segment("NL"))
}

/// The number under which a company files; only companies that have one are asked about.
pub(super) fn number(subject: &Subject) -> &str {
    subject.id.as_deref().unwrap_or_default()
}

/// Asks for a list of filings until it is either not empty or empty often enough to be believed. Newest first.
pub(super) async fn believed(
    session: &Session<'_>,
    request: impl Fn() -> Request,
    read: fn(&[u8]) -> Result<Vec<Filing>, SourceError>,
) -> Result<Vec<Filing>, CallError<SourceError>> {
    let mut pauses = PAUSES.into_iter();
    loop {
        let mut filings = session.ask(request(), |reply| read(&reply.body)).await?;
        if !filings.is_empty() {
            filings.sort_by(|a, b| b.accounts.to.cmp(&a.accounts.to));
            return Ok(filings);
        }
        match pauses.next() {
            Some(pause) => session.pause(pause).await,
            None => return Err(CallError::Upstream(SourceError::not_found("has no accounts of this company on file"))),
        }
    }
}

/// The filings as an answer.
pub(super) fn listed(filings: Vec<Filing>) -> Answer {
    Facts { accounts: filings.into_iter().map(|filing| filing.accounts).collect(), ..Facts::default() }.into()
}

/// The newest filing with the figures in it. Old or small filings are a scan without any.
pub(super) fn with_figures(
    filings: Vec<Filing>,
    figures: Result<Figures, CallError<SourceError>>,
) -> Result<Answer, CallError<SourceError>> {
    let newest = filings.into_iter().next().map(|filing| filing.accounts).unwrap_or_default();
    match figures {
        Ok(figures) => Ok(Facts { accounts: vec![figures.into_accounts(newest)], ..Facts::default() }.into()),
        Err(CallError::Upstream(error)) if error.class == Class::NotFound => Ok(Answer {
            status: Status::Partial,
            reason: Some("the last accounts are on file as a document without figures".to_owned()),
            ..Facts { accounts: vec![newest], ..Facts::default() }.into()
        }),
        Err(error) => Err(error),
    }
}

fn published(session: &Session<'_>) -> Request {
    site(Request::get("/rs-consult/published-deposits"))
        .query("page", "0")
        .query("size", "10")
        .query("enterpriseNumber", number(session.subject()))
        .query("sort", "periodEndDate,desc")
}

fn deposits<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move { believed(session, || published(session), filings).await.map(listed) })
}

fn accounts<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let filings = believed(session, || published(session), filings).await?;
        let newest = filings.first().map(|filing| filing.reference.clone()).unwrap_or_default();
        let request = site(Request::get("/external/broker/public/deposits/consult/csv").segment(newest));
        let figures = session.ask(request.accept("text/csv"), |reply| figures(&reply.body)).await;
        with_figures(filings, figures)
    })
}

fn company(body: &[u8]) -> Result<Answer, SourceError> {
    let document = json::parse(body)?;
    let entry = Node::root(&document);
    let address = entry.get("address");
    let street = ["street", "number", "box"].map(|part| address.get(part).text());
    let company = Company {
        id: Some(entry.require_text("enterpriseNumber")?),
        name: Some(entry.require_text("enterpriseName")?),
        country: Some("BE".to_owned()),
        standing: match entry.get("status").text().as_deref() {
            Some("active") => Standing::Active,
            _ => Standing::Unknown,
        },
        status: entry.get("status").text(),
        legal_form: entry.at("legalForm.name").text(),
        address: address.exists().then(|| Address {
            street: Some(street.into_iter().flatten().collect::<Vec<_>>().join(" "))
                .filter(|street| !street.is_empty()),
            postal_code: address.get("postalCode").text(),
            city: address.get("city").text(),
            country: address.get("country").text(),
        }),
        ..Company::default()
    };
    Ok(company.into())
}

const FIELDS: Fields = Fields {
    reference: "id",
    from: "periodStartDate",
    to: "periodEndDate",
    currency: "currency",
    model: "modelName",
    filed: "depositDate",
};

fn filings(body: &[u8]) -> Result<Vec<Filing>, SourceError> {
    let document = json::parse(body)?;
    Node::root(&document).require_list("content")?.into_iter().map(|entry| FIELDS.filing(entry)).collect()
}

/// The rubrics of the Belgian standard form that a report is after.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Figures {
    assets: Option<f64>,
    equity: Option<f64>,
    revenue: Option<f64>,
    result: Option<f64>,
}

impl Figures {
    /// Takes note of a rubric, if it is one of these.
    pub(super) fn note(&mut self, rubric: &str, amount: Option<f64>) {
        match rubric {
            "20/58" => self.assets = amount,
            "10/15" => self.equity = amount,
            "70" => self.revenue = amount,
            "9904" => self.result = amount,
            _ => {}
        }
    }

    /// The figures, of which at least one must be there.
    pub(super) fn found(self) -> Result<Self, SourceError> {
        if self == Self::default() { Err(lacks("20/58")) } else { Ok(self) }
    }

    fn into_accounts(self, filed: Accounts) -> Accounts {
        let Self { assets, equity, revenue, result } = self;
        Accounts { assets, equity, revenue, result, ..filed }
    }
}

/// Reads lines of `"rubric","value"`.
fn figures(body: &[u8]) -> Result<Figures, SourceError> {
    let text = String::from_utf8_lossy(body);
    match text.trim_start().chars().next() {
        None => return Err(SourceError::unavailable("answered nothing at all")),
        Some('<') => return Err(SourceError::unavailable("answered a page where figures were promised")),
        Some('"') => {}
        Some(_) => return Err(SourceError::bad_shape("answered something that is no table")),
    }
    let mut figures = Figures::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let inside = line.strip_prefix('"').and_then(|line| line.strip_suffix('"'));
        let (rubric, value) = inside
            .and_then(|line| line.split_once("\",\""))
            .ok_or_else(|| SourceError::unavailable("broke off its answer"))?;
        figures.note(rubric, value.parse().ok().filter(|amount: &f64| amount.is_finite()));
    }
    figures.found()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const COMPANY: &[u8] = include_bytes!("../../../simulator/fixtures/nbb/companies/0202239951.json");
    const CSV: &[u8] = include_bytes!("../../../simulator/fixtures/nbb/csv/2025-00123456.csv");

    fn list() -> Vec<u8> {
        let deposits = include_str!("../../../simulator/fixtures/nbb/deposits/0202239951.json");
        format!(r#"{{"content":{deposits},"totalElements":2}}"#).into_bytes()
    }

    #[test]
    fn filings_are_a_list_or_no_answer() {
        let read = filings(&list()).expect("filings");
        assert_eq!((read.len(), read[0].reference.as_str()), (2, "2025-00123456"));
        assert_eq!(read[0].accounts.to.as_deref(), Some("2024-12-31"));
        assert_eq!(read[0].accounts.filing.as_deref(), Some("m02-f filed 2025-06-30"));
        assert_eq!(filings(br#"{"content":[]}"#), Ok(Vec::new()));
        assert_eq!(filings(b"{}").expect_err("no list").class, Class::BadShape);
        assert_eq!(filings(b"[]").expect_err("another list").class, Class::BadShape);
        assert_survives_corruption("nbb.deposits", |body| filings(body).map(listed), &list());
    }

    #[test]
    fn a_company_is_read_whole() {
        let read = company(COMPANY).expect("a company").facts.companies.remove(0);
        assert_eq!((read.name.as_deref(), read.standing), (Some("PROXIMUS"), Standing::Active));
        assert_eq!(read.address.and_then(Address::line).as_deref(), Some("Koning Albert II-laan 27, 1030 Schaarbeek"));
        assert_survives_corruption("nbb.company", company, COMPANY);
    }

    #[test]
    fn figures_are_never_half_a_number() {
        let whole = figures(CSV).expect("figures");
        assert_eq!((whole.assets, whole.result), (Some(9_876_000_000.0), Some(410_000_000.0)));
        for length in 0..CSV.len() {
            let Ok(cut) = figures(&CSV[..length]) else { continue };
            for (cut, whole) in [
                (cut.assets, whole.assets),
                (cut.equity, whole.equity),
                (cut.revenue, whole.revenue),
                (cut.result, whole.result),
            ] {
                assert!(cut.is_none() || cut == whole, "cut at {length} it reads {cut:?}");
            }
        }
        assert_eq!(figures(b"<html>").expect_err("a page").class, Class::Unavailable);
        assert_eq!(figures(b"{}").expect_err("no table").class, Class::BadShape);
        assert_eq!(figures(b"\"Reference number\",\"1\"").expect_err("no figures").class, Class::BadShape);
    }
}
