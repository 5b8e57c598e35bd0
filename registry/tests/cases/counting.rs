//! What counts, and when it is enough.

use std::{future::pending, io, time::Duration};

use circuit_registry::{CallError, EventKind, State, Verdict};
use futures::future::join_all;

use crate::{Case, Heard, at_once, hang};

#[tokio::test(start_paused = true)]
async fn a_success_between_failures_starts_the_count_again() {
    let case = Case::three();
    case.fail();
    case.fail();
    case.succeed();
    case.fail();
    case.fail();
    assert_eq!((case.state(), case.failures()), (State::Closed, 2));
}

#[tokio::test(start_paused = true)]
async fn a_neutral_call_between_failures_does_not() {
    let case = Case::three();
    case.fail();
    case.fail();
    case.start().settle(Verdict::Neutral);
    case.fail();
    assert_eq!(case.state(), State::Open);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_cancelled_calls_count_nothing() {
    let case = Case::of("services: { s: { fail_max: 3, timeout: 5s } }");
    for _ in 0..100 {
        let call = hang(&case.s);
        let _ = tokio::time::timeout(Duration::from_secs(1), call).await.expect_err("cancelled");
    }
    let view = case.s.view();
    assert_eq!((view.state, view.consecutive_failures, view.in_flight), (State::Closed, 0, 0));
    assert_eq!((view.calls.neutral, view.calls.failure), (100, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_cancelled_after_its_timeout_is_a_failure() {
    let case = Case::of("services: { s: { fail_max: 3, timeout: 5s } }");
    let permits = [case.start(), case.start(), case.start()];
    case.at(4.999).await;
    drop(case.start());
    case.at(5.0).await;
    drop(permits);
    assert_eq!((case.state(), case.s.view().calls.neutral), (State::Open, 1));
}

#[tokio::test(start_paused = true)]
async fn three_hung_calls_open_when_their_timeout_is_over() {
    let case = Case::of("services: { s: { fail_max: 3, timeout: 5s } }");
    for result in join_all((0..3).map(|_| hang(&case.s))).await {
        assert!(matches!(result, Err(CallError::TimedOut { after, .. }) if after == Duration::from_secs(5)));
    }
    assert_eq!(case.start.elapsed(), Duration::from_secs(5));
    assert_eq!((case.state(), case.s.view().calls.timed_out), (State::Open, 3));
}

#[tokio::test(start_paused = true)]
async fn a_count_window_slides() {
    let case = Case::of("services: { s: { window: { calls: 10, failure_rate: 50% } } }");
    (0..1000).for_each(|_| case.succeed());
    (0..4).for_each(|_| case.fail());
    assert_eq!(case.state(), State::Closed);
    case.fail();
    assert_eq!(case.state(), State::Open, "on the fifth of the last ten");
}

#[tokio::test(start_paused = true)]
async fn the_minimum_is_enough_however_large_the_window() {
    let case = Case::of("services: { s: { window: { calls: 100, minimum_calls: 5, failure_rate: 50% } } }");
    (0..4).for_each(|_| case.fail());
    assert_eq!(case.state(), State::Closed);
    case.fail();
    assert_eq!(case.state(), State::Open);
}

#[tokio::test(start_paused = true)]
async fn one_good_probe_closes_whatever_the_windows_minimum() {
    let case = Case::of(
        "services: { s: { reset_timeout: 60s, half_open: { permits: 1 },
                          window: { calls: 100, minimum_calls: 50, failure_rate: 50% } } }",
    );
    (0..50).for_each(|_| case.fail());
    assert_eq!(case.state(), State::Open);
    case.at(60.0).await;
    case.succeed();
    let view = case.s.view();
    assert_eq!((view.state, view.window_calls), (State::Closed, Some(0)), "and the window is empty");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_threads_that_fail_once_each_open_once() {
    let (case, heard) = Heard::of("services: { s: { fail_max: 1000 } }");
    let admitted: Vec<_> = (0..1000).map(|_| std::sync::Mutex::new(Some(case.start()))).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    at_once(1000, || {
        let mine = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        admitted[mine].lock().unwrap().take().map(|call| call.settle(Verdict::Failure))
    });
    let view = case.s.view();
    assert_eq!((view.state, view.calls.to_open, view.calls.failure), (State::Open, 1, 1000));
    assert_eq!(heard.count(&case, |kind| matches!(kind, EventKind::Transition(_))), 1);
}

#[tokio::test(start_paused = true)]
async fn without_listeners_a_thousand_threads_open_once_too() {
    let case = Case::of("services: { s: { fail_max: 1000 } }");
    at_once(1000, || case.s.try_acquire().map(|call| call.settle(Verdict::Failure)).is_ok());
    let view = case.s.view();
    assert_eq!((view.state, view.calls.to_open, view.calls.failure), (State::Open, 1, 1000));
}

#[tokio::test(start_paused = true)]
async fn a_throttle_opens_for_its_time_and_counts_no_failure() {
    let case = Case::of("services: { s: { fail_max: 3, reset_timeout: 60s, throttle_max: 10m } }");
    case.fail();
    case.start().settle(Verdict::Throttled { retry_after: Some(Duration::from_secs(90)) });
    assert_eq!((case.state(), case.failures(), case.retry_in()), (State::Open, 1, Duration::from_secs(90)));
    case.at(90.0).await;
    case.start().settle(Verdict::Throttled { retry_after: Some(Duration::from_secs(86_400)) });
    assert_eq!(case.retry_in(), Duration::from_secs(600), "capped");
    case.at(690.0).await;
    case.start().settle(Verdict::Throttled { retry_after: None });
    assert_eq!(case.retry_in(), Duration::from_secs(60), "the policy's own time where it names none");
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_while_the_runtime_ends_is_neutral() {
    let case = Case::three();
    let s = case.s.clone();
    let task = tokio::spawn(async move { s.call(pending::<io::Result<()>>()).await });
    tokio::task::yield_now().await;
    assert_eq!(case.s.view().in_flight, 1);
    task.abort();
    assert!(task.await.expect_err("aborted").is_cancelled());
    let view = case.s.view();
    assert_eq!((view.in_flight, view.calls.neutral, view.consecutive_failures), (0, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn calls_as_slow_as_the_threshold_open_by_their_share() {
    for other in ["", ", timeout: 1m", ", bulkhead: { max_concurrent: 9 }"] {
        let case = Case::of(&format!(
            "services: {{ s: {{ window: {{ calls: 4, minimum_calls: 4, slow_call: 2s, slow_rate: 50% }}{other} }} }}"
        ));
        for millis in [1999, 2000, 0] {
            let call = case.s.call(async {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                io::Result::Ok(())
            });
            call.await.unwrap();
        }
        let view = case.s.view();
        assert_eq!((view.state, view.slow_rate), (State::Closed, Some(1.0 / 3.0)), "{other}");
        let slow = case.start();
        tokio::time::advance(Duration::from_secs(2)).await;
        slow.settle(Verdict::Success);
        assert_eq!((case.state(), case.s.view().reason.as_deref()), (State::Open, Some("2 of 4 calls were slow")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_probe_does_not_close() {
    let case = Case::of(
        "services: { s: { reset_timeout: 60s, window: { calls: 4, minimum_calls: 1, slow_call: 2s, slow_rate: 100% } } }",
    );
    let slow = case.start();
    case.at(2.0).await;
    slow.settle(Verdict::Success);
    assert_eq!(case.state(), State::Open);
    case.at(62.0).await;
    let probe = case.start();
    case.at(64.0).await;
    probe.settle(Verdict::Success);
    assert_eq!(case.state(), State::Open);
    case.at(124.0).await;
    case.succeed();
    assert_eq!(case.state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_failure_with_retry_after_opens_at_least_that_long() {
    struct Overloaded(u64);
    impl circuit_registry::Classify for Overloaded {
        fn verdict(&self) -> Verdict {
            Verdict::Failure
        }
        fn retry_after(&self) -> Option<Duration> {
            Some(Duration::from_secs(self.0))
        }
    }
    for (asked, lasts) in [(10, 60), (90, 90), (86_400, 600)] {
        let case = Case::of("services: { s: { fail_max: 3, reset_timeout: 60s, throttle_max: 10m } }");
        for _ in 0..2 {
            assert!(case.s.call(async { Err::<(), _>(Overloaded(asked)) }).await.is_err());
            assert_eq!(case.state(), State::Closed);
        }
        case.start().settle_error(&Overloaded(asked));
        assert_eq!(case.retry_in(), Duration::from_secs(lasts));
    }
}

#[tokio::test(start_paused = true)]
async fn come_back_at_once_is_not_taken_literally() {
    for retry_after in [None, Some(Duration::ZERO)] {
        let case = Case::three();
        case.start().settle(Verdict::Throttled { retry_after });
        assert_eq!((case.state(), case.retry_in()), (State::Open, Duration::from_secs(60)), "{retry_after:?}");
        assert_eq!((0..1000).filter(|_| case.admits()).count(), 0);
    }
    let case = Case::three();
    case.start().settle(Verdict::Throttled { retry_after: Some(Duration::from_secs(7)) });
    assert_eq!(case.retry_in(), Duration::from_secs(7), "a real time is kept");
}
