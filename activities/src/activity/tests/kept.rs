//! Answers given earlier: as good as new where the terms ask for it, as the last fallback where the operator wants it.

use super::*;

const KEPT: &str = "services:\n  no_brreg: { fail_max: 3, reset_timeout: 30s, cache: { max_age: 30d } }\n";

#[tokio::test]
async fn an_earlier_answer_stands_in_for_a_source_that_fails() {
    let bench = Bench::with_policies(KEPT).await;
    let original = bench.run("no_brreg.entity", &equinor()).await.expect("an answer");
    bench.fault("no_brreg", "503_retry_after:60").await;
    // While somebody will try again, the source's own answer is worth waiting for.
    let entry = catalog::operation("no_brreg.entity").expect("a row");
    let first = AttemptInfo { attempt: 1, last: false };
    bench.activities.investigate(entry, &Query::from(equinor()), first, None).await.expect_err("a retry");

    let cached = bench.run("no_brreg.entity", &equinor()).await.expect("an earlier answer");
    assert_eq!((cached.status, &cached.data, cached.via.as_deref()), (Status::Cached, &original.data, None));
    assert!(cached.as_of.is_some_and(|at| Some(at) >= original.started_at));
    assert!(cached.reason.is_some_and(|reason| reason.contains("503") && reason.contains("earlier answer")));
    assert!(cached.retry_at > cached.as_of, "and when to ask again");

    // The outage counted all the same, and an open breaker has the same answer.
    bench.run("no_brreg.entity", &equinor()).await.expect("an earlier answer");
    assert_eq!(bench.state("no_brreg"), State::Open);
    let calls = bench.calls("no_brreg");
    let cached = bench.run("no_brreg.entity", &equinor()).await.expect("an earlier answer");
    assert_eq!((cached.status, bench.calls("no_brreg")), (Status::Cached, calls));

    // It is the fallback for its own question only.
    bench.run("no_brreg.roles", &equinor()).await.expect_err("never answered");
    bench.run("no_brreg.entity", &subject("NO", "982463718", "TELENOR ASA")).await.expect_err("never answered");
}

#[tokio::test]
async fn without_leave_nothing_stands_in_and_not_found_is_not_kept() {
    let bench = Bench::new().await;
    bench.run("no_brreg.entity", &equinor()).await.expect("an answer");
    bench.fault("no_brreg", "500").await;
    bench.run("no_brreg.entity", &equinor()).await.expect_err("no policy keeps answers");

    let bench = Bench::with_policies(KEPT).await;
    let unknown = subject("NO", "999999999", "");
    assert_eq!(bench.run("no_brreg.entity", &unknown).await.expect("a finding").status, Status::NotFound);
    bench.fault("no_brreg", "500").await;
    bench.run("no_brreg.entity", &unknown).await.expect_err("a company may be founded any day");
}

#[tokio::test]
async fn the_same_address_is_not_asked_about_twice() {
    let bench = Bench::new().await;
    let first = bench.run("nominatim.search", &equinor()).await.expect("a place");
    let spelt = Subject { address: Some("FORUSBEEN 50,  4035 Stavanger".into()), ..subject("NO", "", "Somebody else") };
    bench.fault("nominatim", "blocked").await;
    let again = bench.run("nominatim.search", &spelt).await.expect("the place again");
    assert_eq!((again.status, again.attempts, bench.calls("nominatim")), (Status::Complete, 0, 1));
    assert!(again.as_of.is_some() && again.data == first.data);
    let elsewhere = Subject { address: Some("Snarøyveien 30, Fornebu".into()), ..equinor() };
    bench.run("nominatim.search", &elsewhere).await.expect_err("asked, and blocked");
}
