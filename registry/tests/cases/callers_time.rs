//! The time of the caller: a call that comes too late is not started, waits end at the deadline, and the service is not blamed for
//! a caller in a hurry.

use std::sync::atomic::{AtomicU32, Ordering};

use circuit_registry::{CallContext, Override, RejectReason, Rejection};
use tokio::time::sleep;

use super::*;

fn within(time: Duration) -> CallContext {
    CallContext::attempt(1).with_deadline(Instant::now() + time)
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn reason<T, E>(result: &Result<T, CallError<E>>) -> Option<RejectReason> {
    result.as_ref().err().and_then(|error| error.rejection()).map(|rejection| rejection.reason)
}

#[tokio::test(start_paused = true)]
async fn a_call_with_no_time_left_is_not_started() {
    for keys in
        ["", ", timeout: 5s", ", bulkhead: { max_concurrent: 1 }", ", rate_limit: 1/h", ", retry: { budget: 20% }"]
    {
        let case = Case::of(&format!("services: {{ s: {{ fail_max: 3{keys} }} }}"));
        case.at(1.0).await;
        let started = AtomicU32::new(0);
        for _ in 0..20 {
            let work = async {
                started.fetch_add(1, Ordering::Relaxed);
                Err::<(), _>(io::Error::from(io::ErrorKind::TimedOut))
            };
            let result = within(Duration::ZERO).scope(case.s.call(work)).await;
            assert_eq!(reason(&result), Some(RejectReason::NoTimeLeft), "{keys}");
            let refused = within(Duration::ZERO).scope(async { case.s.try_acquire() }).await;
            assert!(matches!(refused, Err(Rejection { reason: RejectReason::NoTimeLeft, .. })), "{keys}");
        }
        let view = case.s.view();
        assert_eq!((started.load(Ordering::Relaxed), view.state, view.consecutive_failures), (0, State::Closed, 0));
        assert_eq!((view.calls.rejected_no_time_left, view.calls.rejected(), view.in_flight), (40, 40, 0));
        assert!(case.admits(), "and no token was spent: {keys}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_place_ends_at_the_callers_deadline() {
    let case = Case::of("services: { s: { fail_max: 1, bulkhead: { max_concurrent: 1, max_wait: 5s } } }");
    let _held = case.start();
    let result = within(secs(2)).scope(case.s.call(pending::<io::Result<()>>())).await;
    assert_eq!(reason(&result), Some(RejectReason::BulkheadFull));
    assert!(case.start.elapsed() < secs(2), "{:?}", case.start.elapsed());
    assert_eq!((case.state(), case.failures()), (State::Closed, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_its_caller_cut_is_no_failure() {
    // The time the caller gives, and whether a hung call is a failure then.
    let cases = [
        ("timeout: 5s", 3, false),
        ("timeout: 5s", 60, true),
        ("window: { calls: 10, failure_rate: 100%, slow_call: 2s, slow_rate: 100% }", 1, false),
        ("window: { calls: 10, failure_rate: 100%, slow_call: 2s, slow_rate: 100% }", 4, true),
        ("fail_max: 5", 9, false),
        ("fail_max: 5", 20, true),
    ];
    for (keys, time, failure) in cases {
        let case = Case::of(&format!("services: {{ s: {{ {keys} }} }}"));
        let result = within(secs(time)).scope(hang(&case.s)).await;
        assert!(matches!(result, Err(CallError::TimedOut { .. })), "{result:?}");
        assert!(case.start.elapsed() < secs(time));
        let calls = case.s.view().calls;
        let expected = if failure { (1, 0, 0) } else { (0, 1, 1) };
        assert_eq!((calls.failure, calls.neutral, calls.cut_short), expected, "{keys} within {time} s");
        assert_eq!(calls.timed_out, u64::from(failure));
    }
}

#[tokio::test(start_paused = true)]
async fn waiters_hear_of_every_change() {
    const WAITING: &str = "services: { s: { fail_max: 3, bulkhead: { max_concurrent: 2, max_wait: 1h } } }";
    for (what, expected) in [("an override", RejectReason::ForcedOpen), ("a trip", RejectReason::Open)] {
        let case = Case::of(WAITING);
        let _hung = case.start();
        let other = case.start();
        let waiter = tokio::spawn({
            let breaker = case.s.clone();
            async move { breaker.acquire().await.map(drop) }
        });
        sleep(secs(1)).await;
        if what == "a trip" {
            other.settle(Verdict::Throttled { retry_after: Some(secs(60)) });
        } else {
            case.s.force_open(Override::new("alice", "why"));
        }
        let refused = waiter.await.expect("no panic").expect_err("rejected");
        assert_eq!(refused.reason, expected, "{what}");
        assert!(case.start.elapsed() < secs(2), "{what}: at once");
    }
    let case = Case::of(WAITING);
    let _hung = (case.start(), case.start());
    let waiter = tokio::spawn({
        let breaker = case.s.clone();
        async move { breaker.acquire().await.map(drop) }
    });
    sleep(secs(1)).await;
    case.registry.apply(config("services: { s: { fail_max: 3, bulkhead: { max_concurrent: 3, max_wait: 1h } } }"));
    waiter.await.expect("no panic").expect("a reload made room");
    assert!(case.start.elapsed() < secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_bulkhead_counts_calls_of_before_it() {
    let case = Case::three();
    let mut calls: Vec<_> = (0..4).map(|_| case.start()).collect();
    case.registry
        .apply(config("services: { s: { fail_max: 3, reset_timeout: 60s, bulkhead: { max_concurrent: 2 } } }"));
    assert!(!case.admits());
    for left in [3, 2] {
        calls.pop().expect("one more").settle(Verdict::Success);
        assert!(!case.admits(), "{left} in flight");
    }
    calls.pop().expect("one more").settle(Verdict::Success);
    assert!(case.admits());
}

#[test]
fn a_runtime_without_timers_keeps_timeouts_by_polling() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let case =
        Case::of("services: { s: { fail_max: 1, timeout: 20ms, bulkhead: { max_concurrent: 1, max_wait: 1s } } }");
    runtime.block_on(async {
        let work = async {
            loop {
                tokio::task::yield_now().await;
            }
        };
        let result = case.s.call::<(), io::Error, _>(work).await;
        assert!(matches!(result, Err(CallError::TimedOut { .. })), "{result:?}");
        assert_eq!(case.state(), State::Open);
        case.s.reset();
        let _held = case.start();
        assert!(case.s.acquire().await.is_err(), "no timer, no wait");
    });
}
