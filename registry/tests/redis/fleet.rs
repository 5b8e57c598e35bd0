//! Processes that share their breakers through one Redis.

use circuit_registry_testing::{log::Log, redis_server::Server};
use std::{sync::Arc, time::Duration};

use circuit_registry::{Override, State, Verdict, policy::Mode};
use tokio::{sync::Barrier, time::sleep};

use crate::{Process, all, eventually};

const YAML: &str = "fleet: share\nservices: { s: { fail_max: 4, reset_timeout: 60s } }";
const QUICK: &str = "fleet: share\nservices: { s: { fail_max: 1, reset_timeout: 300ms } }";

async fn fleet<const N: usize>(server: &Server, yaml: &str) -> [Process; N] {
    let mut processes = Vec::new();
    for _ in 0..N {
        processes.push(Process::start(&server.address(), yaml).await);
    }
    let listening = || async {
        let mut redis = server.look().await;
        let count: (String, usize) = redis::cmd("PUBSUB")
            .arg("NUMSUB")
            .arg("circuit-registry:events")
            .query_async(&mut redis)
            .await
            .expect("it answers");
        count.1 >= N
    };
    while !listening().await {
        sleep(Duration::from_millis(5)).await;
    }
    processes.try_into().ok().expect("as many as asked for")
}

#[tokio::test]
async fn failures_add_up_and_every_process_opens() {
    let server = Server::start().await;
    let fleet = fleet::<4>(&server, YAML).await;
    for process in &fleet {
        process.fail(1).await;
    }
    all(&fleet.each_ref(), State::Open).await;
    let left = fleet.each_ref().map(|process| process.breaker().view().retry_in.expect("open"));
    let (least, most) = (left.iter().min().unwrap(), left.iter().max().unwrap());
    assert!(*most - *least < Duration::from_millis(500), "the same deadline: {left:?}");
}

#[tokio::test]
async fn of_many_concurrent_callers_exactly_one_probes() {
    let server = Server::start().await;
    let fleet = Arc::new(fleet::<8>(&server, QUICK).await);
    for round in 0..5 {
        fleet[round].fail(1).await;
        all(&fleet.each_ref(), State::Open).await;
        eventually("due", || fleet.iter().all(|process| process.state() == State::HalfOpen)).await;
        let barrier = Arc::new(Barrier::new(32));
        let asking: Vec<_> = (0..32)
            .map(|i| {
                let (fleet, barrier) = (fleet.clone(), barrier.clone());
                tokio::spawn(async move {
                    barrier.wait().await;
                    fleet[i % 8].breaker().acquire().await.ok()
                })
            })
            .collect();
        let mut probes = Vec::new();
        for asked in asking {
            probes.extend(asked.await.unwrap());
        }
        assert_eq!(probes.len(), 1, "round {round}");
        let held = fleet.iter().filter(|process| process.state() == State::Open).count();
        assert_eq!(held, 7, "the others stay open");
        probes.remove(0).settle(Verdict::Success);
        all(&fleet.each_ref(), State::Closed).await;
    }
}

#[tokio::test]
async fn a_failed_probe_opens_everyone_once() {
    let server = Server::start().await;
    let fleet = fleet::<4>(&server, QUICK).await;
    fleet[0].fail(1).await;
    for round in 1..6 {
        all(&fleet.each_ref(), State::Open).await;
        eventually("due", || fleet.iter().all(|process| process.state() == State::HalfOpen)).await;
        let prober = &fleet[round % 4];
        prober.fail(1).await;
        eventually("all know", || fleet.iter().all(|p| p.breaker().view().openings == round as u32 + 1)).await;
    }
}

#[tokio::test]
async fn a_missed_message_is_read_at_the_next_sync() {
    let server = Server::start().await;
    let fleet = fleet::<2>(&server, YAML).await;
    let mut redis = server.look().await;
    // A broken channel loses its messages.
    let _: () = redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("pubsub").query_async(&mut redis).await.unwrap();
    fleet[0].fail(4).await;
    all(&fleet.each_ref(), State::Open).await;
}

#[tokio::test]
async fn an_acknowledged_override_is_stored_and_in_force_everywhere() {
    let server = Server::start().await;
    let fleet = fleet::<3>(&server, YAML).await;
    fleet[0].breaker().force_open(Override::new("alice", "announced maintenance"));
    fleet[0].breaker().stored().await.expect("acknowledged");
    let mut redis = server.look().await;
    let record: String = redis::cmd("GET").arg("circuit-registry:breaker:s").query_async(&mut redis).await.unwrap();
    assert!(record.contains("alice") && record.contains("force_open"), "{record}");
    eventually("all obey", || fleet.iter().all(|p| p.breaker().view().mode == Mode::ForceOpen)).await;
    fleet[1].breaker().auto();
    fleet[1].breaker().stored().await.expect("acknowledged");
    eventually("all obey", || fleet.iter().all(|p| p.breaker().view().mode == Mode::Enforce)).await;
    let late = Process::start(&server.address(), YAML).await;
    assert_eq!(late.breaker().view().mode, Mode::Enforce);
}

