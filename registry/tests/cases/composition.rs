//! Breakers beside other limits, and beside each other.

use std::time::Duration;

use circuit_registry::{
    BreakersConfig, CallContext, CallError, CircuitRegistry, RejectReason, Rejection, State, Verdict,
};

use crate::{Case, hang};

#[tokio::test(start_paused = true)]
async fn a_rejection_costs_no_retry_token() {
    let case = Case::of("services: { s: { fail_max: 3, reset_timeout: 60s, retry: { budget: 20% } } }");
    case.trip();
    let before = case.s.view().budget_balance;
    for _ in 0..50 {
        let retry = CallContext::attempt(2).scope(hang(&case.s)).await;
        assert!(matches!(retry, Err(CallError::Rejected(Rejection { reason: RejectReason::Open, .. }))));
    }
    assert_eq!((before, case.s.view().budget_balance), (Some(10), Some(10)));
}

#[tokio::test(start_paused = true)]
async fn a_full_bulkhead_gives_back_the_token_and_is_neutral() {
    let case = Case::of(
        "services: { s: { fail_max: 3, reset_timeout: 60s, rate_limit: 3/h, retry: { budget: 20% },
                          bulkhead: { max_concurrent: 1 } } }",
    );
    let held = case.start();
    for _ in 0..50 {
        let refused = CallContext::attempt(2).scope(async { case.s.try_acquire() }).await;
        assert!(matches!(refused, Err(Rejection { reason: RejectReason::BulkheadFull, .. })), "{refused:?}");
    }
    held.settle(Verdict::Failure);
    assert_eq!((case.failures(), case.s.view().budget_balance), (1, Some(10)));
    case.succeed();
    case.succeed();
    assert!(
        matches!(case.s.try_acquire(), Err(Rejection { reason: RejectReason::RateLimited, .. })),
        "three tokens an hour, three calls"
    );
}

#[tokio::test(start_paused = true)]
async fn a_refusal_after_the_deadline_takes_no_probe_slot() {
    let case = Case::of("services: { s: { fail_max: 3, reset_timeout: 60s, rate_limit: 3/h } }");
    case.trip();
    case.at(60.0).await;
    assert!(matches!(case.s.try_acquire(), Err(Rejection { reason: RejectReason::RateLimited, .. })));
    assert_eq!((case.state(), case.s.view().calls.to_half_open), (State::HalfOpen, 0));
    case.at(3600.0).await;
    case.succeed();
    assert_eq!(case.state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn the_probes_of_a_hundred_breakers_spread_over_the_jitter() {
    let config = BreakersConfig::from_yaml(
        "defaults: { fail_max: 1, reset_timeout: 60s, reset_growth: { factor: 1, jitter: 20% } }",
    )
    .unwrap();
    let registry = CircuitRegistry::builder().config(config).seed(7).build();
    let due: Vec<Duration> = (0..100)
        .map(|i| {
            let breaker = registry.breaker(&format!("service-{i}"));
            breaker.try_acquire().unwrap().settle(Verdict::Failure);
            breaker.view().retry_in.expect("open")
        })
        .collect();
    assert!(due.iter().all(|d| (60.0..=72.0).contains(&d.as_secs_f64())), "{due:?}");
    // Twelve seconds of jitter in four quarters: each holds a fair part of the hundred.
    for quarter in 0..4 {
        let from = Duration::from_secs(60 + 3 * quarter);
        let there = due.iter().filter(|d| **d >= from && **d < from + Duration::from_secs(3)).count();
        assert!((10..=40).contains(&there), "{there} of 100 in quarter {quarter}");
    }
}
