//! Keeps a registry and its store alike: restores the registry before the first call, then writes what changes here and reads
//! what other processes change.
//!
//! The sync task is a future that the program owns and spawns. No call waits for it. Its parts run side by side in one task,
//! and each question to the store has its own time limit:
//!
//! | part | when | does |
//! |---|---|---|
//! | [`snapshots`](super::snapshots) | after a change, at most every 250 ms | saves breakers that are not shared |
//! | [`publisher`](super::publisher) | at once, on average at most every 10 ms | merges changes of shared breakers into their records; publishes the number of failures in a row |
//! | [`receiver`](super::receiver), subscription | always | receives what peers put, lease and publish |
//! | [`receiver`](super::receiver), sync | every second | registers this process as present, and reads what it missed |
//! | [`helper`](super::helper) | on request | asks for callers that cannot wait, and renews leases while probes run |

use std::{fmt, sync::Arc, time::Duration};

use tokio::{
    sync::{Mutex, oneshot},
    task::JoinHandle,
    time::timeout,
};

use crate::{breaker::table::BreakerTable, clock::Stamp, store::handle::StoreHandle};

/// The time limit of one question to the store.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// The time limit for loading or saving everything.
pub(super) const PATIENCE_ALL: Duration = Duration::from_secs(10);

/// The pause after the first failure. It doubles with each further failure …
const RETRY: Duration = Duration::from_millis(100);

/// … up to this.
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Keeps a registry and its store alike, for as long as [`run`](Self::run) runs.
#[must_use = "nothing is stored until the sync task runs"]
pub struct StoreSync(Option<SyncTask>);

/// The sync task of a registry that has a store.
pub(super) struct SyncTask {
    pub(super) breakers: Arc<BreakerTable>,
    pub(super) handle: Arc<StoreHandle>,
    pub(super) fleet: Mutex<FleetProgress>,
}

/// What the parts that write shared records have in common. A part holds the lock while it writes, so only one writes at a time.
#[derive(Default)]
pub(super) struct FleetProgress {
    /// The name of the store's content.
    pub(super) life: Option<String>,
    /// The store's time at the last sync.
    pub(super) synced: Stamp,
    /// Every record is put again, changed or not.
    pub(super) again: bool,
}

impl StoreSync {
    /// Restores `breakers` from their store. Without a store there is nothing to do, now or later.
    pub(crate) async fn restore(breakers: Arc<BreakerTable>, handle: Option<Arc<StoreHandle>>) -> Self {
        let Some(handle) = handle else { return Self(None) };
        let task = SyncTask { breakers, handle, fleet: Mutex::default() };
        task.load().await;
        task.log_whether_shared();
        task.handle.set_running(true); // from here on an acknowledgement will come
        Self(Some(task))
    }

    /// Syncs until `shutdown` is over. Stores what is left before it returns.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        match self.0 {
            Some(task) => task.run(shutdown).await,
            None => shutdown.await,
        }
    }

    /// Runs on a task of tokio's until the returned handle ends it.
    pub fn spawn(self) -> StoreTask {
        let (stop, stopped) = oneshot::channel();
        StoreTask { stop, task: tokio::spawn(self.run(async { drop(stopped.await) })) }
    }
}

impl fmt::Debug for StoreSync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreSync").finish_non_exhaustive()
    }
}

/// A sync task that runs. Dropping the handle stops the task too, but does not wait for its last writes.
#[derive(Debug)]
#[must_use = "the task stops when its handle is dropped"]
pub struct StoreTask {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl StoreTask {
    /// Stops the task and waits until everything is stored.
    pub async fn end(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::warn!(%error, "the sync task of the circuit breakers' store ended early");
        }
    }
}

impl SyncTask {
    async fn run(self, shutdown: impl Future<Output = ()>) {
        tokio::select! {
            () = shutdown => {}
            ((), (), (), (), (), ()) = async { tokio::join!(
                self.save_snapshots(),
                self.write_shared(),
                self.publish_failures(),
                self.subscribe(),
                self.sync(),
                self.help(),
            ) } => {}
        }
        self.handle.set_running(false);
        let flush = async {
            let _ = self.save(self.handle.snapshots.take()).await;
            if let Some(store) = self.handle.fleet() {
                let _ = self.put(store, self.handle.shared.take()).await;
            }
        };
        if timeout(PATIENCE, flush).await.is_err() {
            tracing::warn!(store = self.handle.store.kind(), "the breakers' last changes may not be stored");
        }
    }
}

/// The pause after this many failures in a row.
pub(super) fn backoff(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        n => RETRY.saturating_mul(1 << (n - 1).min(10)).min(RETRY_MAX),
    }
}
