//! A worker with breakers on a real Temporal server under stress: many activities at once, no cache, a restart of the server,
//! and an outage of an hour.

#![allow(missing_docs, unreachable_pub, reason = "the SDK's macros make public items of their own")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, SystemTime},
};

use circuit_registry::{BreakersConfig, CircuitRegistry, WallClock, store, temporal::CircuitInterceptor};
use osint_activities::model::Status;
use osint_tests::{
    load::{self, FanOut, Size, expected, fan_out},
    test_env::{TestEnv, equinor},
    wait::eventually,
    worker::while_running,
};
use osint_worker::{
    dev::{
        DevStack,
        server::{DevServer, DevServerOptions},
    },
    error::CliError,
    run::{Settings, Tuning, run_until, workflow_interceptor},
    temporal::{history::export, starter::Investigation},
};
use temporalio_client::{Client, WorkflowGetResultOptions, WorkflowHandle, WorkflowHistory, tonic::IntoRequest};
use temporalio_common::{
    error::ApplicationFailure,
    protos::temporal::api::{
        common::v1::{TimeSkippingConfig, WorkflowType},
        taskqueue::v1::TaskQueue,
        workflowservice::v1::StartWorkflowExecutionRequest,
    },
};
use temporalio_sdk::{
    ActivityOptions, Runtime, Worker, WorkerOptions, WorkflowContext, WorkflowResult,
    activities::{ActivityContext, ActivityError, activities},
    workflow_replayer::{WorkflowReplayer, WorkflowReplayerOptions},
};
use temporalio_workflow::{workflow, workflow_methods};
use tokio::sync::oneshot;

/// Around the number at which `join_all` polls in another way, and well above it.
const SIZES: [u32; 2] = [31, 100];

