//! Crawl4AI, a crawler that we run ourselves: what the company's own website says it is.
//!
//! The address comes from a register or from the user, and so may lead anywhere: it is vetted before the crawler is sent
//! there, and what a redirect led to is vetted before it is believed. A website that is down is a row inside a 200 and says
//! nothing about the crawler. Of what a page says, only what describes the company is kept; the people on it are not.

use std::time::Duration;

use circuit_registry::CallError;
use futures::future::BoxFuture;
use reqwest::Url;
use serde_json::json;

use crate::{
    guard,
    model::{Facts, Page, Status, Subject},
    parse::json::{self as reader, Node, lacks},
    spec::{
        Answer, Auth, Base, Class, Countries, Credential, Flow, Need, Operation, Probe, Request, Scope, Session,
        Source, SourceError, on,
    },
};

/// The row.
pub static SOURCE: Source = Source {
    name: "crawl4ai",
    title: "Crawl4AI, the company's own website",
    breaker: "crawl4ai",
    base: Base { env: "CRAWL4AI_BASE_URL", default: "http://crawl4ai:11235" },
    credentials: &[Credential {
        any_of: &["CRAWL4AI_BASE_URL"],
        obtain: "run the container unclecode/crawl4ai and set its address; CRAWL4AI_API_TOKEN too, if it wants one",
    }],
    auth: Auth::Bearer("CRAWL4AI_API_TOKEN"),
    timeout: Duration::from_secs(45), // the page's own 30 s, and a browser to start
    rules: &[on(413).json().means(Class::Business, "finds the website too large")],
    probe: Some(Probe { request: || Request::get("/health"), read: healthy }),
    limits: "those of our own installation: 1000 requests a minute by default",
    terms: "those of the website visited",
    operations: &[Operation {
        name: "crawl4ai.website",
        answers: "what the company's website says it is, and whether it states the company's numbers",
        countries: Countries::Any,
        needs: &[Need::Website],
        flow: Flow::Steps(website),
        ..Operation::BLANK
    }],
    ..Source::BLANK
};

/// Words in links to the page on which a company says who it is.
const NOTICES: [&str; 7] = ["impressum", "imprint", "legal", "légal", "colofon", "juridisk", "company-information"];

/// Most links to such pages that are reported.
const MOST_NOTICES: usize = 5;

fn healthy(body: &[u8]) -> Result<(), SourceError> {
    let document = reader::parse(body)?;
    match Node::root(&document).require_text("status")?.as_str() {
        "ok" | "healthy" => Ok(()),
        _ => Err(SourceError::unavailable("reports that it is not well")),
    }
}

/// The first page, and the legal notice if it links to one.
fn website<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let subject = session.subject();
        let home = visit(session, &address(subject.website.as_deref().unwrap_or_default())).await?;
        let notice = home.legal_notices.iter().find(|link| same_host(link, &home.url)).cloned();
        let mut answer = Answer { facts: Facts { pages: vec![home], ..Facts::default() }, ..Answer::default() };
        if let Some(link) = notice {
            match visit(session, &link).await {
                Ok(page) => answer.facts.pages.push(page),
                Err(stop) => {
                    answer.status = Status::Partial;
                    answer.reason = Some(format!("the legal notice of the website was not read: {stop}"));
                }
            }
        }
        if !answer.facts.pages.iter().any(|page| page.states.iter().any(|stated| stated != NAME)) {
            answer.facts.notes.push("the pages read state none of the company's known numbers".to_owned());
        }
        Ok(answer)
    })
}

/// Registers write websites without a scheme.
fn address(website: &str) -> String {
    if website.contains("://") { website.to_owned() } else { format!("https://{website}") }
}

fn same_host(link: &str, page: &str) -> bool {
    let host = |text: &str| Url::parse(text).ok()?.host_str().map(str::to_owned);
    host(link).is_some() && host(link) == host(page)
}

