//! What a user of `call` and `acquire` sees, on paused time. The cases of the contract are in `cases`; real services are not
//! touched here.

use std::{io, time::Duration};

use circuit_registry::{
    BreakersConfig, CallContext, CallError, CircuitRegistry, RejectReason, Rejection, State, Verdict,
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
    let Err(CallError::Rejected(Rejection { reason: RejectReason::Open, service, retry_in: Some(retry_in), .. })) =
        ok(&registry, "s").await
    else {
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
async fn a_call_given_up_is_neutral_until_it_has_outlived_its_time() {
    let deadline = CallContext::attempt(1).with_deadline(Instant::now());
    for (keys, context, fails) in [
        ("timeout: 18s", CallContext::attempt(1), true),
        ("timeout: 60s", deadline.clone(), false), // the caller's own hurry
        ("", deadline, true),
    ] {
        for (dropped_after, over) in [(17, false), (18, true)] {
            let (neutral, failure) = if over && fails { (0, 1) } else { (1, 0) };
            let registry = registry(&format!("services: {{ s: {{ {keys} }} }}"));
            let mut context = context.clone();
            context.deadline = context.deadline.map(|_| Instant::now() + Duration::from_secs(19));
            let call = context.scope(registry.call("s", std::future::pending::<Result<(), io::Error>>()));
            let mut call = Box::pin(call);
            assert!(futures::poll!(&mut call).is_pending());
            advance(Duration::from_secs(dropped_after)).await;
            drop(call); // and its alarm was never polled
            let calls = registry.breaker("s").view().calls;
            assert_eq!((calls.neutral, calls.failure), (neutral, failure), "{keys}, after {dropped_after} s");
            assert_eq!(calls.cut_short, u64::from(over && !fails), "{keys}, after {dropped_after} s");
        }
    }
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
    assert!(matches!(
        now.acquire().await,
        Err(Rejection { reason: RejectReason::BulkheadFull, max_concurrent: Some(2), .. })
    ));
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
    assert!(
        matches!(soon.acquire().await, Err(Rejection { reason: RejectReason::BulkheadFull, .. })),
        "and not later than max_wait"
    );
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
    assert!(matches!(refused, Err(CallError::Rejected(Rejection { reason: RejectReason::BudgetExhausted, .. }))));
}
