//! A store in memory, for tests and for programs that keep nothing.
//!
//! Clones share the same content. Several registries in one process can share state through it, as processes do through Redis. It
//! uses tokio's clock, which a test can pause.

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
    error::{Answer, StoreError, StoreErrorKind},
    fleet_store::{FleetStore, Lease, LeaseAnswer, News, Put, PutAnswer, Subscription},
    interface::{Content, Loaded, Record, Store},
    message::{LeaseNote, Message},
};
use crate::{
    clock::{Stamp, Tick},
    outcome::ServiceName,
    policy::RateLimitPolicy,
    state::limiter::Limiter,
};

/// The first time that the clock of a memory store shows: a day in 2023.
const BEGINNING: Stamp = Stamp::from_micros(1_700_000_000_000_000);

/// A process counts as present for this long after its last sync.
const PRESENT: Duration = Duration::from_secs(15);

/// Keeps breakers while one of its clones exists.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    began: Instant,
    /// Microseconds by which the clock was set back.
    behind: AtomicU64,
    state: Mutex<State>,
    channel: broadcast::Sender<String>,
}

#[derive(Default)]
struct State {
    texts: BTreeMap<ServiceName, (String, Stamp)>,
    leases: HashMap<(ServiceName, Stamp), (String, Stamp)>,
    limits: HashMap<ServiceName, Limiter>,
    processes: BTreeMap<String, Stamp>,
    /// The store does not answer.
    away: bool,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        let (channel, _) = broadcast::channel(4096);
        Self {
            shared: Arc::new(Shared {
                began: Instant::now(),
                behind: AtomicU64::new(0),
                state: Mutex::default(),
                channel,
            }),
        }
    }

    /// Makes every function fail, or work again. For tests.
    pub fn set_away(&self, away: bool) {
        self.shared.state().away = away;
    }

    /// Sets the store's clock back by `time`. For tests.
    pub fn set_clock_back(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.shared.behind.fetch_add(micros, Ordering::Relaxed);
    }

    /// The record of `service`.
    #[must_use]
    pub fn text(&self, service: &str) -> Option<String> {
        self.shared.state().texts.get(&ServiceName::from(service)).map(|(text, _)| text.clone())
    }

    /// Replaces the record of `service` with any text. For tests.
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

    fn send(&self, text: String) {
        let _ = self.shared.channel.send(text); // fails without a subscriber
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
            let texts = state.texts.iter();
            texts.map(|(name, (text, _))| Loaded::new(Some(name.clone()), Content::Text(text.clone()))).collect()
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
                    self.send(put.text.to_string());
                    PutAnswer::Done
                })
                .collect()
        })
    }

    fn lease<'a>(&'a self, request: &'a Lease) -> Answer<'a, LeaseAnswer> {
        self.answer(|state, now| {
            let present = state.texts.get(&request.service).map(|(text, _)| text.clone());
            if present.as_deref() != request.record.as_deref() {
                return LeaseAnswer::Outdated(present);
            }
            if now < request.due {
                return LeaseAnswer::Early(request.due.since(now));
            }
            let key = (request.service.clone(), request.epoch);
            match state.leases.get(&key) {
                Some((holder, until)) if now < *until && *holder != request.process => {
                    LeaseAnswer::Taken(until.since(now))
                }
                _ => {
                    state.leases.insert(key, (request.process.clone(), now.after(request.lasting)));
                    self.send(Message::Lease(LeaseNote::of(request)).encode());
                    LeaseAnswer::Granted
                }
            }
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> Answer<'a, bool> {
        self.answer(|state, now| match state.leases.get_mut(&(lease.service.clone(), lease.epoch)) {
            Some((holder, until)) if *holder == lease.process && now < *until => {
                *until = now.after(lease.lasting);
                self.send(Message::Lease(LeaseNote::of(lease)).encode());
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
        self.answer(|_, _| texts.iter().for_each(|text| self.send(text.clone())))
    }

    fn subscribe(&self) -> Answer<'_, Box<dyn Subscription>> {
        self.answer(|_, _| Box::new(Channel(self.shared.channel.subscribe())) as Box<dyn Subscription>)
    }
}

struct Channel(broadcast::Receiver<String>);

impl Subscription for Channel {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<String>> + Send + '_>> {
        Box::pin(async {
            loop {
                match self.0.recv().await {
                    Ok(text) => return Some(text),
                    Err(broadcast::error::RecvError::Lagged(_)) => {} // the next sync reads what was missed
                    Err(broadcast::error::RecvError::Closed) => return None,
                }
            }
        })
    }
}
