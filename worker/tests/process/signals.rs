//! Shutdown by a signal: not ready, no new tasks, the grace period, the hard deadline, stored breakers, the exit code.

use osint_activities::model::Status;
use osint_tests::wait::eventually;

use crate::fixture::Fixture;

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_finishes_its_tasks_and_stores_its_breakers() {
    let fixture = Fixture::start("defaults: { fail_max: 1, reset_timeout: 1h, timeout: 50s }", None).await;
    fixture.stack.simulator.set_fault("tavily", "down").await.unwrap();
    fixture.stack.simulator.set_fault("nominatim", "slow:8s").await.unwrap();

    let worker = fixture.worker(&[("OSINT_GRACE", "45")]).await;
    let investigation = fixture.investigate().await;
    eventually("the slow question is under way", async || (fixture.calls("nominatim") > 0).then_some(())).await;
    eventually("a breaker opens", async || worker.breaker("tavily").await.filter(|state| state == "open")).await;
    worker.signal("TERM").await;
    let (_, why) = eventually("it reports that it is not ready", async || {
        worker.page("ready").await.filter(|(status, _)| *status == 503)
    })
    .await;
    assert!(why.contains("shutting down"), "{why}");
    let late = fixture.investigate().await;
    let (code, log) = worker.ended().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("shutdown signal received"), "{log}");
    assert_eq!(fixture.calls("nominatim"), 1, "a worker has begun an investigation after the shutdown signal");

    let next = fixture.worker(&[]).await;
    assert_eq!(next.breaker("tavily").await.as_deref(), Some("open"), "the breaker was forgotten");
    let report = investigation.report().await.unwrap();
    let slow = report.findings.iter().find(|finding| finding.source == "nominatim").expect("a finding");
    assert_eq!((slow.status, slow.attempts), (Status::Complete, 1), "{slow:?}");
    late.report().await.unwrap();
    assert_eq!(fixture.calls("nominatim"), 2, "the question that was being answered has been asked again");
    drop(next);
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hard_deadline_hands_a_hanging_task_to_another_worker() {
    let fixture = Fixture::start("defaults: { fail_max: 100, timeout: 50s }", None).await;
    fixture.stack.simulator.set_fault("nominatim", "hang").await.unwrap();
    let worker = fixture.worker(&[("OSINT_GRACE", "0")]).await;
    let investigation = fixture.investigate().await;
    eventually("the question is under way", async || (fixture.calls("nominatim") > 0).then_some(())).await;
    worker.signal("INT").await;
    let (code, log) = worker.ended().await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("still running 5 s after"), "{log}");

    fixture.stack.simulator.clear("nominatim").await.unwrap();
    let next = fixture.worker(&[]).await;
    let report = investigation.report().await.unwrap();
    let asked = report.findings.iter().find(|finding| finding.source == "nominatim").expect("a finding");
    assert_eq!(asked.status, Status::Complete, "{asked:?}");
    drop(next);
    fixture.stop().await;
}
