//! Starting an investigation, following it to its report, and ending it.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    time::{Duration, SystemTime},
};

use jiff::Timestamp;
use temporalio_client::{
    Client, NamespacedClient, WorkflowCancelOptions, WorkflowDescribeOptions, WorkflowExecutionDescription,
    WorkflowExecutionStatus, WorkflowGetResultOptions, WorkflowHandle, WorkflowQueryOptions, WorkflowStartOptions,
    WorkflowTerminateOptions,
    errors::{WorkflowGetResultError, WorkflowInteractionError, WorkflowStartError},
    tonic::{Code, IntoRequest},
};
use temporalio_common::{
    MemoValues,
    error::IncomingError,
    protos::temporal::api::{
        enums::v1::{PendingWorkflowTaskState, TaskQueueType},
        taskqueue::v1::{PollerInfo, TaskQueue},
        workflowservice::v1::DescribeTaskQueueRequest,
    },
    search_attributes::SearchAttributes,
};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::{attributes, cause, find};
use crate::{
    error::CliError,
    report::{Report, Step, VERSION},
    workflow::{
        InvestigationInput, InvestigationWorkflow,
        attributes::{RUNNING, VERDICT},
    },
};

/// How often `follow` asks for progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(150);

/// How long a worker may take to answer a query. It answers in milliseconds; without a worker nobody answers.
const QUERY: Duration = Duration::from_secs(2);

/// How often `follow` asks the server whether a worker has taken the workflow.
const STALL_INTERVAL: Duration = Duration::from_secs(2);

/// A workflow that no worker takes for so long has none.
const STALLED: Duration = Duration::from_secs(6);

/// A live worker starts a poll at least this often. The server lists pollers for minutes after their last one.
const POLLS: Duration = Duration::from_secs(75);

/// The server ends an investigation that takes longer. It then has no worker.
const EXECUTION_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// An investigation on the server.
pub struct Investigation {
    client: Client,
    handle: WorkflowHandle<Client, InvestigationWorkflow>,
    id: String,
}

/// A random id. It holds nothing about the subject, because ids are plain text on the server, in logs and in URLs.
fn fresh_id() -> String {
    format!("investigation-{:016x}", RandomState::new().hash_one(()))
}

impl Investigation {
    /// Starts an investigation of a subject, which must be [normalised](osint_activities::model::Subject::normalised).
    ///
    /// # Errors
    /// When the server does not accept it.
    pub async fn start(
        client: &Client,
        task_queue: &str,
        input: impl Into<InvestigationInput>,
    ) -> Result<Self, CliError> {
        let id = fresh_id();
        let options = WorkflowStartOptions::new(task_queue, id.as_str()).execution_timeout(EXECUTION_TIMEOUT).build();
        Self::begin(client, id, input.into(), options).await.map_err(|error| not_started(&error))
    }

    /// As [`Investigation::start`], and makes it findable: by its verdict, and by its subject for holders of the key. Where
    /// the server does not let us create search attributes, it starts without them and says so in the second value.
    ///
    /// # Errors
    /// As [`Investigation::start`].
    pub async fn start_findable(
        client: &Client,
        task_queue: &str,
        input: impl Into<InvestigationInput>,
    ) -> Result<(Self, Option<CliError>), CliError> {
        let (id, input) = (fresh_id(), input.into());
        let memo = || {
            let mut memo = MemoValues::new();
            memo.insert(find::SUBJECT, input.subject.clone());
            memo
        };
        let plain = || {
            let options = WorkflowStartOptions::new(task_queue, id.as_str());
            options.execution_timeout(EXECUTION_TIMEOUT).memo(memo()).build()
        };
        let refused = match attributes::ensure(client).await {
            Ok(_) => {
                let options = WorkflowStartOptions::new(task_queue, id.as_str());
                let running = SearchAttributes::new([VERDICT.value_set(RUNNING.to_owned())]);
                let options = options.execution_timeout(EXECUTION_TIMEOUT).memo(memo()).search_attributes(running);
                match Self::begin(client, id.clone(), input.clone(), options.build()).await {
                    Ok(started) => return Ok((started, None)),
                    // A server takes some seconds to learn an attribute that was created just now.
                    Err(WorkflowStartError::Rpc(status)) if status.code() == Code::InvalidArgument => None,
                    Err(error) => return Err(not_started(&error)),
                }
            }
            Err(refused) => Some(refused),
        };
        let started = Self::begin(client, id.clone(), input.clone(), plain()).await;
        Ok((started.map_err(|error| not_started(&error))?, refused))
    }

