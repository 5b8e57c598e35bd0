//! Names to breakers.
//!
//! Configured breakers are in a table that a reload replaces as a whole when it changes the set of names. A look-up takes no
//! lock and counts no reference: it is a hash, a probe and a comparison. Breakers made on first use, such as `vies:DE`, are in
//! a map behind a lock. The map is bounded: beyond the limit the table forgets the closed breakers that were idle longest,
//! and never one that is open, half-open, overridden or in use.

use std::{
    collections::BTreeMap,
    hash::BuildHasher,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::{
    breaker::{inner::BreakerInner, shared::Shared},
    outcome::ServiceName,
    policy::{ConfigDiff, Policy, config::BreakersConfig},
};

/// The breakers of one registry, and the configuration that they go by.
pub(crate) struct BreakerTable {
    shared: Arc<Shared>,
    hasher: DefaultHashBuilder,
    /// One table for each set of configured names so far; the last one is in force. Earlier ones stay for readers that still
    /// use them, so this grows only by reloads that add or remove names.
    configured: boxcar::Vec<HashTable<Arc<BreakerInner>>>,
    dynamic: RwLock<BTreeMap<ServiceName, Dynamic>>,
    /// The configuration in force. Its mutex serialises everything that changes the set of names.
    config: Mutex<BreakersConfig>,
    /// Counts the rounds of evictions.
    round: AtomicU64,
}

/// A breaker without an entry of its own.
struct Dynamic {
    inner: Arc<BreakerInner>,
    /// Calls that had come in at the last round.
    arrivals: u64,
    /// The last round with new calls.
    active: u64,
}

impl BreakerTable {
    /// The breakers that `config` names, closed.
    pub(crate) fn new(shared: Arc<Shared>, config: BreakersConfig) -> Self {
        let table = Self {
            shared,
            hasher: DefaultHashBuilder::default(),
            configured: boxcar::Vec::new(),
            dynamic: RwLock::default(),
            config: Mutex::default(),
            round: AtomicU64::new(0),
        };
        table.push_table(&config, |_| None);
        *table.config() = config;
        table
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The breaker of `service`; made if there is none yet.
    pub(crate) fn inner(&self, service: &str) -> Arc<BreakerInner> {
        match self.find_configured(service) {
            Some(inner) => inner.clone(),
            None => self.dynamic(service),
        }
    }

    /// The breaker of `service`, if there is one.
    pub(crate) fn existing(&self, service: &str) -> Option<Arc<BreakerInner>> {
        if let Some(inner) = self.find_configured(service) {
            return Some(inner.clone());
        }
        let dynamic = self.dynamic.read().unwrap_or_else(PoisonError::into_inner);
        dynamic.get(service).map(|known| known.inner.clone())
    }

    pub(crate) fn policy_of(&self, service: &str) -> Arc<Policy> {
        self.config().policy(service)
    }

    /// Whether the configuration shares anything between processes.
    pub(crate) fn shares(&self) -> bool {
        self.config().shares()
    }

    /// The configuration in force.
    pub(crate) fn config(&self) -> MutexGuard<'_, BreakersConfig> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn table(&self) -> &HashTable<Arc<BreakerInner>> {
        // The builder puts in the first table, and none is ever taken out.
        let last = self.configured.count().saturating_sub(1);
        &self.configured[last]
    }

    #[inline]
    pub(crate) fn find_configured(&self, service: &str) -> Option<&Arc<BreakerInner>> {
        self.table().find(self.hasher.hash_one(service), |inner| inner.name.as_str() == service)
    }

    /// The breaker of a name without an entry of its own.
    pub(crate) fn dynamic(&self, service: &str) -> Arc<BreakerInner> {
        let known = self.dynamic.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(dynamic) = known.get(service) {
            return dynamic.inner.clone();
        }
        drop(known);
        let config = self.config();
        // Someone may have made or configured it while we waited.
        if let Some(inner) = self.find_configured(service) {
            return inner.clone();
        }
        let mut dynamic = self.dynamic.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(dynamic) = dynamic.get(service) {
            return dynamic.inner.clone();
        }
        let inner = self.new_inner(service, &config);
        if dynamic.len() >= config.max_dynamic {
            self.evict(&mut dynamic, config.max_dynamic);
        }
        // If all are busy or broken, this one is not remembered: it lives as long as its handles.
        if dynamic.len() < config.max_dynamic {
            let active = self.round.load(Ordering::Relaxed);
            dynamic.insert(inner.name.clone(), Dynamic { inner: inner.clone(), arrivals: 0, active });
        }
        inner
    }

    fn new_inner(&self, service: &str, config: &BreakersConfig) -> Arc<BreakerInner> {
        Arc::new(BreakerInner::new(service.into(), config.policy(service), self.shared.clone()))
    }

    /// Makes room for an eighth of the cap, at least one: forgets the closed breakers that have been idle longest.
    fn evict(&self, dynamic: &mut BTreeMap<ServiceName, Dynamic>, cap: usize) {
        let round = self.round.fetch_add(1, Ordering::Relaxed) + 1;
        let mut idle = Vec::new();
        for (name, known) in dynamic.iter_mut() {
            let arrivals = known.inner.arrivals();
            if arrivals != known.arrivals {
                (known.arrivals, known.active) = (arrivals, round);
            }
            // A holder of a handle would go on with a breaker that no other caller finds.
            if Arc::strong_count(&known.inner) == 1 && known.inner.is_forgettable() {
                idle.push((known.active, name.clone()));
            }
        }
        idle.sort_unstable();
        for (_, name) in idle.into_iter().take((cap / 8).max(1)) {
            dynamic.remove(&name);
        }
    }

    /// Goes by `new` from now on.
    pub(crate) fn apply(&self, new: BreakersConfig) -> ConfigDiff {
        let mut config = self.config();
        let diff = ConfigDiff::between(&config, &new);
        let breakers = self.breakers();
        for (name, inner) in &breakers {
            inner.reconfigure(&new.policy(name));
        }
        if !(diff.added.is_empty() && diff.removed.is_empty()) {
            self.rename(&breakers, &new);
        }
        *config = new;
        diff
    }

    /// Moves breakers between the two kinds, so that the configured ones are those of `config`. A reader finds each in at least
    /// one place at any moment.
    fn rename(&self, breakers: &BTreeMap<ServiceName, Arc<BreakerInner>>, config: &BreakersConfig) {
        let mut dynamic = self.dynamic.write().unwrap_or_else(PoisonError::into_inner);
        let active = self.round.load(Ordering::Relaxed);
        for (name, inner) in breakers.iter().filter(|(name, _)| !config.services.contains_key(name.as_str())) {
            dynamic.entry(name.clone()).or_insert_with(|| Dynamic { inner: inner.clone(), arrivals: 0, active });
        }
        self.push_table(config, |name| breakers.get(name).cloned());
        dynamic.retain(|name, _| !config.services.contains_key(name.as_str()));
    }

    fn push_table(&self, config: &BreakersConfig, known: impl Fn(&str) -> Option<Arc<BreakerInner>>) {
        let mut table = HashTable::with_capacity(config.services.len());
        for name in config.services.keys() {
            let inner = known(name).unwrap_or_else(|| self.new_inner(name, config));
            table.insert_unique(self.hasher.hash_one(name.as_str()), inner, |inner| {
                self.hasher.hash_one(inner.name.as_str())
            });
        }
        self.configured.push(table);
    }

    /// Every breaker there is, by name.
    pub(crate) fn breakers(&self) -> BTreeMap<ServiceName, Arc<BreakerInner>> {
        // First the lock, under which names change sides, then the table: so a name on its way is found on one of them.
        let dynamic = self.dynamic.read().unwrap_or_else(PoisonError::into_inner);
        let configured = self.table().iter().map(|inner| (inner.name.clone(), inner.clone()));
        dynamic.iter().map(|(name, known)| (name.clone(), known.inner.clone())).chain(configured).collect()
    }
}
