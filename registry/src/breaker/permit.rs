//! Permission for one call, for callers that settle it themselves.

use std::{fmt, sync::Arc};

use super::{fast_path::Counter, inner::BreakerInner};
use crate::{
    error::{Classify, Rejection},
    failure::{FailureKind, Judgement},
    outcome::{Settlement, Verdict},
    state::{Admission, Ticket},
};

impl BreakerInner {
    /// The answer of the fast path, if it can give one.
    #[inline]
    fn enter_by_fast_path(&self) -> Option<Result<Ticket, Rejection>> {
        let word = self.fast_path.read();
        if word.admits() {
            self.counters.count(Counter::Admitted);
            let started = if word.is_timed() { Some(self.shared.clock.now()) } else { None };
            return Some(Ok(Ticket::fast(word.generation(), started)));
        }
        let retry_in = self.rejected_by_fast_path(word)?;
        Some(Err(self.rejected_open(retry_in)))
    }
}

/// Permission for one call. It ends exactly once: [settled](Self::settle) with a verdict, or dropped, which is neutral
/// (a failure, if the drop is part of a panic).
#[must_use = "a permit dropped unused says nothing about the service; settle it"]
pub struct Permit {
    inner: Arc<BreakerInner>,
    ticket: Option<Ticket>,
}

impl Permit {
    pub(super) async fn acquire(inner: &Arc<BreakerInner>) -> Result<Self, Rejection> {
        let ticket = match inner.enter_by_fast_path() {
            Some(answer) => answer?,
            None => inner.enter_by_state().await?,
        };
        Ok(Self { inner: inner.clone(), ticket: Some(ticket) })
    }

    pub(super) fn try_acquire(inner: &Arc<BreakerInner>) -> Result<Self, Rejection> {
        let ticket = match inner.enter_by_fast_path() {
            Some(answer) => answer?,
            None => inner.ask_at_last()?,
        };
        Ok(Self { inner: inner.clone(), ticket: Some(ticket) })
    }

    /// Ends the call.
    pub fn settle(mut self, verdict: Verdict) -> Settlement {
        self.end(verdict.into())
    }

    /// Ends the call with what its error says, Retry-After included.
    pub fn settle_error(mut self, error: &impl Classify) -> Settlement {
        self.end(error.judgement())
    }

    /// Whether this call is a probe of a half-open breaker.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.ticket.is_some_and(|ticket| ticket.admission == Admission::Probe)
    }

    /// The generation that admitted the call.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.ticket.map_or(0, |ticket| ticket.generation)
    }

    fn end(&mut self, judgement: Judgement) -> Settlement {
        match self.ticket.take() {
            Some(ticket) => self.inner.settle(&ticket, judgement),
            None => Settlement::Late,
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let panicking = std::thread::panicking();
            let judgement = if panicking { Judgement::failed(FailureKind::Panic) } else { self.inner.dropped(&ticket) };
            self.inner.settle(&ticket, judgement);
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("service", &self.inner.name).field("ticket", &self.ticket).finish()
    }
}
