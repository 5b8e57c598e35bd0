//! Names of breakers that wait for the sync task.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::outcome::ServiceName;

/// Names waiting for the sync task.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    names: Mutex<BTreeSet<ServiceName>>,
    pub(crate) filled: Notify,
}

impl Queue {
    pub(crate) fn push(&self, name: &ServiceName) {
        let new = self.lock().insert(name.clone());
        if new {
            self.filled.notify_one();
        }
    }

    /// Takes all names out. They return to the queue unless the batch is [done](Batch::done).
    pub(crate) fn take(&self) -> Batch<'_> {
        let names = std::mem::take(&mut *self.lock());
        Batch { queue: self, names }
    }

    /// Takes all names out for good.
    pub(crate) fn take_all(&self) -> BTreeSet<ServiceName> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<ServiceName>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

/// Names taken out of a [`Queue`].
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    queue: &'a Queue,
    pub(crate) names: BTreeSet<ServiceName>,
}

impl Batch<'_> {
    /// The work is done: no name returns to the queue.
    pub(crate) fn done(mut self) {
        self.names.clear();
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if !self.names.is_empty() {
            self.queue.lock().append(&mut self.names);
        }
    }
}
