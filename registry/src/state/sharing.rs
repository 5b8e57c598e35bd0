//! What a breaker's state do about its fleet: when they join and leave it, whom they let probe, and whose overrides they obey.
//! What becomes of that between processes is tried in `tests/fleet_memory.rs`.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use super::{BreakerState, NotAdmitted};
use crate::{
    clock::Tick,
    error::RejectReason,
    outcome::{State, Verdict},
    policy::{FleetPolicy, LimitScope, Mode, Policy, RateLimitPolicy, SharePolicy},
    state::{
        fleet_view::{OrderKind, Question},
        machine::{Cause, Sample},
        overrides::{ActiveOverride, Override},
    },
};

fn at(secs: u64) -> Tick {
    Tick::ZERO.after(Duration::from_secs(secs))
}

fn alone() -> Policy {
    Policy { fleet: FleetPolicy::Off, rate_limit: None, ..Policy::default() }
}

fn sharing() -> Arc<Policy> {
    Arc::new(Policy { fleet: FleetPolicy::Share(SharePolicy::default()), ..alone() })
}

fn limited(scope: LimitScope) -> Arc<Policy> {
    let limit = RateLimitPolicy { limit: NonZeroU32::MIN, per: Duration::from_secs(1), scope };
    Arc::new(Policy { rate_limit: Some(limit), ..alone() })
}

fn connected(policy: Arc<Policy>) -> BreakerState {
    let mut state = BreakerState::new(policy, Tick::ZERO);
    state.connect();
    state
}

/// Open as the fleet's record says, and the probe due at 60 s.
fn open() -> BreakerState {
    let mut state = connected(sharing());
    state.adopt_open(at(60), 1, Cause::Peer, at(0));
    let fleet_view = state.fleet_view.as_mut().unwrap();
    (fleet_view.up, fleet_view.known.open) = (true, true);
    state
}

#[test]
fn who_has_no_store_or_does_not_share_joins_nothing() {
    assert!(BreakerState::new(sharing(), Tick::ZERO).fleet_view.is_none());
    assert!(connected(Arc::new(alone())).fleet_view.is_none());
    assert!(connected(sharing()).fleet_view.is_some());
    assert!(BreakerState::new(limited(LimitScope::Fleet), Tick::ZERO).fleet_limit.is_none());
    assert!(connected(limited(LimitScope::Process)).fleet_limit.is_none());
    assert!(connected(limited(LimitScope::Fleet)).fleet_limit.is_some());
}

#[test]
fn a_reload_joins_the_fleet_and_shares_overrides() {
    let mut state = connected(Arc::new(alone()));
    state.hold(Mode::ForceOpen, Override::new("alice", "maintenance").lasting(Duration::from_secs(100)), at(0));
    state.hold(Mode::Observe, Override::new("bob", "over soon").lasting(Duration::from_secs(10)), at(0));
    state.reconfigure(&sharing(), at(40));
    let orders = &state.fleet_view.as_ref().expect("joined").orders;
    let expected = Override::new("alice", "maintenance").lasting(Duration::from_secs(60));
    assert_eq!(orders.len(), 1, "what has ended is not shared: {orders:?}");
    assert_eq!((&orders[0].kind, orders[0].at), (&OrderKind::Hold(Mode::ForceOpen, expected), at(40)));
    state.reconfigure(&Arc::new(alone()), at(41));
    assert!(state.fleet_view.is_none(), "and another leaves it");
}

#[test]
fn another_reload_forgets_nothing_of_the_fleet() {
    let mut state = open();
    let mut other = Policy::clone(&sharing());
    other.cache_max_age = Some(Duration::from_secs(1));
    state.reconfigure(&Arc::new(other), at(1));
    assert!(state.fleet_view.as_ref().unwrap().known.open);
}

