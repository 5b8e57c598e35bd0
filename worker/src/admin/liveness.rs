//! The heartbeat of the worker's main task.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

/// What the worker's main task reports to the admin server.
#[derive(Debug, Clone)]
pub struct Liveness {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    start: Instant,
    beat_ms: AtomicU64,
    draining: AtomicBool,
}

impl Default for Liveness {
    fn default() -> Self {
        let (beat_ms, draining) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { inner: Arc::new(Inner { start: Instant::now(), beat_ms, draining }) }
    }
}

impl Liveness {
    /// The heartbeat: the main task is running.
    pub fn beat(&self) {
        let now = u64::try_from(self.inner.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.inner.beat_ms.store(now, Ordering::Relaxed);
    }

    /// The worker takes no more tasks.
    pub fn drain(&self) {
        self.inner.draining.store(true, Ordering::Relaxed);
    }

    pub(super) fn silent_for(&self) -> Duration {
        self.inner.start.elapsed().saturating_sub(Duration::from_millis(self.inner.beat_ms.load(Ordering::Relaxed)))
    }

    pub(super) fn draining(&self) -> bool {
        self.inner.draining.load(Ordering::Relaxed)
    }
}
