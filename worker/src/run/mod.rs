//! The wiring: everything a worker process starts is started here, and nowhere else.

use std::{net::SocketAddr, path::PathBuf, pin::pin, sync::Arc, time::Duration};

use circuit_registry::{
    CircuitRegistry, Keeper,
    temporal::{CircuitInterceptor, CircuitWorkflowInterceptor},
};
use osint_activities::activity::Activities;
use temporalio_client::Client;
use temporalio_sdk::{Worker, WorkerOptions, workflow_interceptors::WorkflowInterceptorConstructor};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
    task::JoinSet,
    time::{MissedTickBehavior, interval, timeout},
};

use crate::{
    admin::{Admin, Pulse, View},
    exit::Exit,
    telemetry::Metrics,
    tuning::Tuning,
    workflow::{Desk, InvestigationWorkflow},
};

/// The task queue of workflows and activities, unless told otherwise.
pub const TASK_QUEUE: &str = "osint";

/// Beyond the grace period, tasks are given up: the server will hand them to another worker.
const HARD_STOP: Duration = Duration::from_secs(5);

/// How a worker is to run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The queue to take tasks from.
    pub task_queue: String,
    /// Where the admin server listens; `None` starts none.
    pub admin: Option<SocketAddr>,
    /// The file to take changed thresholds from while running, if they came from one.
    pub thresholds: Option<PathBuf>,
    /// How long running activities may go on after the worker was told to stop.
    pub grace: Duration,
    /// How much to take on, how fast, and as which version.
    pub tuning: Tuning,
}

impl Default for Settings {
    fn default() -> Self {
        let (task_queue, tuning) = (TASK_QUEUE.to_owned(), Tuning::default());
        Self { task_queue, admin: None, thresholds: None, grace: Duration::from_secs(10), tuning }
    }
}

/// Runs a worker until `script` is done, then stops it gracefully. The script is told where the admin server listens.
///
/// # Errors
/// When the worker cannot start or ends by itself, or what the script returns.
pub async fn run_until<T, S>(
    client: Client,
    registry: CircuitRegistry,
    activities: Activities,
    settings: Settings,
    script: impl FnOnce(Option<SocketAddr>) -> S,
) -> Result<T, Exit>
where
    S: Future<Output = Result<T, Exit>>,
{
    let (metrics, runtime) = Metrics::start(&registry)?;
    // Before the first task is taken: what was open stays open.
    let kept = Kept::spawn(registry.restore().await);
    let pulse = Pulse::default();
    let admin = match settings.admin {
        None => None,
        Some(address) => {
            let (registry, metrics) = (registry.clone(), Arc::new(metrics));
            let view = View { registry, metrics, client: client.clone(), pulse: pulse.clone() };
            Some(Admin::start(address, view).await?)
        }
    };
    // Dropped with the set, the watch ends with the worker.
    let mut watch = JoinSet::new();
    if let Some(file) = settings.thresholds {
        watch.spawn(follow(registry.clone(), file));
    }
    let cannot = |error: &dyn std::fmt::Display| Exit::ours(format!("the worker cannot start: {error}"));
    let tuning = &settings.tuning;
    let (own_rate, queue_rate) = tuning.rates();
    let mut options = WorkerOptions::new(settings.task_queue.as_str())
        .tuner(tuning.slots())
        .maybe_workflow_task_poller_behavior(tuning.workflow_polls())
        .maybe_activity_task_poller_behavior(tuning.activity_polls())
        .max_cached_workflows(tuning.cache())
        .maybe_max_worker_activities_per_second(own_rate)
        .maybe_max_task_queue_activities_per_second(queue_rate)
        .maybe_deployment_options(tuning.version())
        .activity_inbound_interceptor(CircuitInterceptor::new(registry.clone()))
        .register_activities(activities)
        .register_activities(Desk::new(registry))
        .graceful_shutdown_period(settings.grace)
        .register_workflow::<InvestigationWorkflow>()
        .map_err(|error| cannot(&error))?
        .build();
    options.register_workflow_interceptors(vec![workflow_interceptor()]);
    let mut worker = Worker::new(&runtime, client, options).map_err(|error| cannot(&error))?;

    let stop = worker.shutdown_handle();
    let mut running = pin!(worker.run());
    let mut script = pin!(script(admin.as_ref().map(Admin::address)));
    let mut turns = interval(Duration::from_secs(1));
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let outcome = loop {
        tokio::select! {
            ended = &mut running => {
                kept.end().await;
                return Err(ended_early(ended));
            }
            outcome = &mut script => break outcome,
            _ = turns.tick() => pulse.beat(),
        }
    };
    pulse.drain();
    stop();
    // The SDK can wait for ever when the server is gone by now; a worker that was told to stop must not.
    let limit = settings.grace + HARD_STOP;
    let ended = match timeout(limit, running).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Exit::ours(format!("the worker did not end well: {error}"))),
        Err(_) => {
            Err(Exit::ours(format!("tasks were still running {} s after the worker was told to end", limit.as_secs()))
                .hint("the server hands them to another worker when they time out; --grace gives them longer"))
        }
    };
    kept.end().await;
    outcome.and_then(|value| ended.map(|()| value))
}

/// What workflows tell their activities: how much time a question has, so that one whose breaker makes it wait
/// (`on_open: wait`) gives up while the report can still be on time. Replayers need it, too.
#[must_use]
pub fn workflow_interceptor() -> WorkflowInterceptorConstructor {
    CircuitWorkflowInterceptor::new().constructor()
}

/// The keeper of the breakers' store, at work.
struct Kept {
    stop: oneshot::Sender<()>,
    task: JoinSet<()>,
}

impl Kept {
    fn spawn(keeper: Keeper) -> Self {
        let (stop, stopped) = oneshot::channel();
        let mut task = JoinSet::new();
        task.spawn(keeper.run(async { drop(stopped.await) }));
        Self { stop, task }
    }

    /// Stores what is left to store.
    async fn end(mut self) {
        drop(self.stop);
        self.task.join_next().await;
    }
}

fn ended_early(ended: Result<(), temporalio_sdk::WorkerRunError>) -> Exit {
    match ended {
        Ok(()) => Exit::ours("the worker has stopped by itself"),
        Err(error) => Exit::ours(format!("the worker has stopped: {error}"))
            .hint("check that the namespace exists and that this account may use it"),
    }
}

/// Applies the file whenever it changes. Without a watch the worker runs on with the thresholds it has.
async fn follow(registry: CircuitRegistry, file: PathBuf) {
    let path = file.display().to_string();
    match circuit_registry::reload::watch(registry, file).await {
        Ok(never) => match never {},
        Err(error) => tracing::warn!(%error, path, "changes of the thresholds are not noticed; restart to apply them"),
    }
}

/// Resolves when the process is told to end, by Ctrl-C or by SIGTERM.
///
/// # Errors
/// When the system refuses signal handlers.
pub async fn told_to_end() -> Result<(), Exit> {
    let refused = |error: std::io::Error| Exit::ours(format!("cannot listen for signals: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(refused)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(refused)?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
