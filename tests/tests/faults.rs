//! One sick source costs its own finding and nothing else, whatever it is sick of.
//!
//! A real Temporal server, a real worker, real sockets. What each upstream's own answers mean is not tested here but in
//! the suite of its row; what a breaker decides, where it is decided.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use circuit_registry::State;
use osint_activities::model::{Finding, Status};
use osint_tests::lab::{Bench, Lab, equinor};
use osint_worker::report::{Overall, Report};

/// No probe falls into a test's time, and nobody waits ten seconds for a source that hangs.
const BREAKERS: &str = "
defaults: { reset_timeout: 1h, throttle_max: 1h }
services:
  tavily: { fail_max: 3, timeout: 1s }
  gleif: { fail_max: 5 }
";

/// Questions that an investigation puts to gleif at once.
const GLEIF_AT_ONCE: u64 = 4;

/// Each fault that makes a source useless to us, and whether that is the source being out of order. What is wrong with our
/// question or our credentials must not open a breaker, however often it happens.
const FAULTS: [(&str, bool); 20] = [
    ("down", true),
    ("refused", true),
    ("hangup", true),
    ("reset", true),
    ("hang", true),
    ("slow:5s", true),
    ("flap:1000000", true),
    ("down_for:60m", true),
    ("429_retry_after:600", true),
    ("500", true),
    ("502_html", true),
    ("503_retry_after:600", true),
    ("504", true),
    ("200_html_maintenance", true),
    ("empty_body", true),
    ("truncated_json", true),
    ("wrong_shape", true),
    ("gzip_bomb", true),
    ("400", false),
    ("401", false),
];

/// The findings of every source but one, without what differs from run to run.
fn others(report: &Report, sick: &str) -> BTreeMap<String, (Status, Option<String>, String)> {
    let rest = report.findings.iter().filter(|finding| finding.source != sick);
    rest.map(|f| (f.operation.clone(), (f.status, f.reason.clone(), format!("{:?}", f.data)))).collect()
}

fn of<'a>(report: &'a Report, source: &str) -> Vec<&'a Finding> {
    report.findings.iter().filter(|finding| finding.source == source).collect()
}

fn state(bench: &Bench, service: &str) -> State {
    bench.registry.breaker(service).view().state
}

/// Four investigations with one fault: enough attempts to open a breaker of `fail_max: 3` and to find it open.
async fn one_fault(lab: &Lab, fault: &str, outage: bool, healthy: &Report) -> Result<()> {
    lab.with_worker(BREAKERS, async |bench| {
        lab.stack.simulator.set_fault("tavily", fault).await?;
        for _ in 0..4 {
            let report = bench.investigate(&equinor()).await?;
            ensure!(others(&report, "tavily") == others(healthy, "tavily"), "another finding changed: {report:#?}");
            let sick = of(&report, "tavily");
            let expected = |status: Status| if outage { status == Status::Degraded } else { status.is_gap() };
            ensure!(sick.len() == 1 && expected(sick[0].status), "{sick:#?}");
            ensure!(sick[0].reason.is_some(), "a gap without a reason: {sick:#?}");
            ensure!(report.status == Overall::Partial && report.coverage.gaps.len() == 1, "{:#?}", report.coverage);
        }
        let calls = lab.stack.simulator.calls("tavily")?.total;
        if outage {
            ensure!(state(bench, "tavily") == State::Open, "the breaker is {:?}", state(bench, "tavily"));
            ensure!(calls <= 3, "an upstream that was down received {calls} calls, with fail_max 3 and no probe due");
        } else {
            ensure!(state(bench, "tavily") == State::Closed, "the breaker is {:?}", state(bench, "tavily"));
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_sick_source_costs_its_own_finding() -> Result<()> {
    let lab = Lab::open().await?;

    let healthy = lab.with_worker(BREAKERS, async |bench| bench.investigate(&equinor()).await).await?;
    assert_eq!(healthy.status, Overall::Complete, "{:#?}", healthy.coverage);
    assert!(healthy.breakers.iter().all(|breaker| breaker.state == "closed"), "{:#?}", healthy.breakers);
    assert!(lab.stack.simulator.calls("tavily")?.total > 0, "the source that is to be sick was not even asked");

    let mut wrong = Vec::new();
    for (fault, outage) in FAULTS {
        if let Err(error) = one_fault(&lab, fault, outage, &healthy).await {
            wrong.push(format!("{fault}: {error:#}"));
        }
    }
    lab.close().await;
    assert!(wrong.is_empty(), "{} of {} faults:\n{}", wrong.len(), FAULTS.len(), wrong.join("\n"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_source_with_many_questions_is_left_alone() -> Result<()> {
    let lab = Lab::open().await?;
    let report = lab
        .with_worker(BREAKERS, async |bench| {
            lab.stack.simulator.set_fault("gleif", "down").await?;
            for _ in 0..4 {
                bench.investigate(&equinor()).await?;
            }
            bench.investigate(&equinor()).await
        })
        .await?;
    let calls = lab.stack.simulator.calls("gleif")?.total;
    lab.close().await;

    assert!(of(&report, "gleif").iter().all(|finding| finding.status == Status::Degraded), "{report:#?}");
    assert_eq!(report.status, Overall::Partial);
    // Those that were under way when the last failure was counted are the only ones beyond fail_max.
    assert!((5..=5 + GLEIF_AT_ONCE - 1).contains(&calls), "gleif was down and received {calls} calls");
    Ok(())
}
