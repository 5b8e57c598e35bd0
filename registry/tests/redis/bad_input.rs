//! Whatever is wrong with the store, calls do not notice; the log says what, and the metric counts it.

use circuit_registry::{State, store::StoreErrorKind};
use circuit_registry_testing::{log::Log, redis_server::Server};

use crate::{Process, eventually};

const YAML: &str = "fleet: share\nservices: { s: { fail_max: 2, reset_timeout: 60s } }";
const OFF: &str = "services: { s: { fail_max: 2, reset_timeout: 60s } }";

/// Nothing is acknowledged, every failure is counted, the log has `expected` once for each operation, and the breaker works.
async fn works_without(address: &str, kind: StoreErrorKind, expected: &str) {
    for yaml in [YAML, OFF] {
        let (log, _guard) = Log::listen();
        let process = Process::start(address, yaml).await;
        process.ok().await.expect("calls pass");
        process.fail(2).await;
        assert_eq!(process.state(), State::Open);
        process.ok().await.expect_err("and are refused");
        let error = process.breaker().stored().await.expect_err("nothing is acknowledged");
        assert!(!error.to_string().contains("secret"), "{error}");
        assert_eq!(error.kind(), kind, "{error}");
        let op = if yaml == YAML { "sync" } else { "save" };
        eventually("every failure is counted", || process.errors(op).0 > 1).await;
        #[cfg(feature = "prometheus")]
        {
            let series = format!("circuit_breaker_store_errors_total{{op=\"{op}\",store=\"redis\"}} ");
            let page = process.page();
            let value = page.lines().find_map(|line| line.strip_prefix(&series)?.parse::<u64>().ok());
            assert!(value.is_some_and(|value| value > 1), "{page}");
        }
        let lines = log.lines(&["WARN", "does not work", "store=redis", &format!("op={op}")]);
        assert!(lines.len() == 1 && lines[0].contains(expected), "one line, however often it fails: {lines:?}");
        let secrets = log.lines(&["secret"]);
        assert!(secrets.is_empty(), "{secrets:?}");
    }
}

#[tokio::test]
async fn a_wrong_password() {
    let server = Server::with(&["--requirepass", "the-right-one"]).await;
    works_without(&format!("redis://:secret@127.0.0.1:{}", server.port), StoreErrorKind::Denied, "password").await;
    works_without(&server.address(), StoreErrorKind::Denied, "password").await;
}

#[tokio::test]
async fn a_wrong_database() {
    let server = Server::start().await;
    works_without(&format!("{}/99", server.address()), StoreErrorKind::Other, "DB index is out of range").await;
}

#[tokio::test]
async fn a_read_only_replica() {
    let primary = Server::start().await;
    let replica = Server::with(&["--replicaof", &format!("127.0.0.1 {}", primary.port)]).await;
    works_without(&replica.address(), StoreErrorKind::ReadOnly, "read only replica").await;
}

#[tokio::test]
async fn a_redis_without_memory() {
    let server = Server::with(&["--maxmemory", "1", "--maxmemory-policy", "noeviction"]).await;
    works_without(&server.address(), StoreErrorKind::Full, "maxmemory").await;
}

#[tokio::test]
async fn a_user_without_rights() {
    let server = Server::with(&"--user osint on >secret ~* &* -@all +auth +ping".split(' ').collect::<Vec<_>>()).await;
    works_without(&format!("redis://osint:secret@127.0.0.1:{}", server.port), StoreErrorKind::Denied, "rights").await;
}

/// The rights that `docs/fleet.md` says are enough.
#[tokio::test]
async fn a_user_with_just_the_rights_it_needs() {
    const RIGHTS: &str = "on >secret resetchannels ~kyb:* &kyb:* -@all +get +set +del +mget +type +zadd +zrem +zrange \
        +zrangebyscore +zremrangebyscore +zcard +pexpire +pttl +time +publish +subscribe +unsubscribe +eval +evalsha \
        +script|load +select +ping";
    let server =
        Server::with(&["--user", "osint"].into_iter().chain(RIGHTS.split_whitespace()).collect::<Vec<_>>()).await;
    let address = format!("redis://osint:secret@127.0.0.1:{}?prefix=kyb", server.port);
    for yaml in [YAML, OFF] {
        let process = Process::start(&address, yaml).await;
        process.fail(2).await;
        process.breaker().stored().await.expect("stored");
        let other = Process::start(&address, yaml).await;
        assert_eq!(other.state(), State::Open);
        other.breaker().reset();
        other.breaker().stored().await.expect("stored");
        assert_eq!((process.errors("load").1, other.errors("load").1), (0, 0));
    }
}
