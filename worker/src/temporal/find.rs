//! Finds investigations on the server, and ends them.

use futures::StreamExt as _;
use jiff::Timestamp;
use osint_activities::model::Subject;
use serde::Serialize;
use temporalio_client::{
    Client, ClientOptions, NamespacedClient, WorkflowExecution, WorkflowExecutionStatus, WorkflowListOptions,
    errors::ClientError, tonic::Code,
};

use super::cause;
use crate::{
    error::CliError,
    workflow::attributes::{DEGRADED_BY, VERDICT},
};

/// Name of a subject's entry in the memo of its investigation. The codec encrypts it.
pub(super) const SUBJECT: &str = "subject";

/// Which investigations to list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Started at this time or later.
    pub since: Option<Timestamp>,
    /// The server's word for how far they are, such as `Running`.
    pub status: Option<&'static str>,
    /// The word of their verdict.
    pub verdict: Option<&'static str>,
    /// A source that gave no full answer.
    pub degraded_by: Option<String>,
    /// Most rows.
    pub limit: usize,
}

/// One investigation in a list.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Its id.
    pub id: String,
    /// When it was started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How far it is, such as `completed`.
    pub status: &'static str,
    /// Its verdict, where the server keeps it.
    pub verdict: Option<String>,
    /// The sources without a full answer, where the server keeps them.
    pub degraded_by: Vec<String>,
    /// The company; `None` without the key of the codec.
    pub subject: Option<Subject>,
}

/// Lists investigations, newest first.
///
/// # Errors
/// When the filter names what cannot be a source (the user's mistake), or the server does not answer the query.
pub async fn list(client: &Client, filter: &Filter) -> Result<Vec<Row>, CliError> {
    let query = query(filter)?;
    match rows(client, &query, filter.limit).await {
        // A subject that this key does not decrypt: the rows are shown without subjects.
        Err(ClientError::PayloadConversion(_)) => {
            let options = ClientOptions::new(client.namespace()).build();
            let blind = Client::new(client.connection().clone(), options)
                .map_err(|error| CliError::failure(format!("cannot make a Temporal client: {error}")))?;
            rows(&blind, &query, filter.limit).await.map_err(|error| refused(&error))
        }
        rows => rows.map_err(|error| refused(&error)),
    }
}

async fn rows(client: &Client, query: &str, limit: usize) -> Result<Vec<Row>, ClientError> {
    let mut stream = client.list_workflows(query, WorkflowListOptions::builder().limit(limit).build());
    let mut rows = Vec::new();
    while let Some(execution) = stream.next().await {
        rows.push(row(&execution?));
    }
    Ok(rows)
}

fn row(execution: &WorkflowExecution) -> Row {
    let time = |time: Option<std::time::SystemTime>| time.and_then(|time| Timestamp::try_from(time).ok());
    let attributes = execution.search_attributes();
    Row {
        id: execution.id().to_owned(),
        started_at: time(execution.start_time()),
        ended_at: time(execution.close_time()),
        status: status_word(execution.status()),
        verdict: attributes.get(&VERDICT),
        degraded_by: attributes.get(&DEGRADED_BY).unwrap_or_default(),
        subject: execution.memo().get::<Subject>(SUBJECT).ok().flatten(),
    }
}

/// Our word for the server's status of a workflow.
pub(super) const fn status_word(status: WorkflowExecutionStatus) -> &'static str {
    match status {
        WorkflowExecutionStatus::Running => "running",
        WorkflowExecutionStatus::Completed => "completed",
        WorkflowExecutionStatus::Failed => "failed",
        WorkflowExecutionStatus::Canceled => "cancelled",
        WorkflowExecutionStatus::Terminated => "terminated",
        WorkflowExecutionStatus::TimedOut => "timed out",
        WorkflowExecutionStatus::Paused => "paused",
        _ => "unknown",
    }
}

/// The query of a filter. Only words of ours and checked names go into it.
fn query(filter: &Filter) -> Result<String, CliError> {
    let mut parts = vec!["WorkflowType = 'InvestigationWorkflow'".to_owned()];
    parts.extend(filter.since.map(|since| format!("StartTime >= '{since:.0}'")));
    parts.extend(filter.status.map(|status| format!("ExecutionStatus = '{status}'")));
    parts.extend(filter.verdict.map(|verdict| format!("{} = '{verdict}'", VERDICT.name())));
    if let Some(source) = &filter.degraded_by {
        if source.is_empty() || !source.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(
                CliError::user(format!("'{}' is no source", source.escape_debug())).hint("`osint sources` lists them")
            );
        }
        parts.push(format!("{} = '{source}'", DEGRADED_BY.name()));
    }
    Ok(parts.join(" AND "))
}

fn refused(error: &ClientError) -> CliError {
    if let ClientError::Rpc(status) = error
        && status.code() == Code::InvalidArgument
    {
        return CliError::failure("the server cannot search by verdict or source yet")
            .hint("create its search attributes with `osint setup`");
    }
    CliError::failure(format!("the investigations cannot be listed: {}", cause(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_checked_words_reach_the_query() {
        let filter = Filter {
            since: Some(Timestamp::UNIX_EPOCH),
            status: Some("Running"),
            verdict: Some("partial"),
            degraded_by: Some("northdata".to_owned()),
            limit: 1,
        };
        assert_eq!(
            query(&filter).expect("valid"),
            "WorkflowType = 'InvestigationWorkflow' AND StartTime >= '1970-01-01T00:00:00Z' AND ExecutionStatus = 'Running' \
             AND OsintVerdict = 'partial' AND OsintDegradedBy = 'northdata'"
        );
        for name in ["", "x' OR 'a'='a", "a b", "x\u{1b}[2J"] {
            let error = query(&Filter { degraded_by: Some(name.to_owned()), ..Filter::default() }).expect_err(name);
            assert!(error.code() == 2 && !error.to_string().contains('\u{1b}'));
        }
    }
}
