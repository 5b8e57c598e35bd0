//! Receives what peers put, lease and publish; and syncs once a second, which finds whatever a subscription missed.

use std::{future::pending, sync::Arc, time::Duration};

use tokio::time::sleep;

use super::{
    lease::limited,
    record_codec,
    store_sync::{PATIENCE, SyncTask, backoff},
};
use crate::store::{FleetStore, Op, StoreError, Subscription, message::Message, record::Snapshot};

/// How often this process syncs.
const SYNC: Duration = Duration::from_secs(1);

/// After this many syncs everything is put again, so that overrides without an end outlive the time to live of their records.
const REFRESH: u32 = 6 * 3600;

/// A sync also reads changes from this long before the last one, because a text may have been on its way.
const OVERLAP: Duration = Duration::from_secs(5);

impl SyncTask {
    /// Holds a subscription to the fleet's channel, and makes a new one when it breaks.
    pub(super) async fn subscribe(&self) {
        let Some(store) = self.handle.fleet() else { return pending().await };
        let mut failures = 0;
        loop {
            self.until_shared().await;
            let subscribed = limited(PATIENCE, store.subscribe()).await;
            self.handle.report(Op::Subscribe, &subscribed);
            if let Ok(mut subscription) = subscribed {
                failures = 0;
                self.receive(&mut *subscription).await;
            }
            failures += 1;
            sleep(backoff(failures)).await;
        }
    }

    async fn receive(&self, subscription: &mut dyn Subscription) {
        while let Some(text) = subscription.next().await {
            match Message::decode(&text) {
                None => {}
                Some(Message::Record(record, text)) => self.receive_record(&record, &text),
                Some(Message::Failures(note)) if note.by != self.handle.process => {
                    if let Some(inner) = self.breakers.existing(&note.service)
                        && record_codec::receive_failures(&inner, &self.handle, &note)
                    {
                        self.handle.shared.push(&inner.name); // together they were enough
                    }
                }
                Some(Message::Lease(note)) if note.by != self.handle.process => {
                    if let Some(inner) = self.breakers.existing(&note.service) {
                        let lasting = Duration::from_micros(note.for_us);
                        record_codec::receive_lease(&inner, &self.handle, note.epoch, lasting);
                    }
                }
                Some(Message::Failures(_) | Message::Lease(_)) => {}
            }
        }
    }

    /// Enters a record that a peer put.
    fn receive_record(&self, record: &Snapshot, text: &Arc<str>) {
        let inner = match self.breakers.existing(&record.service) {
            Some(inner) => inner,
            None if record.is_blank() => return,
            None => self.breakers.inner(&record.service),
        };
        record_codec::receive(&inner, &self.handle, record, text, self.handle.store_clock());
    }

    /// Syncs with the store, again and again.
    pub(super) async fn sync(&self) {
        let Some(store) = self.handle.fleet() else { return pending().await };
        let (mut failures, mut rounds) = (0, 0_u32);
        loop {
            self.until_shared().await;
            let synced = self.sync_once(store).await;
            self.handle.report(Op::Sync, &synced);
            match synced {
                Ok(()) => {
                    (failures, rounds) = (0, rounds.wrapping_add(1));
                    self.handle.set_up(true);
                    if rounds.is_multiple_of(REFRESH) {
                        let _ = self.publish_again(store).await; // if it fails, the next round does it
                    }
                    sleep(SYNC).await;
                }
                Err(_) => {
                    failures += 1;
                    self.handle.set_up(false);
                    sleep(backoff(failures)).await;
                }
            }
        }
    }

    /// Waits until the configuration has something to share.
    async fn until_shared(&self) {
        while !self.breakers.shares() {
            sleep(SYNC).await;
        }
    }

    async fn sync_once(&self, store: &dyn FleetStore) -> Result<(), StoreError> {
        let mut fleet = self.fleet.lock().await;
        let since = fleet.synced.before(OVERLAP);
        let before = self.handle.now();
        let news = limited(PATIENCE, store.sync(&self.handle.process, since)).await?;
        self.handle.set_clock(before, news.now);
        self.handle.set_processes(news.processes);
        fleet.synced = news.now;
        for (service, text) in news.changed {
            if let Ok(record) = Snapshot::decode(&text, Some(&service)) {
                self.receive_record(&record, &text.into());
            }
        }
        let lost = fleet.life.as_ref().is_some_and(|life| *life != news.life);
        fleet.life = Some(news.life);
        drop(fleet);
        if lost {
            let store_kind = self.handle.store.kind();
            tracing::warn!(store = store_kind, "the breakers' store lost its content: all breakers are stored again");
            self.publish_again(store).await?;
        }
        if !self.handle.is_up() {
            // The store must know our changes before calls ask it for a lease.
            self.put(store, self.handle.shared.take()).await?;
        }
        Ok(())
    }
}
