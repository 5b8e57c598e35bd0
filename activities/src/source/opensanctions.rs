//! OpenSanctions: sanctions, politically exposed persons and debarments, by the match API.
//!
//! Names go into a Lucene query on the other side, where `A/S` is a syntax error that comes back as 400 or 500. So names are
//! made harmless first, and the finding says which names were really asked about: a name that was not screened is not a
//! name that was screened and found clear.

use circuit_registry::CallError;
use serde_json::{Map, Value, json};

use super::{
    opensanctions_feed,
    watch_list::{self, entry},
};
use crate::{
    model::{Company, Facts, Hit, Party, PartyKind, Role, Screened, Screening, Subject},
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
            answers: "watch-list entries that resemble the company, its people, owners and parents",
            countries: Countries::Any,
            needs: &[Need::Name, Need::Persons],
            screens: true,
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

/// The most queries of one request.
const BATCH: usize = 100;

/// Entries for each party, best first.
const HITS: u64 = 20;

fn query(party: &Party, name: &str) -> Value {
    let schema = match party.kind {
        PartyKind::Company => "Company",
        PartyKind::Person => "Person",
        PartyKind::Either => "LegalEntity",
    };
    let mut properties = json!({"name": [name]});
    let mut add = |property: &str, value: Option<String>| {
        if let Some(value) = value {
            properties[property] = json!([value]);
        }
    };
    if party.kind == PartyKind::Person {
        add("birthDate", party.birth_year.map(|year| year.to_string()));
    } else {
        add("jurisdiction", party.country.as_ref().map(|country| country.to_lowercase()));
        add("registrationNumber", party.id.clone());
        add("leiCode", party.lei.clone());
    }
    json!({"schema": schema, "properties": properties})
}

fn request(batch: &[Asked]) -> Request {
    let query = |(n, asked): (usize, &Asked)| (key(n), query(&asked.party, &asked.name));
    let queries: Map<String, Value> = batch.iter().enumerate().map(query).collect();
    let request = Request::post("/match", &json!({"queries": queries})).segment(DATASET);
    request.query("algorithm", "best").query("limit", HITS.to_string())
}

fn key(n: usize) -> String {
    format!("q{}", n + 1)
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
    let why = vec!["the LEI is that of the entry".to_owned()];
    let hit = Hit { score: 1.0, matched: true, role: Some(Role::Subject), why, ..entry(entity)? };
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
    let screening = Screening { dataset: DATASET.to_owned(), names, hits, ..Screening::default() };
    Ok(Facts { companies: vec![company], screening: Some(screening), ..Facts::default() }.into())
}

/// A party and its name as it is sent.
#[derive(Debug, Clone)]
struct Asked {
    /// Its place among the parties.
    place: usize,
    party: Party,
    name: String,
}

fn screen<'a>(session: &'a Session<'_>) -> BoxFuture<'a, Result<Answer, CallError<SourceError>>> {
    Box::pin(async move {
        let (mut parties, asked) = asked(session.subject());
        let (mut hits, mut notes, mut answered) = (Vec::new(), Vec::new(), false);
        let mut batches: Vec<&[Asked]> = asked.chunks(BATCH).rev().collect();
        while let Some(batch) = batches.pop() {
            let results = match session.ask(request(batch), |reply| responses(&reply.body, batch.len())).await {
                Ok(results) => results,
                // One name that the list does not accept voids the whole batch.
                Err(CallError::Upstream(error)) if error.class == Class::Business && batch.len() > 1 => {
                    let (first, second) = batch.split_at(batch.len() / 2);
                    batches.extend([second, first]);
                    continue;
                }
                Err(CallError::Upstream(error)) if asked.len() > 1 && (answered || error.class == Class::Business) => {
                    vec![Err(error); batch.len()]
                }
                Err(error) => return Err(error),
            };
            for (asked, result) in batch.iter().zip(results) {
                match result {
                    Ok(response) => {
                        answered = true;
                        notes.extend(response.cut.then(|| note(&asked.party)));
                        hits.extend(response.hits.into_iter().map(|hit| of(hit, &asked.party)));
                    }
                    Err(error) => parties[asked.place].not_screened = Some(error.reason),
                }
            }
        }
        let mut answer = watch_list::answer(DATASET.to_owned(), None, parties, hits).map_err(CallError::Upstream)?;
        notes.dedup();
        answer.facts.notes = notes;
        Ok(answer)
    })
}

/// Everybody to be screened, and those of them whom the list can be asked about.
fn asked(subject: &Subject) -> (Vec<Screened>, Vec<Asked>) {
    let (mut parties, mut asked) = (Vec::new(), Vec::new());
    for (place, (party, name)) in watch_list::parties(subject).into_iter().enumerate() {
        let nothing = || "nothing of the name can be sent".to_owned();
        let harmless = name.and_then(|_| harmless(&party.name).ok_or_else(nothing));
        let not_screened = harmless.as_ref().err().cloned();
        asked.extend(harmless.ok().map(|name| Asked { place, party: party.clone(), name }));
        parties.push(Screened { party, not_screened });
    }
    (parties, asked)
}

fn of(hit: Hit, party: &Party) -> Hit {
    let why = vec!["the score is that of the list".to_owned()];
    Hit { party: Some(party.name.clone()), role: Some(party.role), why, ..hit }
}

fn note(party: &Party) -> String {
    format!("more entries resemble one of the names ({}) than the {HITS} that are shown", party.role.singular())
}

/// The answer to one query.
#[derive(Debug, Clone, PartialEq)]
struct Response {
    hits: Vec<Hit>,
    /// There are more matches than the list has sent.
    cut: bool,
}

/// Reads the responses to our queries. Each has a status of its own inside the 200.
///
/// # Errors
/// If not one of them can be read.
fn responses(body: &[u8], queries: usize) -> Result<Vec<Result<Response, SourceError>>, SourceError> {
    let document = reader::parse(body)?;
    let responses = Node::root(&document).require("responses")?;
    let of_query = |n: usize| responses.members().find(|(name, _)| *name == key(n)).map(|(_, response)| response);
    let read = (0..queries).map(|n| of_query(n).ok_or_else(|| lacks("response")).and_then(response));
    let read: Vec<_> = read.collect();
    match read.iter().find_map(|result| result.as_ref().err()) {
        Some(error) if read.iter().all(Result::is_err) => Err(error.clone()),
        _ => Ok(read),
    }
}

fn response(response: Node<'_>) -> Result<Response, SourceError> {
    match response.get("status").count() {
        Some(200) => {}
        Some(status) => {
            return Err(SourceError::unavailable(format!(
                "could not process the query (status {status} inside a 200)"
            )));
        }
        None => return Err(lacks("status")),
    }
    let hits: Vec<Hit> = response.require_list("results")?.into_iter().map(hit).collect::<Result<_, _>>()?;
    let total = response.at("total.value").count().unwrap_or_default();
    let cut = total > hits.len() as u64 && hits.last().is_some_and(|hit| hit.matched);
    Ok(Response { hits, cut })
}

fn hit(result: Node<'_>) -> Result<Hit, SourceError> {
    Ok(Hit {
        score: result.get("score").number().ok_or_else(|| lacks("score"))?,
        matched: result.get("match").flag().ok_or_else(|| lacks("match"))?,
        ..entry(result)?
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
        let read = responses(body, 1)?.remove(0)?;
        let screening = Screening { hits: read.hits, ..Screening::default() };
        Ok(Facts { screening: Some(screening), ..Facts::default() }.into())
    }

    #[test]
    fn hits_are_read_and_none_is_an_answer() {
        let read = responses(BODY, 1).expect("an answer").remove(0).expect("a response");
        assert!(read.hits[0].matched && read.hits[0].topics == ["sanction"] && !read.cut);
        let none = responses(br#"{"responses":{"q1":{"status":200,"results":[]}}}"#, 1).expect("an answer");
        assert_eq!(none, [Ok(Response { hits: vec![], cut: false })]);
        let more = String::from_utf8_lossy(BODY).replace("\"value\":1", "\"value\":2");
        assert!(responses(more.as_bytes(), 1).expect("an answer")[0].as_ref().is_ok_and(|response| response.cut));
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
            assert!(responses(body, 1).is_err(), "{}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn a_query_without_a_response_leaves_its_party_unscreened() {
        let body = br#"{"responses":{"q1":{"status":200,"results":[]},"q2":{"status":500},"q4":null}}"#;
        let read = responses(body, 4).expect("one of them is answered");
        assert_eq!(read.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, false, false]);
    }

    #[test]
    fn each_party_is_asked_as_what_it_is() {
        let subject = Subject {
            name: Some("Jean Exemple".into()),
            persons: vec!["Jane Example".into()],
            parties: vec![
                Party { birth_year: Some(1961), ..Party::named("Ola Eksempel", Role::Officer) },
                Party::named("Owner Ltd", Role::Owner),
                Party::named("+", Role::Owner),
            ],
            ..Subject::new("FR".parse().expect("FR"))
        };
        let (parties, asked) = asked(&subject);
        let schemata: Vec<_> = asked.iter().map(|asked| query(&asked.party, &asked.name)["schema"].clone()).collect();
        assert_eq!(schemata, ["LegalEntity", "Person", "LegalEntity", "Company"]);
        assert_eq!(parties.iter().filter(|party| party.not_screened.is_some()).count(), 1);
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