#[tokio::test(flavor = "multi_thread")]
async fn many_parallel_activities_end_and_replay() -> anyhow::Result<()> {
    let server = DevServer::start(DevServerOptions::default()).await?;
    let client = server.client().await?;
    let runtime = Runtime::from_current_tokio(Default::default())?;
    for cached in [1_000, 0] {
        let queue = format!("load-{cached}");
        let script = async {
            for branches in SIZES {
                let id = format!("{queue}-{branches}");
                let size = Size { branches, in_turn: false, refused_every: 3 };
                assert_eq!(fan_out(&client, &queue, &id, size).await?, expected(size), "{id}");
                let history = WorkflowHistory::from_json(&export(&client, &id, None, None).await?)?;
                let options = WorkflowReplayerOptions::new().workflow_interceptor(workflow_interceptor());
                let replayer = WorkflowReplayer::new(options.register_workflow::<FanOut>()?.build())?;
                replayer.replay_workflow(history).await?;
            }
            Ok(())
        };
        load::with_worker(&runtime, &client, &queue, cached, script).await?;
    }
    server.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_investigation_replayed_at_every_step_is_complete() -> Result<(), CliError> {
    let env = TestEnv::start().await?;
    let uncached = Tuning { cached_workflows: 0, ..Tuning::default() };
    env.with_tuned_worker("defaults: { timeout: 20s }", uncached, async |bench| {
        let report = bench.investigate(equinor()).await?;
        assert!(report.coverage.gaps.is_empty(), "{:#?}", report.coverage);
        Ok(())
    })
    .await?;
    env.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_investigation_survives_a_server_restart() -> Result<(), CliError> {
    let folder = tempfile::tempdir().map_err(CliError::failure)?;
    let database = folder.path().join("temporal.db").display().to_string();
    let kept = DevServerOptions { extra: vec!["--db-filename".to_owned(), database], ..DevServerOptions::default() };
    let stack = DevStack::start(kept.clone(), &[]).await?;
    let registry = CircuitRegistry::new(BreakersConfig::default());
    let (activities, client) = (stack.activities(&registry)?, stack.server.client().await?);
    let DevStack { server, simulator } = stack;
    let settings = Settings { task_queue: "restarted".to_owned(), ..Settings::default() };
    let server = run_until(client.clone(), registry, activities, settings, async |_| {
        // One answer arrives while the server is away, and one only after it is back.
        simulator.set_fault("nominatim", "slow:1s").await.map_err(CliError::failure)?;
        simulator.set_fault("gleif", "hang").await.map_err(CliError::failure)?;
        let investigation = Investigation::start(&client, "restarted", equinor()).await?;
        let calls = |source| simulator.calls(source).map_or(0, |calls| calls.total);
        eventually("both are asked", async || (calls("nominatim") > 0 && calls("gleif") > 0).then_some(())).await;
        let port = server.address().rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        server.stop().await;
        simulator.clear("gleif").await.map_err(CliError::failure)?;
        let server = DevServer::start(DevServerOptions { port, ..kept }).await?;
        let report = investigation.report().await?;
        assert!(report.coverage.gaps.is_empty(), "{:#?}", report.coverage);
        for source in ["nominatim", "gleif"] {
            let mut of = report.findings.iter().filter(|finding| finding.source == source);
            assert!(of.any(|finding| finding.status == Status::Complete), "{source}: {report:#?}");
        }
        Ok(server)
    })
    .await?;
    server.stop().await;
    simulator.shutdown().await;
    Ok(())
}

/// A service that is down once, for an hour by its breaker.
const HOUR: &str = "
services:
  bureau: { fail_max: 1, reset_timeout: 1h, on_open: wait, activities: [ask] }
";

pub struct Bureau {
    asked: Arc<AtomicU32>,
}

#[activities]
impl Bureau {
    #[activity(name = "ask")]
    pub async fn ask(self: Arc<Self>, _ctx: ActivityContext) -> Result<u32, ActivityError> {
        match self.asked.fetch_add(1, Ordering::Relaxed) + 1 {
            1 => Err(ApplicationFailure::new("down").into()),
            nth => Ok(nth),
        }
    }
}

#[workflow]
#[derive(Default)]
pub struct Patient;

#[workflow_methods]
impl Patient {
    /// How often the bureau was asked until it answered, and how many seconds passed in the workflow's own time.
    #[run]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<(u32, u64)> {
        let from = ctx.workflow_time();
        let options = ActivityOptions::with_start_to_close_timeout(Duration::from_secs(30)).build();
        let asked = ctx.execute_activity(Bureau::ask, (), options).await?;
        let passed = ctx.workflow_time().zip(from).and_then(|(now, from)| now.duration_since(from).ok());
        Ok((asked, passed.unwrap_or_default().as_secs()))
    }
}

/// A clock that is ahead of the system's.
struct Ahead(Duration);

impl WallClock for Ahead {
    #[expect(clippy::disallowed_methods, reason = "a clock reads the clock")]
    fn now(&self) -> SystemTime {
        SystemTime::now() + self.0
    }
}

/// Runs a worker whose breakers live in `file` and whose clock is ahead, for as long as `script` takes.
async fn at<T>(
    ahead: Duration,
    file: &str,
    client: &Client,
    asked: &Arc<AtomicU32>,
    script: impl AsyncFnOnce(&CircuitRegistry) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let kept = store::open(file).map_err(anyhow::Error::msg)?;
    let config = BreakersConfig::from_yaml(HOUR)?;
    let registry = CircuitRegistry::builder().config(config).store(kept).wall_clock(Ahead(ahead)).build();
    let (end, ended) = oneshot::channel::<()>();
    let keeper = tokio::spawn(registry.restore().await.run(async { drop(ended.await) }));
    let mut options = WorkerOptions::new("patient")
        .activity_inbound_interceptor(CircuitInterceptor::new(registry.clone()))
        .register_activities(Bureau { asked: asked.clone() })
        .register_workflow::<Patient>()?
        .build();
    options.register_workflow_interceptors(vec![workflow_interceptor()]);
    let runtime = Runtime::from_current_tokio(Default::default())?;
    let outcome = while_running(Worker::new(&runtime, client.clone(), options)?, script(&registry)).await;
    drop(end);
    keeper.await?;
    outcome
}

/// The server's clock jumps over the wait as soon as nothing else is to be done; the breaker's clock jumps with a worker that
/// is started anew an hour later.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_breaker_lets_calls_through_after_an_hour() -> anyhow::Result<()> {
    let extra = ["--dynamic-config-value", "frontend.WorkflowTimeSkippingEnabled=true"].map(str::to_owned).to_vec();
    let server = DevServer::start(DevServerOptions { extra, ..DevServerOptions::default() }).await?;
    let client = server.client().await?;
    let folder = tempfile::tempdir()?;
    let file = format!("file:{}", folder.path().join("breakers").display());
    let asked = Arc::new(AtomicU32::new(0));

    let request = StartWorkflowExecutionRequest {
        namespace: "default".to_owned(),
        workflow_id: "patient".to_owned(),
        request_id: "patient".to_owned(),
        workflow_type: Some(WorkflowType { name: "Patient".to_owned() }),
        task_queue: Some(TaskQueue { name: "patient".to_owned(), ..TaskQueue::default() }),
        time_skipping_config: Some(TimeSkippingConfig { enabled: true, ..TimeSkippingConfig::default() }),
        ..StartWorkflowExecutionRequest::default()
    };
    client.connection().workflow_service().start_workflow_execution(request.into_request()).await?;

    at(Duration::ZERO, &file, &client, &asked, async |registry| {
        let bureau = registry.breaker("bureau");
        eventually("attempts wait for the breaker", async || (bureau.view().calls.rejected_open > 0).then_some(()))
            .await;
        Ok(())
    })
    .await?;
    assert_eq!(asked.load(Ordering::Relaxed), 1, "an open breaker let an attempt through");

    let (times, seconds) = at(Duration::from_secs(3_700), &file, &client, &asked, async |_| {
        let handle: WorkflowHandle<Client, Patient> = client.get_workflow_handle("patient");
        Ok(handle.get_result(WorkflowGetResultOptions::default()).await?)
    })
    .await?;
    assert_eq!(times, 2, "the attempts that waited reached the bureau");
    assert!(seconds >= 3_600, "the workflow waited for {seconds} s");
    server.stop().await;
    Ok(())
}
