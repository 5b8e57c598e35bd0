//! Everything this library has for a worker as one of the SDK's plugins (feature `temporal-plugin`; the SDK calls its plugins
//! experimental).
//!
//! It touches, and only touches:
//!
//! * activities, remote and local: through a [`CircuitInterceptor`];
//! * the headers of activities that workflows schedule: through a [`CircuitWorkflowInterceptor`], in replays too;
//! * the life of the worker: the [store](crate::RegistryBuilder::store) is restored before the first poll, kept while the worker
//!   runs, and flushed after the last poll.
//!
//! Registered twice — on a client and on a worker, for two workers of one process, or by mistake — it does everything
//! once: the inner interceptors leave what the outer ones did, and the store has one sync task from the first worker's start
//! to the last one's end.

use std::{fmt, sync::Arc};

use futures::future::LocalBoxFuture;
use temporalio_sdk::{
    SimplePlugin, WorkerRunError,
    interceptors::{ActivityInboundInterceptor, Next, RunWorkerInput, WorkerInterceptor},
    workflow_interceptors::WorkflowInterceptorConstructor,
};
use tokio::{
    sync::{Mutex, oneshot},
    task::JoinHandle,
};

use super::{CircuitInterceptor, CircuitWorkflowInterceptor};
use crate::CircuitRegistry;

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

/// The same with interceptors that say more: routes by argument, policies by activity type.
#[must_use]
pub fn plugin_of(
    registry: CircuitRegistry,
    activities: CircuitInterceptor,
    workflows: CircuitWorkflowInterceptor,
) -> SimplePlugin {
    let activities: Vec<Arc<dyn ActivityInboundInterceptor>> = vec![Arc::new(activities)];
    let workflows: Vec<WorkflowInterceptorConstructor> = vec![workflows.constructor()];
    let worker: Vec<Arc<dyn WorkerInterceptor>> = vec![Arc::new(Keep(registry))];
    SimplePlugin::builder(PLUGIN)
        .activity_inbound_interceptors(activities)
        .workflow_interceptors(workflows)
        .worker_interceptors(worker)
        .build()
}

/// Keeps the registry's store around a worker's life.
struct Keep(CircuitRegistry);

impl WorkerInterceptor for Keep {
    fn run_worker<'a>(
        &'a self,
        input: RunWorkerInput<'a>,
        next: Next<'a, RunWorkerInput<'a>, LocalBoxFuture<'a, Result<(), WorkerRunError>>>,
    ) -> LocalBoxFuture<'a, Result<(), WorkerRunError>> {
        Box::pin(async move {
            self.0.keeping().begin(&self.0).await;
            let ended = next.run(input).await;
            self.0.keeping().end().await;
            ended
        })
    }
}

/// The sync task of one registry, shared by all its workers.
#[derive(Default)]
pub(crate) struct Keeping(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    workers: usize,
    store_sync: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Keeping {
    /// A worker begins. The first one waits until the store is restored, and all others for the first.
    async fn begin(&self, registry: &CircuitRegistry) {
        let mut kept = self.0.lock().await;
        if kept.store_sync.is_none() {
            let (stop, stopped) = oneshot::channel();
            let store_sync = registry.restore().await;
            kept.store_sync = Some((stop, tokio::spawn(store_sync.run(async { drop(stopped.await) }))));
        }
        kept.workers += 1;
    }

    /// A worker has ended. The last one waits until everything is stored.
    async fn end(&self) {
        let mut kept = self.0.lock().await;
        kept.workers -= 1;
        if kept.workers == 0
            && let Some((stop, store_sync)) = kept.store_sync.take()
        {
            drop(stop);
            if let Err(error) = store_sync.await {
                tracing::warn!(%error, "the store of the circuit breakers was not kept to the end");
            }
        }
    }
}

impl fmt::Debug for Keeping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeping").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    #[tokio::test]
    async fn one_keeper_from_the_first_workers_start_to_the_last_ones_end() {
        let registry = CircuitRegistry::builder().store(MemoryStore::new()).build();
        let keeping = registry.keeping();
        for _ in 0..2 {
            keeping.begin(&registry).await;
            keeping.begin(&registry).await;
            keeping.end().await;
            assert!(keeping.0.lock().await.store_sync.is_some(), "a worker is still there");
            registry.breaker("s").force_open(crate::Override::new("alice", "maintenance"));
            registry.breaker("s").stored().await.expect("the sync task is at work");
            keeping.end().await;
            assert!(keeping.0.lock().await.store_sync.is_none());
        }
    }
}
