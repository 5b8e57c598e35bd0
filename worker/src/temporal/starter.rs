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

/// How often progress is asked for.
const LOOK: Duration = Duration::from_millis(150);

/// An investigation that takes longer has lost its workers.
const GIVE_UP: Duration = Duration::from_secs(15 * 60);

/// An investigation under way.
pub struct Investigation {
    handle: WorkflowHandle<Client, InvestigationWorkflow>,
    id: String,
}

/// An id that says nothing about the subject: ids are plain text on the server, in logs and in URLs.
fn fresh_id() -> String {
    format!("investigation-{:016x}", RandomState::new().hash_one(()))
}

impl Investigation {
    /// Starts an investigation of `subject`, which must be [normalised](Subject::normalised).
    ///
    /// # Errors
    /// When the server does not take it.
    pub async fn start(client: &Client, task_queue: &str, subject: Subject) -> Result<Self, CliError> {
        let id = fresh_id();
        let options = WorkflowStartOptions::new(task_queue, id.as_str()).execution_timeout(GIVE_UP).build();
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
    /// When the subject was refused, or the workflow ended in another way than with a report.
    pub async fn report(&self) -> Result<Report, CliError> {
        self.handle.get_result(WorkflowGetResultOptions::default()).await.map_err(|error| self.failed(&error))
    }

    /// Waits for the report and tells `heard` of every step whose outcome is new.
    ///
    /// # Errors
    /// As [`Investigation::report`].
    pub async fn follow(&self, mut heard: impl FnMut(&Step)) -> Result<Report, CliError> {
        let mut told = Vec::new();
        let mut result = std::pin::pin!(self.report());
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let report = loop {
            tokio::select! {
                report = &mut result => break report?,
                _ = looks.tick() => {
                    // Progress is a courtesy: while no worker answers, there is none.
                    tell_new(&self.progress().await, &mut told, &mut heard);
                }
            }
        };
        tell_new(&self.progress().await, &mut told, &mut heard);
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

fn tell_new(steps: &[Step], told: &mut Vec<String>, heard: &mut impl FnMut(&Step)) {
    for step in steps {
        if step.status.is_some() && !told.contains(&step.operation) {
            told.push(step.operation.clone());
            heard(step);
        }
    }
}

/// Makes sure that somebody takes tasks from the queue; otherwise an investigation would wait without a word.
///
/// # Errors
/// When nobody does.
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
    fn ids_differ_and_say_nothing() {
        let ids: std::collections::HashSet<_> = (0..1000).map(|_| fresh_id()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| id.len() == "investigation-".len() + 16));
    }
}
