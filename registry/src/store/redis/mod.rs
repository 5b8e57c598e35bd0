//! Redis 7: one string per breaker, each with a time to live.
//!
//! | key | what | lives |
//! |---|---|---|
//! | `PREFIX:breaker:SERVICE` | the record, one line of JSON | a day longer than its content is valid |
//! | `PREFIX:index` | services, sorted by the last change of their record | 31 days |
//! | `PREFIX:lease:SERVICE:EPOCH` | the process that may probe | as long as the lease |
//! | `PREFIX:rate:SERVICE` | when the next token is due | until then |
//! | `PREFIX:processes` | processes, sorted by their last sync | a minute |
//! | `PREFIX:life` | a name of the content; a new name means that the content was lost | a day after the last sync |
//! | channel `PREFIX:events` | records, leases and failures as they come | |
//!
//! Every question is one script: one round trip, atomic, by Redis's own clock. After a connection broke, the next question makes a
//! new one. Redis Cluster does not work, because its scripts may only touch keys of one slot.

mod connection;
mod fleet;
mod records;
mod scripts;

use std::{fmt, sync::atomic::AtomicU64, time::Duration};

use redis::{Client, IntoConnectionInfo, aio::MultiplexedConnection};
use tokio::sync::Mutex;

use self::scripts::Scripts;
use super::error::{StoreError, StoreErrorKind};

const PREFIX: &str = "circuit-registry";

/// Records that are read or written in one go.
const BATCH: usize = 1000;

/// Keeps breakers in Redis, and connects a fleet.
pub struct RedisStore {
    client: Client,
    prefix: String,
    connection: Mutex<Option<MultiplexedConnection>>,
    /// Counts syncs, for a new name of the content when the store is empty.
    lives: AtomicU64,
    scripts: Scripts,
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client's own form shows the password.
        f.debug_struct("RedisStore").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl RedisStore {
    /// A store at `address`: `redis://[user[:password]@]host[:port][/database][?prefix=…]`, or `rediss://…` for TLS. It does not
    /// connect yet.
    ///
    /// # Errors
    /// If `address` is not such an address.
    pub fn open(address: &str) -> Result<Self, StoreError> {
        // No error repeats the address, because it may hold a password.
        let bad = |message: String| StoreError::new(StoreErrorKind::Setting, message);
        let (plain, query) = address.split_once('?').unwrap_or((address, ""));
        let (mut prefix, mut rest) = (PREFIX.to_owned(), Vec::new());
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("prefix", value)) => value.clone_into(&mut prefix),
                _ => rest.push(parameter),
            }
        }
        if prefix.is_empty() || prefix.len() > 100 || !prefix.chars().all(|c| c.is_ascii_graphic()) {
            return Err(bad("the prefix of a Redis address is 1 to 100 visible ASCII characters".into()));
        }
        if plain.starts_with("rediss:") {
            // Chooses the cryptography, unless the program has chosen one before.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let plain = if rest.is_empty() { plain.to_owned() } else { format!("{plain}?{}", rest.join("&")) };
        let client = plain.into_connection_info().and_then(|info| {
            // The name of the client library is not needed, and not every user may set it.
            let quiet = info.redis_settings().clone().set_skip_set_lib_name();
            Client::open(info.set_redis_settings(quiet))
        });
        let client = client.map_err(|error| {
            let what = error.detail().map_or_else(|| error.to_string(), str::to_owned);
            bad(format!("not a Redis address: {}", what.lines().next().unwrap_or_default()))
        })?;
        let scripts = Scripts::default();
        Ok(Self { client, prefix, connection: Mutex::new(None), lives: AtomicU64::new(0), scripts })
    }

    fn key(&self, kind: &str, rest: &str) -> String {
        if rest.is_empty() { format!("{}:{kind}", self.prefix) } else { format!("{}:{kind}:{rest}", self.prefix) }
    }

    fn record_key(&self, service: &str) -> String {
        self.key("breaker", service)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).clamp(1, 1 << 50)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_can_set_the_prefix() {
        let store = RedisStore::open("redis://osint:secret@localhost:7000/3?prefix=kyb").unwrap();
        assert_eq!(
            (store.record_key("vies:DE"), store.key("index", "")),
            ("kyb:breaker:vies:DE".into(), "kyb:index".into())
        );
        assert!(!format!("{store:?}").contains("secret"));
        assert_eq!(RedisStore::open("redis://localhost").unwrap().prefix, PREFIX);
        assert!(RedisStore::open("rediss://localhost").is_ok());
    }

    #[test]
    fn errors_of_bad_addresses_hide_the_password() {
        for address in [
            "redis://",
            "redis://:secret@",
            "redis://u:secret@localhost:99999",
            "redis://u:secret@h/x",
            "redis://u:secret@h?prefix=",
        ] {
            let error = RedisStore::open(address).expect_err(address);
            assert_eq!(error.kind(), StoreErrorKind::Setting);
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
