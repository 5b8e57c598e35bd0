//! Many threads at one breaker.

use std::{
    collections::HashMap,
    io,
    sync::{Barrier, Mutex},
    thread,
    time::Duration,
};

use circuit_registry::{CircuitRegistry, Override};
use proptest::prelude::*;

use crate::{State, Verdict, config};

const THREADS: u64 = 4;

/// Uniform and reproducible.
fn draw(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    /// Probes are counted when they are known and forgotten before they are settled, so the count is never above the truth.
    #[test]
    fn probes_never_exceed_the_permits_on_many_threads(permits in 1..4_u64, seed in any::<u64>()) {
        let registry = CircuitRegistry::new(config(&format!(
            "services: {{ s: {{ fail_max: 2, reset_timeout: 1us, half_open: {{ permits: {permits}, max_wait: 1h }} }} }}"
        )));
        let breaker = registry.breaker("s");
        let (probes, barrier) = (Mutex::new(HashMap::new()), Barrier::new(THREADS as usize));
        let work = |thread: u64| {
            let mut seed = seed.wrapping_add(thread);
            let mut admitted = 0_u64;
            barrier.wait();
            for _ in 0..2000 {
                let Ok(call) = breaker.try_acquire() else { continue };
                admitted += 1;
                if call.is_probe() {
                    let mut probes = probes.lock().expect("no panic");
                    let out = probes.entry(call.generation()).or_insert(0_u64);
                    *out += 1;
                    assert!(*out <= permits, "{out} probes of generation {}", call.generation());
                }
                if draw(&mut seed).is_multiple_of(4) {
                    thread::yield_now();
                }
                if call.is_probe() {
                    *probes.lock().expect("no panic").get_mut(&call.generation()).expect("counted") -= 1;
                }
                match draw(&mut seed) % 6 {
                    0..=1 => drop(call.settle(Verdict::Success)),
                    2..=3 => drop(call.settle(Verdict::Failure)),
                    4 => drop(call.settle(Verdict::Throttled { retry_after: Some(Duration::from_nanos(1)) })),
                    _ => drop(call),
                }
            }
            admitted
        };
        let admitted: u64 = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|n| { let work = &work; scope.spawn(move || work(n)) }).collect();
            threads.into_iter().map(|t| t.join().expect("no panic")).sum()
        });
        let view = breaker.view();
        let calls = view.calls;
        prop_assert_eq!(view.in_flight, 0);
        prop_assert_eq!(calls.success + calls.failure + calls.throttled + calls.neutral, admitted);
        prop_assert_eq!(calls.rejected(), THREADS * 2000 - admitted);
        prop_assert!(calls.to_half_open > 0, "it never came to probes");
        // Every opening but the last led to a probe; every close came after one.
        prop_assert!(calls.to_open >= calls.to_half_open && calls.to_open + calls.to_closed <= 2 * calls.to_half_open + 1);
    }

    /// Operators and reloads beside the calls: nothing deadlocks, nothing is lost, and the last word holds.
    #[test]
    fn operators_beside_callers_have_the_last_word(seed in any::<u64>()) {
        let yaml = |n: u32| config(&format!("services: {{ s: {{ fail_max: {n}, reset_timeout: 1ms, bulkhead: {{ max_concurrent: {n} }} }} }}"));
        let registry = CircuitRegistry::new(yaml(1));
        let breaker = registry.breaker("s");
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (breaker, mut seed) = (breaker.clone(), seed ^ thread);
                scope.spawn(move || for _ in 0..1000 {
                    if let Ok(call) = breaker.try_acquire() {
                        let verdict = if draw(&mut seed).is_multiple_of(2) { Verdict::Success } else { Verdict::Failure };
                        call.settle(verdict);
                    }
                });
            }
            let mut seed = seed;
            for n in 0..200 {
                match draw(&mut seed) % 6 {
                    0 => breaker.force_open(Override::new("a", "why")),
                    1 => breaker.force_closed(Override::new("b", "why")),
                    2 => breaker.observe_only(Override::new("c", "why")),
                    3 => breaker.auto(),
                    4 => breaker.reset(),
                    _ => drop(registry.apply(yaml(1 + n % 3))),
                }
            }
            breaker.force_open(Override::new("a", "the last word"));
        });
        prop_assert_eq!((breaker.view().state, breaker.view().in_flight), (State::Open, 0));
        prop_assert!(breaker.try_acquire().is_err());
        breaker.auto();
        breaker.reset();
        prop_assert!(breaker.try_acquire().is_ok());
    }
}

/// Each of these keeps calls by another way through the breaker.
const WAYS: [&str; 6] = [
    "{ fail_max: 3 }",
    "{ fail_max: 3, timeout: 1h }",
    "{ window: { calls: 10, failure_rate: 50%, slow_call: 1s, slow_rate: 50% } }",
    "{ bulkhead: { max_concurrent: 2, max_wait: 1h } }",
    "{ mode: observe }",
    "{ fail_max: 1, half_open: { permits: 2 } }",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_calls_run_at_the_same_time_whatever_the_policy() {
    for way in WAYS {
        let registry = CircuitRegistry::new(config(&format!("services: {{ s: {way} }}")));
        let breaker = registry.breaker("s");
        if way.contains("permits") {
            breaker.try_acquire().unwrap().settle(Verdict::Throttled { retry_after: Some(Duration::from_nanos(1)) });
        }
        // Each holds its thread until the other is there too: with a lock around the call, neither would get any further.
        let meet = std::sync::Arc::new(Barrier::new(2));
        let call = || {
            let (breaker, meet) = (breaker.clone(), meet.clone());
            tokio::spawn(async move {
                breaker
                    .call(async {
                        meet.wait();
                        io::Result::Ok(())
                    })
                    .await
            })
        };
        let (one, other) = (call(), call());
        one.await.unwrap().unwrap();
        other.await.unwrap().unwrap();
        assert_eq!(breaker.view().in_flight, 0, "{way}");
    }
}

#[tokio::test]
async fn a_protected_call_may_use_its_own_breaker() {
    for way in WAYS {
        let registry = CircuitRegistry::new(config(&format!("services: {{ s: {way} }}")));
        let breaker = registry.breaker("s");
        let inner = breaker.clone();
        let outcome = breaker
            .call(async {
                assert_eq!(inner.view().in_flight, 1);
                inner.call(async { io::Result::Ok(()) }).await.expect("a second call fits");
                inner.force_open(Override::new("the call itself", "why not"));
                registry.apply(config("services: { s: { fail_max: 9 }, t: {} }"));
                inner.reset();
                inner.auto();
                assert_eq!(registry.views().len(), 2);
                io::Result::Ok(())
            })
            .await;
        assert!(outcome.is_ok(), "{way}");
        assert_eq!(breaker.view().in_flight, 0, "{way}");
    }
}
