//! The task that keeps the breakers and their store in step.

use circuit_registry::CircuitRegistry;
use tokio::{sync::oneshot, task::JoinSet};

/// The running task. When this is dropped, the task is aborted and the latest changes may not be stored.
pub(super) struct StoreTask {
    stop: oneshot::Sender<()>,
    task: JoinSet<()>,
}

impl StoreTask {
    /// Loads what the store holds into the registry, then starts the task.
    pub(super) async fn start(registry: &CircuitRegistry) -> Self {
        let (stop, stopped) = oneshot::channel();
        let mut task = JoinSet::new();
        task.spawn(registry.restore().await.run(async { drop(stopped.await) }));
        Self { stop, task }
    }

    /// Stores what is left to store, and ends the task.
    pub(super) async fn stop(mut self) {
        drop(self.stop);
        self.task.join_next().await;
    }
}
