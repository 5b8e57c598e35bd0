//! Saves the breakers that are not shared.

use std::time::Duration;

use tokio::time::sleep;

use super::{
    lease::limited,
    record_codec,
    store_sync::{PATIENCE_ALL, SyncTask, backoff},
};
use crate::store::{Op, Record, StoreError, queue::Batch};

/// Snapshots are saved at most this often. A crash loses no more than this.
const COALESCE: Duration = Duration::from_millis(250);

impl SyncTask {
    /// Saves snapshots as breakers change.
    pub(super) async fn save_snapshots(&self) {
        let mut failures = 0;
        loop {
            if self.handle.snapshots.is_empty() {
                self.handle.snapshots.filled.notified().await;
            }
            let saved = self.save(self.handle.snapshots.take()).await;
            failures = if saved.is_ok() { 0 } else { failures + 1 };
            sleep(COALESCE.max(backoff(failures))).await;
        }
    }

    /// Saves the present state of the breakers in `batch`. After a failure they are still to be saved.
    pub(super) async fn save(&self, batch: Batch<'_>) -> Result<(), StoreError> {
        let names = &batch.names;
        if names.is_empty() {
            return Ok(());
        }
        let handle = &self.handle;
        let waiting = handle.waiting_for(names);
        let saved = limited(PATIENCE_ALL, async {
            let clock = handle.read_clock().await?;
            let mut records = Vec::with_capacity(names.len());
            for inner in names.iter().filter_map(|name| self.breakers.existing(name)) {
                inner.operate(|state, now, _| {
                    let snapshot = record_codec::snapshot(&inner.name, state, now, clock, &handle.process);
                    let keep = record_codec::keep(&snapshot, clock.stamp(now));
                    let text = (!snapshot.is_blank()).then(|| snapshot.encode());
                    records.push(Record::new(inner.name.clone(), text, keep));
                    (None, None)
                });
            }
            handle.store.save(&records).await
        })
        .await;
        handle.report(Op::Save, &saved);
        if saved.is_ok() {
            batch.done();
        }
        waiting.answer(&saved);
        saved
    }
}
