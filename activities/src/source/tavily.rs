//! Tavily: press search for adverse media.
//!
//! Each search costs credits, and an empty list is a clean answer: it must differ from a search that failed. A used-up
//! plan has statuses of its own and lasts until the month or a person ends it.

use serde_json::json;

use crate::{
    model::{Article, Facts, Subject},
    parse::json::{self as reader, Node},
    spec::{
        Answer, Auth, Base, Class, Countries, Credential, Flow, Need, Operation, Probe, Request, Source, SourceError,
        Stay, on,
    },
};

/// The row.
pub static SOURCE: Source = Source {
    name: "tavily",
    title: "Tavily, adverse-media search",
    breaker: "tavily",
    base: Base { env: "TAVILY_BASE_URL", default: "https://api.tavily.com" },
    credentials: &[Credential { any_of: &["TAVILY_API_KEY"], obtain: "create a key at https://app.tavily.com" }],
    auth: Auth::Bearer("TAVILY_API_KEY"),
    timeout: std::time::Duration::from_secs(20),
    rules: &[
        on(432).means(Class::Throttled, "has used up the searches of the plan (HTTP 432)").stay(Stay::NextMonth),
        on(433)
            .means(Class::Throttled, "has reached the spending limit of the account (HTTP 433)")
            .stay(Stay::Seconds(86_400)),
        on(429).means(Class::Throttled, "asks for fewer requests (HTTP 429)").stay(Stay::Named("retry_after_seconds")),
        on(400).json().means(Class::Business, "does not accept the query"),
    ],
    probe: Some(Probe::json(|| Request::get("/usage"))),
    limits: "100 requests a minute with a development key, 1000 with a production key; credits per search",
    terms: "commercial; results belong to their publishers",
    operations: &[Operation {
        name: "tavily.adverse_media",
        answers: "articles that mention the company together with fraud, sanctions or investigations",
        countries: Countries::Any,
        needs: &[Need::Name],
        flow: Flow::Single { request, parse: articles },
        billed: true,
        ..Operation::BLANK
    }],
    ..Source::BLANK
};

/// A query has fewer than 400 characters; the name takes at most this many.
const LONGEST_NAME: usize = 300;

fn request(subject: &Subject) -> Option<Request> {
    let name: String = subject.name.as_deref()?.chars().filter(|c| *c != '"').take(LONGEST_NAME).collect();
    let document = json!({
        "query": format!("\"{}\" fraud OR sanctions OR investigation", name.trim()),
        "topic": "news", "search_depth": "basic", "max_results": 10, "time_range": "year",
        "include_answer": false, "include_raw_content": false,
    });
    Some(Request::post("/search", &document))
}

fn articles(body: &[u8]) -> Result<Answer, SourceError> {
    let document = reader::parse(body)?;
    let results = Node::root(&document).require_list("results")?;
    let articles = results.into_iter().map(article).collect::<Result<Vec<_>, _>>()?;
    let notes = if articles.is_empty() {
        vec!["searched; no article mentions the company in this context".to_owned()]
    } else {
        vec![]
    };
    Ok(Facts { articles, notes, ..Facts::default() }.into())
}

fn article(result: Node<'_>) -> Result<Article, SourceError> {
    let url = result.require_text("url")?;
    Ok(Article {
        title: result.get("title").text().unwrap_or_else(|| url.clone()),
        url,
        excerpt: result.get("content").text().map(|text| text.chars().take(500).collect()),
        score: result.get("score").number(),
        published: result.get("published_date").text(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    fn body() -> Vec<u8> {
        let articles = include_str!("../../../simulator/fixtures/tavily/articles.json");
        format!(r#"{{"query":"x","results":{articles},"response_time":0.4}}"#).into_bytes()
    }

    #[test]
    fn articles_are_read_and_none_is_an_answer() {
        let facts = articles(&body()).expect("an answer").facts;
        assert!(!facts.articles.is_empty() && facts.articles.iter().all(|article| article.url.starts_with("http")));
        let none = articles(br#"{"results":[]}"#).expect("an answer").facts;
        assert!(none.articles.is_empty() && none.notes.len() == 1);
        assert_survives_corruption("tavily.adverse_media", articles, &body());
    }

    #[test]
    fn a_missing_list_is_never_a_clean_search() {
        for body in [&b"{}"[..], br#"{"results":null}"#, br#"{"results":[{}]}"#, br#"{"results":"none"}"#] {
            assert_eq!(articles(body).expect_err("no answer").class, Class::BadShape);
        }
    }
}
