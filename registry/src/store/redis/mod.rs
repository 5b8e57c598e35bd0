//! Redis 7: one string per breaker, each with a time to live.
//!
//! | key | what | lives |
//! |---|---|---|
//! | `PREFIX:breaker:SERVICE` | the record, one line of JSON | a day beyond what it says |
//! | `PREFIX:index` | services by when their record last changed | 30 days |
//! | `PREFIX:lease:SERVICE:EPOCH` | who may probe | the lease |
//! | `PREFIX:rate:SERVICE` | when the next token is due | until then |
//! | `PREFIX:processes` | processes by when they last came by | a minute |
//! | `PREFIX:life` | whether the content was lost | a day beyond the last visit |
//! | channel `PREFIX:events` | records, leases and failures as they come | |
//!
//! Every question is one script, so one round trip and atomic, and goes by Redis's own clock. Where a connection broke, the next
//! question makes a new one. It is not for Redis Cluster, whose scripts may not touch so many keys.

mod scripts;

use std::{
    collections::BTreeSet,
    fmt,
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use futures::StreamExt;
use redis::{
    AsyncConnectionConfig, Client, ErrorKind, IntoConnectionInfo, RedisError, ServerErrorKind,
    aio::{MultiplexedConnection, PubSubStream},
};
use tokio::sync::Mutex;

use self::scripts::{INDEX_MILLIS, Scripts};
use super::{
    Answer, Content, FleetStore, Lease, LeaseAnswer, Loaded, News, Put, PutAnswer, Record, Store, StoreError,
    StoreErrorKind, Subscription,
};
use crate::{
    clock::{Stamp, saturating_nanos},
    fleet::message::{LeaseNote, Message},
    outcome::ServiceName,
    policy::RateLimitPolicy,
};

const PREFIX: &str = "circuit-registry";

/// A connection that is not made within this time is not made.
const CONNECT: Duration = Duration::from_secs(2);

/// A question that nobody gave up earlier is given up after this time.
const RESPOND: Duration = Duration::from_secs(5);

/// Records read in one go.
const BATCH: usize = 1000;

/// A list of changes longer than this is read the next time.
const CHANGES: usize = 20_000;

/// Remembers breakers in Redis, and connects a fleet.
pub struct RedisStore {
    client: Client,
    prefix: String,
    connection: Mutex<Option<MultiplexedConnection>>,
    /// Counts connections, for a name of what the store held when it was empty.
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
    /// A store at `address`: `redis://[user[:password]@]host[:port][/database][?prefix=…]`, or `rediss://…` for TLS. Connects to
    /// nothing yet.
    ///
    /// # Errors
    /// If that is not such an address.
    pub fn open(address: &str) -> Result<Self, StoreError> {
        // Whatever is wrong with it, the address may hold a password and is not repeated.
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
            // Someone has to choose the cryptography if nobody has; if somebody has, theirs it is.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let plain = if rest.is_empty() { plain.to_owned() } else { format!("{plain}?{}", rest.join("&")) };
        let client = plain.into_connection_info().and_then(|info| {
            // Of what a connection says about itself nothing is needed, and not every user may say it.
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

    /// The present connection, or a new one.
    async fn connection(&self) -> Result<MultiplexedConnection, StoreError> {
        let mut present = self.connection.lock().await;
        if let Some(connection) = &*present {
            return Ok(connection.clone());
        }
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECT)).set_response_timeout(Some(RESPOND));
        let connected = self.client.get_multiplexed_async_connection_with_config(&config).await;
        let mut connection = connected.map_err(|error| trouble(&error))?;
        // A server that wants a password says so only when it is asked something.
        redis::cmd("PING").query_async::<()>(&mut connection).await.map_err(|error| trouble(&error))?;
        *present = Some(connection.clone());
        Ok(connection)
    }

    /// Asks, over the present connection or a new one. A connection that broke, or that does not answer, is given up; so is
    /// one whose question was dropped before it was answered, because it may be stuck.
    async fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&mut MultiplexedConnection) -> Result<T, RedisError>,
    ) -> Result<T, StoreError> {
        let mut connection = self.connection().await?;
        let mut guard = GiveUp { store: self, armed: true };
        let answer = question(&mut connection).await;
        // Redis itself answered, if only to say no: the connection is good. A replica or a server that is loading may be
        // another one by the next time, though.
        guard.armed = answer.as_ref().is_err_and(|error| match error.kind() {
            ErrorKind::Server(kind) => matches!(kind, ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown),
            _ => true,
        });
        answer.map_err(|error| trouble(&error))
    }
}

