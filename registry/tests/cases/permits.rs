//! What a probe's permit can become, and that its slot never goes with it.

use std::{io, time::Duration};

use circuit_registry::{Permit, Settlement, State, Verdict};

use crate::{Case, at_once, config};

/// Three failures in a row, a probe after a minute, given up after another two.
const PATIENT: &str = "services: { s: { fail_max: 3, reset_timeout: 60s, half_open: { max_wait: 120s } } }";

#[tokio::test(start_paused = true)]
async fn a_dropped_probe_gives_its_slot_back() {
    let case = Case::three();
    case.trip();
    case.at(60.0).await;
    let probe = case.start();
    assert!(!case.admits(), "the only slot is taken");
    drop(probe);
    assert!(case.admits());
    assert_eq!(case.state(), State::HalfOpen);
}

#[tokio::test(start_paused = true)]
async fn a_neutral_probe_gives_its_slot_back_and_decides_nothing() {
    let case = Case::three();
    case.trip();
    case.at(60.0).await;
    assert_eq!(case.start().settle(Verdict::Neutral), Settlement::Counted);
    assert!(case.admits());
    assert_eq!(case.state(), State::HalfOpen);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_of_before_frees_no_probe_slot() {
    let case = Case::three();
    let slow = case.start();
    case.trip();
    case.at(60.0).await;
    let probe = case.start();
    drop(slow);
    assert!(!case.admits(), "the probe is still out");
    assert_eq!(probe.settle(Verdict::Success), Settlement::Counted);
    assert_eq!(case.state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_hung_probe_is_replaced_after_max_wait_and_is_late_then() {
    for verdict in [Verdict::Success, Verdict::Failure, Verdict::Throttled { retry_after: None }, Verdict::Neutral] {
        let case = Case::of(PATIENT);
        case.trip();
        case.at(60.0).await;
        let hung = case.start();
        case.at(179.999).await;
        assert!(!case.admits());
        case.at(180.0).await;
        let probe = case.start();
        assert_eq!(hung.settle(verdict), Settlement::Late);
        assert_eq!(case.state(), State::HalfOpen);
        assert!(!case.admits(), "a late {verdict:?} frees no slot of the new probes");
        assert_eq!(probe.settle(Verdict::Success), Settlement::Counted);
        assert_eq!((case.state(), case.s.view().calls.late), (State::Closed, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejection_beside_a_probe_names_when_it_counts_as_lost() {
    let case = Case::of(PATIENT);
    case.trip();
    case.at(60.0).await;
    let _probe = case.start();
    case.at(100.0).await;
    assert_eq!(case.s.try_acquire().unwrap_err().retry_in, Some(Duration::from_secs(80)));
}

#[tokio::test(start_paused = true)]
async fn of_ten_callers_as_many_probe_as_there_are_permits() {
    for permits in [1, 4] {
        let case = Case::of(&format!(
            "services: {{ s: {{ fail_max: 3, reset_timeout: 60s, half_open: {{ permits: {permits} }} }} }}"
        ));
        case.trip();
        case.at(60.0).await;
        let answers = at_once(10, || case.s.try_acquire());
        assert_eq!(answers.iter().filter(|a| a.is_ok()).count(), permits);
        assert!(answers.iter().flatten().all(Permit::is_probe));
        assert!(answers.iter().filter_map(|a| a.as_ref().err()).all(|r| r.reason.as_str() == "half_open_busy"));
    }
}

#[tokio::test(start_paused = true)]
async fn reading_the_state_a_hundred_times_spends_no_permit() {
    let case = Case::three();
    case.trip();
    case.at(60.0).await;
    let generation = case.s.view().generation;
    for _ in 0..100 {
        assert_eq!(case.state(), State::HalfOpen);
    }
    assert_eq!(case.s.view().generation, generation);
    let _probe = case.start();
    assert!(!case.admits());
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_panics_frees_its_slot_and_is_a_failure() {
    let case = Case::three();
    case.trip();
    case.at(60.0).await;
    let s = case.s.clone();
    let panicked = tokio::spawn(async move { s.call(async { panic!("probe") as io::Result<()> }).await }).await;
    assert!(panicked.is_err(), "and the panic goes on");
    let view = case.s.view();
    assert_eq!((view.state, view.in_flight, view.calls.failure), (State::Open, 0, 4));
    case.at(120.0).await;
    assert!(case.admits());
}

#[tokio::test(start_paused = true)]
async fn a_permit_dropped_by_a_panic_is_a_failure_too() {
    let case = Case::three();
    case.trip();
    case.at(60.0).await;
    let probe = case.start();
    let panicked = tokio::spawn(async move {
        let _probe = probe;
        panic!("between acquiring and settling")
    })
    .await;
    assert!(panicked.is_err());
    assert_eq!((case.state(), case.s.view().in_flight), (State::Open, 0));
}

/// Half-open, with ten permits out.
async fn ten_probes(half_open: &str) -> (Case, Vec<Permit>) {
    let window = "window: { calls: 10, failure_rate: 100%, slow_call: 2s, slow_rate: 60% }";
    let case = Case::of(&format!(
        "services: {{ s: {{ fail_max: 3, reset_timeout: 60s, {window}, half_open: {half_open} }} }}"
    ));
    case.trip();
    case.at(60.0).await;
    let probes = std::iter::from_fn(|| case.s.try_acquire().ok()).take(10).collect();
    (case, probes)
}

#[tokio::test(start_paused = true)]
async fn slow_probes_are_judged_by_their_own_rate() {
    for (slow, expected) in [(5, State::Closed), (6, State::Open)] {
        let (case, mut probes) = ten_probes("{ permits: 10, failure_rate: 50% }").await;
        assert_eq!(probes.len(), 10);
        probes.drain(slow..).for_each(|probe| _ = probe.settle(Verdict::Success));
        case.at(63.0).await;
        probes.into_iter().for_each(|probe| _ = probe.settle(Verdict::Success));
        assert_eq!(case.state(), expected, "{slow} slow probes");
        if expected == State::Open {
            assert_eq!(case.s.view().reason.as_deref(), Some("6 of 10 probes were slow"));
        }
    }
    let (case, probes) = ten_probes("{ permits: 1 }").await;
    case.at(63.0).await;
    probes.into_iter().for_each(|probe| _ = probe.settle(Verdict::Success));
    assert_eq!(case.state(), State::Open, "the only probe was slow");
}

#[tokio::test(start_paused = true)]
async fn another_rule_for_probes_starts_afresh() {
    let yaml = |permits| {
        format!(
            "services: {{ s: {{ fail_max: 3, reset_timeout: 60s, half_open: {{ permits: {permits}, failure_rate: 50% }} }} }}"
        )
    };
    let case = Case::of(&yaml(10));
    case.trip();
    case.at(60.0).await;
    (0..4).for_each(|_| case.succeed());
    case.fail();
    let old = case.start();
    case.registry.apply(config(&yaml(1)));
    assert_eq!(case.state(), State::HalfOpen);
    assert_eq!(old.settle(Verdict::Failure), Settlement::Late);
    case.succeed();
    assert_eq!(case.state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_half_open_view_says_why_it_opened() {
    let case = Case::three();
    case.trip();
    case.at(60.0).await;
    let _probe = case.start();
    assert_eq!((case.state(), case.s.view().reason.as_deref()), (State::HalfOpen, Some("3 consecutive failures")));
}
