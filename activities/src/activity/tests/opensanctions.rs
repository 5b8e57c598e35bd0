//! Watch lists: the API, and the feed that is left when it fails.

use super::*;
use crate::editions::Edition;

const FILE: &str = "opensanctions_feed";

fn example() -> Subject {
    subject("NL", "99999999", "Example Trading BV")
}

async fn later(bench: &Bench) {
    bench.activities.editions.slot(FILE).await.forget_check();
}

fn hits(finding: &Finding) -> usize {
    finding.data.as_ref().and_then(|facts| facts.screening.as_ref()).map_or(0, |screening| screening.hits.len())
}

fn fetched(bench: &Bench) -> [u64; 2] {
    let calls = bench.simulator.calls("opensanctions_feed").expect("calls").operations;
    ["file", "delta"].map(|operation| calls.get(operation).copied().unwrap_or_default())
}

#[tokio::test]
async fn the_last_good_feed_is_the_fallback_and_says_its_age() {
    let bench = Bench::new().await;
    let healthy = bench.run("opensanctions_feed.screen", &example()).await.expect("a screening");
    assert_eq!((healthy.status, hits(&healthy)), (Status::Complete, 1));
    bench.fault("opensanctions", "500").await;
    bench.fault("opensanctions_feed", "refused").await;
    for _ in 0..4 {
        let cached = bench.run("opensanctions.match", &example()).await.expect("the feed");
        assert_eq!((cached.status, cached.via.as_deref()), (Status::Cached, Some("opensanctions_feed")));
        assert!(hits(&cached) == 1 && cached.as_of == healthy.as_of);
        assert!(cached.reason.is_some_and(|reason| reason.contains("hours old") && reason.contains("version 2026")));
    }
    assert_eq!(bench.state("opensanctions"), State::Open);
    let clear = bench.run("opensanctions.match", &equinor()).await.expect("the feed");
    assert!(clear.data.and_then(|facts| facts.screening).is_some(), "screened, by the copy");
}

#[tokio::test]
async fn the_fallback_fetches_a_copy_or_there_is_no_screening() {
    let bench = Bench::new().await;
    bench.fault("opensanctions", "500").await;
    bench.fault("opensanctions_feed", "checksum_mismatch").await;
    let failed = bench.run("opensanctions.match", &example()).await.expect_err("no answer");
    assert_eq!(failed.details.service, "opensanctions");
    bench.simulator.clear("opensanctions_feed").await.expect("healthy again");
    let cached = bench.run("opensanctions.match", &example()).await.expect("the feed");
    assert_eq!((cached.status, hits(&cached)), (Status::Cached, 1));
}

#[tokio::test]
async fn an_edition_is_fetched_once_and_changes_do_for_the_next() {
    let bench = Bench::new().await;
    for _ in 0..2 {
        bench.run("opensanctions_feed.screen", &example()).await.expect("a screening");
        later(&bench).await;
    }
    assert_eq!(fetched(&bench), [1, 0]);
    let statuses = bench.simulator.calls("opensanctions_feed").expect("calls").statuses;
    assert_eq!(statuses.get(&304), Some(&1), "asked for news, not for the same again");
    // A copy from which no changes lead to the newest edition is of no further use.
    let mut slot = bench.activities.editions.slot(FILE).await;
    let old = Edition { version: "20200101000000-old".into(), ..slot.edition().cloned().expect("a copy") };
    slot.replace(old, jiff::Timestamp::UNIX_EPOCH).await;
    drop(slot);
    bench.run("opensanctions_feed.screen", &example()).await.expect("a screening");
    assert_eq!(fetched(&bench), [2, 0]);
}

#[tokio::test]
async fn a_file_that_does_not_match_leaves_the_copy_as_it_was() {
    let bench = Bench::new().await;
    bench.run("opensanctions_feed.screen", &example()).await.expect("a screening");
    let mut slot = bench.activities.editions.slot(FILE).await;
    let old = Edition { version: "20200101000000-old".into(), ..slot.edition().cloned().expect("a copy") };
    slot.replace(old.clone(), jiff::Timestamp::UNIX_EPOCH).await;
    drop(slot);
    bench.fault("opensanctions_feed", "checksum_mismatch").await;
    let cached = bench.run("opensanctions_feed.screen", &example()).await.expect("the copy");
    assert_eq!((cached.status, cached.via.as_deref(), hits(&cached)), (Status::Cached, Some("last_good_copy"), 1));
    assert!(cached.reason.is_some_and(|reason| reason.contains("checksum") && reason.contains("hours old")));
    assert_eq!(bench.activities.editions.slot(FILE).await.edition(), Some(&old));
}

#[tokio::test]
async fn an_entry_is_found_under_an_id_that_was_merged() {
    let bench = Bench::new().await;
    let finding = bench.run("opensanctions.entity", &with_lei()).await.expect("an entry");
    assert_eq!((finding.status, hits(&finding)), (Status::Complete, 1));
    let unknown = Subject { lei: Some("213800LH1BZH3DI6G760".into()), ..subject("GB", "", "BP") };
    assert_eq!(bench.run("opensanctions.entity", &unknown).await.expect("an answer").status, Status::NotFound);
}
