//! What happened to a breaker, and the observers of that.
//!
//! A breaker puts its events into a bounded queue, in the order it decided them; a thread of the registry's own hands them to the
//! observers. So an observer may block, panic or be slow: it delays other observers and no call. If
//! the queue is full, events are dropped and counted, never waited for.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel},
    },
    thread,
    time::{Duration, SystemTime},
};

use crate::{
    clock::{Tick, WallTime},
    error::Rejection,
    outcome::{ServiceName, Settlement, Verdict},
    policy::Mode,
    state::{PastFailure, heard::HeardStep},
    view::{LastFailure, Transition},
};

/// Events waiting at the most; beyond that they are dropped and counted.
const QUEUE: usize = 16_384;

/// One thing that happened to one breaker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The service whose breaker it happened to; empty for events of the whole registry.
    pub service: ServiceName,
    /// When, by the wall clock.
    pub at: SystemTime,
    /// What.
    pub kind: EventKind,
}

/// The kinds of events.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A call may start. Only for observers that [want calls](Observer::wants_calls).
    Admitted {
        /// It is a probe.
        probe: bool,
    },
    /// A call may not start. Only for observers that [want calls](Observer::wants_calls).
    Rejected(Rejection),
    /// A call ended. Only for observers that [want calls](Observer::wants_calls).
    Settled {
        /// Its verdict.
        verdict: Verdict,
        /// Whether that still mattered.
        settlement: Settlement,
        /// How long it took, where that is measured.
        took: Option<Duration>,
    },
    /// The state changed.
    Transition(Transition),
    /// Under observation: it would have opened.
    WouldOpen(Transition),
    /// An operator set an override, or released one.
    Overridden {
        /// The mode that holds now.
        mode: Mode,
        /// Who did it.
        who: String,
        /// Why.
        why: String,
    },
    /// The policy changed.
    Reconfigured,
    /// A reload of the configuration was refused; the running one stays.
    ReloadFailed {
        /// What is wrong with it, and where.
        error: String,
    },
}

/// Hears of events, on the registry's own thread: it may block, panic or be slow without touching any call.
pub trait Observer: Send + Sync {
    /// Something happened. Events of one breaker come in the order they happened.
    fn on_event(&self, event: &Event);

    /// Whether this observer wants to hear of every single call (admitted, rejected, settled), and not only of
    /// transitions, overrides and reloads. Hearing of every call takes breakers off their lock-free path.
    ///
    /// Asked once, when the registry is built.
    fn wants_calls(&self) -> bool {
        true
    }
}

/// What a breaker announces. A change of state becomes a [`Transition`] on the observers' thread, which may ask the wall
/// clock.
pub(crate) enum Announcement {
    Kind(EventKind),
    Transition { heard: HeardStep, last_failure: Option<PastFailure>, would_open: bool },
}

impl From<EventKind> for Announcement {
    fn from(kind: EventKind) -> Self {
        Self::Kind(kind)
    }
}

impl Announcement {
    fn kind(self, wall: &WallTime) -> EventKind {
        let (heard, last_failure, would_open) = match self {
            Self::Kind(kind) => return kind,
            Self::Transition { heard, last_failure, would_open } => (heard, last_failure, would_open),
        };
        let step = heard.step;
        let transition = Transition {
            from: step.from,
            since: wall.at(heard.since),
            to: step.to,
            cause: step.cause,
            generation: step.generation,
            open_for: step.open_for,
            last_failure: last_failure.map(|past| LastFailure::new(past, wall)),
        };
        if would_open { EventKind::WouldOpen(transition) } else { EventKind::Transition(transition) }
    }
}

enum Message {
    Event { service: ServiceName, tick: Tick, what: Announcement },
    Flush(Sender<()>),
}

/// The breakers' end of the queue.
#[derive(Clone)]
pub(crate) struct Announcer {
    queue: Option<SyncSender<Message>>,
    dropped: Arc<AtomicU64>,
    pub(crate) wants_calls: bool,
}

