//! Keeps a registry in its store: restores it before the first call, then stores what changes and enters what others changed.
//!
//! A keeper is a future, owned and spawned by the program. Nothing in it is ever waited for by a call. All of its parts run
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
    fleet::{
        ask::limited,
        link::{Batch, Link},
        member,
        message::Message,
    },
    limiter::Limiter,
    policy::{LimitScope, RateLimitPolicy},
    registry::CircuitRegistry,
    shell::Core,
    snapshot::{Snapshot, Stamp},
    store::{FleetStore, Op, PutAnswer, Record, StoreError, Subscription},
};

/// Snapshots are saved at most this often: what a crash can cost.
const COALESCE: Duration = Duration::from_millis(250);

/// News of shared breakers is told at once, and where there is much of it, on average this often.
const TELL: RateLimitPolicy = RateLimitPolicy {
    limit: NonZeroU32::new(50).expect("not zero"),
    per: Duration::from_millis(500),
    scope: LimitScope::Process,
};

/// The store is visited this often.
const VISIT: Duration = Duration::from_secs(1);

/// A question of the keeper's is given up after this time.
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
#[must_use = "a keeper keeps nothing until it runs"]
pub struct Keeper {
    pub(super) registry: CircuitRegistry,
    fleet: Mutex<Fleet>,
}

/// What the parts that write shared records have in common; held while they do, so that no two do at once.
#[derive(Default)]
struct Fleet {
    /// The identity of what the store holds.
    life: Option<String>,
    /// The store's time at the last visit.
    visited: Stamp,
    /// Everything is put again, new or not.
    again: bool,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

impl Keeper {
    /// Restores `registry` from its store.
    pub(crate) async fn restore(registry: CircuitRegistry) -> Self {
        let keeper = Self { registry, fleet: Mutex::default() };
        if let Some(link) = keeper.registry.link() {
            keeper.load(link).await;
            keeper.say_whether_shared(link);
            link.set_kept(true); // from here on somebody will answer
        }
        keeper
    }

    /// Keeps the registry in its store until `shutdown` is over, and stores what is left to store before it returns.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Some(link) = self.registry.link().cloned() else { return shutdown.await };
        tokio::select! {
            () = shutdown => {}
            ((), (), (), (), (), ()) = async { tokio::join!(
                self.save_snapshots(&link),
                self.write_shared(&link),
                self.tell_failures(&link),
                self.listen(&link),
                self.visit(&link),
                self.help(&link),
            ) } => {}
        }
        link.set_kept(false);
        let flush = async {
            let _ = self.save(&link, link.snapshots.take()).await;
            if let Some(fleet) = link.fleet() {
                let _ = self.put(&link, fleet, link.shared.take()).await;
            }
        };
        if timeout(PATIENCE, flush).await.is_err() {
            tracing::warn!(store = link.store.kind(), "the breakers' last changes may not be stored");
        }
    }

