//! Starting an investigation and following it to its report.

use std::{collections::hash_map::RandomState, hash::BuildHasher, time::Duration};

use osint_activities::model::Subject;
use temporalio_client::{
    Client, NamespacedClient, WorkflowGetResultOptions, WorkflowHandle, WorkflowQueryOptions, WorkflowStartOptions,
    errors::WorkflowGetResultError, tonic::IntoRequest,
};
use temporalio_common::{
    error::IncomingError,
    protos::temporal::api::{
        enums::v1::TaskQueueType, taskqueue::v1::TaskQueue, workflowservice::v1::DescribeTaskQueueRequest,
    },
};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    error::CliError,
    report::{Report, Step},
    workflow::InvestigationWorkflow,
};

/// How often `follow` asks for progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(150);

/// The server ends an investigation that takes longer. It then has no worker.
const EXECUTION_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// An investigation under way.
pub struct Investigation {
    handle: WorkflowHandle<Client, InvestigationWorkflow>,
    id: String,
}

/// A random id. It holds nothing about the subject, because ids are plain text on the server, in logs and in URLs.
fn fresh_id() -> String {
    format!("investigation-{:016x}", RandomState::new().hash_one(()))
}

impl Investigation {
    /// Starts an investigation of `subject`, which must be [normalised](Subject::normalised).
    ///
    /// # Errors
    /// When the server does not accept it.
    pub async fn start(client: &Client, task_queue: &str, subject: Subject) -> Result<Self, CliError> {
        let id = fresh_id();
        let options = WorkflowStartOptions::new(task_queue, id.as_str()).execution_timeout(EXECUTION_TIMEOUT).build();
        let started = client.start_workflow(InvestigationWorkflow::run, subject, options).await;
        started.map_err(|error| CliError::failure(format!("the investigation cannot be started: {error}")))?;
        Ok(Self { handle: client.get_workflow_handle(id.as_str()), id })
    }

    /// Its id, which is the id of its workflow.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits for the report.
    ///
    /// # Errors
    /// When the subject was refused, or the workflow ended without a report.
    pub async fn report(&self) -> Result<Report, CliError> {
        self.handle.get_result(WorkflowGetResultOptions::default()).await.map_err(|error| self.failed(&error))
    }

    /// Waits for the report. Calls `on_step` for every step that has a new outcome.
    ///
    /// # Errors
    /// As [`Investigation::report`].
    pub async fn follow(&self, mut on_step: impl FnMut(&Step)) -> Result<Report, CliError> {
        let mut shown = Vec::new();
        let mut result = std::pin::pin!(self.report());
        let mut ticks = interval(PROGRESS_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let report = loop {
            tokio::select! {
                report = &mut result => break report?,
                _ = ticks.tick() => {
                    // While no worker answers the query, there is no progress to show.
                    show_new(&self.progress().await, &mut shown, &mut on_step);
                }
            }
        };
        show_new(&self.progress().await, &mut shown, &mut on_step);
        Ok(report)
    }

    async fn progress(&self) -> Vec<Step> {
        let query = self.handle.query(InvestigationWorkflow::progress, (), WorkflowQueryOptions::default());
        query.await.unwrap_or_default()
    }

    fn failed(&self, error: &WorkflowGetResultError) -> CliError {
        if let WorkflowGetResultError::Failed(failure) = error {
            return match &**failure {
                IncomingError::Application(app) if app.type_name() == Some("InvalidSubject") => CliError::user(app),
                other => CliError::failure(format!("investigation {} failed: {other}", self.id)),
            };
        }
        CliError::failure(format!("investigation {} has no report: {error}", self.id))
    }
}

fn show_new(steps: &[Step], shown: &mut Vec<String>, on_step: &mut impl FnMut(&Step)) {
    for step in steps {
        if step.status.is_some() && !shown.contains(&step.operation) {
            shown.push(step.operation.clone());
            on_step(step);
        }
    }
}

/// Checks that a worker takes tasks from the queue. Without one, an investigation would wait and show nothing.
///
/// # Errors
/// When there is none.
pub async fn require_worker(client: &Client, task_queue: &str) -> Result<(), CliError> {
    let request = DescribeTaskQueueRequest {
        namespace: client.namespace(),
        task_queue: Some(TaskQueue { name: task_queue.to_owned(), ..Default::default() }),
        task_queue_type: TaskQueueType::Workflow.into(),
        ..Default::default()
    };
    let answer = client.connection().workflow_service().describe_task_queue(request.into_request()).await;
    let pollers = match answer {
        Ok(answer) => answer.into_inner().pollers,
        Err(status) => {
            let what = format!("the Temporal server refuses namespace '{}': {}", client.namespace(), status.message());
            return Err(CliError::failure(what).hint("name an existing one with --namespace or TEMPORAL_NAMESPACE"));
        }
    };
    if pollers.is_empty() {
        return Err(CliError::failure(format!("no worker takes tasks from the queue '{task_queue}'"))
            .hint("start one with `osint worker` (or `osint dev`), or name another queue with --task-queue"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_random_and_hold_nothing_else() {
        let ids: std::collections::HashSet<_> = (0..1000).map(|_| fresh_id()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| id.len() == "investigation-".len() + 16));
    }
}