    async fn begin(
        client: &Client,
        id: String,
        input: InvestigationInput,
        options: WorkflowStartOptions,
    ) -> Result<Self, WorkflowStartError> {
        client.start_workflow(InvestigationWorkflow::run, input, options).await?;
        Ok(Self::existing(client, &id))
    }

    /// An investigation that was started before.
    #[must_use]
    pub fn existing(client: &Client, id: &str) -> Self {
        Self { client: client.clone(), handle: client.get_workflow_handle(id), id: id.to_owned() }
    }

    /// Its id, which is the id of its workflow.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits for the report. A cancelled investigation has a report of what was learnt until then.
    ///
    /// # Errors
    /// When there is no such investigation, the subject was refused, or the workflow ended without a report.
    pub async fn report(&self) -> Result<Report, CliError> {
        let report = match self.handle.get_result(WorkflowGetResultOptions::default()).await {
            Err(WorkflowGetResultError::Cancelled { details }) => details.deserialize().map_err(|_| {
                CliError::failure(format!("investigation {} was cancelled before there was a report", self.id))
            })?,
            result => result.map_err(|error| self.failed(&error))?,
        };
        if report.version > VERSION {
            return Err(CliError::failure(format!("the report of {} was made by a newer version of osint", self.id))
                .hint("update this program to read it"));
        }
        Ok(report)
    }

    /// The report, if the investigation has ended; `None` while it goes on.
    ///
    /// # Errors
    /// As [`Investigation::report`].
    pub async fn report_if_ended(&self) -> Result<Option<Report>, CliError> {
        match self.describe().await?.status() {
            WorkflowExecutionStatus::Running | WorkflowExecutionStatus::Paused => Ok(None),
            _ => self.report().await.map(Some),
        }
    }

    /// The report with the answers so far, from a worker.
    ///
    /// # Errors
    /// When no worker answers, or it knows no such question.
    pub async fn report_so_far(&self) -> Result<Report, CliError> {
        let query = self.handle.query(InvestigationWorkflow::report_so_far, (), WorkflowQueryOptions::default());
        match timeout(QUERY * 2, query).await {
            Ok(Ok(Some(report))) => Ok(report),
            Ok(Ok(None)) => Err(CliError::failure(format!("investigation {} has no plan yet", self.id))),
            Ok(Err(error)) => Err(CliError::failure(format!(
                "no worker can say how far investigation {} is: {}",
                self.id,
                cause(&error)
            ))),
            Err(_) => Err(CliError::failure(format!("no worker answers for investigation {}", self.id))
                .hint("start one with `osint worker`; the investigation waits for it")),
        }
    }