/// Sends the crawler to a page, and believes the page if it is where it may be.
async fn visit(session: &Session<'_>, address: &str) -> Result<Page, CallError<SourceError>> {
    let url = session.vet(address).await.map_err(refused)?;
    let document = json!({
        "urls": [url.as_str()],
        "crawler_config": {"type": "CrawlerRunConfig", "params": {"page_timeout": 30_000}},
    });
    let subject = session.subject();
    let page = session.ask(Request::post("/crawl", &document), |reply| page(&reply.body, subject)).await?;
    session.vet(&page.url).await.map_err(refused)?;
    Ok(page)
}

/// Not a failure of the crawler: it was not asked, or a redirect led it away.
fn refused(why: guard::Refusal) -> CallError<SourceError> {
    CallError::Upstream(SourceError::business(format!("is not sent to a website whose address {why}")).unsent())
}

fn page(body: &[u8], subject: &Subject) -> Result<Page, SourceError> {
    let document = reader::parse(body)?;
    let results = Node::root(&document).require_list("results")?;
    let result = results.first().ok_or_else(|| lacks("results"))?;
    if !result.get("success").flag().ok_or_else(|| lacks("success"))? {
        return Err(SourceError::unavailable("could not open the website").of(Scope::Subject));
    }
    match result.get("status_code").count() {
        Some(404 | 410) => return Err(SourceError::not_found("found no such page on the website")),
        Some(status @ 400..) => {
            let reason = format!("was answered HTTP {status} by the website");
            return Err(SourceError::unavailable(reason).of(Scope::Subject));
        }
        _ => {}
    }
    let url = result.get("redirected_url").text().map_or_else(|| result.require_text("url"), Ok)?;
    let texts = ["markdown.raw_markdown", "markdown", "cleaned_html", "html"];
    let text = texts.into_iter().find_map(|path| result.at(path).text()).ok_or_else(|| lacks("markdown"))?;
    Ok(Page {
        url,
        title: result.at("metadata.title").text(),
        description: result.at("metadata.description").text(),
        states: stated(&text, subject),
        legal_notices: notices(result.at("links.internal")),
    })
}

/// Links of the page that lead to a legal notice, each once.
fn notices(links: Node<'_>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for link in links.items() {
        let Some(href) = link.get("href").text() else { continue };
        let label = format!("{href} {}", link.get("text").text().unwrap_or_default()).to_lowercase();
        let fits = NOTICES.iter().any(|word| label.contains(word)) && guard::admit(&href).is_ok();
        if fits && found.len() < MOST_NOTICES && !found.contains(&href) {
            found.push(href);
        }
    }
    found
}

const NAME: &str = "name";

