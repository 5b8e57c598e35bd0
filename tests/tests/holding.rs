//! A real server keeps work while a breaker is open. Nothing is refused, because nothing arrives.

#![allow(missing_docs, unreachable_pub, reason = "the SDK's macros make public items of their own")]

use std::time::Duration;

use circuit_registry::{
    BreakersConfig, CircuitRegistry, Override, State, Verdict,
    temporal::{CircuitInterceptor, QueuePauser},
};
use osint_tests::{wait, worker::while_running};
use osint_worker::dev::server::{DevServer, DevServerOptions};
use temporalio_client::{Client, WorkflowGetResultOptions, WorkflowStartOptions, tonic::IntoRequest};
use temporalio_common::protos::temporal::api::{
    enums::v1::TaskQueueType, taskqueue::v1::TaskQueue, workflowservice::v1::DescribeTaskQueueRequest,
};
use temporalio_sdk::{
    ActivityOptions, Runtime, Worker, WorkerOptions, WorkflowContext, WorkflowResult,
    activities::{ActivityContext, ActivityError, activities},
    workflows::join_all,
};
use temporalio_workflow::{workflow, workflow_methods};
use tokio::sync::oneshot;

/// Where workflows run, and where the activities of the service wait. Two queues, so that none is started eagerly.
const QUEUE: &str = "holding";
const PORTAL: &str = "portal";

const BREAKERS: &str = "services: { portal: { fail_max: 1, reset_timeout: 1s, on_open: wait, activities: [portal] } }";

pub struct Portal;

#[activities]
impl Portal {
    #[activity(name = "portal")]
    pub async fn portal(_ctx: ActivityContext) -> Result<(), ActivityError> {
        Ok(())
    }
}

#[workflow]
#[derive(Default)]
pub struct Asking;

#[workflow_methods]
impl Asking {
    /// Starts this many activities and counts those with an answer.
    #[run]
    pub async fn run(ctx: &mut WorkflowContext<Self>, times: usize) -> WorkflowResult<usize> {
        let options =
            ActivityOptions::with_start_to_close_timeout(Duration::from_secs(30)).task_queue(PORTAL.to_owned()).build();
        let asked = (0..times).map(|_| ctx.execute_activity(Portal::portal, (), options.clone()));
        Ok(join_all(asked).await.iter().filter(|answer| answer.is_ok()).count())
    }
}

/// The limit that the server has for the queue, in activities a second.
async fn limit(client: &Client) -> Option<f32> {
    let request = DescribeTaskQueueRequest {
        namespace: "default".to_owned(),
        task_queue: Some(TaskQueue { name: PORTAL.to_owned(), ..Default::default() }),
        task_queue_type: TaskQueueType::Activity.into(),
        report_config: true,
        ..Default::default()
    };
    let answer = client.connection().workflow_service().describe_task_queue(request.into_request()).await;
    let config = answer.expect("the server answers").into_inner().config?;
    Some(config.queue_rate_limit?.rate_limit?.requests_per_second)
}

async fn ask(client: &Client, id: &str, times: usize) -> anyhow::Result<usize> {
    let options = WorkflowStartOptions::new(QUEUE, id).build();
    let handle = client.start_workflow(Asking::run, times, options).await?;
    Ok(handle.get_result(WorkflowGetResultOptions::default()).await?)
}

async fn story(client: Client, registry: CircuitRegistry) -> anyhow::Result<()> {
    let breaker = registry.breaker("portal");
    let becomes = async |expected| {
        let look = || async { (limit(&client).await == expected).then_some(()) };
        wait::eventually("the queue has the limit of the breaker's state", look).await;
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let holding = QueuePauser::new(client.clone(), registry.clone())
        .queue("portal", PORTAL)
        .recovering([20.0, 50.0], Duration::from_millis(500));
    let holding = tokio::spawn(holding.run(async { drop(stopped.await) }));

    // An operator forces it open.
    breaker.force_open(Override::new("alice", "announced maintenance"));
    becomes(Some(0.0)).await;
    let released = async {
        wait::eventually("the activities wait", async || (backlog(&client).await == 3).then_some(())).await;
        breaker.auto();
    };
    let (answered, ()) = tokio::join!(ask(&client, "maintenance", 3), released);
    assert_eq!(answered?, 3);
    assert_eq!(breaker.view().calls.rejected(), 0, "nothing reached a worker in order to be refused");
    becomes(None).await;

    // An outage: without a call there is no probe, so the queue must let one activity through.
    breaker.try_acquire()?.settle(Verdict::Failure);
    becomes(Some(0.0)).await;
    assert_eq!(ask(&client, "outage", 3).await?, 3);
    assert_eq!(breaker.view().state, State::Closed);
    becomes(None).await;

    // After an orderly end no queue is paused.
    breaker.force_open(Override::new("alice", "announced maintenance"));
    becomes(Some(0.0)).await;
    drop(stop);
    holding.await?;
    becomes(None).await;
    Ok(())
}

/// Activities that the server keeps.
async fn backlog(client: &Client) -> i64 {
    let request = DescribeTaskQueueRequest {
        namespace: "default".to_owned(),
        task_queue: Some(TaskQueue { name: PORTAL.to_owned(), ..Default::default() }),
        task_queue_type: TaskQueueType::Activity.into(),
        report_stats: true,
        ..Default::default()
    };
    let answer = client.connection().workflow_service().describe_task_queue(request.into_request()).await;
    answer.expect("the server answers").into_inner().stats.map_or(0, |stats| stats.approximate_backlog_count)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_breaker_pauses_its_task_queue() -> anyhow::Result<()> {
    let server = DevServer::start(DevServerOptions::default()).await?;
    let client = server.client().await?;
    let registry = CircuitRegistry::new(BreakersConfig::from_yaml(BREAKERS)?);
    let runtime = Runtime::from_current_tokio(Default::default())?;
    let options = WorkerOptions::new(QUEUE).register_workflow::<Asking>()?.build();
    let workflows = Worker::new(&runtime, client.clone(), options)?;
    let options = WorkerOptions::new(PORTAL)
        .activity_inbound_interceptor(CircuitInterceptor::new(registry.clone()))
        .register_activities(Portal)
        .build();
    let activities = Worker::new(&runtime, client.clone(), options)?;
    while_running(workflows, while_running(activities, story(client.clone(), registry))).await?;
    server.stop().await;
    Ok(())
}