    /// Waits for the report. Calls `show` with all steps, a few times a second.
    ///
    /// # Errors
    /// As [`Investigation::report`], and when no worker takes the investigation.
    pub async fn follow(&self, mut show: impl FnMut(&[Step])) -> Result<Report, CliError> {
        self.describe().await?;
        let mut result = std::pin::pin!(self.report());
        let mut ticks = interval(PROGRESS_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut checked = Instant::now();
        let report = loop {
            tokio::select! {
                report = &mut result => break report?,
                _ = ticks.tick() => {
                    // While no worker answers the query, there is no progress to show.
                    show(&self.progress().await);
                    if checked.elapsed() >= STALL_INTERVAL {
                        self.require_taken().await?;
                        checked = Instant::now();
                    }
                }
            }
        };
        show(&self.progress().await);
        Ok(report)
    }

    /// Asks the investigation to end. A worker ends it; without one, only [`Investigation::terminate`] does.
    ///
    /// # Errors
    /// When there is no such investigation, or it has ended.
    pub async fn cancel(&self) -> Result<(), CliError> {
        let options = WorkflowCancelOptions::builder().reason("asked by a user".to_owned()).build();
        self.handle.cancel(options).await.map_err(|error| self.missing(&error))
    }

    /// Ends the investigation without a report. Needs no worker.
    ///
    /// # Errors
    /// As [`Investigation::cancel`].
    pub async fn terminate(&self) -> Result<(), CliError> {
        let options = WorkflowTerminateOptions::builder().reason("asked by a user".to_owned()).build();
        self.handle.terminate(options).await.map_err(|error| self.missing(&error))
    }

    /// The word for how far it is, such as `running`.
    ///
    /// # Errors
    /// When there is no such investigation.
    pub async fn status(&self) -> Result<&'static str, CliError> {
        Ok(find::status_word(self.describe().await?.status()))
    }

    async fn describe(&self) -> Result<WorkflowExecutionDescription, CliError> {
        self.handle.describe(WorkflowDescribeOptions::default()).await.map_err(|error| self.missing(&error))
    }

    async fn progress(&self) -> Vec<Step> {
        let query = self.handle.query(InvestigationWorkflow::progress, (), WorkflowQueryOptions::default());
        timeout(QUERY, query).await.ok().and_then(Result::ok).unwrap_or_default()
    }

    /// Reports a workflow that waits for a worker. A worker that ended minutes ago is still in the server's list, so the
    /// waiting task itself is the proof.
    async fn require_taken(&self) -> Result<(), CliError> {
        let Ok(described) = self.describe().await else { return Ok(()) };
        let Some(task) = &described.raw().pending_workflow_task else { return Ok(()) };
        let scheduled = task.original_scheduled_time.or(task.scheduled_time);
        let scheduled = scheduled.and_then(|at| SystemTime::try_from(at).ok());
        let waited = scheduled.and_then(|at| since(at, Timestamp::now()));
        let waits = task.state == i32::from(PendingWorkflowTaskState::Scheduled);
        if !waits || waited.is_none_or(|waited| waited < STALLED) {
            return Ok(());
        }
        let queue = described.raw().execution_config.as_ref().and_then(|config| config.task_queue.as_ref());
        let queue = queue.map(|queue| queue.name.clone()).unwrap_or_default();
        let pollers = pollers(&self.client, &queue).await.unwrap_or_default();
        Err(no_worker(&queue, &pollers, Some(&self.id)))
    }

    fn failed(&self, error: &WorkflowGetResultError) -> CliError {
        let id = &self.id;
        match error {
            WorkflowGetResultError::Failed(failure) => match &**failure {
                IncomingError::Application(app) if app.type_name() == Some("InvalidSubject") => CliError::user(app),
                other => CliError::failure(format!("investigation {id} failed: {other}")),
            },
            WorkflowGetResultError::NotFound(_) => unknown(id),
            WorkflowGetResultError::Terminated { .. } => {
                CliError::failure(format!("investigation {id} was terminated, so it has no report"))
            }
            WorkflowGetResultError::TimedOut => {
                CliError::failure(format!("investigation {id} took too long and was ended without a report"))
            }
            WorkflowGetResultError::PayloadConversion(error) => unreadable(id, &cause(error)),
            other => CliError::failure(format!("investigation {id} has no report: {}", cause(other))),
        }
    }

    fn missing(&self, error: &WorkflowInteractionError) -> CliError {
        match error {
            WorkflowInteractionError::NotFound(status) if status.message().contains("already completed") => {
                CliError::user(format!("investigation {} has ended already", self.id))
                    .hint(format!("`osint report {}` shows its report", self.id))
            }
            WorkflowInteractionError::NotFound(_) => unknown(&self.id),
            WorkflowInteractionError::PayloadConversion(error) => unreadable(&self.id, &cause(error)),
            other => CliError::failure(format!("investigation {}: {}", self.id, cause(other))),
        }
    }
}

