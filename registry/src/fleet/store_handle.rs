//! What connects the breakers of a registry with its store: who has something to store, whether the store answers, and what went
//! wrong. A breaker only ever leaves a note here; the [`store_sync`](super::store_sync) does the work.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::timeout,
};

use crate::{
    clock::{Clock, Stamp, Tick, WallClock, saturating_nanos},
    outcome::ServiceName,
    store::{FleetStore, Op, Store, StoreError},
};

/// An operator who wants to know that something is stored waits so long at the most.
const ACKNOWLEDGED: Duration = Duration::from_secs(5);

/// Names waiting for the sync task.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    names: Mutex<BTreeSet<ServiceName>>,
    pub(crate) filled: Notify,
}

impl Queue {
    pub(crate) fn push(&self, name: &ServiceName) {
        let new = lock(&self.names).insert(name.clone());
        if new {
            self.filled.notify_one();
        }
    }

    /// Takes all names out. Those that are not [done](Batch::done) return, whatever happens.
    pub(crate) fn take(&self) -> Batch<'_> {
        let names = std::mem::take(&mut *lock(&self.names));
        Batch { queue: self, names }
    }

    /// Takes all names out for good.
    pub(crate) fn take_all(&self) -> BTreeSet<ServiceName> {
        std::mem::take(&mut *lock(&self.names))
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.names).is_empty()
    }
}

/// Names taken out of a [`Queue`].
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    queue: &'a Queue,
    pub(crate) names: BTreeSet<ServiceName>,
}

impl Batch<'_> {
    /// Nothing is left to do.
    pub(crate) fn done(mut self) {
        self.names.clear();
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if !self.names.is_empty() {
            lock(&self.queue.names).append(&mut self.names);
        }
    }
}

/// The store's clock beside ours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreClock {
    tick: Tick,
    stamp: Stamp,
}

impl StoreClock {
    pub(crate) const fn new(tick: Tick, stamp: Stamp) -> Self {
        Self { tick, stamp }
    }

    pub(crate) fn stamp(self, tick: Tick) -> Stamp {
        if tick >= self.tick {
            self.stamp.after(tick.since(self.tick))
        } else {
            self.stamp.before(self.tick.since(tick))
        }
    }

    pub(crate) fn tick(self, stamp: Stamp) -> Tick {
        if stamp >= self.stamp {
            self.tick.after(stamp.since(self.stamp))
        } else {
            Tick::from_nanos(self.tick.as_nanos().saturating_sub(saturating_nanos(self.stamp.since(stamp))))
        }
    }
}

/// A reading of the store's clock, and how long it took.
#[derive(Debug, Clone, Copy)]
struct Reading {
    clock: StoreClock,
    took: Duration,
}

impl Reading {
    /// Took less time, is not old, and both can be true.
    fn is_better_than(&self, new: &Self) -> bool {
        const OLD: Duration = Duration::from_secs(60);
        let expected = self.clock.stamp(new.clock.tick);
        let apart = expected.since(new.clock.stamp).max(new.clock.stamp.since(expected));
        self.took < new.took
            && new.clock.tick.since(self.clock.tick) < OLD
            && apart <= self.took + new.took + Duration::from_millis(1)
    }
}

/// Someone who waits until what was said about a breaker is stored.
struct Waiter {
    name: ServiceName,
    answer: oneshot::Sender<Result<(), StoreError>>,
}

