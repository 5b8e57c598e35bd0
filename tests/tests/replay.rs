//! Saved histories replay: today's worker can continue investigations that an older worker began.
//!
//! `make histories` records the histories in `histories/`, one for each scenario; `osint history export <id>` exports one from
//! a running system. If a history stops replaying, do not simply record it again. The change needs a patch marker, because
//! running investigations have histories like it.

use std::{fs, path::PathBuf, time::Duration};

use osint_activities::model::{Country, Status, Subject};
use osint_tests::{
    test_env::{TestEnv, TestWorker, equinor},
    wait::eventually,
};
use osint_worker::{
    error::CliError, report::Report, run::workflow_interceptor, temporal::history::export,
    workflow::InvestigationWorkflow,
};
use temporalio_client::WorkflowHistory;
use temporalio_common::WorkflowDefinition;
use temporalio_sdk::{
    WorkflowContext, WorkflowResult,
    workflow_replayer::{WorkflowReplayError, WorkflowReplayFailure, WorkflowReplayer, WorkflowReplayerOptions},
    workflows::WorkflowImplementation,
};
use temporalio_workflow::{workflow, workflow_methods};

/// The scenarios of the saved investigations.
const SCENARIOS: [&str; 9] = [
    "healthy",
    "nothing_learnt",
    "one_open",
    "opened_in_mid_flight",
    "all_down",
    "all_open",
    "waiting",
    "recovered",
    "job_awaited",
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("histories")
}

