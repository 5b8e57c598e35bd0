//! How processes share their breakers through a store.
//!
//! The trait is closed: only the stores of this crate implement it. A fleet relies on atomic scripts, leases and a channel
//! whose format belongs to this crate, and a second implementation would have to follow every change.

use std::{pin::Pin, sync::Arc, time::Duration};

use super::error::Answer;
use crate::{clock::Stamp, outcome::ServiceName, policy::RateLimitPolicy};

/// How processes share state. Every function is one round trip, and each is atomic.
pub trait FleetStore: Send + Sync {
    /// Replaces texts, each only if the expected text is still there, and publishes those that changed. Returns one answer
    /// per text, in the same order.
    fn put<'a>(&'a self, puts: &'a [Put]) -> Answer<'a, Vec<PutAnswer>>;

    /// Asks for the lease of a probe.
    fn lease<'a>(&'a self, request: &'a Lease) -> Answer<'a, LeaseAnswer>;

    /// Prolongs a lease that this process holds. False if the process no longer holds it.
    fn renew<'a>(&'a self, lease: &'a Lease) -> Answer<'a, bool>;

    /// Takes a token of a shared rate limit. The inner error is the time until the next token.
    fn take<'a>(&'a self, service: &'a ServiceName, limit: &'a RateLimitPolicy) -> Answer<'a, Result<(), Duration>>;

    /// Registers `process` as present and reads every change since `since`.
    fn sync<'a>(&'a self, process: &'a str, since: Stamp) -> Answer<'a, News>;

    /// Sends texts to all subscribers, in this order.
    fn publish<'a>(&'a self, texts: &'a [String]) -> Answer<'a, ()>;

    /// Receives what is put, leased and published from now on.
    fn subscribe(&self) -> Answer<'_, Box<dyn Subscription>>;
}

/// A text that replaces another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// The service whose record it is.
    pub service: ServiceName,
    /// The text that should be there now; `None` for no text.
    pub expected: Option<Arc<str>>,
    /// The new text.
    pub text: Arc<str>,
    /// The store may drop the record after this time.
    pub keep: Duration,
}

/// Whether a text was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutAnswer {
    /// The new text is there.
    Done,
    /// Another text was there, and stays; `None` for no text.
    Differs(Option<String>),
}

/// The right to probe: of one process, for one opening of one service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The service whose breaker is probed.
    pub service: ServiceName,
    /// The epoch of the opening.
    pub epoch: Stamp,
    /// The record of the opening, as this process knows it.
    pub record: Option<Arc<str>>,
    /// When the probe is due, by the store's clock.
    pub due: Stamp,
    /// The process that asks.
    pub process: String,
    /// How long the lease lasts.
    pub lasting: Duration,
}

/// Who holds the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseAnswer {
    /// The process that asked.
    Granted,
    /// Another process, for this long.
    Taken(Duration),
    /// No process: the probe is due after this time.
    Early(Duration),
    /// The opening is over: this is the record now.
    Outdated(Option<String>),
}

/// What a process learns when it syncs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// The store's time.
    pub now: Stamp,
    /// How many processes synced lately, this one included.
    pub processes: u32,
    /// A name of the store's content. A new name means that the store lost its content.
    pub life: String,
    /// Texts that were put since the last sync.
    pub changed: Vec<(ServiceName, String)>,
}

/// The receiving end of the fleet's channel.
pub trait Subscription: Send {
    /// The next text; `None` if the channel is broken.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<String>> + Send + '_>>;
}
