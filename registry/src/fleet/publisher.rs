//! Writes the changes of shared breakers into their records, and publishes failures in a row.

use std::{future::pending, num::NonZeroU32, sync::Arc, time::Duration};

use tokio::time::sleep;

use super::{
    lease::limited,
    pending_write::{PendingWrite, pending_write, settled},
    record_codec,
    store_sync::{PATIENCE, SyncTask, backoff},
};
use crate::{
    breaker::inner::BreakerInner,
    policy::{LimitScope, RateLimitPolicy},
    state::limiter::Limiter,
    store::{FleetStore, Op, PutAnswer, StoreError, message::Message, queue::Batch},
};

/// A change is published at once; many changes are published on average this often.
const PUBLISH: RateLimitPolicy = RateLimitPolicy {
    limit: NonZeroU32::new(50).expect("not zero"),
    per: Duration::from_millis(500),
    scope: LimitScope::Process,
};

/// Records that are put in one go.
const BATCH: usize = 256;

impl SyncTask {
    /// Puts changes of shared breakers into their records.
    pub(super) async fn write_shared(&self) {
        let Some(store) = self.handle.fleet() else { return pending().await };
        let mut failures = 0;
        let mut limiter = Limiter::new(&PUBLISH);
        loop {
            if self.handle.shared.is_empty() {
                self.handle.shared.filled.notified().await;
            }
            if let Err(wait) = limiter.take(self.handle.now()) {
                sleep(wait).await;
                continue;
            }
            let result = self.put(store, self.handle.shared.take()).await;
            failures = if result.is_ok() { 0 } else { failures + 1 };
            if result.is_err() {
                self.handle.set_up(false);
                sleep(backoff(failures)).await;
            }
        }
    }

    /// Puts the changes of the breakers in `batch` into their records. After a failure they are still to be put.
    pub(super) async fn put(&self, store: &dyn FleetStore, batch: Batch<'_>) -> Result<(), StoreError> {
        let names = &batch.names;
        if names.is_empty() {
            return Ok(());
        }
        let fleet = self.fleet.lock().await;
        let waiting = self.handle.waiting_for(names);
        let breakers: Vec<_> = names.iter().filter_map(|name| self.breakers.existing(name)).collect();
        let mut result = Ok(());
        for breakers in breakers.chunks(BATCH) {
            result = self.put_batch(store, breakers, fleet.again).await;
            if result.is_err() {
                break;
            }
        }
        self.handle.report(Op::Save, &result);
        if result.is_ok() {
            batch.done();
        }
        waiting.answer(&result);
        result
    }

    async fn put_batch(
        &self,
        store: &dyn FleetStore,
        breakers: &[Arc<BreakerInner>],
        again: bool,
    ) -> Result<(), StoreError> {
        let clock = self.handle.store_clock();
        let mut pending_writes: Vec<(&Arc<BreakerInner>, PendingWrite)> = breakers
            .iter()
            .filter_map(|inner| Some((inner, pending_write(inner, &self.handle, clock, again)?)))
            .collect();
        // The faster process wins, and the other merges again. This ends: each round has a winner.
        while !pending_writes.is_empty() {
            let now = clock.stamp(self.handle.now());
            let mut puts = Vec::with_capacity(pending_writes.len());
            let mut merged = Vec::with_capacity(pending_writes.len());
            for (inner, pending_write) in pending_writes.drain(..) {
                let result = pending_write.merge(&inner.name, now);
                match pending_write.put(&inner.name, &result, now) {
                    None => settled(inner, &pending_write, &result, clock),
                    Some(put) => {
                        puts.push(put);
                        merged.push((inner, pending_write, result));
                    }
                }
            }
            if puts.is_empty() {
                break;
            }
            let answers = limited(PATIENCE, store.put(&puts)).await?;
            for (answer, (inner, mut pending_write, result)) in answers.into_iter().zip(merged) {
                match answer {
                    PutAnswer::Done => settled(inner, &pending_write, &result, clock),
                    PutAnswer::Differs(present) => {
                        pending_write.expected = present.map(Into::into);
                        pending_writes.push((inner, pending_write));
                    }
                }
            }
        }
        Ok(())
    }

    /// Puts every record again, changed or not.
    pub(super) async fn publish_again(&self, store: &dyn FleetStore) -> Result<(), StoreError> {
        self.fleet.lock().await.again = true;
        for name in self.breakers.breakers().keys() {
            self.handle.snapshots.push(name);
            self.handle.shared.push(name);
        }
        let result = self.put(store, self.handle.shared.take()).await;
        self.fleet.lock().await.again = false;
        result
    }

    /// Publishes failures in a row. This runs beside everything else: the sooner peers know, the less a dying upstream costs.
    pub(super) async fn publish_failures(&self) {
        let Some(store) = self.handle.fleet() else { return pending().await };
        let mut limiter = Limiter::new(&PUBLISH);
        loop {
            while self.handle.failing.is_empty() {
                self.handle.failing.filled.notified().await;
            }
            if let Err(wait) = limiter.take(self.handle.now()) {
                sleep(wait).await;
                continue;
            }
            let breakers = self.handle.failing.take_all().into_iter().filter_map(|name| self.breakers.existing(&name));
            let notes = breakers.filter_map(|inner| record_codec::failures(&inner, &self.handle));
            let texts: Vec<_> = notes.map(|note| Message::Failures(note).encode()).collect();
            if texts.is_empty() {
                continue;
            }
            let published = limited(PATIENCE, store.publish(&texts)).await;
            self.handle.report(Op::Publish, &published);
            if published.is_err() {
                self.handle.set_up(false);
            }
        }
    }
}
