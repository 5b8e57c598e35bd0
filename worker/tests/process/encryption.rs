//! With a key, the server can read neither the subject of an investigation nor the text of a failure.

use std::collections::BTreeSet;

use base64::{Engine, prelude::BASE64_STANDARD};
use osint_activities::model::Subject;
use osint_worker::{run::TASK_QUEUE, temporal::starter::Investigation};
use serde_json::Value;

use crate::fixture::{Fixture, equinor, osint, printed};

/// What must not be readable.
const SUBJECT: [&str; 4] = ["Equinor", "923609016", "Forusbeen", "Eksempel"];

fn key(id: &str, byte: u8) -> String {
    format!("{id}:{}", BASE64_STANDARD.encode([byte; 32]))
}

/// Every text of a document, as it stands and with its Base64 undone.
fn texts(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            into.extend(BASE64_STANDARD.decode(text).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
            into.push(text.clone());
        }
        Value::Array(values) => values.iter().for_each(|value| texts(value, into)),
        Value::Object(values) => values.iter().for_each(|(name, value)| {
            into.push(name.clone());
            texts(value, into);
        }),
        _ => {}
    }
}

/// The messages of failures.
fn messages(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| messages(value, into)),
        Value::Object(values) => {
            let failure = values.keys().any(|name| name.ends_with("FailureInfo"));
            into.extend(values.get("message").and_then(Value::as_str).filter(|_| failure).map(str::to_owned));
            values.values().for_each(|value| messages(value, into));
        }
        _ => {}
    }
}

/// The history of an investigation as `osint history export` writes it.
async fn history(fixture: &Fixture, id: &str) -> Value {
    let output = osint(&fixture.variables).args(["history", "export", id]).output().await.unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", printed(&output)))
}

/// A source that fails, and a subject that cannot be right: two kinds of failures whose texts say something.
async fn histories(fixture: &Fixture) -> (Vec<String>, BTreeSet<String>) {
    fixture.stack.simulator.set_fault("nominatim", "500").await.unwrap();
    let worker = fixture.worker(&[]).await;
    let investigation = fixture.investigate().await;
    let report = investigation.report().await.unwrap();
    assert_eq!(report.subject.name.as_deref(), Some("Equinor ASA"));
    let wrong = Subject { id: Some("923609017".to_owned()), ..equinor() };
    let refused = Investigation::start(&fixture.client, TASK_QUEUE, wrong).await.unwrap();
    let refusal = refused.report().await.expect_err("the number cannot be right").to_string();
    assert!(refusal.contains("checksum"), "the text of the failure did not arrive: {refusal}");

    let (mut all, mut failures) = (Vec::new(), BTreeSet::new());
    for id in [investigation.id(), refused.id()] {
        let history = history(fixture, id).await;
        texts(&history, &mut all);
        messages(&history, &mut failures);
        all.push(id.to_owned());
    }
    drop(worker);
    (all, failures)
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_key_the_server_reads_no_subject_and_no_failure() {
    let breakers = "defaults: { fail_max: 1000, timeout: 20s }";
    let open = Fixture::start(breakers, None).await;
    let (readable, failures) = histories(&open).await;
    open.stop().await;
    let found = |texts: &[String], word: &str| texts.iter().any(|text| text.contains(word));
    for word in SUBJECT {
        assert!(found(&readable, word), "without a key {word} is not found: does the search still work?");
    }
    assert!(failures.iter().any(|text| text.contains("nominatim") || text.contains("checksum")), "{failures:?}");

    let sealed = Fixture::start(breakers, Some(&key("2026-01", 1))).await;
    let (unreadable, sealed_failures) = histories(&sealed).await;
    for word in SUBJECT {
        assert!(!found(&unreadable, word), "{word} can be read on the server");
    }
    let sealed_id = unreadable.last().expect("ids are last").clone();
    assert_eq!(sealed_failures, BTreeSet::from(["Encoded failure".to_owned()]));
    for text in failures.iter().filter(|text| text.as_str() != "Activity task failed") {
        assert!(!found(&unreadable, text), "'{text}' can be read on the server");
    }

    // A holder of the key can read a history with --decrypt.
    let line = ["history", "export", "--decrypt", sealed_id.as_str()];
    let output = osint(&sealed.variables).args(line).output().await.unwrap();
    let mut decrypted = Vec::new();
    texts(&serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", printed(&output))), &mut decrypted);
    assert!(found(&decrypted, SUBJECT[0]), "{decrypted:?}");

    // The command line uses the same keys, old ones included, and names a missing one.
    let (old, new) = (key("2026-01", 1), key("2026-02", 2));
    let rotated = [("OSINT_CODEC_KEY", format!("{new},{old}"))];
    let worker = sealed.worker(&rotated.each_ref().map(|(name, value)| (*name, value.as_str()))).await;
    let line = ["investigate", "--country", "NO", "--id", "923609016", "--json"];
    let output = osint(&sealed.variables).args(line).envs(rotated.clone()).output().await.unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", printed(&output)));
    assert_eq!(report["subject"]["id"], "923609016");
    let lacking = osint(&sealed.variables).args(line).output().await.unwrap();
    assert_eq!(lacking.status.code(), Some(1), "{}", printed(&lacking));
    assert!(printed(&lacking).contains("encrypted with key '2026-02'"), "{}", printed(&lacking));
    drop(worker);
    sealed.stop().await;
}
