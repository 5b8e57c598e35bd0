use std::sync::{Arc, Mutex};

use circuit_registry::CallError;
use osint_simulator::Simulator;

use super::*;
use crate::{
    model::Status,
    parse::corruption::{Corruption, corrupted, objection},
    spec::SourceError,
};

/// What healthy upstreams say on one route.
struct Recording {
    route: Route,
    query: Query,
    answer: Answer,
    replies: Vec<Reply>,
}

/// Goes every route once, with the simulator at its end. A route without requests has nothing to record.
async fn record() -> Vec<Recording> {
    let simulator = Simulator::start(([127, 0, 0, 1], 0).into()).await.expect("a simulator");
    let known = [simulator.env(), simulator.credentials()].concat();
    let settings = Settings::read(|name| known.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()));
    let replies = Arc::new(Mutex::new(Vec::new()));
    let client = Client::with_names(settings.expect("settings"), Names::none()).expect("a client");
    let harness = Harness::new().expect("a harness");
    let mut recordings = Vec::new();
    for route in routes() {
        let queries = harness.asked_about(&route).await;
        let mut best: Option<Recording> = None;
        for query in &queries {
            replies.lock().expect("no panic").clear();
            let client = client.clone().recorded(replies.clone());
            if let Ok(answer) = follow(&harness.registry, &client, &route, query).await {
                let replies = replies.lock().expect("no panic").clone();
                let rank =
                    |answer: &Answer| answer.facts.companies.len() + usize::from(answer.status == Status::Complete);
                if best.as_ref().is_none_or(|best| rank(&best.answer) < rank(&answer)) {
                    best = Some(Recording { route, query: query.clone(), answer, replies });
                }
            }
        }
        assert!(best.is_some() || queries.is_empty(), "{}: no company of the list has an answer", route.name());
        recordings.extend(best);
    }
    recordings
}

/// Bytes of an answer that are spoilt. The tests of the parsers spoil every one.
const PLACES: usize = 60;

fn source_error(stop: CallError<SourceError>) -> SourceError {
    match stop {
        CallError::Upstream(error) => error,
        other => panic!("no breaker refuses on this harness: {other}"),
    }
}

#[tokio::test]
async fn every_way_survives_whatever_is_answered() {
    let harness = Harness::new().expect("a harness");
    let mut objections = Vec::new();
    for Recording { route, query, answer, replies } in record().await {
        let name = route.name();
        let again = harness.run(&route, &query, replies.clone()).await.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(again.facts, answer.facts, "{name}: the same answers, and another finding");
        for (at, reply) in replies.iter().enumerate() {
            for (corruption, body) in corrupted(&reply.body, PLACES) {
                // An answer that is none by its status has nothing to lose.
                let corruption = if (200..300).contains(&reply.status) { corruption } else { Corruption::Emptied };
                let mut spoilt = replies.clone();
                spoilt[at].body.clone_from(&body);
                let read = harness.run(&route, &query, spoilt).await.map_err(source_error);
                if let Some(objection) = objection(&answer, corruption, &read) {
                    objections.push(format!(
                        "{name}, answer {at}: {objection}, read from {}",
                        String::from_utf8_lossy(&body)
                    ));
                }
            }
        }
    }
    assert!(objections.is_empty(), "{} in all, such as\n{}", objections.len(), objections.join("\n"));
}

#[tokio::test]
async fn every_route_survives_corruption() {
    let harness = Harness::new().expect("a harness");
    let mut silent = Vec::new();
    for route in routes() {
        // A copy that was made before is no route to anybody.
        if route.by != "last_good_copy" && harness.asked_about(&route).await.is_empty() {
            silent.push(route.name());
        }
    }
    assert_eq!(silent, ["cz_ubo.owners by cz_ubo"], "which is closed to the public");
}

/// Writes what healthy upstreams say where the fuzzer begins: `cargo test -p osint-activities seeds -- --ignored`.
#[tokio::test]
#[ignore = "writes files; for when sources have been added"]
async fn seeds() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for Recording { route, replies, .. } in record().await {
        let bodies: Vec<_> = replies.iter().map(|reply| reply.body.as_slice()).collect();
        let text = bodies.join(&0x1e);
        // The simulator listens on another port each time.
        let text = String::from_utf8(text).map_or_else(|other| other.into_bytes(), |text| ported(&text).into_bytes());
        let is_soap = text.windows(8).any(|window| window == b"Envelope");
        let family = match text.trim_ascii_start().first() {
            Some(b'{' | b'[') => "json",
            Some(b'<') if is_soap => "soap",
            Some(b'<') => "html",
            _ => continue,
        };
        let name = route.name().replace(" by ", "-");
        std::fs::create_dir_all(corpus.join(family)).expect("a folder");
        std::fs::write(corpus.join(family).join(name), text).expect("a seed");
    }
}

/// The text with the same port at each address of this machine.
fn ported(text: &str) -> String {
    let mut parts = text.split("127.0.0.1:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "127.0.0.1:1" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}
