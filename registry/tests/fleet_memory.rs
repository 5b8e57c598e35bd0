//! A fleet of registries that share a store in memory, on paused time: what each process does about the others. Redis itself
//! is tested in `fleet_redis`.

use std::{io, time::Duration};

use circuit_registry::{
    Breaker, BreakersConfig, CallError, CircuitRegistry, Override, RejectReason, Rejection, State, Verdict,
    policy::Mode, store::MemoryStore,
};
use tokio::time::{advance, sleep};

/// Enough for every sync_task to hear what was published.
const MOMENT: Duration = Duration::from_millis(50);

const SHARED: &str = "fleet: share\ndefaults: { fail_max: 3, reset_timeout: 60s }\nservices: { s: {} }";

async fn process(store: &MemoryStore, name: &str, yaml: &str) -> CircuitRegistry {
    let config = BreakersConfig::from_yaml(yaml).expect("valid configuration");
    let registry = CircuitRegistry::builder().config(config).store(store.clone()).process(name).build();
    let sync_task = registry.restore().await;
    tokio::spawn(sync_task.run(std::future::pending()));
    sleep(MOMENT).await;
    registry
}

async fn fleet<const N: usize>(store: &MemoryStore, yaml: &str) -> [Breaker; N] {
    let mut breakers = Vec::new();
    for i in 0..N {
        breakers.push(process(store, &format!("p{i}"), yaml).await.breaker("s"));
    }
    breakers.try_into().expect("as many as asked for")
}

async fn fail(breaker: &Breaker, times: usize) {
    for _ in 0..times {
        let result = breaker.call(async { Err::<(), _>(io::Error::other("down")) }).await;
        assert!(matches!(result, Err(CallError::Upstream(_))), "{result:?}");
    }
}

async fn ok(breaker: &Breaker) -> Result<(), Rejection> {
    match breaker.call(async { Ok::<(), io::Error>(()) }).await {
        Err(CallError::Rejected(rejection)) => Err(rejection),
        _ => Ok(()),
    }
}

fn states<const N: usize>(breakers: &[Breaker; N]) -> [State; N] {
    breakers.each_ref().map(|breaker| breaker.view().state)
}

