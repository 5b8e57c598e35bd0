//! What a process remembers of the one before it.

use circuit_registry_testing::{log::Log, redis_server::Server};
use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use circuit_registry::{CircuitRegistry, Override, State, WallClock, policy::Mode};
use redis::AsyncCommands;

use crate::{Process, eventually};

const YAML: &str = "defaults: { fail_max: 3, reset_timeout: 60s }\nservices: { s: {}, t: {} }";
const SHARED: &str = "fleet: share\ndefaults: { fail_max: 3, reset_timeout: 60s }\nservices: { s: {}, t: {} }";

async fn open(process: &Process, service: &str) {
    for _ in 0..3 {
        let _ = process.registry.call(service, async { Err::<(), _>(std::io::Error::other("down")) }).await;
    }
    process.registry.breaker(service).stored().await.expect("stored");
}

fn states(process: &Process) -> BTreeMap<String, State> {
    process.registry.views().into_iter().map(|view| (view.service.to_string(), view.state)).collect()
}

#[tokio::test]
async fn an_open_breaker_and_an_override_survive_their_process() {
    let server = Server::start().await;
    for yaml in [YAML, SHARED] {
        let store = format!("{}?prefix=p{}", server.address(), yaml.len());
        let first = Process::start(&store, yaml).await;
        open(&first, "s").await;
        open(&first, "dynamic:DE").await;
        first.registry.breaker("t").force_closed(Override::new("alice", "trusted"));
        first.end().await;
        let second = Process::start(&store, yaml).await;
        let view = second.breaker().view();
        assert_eq!((view.state, view.openings, view.consecutive_failures), (State::Open, 1, 0));
        assert!(view.retry_in.unwrap() > Duration::from_secs(20), "{view:?}");
        assert_eq!(second.registry.breaker("dynamic:DE").view().state, State::Open);
        assert_eq!(second.registry.breaker("t").view().mode, Mode::ForceClosed);
        assert_eq!(second.errors("load"), (0, 0));
    }
}

