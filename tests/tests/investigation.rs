//! Whole investigations on a real Temporal server: healthy, with each kind of fault on one source, and after it.
//!
//! Not covered here: parsing of answers (see `activities`) and when a breaker opens (see `registry`).

use osint_activities::model::{Country, Finding, Status, Subject};
use osint_tests::{
    test_env::{TestEnv, TestWorker, equinor},
    wait::eventually,
};
use osint_worker::{
    error::CliError,
    report::{Overall, Report},
};

/// Four failures open any breaker for a minute; a call that hangs is given up after a second.
const BREAKERS: &str = "defaults: { fail_max: 4, reset_timeout: 60s, timeout: 1s }";

const FAIL_MAX: u64 = 4;

/// A source's findings without the values that differ from run to run.
fn substance(finding: &Finding) -> (String, Status, Option<String>, String) {
    let data = serde_json::to_string(&finding.data).expect("serialisable");
    (finding.operation.clone(), finding.status, finding.reason.clone(), data)
}

/// Checks that every finding of another source is the same as in the healthy run.
fn assert_untouched(report: &Report, healthy: &Report, source: &str, fault: &str) {
    let others =
        |report: &Report| report.findings.iter().filter(|f| f.source != source).map(substance).collect::<Vec<_>>();
    for (now, then) in others(report).iter().zip(others(healthy)) {
        assert_eq!(*now, then, "{source}={fault} touched {}", then.0);
    }
    assert_eq!(report.findings.len(), healthy.findings.len(), "{source}={fault}");
}