#[tokio::test(start_paused = true)]
async fn every_process_opens_with_the_same_deadline() {
    let fleet = fleet::<3>(&MemoryStore::new(), SHARED).await;
    fail(&fleet[0], 3).await;
    advance(Duration::from_secs(50)).await;
    sleep(MOMENT).await;
    assert_eq!(states(&fleet), [State::Open; 3]);
    for breaker in &fleet {
        let left = breaker.view().retry_in.expect("open");
        assert!(left <= Duration::from_secs(10), "a late message does not restart the cool-down: {left:?}");
        assert_eq!(breaker.view().openings, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_fleet_counts_to_fail_max_together() {
    let fleet = fleet::<3>(&MemoryStore::new(), SHARED).await;
    for breaker in &fleet {
        fail(breaker, 1).await;
        sleep(MOMENT).await;
    }
    sleep(MOMENT).await;
    assert_eq!(states(&fleet), [State::Open; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_success_anywhere_ends_the_row() {
    let fleet = fleet::<3>(&MemoryStore::new(), SHARED).await;
    fail(&fleet[0], 2).await;
    sleep(MOMENT).await;
    ok(&fleet[1]).await.unwrap();
    sleep(MOMENT).await;
    fail(&fleet[2], 1).await;
    sleep(MOMENT).await;
    assert_eq!(states(&fleet), [State::Closed; 3]);
}

#[tokio::test(start_paused = true)]
async fn exactly_one_process_probes_and_its_success_closes_everyone() {
    let fleet = fleet::<3>(&MemoryStore::new(), SHARED).await;
    fail(&fleet[0], 3).await;
    sleep(Duration::from_secs(61)).await;
    let probe = fleet[1].acquire().await.expect("the first to ask");
    assert!(probe.is_probe());
    sleep(MOMENT).await;
    for breaker in [&fleet[0], &fleet[2]] {
        let view = breaker.view();
        assert_eq!(view.state, State::Open, "the others stay open");
        assert!(view.retry_in.unwrap() <= Duration::from_secs(10), "until the lease ends: {view:?}");
        assert!(matches!(ok(breaker).await, Err(Rejection { reason: RejectReason::Open, .. })));
    }
    probe.settle(Verdict::Success);
    sleep(MOMENT).await;
    assert_eq!(states(&fleet), [State::Closed; 3]);
    assert_eq!(fleet.each_ref().map(|b| b.view().openings), [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_store_clock_that_is_set_back_does_not_block_probes() {
    for before_it_is_due in [true, false] {
        let store = MemoryStore::new();
        let fleet = fleet::<3>(&store, SHARED).await;
        fail(&fleet[0], 3).await;
        sleep(Duration::from_secs(if before_it_is_due { 30 } else { 61 })).await;
        store.set_clock_back(Duration::from_secs(86_400));
        sleep(Duration::from_secs(if before_it_is_due { 31 } else { 0 })).await;
        let probe = fleet[1].acquire().await.expect("it is due by our own clock, which cannot be set");
        assert!(probe.is_probe());
        sleep(MOMENT).await;
        assert!(ok(&fleet[0]).await.is_err() && ok(&fleet[2]).await.is_err(), "and one probe is enough");
        probe.settle(Verdict::Success);
        sleep(MOMENT).await;
        assert_eq!(states(&fleet), [State::Closed; 3]);
        fail(&fleet[2], 3).await;
        sleep(MOMENT).await;
        assert_eq!(states(&fleet), [State::Open; 3], "and life goes on");
        let left = fleet.each_ref().map(|breaker| breaker.view().retry_in.expect("open"));
        assert!(left.iter().all(|left| *left <= Duration::from_secs(60)), "{left:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_probe_opens_everyone_for_the_grown_time() {
    let yaml = "fleet: share\nservices: { s: { fail_max: 1, reset_timeout: 60s, reset_growth: { factor: 2 } } }";
    let fleet = fleet::<3>(&MemoryStore::new(), yaml).await;
    fail(&fleet[0], 1).await;
    sleep(Duration::from_secs(61)).await;
    fail(&fleet[2], 1).await;
    sleep(MOMENT).await;
    for breaker in &fleet {
        let view = breaker.view();
        assert_eq!((view.state, view.openings), (State::Open, 2));
        assert!(view.retry_in.unwrap() > Duration::from_secs(119), "{view:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_lease_ends_another_process_probes() {
    let yaml = "fleet: { share: { lease: 5s } }\nservices: { s: { fail_max: 1, reset_timeout: 60s } }";
    let store = MemoryStore::new();
    let survivors = fleet::<2>(&store, yaml).await;
    let config = BreakersConfig::from_yaml(yaml).unwrap();
    let dying = CircuitRegistry::builder().config(config).store(store.clone()).process("dying").build();
    let (_stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let sync_task = tokio::spawn(dying.restore().await.run(async { drop(stopped.await) }));
    fail(&survivors[0], 1).await;
    sleep(Duration::from_secs(61)).await;
    let _probe = dying.breaker("s").acquire().await.expect("it asked first");
    sleep(Duration::from_secs(8)).await;
    assert!(ok(&survivors[0]).await.is_err(), "the lease is renewed while the probe is out");
    sync_task.abort();
    sleep(Duration::from_secs(4)).await;
    assert!(ok(&survivors[0]).await.is_err(), "not before its end");
    sleep(Duration::from_secs(2)).await;
    ok(&survivors[1]).await.expect("and then the next may");
    sleep(MOMENT).await;
    assert_eq!(states(&survivors), [State::Closed; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_cannot_wait_gets_a_time_to_retry() {
    let fleet = fleet::<2>(&MemoryStore::new(), SHARED).await;
    fail(&fleet[0], 3).await;
    sleep(Duration::from_secs(61)).await;
    let refused = fleet[0].try_acquire().expect_err("the store must be asked first");
    assert!(refused.retry_in.unwrap() <= Duration::from_millis(100), "{refused:?}");
    sleep(MOMENT).await;
    let probe = fleet[0].try_acquire().expect("the answer was there");
    assert!(probe.is_probe() && fleet[1].try_acquire().is_err());
}

#[tokio::test(start_paused = true)]
async fn without_the_store_each_goes_on_and_rejoins_without_a_flap() {
    let store = MemoryStore::new();
    let fleet = fleet::<3>(&store, SHARED).await;
    fail(&fleet[0], 3).await;
    sleep(MOMENT).await;
    store.set_away(true);
    sleep(Duration::from_secs(61)).await;
    ok(&fleet[0]).await.expect("its own probe");
    ok(&fleet[1]).await.expect("and another's own");
    let transitions = || fleet.each_ref().map(|b| (b.view().calls.to_open, b.view().calls.to_closed));
    let before = transitions();
    store.set_away(false);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(states(&fleet), [State::Closed; 3], "the last one learns that it is over");
    assert_eq!(transitions()[..2], before[..2], "and the others see nothing new");
}

#[tokio::test(start_paused = true)]
async fn the_later_of_two_lone_decisions_counts() {
    let store = MemoryStore::new();
    let fleet = fleet::<2>(&store, SHARED).await;
    store.set_away(true);
    sleep(Duration::from_secs(3)).await;
    fail(&fleet[0], 3).await;
    sleep(Duration::from_secs(60)).await;
    ok(&fleet[0]).await.expect("probed and closed");
    sleep(Duration::from_secs(1)).await;
    fail(&fleet[1], 3).await;
    store.set_away(false);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(states(&fleet), [State::Open; 2], "its evidence is newer");
}

#[tokio::test(start_paused = true)]
async fn a_quorum_must_open_before_all_do() {
    let yaml = "fleet: { share: { quorum: 2 } }\nservices: { s: { fail_max: 2, reset_timeout: 60s } }";
    let fleet = fleet::<4>(&MemoryStore::new(), yaml).await;
    fail(&fleet[0], 2).await;
    sleep(MOMENT).await;
    assert_eq!(states(&fleet), [State::Open, State::Closed, State::Closed, State::Closed], "a dead link of its own");
    fail(&fleet[1], 1).await;
    sleep(MOMENT).await;
    assert_eq!(fleet[1].view().state, State::Closed, "failures are not added up where openings are");
    fail(&fleet[1], 1).await;
    sleep(MOMENT).await;
    assert_eq!(states(&fleet), [State::Open; 4]);
    sleep(Duration::from_secs(61)).await;
    ok(&fleet[3]).await.expect("one probe for all");
    sleep(MOMENT).await;
    assert_eq!(states(&fleet), [State::Closed; 4]);
}

#[tokio::test(start_paused = true)]
async fn a_lone_opening_below_the_quorum_probes_by_itself() {
    let yaml = "fleet: { share: { quorum: 2 } }\nservices: { s: { fail_max: 1, reset_timeout: 60s } }";
    let fleet = fleet::<2>(&MemoryStore::new(), yaml).await;
    fail(&fleet[0], 1).await;
    sleep(Duration::from_secs(61)).await;
    ok(&fleet[0]).await.expect("its own probe");
    sleep(MOMENT).await;
    fail(&fleet[1], 1).await;
    sleep(MOMENT).await;
    assert_eq!(states(&fleet), [State::Closed, State::Open], "an opening that is over does not vote");
}

#[tokio::test(start_paused = true)]
async fn overrides_hold_everywhere_once_they_are_acknowledged() {
    let store = MemoryStore::new();
    let fleet = fleet::<3>(&store, SHARED).await;
    fleet[0].force_open(Override::new("alice", "announced maintenance"));
    fleet[0].stored().await.expect("acknowledged");
    fleet[1].observe_only(Override::new("bob", "curious").lasting(Duration::from_secs(30)));
    fleet[1].stored().await.expect("acknowledged");
    sleep(MOMENT).await;
    for breaker in &fleet {
        let view = breaker.view();
        assert_eq!((view.state, view.mode), (State::Open, Mode::ForceOpen), "{view:?}");
        assert!(view.reason.unwrap().contains("alice"));
    }
    assert!(fleet[2].release("alice"), "anyone may let go");
    fleet[2].stored().await.expect("acknowledged");
    sleep(MOMENT).await;
    assert_eq!(fleet.each_ref().map(|b| b.view().mode), [Mode::Observe; 3], "the other's stays");
    sleep(Duration::from_secs(31)).await;
    assert_eq!(fleet.each_ref().map(|b| b.view().mode), [Mode::Enforce; 3]);

    let late = process(&store, "late", SHARED).await.breaker("s");
    assert_eq!(late.view().mode, Mode::Enforce, "what was released is not revived");
}

#[tokio::test(start_paused = true)]
async fn an_override_is_not_acknowledged_until_it_is_stored() {
    let store = MemoryStore::new();
    let fleet = fleet::<2>(&store, SHARED).await;
    store.set_away(true);
    fleet[0].force_open(Override::new("alice", "maintenance"));
    fleet[0].stored().await.expect_err("not acknowledged");
    assert_eq!(fleet[0].view().mode, Mode::ForceOpen, "and in force here");
    store.set_away(false);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(fleet[1].view().mode, Mode::ForceOpen);
}

#[tokio::test(start_paused = true)]
async fn the_newer_of_two_orders_by_one_operator_counts() {
    let store = MemoryStore::new();
    let fleet = fleet::<2>(&store, SHARED).await;
    fleet[0].force_open(Override::new("alice", "first"));
    fleet[0].stored().await.unwrap();
    sleep(MOMENT).await;
    store.set_away(true);
    sleep(Duration::from_secs(3)).await;
    fleet[0].release("alice"); // alone, at 3 s
    sleep(Duration::from_secs(3)).await;
    fleet[1].force_open(Override::new("alice", "second")); // alone, at 6 s
    store.set_away(false);
    sleep(Duration::from_secs(10)).await;
    for breaker in &fleet {
        assert!(breaker.view().reason.is_some_and(|reason| reason.contains("second")), "{:?}", breaker.view());
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_process_starts_with_what_the_fleet_knows() {
    let store = MemoryStore::new();
    let fleet = fleet::<1>(&store, SHARED).await;
    fail(&fleet[0], 3).await;
    sleep(Duration::from_secs(20)).await;
    let late = process(&store, "late", SHARED).await.breaker("s");
    let left = late.view().retry_in.expect("open from the start");
    assert!(left <= Duration::from_secs(40) && left > Duration::from_secs(39), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn a_breaker_that_is_not_shared_is_not_published() {
    let yaml = "fleet: share\nservices: { s: { fail_max: 1, fleet: off } }";
    let fleet = fleet::<2>(&MemoryStore::new(), yaml).await;
    fail(&fleet[0], 1).await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(states(&fleet), [State::Open, State::Closed]);
}

#[tokio::test(start_paused = true)]
async fn a_reset_closes_every_process() {
    let fleet = fleet::<2>(&MemoryStore::new(), SHARED).await;
    fail(&fleet[0], 3).await;
    sleep(MOMENT).await;
    fleet[1].reset();
    fleet[1].stored().await.unwrap();
    sleep(MOMENT).await;
    assert_eq!(states(&fleet), [State::Closed; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_of_the_fleet_counts_all_its_calls() {
    let yaml = "services: { s: { rate_limit: { per: 1s, scope: fleet } } }";
    let store = MemoryStore::new();
    let fleet = fleet::<4>(&store, yaml).await;
    sleep(Duration::from_secs(2)).await;
    let mut admitted = 0;
    for _ in 0..100 {
        for breaker in &fleet {
            admitted += u32::from(ok(breaker).await.is_ok());
        }
        sleep(Duration::from_millis(100)).await;
    }
    assert!((9..=11).contains(&admitted), "{admitted} calls in 10 s");

    store.set_away(true);
    let mut admitted = 0;
    for _ in 0..200 {
        for breaker in &fleet {
            admitted += u32::from(ok(breaker).await.is_ok());
        }
        sleep(Duration::from_millis(100)).await;
    }
    assert!((16..=24).contains(&admitted), "a quarter each without the store: {admitted} calls in 20 s");
}
