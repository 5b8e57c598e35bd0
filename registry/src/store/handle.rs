//! Connects the breakers of a registry with its store. A breaker only leaves its name in a queue here; the
//! [sync task](crate::StoreSync) does the work. The handle also knows whether the store answers, and counts its errors.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::oneshot, time::timeout};

use super::{
    clock::{Reading, StoreClock},
    error::{Op, StoreError},
    fleet_store::FleetStore,
    interface::Store,
    queue::Queue,
};
use crate::{
    clock::{Clock, Stamp, Tick, WallClock},
    outcome::ServiceName,
};

/// How long an operator waits for the acknowledgement that an order is stored.
const ACKNOWLEDGED: Duration = Duration::from_secs(5);

/// A caller that waits until a breaker is stored.
struct Waiter {
    name: ServiceName,
    answer: oneshot::Sender<Result<(), StoreError>>,
}

/// Connects the breakers of a registry with its store.
pub(crate) struct StoreHandle {
    pub(crate) store: Arc<dyn Store>,
    /// The name of this process in the fleet.
    pub(crate) process: String,
    clock: Clock,
    wall: Arc<dyn WallClock>,
    store_clock: Mutex<Option<Reading>>,
    /// The store answers, and has every change of this process.
    up: AtomicBool,
    processes: AtomicU32,
    /// Breakers to save.
    pub(crate) snapshots: Queue,
    /// Shared breakers with a change for the fleet.
    pub(crate) shared: Queue,
    /// Shared breakers whose number of failures in a row has changed.
    pub(crate) failing: Queue,
    /// Shared breakers that need a lease for a probe, and whose caller cannot wait.
    pub(crate) probes: Queue,
    /// Shared rate limits that need a token, and whose caller cannot wait.
    pub(crate) tokens: Queue,
    /// Breakers whose lease this process holds.
    leases: Mutex<BTreeSet<ServiceName>>,
    waiters: Mutex<Vec<Waiter>>,
    /// A sync task runs.
    running: AtomicBool,
    errors: [AtomicU64; Op::ALL.len()],
    /// The last attempt of this operation failed.
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
            running: AtomicBool::new(false),
            errors: Default::default(),
            broken: Default::default(),
        }
    }

    /// How a fleet shares through the store, if it can.
    pub(crate) fn fleet(&self) -> Option<&dyn FleetStore> {
        self.store.fleet()
    }

    // ── time ───────────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Reads the store's time. For a store without a clock it is the registry's wall clock.
    pub(crate) async fn read_clock(&self) -> Result<StoreClock, StoreError> {
        let before = self.clock.now();
        let stamp = self.store.now().await?.unwrap_or_else(|| self.wall.now().into());
        Ok(self.set_clock(before, stamp))
    }

    /// Takes a reading: the store's time was `stamp` at some moment between `before` and now. Returns the clock to use. The
    /// quickest recent reading counts, because a slow one may be off by half the time it took.
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

    /// The store's clock by the last reading; before the first, the registry's wall clock.
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
                tracing::warn!(store, "breakers are not shared at the moment: each process goes by its own state");
            }
        }
    }

    pub(crate) fn processes(&self) -> u32 {
        self.processes.load(Ordering::Relaxed)
    }

    pub(crate) fn set_processes(&self, processes: u32) {
        self.processes.store(processes.max(1), Ordering::Relaxed);
    }

    pub(crate) fn set_running(&self, running: bool) {
        self.running.store(running, Ordering::Relaxed);
        if !running {
            lock(&self.waiters).clear(); // each waiter gets the error `absent`
        }
    }

    /// Counts the result of an operation. Logs the first failure, and the first success after one.
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

    /// Waits until the present state of `name` is stored. `queue` is the queue for this breaker.
    pub(crate) async fn stored(&self, name: &ServiceName, queue: &Queue) -> Result<(), StoreError> {
        if !self.running.load(Ordering::Relaxed) {
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

    /// The callers that wait for one of `names`. Take them before the states are read.
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

/// Callers that wait for an answer.
pub(crate) struct Waiting(Vec<Waiter>);

impl Waiting {
    pub(crate) fn answer(self, result: &Result<(), StoreError>) {
        for waiter in self.0 {
            let _ = waiter.answer.send(result.clone()); // fails if the caller has given up
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
