//! Saved histories replay: what runs today can take over the investigations that yesterday's worker began.
//!
//! `osint history export <id>` writes such a history. One that stops replaying is not to be replaced by a new one: the
//! change that broke it needs a patch marker, because workers in the field are in the middle of investigations like it.

use std::{fs, path::PathBuf, time::Duration};

use osint_activities::model::Subject;
use osint_worker::{report::Report, workflow::InvestigationWorkflow};
use temporalio_client::WorkflowHistory;
use temporalio_common::WorkflowDefinition;
use temporalio_sdk::{
    WorkflowContext, WorkflowResult,
    workflow_replayer::{WorkflowReplayError, WorkflowReplayFailure, WorkflowReplayer, WorkflowReplayerOptions},
    workflows::WorkflowImplementation,
};
use temporalio_workflow::{workflow, workflow_methods};

/// What the saved investigations went through.
const SCENARIOS: [&str; 5] = ["healthy", "nothing_learnt", "one_open", "opened_in_mid_flight", "all_down"];

fn saved(scenario: &str) -> WorkflowHistory {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("histories").join(format!("{scenario}.json"));
    let json = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    WorkflowHistory::from_json(&json).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

async fn replay<W>(scenario: &str) -> Result<(), WorkflowReplayError>
where
    W: WorkflowImplementation,
    <W::Run as WorkflowDefinition>::Input: Send,
{
    let options = WorkflowReplayerOptions::new().register_workflow::<W>().expect("a workflow of that name").build();
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
    let folder = fs::read_dir(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("histories")).expect("the folder");
    let mut files: Vec<String> = folder
        .map(|entry| entry.expect("an entry").path())
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    files.sort_unstable();
    let mut listed = SCENARIOS.to_vec();
    listed.sort_unstable();
    assert_eq!(files, listed);
}

/// The same workflow type, which waits before it does anything: no worker may ever take an investigation over like that.
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
    let error = replay::<changed::Hesitant>("healthy").await.expect_err("a timer is no local activity");
    let noticed = matches!(error, WorkflowReplayError::Replay(WorkflowReplayFailure::Nondeterminism { .. }));
    assert!(noticed, "{error}");
}
