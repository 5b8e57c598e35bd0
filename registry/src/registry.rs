//! The registry: a set of named breakers, and how it is put together.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    ops::Deref,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use crate::{
    breaker::{Breaker, call::Call, inner::BreakerInner, shared::Shared, store_port::StorePort, table::BreakerTable},
    clock::{Clock, SystemWallClock, WallClock, WallTime},
    error::{CallError, Classify},
    event::{Announcer, EventKind, LogObserver, Observer},
    fleet::{store_handle::StoreHandle, store_sync::StoreSync},
    outcome::ServiceName,
    policy::{ConfigDiff, config::BreakersConfig},
    store::Store,
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
    table: Arc<BreakerTable>,
    extras: Arc<Extras>,
}

/// What belongs to a registry as a whole and to no breaker.
struct Extras {
    store: Option<Arc<StoreHandle>>,
    /// Reloads of the configuration: applied, and refused.
    reloads: [AtomicU64; 2],
    /// Whether the last reload was applied, and when it was, by the wall clock.
    last_reload: Mutex<Option<(bool, SystemTime)>>,
    wall: Arc<dyn WallClock>,
    #[cfg(feature = "temporal-plugin")]
    keeping: crate::temporal::plugin::Keeping,
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
        Breaker::new(self.table.inner(service))
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
        let inner = match self.table.find_configured(service) {
            Some(inner) => Found::Configured(inner),
            None => Found::Dynamic(self.table.dynamic(service)),
        };
        Call::new(inner, work, crate::breaker::call::classified)
    }

    /// Goes by `config` from now on. Every breaker keeps its state, deadline, generation and evidence; only what `config` changes
    /// changes. A service that is no longer configured goes by the defaults.
    pub fn apply(&self, config: BreakersConfig) -> ConfigDiff {
        let diff = self.table.apply(config);
        self.count_reload(true);
        diff
    }

    /// The configuration in force.
    #[must_use]
    pub fn config(&self) -> BreakersConfig {
        self.table.config().clone()
    }

    /// The breaker that guards activities of this type as a whole, if a service lists the type under `activities`.
    #[must_use]
    pub fn breaker_for_activity(&self, activity_type: &str) -> Option<Breaker> {
        let config = self.table.config();
        let inner = self.table.find_configured(config.service_for_activity(activity_type)?)?;
        Some(Breaker::new(inner.clone()))
    }

    /// Every breaker there is, in alphabetical order, as it is now.
    #[must_use]
    pub fn views(&self) -> Vec<BreakerView> {
        self.table.breakers().values().map(|inner| inner.view()).collect()
    }

    /// Waits until observers have heard everything that has happened so far. For tests and shutdowns; blocks the thread.
    pub fn flush_observers(&self) {
        self.table.shared().announcer.flush();
    }

    /// Reports a configuration that could not be loaded: an event, a log line and a count.
    pub fn reload_failed(&self, error: &crate::policy::config::ConfigError) {
        self.count_reload(false);
        let shared = self.table.shared();
        let kind = EventKind::ReloadFailed { error: error.to_string() };
        shared.announcer.announce(&ServiceName::from(""), shared.clock.now(), kind);
    }

    /// Reloads so far: applied, and refused.
    #[must_use]
    pub fn reloads(&self) -> (u64, u64) {
        let [applied, refused] = &self.extras.reloads;
        (applied.load(Ordering::Relaxed), refused.load(Ordering::Relaxed))
    }

    /// Whether the last reload was applied, and when it was, by the wall clock; `None` before the first.
    #[must_use]
    pub fn last_reload(&self) -> Option<(bool, SystemTime)> {
        *self.extras.last_reload.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_reload(&self, applied: bool) {
        self.extras.reloads[usize::from(!applied)].fetch_add(1, Ordering::Relaxed);
        let now = self.extras.wall.now();
        *self.extras.last_reload.lock().unwrap_or_else(PoisonError::into_inner) = Some((applied, now));
    }

    /// Events that observers missed because they were too slow.
    #[must_use]
    pub fn events_dropped(&self) -> u64 {
        self.table.shared().announcer.dropped()
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
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// let sync = registry.restore().await;
    /// let kept = tokio::spawn(sync.run(async { drop(stopped.await) }));
    /// // … calls …
    /// stop.send(()).unwrap();
    /// kept.await?; // what was left to store is stored
    /// # Ok(()) }
    /// ```
    pub async fn restore(&self) -> StoreSync {
        StoreSync::restore(self.table.clone(), self.extras.store.clone()).await
    }

    /// What kind of store there is, and its failures so far by operation; `None` without a store.
    #[must_use]
    pub fn store_errors(&self) -> Option<(&'static str, Vec<(&'static str, u64)>)> {
        self.extras.store.as_ref().map(|store_handle| (store_handle.store.kind(), store_handle.errors()))
    }

    #[cfg(feature = "temporal")]
    pub(crate) fn policy_of(&self, service: &str) -> Arc<crate::policy::Policy> {
        self.table.policy_of(service)
    }

    /// Whether `service` is configured, by itself or as `a:b` through `a`.
    #[cfg(feature = "temporal")]
    pub(crate) fn covers(&self, service: &str) -> bool {
        self.table.find_configured(service).is_some() || self.table.config().covers(service)
    }

    /// Where random choices made on behalf of this registry begin.
    #[cfg(feature = "temporal")]
    pub(crate) fn seed(&self) -> u64 {
        self.table.shared().seed
    }

    /// The sync task that the workers of this registry share.
    #[cfg(feature = "temporal-plugin")]
    pub(crate) fn keeping(&self) -> &crate::temporal::plugin::Keeping {
        &self.extras.keeping
    }

    #[cfg(feature = "prometheus")]
    pub(crate) fn breakers(&self) -> std::collections::BTreeMap<ServiceName, Arc<BreakerInner>> {
        self.table.breakers()
    }
}