#[test]
fn a_reload_moves_a_rate_limit_to_the_fleet_and_back() {
    let mut state = connected(limited(LimitScope::Process));
    assert!(state.admit(at(1), 1).0.is_ok(), "its own token");
    state.reconfigure(&limited(LimitScope::Fleet), at(2));
    state.fleet_limit.as_mut().expect("the fleet's").up = true;
    assert_eq!(state.admit(at(2), 1).0.unwrap_err(), NotAdmitted::Ask(Question::Token));
    state.reconfigure(&limited(LimitScope::Process), at(3));
    assert!(state.fleet_limit.is_none() && state.admit(at(3), 1).0.is_ok(), "its own again");
    let retry_in = match state.admit(at(3), 1).0 {
        Err(NotAdmitted::Rejected(RejectReason::RateLimited, Some(retry_in))) => retry_in,
        other => panic!("{other:?}"),
    };
    assert_eq!(retry_in, Duration::from_secs(1), "and it limits");
}

#[test]
fn while_another_process_probes_the_breaker_is_open() {
    let mut state = open();
    assert_eq!((state.state(at(60)), state.held(at(60))), (State::HalfOpen, None), "it is unknown who probes");
    state.fleet_view.as_mut().unwrap().taken(at(70), at(60));
    assert_eq!((state.state(at(61)), state.held(at(61))), (State::Open, Some(at(70))));
    assert_eq!(state.held(at(59)), None, "before it is due its own deadline counts");
    let retry_in = Duration::from_secs(9);
    assert_eq!(state.admit(at(61), 1).0.unwrap_err(), NotAdmitted::Rejected(RejectReason::Open, Some(retry_in)));
    assert_eq!((state.state(at(70)), state.held(at(70))), (State::HalfOpen, None), "the lease is over");
}

#[test]
fn who_has_the_lease_probes_and_is_half_open_meanwhile() {
    let mut state = open();
    assert_eq!(state.admit(at(60), 1).0.unwrap_err(), NotAdmitted::Ask(Question::Probe));
    assert_eq!(state.state(at(60)), State::Open, "while the answer is awaited");
    state.fleet_view.as_mut().unwrap().granted(at(70));
    let ticket = state.admit(at(60), 1).0.expect("granted");
    assert_eq!(state.state(at(61)), State::HalfOpen);
    let good = Sample { verdict: Verdict::Success, slow: false, not_before: None };
    state.settle(ticket, good, at(61), 0);
    assert_eq!(state.state(at(61)), State::Closed);
}

#[test]
fn the_overrides_of_the_record_take_the_place_of_our_own() {
    let hold = |who: &str, ends: Option<Tick>| ActiveOverride {
        kind: Mode::ForceOpen,
        who: who.into(),
        why: "w".into(),
        ends,
    };
    let mut state = connected(sharing());
    state.hold(Mode::ForceClosed, Override::new("carol", "w"), at(0));
    let state_change = state.adopt_overrides(vec![hold("alice", None)], at(1)).expect("they are other ones");
    assert!(state_change.is_some(), "callers feel it");
    let who = |state: &BreakerState| state.overrides.in_force(at(1)).map(|hold| hold.who.clone()).collect::<Vec<_>>();
    assert_eq!((state.mode(at(1)), who(&state)), (Mode::ForceOpen, vec!["alice".to_owned()]));
    assert!(state.adopt_overrides(vec![hold("alice", None)], at(1)).is_none(), "the same again");
    assert!(state.adopt_overrides(vec![hold("alice", Some(at(9)))], at(1)).is_some(), "with an end");
    let near = at(9).after(Duration::from_millis(1));
    assert!(state.adopt_overrides(vec![hold("alice", Some(near))], at(1)).is_none(), "the same end, by another clock");
    assert!(state.adopt_overrides(vec![hold("bob", Some(near))], at(1)).is_some(), "of another holder");
    assert!(state.adopt_overrides(Vec::new(), at(1)).is_some());
    assert_eq!((state.mode(at(1)), who(&state).len()), (Mode::Enforce, 0));
}
