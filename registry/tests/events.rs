//! What observers hear: the counts behind every transition, each breaker's events in the order they happened, and the operator behind each override.
//! That observers touch no call is tested with the invariants.

use std::{
    sync::{
        Arc, Barrier, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
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

/// Hears no calls.
struct Changes(Arc<Mutex<Vec<EventKind>>>);

impl Observer for Changes {
    fn on_event(&self, event: &Event) {
        self.0.lock().expect("no panic").push(event.kind.clone());
    }

    fn wants_calls(&self) -> bool {
        false
    }
}

/// Takes no event until the gate opens.
struct Slow(Arc<Barrier>, AtomicBool, Arc<Mutex<Vec<EventKind>>>);

impl Observer for Slow {
    fn on_event(&self, event: &Event) {
        if !self.1.swap(true, Ordering::Relaxed) {
            self.0.wait();
        }
        self.2.lock().expect("no panic").push(event.kind.clone());
    }
}

#[test]
fn a_flood_of_calls_loses_no_transition() {
    let (gate, slow, changes) = (Arc::new(Barrier::new(2)), Arc::default(), Arc::default());
    let config = BreakersConfig::from_yaml("services: { s: { fail_max: 1 } }").unwrap();
    let registry = CircuitRegistry::builder()
        .config(config)
        .log(false)
        .observer(Slow(gate.clone(), AtomicBool::new(false), Arc::clone(&slow)))
        .observer(Changes(Arc::clone(&changes)))
        .build();
    let breaker = registry.breaker("s");
    (0..20_000).for_each(|_| call(&breaker, Verdict::Success));
    call(&breaker, Verdict::Failure);
    let opened = |kinds: &Mutex<Vec<EventKind>>| {
        kinds
            .lock()
            .unwrap()
            .iter()
            .filter(|kind| matches!(kind, EventKind::Transition(t) if t.to == State::Open))
            .count()
    };
    let mut tries = 0_u64;
    while opened(&changes) == 0 {
        tries += 1;
        assert!(tries < 20_000_000, "it waits for the slow observer");
        thread::yield_now();
    }
    assert!(registry.events_dropped() > 20_000);
    gate.wait();
    registry.flush_observers();
    assert_eq!(opened(&slow), 1, "the slow one misses calls and no transition");
}

#[test]
fn an_observer_may_flush_from_inside() {
    struct Flushes(OnceLock<CircuitRegistry>, AtomicUsize);
    impl Observer for Flushes {
        fn on_event(&self, _: &Event) {
            self.0.get().expect("set before the first event").flush_observers();
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
    let observer = Arc::new(Flushes(OnceLock::new(), AtomicUsize::new(0)));
    let registry = CircuitRegistry::builder().observer(observer.clone()).build();
    drop(observer.0.set(registry.clone()));
    call(&registry.breaker("s"), Verdict::Success);
    registry.flush_observers();
    assert_eq!(observer.1.load(Ordering::Relaxed), 2);
    registry.end_observers();
}

#[test]
fn an_observer_that_holds_its_registry_can_be_let_go() {
    struct Holds(OnceLock<CircuitRegistry>, Arc<AtomicUsize>);
    impl Observer for Holds {
        fn on_event(&self, _: &Event) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
    let heard = Arc::new(AtomicUsize::new(0));
    for round in 0..20 {
        let observer = Arc::new(Holds(OnceLock::new(), heard.clone()));
        let gone = Arc::downgrade(&observer);
        let registry = CircuitRegistry::builder().observer(observer.clone()).build();
        drop(observer.0.set(registry.clone()));
        drop(observer);
        call(&registry.breaker("s"), Verdict::Success);
        let mut events = registry.subscribe();
        registry.end_observers();
        call(&registry.breaker("s"), Verdict::Success);
        registry.flush_observers();
        assert_eq!(heard.load(Ordering::Relaxed), 2 * (round + 1), "what came before it, and nothing after");
        let next = futures::FutureExt::now_or_never(events.next());
        assert_eq!(next, Some(None), "and its streams end");
        drop(registry);
        assert!(gone.upgrade().is_none(), "the observer is gone");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_registry_without_events_has_no_thread() {
    let threads = || std::fs::read_dir("/proc/self/task").expect("threads").count();
    let before = threads();
    let build = || CircuitRegistry::builder().observer(Heard::default()).build();
    let registries: Vec<_> = std::iter::repeat_with(build).take(200).collect();
    // Other tests start threads at the same time, but not this many.
    assert!(threads() < before + 100, "{} threads for 200 registries", threads() - before);
    drop(registries);
}

#[tokio::test]
async fn a_stream_has_transitions_in_order_and_no_calls() {
    let registry = CircuitRegistry::new(BreakersConfig::from_yaml("services: { s: { fail_max: 2 } }").unwrap());
    let breaker = registry.breaker("s");
    call(&breaker, Verdict::Failure);
    let mut events = registry.subscribe();
    let late = registry.subscribe();
    call(&breaker, Verdict::Failure);
    drop(late);
    breaker.reset();
    for expected in [State::Open, State::Closed] {
        let event = events.next().await.expect("an event");
        assert!(matches!(&event.kind, EventKind::Transition(t) if t.to == expected), "{event:?}");
        assert_eq!(event.service, "s");
    }
    drop((breaker, registry));
    assert_eq!(events.next().await, None, "the registry is gone");
    assert_eq!(events.missed(), 0);
}
