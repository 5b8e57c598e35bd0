//! A register that is published as one file: what is believed, and what answers when nothing new can be.

use super::*;
use crate::editions::Edition;

const FILE: &str = "eba_register.zip";

fn alza() -> Subject {
    subject("CZ", "27082440", "Alza.cz a.s.")
}

/// As if hours had gone by.
async fn later(bench: &Bench) {
    bench.activities.editions.slot(FILE).await.forget_check();
}

async fn ask(bench: &Bench) -> Finding {
    bench.run("eba_register.licence", &alza()).await.unwrap_or_else(|failed| panic!("{:?}", failed.details))
}

#[tokio::test]
async fn an_edition_is_fetched_once_and_asked_about_now_and_then() {
    let bench = Bench::new().await;
    let finding = ask(&bench).await;
    let date = finding.as_of.map(|at| at.to_string());
    assert_eq!((finding.status, date.as_deref()), (Status::Complete, Some("2026-11-29T00:00:00Z")));
    let unlisted = bench.run("eba_register.licence", &equinor()).await.expect("an answer");
    assert!(unlisted.status == Status::NotFound && unlisted.reason.is_some_and(|reason| reason.contains("2026-11-29")));
    later(&bench).await;
    ask(&bench).await;
    let calls = bench.simulator.calls("eba_register").expect("calls");
    assert_eq!((calls.operations.get("metadata"), calls.operations.get("download")), (Some(&2), Some(&1)));
    assert_eq!(calls.statuses.get(&304), Some(&1), "asked for news, not for the same again");
}

#[tokio::test]
async fn the_last_good_copy_answers_when_a_newer_one_is_corrupt() {
    let bench = Bench::new().await;
    let good = ask(&bench).await;
    for fault in ["sha256_mismatch", "500", "hangup", "200_html_maintenance"] {
        later(&bench).await;
        bench.fault("eba_register", fault).await;
        let cached = ask(&bench).await;
        assert_eq!((cached.status, cached.via.as_deref()), (Status::Cached, Some("last_good_copy")), "{fault}");
        assert!(cached.data == good.data && cached.as_of == good.as_of, "{fault}");
        assert!(cached.reason.is_some_and(|reason| reason.contains("as of 2026-11-29")), "{fault}");
    }
    assert_eq!(bench.state("eba_register"), State::Open, "each of them was a failure all the same");
    let cached = bench.run("eba_register.licence", &equinor()).await.expect("an answer of the copy");
    assert_eq!(cached.status, Status::Cached);
    assert!(cached.data.is_some_and(|facts| facts.companies.is_empty() && facts.notes[0].contains("2026-11-29")));
}

#[tokio::test]
async fn half_a_file_never_takes_the_place_of_a_whole_one() {
    let bench = Bench::new().await;
    ask(&bench).await;
    let mut slot = bench.activities.editions.slot(FILE).await;
    let old = Edition { version: "an older edition".into(), ..slot.edition().cloned().expect("a copy") };
    slot.replace(old.clone(), jiff::Timestamp::UNIX_EPOCH).await;
    drop(slot);
    bench.fault("eba_register", "half_zip").await;
    assert_eq!(ask(&bench).await.status, Status::Cached);
    assert_eq!(bench.activities.editions.slot(FILE).await.edition(), Some(&old));
    bench.simulator.clear("eba_register").await.expect("healthy again");
    assert_eq!(ask(&bench).await.status, Status::Complete);
    assert_ne!(bench.activities.editions.slot(FILE).await.edition(), Some(&old));
}
