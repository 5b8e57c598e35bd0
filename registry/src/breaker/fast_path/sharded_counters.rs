//! Counters that cost a call very little and lose no count.
//!
//! An atomic addition on a shared cache line is the dearest thing a closed breaker could do: it makes two threads wait for
//! each other. So each breaker has a few *counters*, a cache line each, and each thread owns a *index*: the number of
//! the shard that it alone writes, with a plain load and store. Threads beyond the number of exclusive counters share the last
//! one and do add atomically. A index returns to the pool when its thread ends, through a mutex, so that the next owner sees
//! what the last one wrote. Reading adds the counters up.

use std::{cell::Cell, sync::Mutex};

use crate::breaker::sync::{AtomicU64, Ordering};

/// ShardedCounters with one writer each; the last shard, shared, comes on top.
const EXCLUSIVE: usize = 5;
const SHARDS: usize = EXCLUSIVE + 1;

/// What is counted in counters. Of every admitted call exactly one of the first four is counted when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Counter {
    Success,
    Failure,
    Throttled,
    Neutral,
    Admitted,
    RejectedOpen,
    Late,
    TimedOut,
}

const COUNTERS: usize = 8;

/// The shard that the present thread writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ShardIndex(u8);

impl ShardIndex {
    const SHARED: Self = Self(EXCLUSIVE as u8);
    const UNSET: Self = Self(u8::MAX);

    const fn is_exclusive(self) -> bool {
        (self.0 as usize) < EXCLUSIVE
    }

    /// This thread's index; taken from the pool on first use.
    fn current() -> Self {
        if cfg!(circuit_loom) {
            return Self::SHARED; // loom's threads share one real thread, and with it its thread-locals
        }
        let index = INDEX.get();
        if index == Self::UNSET { assign() } else { index }
    }
}

/// Free exclusive indices.
struct Pool {
    free: Vec<u8>,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { free: Vec::new() });
static POOL_FILLED: std::sync::Once = std::sync::Once::new();

thread_local! {
    static INDEX: Cell<ShardIndex> = const { Cell::new(ShardIndex::UNSET) };
    static LEASE: Lease = const { Lease };
}

/// Gives the thread's index back when the thread ends.
struct Lease;

impl Drop for Lease {
    fn drop(&mut self) {
        // Whatever still counts during the thread's tear-down adds atomically on the shared shard.
        let index = INDEX.replace(ShardIndex::SHARED);
        if index.is_exclusive() {
            with_pool(|pool| pool.free.push(index.0));
        }
    }
}

fn with_pool<T>(f: impl FnOnce(&mut Pool) -> T) -> T {
    let mut pool = POOL.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    POOL_FILLED.call_once(|| pool.free.extend((0..EXCLUSIVE as u8).rev()));
    f(&mut pool)
}

#[cold]
fn assign() -> ShardIndex {
    // A thread whose thread-locals are being torn down cannot give a index back, so it gets none.
    let index = match LEASE.try_with(|_| ()) {
        Ok(()) => with_pool(|pool| pool.free.pop()).map_or(ShardIndex::SHARED, ShardIndex),
        Err(_) => ShardIndex::SHARED,
    };
    INDEX.set(index);
    index
}

#[derive(Debug)]
#[repr(align(64))]
struct Shard([AtomicU64; COUNTERS]);

/// The counters of one breaker.
#[derive(Debug)]
pub(crate) struct ShardedCounters([Shard; SHARDS]);

impl ShardedCounters {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| Shard(std::array::from_fn(|_| AtomicU64::new(0)))))
    }

    /// Counts one, on behalf of the present thread.
    #[inline]
    pub(crate) fn count(&self, counter: Counter) {
        let index = INDEX.get();
        if index.is_exclusive() {
            self.bump(index, counter);
        } else {
            self.count_shared(counter);
        }
    }

    #[cold]
    fn count_shared(&self, counter: Counter) {
        self.bump(ShardIndex::current(), counter);
    }

    #[inline]
    fn bump(&self, index: ShardIndex, counter: Counter) {
        if index.is_exclusive() {
            let cell = &self.0[index.0 as usize].0[counter as usize];
            // The only writer: nothing can come between the load and the store.
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        } else {
            self.0[EXCLUSIVE].0[counter as usize].fetch_add(1, Ordering::Release);
        }
    }

    pub(crate) fn sum(&self, counter: Counter) -> u64 {
        self.0.iter().fold(0, |sum, shard| sum.wrapping_add(shard.0[counter as usize].load(Ordering::Acquire)))
    }

    /// Calls admitted and not ended. Ends are read before beginnings, and a reader that sees an end sees its beginning, so that a call in
    /// between is counted rather than missed.
    pub(crate) fn in_flight(&self) -> u64 {
        let ended = [Counter::Success, Counter::Failure, Counter::Throttled, Counter::Neutral]
            .into_iter()
            .fold(0, |sum: u64, counter| sum.wrapping_add(self.sum(counter)));
        self.sum(Counter::Admitted).saturating_sub(ended)
    }
}

