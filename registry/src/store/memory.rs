//! A store that is a map: for tests, and for programs that remember nothing.
//!
//! Clones share it, and a fleet of registries in one process can share state through it just as processes do through Redis, on
//! tokio's clock, which a test can pause.

use std::{
    collections::{BTreeMap, HashMap},
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::broadcast, time::Instant};

use super::{
    Answer, Content, FleetStore, Lease, LeaseAnswer, Loaded, News, Put, PutAnswer, Record, Store, StoreError,
    StoreErrorKind, Subscription,
};
use crate::{
    clock::{Stamp, Tick},
    fleet::message::{LeaseNote, Message},
    outcome::ServiceName,
    policy::RateLimitPolicy,
    state::limiter::Limiter,
};

/// When every memory store's clock began to count: some day in 2023.
const BEGINNING: Stamp = Stamp::from_micros(1_700_000_000_000_000);

/// A process that was not heard of for so long is not counted.
const PRESENT: Duration = Duration::from_secs(15);

/// Remembers breakers as long as one of its clones exists.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    began: Instant,
    /// Microseconds by which its clock was set back.
    behind: AtomicU64,
    state: Mutex<State>,
    told: broadcast::Sender<String>,
}

#[derive(Default)]
struct State {
    texts: BTreeMap<ServiceName, (String, Stamp)>,
    leases: HashMap<(ServiceName, Stamp), (String, Stamp)>,
    limits: HashMap<ServiceName, Limiter>,
    processes: BTreeMap<String, Stamp>,
    /// It does not answer.
    away: bool,
}

