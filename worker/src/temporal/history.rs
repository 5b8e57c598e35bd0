//! Exports a workflow's history in the form that the SDK's replayer reads.

use temporalio_client::{
    Client, NamespacedClient, WorkflowExecutionInfo, WorkflowFetchHistoryOptions, errors::WorkflowInteractionError,
};
use temporalio_common::{
    data_converters::SerializationContextData, payload_visitor::decode_payloads,
    protos::temporal::api::history::v1::History,
};

use super::codec::Codec;
use crate::error::CliError;

/// Fetches the history of a workflow as JSON: of one run, or of the latest. Payloads stay as they are on the server, or
/// are decrypted by `keys`.
///
/// # Errors
/// When there is no such workflow (the user's mistake), it cannot be read, or a key is missing.
pub async fn export(
    client: &Client,
    workflow_id: &str,
    run_id: Option<String>,
    keys: Option<&Codec>,
) -> Result<Vec<u8>, CliError> {
    let info = WorkflowExecutionInfo::builder()
        .namespace(client.namespace())
        .workflow_id(workflow_id)
        .maybe_run_id(run_id)
        .build();
    let handle = info.bind_untyped(client.clone());
    let events = handle.fetch_history(WorkflowFetchHistoryOptions::default()).into_events().await;
    let mut history = History { events: events.map_err(|error| unreadable(workflow_id, &error))? };
    if let Some(keys) = keys {
        let decoded = decode_payloads(&mut history, keys, &SerializationContextData::None).await;
        decoded.map_err(|error| {
            CliError::failure(format!("the history of '{workflow_id}' cannot be decrypted: {error}"))
        })?;
    }
    serde_json::to_vec(&history).map_err(|error| CliError::failure(format!("cannot write JSON: {error}")))
}

fn unreadable(id: &str, error: &WorkflowInteractionError) -> CliError {
    match error {
        WorkflowInteractionError::NotFound(_) => {
            CliError::user(format!("there is no workflow '{id}' in this namespace"))
                .hint("`temporal workflow list` shows those that there are")
        }
        other => CliError::failure(format!("the history of '{id}' cannot be read: {other}")),
    }
}
