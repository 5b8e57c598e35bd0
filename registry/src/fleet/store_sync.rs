//! Keeps a registry in its store: restores it before the first call, then stores what changes and enters what others changed.
//!
//! A sync task is a future, owned and spawned by the program. Nothing in it is ever waited for by a call. All of its parts run
//! beside each other in one task, each with a time limit of its own for every question to the store:
//!
//! | part | when | does |
//! |---|---|---|
//! | snapshots | after a change, at most every 250 ms | saves breakers that are not shared |
//! | fleet | at once, on average at most every 10 ms | merges changes of shared breakers into their records |
//! | teller | at once, on average at most every 10 ms | tells how many failures in a row there are here |
//! | listener | always | hears what peers put, leased and published |
//! | visitor | every second | tells the fleet that this process is there, and reads what it missed |
//! | helper | on request | asks for callers that cannot wait themselves, and renews leases while probes are out |

use std::{future::pending, num::NonZeroU32, sync::Arc, time::Duration};

use tokio::{
    sync::Mutex,
    time::{sleep, timeout},
};

use crate::{
    breaker::{inner::BreakerInner, table::BreakerTable},
    clock::Stamp,
    fleet::{
        lease::limited,
        message::Message,
        record_codec,
        store_handle::{Batch, StoreHandle},
    },
    policy::{LimitScope, RateLimitPolicy},
    state::limiter::Limiter,
    store::{FleetStore, Op, PutAnswer, Record, StoreError, Subscription, record::Snapshot},
};

/// Snapshots are saved at most this often: what a crash can cost.
const COALESCE: Duration = Duration::from_millis(250);

/// News of shared breakers is told at once, and where there is much of it, on average this often.
const PUBLISH: RateLimitPolicy = RateLimitPolicy {
    limit: NonZeroU32::new(50).expect("not zero"),
    per: Duration::from_millis(500),
    scope: LimitScope::Process,
};

/// The store is synced this often.
const SYNC: Duration = Duration::from_secs(1);

/// A question of the sync task's is given up after this time.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// Loading and saving everything may take longer.
pub(super) const PATIENCE_ALL: Duration = Duration::from_secs(10);

/// After a failure the next attempt is made after this time, twice that, and so on …
const RETRY: Duration = Duration::from_millis(100);

/// … up to this.
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Records that are put in one go.
const BATCH: usize = 256;

/// Overrides without an end are stored again so often, so that they outlive their time to be kept.
const REFRESH: u32 = 6 * 3600;

/// Keeps a registry in its store, for as long as [`run`](Self::run) runs.
#[must_use = "nothing is stored until the sync task runs"]
pub struct StoreSync {
    pub(super) registry: Arc<BreakerTable>,
    store: Option<Arc<StoreHandle>>,
    fleet: Mutex<Fleet>,
}

/// What the parts that write shared records have in common; held while they do, so that no two do at once.
#[derive(Default)]
struct Fleet {
    /// The identity of what the store holds.
    life: Option<String>,
    /// The store's time at the last sync.
    synced: Stamp,
    /// Everything is put again, new or not.
    again: bool,
}

impl std::fmt::Debug for StoreSync {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreSync").finish_non_exhaustive()
    }
}

impl StoreSync {
    /// Restores `registry` from its store.
    pub(crate) async fn restore(registry: Arc<BreakerTable>, store: Option<Arc<StoreHandle>>) -> Self {
        let store_sync = Self { registry, store, fleet: Mutex::default() };
        if let Some(store_handle) = &store_sync.store {
            store_sync.load(store_handle).await;
            store_sync.say_whether_shared(store_handle);
            store_handle.set_kept(true); // from here on somebody will answer
        }
        store_sync
    }

