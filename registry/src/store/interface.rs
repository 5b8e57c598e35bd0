//! What a store is: the [`Store`] trait and the values that it takes and returns.

use std::{sync::Arc, time::Duration};

use super::{error::Answer, fleet_store::FleetStore};
use crate::{clock::Stamp, outcome::ServiceName};

/// Keeps one text per service. A program can bring its own store; see the [module](super)'s example.
pub trait Store: Send + Sync {
    /// One word for logs and metrics.
    fn kind(&self) -> &'static str;

    /// The store's own time. `None` if the store has no clock: then the registry's clock counts.
    fn now(&self) -> Answer<'_, Option<Stamp>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Reads every record. `services` are the configured services, for a store that cannot list its records.
    fn load<'a>(&'a self, services: &'a [ServiceName]) -> Answer<'a, Vec<Loaded>>;

    /// Writes `records` over the older records of the same services.
    fn save<'a>(&'a self, records: &'a [Record]) -> Answer<'a, ()>;

    /// How a fleet shares state through this store. Only the stores of this crate can connect a fleet; yours keeps the
    /// default.
    #[doc(hidden)]
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

/// A record to write.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// The service whose breaker it describes.
    pub service: ServiceName,
    /// One line of text. `None` removes the record.
    pub text: Option<String>,
    /// The store may drop the record after this time.
    pub keep: Duration,
}

impl Record {
    /// A record of `service`, for tests of a store.
    #[must_use]
    pub const fn new(service: ServiceName, text: Option<String>, keep: Duration) -> Self {
        Self { service, text, keep }
    }
}

/// A record that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loaded {
    /// The service whose record it is. `None` if the store cannot know.
    pub service: Option<ServiceName>,
    /// What the store holds for it.
    pub content: Content,
}

impl Loaded {
    /// A record of `service` that was read as `content`.
    #[must_use]
    pub const fn new(service: Option<ServiceName>, content: Content) -> Self {
        Self { service, content }
    }
}

/// What a store holds for a record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// A text.
    Text(String),
    /// A value of another type; the type's name.
    WrongType(String),
    /// Nothing, although the store lists the record.
    Missing,
}