/// Between a registry's breakers and its store.
pub(crate) struct StoreHandle {
    pub(crate) store: Arc<dyn Store>,
    /// This process, among others.
    pub(crate) process: String,
    clock: Clock,
    wall: Arc<dyn WallClock>,
    store_clock: Mutex<Option<Reading>>,
    /// The store answers, and knows what we know.
    up: AtomicBool,
    processes: AtomicU32,
    /// Breakers to remember.
    pub(crate) snapshots: Queue,
    /// Shared breakers with something for the fleet.
    pub(crate) shared: Queue,
    /// Shared breakers whose failures in a row are others than the fleet was told.
    pub(crate) failing: Queue,
    /// Shared breakers that cannot wait for an answer themselves: who probes?
    pub(crate) probes: Queue,
    /// Shared rate limits that a caller could not wait for.
    pub(crate) tokens: Queue,
    /// Breakers whose probe is ours.
    leases: Mutex<BTreeSet<ServiceName>>,
    waiters: Mutex<Vec<Waiter>>,
    /// A sync task runs.
    kept: AtomicBool,
    errors: [AtomicU64; Op::ALL.len()],
    /// The last attempt failed.
    broken: [AtomicBool; Op::ALL.len()],
}

impl StoreHandle {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Clock, wall: Arc<dyn WallClock>, process: String) -> Self {
        Self {
            store,
            process,
            clock,
            wall,
            store_clock: Mutex::new(None),
            up: AtomicBool::new(false),
            processes: AtomicU32::new(1),
            snapshots: Queue::default(),
            shared: Queue::default(),
            failing: Queue::default(),
            probes: Queue::default(),
            tokens: Queue::default(),
            leases: Mutex::default(),
            waiters: Mutex::default(),
            kept: AtomicBool::new(false),
            errors: Default::default(),
            broken: Default::default(),
        }
    }

    /// How a fleet shares through the store, if it can.
    pub(crate) fn fleet(&self) -> Option<&dyn FleetStore> {
        self.store.fleet()
    }

    // ── time ───────────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Asks the store for its time; a store without one goes by the registry's wall clock.
    pub(crate) async fn read_clock(&self) -> Result<StoreClock, StoreError> {
        let before = self.clock.now();
        let stamp = self.store.now().await?.unwrap_or_else(|| self.wall.now().into());
        Ok(self.set_clock(before, stamp))
    }

    /// The store's time was `stamp` somewhere between `before` and now. What is the store's time from now on: the best reading
    /// of late is kept, because one that took long may be off by half of that.
    pub(crate) fn set_clock(&self, before: Tick, stamp: Stamp) -> StoreClock {
        let now = self.clock.now();
        let took = now.since(before);
        let new = Reading { clock: StoreClock::new(before.after(took / 2), stamp), took };
        let mut kept = lock(&self.store_clock);
        match *kept {
            Some(old) if old.is_better_than(&new) => old.clock,
            _ => kept.insert(new).clock,
        }
    }

    /// The store's clock as last heard; before that, the registry's wall clock.
    pub(crate) fn store_clock(&self) -> StoreClock {
        let known = *lock(&self.store_clock);
        known.map_or_else(|| StoreClock::new(self.clock.now(), self.wall.now().into()), |reading| reading.clock)
    }

    pub(crate) fn now(&self) -> Tick {
        self.clock.now()
    }

    // ── whether the store is there ─────────────────────────────────────────────────────────────────────────────────────

    pub(crate) fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    pub(crate) fn set_up(&self, up: bool) {
        if self.up.swap(up, Ordering::Relaxed) != up {
            let store = self.store.kind();
            if up {
                tracing::info!(store, "sharing breakers with the fleet");
            } else {
                tracing::warn!(store, "breakers are not shared at present: each process goes by its own state");
            }
        }
    }

    pub(crate) fn processes(&self) -> u32 {
        self.processes.load(Ordering::Relaxed)
    }

    pub(crate) fn set_processes(&self, processes: u32) {
        self.processes.store(processes.max(1), Ordering::Relaxed);
    }

    pub(crate) fn set_kept(&self, kept: bool) {
        self.kept.store(kept, Ordering::Relaxed);
        if !kept {
            lock(&self.waiters).clear(); // whoever waits learns that nobody will answer
        }
    }

    /// Counts and reports how an operation of the store went: the first failure and the first success after one are logged.
    pub(crate) fn report<T>(&self, op: Op, result: &Result<T, StoreError>) {
        let store = self.store.kind();
        let name = Op::ALL[op as usize].1;
        match result {
            Ok(_) => {
                if self.broken[op as usize].swap(false, Ordering::Relaxed) {
                    tracing::info!(store, op = name, "the breakers' store works again");
                }
            }
            Err(error) => {
                self.errors[op as usize].fetch_add(1, Ordering::Relaxed);
                if !self.broken[op as usize].swap(true, Ordering::Relaxed) {
                    tracing::warn!(store, op = name, %error, "the breakers' store does not work; calls go on without it");
                }
            }
        }
    }

    /// Failures by operation.
    pub(crate) fn errors(&self) -> Vec<(&'static str, u64)> {
        Op::ALL.iter().map(|(op, name)| (*name, self.errors[*op as usize].load(Ordering::Relaxed))).collect()
    }

    // ── leases ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    pub(crate) fn leased(&self, name: &ServiceName) {
        lock(&self.leases).insert(name.clone());
    }

    pub(crate) fn leases(&self) -> Vec<ServiceName> {
        lock(&self.leases).iter().cloned().collect()
    }

    pub(crate) fn lease_over(&self, name: &ServiceName) {
        lock(&self.leases).remove(name);
    }

    // ── acknowledgements ───────────────────────────────────────────────────────────────────────────────────────────────

    /// Waits until what was said about `name` so far is stored; `queue` is the one it is in.
    pub(crate) async fn stored(&self, name: &ServiceName, queue: &Queue) -> Result<(), StoreError> {
        if !self.kept.load(Ordering::Relaxed) {
            return Err(StoreError::absent());
        }
        let (answer, stored) = oneshot::channel();
        lock(&self.waiters).push(Waiter { name: name.clone(), answer });
        queue.push(name);
        queue.filled.notify_one();
        match timeout(ACKNOWLEDGED, stored).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(StoreError::absent()),
            Err(_) => Err(StoreError::late(ACKNOWLEDGED)),
        }
    }

    /// Those who wait for one of `names`; to be taken before what is stored is read.
    pub(crate) fn waiting_for(&self, names: &BTreeSet<ServiceName>) -> Waiting {
        let waiting = lock(&self.waiters).extract_if(.., |waiter| names.contains(&waiter.name)).collect();
        Waiting(waiting)
    }
}

