//! What a user of the library sees, on paused time. The state machine's fine print is tested in `machine`; real services
//! are not touched here.

use std::{io, time::Duration};

use circuit_registry::{
    BreakersConfig, CallContext, CallError, CircuitRegistry, Override, Rejection, Settlement, State, Verdict,
};
use tokio::time::{Instant, advance, sleep};

fn registry(yaml: &str) -> CircuitRegistry {
    CircuitRegistry::new(BreakersConfig::from_yaml(yaml).expect("valid configuration"))
}

async fn fail(registry: &CircuitRegistry, service: &str, times: usize) {
    for _ in 0..times {
        let result = registry.call(service, async { Err::<(), _>(io::Error::other("down")) }).await;
        assert!(matches!(result, Err(CallError::Upstream(_))), "{result:?}");
    }
}

async fn ok(registry: &CircuitRegistry, service: &str) -> Result<(), CallError<io::Error>> {
    registry.call(service, async { Ok(()) }).await
}

const THREE: &str = "defaults: { fail_max: 3, reset_timeout: 60s }\nservices: { s: {} }";

#[tokio::test(start_paused = true)]
async fn opens_rejects_probes_and_closes() {
    let registry = registry(THREE);
    fail(&registry, "s", 3).await;
    let Err(CallError::Rejected(Rejection::Open { service, retry_in, .. })) = ok(&registry, "s").await else {
        panic!("must be open")
    };
    assert_eq!((service.as_str(), retry_in), ("s", Duration::from_secs(60)));
    advance(Duration::from_millis(59_999)).await;
    assert!(ok(&registry, "s").await.is_err());
    advance(Duration::from_millis(1)).await;
    assert_eq!(registry.breaker("s").view().state, State::HalfOpen, "exactly at the deadline counts as after");
    ok(&registry, "s").await.expect("the probe passes");
    assert_eq!(registry.breaker("s").view().state, State::Closed);
}

#[tokio::test(start_paused = true)]
async fn hung_calls_time_out_and_open() {
    let registry = registry("services: { s: { fail_max: 3, timeout: 5s } }");
    let calls: Vec<_> = (0..3).map(|_| registry.breaker("s")).collect();
    let hung = calls.iter().map(|b| b.call(std::future::pending::<Result<(), io::Error>>()));
    for result in futures::future::join_all(hung).await {
        assert!(matches!(result, Err(CallError::TimedOut { after, .. }) if after == Duration::from_secs(5)));
    }
    assert_eq!(registry.breaker("s").view().state, State::Open);
    assert_eq!(registry.breaker("s").view().calls.timed_out, 3);
}

#[tokio::test(start_paused = true)]
async fn a_callers_cancellation_is_neutral_unless_the_timeout_was_over() {
    let registry = registry("services: { s: { fail_max: 3, timeout: 5s } }");
    for _ in 0..100 {
        let call = registry.call("s", std::future::pending::<Result<(), io::Error>>());
        let _ = tokio::time::timeout(Duration::from_secs(1), call).await.expect_err("cancelled");
    }
    let view = registry.breaker("s").view();
    assert_eq!((view.state, view.consecutive_failures, view.in_flight), (State::Closed, 0, 0));

    let permit = registry.breaker("s").acquire().await.unwrap();
    advance(Duration::from_secs(5)).await;
    drop(permit);
    assert_eq!(registry.breaker("s").view().consecutive_failures, 1);
}

#[tokio::test(start_paused = true)]
async fn the_surrounding_deadline_caps_the_timeout() {
    let registry = registry("services: { s: { timeout: 60s } }");
    let start = Instant::now();
    let context = CallContext::attempt(1).with_deadline(start + Duration::from_secs(20));
    let hung = registry.call("s", std::future::pending::<Result<(), io::Error>>());
    let result = context.scope(hung).await;
    assert!(matches!(result, Err(CallError::TimedOut { .. })), "{result:?}");
    assert!(start.elapsed() < Duration::from_secs(20) && start.elapsed() >= Duration::from_secs(18));
}