fn saved(scenario: &str) -> WorkflowHistory {
    let file = folder().join(format!("{scenario}.json"));
    let json = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    WorkflowHistory::from_json(&json).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

async fn replay<W>(scenario: &str) -> Result<(), WorkflowReplayError>
where
    W: WorkflowImplementation,
    <W::Run as WorkflowDefinition>::Input: Send,
{
    let options = WorkflowReplayerOptions::new().workflow_interceptor(workflow_interceptor());
    let options = options.register_workflow::<W>().expect("a workflow of that name").build();
    WorkflowReplayer::new(options)?.replay_workflow(saved(scenario)).await
}

#[tokio::test]
async fn every_saved_history_replays() {
    for scenario in SCENARIOS {
        replay::<InvestigationWorkflow>(scenario).await.unwrap_or_else(|error| panic!("{scenario}: {error}"));
    }
}

#[tokio::test]
async fn every_saved_history_is_in_the_list() {
    let mut files: Vec<String> = fs::read_dir(folder())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    files.sort_unstable();
    let mut listed = SCENARIOS.to_vec();
    listed.sort_unstable();
    assert_eq!(files, listed);
}

/// The same workflow type with an additional timer at its start. A replay must notice the difference.
mod changed {
    #![allow(missing_docs, unreachable_pub, reason = "the SDK's macros make public items of their own")]

    use super::*;

    #[workflow]
    #[derive(Default)]
    pub struct Hesitant;

    #[workflow_methods]
    impl Hesitant {
        #[run(name = "InvestigationWorkflow")]
        pub async fn run(ctx: &mut WorkflowContext<Self>, _subject: Subject) -> WorkflowResult<Report> {
            ctx.timer(Duration::from_secs(1)).await;
            Err(temporalio_sdk::ApplicationFailure::non_retryable("never reached").into())
        }
    }
}

#[tokio::test]
async fn a_change_of_the_commands_is_noticed() {
    for scenario in SCENARIOS {
        let error = replay::<changed::Hesitant>(scenario).await.expect_err("a timer is no local activity");
        let noticed = matches!(error, WorkflowReplayError::Replay(WorkflowReplayFailure::Nondeterminism { .. }));
        assert!(noticed, "{scenario}: {error}");
    }
}

/// One failure opens a breaker for longer than any scenario takes.
const BREAKERS: &str = "defaults: { fail_max: 1, reset_timeout: 60s, timeout: 2s }";

/// The same, but the geocoder's questions wait for their breaker, which lets a probe through every second.
const PATIENT: &str = "
defaults: { fail_max: 1, reset_timeout: 60s, timeout: 2s }
services:
  nominatim: { reset_timeout: 1s, on_open: { wait_max: 6s } }
";

/// A company by its number alone: the second round of questions depends on the findings of the first.
fn by_number() -> Subject {
    Subject { id: equinor().id, ..Subject::new(Country::new("NO")) }
}

async fn fault(bench: &TestWorker<'_>, source: &str, fault: &str) -> Result<(), CliError> {
    bench.simulator.set_fault(source, fault).await.map_err(CliError::failure)
}

async fn all_down(bench: &TestWorker<'_>) -> Result<(), CliError> {
    for source in bench.simulator.sources() {
        fault(bench, source, "down").await?;
    }
    Ok(())
}

/// Investigates and keeps the history under the name of the scenario.
async fn record(bench: &TestWorker<'_>, scenario: &str, subject: Subject) -> Result<Report, CliError> {
    let investigation = bench.begin(subject).await?;
    let report = investigation.report().await?;
    keep(bench, scenario, investigation.id()).await?;
    Ok(report)
}

async fn keep(bench: &TestWorker<'_>, scenario: &str, id: &str) -> Result<(), CliError> {
    let json = export(&bench.client, id, None, None).await?;
    fs::write(folder().join(format!("{scenario}.json")), json).map_err(CliError::failure)
}

fn status(report: &Report, source: &str) -> Option<Status> {
    report.findings.iter().find(|finding| finding.source == source).map(|finding| finding.status)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "rewrites the saved histories; `make histories` runs it"]
async fn record_the_histories() -> Result<(), CliError> {
    let env = TestEnv::start().await?;
    env.with_worker(BREAKERS, async |bench| {
        let report = record(bench, "healthy", by_number()).await?;
        assert!(report.coverage.gaps.is_empty(), "{:#?}", report.coverage);
        fault(bench, "no_brreg", "down").await?;
        record(bench, "nothing_learnt", by_number()).await?;
        bench.simulator.clear_all().await.map_err(CliError::failure)?;
        fault(bench, "brightdata_social", "polls:2").await?;
        let report = record(bench, "job_awaited", equinor()).await?;
        assert_eq!(status(&report, "brightdata_social"), Some(Status::Complete));
        Ok(())
    })
    .await?;
    env.with_worker(BREAKERS, async |bench| {
        bench.simulator.clear_all().await.map_err(CliError::failure)?;
        fault(bench, "tavily", "down").await?;
        let report = record(bench, "opened_in_mid_flight", by_number()).await?;
        assert_eq!(status(&report, "tavily"), Some(Status::Degraded));
        assert!(bench.registry.breaker("tavily").view().retry_in.is_some(), "the breaker has not opened");
        let report = record(bench, "one_open", by_number()).await?;
        assert_eq!(status(&report, "tavily"), Some(Status::Degraded));
        Ok(())
    })
    .await?;
    env.with_worker(BREAKERS, async |bench| {
        all_down(bench).await?;
        record(bench, "all_down", equinor()).await?;
        let report = record(bench, "all_open", equinor()).await?;
        assert!(report.asked().all(|finding| finding.status == Status::Degraded && finding.retry_at.is_some()));
        bench.simulator.clear_all().await.map_err(CliError::failure)
    })
    .await?;
    env.with_worker(PATIENT, async |bench| {
        fault(bench, "nominatim", "down").await?;
        let report = record(bench, "waiting", equinor()).await?;
        assert_eq!(status(&report, "nominatim"), Some(Status::Degraded));

        bench.simulator.forget_calls();
        let investigation = bench.begin(equinor()).await?;
        let calls = || bench.simulator.calls("nominatim").map_or(0, |calls| calls.total);
        eventually("it waits for the breaker", async || (calls() > 0).then_some(())).await;
        bench.simulator.clear("nominatim").await.map_err(CliError::failure)?;
        let report = investigation.report().await?;
        assert_eq!(status(&report, "nominatim"), Some(Status::Complete));
        keep(bench, "recovered", investigation.id()).await
    })
    .await?;
    env.stop().await;
    Ok(())
}
