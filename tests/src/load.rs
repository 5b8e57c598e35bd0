//! Load: a workflow that starts many activities at once. A breaker refuses some. Tests and measurements use it to see what
//! breakers add to a worker, without sources and reports.

#![allow(missing_docs, reason = "the SDK's macros make items that cannot be documented")]

use std::{sync::Arc, time::Duration};

use circuit_registry::{
    BreakersConfig, CircuitRegistry,
    temporal::{CircuitInterceptor, Degradation, Reason},
};
use osint_worker::run::workflow_interceptor;
use serde::{Deserialize, Serialize};
use temporalio_client::{Client, WorkflowGetResultOptions, WorkflowHandle, WorkflowStartOptions};
use temporalio_common::{RetryPolicy, error::ActivityExecutionError};
use temporalio_sdk::{
    ActivityOptions, Runtime, Worker, WorkerOptions, WorkflowContext, WorkflowResult,
    activities::{ActivityContext, ActivityError, activities},
    workflows::join_all,
};
use temporalio_workflow::{workflow, workflow_methods};

use crate::worker::while_running;

/// `double` passes a closed breaker, `refused` meets an open one.
pub const BREAKERS: &str = "
services:
  healthy: { activities: [double] }
  broken: { mode: force_open, activities: [refused] }
";

/// The activities.
#[derive(Debug, Clone, Copy)]
pub struct LoadActivities;

#[activities]
impl LoadActivities {
    #[activity(name = "double")]
    pub async fn double(self: Arc<Self>, _ctx: ActivityContext, n: u32) -> Result<u32, ActivityError> {
        Ok(n * 2)
    }

    #[activity(name = "refused")]
    pub async fn refused(self: Arc<Self>, _ctx: ActivityContext, n: u32) -> Result<u32, ActivityError> {
        Ok(n)
    }
}

/// How many activities to start.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Size {
    /// Branches.
    pub branches: u32,
    /// True: one branch after the other.
    pub in_turn: bool,
    /// One branch in this many is refused; 1 refuses all.
    pub refused_every: u32,
}

/// Starts the activities.
#[workflow]
#[derive(Default)]
pub struct FanOut;

#[workflow_methods]
impl FanOut {
    /// One number for each branch: the double, or for every other branch the double's double; 0 where a breaker refused.
    #[run]
    pub async fn run(ctx: &mut WorkflowContext<Self>, size: Size) -> WorkflowResult<Vec<u32>> {
        let ctx = &*ctx;
        let numbers = if size.in_turn {
            let mut numbers = Vec::new();
            for n in 0..size.branches {
                numbers.push(branch(ctx, n, size).await);
            }
            numbers
        } else {
            join_all((0..size.branches).map(|n| branch(ctx, n, size))).await
        };
        Ok(numbers.into_iter().collect::<Result<_, _>>()?)
    }
}

async fn branch(ctx: &WorkflowContext<FanOut>, n: u32, size: Size) -> Result<u32, ActivityExecutionError> {
    let options = || {
        let once = RetryPolicy::builder().maximum_attempts(3).initial_interval(Duration::from_millis(50)).build();
        ActivityOptions::with_start_to_close_timeout(Duration::from_secs(30)).retry_policy(once).build()
    };
    if n.is_multiple_of(size.refused_every) {
        return match ctx.execute_activity(LoadActivities::refused, n, options()).await {
            Err(error) if Degradation::from_activity_error(&error).is_some_and(|it| it.reason == Reason::Open) => Ok(0),
            other => other,
        };
    }
    let double = ctx.execute_activity(LoadActivities::double, n, options()).await?;
    if n.is_multiple_of(2) { Ok(double) } else { ctx.execute_activity(LoadActivities::double, double, options()).await }
}

/// What [`FanOut`] returns.
#[must_use]
pub fn expected(size: Size) -> Vec<u32> {
    let number = |n: u32| {
        if n.is_multiple_of(size.refused_every) {
            0
        } else if n.is_multiple_of(2) {
            n * 2
        } else {
            n * 4
        }
    };
    (0..size.branches).map(number).collect()
}

/// Runs a worker with breakers for as long as `script` takes.
///
/// # Errors
/// When the worker fails, or what the script returns.
///
/// # Panics
/// When [`BREAKERS`] are no valid configuration.
pub async fn with_worker<T>(
    runtime: &Runtime,
    client: &Client,
    queue: &str,
    cached: usize,
    script: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let registry = CircuitRegistry::new(BreakersConfig::from_yaml(BREAKERS).expect("a valid configuration"));
    let mut options = WorkerOptions::new(queue)
        .activity_inbound_interceptor(CircuitInterceptor::new(registry))
        .max_cached_workflows(cached)
        .register_activities(LoadActivities)
        .register_workflow::<FanOut>()?
        .build();
    options.register_workflow_interceptors(vec![workflow_interceptor()]);
    while_running(Worker::new(runtime, client.clone(), options)?, script).await
}

/// Starts a [`FanOut`].
///
/// # Errors
/// When the server does not accept it.
pub async fn start(
    client: &Client,
    queue: &str,
    id: &str,
    size: Size,
) -> anyhow::Result<WorkflowHandle<Client, FanOut>> {
    client.start_workflow(FanOut::run, size, WorkflowStartOptions::new(queue, id).build()).await?;
    Ok(client.get_workflow_handle(id))
}

/// Runs one to its end.
///
/// # Errors
/// When it fails.
pub async fn fan_out(client: &Client, queue: &str, id: &str, size: Size) -> anyhow::Result<Vec<u32>> {
    let handle = start(client, queue, id, size).await?;
    Ok(handle.get_result(WorkflowGetResultOptions::default()).await?)
}
