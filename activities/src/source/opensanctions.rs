//! OpenSanctions: sanctions, politically exposed persons and debarments, by the match API.
//!
//! Names go into a Lucene query on the other side, where `A/S` is a syntax error that comes back as 400 or 500. So names are
//! made harmless first, and the finding says which names were really asked about: a name that was not screened is not a
//! name that was screened and found clear.

use circuit_registry::CallError;
use serde_json::json;

use super::opensanctions_feed;
use crate::{
    model::{Company, Facts, Hit, Screening, Subject},
    parse::json::{self as reader, Node, lacks},
    spec::{
        Answer, Auth, Base, Class, Confidence, Countries, Credential, Fallback, Flow, Need, Operation, Probe, Request,
        Scope, Session, Source, SourceError, on,
    },
};
use futures::future::BoxFuture;

/// The row.
pub static SOURCE: Source = Source {
    name: "opensanctions",
    title: "OpenSanctions, watch lists",
    breaker: "opensanctions",
    base: Base { env: "OPENSANCTIONS_BASE_URL", default: "https://api.opensanctions.org" },
    credentials: &[Credential {
        any_of: &["OPENSANCTIONS_API_KEY"],
        obtain: "create a key at https://www.opensanctions.org/api/, or run yente and set OPENSANCTIONS_BASE_URL with any key",
    }],
    auth: Auth::Header { name: "authorization", prefix: "ApiKey ", env: "OPENSANCTIONS_API_KEY" },
    rules: &[on(400).json().means(Class::Business, "does not accept the name").of(Scope::Subject)],
    probe: Some(Probe::json(|| Request::get("/readyz"))),
    limits: "by contract",
    terms: "CC BY-NC 4.0; commercial use needs a licence",
    operations: &[
        Operation {
            name: "opensanctions.match",
            answers: "watch-list entries that resemble the company",
            countries: Countries::Any,
            needs: &[Need::Name],
            flow: Flow::Steps(screen),
            fallbacks: &[Fallback {
                via: "opensanctions_feed",
                proves: "the last good feed was searched instead",
                source: &opensanctions_feed::SOURCE,
                flow: Flow::Steps(opensanctions_feed::screen_by_copy),
            }],
            billed: true,
            ..Operation::BLANK
        },
        Operation {
            name: "opensanctions.entity",
            answers: "the entry of this very company, by its LEI",
            countries: Countries::Any,
            needs: &[Need::Lei],
            rules: &[on(404).json().means(Class::NotFound, "has no entry with this LEI")],
            flow: Flow::Single { request: entity_request, parse: entity },
            billed: true,
            ..Operation::BLANK
        },
    ],
    confidence: Confidence::A,
    ..Source::BLANK
};

const DATASET: &str = "default";

/// A name without what means something in a query. `None` if nothing is left to ask about.
fn harmless(name: &str) -> Option<String> {
    let spaced: String = name.chars().map(|c| if r#"+-&|!(){}[]^"~*?:\/<>="#.contains(c) { ' ' } else { c }).collect();
    let operator = |word: &&str| matches!(*word, "AND" | "OR" | "NOT");
    let mut words: Vec<&str> = spaced.split_whitespace().collect();
    while words.first().is_some_and(operator) {
        words.remove(0);
    }
    while words.last().is_some_and(operator) {
        words.pop();
    }
    (!words.is_empty()).then(|| words.join(" "))
}

fn request(subject: &Subject, name: &str) -> Request {
    let country = subject.country.as_str().to_lowercase();
    let mut properties = json!({"name": [name], "jurisdiction": [country]});
    if let Some(id) = &subject.id {
        properties["registrationNumber"] = json!([id]);
    }
    if let Some(lei) = &subject.lei {
        properties["leiCode"] = json!([lei]);
    }
    let document = json!({"queries": {"q1": {"schema": "Company", "properties": properties}}});
    Request::post("/match", &document).segment(DATASET).query("algorithm", "best").query("limit", "5")
}

/// Entries that were merged are found under their former ids as well, and the LEI is one.
fn entity_request(subject: &Subject) -> Option<Request> {
    Some(Request::get("/entities").segment(format!("lei-{}", subject.lei.as_deref()?)).query("nested", "false"))
}

fn entity(body: &[u8]) -> Result<Answer, SourceError> {
    let document = reader::parse(body)?;
    let entity = Node::root(&document);
    let properties = entity.require("properties")?;
    let text = |name: &str| properties.get(name).items().find_map(Node::text);
    let hit = Hit { score: 1.0, matched: true, ..entry(entity)? };
    let company = Company {
        name: Some(hit.name.clone()),
        id: text("registrationNumber"),
        country: text("jurisdiction").or_else(|| text("country")).map(|country| country.to_uppercase()),
        lei: text("leiCode"),
        status: text("status"),
        legal_form: text("legalForm"),
        founded: text("incorporationDate"),
        dissolved: text("dissolutionDate"),
        ..Company::default()
    };
    let names = vec![hit.name.clone()];
    // An entry without a topic is there because somebody else is listed.
    let hits = if hit.topics.is_empty() { vec![] } else { vec![hit] };
    let screening = Screening { dataset: DATASET.to_owned(), names, version: None, hits };
    Ok(Facts { companies: vec![company], screening: Some(screening), ..Facts::default() }.into())
}

fn screen<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let subject = session.subject();
        let Some(name) = subject.name.as_deref().and_then(harmless) else {
            let reason = "cannot be asked about a name without letters or digits";
            return Err(CallError::Upstream(SourceError::business(reason)));
        };
        let hits = session.ask(request(subject, &name), |reply| hits(&reply.body)).await?;
        let screening = Screening { dataset: DATASET.to_owned(), names: vec![name], version: None, hits };
        Ok(Facts { screening: Some(screening), ..Facts::default() }.into())
    })
}

