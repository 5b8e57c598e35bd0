//! Names made on first use: how many there may be, which of them are forgotten, and that a name never has two breakers.

use circuit_registry::{Override, Policy};

use super::*;

const CAP: &str = "defaults: { fail_max: 3, reset_timeout: 30s }\nnames: { max_dynamic: 8 }\n";

fn registry() -> CircuitRegistry {
    CircuitRegistry::builder().config(config(CAP)).log(false).build()
}

fn end(registry: &CircuitRegistry, name: &str, verdict: Verdict) {
    if let Ok(permit) = registry.breaker(name).try_acquire() {
        permit.settle(verdict);
    }
}

fn trip(registry: &CircuitRegistry, name: &str) {
    (0..3).for_each(|_| end(registry, name, Verdict::Failure));
}

fn names(registry: &CircuitRegistry) -> Vec<String> {
    registry.views().iter().map(|view| view.service.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_healthy_and_longest_idle_is_forgotten_first() {
    let registry = registry();
    end(&registry, "failing", Verdict::Failure);
    for n in 0..7 {
        end(&registry, &format!("n{n}"), Verdict::Success);
    }
    end(&registry, "n0", Verdict::Success);
    end(&registry, "new", Verdict::Success);
    let names = names(&registry);
    let there = |name: &str| names.iter().any(|known| known == name);
    assert!(there("failing") && there("n0") && there("new") && !there("n1"), "{names:?}");
    assert_eq!(registry.unguarded_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn names_that_opened_long_ago_make_room() {
    let registry = registry();
    (0..8).for_each(|n| trip(&registry, &format!("n{n}")));
    end(&registry, "new", Verdict::Failure);
    assert!(!names(&registry).contains(&"new".to_owned()), "all are open and not due");
    assert_eq!(registry.unguarded_calls(), 1);
    advance(Duration::from_secs(30)).await;
    trip(&registry, "new");
    assert_eq!(registry.state("new"), State::Open);
    assert_eq!((names(&registry).len(), registry.unguarded_calls()), (8, 1));
}

#[tokio::test(start_paused = true)]
async fn calls_without_a_breaker_pass_and_are_counted() {
    let registry = registry();
    let _held: Vec<_> = (0..8).map(|n| registry.breaker(&format!("n{n}"))).collect();
    for _ in 0..10 {
        let result =
            registry.call("new", async { Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionReset)) }).await;
        assert!(matches!(result, Err(CallError::Upstream(_))), "{result:?}");
    }
    assert_eq!((registry.unguarded_calls(), registry.state("new"), registry.views().len()), (10, State::Closed, 8));
}

#[tokio::test(start_paused = true)]
async fn what_must_not_be_forgotten_stays() {
    let registry = registry();
    trip(&registry, "open");
    registry.breaker("forced").force_closed(Override::new("alice", "why"));
    let held = registry.breaker("held");
    let call = registry.breaker("busy").try_acquire().expect("admitted");
    trip(&registry, "probing");
    advance(Duration::from_secs(30)).await;
    let probe = registry.breaker("probing").try_acquire().expect("a probe");
    trip(&registry, "open2");
    for n in 0..1000 {
        end(&registry, &format!("n{n}"), Verdict::Success);
    }
    let names = names(&registry);
    for name in ["forced", "held", "busy", "probing", "open2"] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    assert!(names.len() <= 8);
    held.reset();
    drop((call, probe));
}

#[tokio::test(start_paused = true)]
async fn names_removed_by_reload_can_be_forgotten() {
    let entries: Vec<_> = (0..32).map(|n| format!("old{n}: {{}}")).collect();
    let registry = CircuitRegistry::new(config(&format!("{CAP}services: {{ {} }}", entries.join(", "))));
    (0..32).for_each(|n| end(&registry, &format!("old{n}"), Verdict::Success));
    registry.apply(config(CAP));
    assert!(registry.views().len() <= 8, "{:?}", names(&registry));
    for n in 0..20 {
        trip(&registry, &format!("new{n}"));
        advance(Duration::from_secs(31)).await;
    }
    assert_eq!(registry.unguarded_calls(), 0);
    // A name that comes back finds the breaker that it had.
    assert_eq!(registry.breaker("old3").view().calls.success, 1);
}

#[tokio::test(start_paused = true)]
async fn failing_names_open_although_there_are_too_many() {
    let registry = registry();
    for _ in 0..3 {
        (0..16).for_each(|n| end(&registry, &format!("n{n}"), Verdict::Failure));
    }
    let open = registry.views().iter().filter(|view| view.state == State::Open).count();
    assert_eq!(open, 8, "as many as there is room for: {:?}", registry.views());
}

#[tokio::test(start_paused = true)]
async fn a_lowered_bound_forgets_the_healthy_first() {
    let registry = registry();
    registry.apply(config("defaults: { fail_max: 3 }\nnames: { max_dynamic: 1000 }"));
    (0..100).for_each(|n| end(&registry, &format!("a{n}"), if n < 5 { Verdict::Failure } else { Verdict::Success }));
    trip(&registry, "open");
    registry.apply(config("defaults: { fail_max: 3 }\nnames: { max_dynamic: 10 }"));
    let names = names(&registry);
    assert!(names.len() <= 10 && names.contains(&"open".to_owned()), "{names:?}");
    assert!((0..5).all(|n| names.contains(&format!("a{n}"))), "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn a_long_name_is_hashed() {
    let registry = registry();
    let long = "vies:".to_owned() + &"x".repeat(1 << 20);
    trip(&registry, &long);
    let view = &registry.views()[0];
    assert!(view.service.len() <= 200 && view.service.starts_with("vies:xxx"), "{}", view.service.len());
    assert_eq!((registry.state(&long), registry.state(&(long.clone() + "y"))), (State::Open, State::Closed));
}

#[tokio::test(start_paused = true)]
async fn a_policy_in_code_holds_until_it_is_removed() {
    let registry = registry();
    let policy = || Policy::builder().fail_max(1).build().expect("it makes sense");
    registry.configure("code", policy());
    end(&registry, "code", Verdict::Failure);
    assert_eq!(registry.state("code"), State::Open);
    assert!(registry.remove("code") && !registry.remove("code"));
    assert_eq!((registry.state("code"), registry.views().len()), (State::Closed, 0));
    end(&registry, "code", Verdict::Failure);
    assert_eq!(registry.state("code"), State::Closed, "by the defaults again");

    registry.configure("held", policy());
    let held = registry.breaker("held");
    assert!(registry.remove("held"));
    trip(&registry, "held");
    assert_eq!((held.state(), held.policy().trip.fail_max.map(|n| n.get())), (State::Open, Some(3)), "one breaker");
}

#[tokio::test(start_paused = true)]
async fn a_weak_handle_keeps_nothing_alive() {
    let registry = registry();
    let weak = registry.downgrade();
    assert!(weak.upgrade().is_some());
    drop(registry);
    assert!(weak.upgrade().is_none());
}

#[tokio::test(start_paused = true)]
async fn calls_can_be_kept_spawned_and_answered_otherwise() {
    let registry = registry();
    let country = "DE";
    let kept = registry.call(&format!("vies:{country}"), async { Ok::<_, io::Error>(1) });
    assert_eq!(kept.await.expect("answered"), 1);
    let breaker = registry.breaker("s");
    assert_eq!(
        tokio::spawn(breaker.call(async { Ok::<_, io::Error>(2) })).await.expect("no panic").expect("answered"),
        2
    );
    let failed = || io::Error::from(io::ErrorKind::ConnectionRefused);
    assert_eq!(breaker.call_blocking(|| Ok::<_, io::Error>(3)).expect("answered"), 3);
    let error = breaker.call_blocking(|| Err::<(), _>(failed())).expect_err("failed");
    assert!(std::error::Error::source(&error).is_some_and(|source| source.is::<io::Error>()));
    trip(&registry, "s");
    assert!(matches!(breaker.call_blocking(|| Ok::<_, io::Error>(3)), Err(CallError::Rejected(_))));
    assert_eq!(breaker.call_or(async { Err::<i32, _>(failed()) }, |why| i32::from(why.rejection().is_some())).await, 1);
    let refused = breaker.call(async { Ok::<_, io::Error>(2) }).await.expect_err("open");
    assert_eq!(refused.to_string(), "Circuit breaker open for 's' — failing fast; next try in 30 s");
}
