//! Names to breakers.
//!
//! Configured breakers are in a table that a reload replaces as a whole when it changes the set of names. A look-up takes no
//! lock and counts no reference: it is a hash, a probe and a comparison. Breakers made on first use, such as `vies:DE`, are in
//! a map behind a lock. The map is bounded; beyond the limit the table forgets breakers in the order of [`Evictable`]. If it can
//! forget none, the new name gets no breaker: its calls pass unguarded, and are counted.
//!
//! A name never has two breakers. A breaker is forgotten only while no call is in flight and no handle is held. A breaker that
//! was configured once is kept as long as the registry, because a call may still borrow it; the name finds it again.

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
    hash::BuildHasher,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::{
    breaker::{inner::BreakerInner, reading::Evictable, shared::Shared},
    hash::{BASIS, fnv},
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
    dynamic: RwLock<Dynamics>,
    /// The configuration in force. Its mutex serialises everything that changes the set of names.
    config: Mutex<BreakersConfig>,
    /// Counts the names made on first use: the time by which they are idle.
    era: AtomicU64,
    /// Every breaker that is or was configured. Tables keep them, so that each can be found again.
    once_configured: Mutex<BTreeMap<ServiceName, Weak<BreakerInner>>>,
}

/// The names made on first use.
#[derive(Default)]
struct Dynamics {
    known: BTreeMap<ServiceName, Dynamic>,
    /// Failures in a row of breakers that were forgotten while they had some: a name that comes back goes on from there. The
    /// oldest are dropped.
    failing: VecDeque<(ServiceName, u32)>,
}

impl Dynamics {
    /// So many forgotten names are remembered for each that there may be.
    const REMEMBERED: usize = 4;

    fn forget(&mut self, name: &ServiceName, cap: usize) {
        let Some(dynamic) = self.known.remove(name) else { return };
        let failures = dynamic.inner.failures();
        if failures > 0 {
            self.failing.push_back((name.clone(), failures));
            while self.failing.len() > cap.saturating_mul(Self::REMEMBERED) {
                self.failing.pop_front();
            }
        }
    }

    fn remembered(&mut self, name: &str) -> u32 {
        let at = self.failing.iter().position(|(failing, _)| failing == name);
        at.and_then(|at| self.failing.remove(at)).map_or(0, |(_, failures)| failures)
    }
}

/// The longest name, in bytes. A longer one, or one with control characters, ends in a hash.
const LONGEST_NAME: usize = 200;

/// The name under which `service` is known: metrics, logs and records carry it.
fn canonical(service: &str) -> Cow<'_, str> {
    let control = |c: char| c.is_control();
    if service.len() <= LONGEST_NAME && !service.contains(control) {
        return Cow::Borrowed(service);
    }
    let mut end = service.len().min(LONGEST_NAME - 33);
    while !service.is_char_boundary(end) {
        end -= 1;
    }
    let hash = |seed| fnv(seed, service.as_bytes());
    let readable = service[..end].replace(control, "?");
    Cow::Owned(format!("{readable}#{:016x}{:016x}", hash(BASIS), hash(!BASIS)))
}

/// A breaker without an entry of its own.
struct Dynamic {
    inner: Arc<BreakerInner>,
    /// The era in which it was looked up last.
    used: AtomicU64,
}

impl Dynamic {
    fn new(inner: Arc<BreakerInner>, era: u64) -> Self {
        Self { inner, used: AtomicU64::new(era) }
    }

    fn look_up(&self, era: &AtomicU64) -> Arc<BreakerInner> {
        let era = era.load(Ordering::Relaxed);
        if self.used.load(Ordering::Relaxed) != era {
            self.used.store(era, Ordering::Relaxed);
        }
        self.inner.clone()
    }