/// Reads the response to our one query. Each query has a status of its own inside the 200.
fn hits(body: &[u8]) -> Result<Vec<Hit>, SourceError> {
    let document = reader::parse(body)?;
    let response = Node::root(&document).require("responses")?.require("q1")?;
    match response.get("status").count() {
        Some(200) => {}
        Some(status) => {
            return Err(SourceError::unavailable(format!(
                "could not process the query (status {status} inside a 200)"
            )));
        }
        None => return Err(lacks("status")),
    }
    response.require_list("results")?.into_iter().map(hit).collect()
}

fn hit(result: Node<'_>) -> Result<Hit, SourceError> {
    Ok(Hit {
        score: result.get("score").number().ok_or_else(|| lacks("score"))?,
        matched: result.get("match").flag().ok_or_else(|| lacks("match"))?,
        ..entry(result)?
    })
}

/// What every entry of the lists has, without a judgement of how well it fits.
pub(super) fn entry(entity: Node<'_>) -> Result<Hit, SourceError> {
    let properties = entity.get("properties");
    let caption = entity.get("caption").text().or_else(|| properties.get("name").items().find_map(Node::text));
    Ok(Hit {
        id: entity.require_text("id")?,
        name: caption.ok_or_else(|| lacks("caption"))?,
        schema: entity.get("schema").text(),
        topics: properties.get("topics").texts(),
        datasets: entity.get("datasets").texts(),
        ..Hit::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::corruption::assert_survives_corruption;

    const BODY: &[u8] = br#"{"responses":{"q1":{"status":200,"results":[{"id":"NK-1","caption":"Example Trading","schema":"Company",
        "properties":{"name":["Example Trading"],"topics":["sanction"]},"datasets":["eu_fsf"],"score":0.93,"match":true}],
        "total":{"value":1,"relation":"eq"}}},"limit":5}"#;

    fn parse(body: &[u8]) -> Result<Answer, SourceError> {
        let screening = Screening { hits: hits(body)?, ..Screening::default() };
        Ok(Facts { screening: Some(screening), ..Facts::default() }.into())
    }

    #[test]
    fn hits_are_read_and_none_is_an_answer() {
        let read = hits(BODY).expect("an answer");
        assert!(read[0].matched && read[0].topics == ["sanction"]);
        assert_eq!(hits(br#"{"responses":{"q1":{"status":200,"results":[]}}}"#), Ok(vec![]));
        assert_survives_corruption("opensanctions.match", parse, BODY);
    }

    #[test]
    fn an_entry_without_a_topic_is_no_hit() {
        let listed =
            include_bytes!("../../../simulator/fixtures/opensanctions/entities/NK-simulatedState00000001.json");
        let facts = entity(listed).expect("an entry").facts;
        assert_eq!(facts.companies[0].lei.as_deref(), Some("OW6OFBNCKXC4US5C7523"));
        assert_eq!(facts.screening.map(|screening| screening.hits[0].topics.clone()), Some(vec!["gov.soe".to_owned()]));
        let mentioned =
            br#"{"id":"NK-1","caption":"X","schema":"Company","properties":{"name":["X"]},"datasets":["gleif"]}"#;
        assert!(
            entity(mentioned).expect("an entry").facts.screening.is_some_and(|screening| screening.hits.is_empty())
        );
        assert_eq!(entity(br#"{"id":"NK-1","caption":"X"}"#).expect_err("no properties").class, Class::BadShape);
        assert_survives_corruption("opensanctions.entity", entity, listed);
    }

    #[test]
    fn a_gap_is_never_a_clear_screening() {
        let bodies = [
            &br#"{}"#[..],
            br#"{"responses":{}}"#,
            br#"{"responses":{"q1":{"status":200}}}"#,
            br#"{"responses":{"q1":{"results":[]}}}"#,
            br#"{"responses":{"q1":{"status":200,"results":[7]}}}"#,
            br#"{"responses":{"q1":{"status":500,"results":[]}}}"#,
        ];
        for body in bodies {
            assert!(hits(body).is_err(), "{}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn names_are_made_harmless_without_losing_their_words() {
        let cases = [
            ("NOVO NORDISK A/S", Some("NOVO NORDISK A S")),
            ("\"Quoted\" GmbH +", Some("Quoted GmbH")),
            ("OR Tambo AND", Some("Tambo")),
            ("Marks AND Spencer", Some("Marks AND Spencer")),
            ("C++ (Holding) [x]:y", Some("C Holding x y")),
            ("AND OR", None),
            ("+/-", None),
        ];
        for (name, asked) in cases {
            assert_eq!(harmless(name).as_deref(), asked, "{name}");
        }
    }
}