    // ── snapshots ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async fn save_snapshots(&self, link: &Link) {
        let mut failures = 0;
        loop {
            if link.snapshots.is_empty() {
                link.snapshots.filled.notified().await;
            }
            let saved = self.save(link, link.snapshots.take()).await;
            failures = if saved.is_ok() { 0 } else { failures + 1 };
            sleep(COALESCE.max(backoff(failures))).await;
        }
    }

    /// Saves the present state of `names`; on failure they are to be saved still.
    async fn save(&self, link: &Link, batch: Batch<'_>) -> Result<(), StoreError> {
        let names = &batch.names;
        if names.is_empty() {
            return Ok(());
        }
        let waiting = link.waiting_for(names);
        let saved = limited(PATIENCE_ALL, async {
            let clock = link.read_clock().await?;
            let mut records = Vec::with_capacity(names.len());
            for core in names.iter().filter_map(|name| self.registry.existing(name)) {
                core.operate(|books, now, _| {
                    let snapshot = member::snapshot(&core.name, books, now, clock, &link.process);
                    let keep = member::keep(&snapshot, clock.stamp(now));
                    let text = (!snapshot.is_blank()).then(|| snapshot.encode());
                    records.push(Record { service: core.name.clone(), text, keep });
                    (None, None)
                });
            }
            link.store.save(&records).await
        })
        .await;
        link.report(Op::Save, &saved);
        if saved.is_ok() {
            batch.done();
        }
        waiting.answer(&saved);
        saved
    }

    // ── shared breakers ────────────────────────────────────────────────────────────────────────────────────────────────

    async fn write_shared(&self, link: &Link) {
        let Some(store) = link.fleet() else { return pending().await };
        let mut failures = 0;
        let limiter = Limiter::new(&TELL);
        loop {
            if link.shared.is_empty() {
                link.shared.filled.notified().await;
            }
            if let Err(wait) = limiter.take(link.now()) {
                sleep(wait).await;
                continue;
            }
            let result = self.put(link, store, link.shared.take()).await;
            failures = if result.is_ok() { 0 } else { failures + 1 };
            if result.is_err() {
                link.set_up(false);
                sleep(backoff(failures)).await;
            }
        }
    }

    /// Puts what `names` have to say into their records; on failure they still have to.
    async fn put(&self, link: &Link, store: &dyn FleetStore, batch: Batch<'_>) -> Result<(), StoreError> {
        let names = &batch.names;
        if names.is_empty() {
            return Ok(());
        }
        let fleet = self.fleet.lock().await;
        let waiting = link.waiting_for(names);
        let cores: Vec<_> = names.iter().filter_map(|name| self.registry.existing(name)).collect();
        let mut result = Ok(());
        for cores in cores.chunks(BATCH) {
            result = self.put_batch(link, store, cores, fleet.again).await;
            if result.is_err() {
                break;
            }
        }
        link.report(Op::Save, &result);
        if result.is_ok() {
            batch.done();
        }
        waiting.answer(&result);
        result
    }

    async fn put_batch(
        &self,
        link: &Link,
        store: &dyn FleetStore,
        cores: &[Arc<Core>],
        again: bool,
    ) -> Result<(), StoreError> {
        let clock = link.store_clock();
        let mut drafts = Vec::new();
        for core in cores {
            drafts.extend(member::draft(core, link, clock, again).map(|draft| (core, draft)));
        }
        // Whoever is faster wins, and the other merges again. Some rounds are always enough: each has a winner.
        while !drafts.is_empty() {
            let now = clock.stamp(link.now());
            let mut puts = Vec::with_capacity(drafts.len());
            let mut merged = Vec::with_capacity(drafts.len());
            for (core, draft) in drafts.drain(..) {
                let result = draft.merge(&core.name, now);
                match draft.put(&core.name, &result, now) {
                    None => member::settled(core, &draft, &result, clock),
                    Some(put) => {
                        puts.push(put);
                        merged.push((core, draft, result));
                    }
                }
            }
            if puts.is_empty() {
                break;
            }
            let answers = limited(PATIENCE, store.put(&puts)).await?;
            for (answer, (core, mut draft, result)) in answers.into_iter().zip(merged) {
                match answer {
                    PutAnswer::Done => member::settled(core, &draft, &result, clock),
                    PutAnswer::Differs(present) => {
                        draft.expected = present.map(Into::into);
                        drafts.push((core, draft));
                    }
                }
            }
        }
        Ok(())
    }

    /// Tells the fleet of failures in a row, beside everything else: what a dying upstream costs is decided by how soon it is known.
    async fn tell_failures(&self, link: &Link) {
        let Some(store) = link.fleet() else { return pending().await };
        let limiter = Limiter::new(&TELL);
        loop {
            while link.failing.is_empty() {
                link.failing.filled.notified().await;
            }
            if let Err(wait) = limiter.take(link.now()) {
                sleep(wait).await;
                continue;
            }
            let cores = link.failing.take_all().into_iter().filter_map(|name| self.registry.existing(&name));
            let notes = cores.filter_map(|core| member::failures(&core, link));
            let texts: Vec<_> = notes.map(|note| Message::Failures(note).encode()).collect();
            if texts.is_empty() {
                continue;
            }
            let told = limited(PATIENCE, store.publish(&texts)).await;
            link.report(Op::Publish, &told);
            if told.is_err() {
                link.set_up(false);
            }
        }
    }

    // ── the others ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async fn listen(&self, link: &Link) {
        let Some(store) = link.fleet() else { return pending().await };
        let mut failures = 0;
        loop {
            self.until_shared().await;
            let subscribed = limited(PATIENCE, store.subscribe()).await;
            link.report(Op::Subscribe, &subscribed);
            if let Ok(mut subscription) = subscribed {
                failures = 0;
                self.hear(link, &mut *subscription).await;
            }
            failures += 1;
            sleep(backoff(failures)).await;
        }
    }

    async fn hear(&self, link: &Link, subscription: &mut dyn Subscription) {
        while let Some(text) = subscription.next().await {
            match Message::decode(&text) {
                None => {}
                Some(Message::Record(record, text)) => self.enter(link, &record, &text),
                Some(Message::Failures(note)) if note.by != link.process => {
                    if let Some(core) = self.registry.existing(&note.service)
                        && member::heard_failures(&core, link, &note)
                    {
                        link.shared.push(&core.name); // together they were enough
                    }
                }
                Some(Message::Lease(note)) if note.by != link.process => {
                    if let Some(core) = self.registry.existing(&note.service) {
                        member::heard_lease(&core, link, note.epoch, Duration::from_micros(note.for_us));
                    }
                }
                Some(Message::Failures(_) | Message::Lease(_)) => {}
            }
        }
    }

    /// Enters a record that a peer put.
    fn enter(&self, link: &Link, record: &Snapshot, text: &Arc<str>) {
        let core = match self.registry.existing(&record.service) {
            Some(core) => core,
            None if record.is_blank() => return,
            None => self.registry.core(&record.service),
        };
        member::heard(&core, link, record, text, link.store_clock());
    }

    async fn visit(&self, link: &Link) {
        let Some(store) = link.fleet() else { return pending().await };
        let (mut failures, mut visits) = (0, 0_u32);
        loop {
            self.until_shared().await;
            let visited = self.visit_once(link, store).await;
            link.report(Op::Sync, &visited);
            match visited {
                Ok(()) => {
                    (failures, visits) = (0, visits.wrapping_add(1));
                    link.set_up(true);
                    if visits.is_multiple_of(REFRESH) {
                        let _ = self.tell_again(link, store).await; // or the next time
                    }
                    sleep(VISIT).await;
                }
                Err(_) => {
                    failures += 1;
                    link.set_up(false);
                    sleep(backoff(failures)).await;
                }
            }
        }
    }

    /// Waits until the configuration has something to share.
    async fn until_shared(&self) {
        while !self.registry.shares() {
            sleep(VISIT).await;
        }
    }

    async fn visit_once(&self, link: &Link, store: &dyn FleetStore) -> Result<(), StoreError> {
        // What was put while we looked the other way, with some room for texts that were on their way.
        const OVERLAP: Duration = Duration::from_secs(5);
        let mut fleet = self.fleet.lock().await;
        let since = fleet.visited.before(OVERLAP);
        let before = link.now();
        let news = limited(PATIENCE, store.sync(&link.process, since)).await?;
        link.set_clock(before, news.now);
        link.set_processes(news.processes);
        fleet.visited = news.now;
        for (service, text) in news.changed {
            if let Ok(record) = Snapshot::decode(&text, Some(&service)) {
                self.enter(link, &record, &text.into());
            }
        }
        let lost = fleet.life.as_ref().is_some_and(|life| *life != news.life);
        fleet.life = Some(news.life);
        drop(fleet);
        if lost {
            tracing::warn!(store = link.store.kind(), "the breakers' store has lost its content: it is told again");
            self.tell_again(link, store).await?;
        }
        if !link.is_up() {
            // Nobody is asked who probes before the store knows what we know.
            self.put(link, store, link.shared.take()).await?;
        }
        Ok(())
    }

    /// Stores everything again, new or not.
    async fn tell_again(&self, link: &Link, store: &dyn FleetStore) -> Result<(), StoreError> {
        self.fleet.lock().await.again = true;
        for name in self.registry.cores().keys() {
            link.snapshots.push(name);
            link.shared.push(name);
        }
        let told = self.put(link, store, link.shared.take()).await;
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