impl fmt::Debug for StoreHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreHandle")
            .field("store", &self.store.kind())
            .field("up", &self.is_up())
            .finish_non_exhaustive()
    }
}

/// Those who wait for an answer.
pub(crate) struct Waiting(Vec<Waiter>);

impl Waiting {
    pub(crate) fn answer(self, result: &Result<(), StoreError>) {
        for waiter in self.0 {
            let _ = waiter.answer.send(result.clone()); // may have given up
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stores_clock_and_ours_convert_both_ways() {
        let clock = StoreClock::new(Tick::ZERO.after(Duration::from_secs(10)), Stamp::from_micros(1_000_000_000));
        for secs in [0, 9, 10, 11, 5000] {
            let tick = Tick::ZERO.after(Duration::from_secs(secs));
            assert_eq!(clock.tick(clock.stamp(tick)), tick);
        }
        assert_eq!(clock.tick(Stamp::from_micros(0)), Tick::ZERO, "before this process began");
    }

    #[test]
    fn a_quick_reading_of_the_clock_outlives_slow_ones_unless_it_is_old_or_the_clock_was_set() {
        let reading = |at: u64, stamp: u64, took: u64| Reading {
            clock: StoreClock::new(Tick::ZERO.after(Duration::from_millis(at)), Stamp::from_micros(stamp * 1000)),
            took: Duration::from_millis(took),
        };
        let quick = reading(1000, 501_000, 1);
        assert!(quick.is_better_than(&reading(2000, 502_030, 80)));
        assert!(!quick.is_better_than(&reading(2000, 502_000, 0)), "a better one");
        assert!(!quick.is_better_than(&reading(62_000, 562_030, 80)), "clocks drift");
        assert!(!quick.is_better_than(&reading(2000, 602_000, 80)), "somebody set the store's clock");
    }
}