impl MemoryStore {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        let (told, _) = broadcast::channel(4096);
        Self {
            shared: Arc::new(Shared {
                began: Instant::now(),
                behind: AtomicU64::new(0),
                state: Mutex::default(),
                told,
            }),
        }
    }

    /// Makes every function fail, or work again: for tests of what happens then.
    pub fn set_away(&self, away: bool) {
        self.shared.state().away = away;
    }

    /// Sets its clock back by `time`: for tests of what that does.
    pub fn set_clock_back(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.shared.behind.fetch_add(micros, Ordering::Relaxed);
    }

    /// What is remembered of `service`.
    #[must_use]
    pub fn text(&self, service: &str) -> Option<String> {
        self.shared.state().texts.get(&ServiceName::from(service)).map(|(text, _)| text.clone())
    }

    /// Remembers `text` of `service`, whatever it is.
    pub fn set_text(&self, service: &str, text: impl Into<String>) {
        let now = self.shared.now();
        self.shared.state().texts.insert(service.into(), (text.into(), now));
    }

    fn answer<T: Send + 'static>(&self, work: impl FnOnce(&mut State, Stamp) -> T) -> Answer<'static, T> {
        let now = self.shared.now();
        let mut state = self.shared.state();
        let answer = if state.away {
            Err(StoreError::new(StoreErrorKind::Unreachable, "the store in memory is away"))
        } else {
            Ok(work(&mut state, now))
        };
        Box::pin(std::future::ready(answer))
    }

    fn tell(&self, text: String) {
        let _ = self.shared.told.send(text); // fails if nobody listens
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Shared {
    fn now(&self) -> Stamp {
        BEGINNING.after(self.began.elapsed()).before(Duration::from_micros(self.behind.load(Ordering::Relaxed)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn kind(&self) -> &'static str {
        "memory"
    }

    fn now(&self) -> Answer<'_, Option<Stamp>> {
        self.answer(|_, now| Some(now))
    }

    fn load<'a>(&'a self, _services: &'a [ServiceName]) -> Answer<'a, Vec<Loaded>> {
        self.answer(|state, _| {
            let loaded = |(service, (text, _)): (&ServiceName, &(String, Stamp))| Loaded {
                service: Some(service.clone()),
                content: Content::Text(text.clone()),
            };
            state.texts.iter().map(loaded).collect()
        })
    }

    fn save<'a>(&'a self, records: &'a [Record]) -> Answer<'a, ()> {
        self.answer(|state, now| {
            for record in records {
                match &record.text {
                    Some(text) => drop(state.texts.insert(record.service.clone(), (text.clone(), now))),
                    None => drop(state.texts.remove(&record.service)),
                }
            }
        })
    }

    fn fleet(&self) -> Option<&dyn FleetStore> {
        Some(self)
    }
}

impl FleetStore for MemoryStore {
    fn put<'a>(&'a self, puts: &'a [Put]) -> Answer<'a, Vec<PutAnswer>> {
        self.answer(|state, now| {
            puts.iter()
                .map(|put| {
                    let present = state.texts.get(&put.service).map(|(text, _)| text.clone());
                    if present.as_deref() != put.expected.as_deref() {
                        return PutAnswer::Differs(present);
                    }
                    state.texts.insert(put.service.clone(), (put.text.to_string(), now));
                    self.tell(put.text.to_string());
                    PutAnswer::Done
                })
                .collect()
        })
    }

    fn lease<'a>(&'a self, ask: &'a Lease) -> Answer<'a, LeaseAnswer> {
        self.answer(|state, now| {
            let present = state.texts.get(&ask.service).map(|(text, _)| text.clone());
            if present.as_deref() != ask.record.as_deref() {
                return LeaseAnswer::Outdated(present);
            }
            if now < ask.due {
                return LeaseAnswer::Early(ask.due.since(now));
            }
            let key = (ask.service.clone(), ask.epoch);
            match state.leases.get(&key) {
                Some((holder, until)) if now < *until && *holder != ask.process => LeaseAnswer::Taken(until.since(now)),
                _ => {
                    state.leases.insert(key, (ask.process.clone(), now.after(ask.lasting)));
                    self.tell(Message::Lease(LeaseNote::of(ask)).encode());
                    LeaseAnswer::Granted
                }
            }
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> Answer<'a, bool> {
        self.answer(|state, now| match state.leases.get_mut(&(lease.service.clone(), lease.epoch)) {
            Some((holder, until)) if *holder == lease.process && now < *until => {
                *until = now.after(lease.lasting);
                self.tell(Message::Lease(LeaseNote::of(lease)).encode());
                true
            }
            _ => false,
        })
    }

    fn take<'a>(&'a self, service: &'a ServiceName, limit: &'a RateLimitPolicy) -> Answer<'a, Result<(), Duration>> {
        self.answer(|state, now| {
            let limiter = state.limits.entry(service.clone()).or_insert_with(|| Limiter::new(limit));
            limiter.take(Tick::from_nanos(now.as_micros().saturating_mul(1000)))
        })
    }

    fn sync<'a>(&'a self, process: &'a str, since: Stamp) -> Answer<'a, News> {
        self.answer(|state, now| {
            state.processes.insert(process.to_owned(), now);
            state.processes.retain(|_, seen| now.since(*seen) < PRESENT);
            let changed = state.texts.iter().filter(|(_, (_, at))| *at >= since);
            News {
                now,
                processes: u32::try_from(state.processes.len()).unwrap_or(u32::MAX),
                life: String::new(),
                changed: changed.map(|(service, (text, _))| (service.clone(), text.clone())).collect(),
            }
        })
    }

    fn publish<'a>(&'a self, texts: &'a [String]) -> Answer<'a, ()> {
        self.answer(|_, _| texts.iter().for_each(|text| self.tell(text.clone())))
    }

    fn subscribe(&self) -> Answer<'_, Box<dyn Subscription>> {
        self.answer(|_, _| Box::new(Listener(self.shared.told.subscribe())) as Box<dyn Subscription>)
    }
}

struct Listener(broadcast::Receiver<String>);

impl Subscription for Listener {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<String>> + Send + '_>> {
        Box::pin(async {
            loop {
                match self.0.recv().await {
                    Ok(text) => return Some(text),
                    Err(broadcast::error::RecvError::Lagged(_)) => {} // the next reading of the records heals that
                    Err(broadcast::error::RecvError::Closed) => return None,
                }
            }
        })
    }
}
