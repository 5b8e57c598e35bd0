//! Jobs that take longer than a question: each starts once, waits without a worker, and is never lost.
//!
//! Not covered here: a worker that is killed (see the tests of the program), and how long a job is waited for at most (a pure
//! function of the workflow).

use osint_activities::model::{Finding, Status};
use osint_tests::test_env::{TestEnv, TestWorker, equinor};
use osint_worker::{error::CliError, report::Report};

const BREAKERS: &str = "defaults: { fail_max: 10, reset_timeout: 60s }";

const SOURCES: [&str; 3] = ["brightdata_enrichment", "brightdata_social", "brightdata_person"];

async fn investigate_with(bench: &TestWorker<'_>, fault: &str) -> Result<Report, CliError> {
    for source in SOURCES {
        bench.simulator.set_fault(source, fault).await.map_err(CliError::failure)?;
    }
    bench.simulator.forget_calls();
    let report = bench.investigate(equinor()).await?;
    bench.simulator.clear_all().await.map_err(CliError::failure)?;
    Ok(report)
}

fn of<'a>(report: &'a Report, source: &str) -> &'a Finding {
    report.findings.iter().find(|finding| finding.source == source).expect("a finding")
}

/// Each source started exactly one job.
fn assert_started_once(bench: &TestWorker<'_>, fault: &str) {
    for source in SOURCES {
        let calls = bench.simulator.calls(source).expect("calls");
        assert_eq!(calls.operations.get("trigger"), Some(&1), "{source} with {fault}: {calls:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_starts_once_and_the_workflow_waits_on_a_timer() -> Result<(), CliError> {
    let env = TestEnv::start().await?;
    env.with_worker(BREAKERS, async |bench| {
        let report = investigate_with(bench, "polls:2").await?;
        assert_started_once(bench, "polls:2");
        for source in SOURCES {
            let finding = of(&report, source);
            assert_eq!((finding.status, finding.attempts), (Status::Complete, 1), "{finding:?}");
            // Two polls find the job unfinished, the third finds the result. There is no poll while a timer runs.
            let calls = bench.simulator.calls(source).map_err(CliError::failure)?;
            assert_eq!(calls.operations.get("progress"), Some(&3), "{source}: {calls:?}");
        }
        Ok(())
    })
    .await?;
    env.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_poll_does_not_start_another_job() -> Result<(), CliError> {
    let env = TestEnv::start().await?;
    env.with_worker(BREAKERS, async |bench| {
        // The first look and the first attempt of the second one.
        let report = investigate_with(bench, "flap:2@progress").await?;
        assert_started_once(bench, "flap:2@progress");
        for source in SOURCES {
            let finding = of(&report, source);
            assert_eq!((finding.status, finding.attempts), (Status::Complete, 2), "{finding:?}");
        }

        let report = investigate_with(bench, "500@snapshot").await?;
        assert_started_once(bench, "500@snapshot");
        for source in SOURCES {
            let finding = of(&report, source);
            assert_eq!((finding.status, finding.attempts), (Status::Degraded, 3), "{finding:?}");
            assert!(finding.job.is_some(), "the job that was paid for is lost: {finding:?}");
        }
        Ok(())
    })
    .await?;
    env.stop().await;
    Ok(())
}
