//! The registry: names to breakers.
//!
//! Configured breakers stand in a table that is replaced as a whole when a reload changes the set of names, and read without a
//! lock or a reference count: a look-up is a hash, a probe and a comparison. Breakers made on first use, such as
//! `vies:DE`, live in a map of their own, behind a lock, bounded: beyond the cap the closed ones that have been
//! idle longest are forgotten, and never one that is open, half-open, overruled or in use.

use std::{
    collections::BTreeMap,
    fmt,
    hash::{BuildHasher, RandomState},
    ops::Deref,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::{
    breaker::{Breaker, call::Call, inner::BreakerInner, shared::Shared},
    clock::{SystemWallClock, WallClock},
    error::{CallError, Classify},
    event::{EventKind, LogObserver, Observer},
    fleet::{breaker_set::BreakerSet, store_sync::StoreSync},
    outcome::ServiceName,
    policy::{ConfigDiff, Policy, config::BreakersConfig},
    store::{Store, handle::StoreHandle},
    view::BreakerView,
};

static GLOBAL: OnceLock<CircuitRegistry> = OnceLock::new();

/// A set of named circuit breakers. Clones share it.
///
/// ```
/// use circuit_registry::{BreakersConfig, CallError, CircuitRegistry};
/// use std::io;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let registry = CircuitRegistry::new(BreakersConfig::default());
/// let failing = || async { Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionRefused)) };
/// for _ in 0..5 {
///     let _ = registry.call("northdata", failing()).await;
/// }
/// let refused = registry.call("northdata", failing()).await.unwrap_err();
/// assert_eq!(refused.to_string(), "Circuit breaker open for 'northdata' — failing fast");
/// # }
/// ```
#[derive(Clone)]
pub struct CircuitRegistry {
    inner: Arc<RegistryInner>,
}

struct RegistryInner {
    shared: Arc<Shared>,
    hasher: DefaultHashBuilder,
    /// One table for each set of configured names there has been; the last one holds. Earlier ones stay for readers that are
    /// still at them, so this grows by the reloads that add or remove names, and by nothing else.
    configured: boxcar::Vec<HashTable<Arc<BreakerInner>>>,
    dynamic: RwLock<BTreeMap<ServiceName, Dynamic>>,
    /// The configuration in force; its mutex serialises everything that changes the set of names.
    config: Mutex<BreakersConfig>,
    /// Counts evictions' rounds.
    round: AtomicU64,
    reloads: [AtomicU64; 2],
    #[cfg(feature = "temporal-plugin")]
    shared_task: crate::fleet::shared_task::SharedTask,
}

/// A breaker without an entry of its own.
struct Dynamic {
    inner: Arc<BreakerInner>,
    /// Calls that had come in when we last looked.
    arrivals: u64,
    /// The round in which there were new ones.
    active: u64,
}

/// A breaker found by name: borrowed where it is configured, so that the look-up touches no reference count.
#[derive(Clone)]
enum Found<'a> {
    Configured(&'a BreakerInner),
    Dynamic(Arc<BreakerInner>),
}

impl Deref for Found<'_> {
    type Target = BreakerInner;
    #[inline]
    fn deref(&self) -> &BreakerInner {
        match self {
            Self::Configured(inner) => inner,
            Self::Dynamic(inner) => inner,
        }
    }
}

impl CircuitRegistry {
    /// A registry with these policies, in memory, that writes transitions to the log.
    #[must_use]
    pub fn new(config: BreakersConfig) -> Self {
        Self::builder().config(config).build()
    }

