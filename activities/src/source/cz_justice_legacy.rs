//! The older site of the Czech registers: the fallback for the portal of the collection of deeds, in three pages.

use circuit_registry::CallError;
use encoding_rs::UTF_8;
use futures::future::BoxFuture;

use super::czech_deeds::filed;
use crate::{
    model::Notice,
    parse::date::iso,
    parse::html::{Page, Row},
    parse::json::lacks,
    spec::{Answer, Base, Class, Probe, Reply, Request, Session, Source, SourceError, Stay, on},
};

/// The row.
pub static SOURCE: Source = Source {
    name: "cz_justice_legacy",
    title: "Justice, Czech collection of deeds (older site)",
    breaker: "cz_justice_legacy",
    base: Base { env: "CZ_JUSTICE_LEGACY_BASE_URL", default: "https://or.justice.cz" },
    rules: &[on(403).means(Class::Throttled, "takes us for a robot and has barred us").stay(Stay::Seconds(3600))],
    probe: Some(Probe {
        request: || by_number("27082440"),
        read: |body| page(body, None).and_then(|page| subject(&page)).map(drop),
    }),
    limits: "none published",
    terms: "public register",
    ..Source::BLANK
};

fn by_number(number: &str) -> Request {
    Request::get("/ias/ui/rejstrik-$firma").query("ico", format!("{number:0>8}")).accept("text/html")
}

/// The list of deeds, found by the site's own number of the company.
pub(super) fn deeds<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let request = by_number(session.subject().id.as_deref().unwrap_or_default());
        let id = session.ask(request, |reply| subject(&read(reply)?)).await?;
        let request = Request::get("/ias/ui/vypis-sl-firma").query("subjektId", id).accept("text/html");
        session.ask(request, |reply| listed(&read(reply)?)).await
    })
}

fn read(reply: &Reply) -> Result<Page, SourceError> {
    page(&reply.body, reply.header("content-type"))
}

fn page(body: &[u8], content_type: Option<&str>) -> Result<Page, SourceError> {
    Page::read(body, content_type, UTF_8)
}

/// The site's number of the company that was searched for.
fn subject(page: &Page) -> Result<String, SourceError> {
    let deeds = page.root().links().find(|link| link.target.contains("vypis-sl-firma"));
    match deeds {
        Some(link) => link.parameter("subjektId").map(str::to_owned).ok_or_else(|| lacks("subjektId")),
        None if page.root().text().contains("Nenalezeno") => Err(SourceError::not_found("knows no such number")),
        None => Err(strange()),
    }
}

fn strange() -> SourceError {
    SourceError::unavailable("answered a page that is none of the register's: maintenance or a block")
}

/// The page of a deed.
const DEED: &str = "vypis-sl-detail";

/// The deeds of a company.
fn listed(page: &Page) -> Result<Answer, SourceError> {
    let list = page.root().of_class("list").ok_or_else(strange)?;
    let rows: Vec<_> = list.rows().filter(|row| row.cells().iter().any(|cell| cell.name() == "td")).collect();
    // An empty list has its headings all the same, and no deed beside it.
    let stray = page.root().links().any(|link| link.target.contains(DEED));
    if rows.is_empty() && (stray || list.all("th").next().is_none()) {
        return Err(lacks(DEED));
    }
    filed(rows.iter().map(deed).collect::<Result<_, _>>()?)
}

/// A row: number with a link, kind, and the days it was made, received and filed, of which the last is the best.
fn deed(row: &Row<'_>) -> Result<Notice, SourceError> {
    let link = row.cells().iter().flat_map(|cell| cell.links()).find(|link| link.target.contains(DEED));
    let link = link.ok_or_else(|| lacks(DEED))?;
    let address = link.parameter("dokument").zip(link.parameter("subjektId")).map(|(document, subject)| {
        let spis = link.parameter("spis").unwrap_or("1");
        format!("{}/ias/ui/vypis-sl-detail?dokument={document}&subjektId={subject}&spis={spis}", SOURCE.base.default)
    });
    let day = (2..row.cells().len()).rev().find_map(|place| iso(&row.text(place)?));
    Ok(Notice {
        kind: Some(row.text(1).ok_or_else(|| lacks("Typ listiny"))?),
        date: day,
        text: Some(link.text).filter(|text| !text.is_empty()),
        publisher: None,
        url: address,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const HIT: &[u8] = include_bytes!("../../../simulator/fixtures/cz_justice_legacy/search/27082440.html");
    const DEEDS: &[u8] = include_bytes!("../../../simulator/fixtures/cz_justice_legacy/deeds/441107.html");

    #[test]
    fn a_number_leads_to_the_list_of_deeds() {
        assert_eq!(page(HIT, None).and_then(|page| subject(&page)).as_deref(), Ok("441107"));
        let facts = page(DEEDS, None).and_then(|page| listed(&page)).expect("deeds").facts;
        assert_eq!((facts.notices.len(), facts.accounts.len()), (2, 1));
        let deed = &facts.notices[0];
        assert_eq!((deed.kind.as_deref(), deed.date.as_deref()), (Some("účetní závěrka [2024]"), Some("2025-07-15")));
        assert_eq!(deed.text.as_deref(), Some("B 8573/SL 1/MSPH"));
        let url = deed.url.as_deref().expect("an address");
        assert!(url.starts_with("https://or.justice.cz/ias/ui/vypis-sl-detail?dokument=90010001&"), "{url}");
        assert_survives_corruption("cz_justice_legacy", |body| page(body, None).and_then(|page| listed(&page)), DEEDS);
    }

    #[test]
    fn nothing_found_differs_from_no_register() {
        let of = |body: &[u8]| page(body, None).and_then(|page| subject(&page)).expect_err("no company").class;
        assert_eq!(of(include_bytes!("../../../simulator/fixtures/cz_justice_legacy/nothing.html")), Class::NotFound);
        assert_eq!(of(include_bytes!("../../../simulator/fixtures/html/challenge.html")), Class::Unavailable);
        let empty = b"<html><table class=list><tr><th>Typ listiny</th></tr></table></html>";
        let read = page(empty, None).and_then(|page| listed(&page)).expect_err("no deeds");
        assert_eq!(read.class, Class::NotFound);
    }
}
