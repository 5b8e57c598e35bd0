//! Kills workers at random points, many times. Every investigation still ends with a report, and nothing is charged twice.

use std::{collections::hash_map::RandomState, hash::BuildHasher, time::Duration};

use tokio::time::sleep;

use crate::fixture::Fixture;

const KILLS: u64 = 20;

/// A worker lives at most this long: less than it takes to start, and enough for a whole investigation.
const LIFE_MS: u64 = 1_500;

#[tokio::test(flavor = "multi_thread")]
async fn every_investigation_survives_twenty_kills() {
    let fixture = Fixture::start("defaults: { fail_max: 1000, timeout: 5s }", None).await;
    let chance = RandomState::new();
    let mut investigations = Vec::new();
    for kill in 0..KILLS {
        investigations.push(fixture.investigate().await);
        let worker = fixture.begin(&[]).await;
        sleep(Duration::from_millis(chance.hash_one(kill) % LIFE_MS)).await;
        worker.kill().await;
    }
    let last = fixture.worker(&[]).await;
    let reports = futures::future::join_all(investigations.iter().map(|each| each.report())).await;
    let questions = reports[0].as_ref().map(|report| report.findings.len());
    for (report, investigation) in reports.iter().zip(&investigations) {
        let report = report.as_ref().unwrap_or_else(|error| panic!("{}: {error}", investigation.id()));
        assert_eq!(Ok(report.findings.len()), questions, "{} has lost findings", investigation.id());
    }
    // Each investigation asks each of these once, and a killed worker may already have been charged.
    for (source, billed) in
        [("tavily", "search"), ("brightdata_enrichment", "trigger"), ("brightdata_person", "trigger")]
    {
        let calls = fixture.stack.simulator.calls(source).unwrap();
        let charged = calls.operations.get(billed).copied().unwrap_or_default();
        assert!(charged <= KILLS, "{source} was charged {charged} times for {KILLS} questions");
    }
    drop(last);
    fixture.stop().await;
}
