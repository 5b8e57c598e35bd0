//! Where breakers are remembered beyond their process, and through which a fleet of processes shares them.
//!
//! A [`Store`] keeps one small text per breaker and knows nothing of breakers. Of the three there are, memory is
//! for tests and for those who need none of this, a [file](FileStore) remembers one process across restarts, and Redis
//! (feature `redis`) also connects many. Which one, is one setting:
//!
//! ```
//! let store = circuit_registry::store::open("memory").unwrap();
//! assert_eq!(store.kind(), "memory");
//! assert!(circuit_registry::store::open("elsewhere").is_err());
//! ```
//!
//! No call waits for a store but two kinds, and those for a tenth of a second at most: the probe of a shared breaker, which must
//! not be sent twice, and a call under a rate limit that the whole fleet shares.

mod file;
mod memory;
pub(crate) mod record;
#[cfg(feature = "redis")]
mod redis;

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

pub use file::FileStore;
pub use memory::MemoryStore;

#[cfg(feature = "redis")]
pub use self::redis::RedisStore;
use crate::{clock::Stamp, outcome::ServiceName, policy::RateLimitPolicy};

/// What a store's functions return: a future that may be sent between threads.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Keeps one text per service.
pub trait Store: Send + Sync {
    /// One word for logs and metrics.
    fn kind(&self) -> &'static str;

    /// The store's own time; `None` if it has none, and that of the registry is to be used.
    fn now(&self) -> Answer<'_, Option<Stamp>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Everything that is remembered. `services` are those that are configured: a store that cannot list what it has asks for
    /// these.
    fn load<'a>(&'a self, services: &'a [ServiceName]) -> Answer<'a, Vec<Loaded>>;

    /// Remembers `records` in place of what it had of the same services.
    fn save<'a>(&'a self, records: &'a [Record]) -> Answer<'a, ()>;

    /// How a fleet shares state through it, if it can.
    fn fleet(&self) -> Option<&dyn FleetStore> {
        None
    }
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn kind(&self) -> &'static str {
        (**self).kind()
    }

    fn now(&self) -> Answer<'_, Option<Stamp>> {
        (**self).now()
    }

    fn load<'a>(&'a self, services: &'a [ServiceName]) -> Answer<'a, Vec<Loaded>> {
        (**self).load(services)
    }

    fn save<'a>(&'a self, records: &'a [Record]) -> Answer<'a, ()> {
        (**self).save(records)
    }

    fn fleet(&self) -> Option<&dyn FleetStore> {
        (**self).fleet()
    }
}

/// Something to remember.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Whose.
    pub service: ServiceName,
    /// One line; `None` to forget it.
    pub text: Option<String>,
    /// It may be forgotten after this time.
    pub keep: Duration,
}

/// Something that was remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// Whose; `None` if that cannot be told.
    pub service: Option<ServiceName>,
    /// What was found.
    pub content: Content,
}

/// What was found in a record's place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// A text.
    Text(String),
    /// Something that is not a text; with its type.
    WrongType(String),
    /// Nothing, although there should be something.
    Missing,
}

/// How processes share state. Every function is one round trip, and each is atomic.
pub trait FleetStore: Send + Sync {
    /// Puts texts in place of others, each only if nobody else did meanwhile, and tells all subscribers of those that
    /// changed. One answer per text, in the same order.
    fn put<'a>(&'a self, puts: &'a [Put]) -> Answer<'a, Vec<PutAnswer>>;

    /// Asks for the right to probe.
    fn lease<'a>(&'a self, ask: &'a Lease) -> Answer<'a, LeaseAnswer>;

    /// Prolongs a right to probe that is held. False if it is not held any more.
    fn renew<'a>(&'a self, lease: &'a Lease) -> Answer<'a, bool>;

    /// Takes a token of a shared rate limit, or says how long until there is one.
    fn take<'a>(&'a self, service: &'a ServiceName, limit: &'a RateLimitPolicy) -> Answer<'a, Result<(), Duration>>;

    /// Tells the store that `process` is there, and asks for everything that changed since.
    fn sync<'a>(&'a self, process: &'a str, since: Stamp) -> Answer<'a, News>;

    /// Tells all subscribers, in this order.
    fn publish<'a>(&'a self, texts: &'a [String]) -> Answer<'a, ()>;

    /// Hears what is put, leased and published from now on.
    fn subscribe(&self) -> Answer<'_, Box<dyn Subscription>>;
}

/// A text to put in place of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// Whose.
    pub service: ServiceName,
    /// What should stand there now; `None` for nothing.
    pub expected: Option<Arc<str>>,
    /// What shall stand there.
    pub text: Arc<str>,
    /// It may be forgotten after this time.
    pub keep: Duration,
}