fn unknown(id: &str) -> CliError {
    CliError::user(format!("there is no investigation '{}' in this namespace", id.escape_debug()))
        .hint("`osint list` shows those that there are; the server forgets them after some days")
}

fn unreadable(id: &str, why: &str) -> CliError {
    CliError::failure(format!("investigation {id} cannot be read: {why}"))
        .hint("give the key that encrypted it in OSINT_CODEC_KEY, or use the version of osint that made it")
}

fn not_started(error: &WorkflowStartError) -> CliError {
    CliError::failure(format!("the investigation cannot be started: {}", cause(error)))
}

/// Checks that a worker takes tasks from the queue. Without one, an investigation would wait and show nothing.
///
/// # Errors
/// When there is none.
pub async fn require_worker(client: &Client, task_queue: &str) -> Result<(), CliError> {
    let pollers = pollers(client, task_queue).await?;
    let now = Timestamp::now();
    let alive = |poller: &PollerInfo| last_seen(poller, now).is_none_or(|ago| ago < POLLS);
    if pollers.iter().any(alive) { Ok(()) } else { Err(no_worker(task_queue, &pollers, None)) }
}

/// How long ago a worker last asked for tasks.
fn last_seen(poller: &PollerInfo, now: Timestamp) -> Option<Duration> {
    since(SystemTime::try_from(poller.last_access_time?).ok()?, now)
}

/// The time from `then` to `now`; `None` if `then` is later.
fn since(then: SystemTime, now: Timestamp) -> Option<Duration> {
    SystemTime::from(now).duration_since(then).ok()
}

/// The workers that asked for tasks of the queue in the last minutes.
async fn pollers(client: &Client, task_queue: &str) -> Result<Vec<PollerInfo>, CliError> {
    let request = DescribeTaskQueueRequest {
        namespace: client.namespace(),
        task_queue: Some(TaskQueue { name: task_queue.to_owned(), ..Default::default() }),
        task_queue_type: TaskQueueType::Workflow.into(),
        ..Default::default()
    };
    match client.connection().workflow_service().describe_task_queue(request.into_request()).await {
        Ok(answer) => Ok(answer.into_inner().pollers),
        Err(status) => {
            let what = format!("the Temporal server refuses namespace '{}': {}", client.namespace(), status.message());
            Err(CliError::failure(what).hint("name an existing one with --namespace or TEMPORAL_NAMESPACE"))
        }
    }
}

/// The error about a queue without a worker. `waiting` is the investigation that waits there.
fn no_worker(queue: &str, pollers: &[PollerInfo], waiting: Option<&str>) -> CliError {
    let now = Timestamp::now();
    let seen = pollers.iter().filter_map(|poller| last_seen(poller, now)).min();
    let seen = seen.map(|ago| format!("; one asked for tasks {} s ago", ago.as_secs())).unwrap_or_default();
    let start = "start one with `osint worker` (or `osint dev`)";
    let next = match waiting {
        None => format!("{start}, or name another queue with --task-queue"),
        Some(id) => format!(
            "{start}: investigation {id} waits for it\n`osint follow {id}` shows it, `osint cancel {id} --force` ends it"
        ),
    };
    CliError::failure(format!("no worker takes tasks from the queue '{queue}'{seen}")).hint(next)
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

    #[test]
    fn a_worker_of_minutes_ago_is_no_worker() {
        let now = Timestamp::now();
        let at = |ago: u64| PollerInfo {
            last_access_time: Some((SystemTime::from(now) - Duration::from_secs(ago)).into()),
            ..PollerInfo::default()
        };
        assert!(last_seen(&at(180), now).is_some_and(|ago| ago > POLLS));
        let error = no_worker("osint", &[at(300), at(180)], Some("investigation-1")).to_string();
        assert!(error.contains("one asked for tasks 18") && error.contains("osint follow investigation-1"), "{error}");
    }
}
