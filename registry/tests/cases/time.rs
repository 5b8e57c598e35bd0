//! Deadlines, and the clocks that must not matter to them.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use circuit_registry::{CircuitRegistry, State, Verdict, WallClock};

use crate::{Case, THREE, config};

/// A wall clock that the test sets.
#[derive(Clone)]
struct SetWall(Arc<Mutex<SystemTime>>);

impl WallClock for SetWall {
    fn now(&self) -> SystemTime {
        *self.0.lock().expect("no panic")
    }
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_set_back_does_not_prolong_the_opening() {
    const HOUR: Duration = Duration::from_secs(3600);
    let noon = SystemTime::UNIX_EPOCH + 12 * HOUR;
    let wall = SetWall(Arc::new(Mutex::new(noon)));
    let case = Case::with(CircuitRegistry::builder().config(config(THREE)).wall_clock(wall.clone()).build());
    case.trip();
    *wall.0.lock().unwrap() = noon - HOUR;
    case.at(59.999).await;
    assert_eq!((case.state(), case.admits()), (State::Open, false));
    case.at(60.0).await;
    assert_eq!((case.state(), case.admits()), (State::HalfOpen, true));
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_failed_probes_wait_for_the_cap_and_no_longer() {
    let case = Case::of(
        "services: { s: { fail_max: 3, reset_timeout: 60s, reset_growth: { factor: 2, max: 10m, jitter: 20% } } }",
    );
    case.trip();
    let mut longest = Duration::ZERO;
    for _ in 0..10_000 {
        let open_for = case.retry_in();
        assert!((60..=600).contains(&open_for.as_secs()), "{open_for:?}");
        longest = longest.max(open_for);
        tokio::time::advance(open_for).await;
        case.fail();
    }
    assert_eq!((longest, case.retry_in()), (Duration::from_secs(600), Duration::from_secs(600)));
    tokio::time::advance(case.retry_in()).await;
    case.succeed();
    case.trip();
    assert!(case.retry_in() <= Duration::from_secs(72), "growth starts again after a close");
}

#[tokio::test(start_paused = true)]
async fn an_opening_near_a_seconds_end_lasts_its_whole_time() {
    let case = Case::of("services: { s: { fail_max: 3, reset_timeout: 1s } }");
    case.at(7.999).await;
    case.trip();
    for too_early in [8.0, 8.5, 8.998] {
        case.at(too_early).await;
        assert!(!case.admits(), "{too_early}");
    }
    tokio::time::advance(Duration::from_nanos(999_999)).await;
    assert!(!case.admits(), "a nanosecond too early");
    case.at(8.999).await;
    assert!(case.admits());
}

#[tokio::test(start_paused = true)]
async fn an_opening_ends_by_time_alone_without_any_traffic() {
    let case = Case::three();
    case.trip();
    case.at(86_400.0).await;
    let view = case.s.view();
    assert_eq!((view.state, view.retry_in, view.calls.to_half_open), (State::HalfOpen, None, 0));
    case.start().settle(Verdict::Success);
    assert_eq!((case.state(), case.s.view().calls.to_half_open), (State::Closed, 1));
}

#[tokio::test(start_paused = true)]
async fn a_window_by_time_forgets_by_time_alone() {
    let case =
        Case::of("services: { s: { fail_max: off, window: { time: 60s, minimum_calls: 4, failure_rate: 50% } } }");
    (0..3).for_each(|_| case.fail());
    case.at(61.0).await;
    assert_eq!(case.s.view().window_calls, Some(0));
    (0..3).for_each(|_| case.fail());
    assert_eq!(case.state(), State::Closed, "the first three are too old to count");
    case.fail();
    assert_eq!(case.state(), State::Open);
}
