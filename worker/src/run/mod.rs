//! A worker process: everything it consists of starts here and stops here.

mod activities;
mod breakers;
mod options;
mod server;
mod shutdown;
mod store;
mod tuning;

use std::{net::SocketAddr, path::PathBuf, pin::pin, sync::Arc, time::Duration};

use circuit_registry::CircuitRegistry;
use osint_activities::activity::Activities;
use temporalio_client::Client;
use temporalio_sdk::{Worker, WorkerRunError};
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, timeout},
};

pub use activities::source_activities;
pub use breakers::Breakers;
pub use options::workflow_interceptor;
pub use shutdown::shutdown_signal;
pub use tuning::{Rate, Tuning, Versioning};

use self::store::StoreTask;
use crate::{
    admin::{Admin, AdminState, Journal, Liveness, Token},
    error::CliError,
    telemetry::Metrics,
};

/// The default task queue of workflows and activities.
pub const TASK_QUEUE: &str = "osint";

/// The worker waits this long beyond the grace period. Then it gives tasks up, and the server hands them to another worker.
const HARD_STOP: Duration = Duration::from_secs(5);

/// How a worker runs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The queue to take tasks from.
    pub task_queue: String,
    /// Where the admin server listens; `None` starts none.
    pub admin: Option<SocketAddr>,
    /// The secret that the admin server accepts from everywhere; `None` accepts commands of this user on this machine only.
    pub token: Option<Token>,
    /// What happened to the breakers: the observer of the registry.
    pub journal: Journal,
    /// The file with the thresholds, if they came from one. The worker applies its changes while it runs.
    pub thresholds: Option<PathBuf>,
    /// How long running activities may go on after the shutdown signal.
    pub grace: Duration,
    /// How much to take on, how fast, and as which version.
    pub tuning: Tuning,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            task_queue: TASK_QUEUE.to_owned(),
            admin: None,
            token: None,
            journal: Journal::default(),
            thresholds: None,
            grace: Duration::from_secs(10),
            tuning: Tuning::default(),
        }
    }
}

/// Runs a worker until `script` is done, then stops it gracefully. The script receives the address of the admin server.
///
/// # Errors
/// When the worker cannot start or ends by itself, or what the script returns.
pub async fn run_until<T, S>(
    client: Client,
    registry: CircuitRegistry,
    activities: Activities,
    settings: Settings,
    script: impl FnOnce(Option<SocketAddr>) -> S,
) -> Result<T, CliError>
where
    S: Future<Output = Result<T, CliError>>,
{
    let (metrics, runtime) = Metrics::start(&registry)?;
    // Restore before the first task: a breaker that was open stays open.
    let store = StoreTask::start(&registry).await;
    let liveness = Liveness::default();
    let admin = match settings.admin {
        None => None,
        Some(address) => {
            let state = AdminState {
                registry: registry.clone(),
                journal: settings.journal.clone(),
                metrics: Arc::new(metrics),
                client: client.clone(),
                liveness: liveness.clone(),
            };
            Some(Admin::start(address, settings.token.clone(), state).await?)
        }
    };
    // What is watched is dropped with the set, so it ends with the worker.
    let mut watch = JoinSet::new();
    watch.spawn(server::watch(client.clone()));
    if let Some(file) = settings.thresholds.clone() {
        watch.spawn(follow(registry.clone(), file));
    }
    let options = options::worker_options(&settings, registry, activities)?;
    let worker = Worker::new(&runtime, client, options).map_err(|error| options::cannot_start(&error))?;
    let outcome = run_worker(worker, &liveness, settings.grace, script(admin.as_ref().map(Admin::address))).await;
    store.stop().await;
    outcome
}

/// Runs `worker` until `script` is done, then lets running tasks finish.
async fn run_worker<T>(
    mut worker: Worker,
    liveness: &Liveness,
    grace: Duration,
    script: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    let stop = worker.shutdown_handle();
    let (mut running, mut script) = (pin!(worker.run()), pin!(script));
    let mut turns = interval(Duration::from_secs(1));
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let outcome = loop {
        tokio::select! {
            ended = &mut running => return Err(ended_early(ended)),
            outcome = &mut script => break outcome,
            _ = turns.tick() => liveness.beat(),
        }
    };
    liveness.drain();
    stop();
    // The SDK may wait without end when the server is gone. The limit makes sure that the worker ends.
    let limit = grace + HARD_STOP;
    let ended = match timeout(limit, running).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(CliError::failure(format!("the worker failed while it shut down: {error}"))),
        Err(_) => {
            Err(CliError::failure(format!("tasks were still running {} s after the shutdown signal", limit.as_secs()))
                .hint("the server hands them to another worker when they time out; --grace gives them longer"))
        }
    };
    outcome.and_then(|value| ended.map(|()| value))
}

fn ended_early(ended: Result<(), WorkerRunError>) -> CliError {
    match ended {
        Ok(()) => CliError::failure("the worker has stopped by itself"),
        Err(error) => CliError::failure(format!("the worker has stopped: {error}"))
            .hint("check that the namespace exists and that this account may use it"),
    }
}

/// Applies the file whenever it changes. If the file cannot be watched, the worker keeps the thresholds it has.
async fn follow(registry: CircuitRegistry, file: PathBuf) {
    let path = file.display().to_string();
    match circuit_registry::reload::watch(registry, file).await {
        Ok(never) => match never {},
        Err(error) => {
            tracing::warn!(%error, path, "cannot watch the thresholds file; restart the worker to apply changes")
        }
    }
}