#[tokio::test]
async fn overrides_of_two_operators_at_once_both_count() {
    let server = Server::start().await;
    let fleet = fleet::<2>(&server, YAML).await;
    let (alice, bob) = (fleet[0].breaker(), fleet[1].breaker());
    for i in 0..20 {
        alice.force_closed(Override::new(format!("alice-{i}"), "a"));
        bob.force_open(Override::new(format!("bob-{i}"), "b"));
        let (a, b) = tokio::join!(alice.stored(), bob.stored());
        a.and(b).expect("both acknowledged");
    }
    let mut redis = server.look().await;
    let record: String = redis::cmd("GET").arg("circuit-registry:breaker:s").query_async(&mut redis).await.unwrap();
    for i in 0..20 {
        assert!(record.contains(&format!("\"alice-{i}\"")) && record.contains(&format!("\"bob-{i}\"")), "{i} is lost");
    }
}

/// A fleet in which each process knows how many there are.
async fn fleet_of_four(server: &Server, yaml: &str) -> [Process; 4] {
    let (log, _guard) = Log::listen();
    let fleet = fleet::<4>(server, yaml).await;
    eventually("all have met the store", || log.lines(&["sharing breakers with the fleet"]).len() == 4).await;
    // And each comes by once more, now that all are there.
    let mut redis = server.look().await;
    let visits = async |redis: &mut redis::aio::MultiplexedConnection| -> Vec<(String, u64)> {
        redis::cmd("ZRANGE")
            .arg("circuit-registry:processes")
            .arg("0")
            .arg("-1")
            .arg("WITHSCORES")
            .query_async(redis)
            .await
            .expect("it answers")
    };
    let before = visits(&mut redis).await;
    while visits(&mut redis).await.iter().any(|now| before.contains(now)) {
        sleep(Duration::from_millis(5)).await;
    }
    fleet
}

#[tokio::test]
async fn a_rate_limit_of_the_fleet_counts_all_processes() {
    let server = Server::start().await;
    let yaml = "services: { s: { rate_limit: { limit: 5, per: 60s, scope: fleet } } }";
    let fleet = fleet_of_four(&server, yaml).await;
    let mut admitted = 0;
    for _ in 0..10 {
        for process in &fleet {
            admitted += u32::from(process.ok().await.is_ok());
        }
    }
    assert!(admitted <= 6, "five, and one that is due again on a slow machine: {admitted}");
    assert!(admitted >= 5, "{admitted}");
}

#[tokio::test]
async fn without_redis_each_process_has_its_part_of_a_rate_limit() {
    for trouble in ["killed", "frozen"] {
        let mut server = Server::start().await;
        let yaml = "services: { s: { rate_limit: { limit: 8, per: 24h, scope: fleet } } }";
        let fleet = fleet_of_four(&server, yaml).await;
        if trouble == "killed" {
            server.kill()
        } else {
            server.signal("-STOP")
        }
        for process in &fleet {
            let mut admitted = 0;
            for _ in 0..10 {
                admitted += u32::from(process.ok().await.is_ok());
            }
            assert_eq!(admitted, 2, "a quarter of eight each, {trouble}");
        }
    }
}

#[tokio::test]
async fn a_call_that_its_own_breaker_decides_does_not_ask_redis() {
    let server = Server::start().await;
    let fleet = fleet::<1>(&server, YAML).await;
    let mut redis = server.look().await;
    let mut commands = async || {
        let stats: String = redis::cmd("INFO").arg("commandstats").query_async(&mut redis).await.unwrap();
        let calls = stats.lines().filter(|line| line.contains("cmdstat_evalsha:") || line.contains("cmdstat_publish:"));
        calls.filter_map(|line| line.split("calls=").nth(1)?.split(',').next()?.parse::<u64>().ok()).sum::<u64>()
    };
    let before = commands().await;
    for _ in 0..10_000 {
        fleet[0].ok().await.unwrap();
    }
    let visits = commands().await - before;
    assert!(visits < 100, "{visits} questions for 10 000 calls");
    fleet[0].fail(4).await;
    fleet[0].breaker().stored().await.unwrap();
    let before = commands().await;
    for _ in 0..10_000 {
        fleet[0].ok().await.unwrap_err();
    }
    let visits = commands().await - before;
    assert!(visits < 100, "{visits} questions for 10 000 rejections");
}
