//! `breakers.yaml`: where every threshold is set.
//!
//! ```
//! use circuit_registry::BreakersConfig;
//!
//! let config = BreakersConfig::from_yaml("
//! defaults: { fail_max: 5, reset_timeout: 30s }
//! services:
//!   tavily: { fail_max: 3, reset_timeout: 60s }   # strict per-minute limits
//! ").unwrap();
//! assert_eq!(config.policy("tavily").open.reset_timeout.as_secs(), 60);
//!
//! let error = BreakersConfig::from_yaml("services:\n  tavily: { fail_max: 0 }").unwrap_err();
//! assert_eq!(error.key(), "services.tavily.fail_max");
//! assert_eq!(error.place().unwrap().line, 2);
//! ```
//!
//! A service takes each key it does not have from `defaults`, blocks as a whole. `fail_max` and `window` hold side by side, and
//! whichever trips first opens the breaker: an entry with a `window` keeps the `fail_max` of the defaults, which is 5 unless they
//! say so. `off` switches either off. An entry that nothing opens is an error, and so are two keys that contradict each other.

mod error;
mod read;
mod schema;
mod tree;

use std::{collections::BTreeMap, fs, io::Read, path::Path, sync::Arc};

pub use error::{ConfigError, Place};

use crate::policy::{FleetPolicy, LimitScope, Policy};

/// A larger file is refused unread: a thousand services need a tenth of that.
const LARGEST_FILE: u64 = 1 << 20;

/// Breakers made on first use, without an entry of their own, unless `names: { max_dynamic: … }` says otherwise.
const MAX_DYNAMIC: usize = 1024;

/// The policies of all services, validated: a value of this type makes sense.
///
/// In `breakers.yaml` a service takes each key that it does not have from `defaults`; a block such as `half_open` is taken or replaced
/// as a whole, and `activities` is never taken. Every key, with its default and range, is on the page
/// [configuration](https://github.com/circuit-registry/circuit-registry/blob/main/docs/configuration.md).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakersConfig {
    pub(crate) defaults: Arc<Policy>,
    pub(crate) services: BTreeMap<String, Arc<Policy>>,
    pub(crate) max_dynamic: usize,
    /// The service that guards activities of a type.
    guards: BTreeMap<String, String>,
}

fn too_large() -> String {
    format!("is larger than {LARGEST_FILE} bytes")
}

impl Default for BreakersConfig {
    /// No services; five failures in a row open any breaker for 30 seconds.
    fn default() -> Self {
        Self { defaults: Arc::default(), services: BTreeMap::new(), max_dynamic: MAX_DYNAMIC, guards: BTreeMap::new() }
    }
}

impl BreakersConfig {
    /// Reads a configuration from YAML text.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line, column and key. Text of more than 1 MiB is refused unread.
    pub fn from_yaml(yaml: &str) -> Result<Self, ConfigError> {
        if yaml.len() as u64 > LARGEST_FILE {
            return Err(ConfigError::new(Place::start(), "", too_large()));
        }
        schema::config(&tree::parse(yaml)?)
    }

    /// Reads a configuration from a file.
    ///
    /// # Errors
    /// If there is no such file, if it is not a file, larger than 1 MiB or not UTF-8, or the first thing that is wrong in it.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::from_bytes(&Self::read(path)?, path)
    }

    /// The bytes of a file that can be a configuration.
    pub(crate) fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
        let unreadable = |message: String| ConfigError::unreadable(path, message);
        let file = fs::File::open(path).map_err(|error| unreadable(format!("cannot be opened: {error}")))?;
        if file.metadata().is_ok_and(|meta| meta.is_dir()) {
            return Err(unreadable("is a directory; name a YAML file".into()));
        }
        let mut bytes = Vec::new();
        file.take(LARGEST_FILE + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| unreadable(format!("cannot be read: {error}")))?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(unreadable(too_large()));
        }
        Ok(bytes)
    }

    /// Reads the bytes of `path`.
    pub(crate) fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self, ConfigError> {
        let yaml = std::str::from_utf8(bytes).map_err(|error| {
            let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let line = before.matches('\n').count() as u64 + 1;
            let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) as u64 + 1;
            ConfigError::new(Place { line, column }, "", "is not UTF-8").in_file(path)
        })?;
        Self::from_yaml(yaml).map_err(|error| error.in_file(path))
    }

    /// The policy of `service`: its own; or that of `a` for a name `a:b`; or the defaults.
    #[must_use]
    pub fn policy(&self, service: &str) -> Arc<Policy> {
        self.entry(service).unwrap_or(&self.defaults).clone()
    }

    /// Whether `service` has an entry of its own, or `a` has one for a name `a:b`.
    #[must_use]
    pub fn covers(&self, service: &str) -> bool {
        self.entry(service).is_some()
    }

    fn entry(&self, service: &str) -> Option<&Arc<Policy>> {
        let mut name = service;
        loop {
            if let Some(policy) = self.services.get(name) {
                return Some(policy);
            }
            name = name.rsplit_once(':')?.0;
        }
    }

    /// The services with an entry of their own, in alphabetical order.
    pub fn service_names(&self) -> impl Iterator<Item = &str> {
        self.services.keys().map(String::as_str)
    }

    /// Whether anything is to be shared between processes: a breaker's state, or a rate limit.
    #[must_use]
    pub fn shares(&self) -> bool {
        let limited = |policy: &Policy| policy.rate_limit.is_some_and(|limit| limit.scope == LimitScope::Fleet);
        self.shares_state() || self.services.values().chain([&self.defaults]).any(|policy| limited(policy))
    }

    /// Whether a breaker's state is to be shared between processes.
    #[must_use]
    pub fn shares_state(&self) -> bool {
        self.services.values().chain([&self.defaults]).any(|policy| policy.fleet != FleetPolicy::Off)
    }

    /// The same, with `policy` for `service`. Activities that it guards are no longer guarded by others.
    pub(crate) fn with(mut self, service: &str, policy: Policy) -> Self {
        self = self.without(service);
        for activity in &policy.activities {
            self.guards.insert(activity.clone(), service.to_owned());
        }
        self.services.insert(service.to_owned(), Arc::new(policy));
        self
    }

    /// The same, without an entry for `service`.
    pub(crate) fn without(mut self, service: &str) -> Self {
        self.services.remove(service);
        self.guards.retain(|_, guard| guard != service);
        self
    }

    /// The service whose breaker guards activities of this type, if one does.
    #[must_use]
    pub fn service_for_activity(&self, activity_type: &str) -> Option<&str> {
        self.guards.get(activity_type).map(String::as_str)
    }
}