    /// Someone holds a handle, or a call that has not ended.
    fn is_held(&self) -> bool {
        Arc::strong_count(&self.inner) > 1 + self.inner.tables()
    }
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
            era: AtomicU64::new(0),
            once_configured: Mutex::default(),
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
        dynamic.known.get(&*canonical(service)).map(|known| known.inner.clone())
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
        let service = &*canonical(service);
        let dynamic = self.dynamic.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = dynamic.known.get(service) {
            return known.look_up(&self.era);
        }
        drop(dynamic);
        let config = self.config();
        // Someone may have made or configured it while we waited.
        if let Some(inner) = self.find_configured(service) {
            return inner.clone();
        }
        let mut dynamic = self.dynamic.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = dynamic.known.get(service) {
            return known.look_up(&self.era);
        }
        let era = self.era.fetch_add(1, Ordering::Relaxed) + 1;
        let room = config.max_dynamic.saturating_sub(1);
        if dynamic.known.len() > room {
            evict(&mut dynamic, room, config.max_dynamic);
        }
        if dynamic.known.len() > room {
            // All are busy, broken or forced.
            return Arc::new(BreakerInner::unguarded(service.into(), &config.policy(service), self.shared.clone()));
        }
        let inner = self.once_configured(service).unwrap_or_else(|| {
            let inner = self.new_inner(service, &config);
            inner.remember_failures(dynamic.remembered(service));
            inner
        });
        dynamic.known.insert(inner.name.clone(), Dynamic::new(inner.clone(), era));
        inner
    }

    fn new_inner(&self, service: &str, config: &BreakersConfig) -> Arc<BreakerInner> {
        Arc::new(BreakerInner::new(service.into(), config.policy(service), self.shared.clone()))
    }

    /// The breaker that a name had when it was configured.
    fn once_configured(&self, service: &str) -> Option<Arc<BreakerInner>> {
        self.once_configured.lock().unwrap_or_else(PoisonError::into_inner).get(service)?.upgrade()
    }

    /// Goes by what `change` makes of the configuration from now on.
    pub(crate) fn apply(&self, change: impl FnOnce(&BreakersConfig) -> BreakersConfig) -> ConfigDiff {
        let mut config = self.config();
        let new = change(&config);
        let diff = ConfigDiff::between(&config, &new);
        let breakers = self.breakers();
        for (name, inner) in &breakers {
            inner.reconfigure(&new.policy(name));
        }
        if !(diff.added.is_empty() && diff.removed.is_empty()) {
            self.rename(&breakers, &new);
        }
        drop(breakers); // or they would count as held
        *config = new;
        let cap = config.max_dynamic;
        evict(&mut self.dynamic.write().unwrap_or_else(PoisonError::into_inner), cap, cap);
        diff
    }

    /// Forgets the breaker of a name without an entry of its own. False if there is none, or if it is in use.
    pub(crate) fn forget(&self, service: &str) -> bool {
        let _names = self.config();
        let mut dynamic = self.dynamic.write().unwrap_or_else(PoisonError::into_inner);
        let service = &*canonical(service);
        let Some(known) = dynamic.known.get(service) else { return false };
        if known.is_held() || known.inner.in_flight() > 0 {
            return false;
        }
        known.inner.start_afresh(); // it may be found again
        dynamic.known.remove(service);
        true
    }

    /// Moves breakers between the two kinds, so that the configured ones are those of `config`. A reader finds each in at least
    /// one place at any moment.
    fn rename(&self, breakers: &BTreeMap<ServiceName, Arc<BreakerInner>>, config: &BreakersConfig) {
        let mut dynamic = self.dynamic.write().unwrap_or_else(PoisonError::into_inner);
        let era = self.era.load(Ordering::Relaxed);
        for (name, inner) in breakers.iter().filter(|(name, _)| !config.services.contains_key(name.as_str())) {
            dynamic.known.entry(name.clone()).or_insert_with(|| Dynamic::new(inner.clone(), era));
        }
        self.push_table(config, |name| {
            let known = breakers.get(name).cloned();
            known.or_else(|| self.once_configured(name)).inspect(|inner| _ = inner.reconfigure(&config.policy(name)))
        });
        dynamic.known.retain(|name, _| !config.services.contains_key(name.as_str()));
    }

    fn push_table(&self, config: &BreakersConfig, known: impl Fn(&str) -> Option<Arc<BreakerInner>>) {
        let mut table = HashTable::with_capacity(config.services.len());
        for name in config.services.keys() {
            let inner = known(name).unwrap_or_else(|| self.new_inner(name, config));
            inner.in_another_table();
            let mut once_configured = self.once_configured.lock().unwrap_or_else(PoisonError::into_inner);
            once_configured.insert(inner.name.clone(), Arc::downgrade(&inner));
            drop(once_configured);
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
        let dynamic = dynamic.known.iter().map(|(name, known)| (name.clone(), known.inner.clone()));
        dynamic.chain(configured).collect()
    }
}

/// Forgets breakers until there are at most `room`: those that can go, in the order of [`Evictable`], the longest idle first. Of
/// the healthy ones an eighth of `cap` more, so that not every new name has to look for room.
fn evict(dynamic: &mut Dynamics, room: usize, cap: usize) {
    let Some(excess) = dynamic.known.len().checked_sub(room).filter(|excess| *excess > 0) else { return };
    let mut candidates: Vec<_> = dynamic
        .known
        .iter()
        .filter(|(_, known)| !known.is_held())
        .filter_map(|(name, known)| Some((known.inner.evictable()?, known.used.load(Ordering::Relaxed), name.clone())))
        .collect();
    candidates.sort_unstable();
    for (at, (evictable, _, name)) in candidates.into_iter().enumerate() {
        if at < excess || evictable == Evictable::Healthy && at < excess + cap / 8 {
            dynamic.forget(&name, cap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_clean_or_ends_in_a_hash() {
        for fit in ["vies:DE", "", &"x".repeat(200)] {
            assert_eq!(canonical(fit), fit);
        }
        let long = canonical(&"vies:ä".repeat(100_000)).into_owned();
        assert!(long.len() <= LONGEST_NAME && long.starts_with("vies:ävies:"), "{long}");
        assert_ne!(long, canonical(&"vies:ä".repeat(100_001)));
        let dirty = canonical("vies:\nDE").into_owned();
        assert!(dirty.starts_with("vies:?DE#"), "{dirty}");
        assert_ne!(dirty, canonical("vies:\tDE"));
    }
}
