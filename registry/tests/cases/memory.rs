//! What a breaker says of its past: the last failure, and since when it has been as it is. And what observers hear is a path.

use std::time::SystemTime;

use circuit_registry::{Classify, Failure, FailureKind, LastFailure, Override, Transition, WallClock};

use super::*;
use State::{Closed, HalfOpen, Open};

/// Noon of some day, whatever the time.
struct Noon;

fn noon() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(43_200)
}

impl WallClock for Noon {
    fn now(&self) -> SystemTime {
        noon()
    }
}

fn ago(secs: u64) -> SystemTime {
    noon() - Duration::from_secs(secs)
}

/// The breaker `s`, by a wall clock that stands still.
fn at_noon(yaml: &str) -> (Case, Heard) {
    let heard = Heard::default();
    let builder = CircuitRegistry::builder().config(config(yaml)).wall_clock(Noon);
    (Case::with(builder.observer(heard.clone()).build()), heard)
}

fn transitions(case: &Case, heard: &Heard) -> Vec<Transition> {
    case.registry.flush_observers();
    let events = heard.0.lock().expect("no panic");
    let transition = |event: &Event| match &event.kind {
        EventKind::Transition(transition) => Some(transition.clone()),
        _ => None,
    };
    events.iter().filter_map(transition).collect()
}

/// Observers follow the state from closed to where it is now.
fn assert_path(case: &Case, heard: &Heard) {
    let now = case.state(); // an override that has ended is heard of now
    let mut state = State::Closed;
    for t in transitions(case, heard) {
        assert_eq!(t.from, state, "{t:?}");
        assert_ne!(t.from, t.to, "{t:?}");
        state = t.to;
    }
    assert_eq!(state, now, "the last one heard");
}

struct Down;

impl Classify for Down {
    fn verdict(&self) -> Verdict {
        Verdict::Failure
    }

    fn failure(&self) -> Failure {
        Failure::new(FailureKind::Status).saying("HTTP 503")
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_failure_says_what_and_when() {
    let (case, heard) = at_noon("services: { s: { fail_max: 2, reset_timeout: 60s, timeout: 5s } }");
    assert_eq!(case.s.view().last_failure, None);
    let _ = case.s.call(async { Err::<(), _>(Down) }).await;
    case.at(10.0).await;
    let failure = case.s.view().last_failure.expect("it failed");
    assert_eq!((failure.kind, failure.text.as_str(), failure.at), (FailureKind::Status, "HTTP 503", ago(10)));
    case.succeed();
    assert_eq!(case.s.view().last_failure.as_ref(), Some(&failure), "a success forgets nothing");
    let _ = hang(&case.s).await;
    let _ = hang(&case.s).await;
    case.at(30.0).await;
    let failure = case.s.view().last_failure.expect("it timed out");
    assert_eq!((failure.kind, failure.text.as_str()), (FailureKind::Timeout, "no answer within 5s"));
    let took = failure.took.expect("measured");
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(6), "{took:?}");
    let opening = transitions(&case, &heard).pop().expect("it opened");
    let heard_of = opening.last_failure.expect("in the event too");
    assert_eq!((heard_of.kind, heard_of.text), (failure.kind, failure.text));
}

#[tokio::test(start_paused = true)]
async fn each_way_to_fail_has_its_kind() {
    let kind = |case: &Case| case.s.view().last_failure.map(|LastFailure { kind, text, .. }| (kind, text));
    let case = Case::three();
    case.start().settle(Verdict::Neutral);
    assert_eq!(kind(&case), None);
    case.fail();
    assert_eq!(kind(&case), Some((FailureKind::Other, "the call failed".into())));
    let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "https://user:secret@example.com");
    case.start().settle_error(&refused);
    assert_eq!(kind(&case), Some((FailureKind::Connection, "connection refused".into())), "and no secret");
    case.start().settle(Verdict::Throttled { retry_after: Some(Duration::from_secs(70)) });
    assert_eq!(kind(&case), Some((FailureKind::Throttled, "asked us to stay away for 70s".into())));
}

#[tokio::test(start_paused = true)]
async fn a_view_says_since_when() {
    let (case, heard) = at_noon(THREE);
    let since = || noon().duration_since(case.s.view().since).expect("not later").as_secs();
    case.at(100.0).await;
    assert_eq!((case.state(), since()), (State::Closed, 100));
    case.trip();
    case.at(130.0).await;
    assert_eq!((case.state(), since()), (State::Open, 30));
    case.at(170.0).await;
    assert_eq!((case.state(), since()), (State::HalfOpen, 10), "due by time alone");
    let probe = case.start();
    assert_eq!((case.state(), since()), (State::HalfOpen, 10), "the probe does not restart it");
    probe.settle(Verdict::Success);
    case.at(200.0).await;
    assert_eq!((case.state(), since()), (State::Closed, 30));
    case.s.force_open(Override::new("alice", "why").lasting(Duration::from_secs(50)));
    case.at(240.0).await;
    assert_eq!((case.state(), since()), (State::Open, 40));
    case.at(300.0).await;
    assert_eq!((case.state(), since()), (State::Closed, 50), "since the end of the override");
    assert_path(&case, &heard);
}

#[tokio::test(start_paused = true)]
async fn a_view_is_json_for_people_and_programs() {
    let (case, _heard) = at_noon("services: { s: { fail_max: 1, timeout: 5s } }");
    let _ = hang(&case.s).await;
    let json = serde_json::to_value(case.s.view()).expect("JSON");
    assert_eq!(json["since"], "1970-01-01T12:00:00Z");
    let failure = &json["last_failure"];
    assert_eq!(
        (&failure["kind"], &failure["text"], &failure["at"]),
        (&"timeout".into(), &"no answer within 5s".into(), &"1970-01-01T12:00:00Z".into())
    );
    assert!(failure["took_ms"].as_u64().is_some_and(|took| took >= 5000), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_override_is_announced() {
    let (case, heard) = at_noon(THREE);
    case.s.force_open(Override::new("alice", "maintenance").lasting(Duration::from_secs(30)));
    case.at(29.0).await;
    assert!(!case.admits());
    case.at(31.0).await;
    assert!(case.admits());
    let ended =
        |kind: &EventKind| matches!(kind, EventKind::Overridden { who, why, .. } if who == "alice" && why == "ended");
    assert_eq!(heard.count(&case, ended), 1);
    case.trip();
    case.at(100.0).await;
    case.start().settle(Verdict::Success);
    assert_path(&case, &heard);
    let heard_of: Vec<_> = transitions(&case, &heard).iter().map(|t| (t.from, t.to)).collect();
    assert_eq!(heard_of, [(Closed, Open), (Open, Closed), (Closed, Open), (Open, HalfOpen), (HalfOpen, Closed)]);
}

#[tokio::test(start_paused = true)]
async fn transitions_form_a_path_under_overrides() {
    let (case, heard) = at_noon(THREE);
    case.trip();
    case.s.force_closed(Override::new("alice", "why").lasting(Duration::from_secs(10)));
    case.at(11.0).await;
    assert_path(&case, &heard);
    case.at(70.0).await;
    case.s.force_open(Override::new("bob", "due, and forced").lasting(Duration::from_secs(10)));
    assert_path(&case, &heard);
    case.at(81.0).await;
    assert_eq!(case.state(), State::HalfOpen);
    assert_path(&case, &heard);
    case.fail();
    assert_path(&case, &heard);
    case.s.reset();
    assert_path(&case, &heard);
}
