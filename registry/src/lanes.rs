//! Counters that cost a call next to nothing and are exact all the same.
//!
//! An atomic addition on a shared cache line is the dearest thing a closed breaker could do: it makes two threads wait for
//! each other. So each breaker has a few *lanes*, a cache line each, and each thread owns a *slot*: the number of
//! the lane that it alone writes, with a plain load and store. Threads beyond the number of exclusive lanes share the last
//! one and do add atomically. A slot returns to the pool when its thread ends, through a mutex, so that the next owner sees
//! what the last one wrote. Reading adds the lanes up.

use std::{cell::Cell, sync::Mutex};

use crate::sync::{AtomicU64, Ordering};

/// Lanes with one writer each; the last lane, shared, comes on top.
const EXCLUSIVE: usize = 5;
const LANES: usize = EXCLUSIVE + 1;

/// What is counted in lanes. Of every admitted call exactly one of the first four is counted when it ends.
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

/// The lane that the present thread writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot(u8);

impl Slot {
    const SHARED: Self = Self(EXCLUSIVE as u8);
    const UNSET: Self = Self(u8::MAX);

    const fn is_exclusive(self) -> bool {
        (self.0 as usize) < EXCLUSIVE
    }

    /// This thread's slot; taken from the pool on first use.
    fn current() -> Self {
        if cfg!(circuit_loom) {
            return Self::SHARED; // loom's threads share one real thread, and with it its thread-locals
        }
        let slot = SLOT.get();
        if slot == Self::UNSET { assign() } else { slot }
    }
}

/// Free exclusive slots.
struct Pool {
    free: Vec<u8>,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { free: Vec::new() });
static POOL_FILLED: std::sync::Once = std::sync::Once::new();

thread_local! {
    static SLOT: Cell<Slot> = const { Cell::new(Slot::UNSET) };
    static LEASE: Lease = const { Lease };
}

/// Gives the thread's slot back when the thread ends.
struct Lease;

impl Drop for Lease {
    fn drop(&mut self) {
        // Whatever still counts during the thread's tear-down adds atomically on the shared lane.
        let slot = SLOT.replace(Slot::SHARED);
        if slot.is_exclusive() {
            with_pool(|pool| pool.free.push(slot.0));
        }
    }
}

fn with_pool<T>(f: impl FnOnce(&mut Pool) -> T) -> T {
    let mut pool = POOL.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    POOL_FILLED.call_once(|| pool.free.extend((0..EXCLUSIVE as u8).rev()));
    f(&mut pool)
}

#[cold]
fn assign() -> Slot {
    // A thread whose thread-locals are being torn down cannot give a slot back, so it gets none.
    let slot = match LEASE.try_with(|_| ()) {
        Ok(()) => with_pool(|pool| pool.free.pop()).map_or(Slot::SHARED, Slot),
        Err(_) => Slot::SHARED,
    };
    SLOT.set(slot);
    slot
}

#[derive(Debug)]
#[repr(align(64))]
struct Lane([AtomicU64; COUNTERS]);

/// The counters of one breaker.
#[derive(Debug)]
pub(crate) struct Lanes([Lane; LANES]);

