//! One sync task for several workers of one registry.

use std::fmt;

use tokio::sync::Mutex;

use super::store_sync::{StoreSync, StoreTask};

/// A sync task that runs from the start of the first worker to the end of the last one.
#[derive(Default)]
pub(crate) struct SharedTask(Mutex<Users>);

#[derive(Default)]
struct Users {
    workers: usize,
    task: Option<StoreTask>,
}

impl SharedTask {
    /// A worker starts. The first one restores the store, and the others wait for that.
    pub(crate) async fn begin(&self, restore: impl Future<Output = StoreSync>) {
        let mut users = self.0.lock().await;
        if users.task.is_none() {
            users.task = Some(restore.await.spawn());
        }
        users.workers += 1;
    }

    /// A worker has ended. The last one waits until everything is stored.
    pub(crate) async fn end(&self) {
        let mut users = self.0.lock().await;
        users.workers -= 1;
        if users.workers == 0
            && let Some(task) = users.task.take()
        {
            task.end().await;
        }
    }

    /// Whether the task runs.
    #[cfg(test)]
    pub(crate) async fn is_running(&self) -> bool {
        self.0.lock().await.task.is_some()
    }
}

impl fmt::Debug for SharedTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedTask").finish_non_exhaustive()
    }
}
