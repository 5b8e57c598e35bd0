//! Jobs: what is billed is done once, whatever happens around it.

use std::sync::Mutex;

use super::*;
use crate::model::Job;

const COMPANY: &str = "brightdata_enrichment.company";
const SOURCE: &str = "brightdata_enrichment";

impl Bench {
    async fn collect(&self, job: Option<Job>) -> Result<Finding, Failed> {
        let entry = catalog::operation(COMPANY).expect("a row");
        let query = Query { job, ..Query::from(equinor()) };
        self.activities.investigate(entry, &query, ONLY, None).await
    }

    /// How many jobs were started, that is, billed.
    fn started(&self) -> u64 {
        self.simulator.calls(SOURCE).expect("calls").counters.get("jobs").copied().unwrap_or_default()
    }
}

#[tokio::test]
async fn a_job_is_started_once_and_collected_when_it_is_done() {
    let bench = Bench::new().await;
    bench.fault(SOURCE, "polls:2").await;
    let (mut job, mut looks) = (None, 0);
    let finding = loop {
        let finding = bench.collect(job).await.expect("a finding");
        if finding.status != Status::Pending {
            break finding;
        }
        assert!(finding.data.is_none() && finding.retry_at > finding.started_at, "{finding:?}");
        (job, looks) = (finding.job, looks + 1);
        assert_eq!(job.as_ref().map(|job| job.polls), Some(looks));
    };
    assert_eq!((finding.status, looks, bench.started()), (Status::Complete, 2, 1));
    assert_eq!(finding.data.map(|facts| facts.companies[0].name.clone()), Some(Some("Equinor ASA".to_owned())));
    assert_eq!(bench.state(SOURCE), State::Closed);
}

#[tokio::test]
async fn a_job_is_remembered_before_anything_else_can_happen() {
    let bench = Bench::new().await;
    bench.fault(SOURCE, "hang@progress").await;
    let kept = Mutex::new(None);
    let on_job = |job: Job| -> BoxFuture<'_, ()> {
        *kept.lock().expect("a lock") = Some(job);
        Box::pin(async {})
    };
    let (entry, query) = (catalog::operation(COMPANY).expect("a row"), Query::from(equinor()));
    let attempt = bench.activities.investigate(entry, &query, ONLY, Some(&on_job));
    // The worker dies here: the attempt is dropped while it looks at the job.
    tokio::time::timeout(Duration::from_millis(300), attempt).await.expect_err("it hangs");
    let job = kept.lock().expect("a lock").take();
    assert!(job.is_some());
    bench.simulator.clear(SOURCE).await.expect("no fault");
    let finding = bench.collect(job).await.expect("a finding");
    assert_eq!((finding.status, bench.started()), (Status::Complete, 1));
}

#[tokio::test]
async fn what_hides_a_job_does_not_lose_it() {
    let bench = Bench::new().await;
    for fault in ["500@progress", "502_html@progress", "reset@progress", "429@progress", "500@snapshot"] {
        bench.fault(SOURCE, fault).await;
        let finding = bench.collect(None).await.expect("a finding");
        assert_eq!((finding.status, finding.job.is_some()), (Status::Pending, true), "{fault}");
        let again = bench.collect(finding.job.clone()).await.expect_err("still hidden");
        let retried = if fault.starts_with("429") { Reason::Throttled } else { Reason::Failed };
        assert!([retried, Reason::Open].contains(&again.details.reason), "{fault}: {:?}", again.details);
        bench.simulator.clear(SOURCE).await.expect("no fault");
        bench.registry.breaker(SOURCE).reset();
        assert_eq!(bench.collect(finding.job).await.expect("a finding").status, Status::Complete, "{fault}");
    }
    assert_eq!(bench.started(), 5, "one for each fault");
}

#[tokio::test]
async fn a_job_that_failed_or_expired_is_not_started_again() {
    let bench = Bench::new().await;
    bench.fault(SOURCE, "job_failed").await;
    let failed = bench.collect(None).await.expect_err("a failed job");
    assert_eq!(failed.details.reason, Reason::Declined);
    bench.fault(SOURCE, "expired").await;
    let finding = bench.collect(None).await.expect("a finding");
    assert_eq!(finding.status, Status::NeedsReview);
    let unknown = Job { id: "s_none".into(), started_at: jiff::Timestamp::UNIX_EPOCH, polls: 1 };
    assert_eq!(bench.collect(Some(unknown)).await.expect("a finding").status, Status::NeedsReview);
    assert_eq!(bench.started(), 2);
}

#[tokio::test]
async fn a_start_is_repeated_only_if_it_never_arrived() {
    let bench = Bench::new().await;
    for (fault, reason) in [("500", Reason::Declined), ("reset", Reason::Declined), ("refused", Reason::Failed)] {
        bench.fault(SOURCE, fault).await;
        assert_eq!(bench.collect(None).await.expect_err(fault).details.reason, reason, "{fault}");
        bench.registry.breaker(SOURCE).reset();
    }
}

#[tokio::test]
async fn an_error_of_the_account_opens_all_its_breakers() {
    let all = ["brightdata_enrichment", "brightdata_social", "brightdata_person"];
    let mut bench = Bench::new().await;
    for (source, operation) in all.iter().zip([COMPANY, "brightdata_social.company", "brightdata_person.profiles"]) {
        for fault in ["suspended", "suspended_403", "401"] {
            bench.forget();
            bench.fault(source, fault).await;
            let failed = bench.run(operation, &equinor()).await.expect_err(fault);
            assert_eq!(failed.details.reason, Reason::Throttled, "{source} {fault}");
            for other in all {
                assert_eq!(bench.state(other), State::Open, "{source} {fault}: {other}");
            }
            assert_eq!(bench.state("tavily"), State::Closed);
        }
        bench.simulator.clear(source).await.expect("no fault");
    }
    // An error of one data set is no failure of the account.
    bench.forget();
    bench.fault("brightdata_social", "too_many_jobs").await;
    bench.run("brightdata_social.company", &equinor()).await.expect_err("busy");
    let states = all.map(|source| bench.state(source));
    assert_eq!(states, [State::Closed, State::Open, State::Closed]);
}

#[test]
fn traces_are_read_as_they_were_left() {
    let job = Job { id: "s_1".into(), started_at: jiff::Timestamp::UNIX_EPOCH, polls: 0 };
    for trace in [Trace::Asking, Trace::Started(job), Trace::Over] {
        let json = serde_json::to_string(&trace).expect("serialises");
        assert_eq!(serde_json::from_str::<Trace>(&json).expect("reads"), trace);
    }
}