impl Lanes {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| Lane(std::array::from_fn(|_| AtomicU64::new(0)))))
    }

    /// Counts one, on behalf of the present thread.
    #[inline]
    pub(crate) fn count(&self, counter: Counter) {
        let slot = SLOT.get();
        if slot.is_exclusive() {
            self.bump(slot, counter);
        } else {
            self.count_shared(counter);
        }
    }

    #[cold]
    fn count_shared(&self, counter: Counter) {
        self.bump(Slot::current(), counter);
    }

    #[inline]
    fn bump(&self, slot: Slot, counter: Counter) {
        if slot.is_exclusive() {
            let cell = &self.0[slot.0 as usize].0[counter as usize];
            // The only writer: nothing can come between the load and the store.
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        } else {
            self.0[EXCLUSIVE].0[counter as usize].fetch_add(1, Ordering::Release);
        }
    }

    pub(crate) fn sum(&self, counter: Counter) -> u64 {
        self.0.iter().fold(0, |sum, lane| sum.wrapping_add(lane.0[counter as usize].load(Ordering::Acquire)))
    }

    /// Calls admitted and not ended. Ends are read before beginnings, and whoever sees an end sees its beginning, so that a call in
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
        let lanes = Arc::new(Lanes::new());
        // Generations of threads, so that slots are handed on as well as shared.
        for _ in 0..4 {
            let threads: Vec<_> = (0..3 * LANES)
                .map(|_| {
                    let lanes = lanes.clone();
                    thread::spawn(move || {
                        for _ in 0..1000 {
                            lanes.count(Counter::Admitted);
                            lanes.count(Counter::Success);
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|t| t.join().unwrap());
        }
        assert_eq!(lanes.sum(Counter::Admitted), (4 * 3 * LANES * 1000) as u64);
        assert_eq!(lanes.in_flight(), 0);
    }

    #[test]
    fn a_thread_keeps_its_slot_and_gives_it_back() {
        let first = thread::spawn(|| (Slot::current(), Slot::current())).join().unwrap();
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

    /// An exclusive slot handed from thread to thread through a mutex loses nothing; two sharers lose nothing either.
    #[test]
    fn handed_on_slots_lose_no_count() {
        loom::model(|| {
            let lanes = Arc::new(Lanes::new());
            let pool = Arc::new(Mutex::new(vec![Slot(0)]));
            let work = |lanes: Arc<Lanes>, pool: Arc<Mutex<Vec<Slot>>>| {
                let slot = pool.lock().unwrap().pop().unwrap_or(Slot::SHARED);
                lanes.bump(slot, Counter::Success);
                if slot.is_exclusive() {
                    pool.lock().unwrap().push(slot);
                }
            };
            let other = {
                let (lanes, pool) = (lanes.clone(), pool.clone());
                thread::spawn(move || work(lanes, pool))
            };
            work(lanes.clone(), pool);
            other.join().unwrap();
            assert_eq!(lanes.sum(Counter::Success), 2);
        });
    }

    /// Three owners in turn, and a reader beside them that never sees a count go back.
    #[test]
    fn a_reader_beside_the_owners_sees_counts_only_grow() {
        loom::model(|| {
            let lanes = Arc::new(Lanes::new());
            let pool = Arc::new(Mutex::new(vec![Slot(0)]));
            let owner = {
                let (lanes, pool) = (lanes.clone(), pool.clone());
                move || {
                    let slot = pool.lock().unwrap().pop().unwrap_or(Slot::SHARED);
                    lanes.bump(slot, Counter::Late);
                    if slot.is_exclusive() {
                        pool.lock().unwrap().push(slot);
                    }
                }
            };
            let owners = [thread::spawn(owner.clone()), thread::spawn(owner)];
            thread::yield_now();
            let first = lanes.sum(Counter::Late);
            thread::yield_now();
            let second = lanes.sum(Counter::Late);
            assert!(first <= second && second <= 2);
            for owner in owners {
                owner.join().unwrap();
            }
            assert_eq!(lanes.sum(Counter::Late), 2);
        });
    }

    /// One call is in flight all the while; another one comes and goes.
    #[test]
    fn a_call_in_flight_is_never_missed() {
        for slot in [Slot(0), Slot::SHARED] {
            loom::model(move || {
                let lanes = Arc::new(Lanes::new());
                lanes.bump(Slot(1), Counter::Admitted);
                let reader = {
                    let lanes = lanes.clone();
                    thread::spawn(move || {
                        // An owner looks at its cell before it writes it, which hides the writing from loom unless it goes first.
                        thread::yield_now();
                        assert!(lanes.in_flight() >= 1);
                    })
                };
                lanes.bump(slot, Counter::Admitted);
                lanes.bump(slot, Counter::Success);
                reader.join().unwrap();
                assert_eq!(lanes.in_flight(), 1);
            });
        }
    }
}