#[cfg(feature = "reload")]
impl crate::policy::reload::Reloadable for CircuitRegistry {
    fn apply(&self, config: BreakersConfig) -> ConfigDiff {
        self.apply(config)
    }

    fn reload_failed(&self, error: &crate::policy::config::ConfigError) {
        self.reload_failed(error);
    }
}

impl fmt::Debug for CircuitRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.views()).finish()
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

    /// Adds an observer of events; may be called more than once.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Where events and snapshots take wall time from; the default is the clock of the system.
    pub fn wall_clock(mut self, wall: impl WallClock + 'static) -> Self {
        self.wall = Arc::new(wall);
        self
    }

    /// Whether transitions, overrides and reloads are written to the log; the default is yes.
    pub fn log(mut self, log: bool) -> Self {
        self.log = log;
        self
    }

    /// Measures how long every call takes, for the histogram `circuit_breaker_call_duration_seconds`. Costs two readings of the
    /// clock a call; the default is no. A policy with slow calls measures its own calls in any case.
    pub fn measure_calls(mut self, measured: bool) -> Self {
        self.measured = measured;
        self
    }

    /// Where the random jitter of open times begins; the default is another place in every process.
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

    /// What this process is called among others that share a store; the default is a random name.
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
        let clock = Clock::start();
        let (wall, reload_wall) = (self.wall.clone(), self.wall.clone());
        let wall_time = WallTime::new(clock, self.wall);
        let store = self.store.map(|store| Arc::new(StoreHandle::new(store, clock, wall, process)));
        let shared = Shared {
            clock,
            announcer: Announcer::start(self.observers, wall_time.clone()),
            wall: wall_time,
            measured: self.measured,
            seed,
            store: store.clone().map(|store| store as Arc<dyn StorePort>),
        };
        let extras = Extras {
            store,
            reloads: Default::default(),
            last_reload: Mutex::default(),
            wall: reload_wall,
            #[cfg(feature = "temporal-plugin")]
            keeping: Default::default(),
        };
        CircuitRegistry { table: Arc::new(BreakerTable::new(Arc::new(shared), self.config)), extras: Arc::new(extras) }
    }
}
