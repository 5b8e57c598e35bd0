//! What operators say, over what the breaker would have decided.

use std::time::Duration;

use circuit_registry::{EventKind, Mode, Override, RejectReason, Rejection, Settlement, State, Verdict};

use crate::{Case, Heard, THREE, config};

fn alice() -> Override {
    Override::new("alice", "maintenance")
}

#[tokio::test(start_paused = true)]
async fn a_forced_opening_outlasts_its_timers() {
    let case = Case::three();
    case.trip();
    case.s.force_open(alice());
    for at in [0.0, 60.0, 600.0] {
        case.at(at).await;
        assert!(matches!(case.s.try_acquire(), Err(Rejection { reason: RejectReason::ForcedOpen, .. })), "{at}");
        assert_eq!(case.state(), State::Open);
    }
    case.s.auto();
    assert!(case.admits(), "its own opening was due long ago");
}

#[tokio::test(start_paused = true)]
async fn a_forced_opening_takes_effect_at_once() {
    for verdict in [Verdict::Success, Verdict::Failure, Verdict::Neutral] {
        let case = Case::three();
        case.trip();
        case.at(60.0).await;
        let probe = case.start();
        case.s.force_open(alice());
        assert_eq!((case.state(), case.admits()), (State::Open, false));
        assert_eq!(probe.settle(verdict), Settlement::Late);
        assert_eq!((case.state(), case.s.view().calls.late), (State::Open, 1));
        case.s.auto();
        assert_eq!(case.state(), State::HalfOpen, "as it was, with its slot free");
        assert!(case.admits());
    }
}

#[tokio::test(start_paused = true)]
async fn a_forced_opening_by_reload_takes_effect_at_once() {
    let case = Case::three();
    case.trip();
    case.at(60.0).await;
    let probe = case.start();
    let forced = config("services: { s: { fail_max: 3, reset_timeout: 60s, mode: force_open } }");
    case.registry.apply(forced);
    assert_eq!((case.state(), case.admits()), (State::Open, false));
    assert_eq!(probe.settle(Verdict::Success), Settlement::Late);
    case.registry.apply(config(THREE));
    assert_eq!((case.state(), case.admits()), (State::HalfOpen, true));
}

#[tokio::test(start_paused = true)]
async fn observing_admits_all_calls_and_reports_one_opening() {
    let (case, heard) = Heard::of(THREE);
    case.s.observe_only(alice());
    for _ in 0..10 {
        case.fail();
    }
    let view = case.s.view();
    assert_eq!((view.state, view.mode, view.calls.rejected()), (State::Closed, Mode::Observe, 0));
    assert_eq!(heard.count(&case, |kind| matches!(kind, EventKind::WouldOpen(_))), 1);
    assert_eq!(heard.count(&case, |kind| matches!(kind, EventKind::Transition(_))), 0);
}

#[tokio::test(start_paused = true)]
async fn observing_by_configuration_is_the_same() {
    let (case, heard) = Heard::of("services: { s: { fail_max: 3, reset_timeout: 60s, mode: observe } }");
    for _ in 0..10 {
        case.fail();
    }
    assert_eq!(heard.count(&case, |kind| matches!(kind, EventKind::WouldOpen(_))), 1);
}

#[tokio::test(start_paused = true)]
async fn only_observation_says_that_a_breaker_would_have_opened() {
    let (case, heard) = Heard::of(THREE);
    let calls = [case.start(), case.start(), case.start()];
    case.registry.apply(config("services: { s: { fail_max: 3, reset_timeout: 60s, mode: force_open } }"));
    for call in calls {
        call.settle(Verdict::Failure);
    }
    assert_eq!(heard.count(&case, |kind| matches!(kind, EventKind::WouldOpen(_))), 0);
}

