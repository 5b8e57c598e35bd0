//! The Peppol directory, and the composite that stands on it and on others.

use super::*;

fn proximus() -> Subject {
    subject("BE", "0202239951", "PROXIMUS")
}

#[tokio::test]
async fn the_composites_outage_is_its_own() {
    let bench = Bench::new().await;
    bench.fault("peppol_verify", "upstream_unavailable").await;
    for _ in 0..3 {
        let failed = bench.run("peppol_verify.check", &proximus()).await.expect_err("an outage");
        assert_eq!((failed.details.service.as_str(), failed.details.reason), ("peppol_verify", Reason::Failed));
    }
    assert_eq!(bench.state("peppol_verify"), State::Open);
    for innocent in ["kbo", "vies", "vies:BE", "peppol_directory"] {
        let view = bench.registry.breaker(innocent).view();
        assert_eq!((view.state, view.consecutive_failures), (State::Closed, 0), "{innocent}");
    }
}

#[tokio::test]
async fn a_silent_vies_makes_no_number_invalid() {
    let bench = Bench::new().await;
    bench.fault("peppol_verify", "flag:VAT_INVALID").await;
    let finding = bench.run("peppol_verify.check", &proximus()).await.expect("a finding");
    let vat = finding.data.and_then(|facts| facts.vat).expect("VIES has spoken");
    assert!(!vat.valid && vat.derived && finding.status == Status::Complete);
    bench.fault("peppol_verify", "vies_silent").await;
    let silent = bench.run("peppol_verify.check", &proximus()).await.expect("a finding");
    let facts = silent.data.expect("the other parts");
    assert_eq!((silent.status, facts.vat), (Status::Partial, None));
    assert!(facts.notes.iter().all(|note| !note.contains("VAT_INVALID")));
}

#[tokio::test]
async fn an_accepted_check_is_pending_and_collected_later() {
    let bench = Bench::new().await;
    bench.fault("peppol_verify", "accepted").await;
    let pending = bench.run("peppol_verify.check", &proximus()).await.expect("a finding");
    assert_eq!((pending.status, pending.data.is_none()), (Status::Pending, true));
    let job = pending.job.expect("something to collect by");
    assert!(pending.retry_at.is_some_and(|at| at > job.started_at));
    let entry = catalog::operation("peppol_verify.check").expect("a row");
    let query = Query { job: Some(job.clone()), ..Query::from(proximus()) };
    let again = bench.activities.investigate(entry, &query, ONLY, None).await.expect("a finding");
    let later = again.job.expect("still pending");
    assert_eq!((later.started_at, later.polls), (job.started_at, 1));
    bench.simulator.clear("peppol_verify").await.expect("ready");
    let done = bench.activities.investigate(entry, &query, ONLY, None).await.expect("a finding");
    assert_eq!((done.status, bench.state("peppol_verify")), (Status::Complete, State::Closed));
}

#[tokio::test]
async fn absence_from_the_directory_and_too_many_calls() {
    let bench = Bench::new().await;
    let unlisted = subject("BE", "0403199702", "BNP Paribas Fortis");
    let finding = bench.run("peppol_directory.participant", &unlisted).await.expect("a finding");
    assert_eq!(finding.status, Status::NotFound);
    assert!(finding.reason.is_some_and(|reason| reason.contains("voluntary")));
    bench.fault("peppol_directory", "enforce_rate").await;
    let mut refused = None;
    for _ in 0..50 {
        if let Err(failed) = bench.run("peppol_directory.search", &proximus()).await {
            refused = Some(failed.details.reason);
            break;
        }
    }
    assert_eq!((refused, bench.state("peppol_directory")), (Some(Reason::Throttled), State::Open));
}
