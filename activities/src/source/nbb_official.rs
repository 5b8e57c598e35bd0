//! The official web service of the Belgian balance sheet office, which needs a key. It is the fallback for the office's site, and
//! throttles as silently.

use circuit_registry::CallError;
use futures::future::BoxFuture;

use super::nbb::{Fields, Figures, Filing, believed, listed, number, with_figures};
use crate::{
    parse::json::{self, Node, lacks},
    spec::{Answer, Auth, Base, Class, Credential, Request, Session, Source, SourceError, on},
};

/// The row.
pub static SOURCE: Source = Source {
    name: "nbb_official",
    title: "National Bank of Belgium, official web service (fallback for its site)",
    breaker: "nbb_official",
    base: Base { env: "NBB_OFFICIAL_BASE_URL", default: "https://ws.cbso.nbb.be" },
    credentials: &[Credential { any_of: &["NBB_CBSO_KEY"], obtain: "subscribe at https://developer.cbso.nbb.be" }],
    auth: Auth::Header { name: "NBB-CBSO-Subscription-Key", prefix: "", env: "NBB_CBSO_KEY" },
    rules: &[on(404).not_html().means(Class::NotFound, "has nothing on file under this number")],
    limits: "by contract; 4 to 8 requests a second, as observed",
    terms: "by contract with the Central Balance Sheet Office",
    ..Source::BLANK
};

/// Each request has an id of its own, as the service demands.
fn identified(request: Request) -> Request {
    request.header("X-Request-Id", uuid())
}

/// A random UUID.
fn uuid() -> String {
    let mut bytes = [0; 16];
    // Without entropy it is the same id each time, which is bad for tracing and for nothing else.
    let _ = ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes);
    let bits = u128::from_be_bytes(bytes) & !(0xf << 76 | 0b11 << 62) | 0x4 << 76 | 0b10 << 62;
    let hex = format!("{bits:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

fn references(session: &Session<'_>) -> Request {
    identified(Request::get("/authentic/legalEntity").segment(number(session.subject())).segment("references"))
}

/// The filings, in the place of the site.
pub(super) fn deposits<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move { believed(session, || references(session), filings).await.map(listed) })
}

/// The figures of the last accounts, in the place of the site.
pub(super) fn accounts<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let filings = believed(session, || references(session), filings).await?;
        let newest = filings.first().map(|filing| filing.reference.clone()).unwrap_or_default();
        let request = identified(Request::get("/authentic/deposit").segment(newest).segment("accountingData"));
        let figures = session.ask(request.accept("application/x.jsonxbrl"), |reply| figures(&reply.body)).await;
        with_figures(filings, figures)
    })
}

const FIELDS: Fields = Fields {
    reference: "ReferenceNumber",
    from: "ExerciseDates.startDate",
    to: "ExerciseDates.endDate",
    currency: "Currency",
    model: "ModelType",
    filed: "DepositDate",
};

fn filings(body: &[u8]) -> Result<Vec<Filing>, SourceError> {
    let document = json::parse(body)?;
    if !document.is_array() {
        return Err(lacks("ReferenceNumber"));
    }
    Node::root(&document).items().map(|entry| FIELDS.filing(entry)).collect()
}

/// The figures of the year itself; those of the year before are in the list as well.
fn figures(body: &[u8]) -> Result<Figures, SourceError> {
    let document = json::parse(body)?;
    let mut figures = Figures::default();
    for rubric in Node::root(&document).require_list("Rubrics")? {
        if rubric.get("Period").text().as_deref() == Some("N") {
            figures.note(&rubric.get("Code").text().unwrap_or_default(), rubric.get("Value").number());
        }
    }
    figures.found()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const REFERENCES: &[u8] = include_bytes!("../../../simulator/fixtures/nbb_official/references/0202239951.json");
    const ACCOUNTS: &[u8] = include_bytes!("../../../simulator/fixtures/nbb_official/accounts/2025-00123456.json");

    #[test]
    fn filings_and_figures_are_those_of_the_site() {
        let read = filings(REFERENCES).expect("filings");
        assert_eq!((read.len(), read[0].reference.as_str()), (2, "2025-00123456"));
        assert_eq!(filings(b"[]"), Ok(Vec::new()));
        assert_eq!(filings(b"{}").expect_err("no list").class, Class::BadShape);
        let answer = with_figures(read, figures(ACCOUNTS).map_err(CallError::Upstream));
        let accounts = answer.expect("figures").facts.accounts.remove(0);
        assert_eq!((accounts.assets, accounts.revenue), (Some(9_876_000_000.0), Some(4_567_000_000.0)));
        assert_eq!(accounts.to.as_deref(), Some("2024-12-31"));
        assert_survives_corruption("nbb_official.deposits", |body| filings(body).map(listed), REFERENCES);
        let parse = |body: &[u8]| {
            figures(body).and_then(|figures| {
                with_figures(Vec::new(), Ok(figures)).map_err(|_| SourceError::bad_shape("no figures"))
            })
        };
        assert_survives_corruption("nbb_official.accounts", parse, ACCOUNTS);
    }

    #[test]
    fn ids_are_uuids_of_the_random_kind() {
        let (one, other) = (uuid(), uuid());
        assert_ne!(one, other);
        assert_eq!((one.len(), one.as_bytes()[14]), (36, b'4'), "{one}");
        assert!(matches!(one.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{one}");
    }
}