#[tokio::test(start_paused = true)]
async fn forced_closed_admits_everything_and_remembers_no_failure() {
    let case = Case::three();
    case.trip();
    case.s.force_closed(alice());
    for _ in 0..10 {
        case.fail();
    }
    let under_way = case.start();
    assert_eq!(case.state(), State::Closed);
    case.s.auto();
    assert_eq!((case.state(), case.retry_in()), (State::Open, Duration::from_secs(60)), "its own opening goes on");
    under_way.settle(Verdict::Success);
    assert_eq!(case.retry_in(), Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn a_call_past_an_override_is_late_after_its_generation() {
    let case = Case::three();
    case.s.force_closed(alice());
    let call = case.start();
    case.s.auto();
    case.trip();
    assert_eq!(call.settle(Verdict::Success), Settlement::Late);
    assert_eq!(case.s.view().calls.late, 1);
}

#[tokio::test(start_paused = true)]
async fn two_holders_of_a_forced_opening_must_both_let_go() {
    let case = Case::three();
    case.s.force_open(alice());
    case.s.force_open(Override::new("bob", "billing"));
    assert!(case.s.release("alice"));
    assert!(!case.admits());
    assert!(case.s.release("bob") && !case.s.release("bob"));
    assert!(case.admits());
}

#[tokio::test(start_paused = true)]
async fn an_override_ends_at_its_expiry_without_a_trace() {
    let case = Case::three();
    case.s.force_open(alice().lasting(Duration::from_secs(90)));
    case.at(89.0).await;
    assert_eq!(case.s.try_acquire().unwrap_err().retry_in, Some(Duration::from_secs(1)));
    case.at(90.0).await;
    let view = case.s.view();
    assert_eq!((view.state, view.mode, view.reason), (State::Closed, Mode::Enforce, None));
    assert!(case.admits());
    assert!(!case.s.release("alice"), "there is nothing left to release");
}

#[tokio::test(start_paused = true)]
async fn an_override_survives_a_reload() {
    let case = Case::three();
    case.s.force_open(alice());
    case.registry.apply(config("services: { s: { mode: force_closed } }"));
    assert!(!case.admits());
    case.registry.apply(config(THREE));
    assert!(!case.admits());
    case.s.auto();
    assert!(case.admits());
}

#[tokio::test(start_paused = true)]
async fn a_reset_closes_and_forgets_and_leaves_overrides_alone() {
    let case = Case::three();
    let before = case.start();
    case.trip();
    case.s.reset();
    let view = case.s.view();
    assert_eq!((view.state, view.consecutive_failures, view.openings), (State::Closed, 0, 0));
    assert_eq!(before.settle(Verdict::Failure), Settlement::Late);
    case.s.force_open(alice());
    case.s.reset();
    assert!(!case.admits());
}

#[tokio::test(start_paused = true)]
async fn a_configured_mode_holds_from_the_start() {
    for (mode, state, admits) in
        [("force_open", State::Open, false), ("force_closed", State::Closed, true), ("observe", State::Closed, true)]
    {
        let case = Case::of(&format!("services: {{ s: {{ fail_max: 1, reset_timeout: 60s, mode: {mode} }} }}"));
        for _ in 0..2 {
            assert_eq!((case.state(), case.s.view().mode.as_str()), (state, mode));
            match case.s.try_acquire() {
                Ok(call) => drop(call.settle(Verdict::Failure)),
                Err(rejection) => assert_eq!(rejection.retry_in, Some(Duration::from_secs(60))),
            }
            assert_eq!(case.admits(), admits, "{mode}");
        }
        assert_eq!(case.s.view().calls.failure, if admits { 2 } else { 0 });
    }
}

#[tokio::test(start_paused = true)]
async fn after_observation_the_breaker_goes_on_from_its_state() {
    let case = Case::three();
    case.s.observe_only(alice());
    (0..3).for_each(|_| case.fail());
    assert_eq!(case.state(), State::Closed);
    case.at(10.0).await;
    case.s.auto();
    assert_eq!((case.state(), case.retry_in()), (State::Open, Duration::from_secs(50)));
}
