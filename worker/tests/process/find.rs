//! Investigations that are found, followed, ended and asked again, by the command as a user types it.

use std::time::Duration;

use osint_tests::wait::eventually;
use serde_json::Value;
use tokio::time::Instant;

use crate::fixture::{Fixture, osint, printed};

const BREAKERS: &str = "defaults: { fail_max: 50, reset_timeout: 1s, timeout: 50s }";

/// Runs the command. Returns its exit code, its standard output and all that it printed.
async fn run(fixture: &Fixture, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = osint(&fixture.variables).args(arguments).output().await.unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), printed(&output))
}

async fn json(fixture: &Fixture, arguments: &[&str]) -> Value {
    let (code, out, all) = run(fixture, arguments).await;
    assert_eq!(code, Some(0), "{arguments:?}: {all}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {all}"))
}

const INVESTIGATE: [&str; 7] = ["investigate", "--country", "NO", "--id", "923609016", "--name", "Equinor ASA"];

#[tokio::test(flavor = "multi_thread")]
async fn an_investigation_is_found_and_asked_again_for_what_was_missing() {
    let fixture = Fixture::start(BREAKERS, None).await;
    let worker = fixture.worker(&[]).await;
    let (code, _, text) = run(&fixture, &["setup"]).await;
    assert!(code == Some(0) && text.contains("OsintVerdict"), "{text}");
    fixture.stack.simulator.set_fault("tavily", "down").await.unwrap();
    let first = eventually("the server knows its new attributes", async || {
        let report = json(&fixture, &[&INVESTIGATE[..], &["--json"]].concat()).await;
        let found = json(&fixture, &["list", "--degraded-by", "tavily", "--verdict", "partial", "--json"]).await;
        let id = report["investigation_id"].clone();
        found.as_array().unwrap().iter().any(|row| row["id"] == id).then_some(report)
    })
    .await;
    let id = first["investigation_id"].as_str().unwrap();
    assert_eq!(first["verdict"]["word"], "partial");
    let none = json(&fixture, &["list", "--degraded-by", "gleif", "--json"]).await;
    assert_eq!(none.as_array().map(Vec::len), Some(0));
    let (_, list, _) = run(&fixture, &["list"]).await;
    assert!(list.contains(id) && list.contains("NO 923609016 Equinor ASA") && list.contains("tavily"), "{list}");

    let (code, _, text) = run(&fixture, &["report", id, "--fail-on", "gap"]).await;
    assert!(code == Some(3) && text.contains("tavily.adverse_media"), "{text}");
    let (code, _, text) = run(&fixture, &["report", id, "--fail-on", "gap,hit"]).await;
    assert!(code == Some(4), "the company is on a list of state-owned companies: {text}");

    fixture.stack.simulator.clear("tavily").await.unwrap();
    fixture.stack.simulator.forget_calls();
    let again = json(&fixture, &["investigate", "--again", id, "--json"]).await;
    let asked: Vec<&str> = ["tavily", "gleif", "no_brreg", "opensanctions", "northdata"]
        .into_iter()
        .filter(|source| fixture.calls(source) > 0)
        .collect();
    assert_eq!(asked, ["tavily"]);
    assert!(again["coverage"]["gaps"].as_array().is_some_and(Vec::is_empty), "{}", again["coverage"]);
    let after = again["investigation_id"].as_str().unwrap();
    let (code, text, _) = run(&fixture, &["report", "--diff", id, after]).await;
    assert!(code == Some(0) && text.contains("tavily.adverse_media") && text.contains("degraded"), "{text}");
    drop(worker);
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_investigation_under_way_is_shown_followed_and_cancelled() {
    let fixture = Fixture::start(BREAKERS, None).await;
    let worker = fixture.worker(&[]).await;
    fixture.stack.simulator.set_fault("nominatim", "slow:40s").await.unwrap();
    let investigation = fixture.investigate().await;
    let id = investigation.id();
    eventually("the slow question is under way", async || (fixture.calls("nominatim") > 0).then_some(())).await;
    let (code, _, text) = run(&fixture, &["report", id]).await;
    assert!(code == Some(2) && text.contains(&format!("osint follow {id}")), "{text}");
    let so_far = eventually("the fast answers are there", async || {
        let report = json(&fixture, &["show", id, "--json"]).await;
        report["findings"].as_array().unwrap().iter().any(|it| it["status"] == "complete").then_some(report)
    })
    .await;
    let slow = so_far["findings"].as_array().unwrap().iter().find(|it| it["source"] == "nominatim").unwrap().clone();
    assert_eq!(slow["status"], "pending");

    let (code, _, text) = run(&fixture, &["cancel", id]).await;
    assert!(code == Some(0) && text.contains("is cancelled"), "{text}");
    let kept = json(&fixture, &["report", id, "--json"]).await;
    let cut = kept["findings"].as_array().unwrap().iter().find(|it| it["source"] == "nominatim").unwrap().clone();
    assert_eq!((cut["status"].as_str(), cut["reason"].as_str()), (Some("degraded"), Some("cancelled")));
    let (code, _, text) = run(&fixture, &["cancel", id]).await;
    assert!(code == Some(2) && text.contains("already"), "{text}");
    let (code, _, text) = run(&fixture, &["follow", "investigation-0"]).await;
    assert!(code == Some(2) && text.contains("no investigation 'investigation-0'"), "{text}");
    worker.kill().await;
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_of_a_minute_ago_is_missed_within_seconds() {
    let fixture = Fixture::start(BREAKERS, None).await;
    fixture.worker(&[]).await.kill().await;
    let began = Instant::now();
    let (code, _, text) = run(&fixture, &INVESTIGATE).await;
    assert!(code == Some(1) && text.contains("no worker takes tasks from the queue 'osint'"), "{text}");
    assert!(text.contains("osint follow investigation-") && text.contains("--force"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let id = text.split_whitespace().find(|word| word.starts_with("investigation-")).unwrap();
    let (code, _, text) = run(&fixture, &["cancel", id, "--force"]).await;
    assert_eq!(code, Some(0), "{text}");
    fixture.stop().await;
}
