//! Everything this library does for a worker, as a plugin of the SDK (feature `temporal-plugin`; the SDK calls its plugins
//! experimental).
//!
//! The plugin touches only this:
//!
//! * activities, remote and local: through a [`CircuitInterceptor`];
//! * the headers of activities that workflows schedule: through a [`CircuitWorkflowInterceptor`], in replays too;
//! * the life of the worker: the [store](crate::RegistryBuilder::store) is restored before the first poll, synced while the worker
//!   runs, and written once more after the last poll.
//!
//! A plugin that is registered twice (on a client and on a worker, for two workers of one process, or by mistake) does everything
//! once: the inner interceptors leave what the outer ones did, and the store has one sync task from the start of the first worker
//! to the end of the last one.

use std::sync::Arc;

use super::{CircuitInterceptor, CircuitWorkflowInterceptor};
use crate::CircuitRegistry;
use futures::future::LocalBoxFuture;
use temporalio_sdk::{
    SimplePlugin, WorkerRunError,
    interceptors::{ActivityInboundInterceptor, Next, RunWorkerInput, WorkerInterceptor},
    workflow_interceptors::WorkflowInterceptorConstructor,
};

/// The plugin's name, as `temporal worker describe` shows it.
pub const PLUGIN: &str = "circuit-registry.CircuitBreaker";

/// A plugin for the workers of a program whose breakers are in `registry`.
///
/// ```no_run
/// use circuit_registry::{CircuitRegistry, temporal::plugin};
/// use temporalio_client::ClientOptions;
///
/// # fn options(registry: CircuitRegistry) -> ClientOptions {
/// ClientOptions::new("default").plugin(plugin(registry)).build() // every worker of this client has it
/// # }
/// ```
#[must_use]
pub fn plugin(registry: CircuitRegistry) -> SimplePlugin {
    let activities = CircuitInterceptor::new(registry.clone());
    plugin_of(registry, activities, CircuitWorkflowInterceptor::new())
}

/// The same with interceptors of your own: routes by argument, policies by activity type.
#[must_use]
pub fn plugin_of(
    registry: CircuitRegistry,
    activities: CircuitInterceptor,
    workflows: CircuitWorkflowInterceptor,
) -> SimplePlugin {
    let activities: Vec<Arc<dyn ActivityInboundInterceptor>> = vec![Arc::new(activities)];
    let workflows: Vec<WorkflowInterceptorConstructor> = vec![workflows.constructor()];
    let worker: Vec<Arc<dyn WorkerInterceptor>> = vec![Arc::new(RunSyncTask(registry))];
    SimplePlugin::builder(PLUGIN)
        .activity_inbound_interceptors(activities)
        .workflow_interceptors(workflows)
        .worker_interceptors(worker)
        .build()
}

/// Runs the registry's sync task around the life of a worker.
struct RunSyncTask(CircuitRegistry);

impl WorkerInterceptor for RunSyncTask {
    fn run_worker<'a>(
        &'a self,
        input: RunWorkerInput<'a>,
        next: Next<'a, RunWorkerInput<'a>, LocalBoxFuture<'a, Result<(), WorkerRunError>>>,
    ) -> LocalBoxFuture<'a, Result<(), WorkerRunError>> {
        Box::pin(async move {
            self.0.shared_task().begin(self.0.restore()).await;
            let ended = next.run(input).await;
            self.0.shared_task().end().await;
            ended
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    #[tokio::test]
    async fn one_sync_task_from_the_first_worker_to_the_last() {
        let registry = CircuitRegistry::builder().store(MemoryStore::new()).build();
        let task = registry.shared_task();
        for _ in 0..2 {
            task.begin(registry.restore()).await;
            task.begin(registry.restore()).await;
            task.end().await;
            assert!(task.is_running().await, "a worker is still there");
            registry.breaker("s").force_open(crate::Override::new("alice", "maintenance"));
            registry.breaker("s").stored().await.expect("the sync task is at work");
            task.end().await;
            assert!(!task.is_running().await);
        }
    }
}
