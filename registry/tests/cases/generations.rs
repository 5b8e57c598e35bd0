//! Calls that outlive the generation that admitted them.

use std::time::Duration;

use circuit_registry::{Settlement, State, Verdict};

use crate::Case;

#[tokio::test(start_paused = true)]
async fn an_early_success_neither_closes_nor_frees_a_slot() {
    let case = Case::three();
    let a = case.start();
    case.trip();
    case.at(61.0).await;
    let _probe = case.start();
    assert_eq!(a.settle(Verdict::Success), Settlement::Late);
    assert_eq!(case.state(), State::HalfOpen);
    assert!(!case.admits());
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_before_the_opening_does_not_fail_the_probes() {
    let case = Case::three();
    let a = case.start();
    case.trip();
    case.at(61.0).await;
    let probe = case.start();
    assert_eq!(a.settle(Verdict::Failure), Settlement::Late);
    assert_eq!(probe.settle(Verdict::Success), Settlement::Counted);
    assert_eq!(case.state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn failures_before_the_opening_do_not_count_after_it() {
    let case = Case::three();
    let before = [case.start(), case.start(), case.start()];
    case.trip();
    case.at(60.0).await;
    case.succeed();
    assert_eq!(case.state(), State::Closed);
    for call in before {
        assert_eq!(call.settle(Verdict::Failure), Settlement::Late);
    }
    assert_eq!((case.state(), case.failures(), case.s.view().calls.late), (State::Closed, 0, 3));
}

#[tokio::test(start_paused = true)]
async fn a_success_while_open_moves_no_deadline() {
    let case = Case::three();
    let a = case.start();
    case.trip();
    case.at(10.0).await;
    assert_eq!(a.settle(Verdict::Success), Settlement::Late);
    assert_eq!((case.state(), case.retry_in()), (State::Open, Duration::from_secs(50)));
}

#[tokio::test(start_paused = true)]
async fn nothing_moves_the_deadline_while_open() {
    let case = Case::three();
    let a = case.start();
    case.trip();
    case.at(55.0).await;
    assert_eq!(a.settle(Verdict::Failure), Settlement::Late);
    for _ in 0..100 {
        assert!(!case.admits());
    }
    assert_eq!(case.retry_in(), Duration::from_secs(5));
    case.at(60.0).await;
    assert!(case.admits());
}

#[tokio::test(start_paused = true)]
async fn a_throttle_of_before_the_opening_moves_no_deadline() {
    let case = Case::three();
    let a = case.start();
    case.trip();
    let late = a.settle(Verdict::Throttled { retry_after: Some(Duration::from_secs(600)) });
    assert_eq!((late, case.retry_in()), (Settlement::Late, Duration::from_secs(60)));
}