#[tokio::test(start_paused = true)]
async fn the_bulkhead_rejects_at_once_or_waits() {
    let registry = registry(
        "services:
           now: { bulkhead: { max_concurrent: 2 } }
           soon: { bulkhead: { max_concurrent: 1, max_wait: 1s } }",
    );
    let now = registry.breaker("now");
    let (_a, b) = (now.acquire().await.unwrap(), now.acquire().await.unwrap());
    assert!(matches!(now.acquire().await, Err(Rejection::BulkheadFull { max_concurrent: 2, .. })));
    b.settle(Verdict::Success);
    assert!(now.acquire().await.is_ok());

    let soon = registry.breaker("soon");
    let permit = soon.acquire().await.unwrap();
    let waiting = tokio::spawn({
        let soon = soon.clone();
        async move { soon.acquire().await.map(drop) }
    });
    sleep(Duration::from_millis(500)).await;
    drop(permit);
    waiting.await.unwrap().expect("the place freed in time");
    let _held = soon.acquire().await.unwrap();
    assert!(matches!(soon.acquire().await, Err(Rejection::BulkheadFull { .. })), "and not later than max_wait");
}

#[tokio::test(start_paused = true)]
async fn a_rejection_costs_no_retry_token() {
    let registry = registry("services: { s: { fail_max: 1, reset_timeout: 60s, retry: { budget: 20% } } }");
    fail(&registry, "s", 1).await;
    let before = registry.breaker("s").view().budget_balance;
    for _ in 0..50 {
        let retry = CallContext::attempt(2).scope(ok(&registry, "s")).await;
        assert!(matches!(retry, Err(CallError::Rejected(Rejection::Open { .. }))));
    }
    assert_eq!(registry.breaker("s").view().budget_balance, before);
}

#[tokio::test(start_paused = true)]
async fn retries_are_paid_from_the_budget() {
    let registry = registry("services: { s: { retry: { budget: 20% } } }");
    let mut retried = 0;
    while CallContext::attempt(2).scope(ok(&registry, "s")).await.is_ok() {
        retried += 1;
    }
    assert_eq!(retried, 10);
    for _ in 0..5 {
        ok(&registry, "s").await.unwrap();
    }
    CallContext::attempt(2).scope(ok(&registry, "s")).await.expect("five first attempts pay for one retry");
    let refused = CallContext::attempt(2).scope(ok(&registry, "s")).await;
    assert!(matches!(refused, Err(CallError::Rejected(Rejection::BudgetExhausted { .. }))));
}

#[tokio::test(start_paused = true)]
async fn overrides_outrank_timers_and_verdicts() {
    let registry = registry(THREE);
    let breaker = registry.breaker("s");
    fail(&registry, "s", 3).await;
    breaker.force_open(Override::new("alice", "maintenance"));
    for _ in 0..2 {
        advance(Duration::from_secs(60)).await;
        assert!(matches!(breaker.try_acquire(), Err(Rejection::Open { forced: true, .. })));
    }
    breaker.auto();
    let probe = breaker.try_acquire().expect("due for a long time");
    breaker.force_open(Override::new("alice", "again"));
    assert_eq!(probe.settle(Verdict::Success), Settlement::Late);
    assert_eq!(breaker.view().state, State::Open);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_protected_call_is_a_failure_and_frees_its_slot() {
    let registry = registry(THREE);
    fail(&registry, "s", 3).await;
    advance(Duration::from_secs(60)).await;
    let breaker = registry.breaker("s");
    let panicked =
        tokio::spawn(async move { breaker.call(async { panic!("probe") as Result<(), io::Error> }).await }).await;
    assert!(panicked.is_err());
    let view = registry.breaker("s").view();
    assert_eq!((view.state, view.in_flight), (State::Open, 0), "a failed probe opens again");
}

#[tokio::test(start_paused = true)]
async fn names_are_bounded_and_open_breakers_stay() {
    let registry = registry("defaults: { fail_max: 1 }\nnames: { max_dynamic: 100 }");
    fail(&registry, "sick", 1).await;
    for i in 0..10_000 {
        ok(&registry, &format!("dynamic-{i}")).await.unwrap();
    }
    let views = registry.views();
    assert!(views.len() <= 100, "{}", views.len());
    assert!(views.iter().any(|v| v.service == "sick" && v.state == State::Open));
    assert!(views.iter().any(|v| v.service == "dynamic-9999"), "the newest is remembered");
}

#[tokio::test(start_paused = true)]
async fn a_member_inherits_the_policy_and_not_the_state() {
    let registry = registry("services: { vies: { fail_max: 1, reset_timeout: 77s } }");
    fail(&registry, "vies:DE", 1).await;
    assert_eq!(registry.breaker("vies:DE").view().retry_in, Some(Duration::from_secs(77)));
    assert_eq!(registry.breaker("vies:BE").view().state, State::Closed);
    assert_eq!(registry.breaker("vies").view().state, State::Closed);
}