    /// Keeps the registry in its store until `shutdown` is over, and stores what is left to store before it returns.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Some(store_handle) = self.store.clone() else { return shutdown.await };
        tokio::select! {
            () = shutdown => {}
            ((), (), (), (), (), ()) = async { tokio::join!(
                self.save_snapshots(&store_handle),
                self.write_shared(&store_handle),
                self.publish_failures(&store_handle),
                self.listen(&store_handle),
                self.sync(&store_handle),
                self.help(&store_handle),
            ) } => {}
        }
        store_handle.set_kept(false);
        let flush = async {
            let _ = self.save(&store_handle, store_handle.snapshots.take()).await;
            if let Some(fleet) = store_handle.fleet() {
                let _ = self.put(&store_handle, fleet, store_handle.shared.take()).await;
            }
        };
        if timeout(PATIENCE, flush).await.is_err() {
            tracing::warn!(store = store_handle.store.kind(), "the breakers' last changes may not be stored");
        }
    }

    // ── snapshots ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async fn save_snapshots(&self, store_handle: &StoreHandle) {
        let mut failures = 0;
        loop {
            if store_handle.snapshots.is_empty() {
                store_handle.snapshots.filled.notified().await;
            }
            let saved = self.save(store_handle, store_handle.snapshots.take()).await;
            failures = if saved.is_ok() { 0 } else { failures + 1 };
            sleep(COALESCE.max(backoff(failures))).await;
        }
    }

    /// Saves the present state of `names`; on failure they are to be saved still.
    async fn save(&self, store_handle: &StoreHandle, batch: Batch<'_>) -> Result<(), StoreError> {
        let names = &batch.names;
        if names.is_empty() {
            return Ok(());
        }
        let waiting = store_handle.waiting_for(names);
        let saved = limited(PATIENCE_ALL, async {
            let clock = store_handle.read_clock().await?;
            let mut records = Vec::with_capacity(names.len());
            for inner in names.iter().filter_map(|name| self.registry.existing(name)) {
                inner.operate(|state, now, _| {
                    let snapshot = record_codec::snapshot(&inner.name, state, now, clock, &store_handle.process);
                    let keep = record_codec::keep(&snapshot, clock.stamp(now));
                    let text = (!snapshot.is_blank()).then(|| snapshot.encode());
                    records.push(Record { service: inner.name.clone(), text, keep });
                    (None, None)
                });
            }
            store_handle.store.save(&records).await
        })
        .await;
        store_handle.report(Op::Save, &saved);
        if saved.is_ok() {
            batch.done();
        }
        waiting.answer(&saved);
        saved
    }

    // ── shared breakers ────────────────────────────────────────────────────────────────────────────────────────────────

    async fn write_shared(&self, store_handle: &StoreHandle) {
        let Some(store) = store_handle.fleet() else { return pending().await };
        let mut failures = 0;
        let mut limiter = Limiter::new(&PUBLISH);
        loop {
            if store_handle.shared.is_empty() {
                store_handle.shared.filled.notified().await;
            }
            if let Err(wait) = limiter.take(store_handle.now()) {
                sleep(wait).await;
                continue;
            }
            let result = self.put(store_handle, store, store_handle.shared.take()).await;
            failures = if result.is_ok() { 0 } else { failures + 1 };
            if result.is_err() {
                store_handle.set_up(false);
                sleep(backoff(failures)).await;
            }
        }
    }

    /// Puts what `names` have to say into their records; on failure they still have to.
    async fn put(
        &self,
        store_handle: &StoreHandle,
        store: &dyn FleetStore,
        batch: Batch<'_>,
    ) -> Result<(), StoreError> {
        let names = &batch.names;
        if names.is_empty() {
            return Ok(());
        }
        let fleet = self.fleet.lock().await;
        let waiting = store_handle.waiting_for(names);
        let breakers: Vec<_> = names.iter().filter_map(|name| self.registry.existing(name)).collect();
        let mut result = Ok(());
        for breakers in breakers.chunks(BATCH) {
            result = self.put_batch(store_handle, store, breakers, fleet.again).await;
            if result.is_err() {
                break;
            }
        }
        store_handle.report(Op::Save, &result);
        if result.is_ok() {
            batch.done();
        }
        waiting.answer(&result);
        result
    }

    async fn put_batch(
        &self,
        store_handle: &StoreHandle,
        store: &dyn FleetStore,
        breakers: &[Arc<BreakerInner>],
        again: bool,
    ) -> Result<(), StoreError> {
        let clock = store_handle.store_clock();
        let mut pending_writes = Vec::new();
        for inner in breakers {
            pending_writes.extend(
                record_codec::pending_write(inner, store_handle, clock, again)
                    .map(|pending_write| (inner, pending_write)),
            );
        }
        // Whoever is faster wins, and the other merges again. Some rounds are always enough: each has a winner.
        while !pending_writes.is_empty() {
            let now = clock.stamp(store_handle.now());
            let mut puts = Vec::with_capacity(pending_writes.len());
            let mut merged = Vec::with_capacity(pending_writes.len());
            for (inner, pending_write) in pending_writes.drain(..) {
                let result = pending_write.merge(&inner.name, now);
                match pending_write.put(&inner.name, &result, now) {
                    None => record_codec::settled(inner, &pending_write, &result, clock),
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
                    PutAnswer::Done => record_codec::settled(inner, &pending_write, &result, clock),
                    PutAnswer::Differs(present) => {
                        pending_write.expected = present.map(Into::into);
                        pending_writes.push((inner, pending_write));
                    }
                }
            }
        }
        Ok(())
    }

    /// Tells the fleet of failures in a row, beside everything else: what a dying upstream costs is decided by how soon it is known.
    async fn publish_failures(&self, store_handle: &StoreHandle) {
        let Some(store) = store_handle.fleet() else { return pending().await };
        let mut limiter = Limiter::new(&PUBLISH);
        loop {
            while store_handle.failing.is_empty() {
                store_handle.failing.filled.notified().await;
            }
            if let Err(wait) = limiter.take(store_handle.now()) {
                sleep(wait).await;
                continue;
            }
            let breakers = store_handle.failing.take_all().into_iter().filter_map(|name| self.registry.existing(&name));
            let notes = breakers.filter_map(|inner| record_codec::failures(&inner, store_handle));
            let texts: Vec<_> = notes.map(|note| Message::Failures(note).encode()).collect();
            if texts.is_empty() {
                continue;
            }
            let told = limited(PATIENCE, store.publish(&texts)).await;
            store_handle.report(Op::Publish, &told);
            if told.is_err() {
                store_handle.set_up(false);
            }
        }
    }

    // ── the others ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async fn listen(&self, store_handle: &StoreHandle) {
        let Some(store) = store_handle.fleet() else { return pending().await };
        let mut failures = 0;
        loop {
            self.until_shared().await;
            let subscribed = limited(PATIENCE, store.subscribe()).await;
            store_handle.report(Op::Subscribe, &subscribed);
            if let Ok(mut subscription) = subscribed {
                failures = 0;
                self.receive(store_handle, &mut *subscription).await;
            }
            failures += 1;
            sleep(backoff(failures)).await;
        }
    }

    async fn receive(&self, store_handle: &StoreHandle, subscription: &mut dyn Subscription) {
        while let Some(text) = subscription.next().await {
            match Message::decode(&text) {
                None => {}
                Some(Message::Record(record, text)) => self.enter(store_handle, &record, &text),
                Some(Message::Failures(note)) if note.by != store_handle.process => {
                    if let Some(inner) = self.registry.existing(&note.service)
                        && record_codec::receive_failures(&inner, store_handle, &note)
                    {
                        store_handle.shared.push(&inner.name); // together they were enough
                    }
                }
                Some(Message::Lease(note)) if note.by != store_handle.process => {
                    if let Some(inner) = self.registry.existing(&note.service) {
                        record_codec::receive_lease(
                            &inner,
                            store_handle,
                            note.epoch,
                            Duration::from_micros(note.for_us),
                        );
                    }
                }
                Some(Message::Failures(_) | Message::Lease(_)) => {}
            }
        }
    }

    /// Enters a record that a peer put.
    fn enter(&self, store_handle: &StoreHandle, record: &Snapshot, text: &Arc<str>) {
        let inner = match self.registry.existing(&record.service) {
            Some(inner) => inner,
            None if record.is_blank() => return,
            None => self.registry.inner(&record.service),
        };
        record_codec::received(&inner, store_handle, record, text, store_handle.store_clock());
    }

    async fn sync(&self, store_handle: &StoreHandle) {
        let Some(store) = store_handle.fleet() else { return pending().await };
        let (mut failures, mut rounds) = (0, 0_u32);
        loop {
            self.until_shared().await;
            let synced = self.sync_once(store_handle, store).await;
            store_handle.report(Op::Sync, &synced);
            match synced {
                Ok(()) => {
                    (failures, rounds) = (0, rounds.wrapping_add(1));
                    store_handle.set_up(true);
                    if rounds.is_multiple_of(REFRESH) {
                        let _ = self.publish_again(store_handle, store).await; // or the next time
                    }
                    sleep(SYNC).await;
                }
                Err(_) => {
                    failures += 1;
                    store_handle.set_up(false);
                    sleep(backoff(failures)).await;
                }
            }
        }
    }

    /// Waits until the configuration has something to share.
    async fn until_shared(&self) {
        while !self.registry.shares() {
            sleep(SYNC).await;
        }
    }

    async fn sync_once(&self, store_handle: &StoreHandle, store: &dyn FleetStore) -> Result<(), StoreError> {
        // What was put while we looked the other way, with some room for texts that were on their way.
        const OVERLAP: Duration = Duration::from_secs(5);
        let mut fleet = self.fleet.lock().await;
        let since = fleet.synced.before(OVERLAP);
        let before = store_handle.now();
        let news = limited(PATIENCE, store.sync(&store_handle.process, since)).await?;
        store_handle.set_clock(before, news.now);
        store_handle.set_processes(news.processes);
        fleet.synced = news.now;
        for (service, text) in news.changed {
            if let Ok(record) = Snapshot::decode(&text, Some(&service)) {
                self.enter(store_handle, &record, &text.into());
            }
        }
        let lost = fleet.life.as_ref().is_some_and(|life| *life != news.life);
        fleet.life = Some(news.life);
        drop(fleet);
        if lost {
            tracing::warn!(
                store = store_handle.store.kind(),
                "the breakers' store has lost its content: it is told again"
            );
            self.publish_again(store_handle, store).await?;
        }
        if !store_handle.is_up() {
            // Nobody is asked who probes before the store knows what we know.
            self.put(store_handle, store, store_handle.shared.take()).await?;
        }
        Ok(())
    }

    /// Stores everything again, new or not.
    async fn publish_again(&self, store_handle: &StoreHandle, store: &dyn FleetStore) -> Result<(), StoreError> {
        self.fleet.lock().await.again = true;
        for name in self.registry.breakers().keys() {
            store_handle.snapshots.push(name);
            store_handle.shared.push(name);
        }
        let told = self.put(store_handle, store, store_handle.shared.take()).await;
        self.fleet.lock().await.again = false;
        told
    }
}

/// The pause after so many failures in a row.
fn backoff(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        n => RETRY.saturating_mul(1 << (n - 1).min(10)).min(RETRY_MAX),
    }
}