#[cfg(all(test, not(circuit_loom)))]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;

    #[test]
    fn many_threads_more_than_lanes_lose_no_count() {
        let counters = Arc::new(ShardedCounters::new());
        // Generations of threads, so that indices are handed on as well as shared.
        for _ in 0..4 {
            let threads: Vec<_> = (0..3 * SHARDS)
                .map(|_| {
                    let counters = counters.clone();
                    thread::spawn(move || {
                        for _ in 0..1000 {
                            counters.count(Counter::Admitted);
                            counters.count(Counter::Success);
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|t| t.join().unwrap());
        }
        assert_eq!(counters.sum(Counter::Admitted), (4 * 3 * SHARDS * 1000) as u64);
        assert_eq!(counters.in_flight(), 0);
    }

    #[test]
    fn a_thread_keeps_its_slot_and_gives_it_back() {
        let first = thread::spawn(|| (ShardIndex::current(), ShardIndex::current())).join().unwrap();
        assert_eq!(first.0, first.1);
    }
}

#[cfg(all(test, circuit_loom))]
mod loom_tests {
    use loom::{
        sync::{Arc, Mutex},
        thread,
    };

    use super::*;

    /// An exclusive index handed from thread to thread through a mutex loses nothing; two sharers lose nothing either.
    #[test]
    fn handed_on_slots_lose_no_count() {
        loom::model(|| {
            let counters = Arc::new(ShardedCounters::new());
            let pool = Arc::new(Mutex::new(vec![ShardIndex(0)]));
            let work = |counters: Arc<ShardedCounters>, pool: Arc<Mutex<Vec<ShardIndex>>>| {
                let index = pool.lock().unwrap().pop().unwrap_or(ShardIndex::SHARED);
                counters.bump(index, Counter::Success);
                if index.is_exclusive() {
                    pool.lock().unwrap().push(index);
                }
            };
            let other = {
                let (counters, pool) = (counters.clone(), pool.clone());
                thread::spawn(move || work(counters, pool))
            };
            work(counters.clone(), pool);
            other.join().unwrap();
            assert_eq!(counters.sum(Counter::Success), 2);
        });
    }

    /// Three owners in turn, and a reader beside them that never sees a count go back.
    #[test]
    fn a_reader_beside_the_owners_sees_counts_only_grow() {
        loom::model(|| {
            let counters = Arc::new(ShardedCounters::new());
            let pool = Arc::new(Mutex::new(vec![ShardIndex(0)]));
            let owner = {
                let (counters, pool) = (counters.clone(), pool.clone());
                move || {
                    let index = pool.lock().unwrap().pop().unwrap_or(ShardIndex::SHARED);
                    counters.bump(index, Counter::Late);
                    if index.is_exclusive() {
                        pool.lock().unwrap().push(index);
                    }
                }
            };
            let owners = [thread::spawn(owner.clone()), thread::spawn(owner)];
            thread::yield_now();
            let first = counters.sum(Counter::Late);
            thread::yield_now();
            let second = counters.sum(Counter::Late);
            assert!(first <= second && second <= 2);
            for owner in owners {
                owner.join().unwrap();
            }
            assert_eq!(counters.sum(Counter::Late), 2);
        });
    }

    /// One call is in flight all the while; another one comes and goes.
    #[test]
    fn a_call_in_flight_is_never_missed() {
        for index in [ShardIndex(0), ShardIndex::SHARED] {
            loom::model(move || {
                let counters = Arc::new(ShardedCounters::new());
                counters.bump(ShardIndex(1), Counter::Admitted);
                let reader = {
                    let counters = counters.clone();
                    thread::spawn(move || {
                        // An owner looks at its cell before it writes it, which hides the writing from loom unless it goes first.
                        thread::yield_now();
                        assert!(counters.in_flight() >= 1);
                    })
                };
                counters.bump(index, Counter::Admitted);
                counters.bump(index, Counter::Success);
                reader.join().unwrap();
                assert_eq!(counters.in_flight(), 1);
            });
        }
    }
}