    /// A registry with observers or other extras.
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder::default()
    }

    /// The process-wide registry: what [`set_global`](Self::set_global) made it, or one with the default policy for every name.
    #[must_use]
    pub fn global() -> Self {
        GLOBAL.get_or_init(|| Self::new(BreakersConfig::default())).clone()
    }

    /// Makes `registry` the process-wide one.
    ///
    /// # Errors
    /// Gives it back if there is one already: set it before anything uses it.
    pub fn set_global(registry: Self) -> Result<(), Self> {
        GLOBAL.set(registry)
    }

    /// A handle on the breaker of `service`, which is made on first use.
    #[must_use]
    pub fn breaker(&self, service: &str) -> Breaker {
        Breaker::new(self.inner(service))
    }

    /// Runs `work` through the breaker of `service`; see [`Breaker::call`].
    ///
    /// # Errors
    /// As [`Breaker::call`].
    #[inline(always)] // see `call`
    pub fn call<T, E, F>(&self, service: &str, work: F) -> impl Future<Output = Result<T, CallError<E>>>
    where
        F: Future<Output = Result<T, E>>,
        E: Classify,
    {
        let inner = match self.inner.find_configured(service) {
            Some(inner) => Found::Configured(inner),
            None => Found::Dynamic(self.inner.dynamic(service)),
        };
        Call::new(inner, work, crate::breaker::call::classified)
    }

    /// Goes by `config` from now on. Every breaker keeps its state, deadline, generation and evidence; only what `config` changes
    /// changes. A service that is no longer configured goes by the defaults.
    pub fn apply(&self, config: BreakersConfig) -> ConfigDiff {
        let diff = self.inner.apply(config);
        self.inner.reloads[0].fetch_add(1, Ordering::Relaxed);
        diff
    }

    /// The configuration in force.
    #[must_use]
    pub fn config(&self) -> BreakersConfig {
        self.inner.config().clone()
    }

    /// The breaker that guards activities of this type as a whole, if a service lists the type under `activities`.
    #[must_use]
    pub fn breaker_for_activity(&self, activity_type: &str) -> Option<Breaker> {
        let config = self.inner.config();
        let inner = self.inner.find_configured(config.service_for_activity(activity_type)?)?;
        Some(Breaker::new(inner.clone()))
    }

    /// Every breaker there is, in alphabetical order, as it is now.
    #[must_use]
    pub fn views(&self) -> Vec<BreakerView> {
        self.inner.breakers().values().map(|inner| inner.view()).collect()
    }

    /// Waits until observers have heard everything that has happened so far. For tests and shutdowns; blocks the thread.
    pub fn flush_observers(&self) {
        self.inner.shared.announcer.flush();
    }

    /// Reports a configuration that could not be loaded: an event, a log line and a count.
    pub fn reload_failed(&self, error: &crate::policy::config::ConfigError) {
        self.inner.reloads[1].fetch_add(1, Ordering::Relaxed);
        let shared = &self.inner.shared;
        let kind = EventKind::ReloadFailed { error: error.to_string() };
        shared.announcer.announce(&ServiceName::from(""), shared.clock.now(), kind);
    }

    /// Reloads so far: applied, and refused.
    #[must_use]
    pub fn reloads(&self) -> (u64, u64) {
        let [applied, refused] = &self.inner.reloads;
        (applied.load(Ordering::Relaxed), refused.load(Ordering::Relaxed))
    }

    /// Events that observers missed because they were too slow.
    #[must_use]
    pub fn events_dropped(&self) -> u64 {
        self.inner.shared.announcer.dropped()
    }

    /// Takes over what the [store](RegistryBuilder::store) remembers: open breakers stay open for the rest of their time, overrides are
    /// in force. To be called once, before the first call; and then the sync task is to be [run](StoreSync::run), beside the calls, for
    /// as long as the registry is used. A store that does not answer is logged and counted, and nothing worse.
    ///
    /// ```
    /// use circuit_registry::{BreakersConfig, CircuitRegistry, store};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let registry = CircuitRegistry::builder().store(store::open("memory")?).build();
    /// let sync_task = registry.restore().await.spawn();
    /// // … calls …
    /// sync_task.end().await; // everything is stored
    /// # Ok(()) }
    /// ```
    pub async fn restore(&self) -> StoreSync {
        StoreSync::restore(Box::new(self.clone()), self.store_handle().cloned()).await
    }

    /// What kind of store there is, and its failures so far by operation; `None` without a store.
    #[must_use]
    pub fn store_errors(&self) -> Option<(&'static str, Vec<(&'static str, u64)>)> {
        self.store_handle().map(|store_handle| (store_handle.store.kind(), store_handle.errors()))
    }

    pub(crate) fn store_handle(&self) -> Option<&Arc<StoreHandle>> {
        self.inner.shared.store_handle.as_ref()
    }

    pub(crate) fn inner(&self, service: &str) -> Arc<BreakerInner> {
        match self.inner.find_configured(service) {
            Some(inner) => inner.clone(),
            None => self.inner.dynamic(service),
        }
    }

    #[cfg(feature = "temporal")]
    pub(crate) fn policy_of(&self, service: &str) -> Arc<Policy> {
        self.inner.config().policy(service)
    }

    /// Whether `service` is configured, by itself or as `a:b` through `a`.
    #[cfg(feature = "temporal")]
    pub(crate) fn covers(&self, service: &str) -> bool {
        self.inner.find_configured(service).is_some() || self.inner.config().covers(service)
    }

    /// Where random choices made on behalf of this registry begin.
    #[cfg(feature = "temporal")]
    pub(crate) fn seed(&self) -> u64 {
        self.inner.shared.seed
    }

    /// The sync task that the workers of this registry share.
    #[cfg(feature = "temporal-plugin")]
    pub(crate) fn shared_task(&self) -> &crate::fleet::shared_task::SharedTask {
        &self.inner.shared_task
    }

    #[cfg(feature = "prometheus")]
    pub(crate) fn breakers(&self) -> BTreeMap<ServiceName, Arc<BreakerInner>> {
        self.inner.breakers()
    }
}