fn of<'a>(report: &'a Report, source: &'a str) -> impl Iterator<Item = &'a Finding> {
    report.findings.iter().filter(move |finding| finding.source == source)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_investigation_is_complete_with_closed_breakers() -> Result<(), CliError> {
    let env = TestEnv::start().await?;
    env.with_worker(BREAKERS, async |bench| {
        // The Finnish register does not say who acts for a company.
        let persons = vec!["Ola Eksempel".to_owned()];
        let finnish = Subject { id: Some("0112038-9".to_owned()), persons, ..Subject::new(Country::new("FI")) };
        for subject in [equinor(), finnish] {
            let report = bench.investigate(subject).await?;
            assert_eq!(report.status, Overall::Complete, "{:#?}", report.coverage);
            assert!(report.asked().all(|finding| finding.attempts == 1 && finding.started_at.is_some()));
            assert!(report.breakers.iter().all(|breaker| breaker.state == "closed" && breaker.retry_in_ms.is_none()));
        }
        Ok(())
    })
    .await?;
    env.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_alone_yields_the_name_for_watch_lists() -> Result<(), CliError> {
    let env = TestEnv::start().await?;
    env.with_worker(BREAKERS, async |bench| {
        let subject = Subject { lei: None, name: None, address: None, ..equinor() };
        let report = bench.investigate(subject.clone()).await?;
        assert_eq!(report.subject.name.as_deref(), Some("EQUINOR ASA"));
        let watch_list = of(&report, "opensanctions").find(|finding| finding.operation == "opensanctions.match");
        assert_eq!(watch_list.map(|finding| finding.status), Some(Status::Complete), "{report:#?}");

        for source in bench.simulator.sources() {
            bench.simulator.set_fault(source, "down").await.map_err(CliError::failure)?;
        }
        let blind = bench.investigate(subject).await?;
        bench.simulator.clear_all().await.map_err(CliError::failure)?;
        assert!(blind.coverage.not_asked.iter().any(|gap| gap.operation == "opensanctions.match"), "{blind:#?}");
        assert_ne!(blind.status, Overall::Complete);
        Ok(())
    })
    .await?;
    env.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_subject_is_refused_before_any_request() -> Result<(), CliError> {
    let env = TestEnv::start().await?;
    env.with_worker(BREAKERS, async |bench| {
        let mistyped = Subject { id: Some("923609017".to_owned()), ..equinor() };
        let refused = bench.investigate(mistyped).await.expect_err("a checksum fails");
        assert_eq!(refused.code(), 2, "{refused}");
        for source in bench.simulator.sources() {
            assert_eq!(bench.simulator.calls(source).map_err(CliError::failure)?.total, 0, "{source} was asked");
        }
        Ok(())
    })
    .await?;
    env.stop().await;
    Ok(())
}

/// Faults that are an outage: they open the breaker, and then the source gets no calls.
const OUTAGES: [&str; 13] = [
    "down",
    "refused",
    "hangup",
    "reset",
    "hang",
    "slow:5s",
    "500",
    "502_html",
    "504",
    "503_retry_after:30",
    "200_html_maintenance",
    "truncated_json",
    "wrong_shape",
];

/// Faults that are no outage: an answer, a refusal, a request to wait, or a fault that ends before the breaker opens.
const OTHERS: [&str; 7] = ["429", "429_retry_after:30", "401", "403", "not_found", "flap:1", "slow:200ms"];

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_changes_only_the_findings_of_its_source() -> Result<(), CliError> {
    let env = TestEnv::start().await?;
    let healthy = env.with_worker(BREAKERS, async |bench| bench.investigate(equinor()).await).await?;
    let with_one_operation = OUTAGES.iter().map(|fault| ("tavily", *fault));
    for (source, fault) in with_one_operation.chain([("gleif", "down"), ("gleif", "hang")]) {
        env.with_worker(BREAKERS, async |bench| outage(bench, &healthy, source, fault).await).await?;
    }
    for fault in OTHERS {
        env.with_worker(BREAKERS, async |bench| {
            bench.simulator.set_fault("tavily", fault).await.map_err(CliError::failure)?;
            let report = bench.investigate(equinor()).await?;
            assert_untouched(&report, &healthy, "tavily", fault);
            bench.simulator.clear_all().await.map_err(CliError::failure)
        })
        .await?;
    }
    env.stop().await;
    Ok(())
}

/// Investigates until the breaker is open, and once more. Both sources have at most as many operations as `fail_max`, so
/// that no more calls can be under way at once than it takes failures.
async fn outage(bench: &TestWorker<'_>, healthy: &Report, source: &str, fault: &str) -> Result<(), CliError> {
    bench.simulator.clear_all().await.map_err(CliError::failure)?;
    bench.simulator.forget_calls();
    bench.simulator.set_fault(source, fault).await.map_err(CliError::failure)?;
    let open = || bench.registry.breaker(source).view().retry_in.is_some();
    for _ in 0..FAIL_MAX {
        let report = bench.investigate(equinor()).await?;
        assert_untouched(&report, healthy, source, fault);
        assert!(of(&report, source).all(|finding| finding.status == Status::Degraded), "{source}={fault}: {report:#?}");
        if open() {
            break;
        }
    }
    assert!(open(), "{source}={fault} did not open the breaker");
    let report = bench.investigate(equinor()).await?;
    assert_untouched(&report, healthy, source, fault);
    for finding in of(&report, source) {
        assert_eq!(finding.status, Status::Degraded, "{source}={fault}");
        assert!(finding.retry_at.is_some(), "{source}={fault}: {finding:?} does not say when to come back");
    }
    assert!(report.breakers.iter().any(|breaker| breaker.service == source && breaker.state == "open"));
    let calls = bench.simulator.calls(source).map_err(CliError::failure)?.total;
    assert!(calls <= FAIL_MAX, "{source}={fault} was called {calls} times");
    bench.simulator.clear_all().await.map_err(CliError::failure)
}

#[tokio::test(flavor = "multi_thread")]
async fn our_rate_limit_delays_investigations_without_a_failure() -> Result<(), CliError> {
    let env = TestEnv::start().await?;
    let breakers = "services:\n  nominatim: { rate_limit: 2/s }";
    env.with_worker(breakers, async |bench| {
        // Each about another address, or one answer would do for all.
        let address = |n: u32| Some(format!("Forusbeen {n}, 4035 Stavanger"));
        let at = |n| Subject { address: address(n), ..equinor() };
        let reports = futures::future::join_all((50..56).map(|n| bench.investigate(at(n)))).await;
        for report in reports {
            let report = report?;
            assert!(of(&report, "nominatim").all(|finding| !finding.status.is_gap()), "{report:#?}");
        }
        assert_eq!(bench.simulator.calls("nominatim").map_err(CliError::failure)?.total, 6);
        Ok(())
    })
    .await?;
    env.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_source_is_given_up_after_three_attempts() -> Result<(), CliError> {
    let env = TestEnv::start().await?;
    env.with_worker("defaults: { fail_max: 1000 }", async |bench| {
        bench.simulator.set_fault("nominatim", "500").await.map_err(CliError::failure)?;
        let report = bench.investigate(equinor()).await?;
        assert!(of(&report, "nominatim").all(|finding| finding.status == Status::Degraded && finding.attempts == 3));
        assert_eq!(bench.simulator.calls("nominatim").map_err(CliError::failure)?.total, 3);
        Ok(())
    })
    .await?;
    env.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_finds_a_recovered_source() -> Result<(), CliError> {
    let env = TestEnv::start().await?;
    let breakers = "defaults: { fail_max: 1, reset_timeout: 1s, timeout: 1s }";
    env.with_worker(breakers, async |bench| {
        bench.simulator.set_fault("nominatim", "down").await.map_err(CliError::failure)?;
        let during = bench.investigate(equinor()).await?;
        assert!(of(&during, "nominatim").all(|finding| finding.status == Status::Degraded));
        bench.simulator.clear("nominatim").await.map_err(CliError::failure)?;
        bench.simulator.forget_calls();
        eventually("nominatim answers again", async || {
            let report = bench.investigate(equinor()).await.ok()?;
            of(&report, "nominatim").all(|finding| finding.status == Status::Complete).then_some(())
        })
        .await;
        // The free call that was the probe, and the question.
        assert_eq!(bench.simulator.calls("nominatim").map_err(CliError::failure)?.total, 2);
        assert!(bench.registry.breaker("nominatim").view().retry_in.is_none());
        Ok(())
    })
    .await?;
    env.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_a_source_never_delays_the_report() -> Result<(), CliError> {
    let env = TestEnv::start().await?;
    // The one is back long before the report is due, the other long after.
    let breakers = "
defaults: { fail_max: 1, timeout: 1s }
services:
  nominatim: { reset_timeout: 1s, on_open: { wait_max: 60s } }
  no_brreg: { reset_timeout: 1h, on_open: wait }
";
    env.with_worker(breakers, async |bench| {
        for source in ["nominatim", "no_brreg"] {
            bench.simulator.set_fault(source, "down").await.map_err(CliError::failure)?;
        }
        let investigation = bench.begin(equinor()).await?;
        for source in ["nominatim", "no_brreg"] {
            let open = || bench.registry.breaker(source).view().retry_in.is_some();
            eventually("the breaker opens", async || open().then_some(())).await;
            bench.simulator.clear(source).await.map_err(CliError::failure)?;
        }
        let report = investigation.report().await?;
        assert!(of(&report, "nominatim").all(|finding| finding.status == Status::Complete), "{report:#?}");
        for finding in of(&report, "no_brreg") {
            assert_eq!(finding.status, Status::Degraded, "{finding:?}");
            assert!(finding.retry_at.is_some(), "{finding:?} does not say when to come back");
        }
        Ok(())
    })
    .await?;
    env.stop().await;
    Ok(())
}
