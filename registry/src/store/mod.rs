//! Stores keep the state of breakers beyond their process. A store can also connect a fleet of processes.
//!
//! A [`Store`] keeps one small text per breaker and knows nothing about breakers. There are three:
//!
//! | store | keeps state | shares it between processes |
//! |---|---|---|
//! | [`MemoryStore`] | while the program runs | only within one program, for tests |
//! | [`FileStore`] | across restarts of one process | no |
//! | `RedisStore` (feature `redis`) | across restarts | yes |
//!
//! One setting chooses the store:
//!
//! ```
//! let store = circuit_registry::store::open("memory").unwrap();
//! assert_eq!(store.kind(), "memory");
//! assert!(circuit_registry::store::open("elsewhere").is_err());
//! ```
//!
//! Only two kinds of call wait for the store, and each waits a tenth of a second at most: the probe of a shared breaker,
//! because two processes must not send it twice, and a call under a rate limit that the fleet shares.
//!
//! # A store of your own
//!
//! Implement [`Store`] to keep breakers in another place. Such a store serves one process. Sharing between processes is a
//! closed feature of the stores in this crate: it needs atomic operations and a channel whose format may change.
//!
//! ```
//! use std::{collections::BTreeMap, future::ready, sync::Mutex};
//! use circuit_registry::{CircuitRegistry, ServiceName, store::{Answer, Content, Loaded, Record, Store}};
//!
//! #[derive(Default)]
//! struct Table(Mutex<BTreeMap<ServiceName, String>>);
//!
//! impl Store for Table {
//!     fn kind(&self) -> &'static str {
//!         "table"
//!     }
//!
//!     fn load<'a>(&'a self, _services: &'a [ServiceName]) -> Answer<'a, Vec<Loaded>> {
//!         let table = self.0.lock().unwrap();
//!         let loaded = table.iter().map(|(name, text)| Loaded::new(Some(name.clone()), Content::Text(text.clone())));
//!         Box::pin(ready(Ok(loaded.collect())))
//!     }
//!
//!     fn save<'a>(&'a self, records: &'a [Record]) -> Answer<'a, ()> {
//!         let mut table = self.0.lock().unwrap();
//!         for record in records {
//!             match &record.text {
//!                 Some(text) => drop(table.insert(record.service.clone(), text.clone())),
//!                 None => drop(table.remove(&record.service)),
//!             }
//!         }
//!         Box::pin(ready(Ok(())))
//!     }
//! }
//!
//! let registry = CircuitRegistry::builder().store(Table::default()).build();
//! assert_eq!(registry.store_errors().unwrap().0, "table");
//! ```

mod clock;
mod error;
mod file;
mod fleet_store;
pub(crate) mod handle;
mod interface;
mod memory;
pub(crate) mod message;
pub(crate) mod queue;
pub(crate) mod record;
#[cfg(feature = "redis")]
mod redis;

use std::sync::Arc;

#[cfg(feature = "redis")]
pub use self::redis::RedisStore;
pub(crate) use self::{
    clock::StoreClock,
    error::Op,
    fleet_store::{FleetStore, Lease, LeaseAnswer, Put, PutAnswer, Subscription},
};
pub use self::{
    error::{Answer, StoreError, StoreErrorKind},
    file::FileStore,
    interface::{Content, Loaded, Record, Store},
    memory::MemoryStore,
};

/// Opens the store that `setting` names: `memory`, `file:PATH`, `redis://…` or `rediss://…`.
///
/// A Redis address is `redis://[user[:password]@]host[:port][/database][?prefix=…]`. Every key begins with the prefix; the
/// default is `circuit-registry`. Opening does not connect: a store that is down now may come up later.
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