/// What the page states of what is known about the company.
fn stated(text: &str, subject: &Subject) -> Vec<String> {
    let squeezed = |text: &str| -> Vec<char> { text.to_uppercase().chars().filter(|c| c.is_alphanumeric()).collect() };
    let page = squeezed(text);
    // A number inside of a longer one is another number.
    let contains = |known: &String| {
        let known = squeezed(known);
        let digit = |at: Option<usize>| at.and_then(|at| page.get(at)).is_some_and(char::is_ascii_digit);
        let whole = |at: usize| {
            let numeric = |c: Option<&char>| c.is_some_and(char::is_ascii_digit);
            !(numeric(known.first()) && digit(at.checked_sub(1))
                || numeric(known.last()) && digit(Some(at + known.len())))
        };
        !known.is_empty() && page.windows(known.len()).enumerate().any(|(at, window)| window == known && whole(at))
    };
    let known = [
        (NAME, &subject.name),
        ("registration number", &subject.id),
        ("VAT number", &subject.vat),
        ("LEI", &subject.lei),
    ];
    let known = known.into_iter().filter(|(_, value)| value.as_ref().is_some_and(contains));
    known.map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    fn subject() -> Subject {
        let (id, name) = (Some("923609016".to_owned()), Some("Equinor ASA".to_owned()));
        Subject { id, name, ..Subject::new("NO".parse().expect("a country")) }
    }

    fn result(file: &str) -> Value {
        serde_json::from_str(file).expect("a result")
    }

    fn home() -> Value {
        result(include_str!("../../../simulator/fixtures/crawl4ai/pages/www.equinor.com.json"))
    }

    fn body(result: &Value) -> Vec<u8> {
        json!({"success": true, "results": [result]}).to_string().into_bytes()
    }

    fn with(name: &str, value: Value) -> Vec<u8> {
        let mut result = home();
        result[name] = value;
        body(&result)
    }

    #[test]
    fn a_page_names_its_company_and_no_person_is_kept() {
        let home = page(&body(&home()), &subject()).expect("a page");
        assert_eq!((home.title.as_deref(), home.url.as_str()), (Some("Equinor"), "https://www.equinor.com/"));
        assert_eq!(home.states, ["registration number"]);
        assert_eq!(home.legal_notices, ["https://www.equinor.com/legal"]);
        let notice = result(include_str!("../../../simulator/fixtures/crawl4ai/pages/www.equinor.com/legal.json"));
        let notice = page(&body(&notice), &subject()).expect("a page");
        assert_eq!(notice.states, ["name", "registration number"]);
        let text = serde_json::to_string(&notice).expect("serialises");
        assert!(!text.contains("Eksempel") && !text.contains("example.org"), "{text}");
        fn read(body: &[u8]) -> Result<Answer, SourceError> {
            let pages = vec![page(body, &subject())?];
            Ok(Facts { pages, ..Facts::default() }.into())
        }
        assert_survives_corruption("crawl4ai.website", read, &body(&self::home()));
    }

    #[test]
    fn errors_of_the_website_are_not_errors_of_the_crawler() {
        let source_error = |body: &[u8]| page(body, &subject()).expect_err("no page");
        for dead in [with("success", json!(false)), with("status_code", json!(503)), with("status_code", json!("500"))]
        {
            let error = source_error(&dead);
            assert_eq!((error.class, error.scope), (Class::Unavailable, Scope::Subject));
        }
        assert_eq!(source_error(&with("status_code", json!(404))).class, Class::NotFound);
        for odd in [&b"{}"[..], br#"{"results":[]}"#, br#"{"results":[{}]}"#, br#"{"results":[{"success":true}]}"#] {
            let error = source_error(odd);
            assert_eq!((error.class, error.scope), (Class::BadShape, Scope::Service));
        }
    }

    #[test]
    fn numbers_are_found_in_every_spelling_never_inside_others() {
        let vat = Some("NO923609016MVA".to_owned());
        let subject = Subject { vat, name: None, ..subject() };
        let states = |text: &str| stated(text, &subject);
        assert_eq!(states("Org.nr. 923 609 016"), ["registration number"]);
        assert_eq!(states("VAT: NO 923.609.016 MVA"), ["registration number", "VAT number"]);
        for other in ["1923609016", "9236090161", "923 609 017", ""] {
            assert!(states(other).is_empty(), "{other}");
        }
    }

    #[test]
    fn links_to_legal_notices_are_few_and_lead_to_the_internet() {
        let links = json!([
            {"href": "https://x.example/impressum", "text": ""}, {"href": "https://x.example/impressum", "text": "Impressum"},
            {"href": "https://x.example/a", "text": "Mentions légales"}, {"href": "http://127.0.0.1/legal", "text": "Legal"},
            {"href": "javascript:legal()", "text": "Legal"}, {"href": "https://x.example/about", "text": "About"}, {}, 7,
        ]);
        assert_eq!(notices(Node::root(&links)), ["https://x.example/impressum", "https://x.example/a"]);
        assert!(
            same_host("https://x.example/a", "https://x.example/")
                && !same_host("https://y.example", "https://x.example")
        );
        assert_eq!(address("www.equinor.com"), "https://www.equinor.com");
    }

    #[test]
    fn health_is_what_it_says() {
        assert!(healthy(br#"{"status":"ok"}"#).is_ok());
        assert_eq!(healthy(br#"{"status":"draining"}"#).expect_err("ill").class, Class::Unavailable);
        assert_eq!(healthy(b"{}").expect_err("odd").class, Class::BadShape);
    }
}
