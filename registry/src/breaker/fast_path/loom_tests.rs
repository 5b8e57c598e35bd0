//! The protocol between the fast path and the mutex, under loom: real breakers, every interleaving of their atomics and locks.
//!
//! Openings last an hour, so that no decision depends on the clock that loom cannot steer.

use std::{sync::Arc as StdArc, time::Duration};

use loom::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use crate::{
    BreakersConfig, State, SystemWallClock,
    announcer::Announcer,
    breaker::{Breaker, inner::BreakerInner, shared::Shared},
    clock::{Clock, WallTime},
    outcome::{Settlement, Verdict},
};

/// Runs `model` on a fresh breaker in every interleaving.
fn explore(yaml: &str, model: impl Fn(Breaker) + Send + Sync + 'static) {
    // Out here, since loom's threads have small stacks.
    let policy = BreakersConfig::from_yaml(&format!("defaults: {yaml}")).unwrap().policy("s");
    let clock = Clock::start();
    let wall = WallTime::new(clock, StdArc::new(SystemWallClock));
    let shared = StdArc::new(Shared {
        clock,
        announcer: Announcer::new(Vec::new(), wall.clone()),
        wall,
        measured: false,
        seed: 0,
        unguarded: Default::default(),
        store: None,
    });
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder
        .check(move || model(Breaker::new(StdArc::new(BreakerInner::new("s".into(), policy.clone(), shared.clone())))));
}

/// A call on a thread of its own.
fn elsewhere(breaker: &Breaker, verdict: Verdict) -> thread::JoinHandle<bool> {
    let breaker = breaker.clone();
    thread::spawn(move || breaker.try_acquire().map(|call| call.settle(verdict)).is_ok())
}

#[test]
fn loom_a_trip_beside_an_admission_counts_every_call() {
    explore("{ fail_max: 1, reset_timeout: 1h }", |breaker| {
        let tripping = elsewhere(&breaker, Verdict::Failure);
        let admitted = breaker.try_acquire().map(|call| call.settle(Verdict::Success)).is_ok();
        assert!(tripping.join().unwrap());
        let view = breaker.view();
        assert_eq!((view.state, view.calls.to_open, view.in_flight), (State::Open, 1, 0));
        assert_eq!((view.calls.success, view.calls.failure), (u64::from(admitted), 1));
        assert_eq!(view.calls.rejected_open, u64::from(!admitted));
        assert!(breaker.try_acquire().is_err(), "a thread that knows of the trip is rejected");
    });
}

#[test]
fn loom_failures_of_two_threads_are_both_counted() {
    explore("{ fail_max: 2, reset_timeout: 1h }", |breaker| {
        let other = elsewhere(&breaker, Verdict::Failure);
        breaker.try_acquire().unwrap().settle(Verdict::Failure);
        assert!(other.join().unwrap());
        let view = breaker.view();
        assert_eq!((view.state, view.calls.to_open, view.calls.late), (State::Open, 1, 0));
    });
}

/// A success that comes after a failure in anyone's eyes starts the count again, though it looks at the fast path alone.
#[test]
fn loom_a_success_after_a_failure_resets_the_count() {
    explore("{ fail_max: 3, reset_timeout: 1h }", |breaker| {
        let call = breaker.try_acquire().unwrap(); // while nothing was wrong
        let failed = Arc::new(AtomicBool::new(false));
        let failing = {
            let (breaker, failed) = (breaker.clone(), failed.clone());
            thread::spawn(move || {
                breaker.try_acquire().unwrap().settle(Verdict::Failure);
                failed.store(true, Ordering::Release);
            })
        };
        let after = failed.load(Ordering::Acquire);
        call.settle(Verdict::Success);
        failing.join().unwrap();
        let failures = breaker.view().consecutive_failures;
        assert!(failures <= 1 && !(after && failures == 1));
    });
}

/// A verdict that comes after the trip in anyone's eyes is late.
#[test]
fn loom_a_success_after_the_trip_is_late() {
    explore("{ fail_max: 1, reset_timeout: 1h }", |breaker| {
        let call = breaker.try_acquire().unwrap();
        let tripped = Arc::new(AtomicBool::new(false));
        let tripping = {
            let (breaker, tripped) = (breaker.clone(), tripped.clone());
            thread::spawn(move || {
                breaker.try_acquire().unwrap().settle(Verdict::Failure);
                tripped.store(true, Ordering::Release);
            })
        };
        let after = tripped.load(Ordering::Acquire);
        let settlement = call.settle(Verdict::Success);
        assert!(!after || settlement == Settlement::Late);
        tripping.join().unwrap();
        let view = breaker.view();
        assert_eq!((view.state, view.calls.late), (State::Open, u64::from(settlement == Settlement::Late)));
    });
}

#[test]
fn loom_one_slot_admits_one_of_two_probes() {
    explore("{ fail_max: 1, reset_timeout: 1h }", |breaker| {
        breaker.try_acquire().unwrap().settle(Verdict::Throttled { retry_after: Some(Duration::from_nanos(1)) }); // due at once
        let other = {
            let breaker = breaker.clone();
            thread::spawn(move || breaker.try_acquire().ok())
        };
        let mine = breaker.try_acquire().ok();
        let theirs = other.join().unwrap();
        assert_eq!(usize::from(mine.is_some()) + usize::from(theirs.is_some()), 1);
    });
}

#[test]
fn loom_a_rejection_beside_a_reset_belongs_to_an_opening() {
    explore("{ fail_max: 1, reset_timeout: 1h }", |breaker| {
        breaker.try_acquire().unwrap().settle(Verdict::Failure);
        let resetting = {
            let breaker = breaker.clone();
            thread::spawn(move || {
                breaker.reset();
                let throttled = Verdict::Throttled { retry_after: Some(Duration::from_secs(60)) };
                breaker.try_acquire().unwrap().settle(throttled);
            })
        };
        if let Err(rejection) = breaker.try_acquire() {
            let minutes = rejection.retry_in.unwrap().as_secs_f64() / 60.0;
            assert!((0.5..=1.0).contains(&minutes) || (59.0..=60.0).contains(&minutes), "{minutes}");
        }
        resetting.join().unwrap();
    });
}