#[tokio::test]
async fn every_key_has_the_prefix_and_an_end() {
    let server = Server::start().await;
    let store = format!("{}/3?prefix=kyb", server.address());
    let yaml = "fleet: { share: { lease: 30s } }
defaults: { fail_max: 3, reset_timeout: 60s }
services:
  s: {}
  t: { rate_limit: { per: 1h, scope: fleet } }
  probed: { fail_max: 1, reset_timeout: 50ms }
  voted: { fleet: { share: { quorum: 2 } } }
  alone: { fleet: off }
  reset: {}";
    let fleet = [Process::start(&store, yaml).await, Process::start(&store, yaml).await];
    for (i, process) in fleet.iter().enumerate() {
        for service in ["s", "alone", "reset", "dynamic:DE", &format!("dynamic:{i}")] {
            open(process, service).await;
        }
    }
    open(&fleet[0], "voted").await;
    fleet[0].registry.breaker("reset").reset();
    fleet[0].registry.breaker("reset").stored().await.expect("stored");
    fleet[1].breaker().force_open(Override::new("alice", "for ever"));
    fleet[1].breaker().stored().await.expect("stored");
    let _ = fleet[0].registry.call("probed", async { Err::<(), _>(std::io::Error::other("down")) }).await;
    fleet[0].registry.breaker("probed").stored().await.expect("stored");
    let probed = fleet[0].registry.breaker("probed");
    eventually("due", || probed.view().state == State::HalfOpen).await;
    let _probe = probed.acquire().await.expect("its own");
    // Until both have met the store each takes from its own share of the limit.
    let mut redis = server.look().await;
    redis::cmd("SELECT").arg(3).query_async::<()>(&mut redis).await.unwrap();
    let mut kinds = std::collections::BTreeSet::new();
    while !["breaker", "index", "lease", "life", "processes", "rate"].iter().all(|kind| kinds.contains(*kind)) {
        let _ = fleet[1].registry.breaker("t").acquire().await;
        let keys: Vec<String> = redis.keys("*").await.unwrap();
        for key in keys {
            let kind = key.strip_prefix("kyb:").unwrap_or_else(|| panic!("{key} has another prefix"));
            kinds.insert(kind.split(':').next().unwrap_or_default().to_owned());
            let rest: i64 = redis.pttl(&key).await.unwrap();
            assert!(rest > 0 || rest == -2, "{key} lives for {rest} ms"); // or it is gone by now
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(kinds.len(), 6, "every kind of key is known: {kinds:?}");
}

/// A wall clock that is off.
struct Skewed(i64);

impl WallClock for Skewed {
    #[expect(clippy::disallowed_methods, reason = "the clock that is skewed")]
    fn now(&self) -> SystemTime {
        let now = SystemTime::now();
        let skew = Duration::from_secs(self.0.unsigned_abs());
        if self.0 < 0 { now - skew } else { now + skew }
    }
}

#[tokio::test]
async fn another_machines_clock_does_not_matter() {
    let server = Server::start().await;
    for yaml in [YAML, SHARED] {
        let store = format!("{}?prefix=p{}", server.address(), yaml.len());
        let ahead = Process::build(CircuitRegistry::builder().wall_clock(Skewed(600)), &store, yaml).await;
        open(&ahead, "s").await;
        for skew in [-600, 0, 86_400] {
            let other = Process::build(CircuitRegistry::builder().wall_clock(Skewed(skew)), &store, yaml).await;
            let (here, there) = (ahead.breaker().view().retry_in.unwrap(), other.breaker().view().retry_in.unwrap());
            assert!(here.abs_diff(there) < Duration::from_secs(1), "{here:?} and {there:?}, {skew} s apart");
        }
    }
}

#[tokio::test]
async fn a_bad_record_affects_only_its_own_breaker() {
    let server = Server::start().await;
    let store = server.address();
    let mut redis = server.look().await;
    for yaml in [YAML, SHARED] {
        let names = ["s", "garbage", "version", "type", "gone", "binary", "swapped"];
        let first = Process::start(&store, yaml).await;
        for name in names {
            open(&first, name).await;
        }
        first.end().await;
        let key = |name: &str| format!("circuit-registry:breaker:{name}");
        let text: String = redis.get(key("version")).await.unwrap();
        let _: () = redis.set(key("garbage"), "OK").await.unwrap();
        let _: () = redis.set(key("version"), text.replace("\"version\":1", "\"version\":2")).await.unwrap();
        let _: () = redis.del(key("type")).await.unwrap();
        let _: () = redis.lpush(key("type"), "a list").await.unwrap();
        let _: () = redis.del(key("gone")).await.unwrap();
        let _: () = redis.set(key("binary"), b"\xff\xfe{}".as_slice()).await.unwrap();
        let _: () = redis.set(key("swapped"), &text).await.unwrap();
        let (log, _guard) = Log::listen();
        let second = Process::start(&store, yaml).await;
        let states = states(&second);
        assert_eq!(states["s"], State::Open);
        // Who shares reads the records once more when it joins.
        eventually("it has joined", || yaml == YAML || !log.lines(&["INFO", "sharing breakers"]).is_empty()).await;
        for (name, problem) in [
            ("garbage", "it is not a snapshot"),
            ("version", "its version is 2, and this program reads version 1"),
            ("type", "it is a list and not a text"),
            ("gone", "it is gone"),
            ("binary", "it is not a snapshot"),
            ("swapped", "it belongs to another service"),
        ] {
            let service = format!("service={name}");
            let lines = log.lines(&["WARN", &service]);
            assert!(lines.len() == 1 && lines[0].contains(problem), "logged once: {lines:?}");
        }
        assert_eq!(log.lines(&["WARN"]).len(), 6, "{:?}", log.lines(&["WARN"]));
        let others: Vec<_> = states.iter().filter(|(name, _)| *name != "s").collect();
        assert!(others.iter().all(|(_, state)| **state == State::Closed), "{others:?}");
        // And each can be stored again.
        for name in names {
            open(&second, name).await;
        }
        second.end().await;
        let third = Process::start(&store, yaml).await;
        for name in names {
            assert_eq!(third.registry.breaker(name).view().state, State::Open, "{name}");
        }
        drop(third);
        let _: () = redis::cmd("FLUSHALL").query_async(&mut redis).await.unwrap();
    }
}

#[tokio::test]
async fn another_policy_starts_closed() {
    let server = Server::start().await;
    for yaml in [YAML, SHARED] {
        let store = format!("{}?prefix=p{}", server.address(), yaml.len());
        let first = Process::start(&store, yaml).await;
        open(&first, "s").await;
        first.end().await;
        let (log, _guard) = Log::listen();
        let second = Process::start(&store, &yaml.replace("60s", "61s")).await;
        assert_eq!(second.state(), State::Closed);
        assert_eq!(log.lines(&["WARN", "under another policy", "service=s"]).len(), 1);
    }
}

/// No manual clean-up is needed before breakers are shared again.
#[tokio::test]
async fn foreign_values_in_the_fleets_keys_are_replaced() {
    let server = Server::start().await;
    let yaml = "fleet: { share: { lease: 300ms } }
services: { s: { fail_max: 1, reset_timeout: 50ms, rate_limit: { limit: 1000000, per: 1h, scope: fleet } } }";
    let mut redis = server.look().await;
    let stand = async |redis: &mut redis::aio::MultiplexedConnection, key: &str| {
        let _: () = redis.del(key).await.unwrap();
        let _: () = redis.lpush(key, "a list").await.unwrap();
    };
    for key in ["index", "processes", "life", "rate:s", "breaker:s"] {
        stand(&mut redis, &format!("circuit-registry:{key}")).await;
    }
    let process = Process::start(&server.address(), yaml).await;
    let record = async |redis: &mut redis::aio::MultiplexedConnection| {
        process.breaker().stored().await.expect("stored");
        let text: String = redis.get("circuit-registry:breaker:s").await.expect("a record");
        text.split("\"epoch\":").nth(1).and_then(|rest| rest.split(',').next().map(str::to_owned)).expect("an epoch")
    };
    process.fail(1).await;
    // A lease that is none, and one that never ends: neither is anybody's.
    for lease in ["a list", "endless"] {
        let key = format!("circuit-registry:lease:s:{}", record(&mut redis).await);
        match lease {
            "endless" => redis.set::<_, _, ()>(&key, "somebody").await.unwrap(),
            _ => stand(&mut redis, &key).await,
        }
        eventually("due", || process.state() == State::HalfOpen).await;
        process.fail(1).await;
        let rest: i64 = redis.pttl(&key).await.unwrap();
        assert!(rest <= 300 && rest != -1, "{lease}: it is a lease of ours now, or over by now: {rest}");
    }
    for key in ["index", "processes", "life", "rate:s", "breaker:s"] {
        let kind: String =
            redis::cmd("TYPE").arg(format!("circuit-registry:{key}")).query_async(&mut redis).await.unwrap();
        assert_ne!(kind, "list", "{key}");
    }
    assert_eq!(process.errors("load").1, 0, "no question has failed");
}

/// After a clock was set back, or with a foreign number, no call waits longer than the limit demands.
#[tokio::test]
async fn a_token_due_in_the_far_future_is_due_soon() {
    let server = Server::start().await;
    let yaml = "services: { s: { rate_limit: { per: 100ms, scope: fleet } } }";
    let (log, _guard) = Log::listen();
    let process = Process::start(&server.address(), yaml).await;
    eventually("it has joined", || !log.lines(&["INFO", "sharing breakers"]).is_empty()).await;
    let mut redis = server.look().await;
    let _: () = redis.set("circuit-registry:rate:s", "9000000000000000").await.unwrap();
    let refused = process.ok().await.expect_err("none now");
    assert!(refused.retry_in.is_some_and(|time| time <= Duration::from_millis(200)), "{refused:?}");
}

#[tokio::test]
async fn a_foreign_index_hides_no_configured_service() {
    let server = Server::start().await;
    let first = Process::start(&server.address(), SHARED).await;
    open(&first, "s").await;
    first.end().await;
    let mut redis = server.look().await;
    let _: () = redis.set("circuit-registry:index", "something else").await.unwrap();
    let second = Process::start(&server.address(), SHARED).await;
    assert_eq!(second.state(), State::Open);
    second.breaker().reset();
    second.breaker().stored().await.expect("and it is made again");
}