/// What the sync task needs.
impl BreakerSet for CircuitRegistry {
    fn existing(&self, service: &str) -> Option<Arc<BreakerInner>> {
        if let Some(inner) = self.inner.find_configured(service) {
            return Some(inner.clone());
        }
        let dynamic = self.inner.dynamic.read().unwrap_or_else(PoisonError::into_inner);
        dynamic.get(service).map(|known| known.inner.clone())
    }

    fn get_or_make(&self, service: &str) -> Arc<BreakerInner> {
        self.inner(service)
    }

    fn all(&self) -> BTreeMap<ServiceName, Arc<BreakerInner>> {
        self.inner.breakers()
    }

    fn config(&self) -> BreakersConfig {
        self.inner.config().clone()
    }

    fn policy_of(&self, service: &str) -> Arc<Policy> {
        self.inner.config().policy(service)
    }

    fn shares(&self) -> bool {
        self.inner.config().shares()
    }
}

impl fmt::Debug for CircuitRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.views()).finish()
    }
}

impl RegistryInner {
    fn config(&self) -> std::sync::MutexGuard<'_, BreakersConfig> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn table(&self) -> &HashTable<Arc<BreakerInner>> {
        // The builder puts in the first table, and none is ever taken out.
        let last = self.configured.count().saturating_sub(1);
        &self.configured[last]
    }

    #[inline]
    fn find_configured(&self, service: &str) -> Option<&Arc<BreakerInner>> {
        self.table().find(self.hasher.hash_one(service), |inner| inner.name.as_str() == service)
    }

    /// The breaker of a name without an entry of its own.
    fn dynamic(&self, service: &str) -> Arc<BreakerInner> {
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
            // Whoever holds a handle would go on with a breaker that nobody else knows.
            if Arc::strong_count(&known.inner) == 1 && known.inner.is_forgettable() {
                idle.push((known.active, name.clone()));
            }
        }
        idle.sort_unstable();
        for (_, name) in idle.into_iter().take((cap / 8).max(1)) {
            dynamic.remove(&name);
        }
    }

    fn apply(&self, new: BreakersConfig) -> ConfigDiff {
        let mut config = self.config();
        let mut diff = ConfigDiff::default();
        for name in new.services.keys() {
            match config.services.get(name) {
                None => diff.added.push(name.clone()),
                Some(old) if *old != new.services[name] => diff.changed.push(name.clone()),
                Some(_) => {}
            }
        }
        diff.removed = config.services.keys().filter(|name| !new.services.contains_key(*name)).cloned().collect();
        diff.defaults_changed = config.defaults != new.defaults;

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

    fn breakers(&self) -> BTreeMap<ServiceName, Arc<BreakerInner>> {
        // First the lock, under which names change sides, then the table: so a name on its way is found on one of them.
        let dynamic = self.dynamic.read().unwrap_or_else(PoisonError::into_inner);
        let configured = self.table().iter().map(|inner| (inner.name.clone(), inner.clone()));
        dynamic.iter().map(|(name, known)| (name.clone(), known.inner.clone())).chain(configured).collect()
    }
}