/// Forgets the connection unless disarmed.
struct GiveUp<'a> {
    store: &'a RedisStore,
    armed: bool,
}

impl Drop for GiveUp<'_> {
    fn drop(&mut self) {
        if self.armed
            && let Ok(mut connection) = self.store.connection.try_lock()
        {
            *connection = None;
        }
    }
}

impl Store for RedisStore {
    fn kind(&self) -> &'static str {
        "redis"
    }

    fn now(&self) -> Answer<'_, Option<Stamp>> {
        Box::pin(async {
            let time: (u64, u64) = self.ask(async |c| redis::cmd("TIME").query_async(c).await).await?;
            Ok(Some(Stamp::from_micros(time.0 * 1_000_000 + time.1)))
        })
    }

    fn load<'a>(&'a self, services: &'a [ServiceName]) -> Answer<'a, Vec<Loaded>> {
        Box::pin(async move {
            let index = self.key("index", "");
            let indexed =
                self.ask(async |c| redis::cmd("ZRANGE").arg(&index).arg(0).arg(-1).query_async(c).await).await;
            let indexed: BTreeSet<String> = match indexed {
                Ok(names) => names,
                // Someone put something else there: the configured services are found all the same.
                Err(error) if error.kind() == StoreErrorKind::Other => BTreeSet::new(),
                Err(error) => return Err(error),
            };
            let mut names = indexed.clone();
            names.extend(services.iter().map(|name| name.as_str().to_owned()));
            let names: Vec<String> = names.into_iter().collect();
            let mut loaded = Vec::new();
            for names in names.chunks(BATCH) {
                let keys: Vec<_> = names.iter().map(|name| self.record_key(name)).collect();
                let texts = self.texts(&keys).await?;
                // What is no string reads as nothing.
                let absent = names.iter().zip(&texts).filter(|(_, text)| text.is_none()).map(|(name, _)| name);
                let absent: Vec<&String> = absent.collect();
                let types = self.types(&absent).await?;
                let wrong = absent.into_iter().zip(types).filter_map(|(name, kind)| {
                    let content = match kind.as_str() {
                        "none" if indexed.contains(name) => Content::Missing,
                        "none" => return None,
                        _ => Content::WrongType(kind),
                    };
                    Some(Loaded { service: Some(name.as_str().into()), content })
                });
                loaded.extend(wrong);
                loaded.extend(names.iter().zip(texts).filter_map(|(name, text)| {
                    Some(Loaded { service: Some(name.as_str().into()), content: Content::Text(text?) })
                }));
            }
            Ok(loaded)
        })
    }

    fn save<'a>(&'a self, records: &'a [Record]) -> Answer<'a, ()> {
        Box::pin(async move {
            for records in records.chunks(BATCH) {
                let mut pipe = redis::pipe();
                for record in records {
                    let key = self.record_key(&record.service);
                    match &record.text {
                        Some(text) => {
                            pipe.cmd("SET").arg(key).arg(text).arg("PX").arg(millis(record.keep)).ignore();
                            let now =
                                crate::store::record::Snapshot::decode(text, None).map_or(0, |s| s.epoch.as_micros());
                            pipe.cmd("ZADD")
                                .arg(self.key("index", ""))
                                .arg(now / 1000)
                                .arg(record.service.as_str())
                                .ignore();
                        }
                        None => {
                            pipe.cmd("DEL").arg(key).ignore();
                            pipe.cmd("ZREM").arg(self.key("index", "")).arg(record.service.as_str()).ignore();
                        }
                    }
                }
                pipe.cmd("PEXPIRE").arg(self.key("index", "")).arg(INDEX_MILLIS).ignore();
                self.ask(async |c| pipe.query_async::<()>(c).await).await?;
            }
            Ok(())
        })
    }

    fn fleet(&self) -> Option<&dyn FleetStore> {
        Some(self)
    }
}

