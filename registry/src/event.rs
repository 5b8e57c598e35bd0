//! What happened to a breaker, and the observers of that. How events reach observers is in [`announcer`](crate::announcer).

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    clock::WallTime,
    error::Rejection,
    outcome::{ServiceName, Settlement, Verdict},
    policy::Mode,
    state::{PastFailure, heard::HeardStep},
    view::{LastFailure, Transition},
};

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

/// Hears of events, on the registry's own threads: it may block, panic or be slow without touching any call. Observers that want
/// every call have a queue and a thread of their own, so they delay no observer of transitions.
///
/// An observer that keeps a [`CircuitRegistry`](crate::CircuitRegistry) keeps it alive, and itself with it. Let such a program call
/// [`end_observers`](crate::CircuitRegistry::end_observers) at its end.
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

/// A program that keeps a clone can ask the observer what it heard.
impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn on_event(&self, event: &Event) {
        (**self).on_event(event);
    }

    fn wants_calls(&self) -> bool {
        (**self).wants_calls()
    }
}

/// What a breaker announces. A change of state becomes a [`Transition`] on the observers' thread, which may ask the wall
/// clock.
#[derive(Clone)]
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
    /// Whether it is about a single call.
    pub(crate) const fn is_of_a_call(&self) -> bool {
        matches!(self, Self::Kind(EventKind::Admitted { .. } | EventKind::Rejected(_) | EventKind::Settled { .. }))
    }

    pub(crate) fn kind(self, wall: &WallTime) -> EventKind {
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