/// Puts a registry together.
#[must_use = "a builder builds nothing until `build`"]
pub struct RegistryBuilder {
    config: BreakersConfig,
    observers: Vec<Arc<dyn Observer>>,
    wall: Arc<dyn WallClock>,
    log: bool,
    measured: bool,
    seed: Option<u64>,
    store: Option<Arc<dyn Store>>,
    process: Option<String>,
}

impl Default for RegistryBuilder {
    fn default() -> Self {
        Self {
            config: BreakersConfig::default(),
            observers: Vec::new(),
            wall: Arc::new(SystemWallClock),
            log: true,
            measured: false,
            seed: None,
            store: None,
            process: None,
        }
    }
}

impl RegistryBuilder {
    /// The policies.
    pub fn config(mut self, config: BreakersConfig) -> Self {
        self.config = config;
        self
    }

    /// Someone who wants to hear of events; may be called more than once.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Where events and snapshots take wall time from; the system's clock unless said.
    pub fn wall_clock(mut self, wall: impl WallClock + 'static) -> Self {
        self.wall = Arc::new(wall);
        self
    }

    /// Whether transitions, overrides and reloads are written to the log; they are unless said.
    pub fn log(mut self, log: bool) -> Self {
        self.log = log;
        self
    }

    /// Measures how long every call takes, for the histogram `circuit_breaker_call_duration_seconds`. Costs two readings of the
    /// clock a call; off unless said. A policy with slow calls measures its own calls whatever is said here.
    pub fn measure_calls(mut self, measured: bool) -> Self {
        self.measured = measured;
        self
    }

    /// Where the random jitter of open times begins; another place in every process unless said.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Where breakers are remembered beyond this process, and shared with others. Takes effect with
    /// [`CircuitRegistry::restore`].
    pub fn store(mut self, store: impl Store + 'static) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// What this process is called among others that share a store; unless said, a random name of its own.
    pub fn process(mut self, name: impl Into<String>) -> Self {
        self.process = Some(name.into());
        self
    }

    /// The registry.
    #[must_use]
    pub fn build(mut self) -> CircuitRegistry {
        if self.log {
            self.observers.push(Arc::new(LogObserver));
        }
        let seed = self.seed.unwrap_or_else(|| RandomState::new().hash_one(Duration::ZERO));
        let process = self.process.unwrap_or_else(|| format!("{:016x}", RandomState::new().hash_one(seed)));
        let store = self.store.map(|store| (store, process));
        let inner = RegistryInner {
            shared: Arc::new(Shared::new(self.observers, self.wall, self.measured, seed, store)),
            hasher: DefaultHashBuilder::default(),
            configured: boxcar::Vec::new(),
            dynamic: RwLock::default(),
            config: Mutex::new(BreakersConfig::default()),
            round: AtomicU64::new(0),
            reloads: Default::default(),
            #[cfg(feature = "temporal-plugin")]
            shared_task: Default::default(),
        };
        inner.push_table(&self.config, |_| None);
        *inner.config() = self.config;
        CircuitRegistry { inner: Arc::new(inner) }
    }
}
