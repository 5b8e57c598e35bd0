//! What observers hear: the counts behind every transition, each breaker's events in the order they happened, and the operator behind each override.
//! That observers touch no call is tested with the invariants.

use std::{
    sync::{Arc, Barrier, Mutex, PoisonError},
    thread,
    time::{Duration, SystemTime},
};

use circuit_registry::{
    Breaker, BreakersConfig, Cause, CircuitRegistry, Event, EventKind, Observer, Override, RejectReason, Rejection,
    Settlement, State, Transition, Verdict, WallClock, policy::Mode,
};
use tokio::time::advance;

/// Remembers everything.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<Event>>>);

impl Observer for Heard {
    fn on_event(&self, event: &Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
    }
}

impl Heard {
    fn of(yaml: &str) -> (CircuitRegistry, Self) {
        let heard = Self::default();
        let config = BreakersConfig::from_yaml(yaml).expect("valid configuration");
        (CircuitRegistry::builder().config(config).observer(heard.clone()).build(), heard)
    }

    /// Everything since the last time.
    fn take(&self, registry: &CircuitRegistry) -> Vec<Event> {
        registry.flush_observers();
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn transitions(&self, registry: &CircuitRegistry) -> Vec<Transition> {
        let transition = |event: Event| match event.kind {
            EventKind::Transition(transition) => Some(transition),
            _ => None,
        };
        self.take(registry).into_iter().filter_map(transition).collect()
    }
}

fn call(breaker: &Breaker, verdict: Verdict) {
    breaker.try_acquire().expect("admitted").settle(verdict);
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_transition_carries_the_counts_that_made_it() {
    let (registry, heard) = Heard::of(
        "defaults: { reset_timeout: 60s, half_open: { permits: 2 } }
services:
  row: { fail_max: 3 }
  rate: { fail_max: off, window: { calls: 10, failure_rate: 50% } }
  slow: { fail_max: off, window: { calls: 4, minimum_calls: 2, slow_call: 1s, slow_rate: 100% } }",
    );
    let only = |expected: (State, State, Cause, u64, Option<Duration>)| {
        let heard = heard.transitions(&registry);
        let seen: Vec<_> = heard.iter().map(|t| (t.from, t.to, t.cause, t.generation, t.open_for)).collect();
        assert_eq!(seen, [expected]);
    };
    let row = registry.breaker("row");
    (0..3).for_each(|_| call(&row, Verdict::Failure));
    only((State::Closed, State::Open, Cause::ConsecutiveFailures { failures: 3 }, 1, Some(MINUTE)));
    advance(MINUTE).await;
    assert_eq!(heard.transitions(&registry), [], "no call came, so nothing happened");
    call(&row, Verdict::Success);
    only((State::Open, State::HalfOpen, Cause::Due, 2, None));
    call(&row, Verdict::Failure);
    only((State::HalfOpen, State::Open, Cause::ProbesFailed { failed: 1, permits: 2 }, 3, Some(MINUTE)));
    advance(MINUTE).await;
    call(&row, Verdict::Success);
    heard.take(&registry);
    call(&row, Verdict::Success);
    only((State::HalfOpen, State::Closed, Cause::ProbesSucceeded { succeeded: 2, permits: 2 }, 5, None));
    call(&row, Verdict::Throttled { retry_after: Some(2 * MINUTE) });
    only((State::Closed, State::Open, Cause::Throttled { retry_after: 2 * MINUTE }, 6, Some(2 * MINUTE)));
    row.reset();
    only((State::Open, State::Closed, Cause::Operator, 7, None));
    row.force_open(Override::new("alice", "why"));
    only((State::Closed, State::Open, Cause::Operator, 8, None));

    let rate = registry.breaker("rate");
    (0..5).for_each(|_| call(&rate, Verdict::Success));
    (0..5).for_each(|_| call(&rate, Verdict::Failure));
    only((State::Closed, State::Open, Cause::FailureRate { failures: 5, calls: 10 }, 1, Some(MINUTE)));

    let slow = registry.breaker("slow");
    let (one, other) = (slow.try_acquire().unwrap(), slow.try_acquire().unwrap());
    advance(Duration::from_secs(1)).await;
    one.settle(Verdict::Success);
    other.settle(Verdict::Success);
    only((State::Closed, State::Open, Cause::SlowRate { slow: 2, calls: 2 }, 1, Some(MINUTE)));
}

#[tokio::test(start_paused = true)]
async fn every_step_of_a_call_is_told_in_its_order() {
    let (registry, heard) = Heard::of("services: { s: { fail_max: 1, reset_timeout: 60s } }");
    let breaker = registry.breaker("s");
    let late = breaker.try_acquire().unwrap();
    call(&breaker, Verdict::Failure);
    late.settle(Verdict::Success);
    assert!(breaker.try_acquire().is_err());
    advance(MINUTE).await;
    let probe = breaker.try_acquire().unwrap();
    assert!(breaker.try_acquire().is_err());
    probe.settle(Verdict::Success);
    let seen: Vec<_> = heard
        .take(&registry)
        .into_iter()
        .map(|event| match event.kind {
            EventKind::Admitted { probe } => format!("admitted {probe}"),
            EventKind::Rejected(rejection) => format!("rejected {}", rejection.reason.as_str()),
            EventKind::Settled { verdict, settlement, .. } => format!("settled {verdict:?} {settlement:?}"),
            EventKind::Transition(t) => format!("{} to {}", t.from, t.to),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        seen,
        [
            "admitted false",
            "admitted false",
            "settled Failure Counted",
            "closed to open",
            "settled Success Late",
            "rejected open",
            "open to half_open",
            "admitted true",
            "rejected half_open_busy",
            "settled Success Counted",
            "half_open to closed",
        ]
    );
}

/// A replay of the events of a breaker goes through its states, however many threads made them.
#[test]
fn the_events_of_a_breaker_come_in_the_order_they_happened() {
    const THREADS: usize = 4;
    let (registry, heard) = Heard::of(
        "defaults: { fail_max: 2, reset_timeout: 1us, half_open: { permits: 2, max_wait: 1h } }\nservices: { a: {}, b: {} }",
    );
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (registry, barrier) = (&registry, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for n in 0..600 {
                    let breaker = registry.breaker(if n % 3 == 0 { "a" } else { "b" });
                    if let Ok(call) = breaker.try_acquire() {
                        thread::yield_now();
                        let verdicts =
                            [Verdict::Failure, Verdict::Success, Verdict::Failure, Verdict::Failure, Verdict::Neutral];
                        call.settle(verdicts[(n + thread) % verdicts.len()]);
                    }
                }
            });
        }
    });
    let events = heard.take(&registry);
    assert_eq!(registry.events_dropped(), 0);
    for service in ["a", "b"] {
        let (mut state, mut generation, mut in_flight, mut transitions) = (State::Closed, 0, 0_i64, 0);
        for event in events.iter().filter(|e| e.service == service) {
            match &event.kind {
                EventKind::Transition(t) => {
                    assert_eq!(t.from, state, "{t:?}");
                    assert!(t.generation > generation, "{t:?} after {generation}");
                    (state, generation, transitions) = (t.to, t.generation, transitions + 1);
                }
                EventKind::Admitted { probe } => {
                    in_flight += 1;
                    assert_eq!((state, *probe), if *probe { (State::HalfOpen, true) } else { (State::Closed, false) });
                }
                EventKind::Rejected(Rejection { reason: RejectReason::Open, .. }) => assert_eq!(state, State::Open),
                EventKind::Rejected(Rejection { reason: RejectReason::HalfOpenBusy, .. }) => {
                    assert_eq!(state, State::HalfOpen)
                }
                EventKind::Settled { settlement, .. } => {
                    in_flight -= 1;
                    assert!(in_flight >= 0, "a call ended before it began");
                    assert!(*settlement == Settlement::Late || state != State::Open);
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(in_flight, 0);
        assert!(transitions > 2, "nothing happened");
        let calls = registry.breaker(service).view().calls;
        assert_eq!(calls.to_open + calls.to_half_open + calls.to_closed, transitions);
    }
}

#[tokio::test(start_paused = true)]
async fn what_operators_and_reloads_do_is_told_with_their_words() {
    let (registry, heard) = Heard::of("services: { s: {}, t: {} }");
    let breaker = registry.breaker("s");
    breaker.force_closed(Override::new("alice", "tests"));
    assert!(breaker.release("alice") && !breaker.release("alice"));
    registry.apply(BreakersConfig::from_yaml("services: { s: { fail_max: 9 }, t: {} }").unwrap());
    let wrong = BreakersConfig::from_yaml("services: { s: { fail_max: 0 } }").unwrap_err();
    registry.reload_failed(&wrong);
    let seen: Vec<_> = heard.take(&registry).into_iter().map(|e| (e.service.to_string(), e.kind)).collect();
    let overridden = |mode, why: &str| EventKind::Overridden { mode, who: "alice".into(), why: why.into() };
    assert_eq!(
        seen,
        [
            ("s".into(), overridden(Mode::ForceClosed, "tests")),
            ("s".into(), overridden(Mode::Enforce, "released")),
            ("s".into(), EventKind::Reconfigured),
            (String::new(), EventKind::ReloadFailed { error: wrong.to_string() }),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn events_say_when_by_the_wall_clock() {
    struct Noon;
    impl WallClock for Noon {
        fn now(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH + Duration::from_secs(12 * 3600)
        }
    }
    let heard = Heard::default();
    let registry = CircuitRegistry::builder().observer(heard.clone()).wall_clock(Noon).build();
    call(&registry.breaker("s"), Verdict::Success);
    let events = heard.take(&registry);
    assert_eq!(events.len(), 2);
    let (noon, age) = (Noon.now(), Duration::from_secs(1));
    assert!(events.iter().all(|e| e.at <= noon && e.at > noon - age), "{events:?}");
}