/// Whether a text was put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutAnswer {
    /// It stands there.
    Done,
    /// Something else stood there, and does still; `None` is nothing.
    Differs(Option<String>),
}

/// The right to probe: of one process, for one opening of one service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Whose breaker.
    pub service: ServiceName,
    /// Which opening.
    pub epoch: Stamp,
    /// The record that says so.
    pub record: Option<Arc<str>>,
    /// When it is due, by the store's own clock.
    pub due: Stamp,
    /// Who asks.
    pub process: String,
    /// For how long.
    pub lasting: Duration,
}

/// Who has the right to probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseAnswer {
    /// Whoever asked.
    Granted,
    /// Someone else, for so long.
    Taken(Duration),
    /// Nobody yet: it is due in so long.
    Early(Duration),
    /// The opening is over: this stands there now.
    Outdated(Option<String>),
}

/// What a store tells a process that comes by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// The store's time.
    pub now: Stamp,
    /// Processes that came by lately, this one included.
    pub processes: u32,
    /// Another text than last time means that the store has lost what it had.
    pub life: String,
    /// Texts that were put since.
    pub changed: Vec<(ServiceName, String)>,
}

/// An end of a channel.
pub trait Subscription: Send {
    /// The next text; `None` if the channel is broken.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<String>> + Send + '_>>;
}

/// Opens the store that `setting` names: `memory`, `file:PATH`, `redis://…` or `rediss://…`.
///
/// A Redis address is `redis://[user[:password]@]host[:port][/database][?prefix=…]`; every key begins with the prefix,
/// `circuit-registry` unless said. Opening connects to nothing: a store that is away now may be there later.
///
/// # Errors
/// If the setting names no store, or one this program was built without.
pub fn open(setting: &str) -> Result<Arc<dyn Store>, StoreError> {
    let bad = |message: &str| Err(StoreError::new(StoreErrorKind::Setting, message));
    match setting.split_once(':') {
        None if setting == "memory" => Ok(Arc::new(MemoryStore::new())),
        Some(("file", "")) => bad("`file:` needs a path, such as file:breakers.state"),
        Some(("file", path)) => Ok(Arc::new(FileStore::new(path))),
        #[cfg(feature = "redis")]
        Some(("redis" | "rediss", _)) => Ok(Arc::new(RedisStore::open(setting)?)),
        #[cfg(not(feature = "redis"))]
        Some(("redis" | "rediss", _)) => bad("this program was built without the feature `redis`"),
        // The setting may hold a password: it is not repeated.
        _ => bad("expected `memory`, `file:PATH`, `redis://…` or `rediss://…`"),
    }
}

/// Kinds of trouble with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The setting names no store.
    Setting,
    /// There is no store, or nobody keeps the registry in it.
    Absent,
    /// It does not answer, or not in time.
    Unreachable,
    /// It does not accept our name, password or rights.
    Denied,
    /// It can be read and not written.
    ReadOnly,
    /// It has no room.
    Full,
    /// Anything else.
    Other,
}

impl StoreErrorKind {
    /// What to do about it.
    const fn remedy(self) -> &'static str {
        match self {
            Self::Setting => "see the manual of the setting",
            Self::Absent => "give the registry a store, and run its sync task",
            Self::Unreachable => "is it there, and is the address right?",
            Self::Denied => "check user, password, rights and database",
            Self::ReadOnly => "name a place that can be written: the primary, not a replica",
            Self::Full => "make room",
            Self::Other => "see the message",
        }
    }
}

/// Why a store could not do what it was asked. Calls go on without it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.kind.remedy())
    }
}

impl StoreError {
    /// An error with a message that holds no secret.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// What kind of trouble.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    pub(crate) fn absent() -> Self {
        Self::new(StoreErrorKind::Absent, "nothing is stored")
    }

    pub(crate) fn late(after: Duration) -> Self {
        Self::new(StoreErrorKind::Unreachable, format!("no answer within {after:?}"))
    }
}

/// What a store is asked to do, as `circuit_breaker_store_errors_total` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Op {
    Load,
    Save,
    Lease,
    Limit,
    Sync,
    Publish,
    Subscribe,
}

impl Op {
    pub(crate) const ALL: [(Self, &'static str); 7] = [
        (Self::Load, "load"),
        (Self::Save, "save"),
        (Self::Lease, "lease"),
        (Self::Limit, "limit"),
        (Self::Sync, "sync"),
        (Self::Publish, "publish"),
        (Self::Subscribe, "subscribe"),
    ];
}