impl Announcer {
    /// Starts the thread that serves `observers`. It ends when the last announcer is gone.
    pub(crate) fn start(observers: Vec<Arc<dyn Observer>>, wall: WallTime) -> Self {
        let observers: Vec<_> = observers.into_iter().map(|observer| (observer.wants_calls(), observer)).collect();
        let wants_calls = observers.iter().any(|(wants_calls, _)| *wants_calls);
        let dropped = Arc::new(AtomicU64::new(0));
        if observers.is_empty() {
            return Self { queue: None, dropped, wants_calls };
        }
        let (queue, events) = sync_channel(QUEUE);
        let thread = thread::Builder::new().name("breaker-events".into());
        let started = thread.spawn(move || serve(&events, &observers, &wall));
        // Without the thread no observer hears anything; the breakers work all the same.
        let queue = started.is_ok().then_some(queue);
        Self { queue, dropped, wants_calls }
    }

    /// Queues an event; never waits.
    pub(crate) fn announce(&self, service: &ServiceName, tick: Tick, what: impl Into<Announcement>) {
        let Some(queue) = &self.queue else { return };
        let message = Message::Event { service: service.clone(), tick, what: what.into() };
        if let Err(TrySendError::Full(_)) = queue.try_send(message) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Events lost to a full queue.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything announced so far was heard.
    pub(crate) fn flush(&self) {
        let Some(queue) = &self.queue else { return };
        let (done, heard) = channel();
        if queue.send(Message::Flush(done)).is_ok() {
            let _ = heard.recv();
        }
    }
}

impl fmt::Debug for Announcer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Announcer").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}

fn serve(events: &Receiver<Message>, observers: &[(bool, Arc<dyn Observer>)], wall: &WallTime) {
    while let Ok(message) = events.recv() {
        let (service, tick, what) = match message {
            Message::Flush(done) => {
                let _ = done.send(());
                continue;
            }
            Message::Event { service, tick, what } => (service, tick, what),
        };
        // The wall clock is read here and not by the breaker: not even a clock that blocks touches a call.
        let event = Event { service, at: wall.at(tick), kind: what.kind(wall) };
        let of_a_call =
            matches!(event.kind, EventKind::Admitted { .. } | EventKind::Rejected(_) | EventKind::Settled { .. });
        for (_, observer) in observers.iter().filter(|(wants_calls, _)| *wants_calls || !of_a_call) {
            // A panic is the observer's own affair; the panic hook has reported it.
            let _ = catch_unwind(AssertUnwindSafe(|| observer.on_event(&event)));
        }
    }
}

/// Writes transitions, overrides and reloads to the log, one line each.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogObserver;

impl Observer for LogObserver {
    fn wants_calls(&self) -> bool {
        false
    }

    fn on_event(&self, event: &Event) {
        let service = event.service.as_str();
        let at = jiff::Timestamp::try_from(event.at).unwrap_or_default();
        match &event.kind {
            EventKind::Transition(t) => {
                let open_for = t.open_for.unwrap_or_default();
                let since = jiff::Timestamp::try_from(t.since).unwrap_or_default();
                let last_failure = t.last_failure.as_ref().map(tracing::field::display);
                if t.open_for.is_some() {
                    tracing::warn!(service, from = %t.from, %since, to = %t.to, reason = %t.cause, ?open_for, last_failure, %at, "circuit breaker opened");
                } else {
                    tracing::info!(service, from = %t.from, %since, to = %t.to, reason = %t.cause, last_failure, %at, "circuit breaker {}", t.to);
                }
            }
            EventKind::WouldOpen(t) => {
                let last_failure = t.last_failure.as_ref().map(tracing::field::display);
                tracing::warn!(service, reason = %t.cause, last_failure, %at, "circuit breaker would open (observing only)");
            }
            EventKind::Overridden { mode, who, why } => {
                tracing::warn!(service, mode = mode.as_str(), who, why, %at, "circuit breaker override");
            }
            EventKind::Reconfigured => tracing::info!(service, %at, "circuit breaker policy changed"),
            EventKind::ReloadFailed { error } => {
                tracing::error!(error, %at, "breaker configuration not reloaded; the running one stays");
            }
            EventKind::Admitted { .. } | EventKind::Rejected(_) | EventKind::Settled { .. } => {}
        }
    }
}
