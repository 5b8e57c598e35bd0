use std::sync::{Arc, Mutex};

use circuit_registry::CallError;

use super::*;
use crate::{
    classify::Trouble,
    model::Status,
    parse::torture::{Harm, harmed, objection},
    simulator::Simulator,
};

/// What healthy upstreams say on one way.
struct Recording {
    way: Way,
    ask: Ask,
    answer: Answer,
    replies: Vec<Reply>,
}

/// Goes every way once, with the simulator at its end. A way without requests has nothing to record.
async fn record() -> Vec<Recording> {
    let simulator = Simulator::start(([127, 0, 0, 1], 0).into()).await.expect("a simulator");
    let known = [simulator.env(), simulator.credentials()].concat();
    let settings = Settings::read(|name| known.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()));
    let replies = Arc::new(Mutex::new(Vec::new()));
    let client = Client::new(settings.expect("settings")).expect("a client");
    let stage = Stage::new().expect("a stage");
    let mut recordings = Vec::new();
    for way in ways() {
        let asks = stage.asked_about(&way).await;
        let mut best: Option<Recording> = None;
        for ask in &asks {
            replies.lock().expect("no panic").clear();
            let client = client.clone().recorded(replies.clone());
            if let Ok(answer) = follow(&stage.registry, &client, &way, ask).await {
                let replies = replies.lock().expect("no panic").clone();
                let rank =
                    |answer: &Answer| answer.facts.companies.len() + usize::from(answer.status == Status::Complete);
                if best.as_ref().is_none_or(|best| rank(&best.answer) < rank(&answer)) {
                    best = Some(Recording { way, ask: ask.clone(), answer, replies });
                }
            }
        }
        assert!(best.is_some() || asks.is_empty(), "{}: no company of the list has an answer", way.name());
        recordings.extend(best);
    }
    recordings
}

/// Bytes of an answer that are spoilt. The tests of the parsers spoil every one.
const PLACES: usize = 200;

fn trouble(stop: CallError<Trouble>) -> Trouble {
    match stop {
        CallError::Upstream(trouble) => trouble,
        other => panic!("no breaker refuses on this stage: {other}"),
    }
}

#[tokio::test]
async fn every_way_survives_whatever_is_answered() {
    let stage = Stage::new().expect("a stage");
    let mut objections = Vec::new();
    for Recording { way, ask, answer, replies } in record().await {
        let name = way.name();
        let again = stage.play(&way, &ask, replies.clone()).await.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(again.facts, answer.facts, "{name}: the same answers, and another finding");
        for (at, reply) in replies.iter().enumerate() {
            for (harm, body) in harmed(&reply.body, PLACES) {
                // An answer that is none by its status has nothing to lose.
                let harm = if (200..300).contains(&reply.status) { harm } else { Harm::Emptied };
                let mut spoilt = replies.clone();
                spoilt[at].body.clone_from(&body);
                let read = stage.play(&way, &ask, spoilt).await.map_err(trouble);
                if let Some(objection) = objection(&answer, harm, &read) {
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
async fn every_way_is_gone() {
    let stage = Stage::new().expect("a stage");
    let mut silent = Vec::new();
    for way in ways() {
        if stage.asked_about(&way).await.is_empty() {
            silent.push(way.name());
        }
    }
    // Closed to the public, and a copy that was made before.
    assert_eq!(silent, ["cz_ubo.owners by cz_ubo", "eba_register.licence by last_good_copy"]);
}
