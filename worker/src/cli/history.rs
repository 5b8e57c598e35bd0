//! `osint history`: what happened in a workflow, as a file that a replay test reads.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use temporalio_client::{
    NamespacedClient, WorkflowExecutionInfo, WorkflowFetchHistoryOptions, WorkflowHistoryError,
    errors::WorkflowInteractionError,
};

use crate::{
    connect::{Target, connect},
    exit::Exit,
};

/// Subcommands of `osint history`.
#[derive(Debug, Subcommand)]
pub(super) enum History {
    /// Write a workflow's history as JSON that the SDK's replayer reads
    Export(Export),
}

/// Arguments of `osint history export`.
#[derive(Debug, Args)]
#[command(after_help = "\
The JSON is the Rust SDK's own dialect; `temporal workflow show -o json` writes another, which its replayer does not read.")]
pub(super) struct Export {
    /// Id of the workflow
    workflow_id: String,
    /// Run of the workflow; without it, the latest
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
    /// File to write; without it, standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
}

impl History {
    /// Fetches and writes the history.
    pub(super) async fn run(self) -> Result<(), Exit> {
        let Self::Export(Export { workflow_id, run_id, output, target }) = self;
        let client = connect(&target).await?;
        let info = WorkflowExecutionInfo::builder()
            .namespace(client.namespace())
            .workflow_id(workflow_id.as_str())
            .maybe_run_id(run_id)
            .build();
        let handle = info.bind_untyped(client);
        let json = handle.fetch_history(WorkflowFetchHistoryOptions::default()).to_json().await;
        let json = json.map_err(|error| unreadable(&workflow_id, &error))?;
        let Some(file) = output else {
            return super::print(&String::from_utf8_lossy(&json));
        };
        std::fs::write(&file, json).map_err(|error| Exit::user(format!("cannot write {}: {error}", file.display())))
    }
}

fn unreadable(id: &str, error: &WorkflowHistoryError) -> Exit {
    match error {
        WorkflowHistoryError::Fetch(WorkflowInteractionError::NotFound(_)) => {
            Exit::user(format!("there is no workflow '{id}' in this namespace"))
                .hint("`temporal workflow list` shows those that there are")
        }
        other => Exit::ours(format!("the history of '{id}' cannot be read: {other}")),
    }
}