impl RedisStore {
    /// What is no text at all reads as one that is none of ours.
    async fn texts(&self, keys: &[String]) -> Result<Vec<Option<String>>, StoreError> {
        let texts: Vec<Option<Vec<u8>>> = self.ask(async |c| redis::cmd("MGET").arg(keys).query_async(c).await).await?;
        Ok(texts.into_iter().map(|text| Some(String::from_utf8_lossy(&text?).into_owned())).collect())
    }

    async fn types(&self, names: &[&String]) -> Result<Vec<String>, StoreError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        for name in names {
            pipe.cmd("TYPE").arg(self.record_key(name));
        }
        self.ask(async |c| pipe.query_async(c).await).await
    }
}

impl FleetStore for RedisStore {
    fn put<'a>(&'a self, puts: &'a [Put]) -> Answer<'a, Vec<PutAnswer>> {
        Box::pin(async move {
            let mut script = self.scripts.put.prepare_invoke();
            script.key(self.key("index", "")).arg(self.key("events", "")).arg(INDEX_MILLIS);
            for put in puts {
                script.key(self.record_key(&put.service));
                script
                    .arg(put.service.as_str())
                    .arg(put.expected.as_deref().unwrap_or(""))
                    .arg(&*put.text)
                    .arg(millis(put.keep));
            }
            let answers: Vec<(u8, String)> = self.ask(async |c| script.invoke_async(c).await).await?;
            let read = |(done, present): (u8, String)| match done {
                1 => PutAnswer::Done,
                _ => PutAnswer::Differs((!present.is_empty()).then_some(present)),
            };
            Ok(answers.into_iter().map(read).collect())
        })
    }

    fn lease<'a>(&'a self, ask: &'a Lease) -> Answer<'a, LeaseAnswer> {
        Box::pin(async move {
            let mut script = self.scripts.lease.key(self.record_key(&ask.service));
            script.key(self.lease_key(ask)).arg(ask.record.as_deref().unwrap_or("")).arg(&ask.process);
            script.arg(ask.due.as_micros()).arg(millis(ask.lasting)).arg(self.key("events", ""));
            script.arg(Message::Lease(LeaseNote::of(ask)).encode());
            let answer: (u8, i64, String) = self.ask(async |c| script.invoke_async(c).await).await?;
            Ok(match answer {
                (1, ..) => LeaseAnswer::Granted,
                (4, rest, _) => LeaseAnswer::Early(Duration::from_micros(rest.unsigned_abs())),
                // Less than no time is a key without an end, which is none of ours.
                (2, rest, _) => LeaseAnswer::Taken(u64::try_from(rest).map_or(ask.lasting, Duration::from_millis)),
                (_, _, text) => LeaseAnswer::Outdated((!text.is_empty()).then_some(text)),
            })
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> Answer<'a, bool> {
        Box::pin(async move {
            let mut script = self.scripts.renew.key(self.lease_key(lease));
            script.arg(&lease.process).arg(millis(lease.lasting)).arg(self.key("events", ""));
            script.arg(Message::Lease(LeaseNote::of(lease)).encode());
            self.ask(async |c| script.invoke_async(c).await).await
        })
    }

    fn take<'a>(&'a self, service: &'a ServiceName, limit: &'a RateLimitPolicy) -> Answer<'a, Result<(), Duration>> {
        Box::pin(async move {
            let spacing = (saturating_nanos(limit.per) / u64::from(limit.limit.get())).div_ceil(1000);
            let burst = spacing.saturating_mul(u64::from(limit.limit.get() - 1));
            let mut script = self.scripts.take.key(self.key("rate", service));
            script.arg(spacing).arg(burst);
            let wait: u64 = self.ask(async |c| script.invoke_async(c).await).await?;
            Ok(if wait == 0 { Ok(()) } else { Err(Duration::from_micros(wait)) })
        })
    }

