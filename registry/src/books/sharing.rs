//! What a breaker's books do about its fleet: when they join and leave it, whom they let probe, and whose overrides they obey.
//! What becomes of that between processes is tried in `tests/fleet_memory.rs`.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use super::{Books, Refusal};
use crate::{
    clock::Tick,
    control::{Hold, Override},
    fleet::share::{OrderKind, Question},
    machine::{Cause, Sample},
    outcome::{State, Verdict},
    policy::{FleetPolicy, LimitScope, Mode, Policy, RateLimitPolicy, SharePolicy},
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

fn connected(policy: Arc<Policy>) -> Books {
    let mut books = Books::new(policy);
    books.connect();
    books
}

/// Open as the fleet's record says, and the probe due at 60 s.
fn open() -> Books {
    let mut books = connected(sharing());
    books.adopt_open(at(60), 1, Cause::Peer, at(0));
    let share = books.share.as_mut().unwrap();
    (share.up, share.known.open) = (true, true);
    books
}

#[test]
fn who_has_no_store_or_does_not_share_joins_nothing() {
    assert!(Books::new(sharing()).share.is_none());
    assert!(connected(Arc::new(alone())).share.is_none());
    assert!(connected(sharing()).share.is_some());
    assert!(Books::new(limited(LimitScope::Fleet)).quota.is_none());
    assert!(connected(limited(LimitScope::Process)).quota.is_none());
    assert!(connected(limited(LimitScope::Fleet)).quota.is_some());
}

#[test]
fn a_reload_joins_the_fleet_and_tells_it_the_overrides_in_force() {
    let mut books = connected(Arc::new(alone()));
    books.hold(Mode::ForceOpen, Override::new("alice", "maintenance").lasting(Duration::from_secs(100)), at(0));
    books.hold(Mode::Observe, Override::new("bob", "over soon").lasting(Duration::from_secs(10)), at(0));
    books.reconfigure(&sharing(), at(40));
    let orders = &books.share.as_ref().expect("joined").orders;
    let expected = Override::new("alice", "maintenance").lasting(Duration::from_secs(60));
    assert_eq!(orders.len(), 1, "what has ended is not told: {orders:?}");
    assert_eq!((&orders[0].kind, orders[0].at), (&OrderKind::Hold(Mode::ForceOpen, expected), at(40)));
    books.reconfigure(&Arc::new(alone()), at(41));
    assert!(books.share.is_none(), "and another leaves it");
}

#[test]
fn a_reload_that_changes_something_else_forgets_nothing_of_the_fleet() {
    let mut books = open();
    let mut other = Policy::clone(&sharing());
    other.cache_max_age = Some(Duration::from_secs(1));
    books.reconfigure(&Arc::new(other), at(1));
    assert!(books.share.as_ref().unwrap().known.open);
}

#[test]
fn a_reload_moves_a_rate_limit_to_the_fleet_and_back() {
    let mut books = connected(limited(LimitScope::Process));
    assert!(books.admit(at(1), 1).0.is_ok(), "its own token");
    books.reconfigure(&limited(LimitScope::Fleet), at(2));
    books.quota.as_mut().expect("the fleet's").up = true;
    assert_eq!(books.admit(at(2), 1).0.unwrap_err(), Refusal::Ask(Question::Token));
    books.reconfigure(&limited(LimitScope::Process), at(3));
    assert!(books.quota.is_none() && books.admit(at(3), 1).0.is_ok(), "its own again");
    let retry_in = match books.admit(at(3), 1).0 {
        Err(Refusal::RateLimited { retry_in }) => retry_in,
        other => panic!("{other:?}"),
    };
    assert_eq!(retry_in, Duration::from_secs(1), "and it limits");
}

#[test]
fn while_another_process_probes_the_breaker_is_open() {
    let mut books = open();
    assert_eq!((books.state(at(60)), books.held(at(60))), (State::HalfOpen, None), "nobody knows who probes");
    books.share.as_mut().unwrap().taken(at(70), at(60));
    assert_eq!((books.state(at(61)), books.held(at(61))), (State::Open, Some(at(70))));
    assert_eq!(books.held(at(59)), None, "before it is due its own deadline counts");
    let retry_in = Duration::from_secs(9);
    assert_eq!(books.admit(at(61), 1).0.unwrap_err(), Refusal::Open { retry_in, forced: false });
    assert_eq!((books.state(at(70)), books.held(at(70))), (State::HalfOpen, None), "the lease is over");
}

#[test]
fn who_has_the_lease_probes_and_is_half_open_meanwhile() {
    let mut books = open();
    assert_eq!(books.admit(at(60), 1).0.unwrap_err(), Refusal::Ask(Question::Probe));
    assert_eq!(books.state(at(60)), State::Open, "while the answer is awaited");
    books.share.as_mut().unwrap().granted(at(70));
    let ticket = books.admit(at(60), 1).0.expect("granted");
    assert_eq!(books.state(at(61)), State::HalfOpen);
    let good = Sample { verdict: Verdict::Success, slow: false, not_before: None };
    books.settle(ticket, good, at(61), 0);
    assert_eq!(books.state(at(61)), State::Closed);
}

#[test]
fn the_overrides_of_the_record_take_the_place_of_our_own() {
    let hold = |who: &str, ends: Option<Tick>| Hold { kind: Mode::ForceOpen, who: who.into(), why: "w".into(), ends };
    let mut books = connected(sharing());
    books.hold(Mode::ForceClosed, Override::new("carol", "w"), at(0));
    let notice = books.adopt_holds(vec![hold("alice", None)], at(1)).expect("they are other ones");
    assert!(notice.is_some(), "callers feel it");
    let who = |books: &Books| books.control.in_force(at(1)).map(|hold| hold.who.clone()).collect::<Vec<_>>();
    assert_eq!((books.mode(at(1)), who(&books)), (Mode::ForceOpen, vec!["alice".to_owned()]));
    assert!(books.adopt_holds(vec![hold("alice", None)], at(1)).is_none(), "the same again");
    assert!(books.adopt_holds(vec![hold("alice", Some(at(9)))], at(1)).is_some(), "with an end");
    let near = at(9).after(Duration::from_millis(1));
    assert!(books.adopt_holds(vec![hold("alice", Some(near))], at(1)).is_none(), "the same end, by another clock");
    assert!(books.adopt_holds(vec![hold("bob", Some(near))], at(1)).is_some(), "of another holder");
    assert!(books.adopt_holds(Vec::new(), at(1)).is_some());
    assert_eq!((books.mode(at(1)), who(&books).len()), (Mode::Enforce, 0));
}
