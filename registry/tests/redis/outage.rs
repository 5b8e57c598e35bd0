//! Redis frozen, killed, slow, partitioned, and back: calls do not notice, and no breaker flaps when it returns.

use circuit_registry_testing::{
    proxy::{Network, Proxy},
    redis_server::Server,
};
use std::time::Duration;

use circuit_registry::{Override, State, policy::Mode};
use tokio::time::Instant;

use crate::{Process, all, eventually};

const YAML: &str =
    "fleet: share\nservices: { s: { fail_max: 2, reset_timeout: 500ms }, t: { fail_max: 2, reset_timeout: 60s } }";

/// With the store gone the process opens, probes and closes by itself.
async fn goes_on_alone(process: &Process) {
    process.fail(2).await;
    assert_eq!(process.state(), State::Open);
    eventually("due", || process.state() == State::HalfOpen).await;
    let start = Instant::now();
    process.ok().await.expect("its own probe");
    // Longer than the time that a question gets by far less than any of ours would take.
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(process.state(), State::Closed);
}

async fn synced(process: &Process) {
    // A shared override is acknowledged only if the store has it.
    while process.registry.breaker("t").stored().await.is_err() {}
}

#[tokio::test]
async fn a_frozen_redis() {
    let server = Server::start().await;
    let process = Process::start(&server.address(), YAML).await;
    synced(&process).await;
    server.signal("-STOP");
    goes_on_alone(&process).await;
    server.signal("-CONT");
    synced(&process).await;
    assert_eq!(process.state(), State::Closed);
    let other = Process::start(&server.address(), YAML).await;
    assert_eq!(other.state(), State::Closed, "and the record says so");
}

#[tokio::test]
async fn a_redis_that_returns_empty_gets_every_record_again() {
    let mut server = Server::start().await;
    let (one, two) = (Process::start(&server.address(), YAML).await, Process::start(&server.address(), YAML).await);
    let t = |process: &Process| process.registry.breaker("t");
    t(&one).force_open(Override::new("alice", "maintenance"));
    t(&one).stored().await.expect("acknowledged");
    eventually("both obey", || t(&two).view().mode == Mode::ForceOpen).await;
    synced(&two).await;
    server.kill();
    goes_on_alone(&one).await;
    two.fail(2).await;
    server.restart().await;
    synced(&one).await;
    synced(&two).await;
    assert_eq!((t(&one).view().mode, t(&two).view().mode), (Mode::ForceOpen, Mode::ForceOpen));
    let mut redis = server.look().await;
    let mut record: Option<String> = None;
    while record.is_none() {
        record = redis::cmd("GET").arg("circuit-registry:breaker:t").query_async(&mut redis).await.unwrap();
    }
    assert!(record.is_some_and(|record| record.contains("alice")), "the override is durable again");
    let late = Process::start(&server.address(), YAML).await;
    assert_eq!(t(&late).view().mode, Mode::ForceOpen);
}

#[tokio::test]
async fn a_redis_that_answers_after_five_seconds() {
    let server = Server::start().await;
    let proxy = Proxy::to(server.port).await;
    let process = Process::start(&proxy.address(), YAML).await;
    synced(&process).await;
    proxy.set(Network::Slow(Duration::from_secs(5)));
    goes_on_alone(&process).await;
    proxy.set(Network::Good);
    synced(&process).await;
    assert_eq!(process.state(), State::Closed);
}

#[tokio::test]
async fn connections_that_break() {
    let server = Server::start().await;
    let proxy = Proxy::to(server.port).await;
    let (near, far) = (Process::start(&server.address(), YAML).await, Process::start(&proxy.address(), YAML).await);
    synced(&near).await;
    synced(&far).await;
    for _ in 0..3 {
        proxy.set(Network::Reset);
        goes_on_alone(&far).await;
        proxy.set(Network::Good);
        synced(&far).await;
    }
    near.fail(2).await;
    eventually("heard again", || far.breaker().view().calls.to_open >= 4).await;
}

#[tokio::test]
async fn a_process_behind_a_partition_rejoins_without_a_flap() {
    let server = Server::start().await;
    let proxy = Proxy::to(server.port).await;
    let (near, far) = (Process::start(&server.address(), YAML).await, Process::start(&proxy.address(), YAML).await);
    synced(&near).await;
    synced(&far).await;
    near.fail(2).await;
    all(&[&near, &far], State::Open).await;
    proxy.set(Network::Partitioned);
    eventually("due", || near.state() == State::HalfOpen && far.state() == State::HalfOpen).await;
    near.ok().await.expect("the fleet's probe");
    far.ok().await.expect("its own probe, because the store does not answer");
    let counts = || [&near, &far].map(|p| (p.breaker().view().calls.to_open, p.breaker().view().calls.to_closed));
    let before = counts();
    assert_eq!(before, [(1, 1), (1, 1)]);
    proxy.set(Network::Good);
    synced(&far).await;
    synced(&near).await;
    assert_eq!((near.state(), far.state()), (State::Closed, State::Closed));
    assert_eq!(counts(), before, "no process has a new transition");
    near.fail(2).await;
    all(&[&near, &far], State::Open).await;
}

#[tokio::test]
async fn a_redis_that_is_there_only_later() {
    let mut server = Server::start().await;
    server.kill();
    let process = Process::start(&server.address(), YAML).await;
    assert_eq!(process.errors("load").0, 1);
    goes_on_alone(&process).await;
    server.restart().await;
    synced(&process).await;
    let other = Process::start(&server.address(), YAML).await;
    process.fail(2).await;
    eventually("shared from now on", || other.state() != State::Closed).await;
}