    fn sync<'a>(&'a self, process: &'a str, since: Stamp) -> Answer<'a, News> {
        Box::pin(async move {
            // If the store turns out to be empty it gets a name that no process has seen.
            let life = format!("{process}-{}", self.lives.fetch_add(1, Ordering::Relaxed));
            let mut script = self.scripts.sync.key(self.key("index", ""));
            script.key(self.key("processes", "")).key(self.key("life", "")).arg(process).arg(since.as_micros() / 1000);
            script.arg(life).arg(CHANGES);
            let (seconds, micros, processes, life, names): (u64, u64, u32, String, Vec<String>) =
                self.ask(async |c| script.invoke_async(c).await).await?;
            let mut changed = Vec::with_capacity(names.len());
            for names in names.chunks(BATCH) {
                let keys: Vec<_> = names.iter().map(|name| self.record_key(name)).collect();
                let texts = self.texts(&keys).await?;
                let present = names.iter().zip(texts).filter_map(|(name, text)| Some((name.as_str().into(), text?)));
                changed.extend(present);
            }
            Ok(News { now: Stamp::from_micros(seconds * 1_000_000 + micros), processes, life, changed })
        })
    }

    fn publish<'a>(&'a self, texts: &'a [String]) -> Answer<'a, ()> {
        Box::pin(async move {
            let channel = self.key("events", "");
            for texts in texts.chunks(BATCH) {
                let mut pipe = redis::pipe();
                for text in texts {
                    pipe.cmd("PUBLISH").arg(&channel).arg(text).ignore();
                }
                self.ask(async |c| pipe.query_async::<()>(c).await).await?;
            }
            Ok(())
        })
    }

    fn subscribe(&self) -> Answer<'_, Box<dyn Subscription>> {
        Box::pin(async {
            let mut channel = self.client.get_async_pubsub().await.map_err(|error| trouble(&error))?;
            channel.subscribe(self.key("events", "")).await.map_err(|error| trouble(&error))?;
            Ok(Box::new(Listener(channel.into_on_message())) as Box<dyn Subscription>)
        })
    }
}

impl RedisStore {
    fn lease_key(&self, lease: &Lease) -> String {
        self.key("lease", &format!("{}:{}", lease.service, lease.epoch.as_micros()))
    }
}

struct Listener(PubSubStream);

impl Subscription for Listener {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<String>> + Send + '_>> {
        Box::pin(async {
            loop {
                let message = self.0.next().await?;
                if let Ok(text) = message.get_payload() {
                    return Some(text);
                }
            }
        })
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).clamp(1, 1 << 50)
}

/// Redis's errors name keys and commands at the most; what was stored is not in them.
fn trouble(error: &RedisError) -> StoreError {
    // Of many commands in a row the first that failed says it all.
    let first = error.clone().into_server_errors().and_then(|errors| errors.first().map(|(_, error)| error.clone()));
    let (code, message) = match &first {
        Some(error) => (error.code().to_owned(), error.to_string()),
        None => (error.code().unwrap_or_default().to_owned(), error.to_string()),
    };
    let kind = match code.as_str() {
        "OOM" | "MISCONF" => StoreErrorKind::Full,
        "READONLY" => StoreErrorKind::ReadOnly,
        "WRONGPASS" | "NOAUTH" | "NOPERM" => StoreErrorKind::Denied,
        _ if error.kind() == ErrorKind::AuthenticationFailed => StoreErrorKind::Denied,
        _ if error.is_io_error() || error.is_timeout() || error.is_connection_dropped() => StoreErrorKind::Unreachable,
        _ => StoreErrorKind::Other,
    };
    StoreError::new(kind, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_have_a_prefix() {
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
    fn a_bad_address_is_refused_without_its_password() {
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
