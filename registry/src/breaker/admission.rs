//! How a call gets in: by the fast path, by the state, or after waiting for a place or for the store.

use std::{pin::pin, time::Duration};

use super::inner::{Blocked, BreakerInner, Guarded};
use crate::{
    breaker::{
        context::{self, CallContext},
        fast_path::{Counter, StateWord},
        sync::{MutexGuard, Ordering},
    },
    error::{RejectReason, Rejection},
    event::EventKind,
    policy::Policy,
    state::{Admission, NotAdmitted, Ticket, fleet_view::ASK},
};

impl BreakerInner {
    /// The time until the probe, if the fast path alone can tell that a call is rejected; the rejection is counted.
    #[inline]
    pub(crate) fn rejected_by_fast_path(&self, word: StateWord) -> Option<Duration> {
        if !word.rejects() {
            return None;
        }
        let deadline = self.fast_path.deadline_of(word)?;
        let now = self.shared.clock.now();
        if now >= deadline {
            return None; // a probe is due: that is for the state
        }
        self.counters.count(Counter::RejectedOpen);
        Some(deadline.since(now))
    }

    /// The rejection of an open breaker that the fast path answers with.
    #[inline]
    pub(crate) fn rejected_open(&self, retry_in: Duration) -> Rejection {
        Rejection::new(self.name.clone(), RejectReason::Open, Some(retry_in))
    }

    /// Asks the state; where the bulkhead is full, waits as long as the policy says and asks again from the first step.
    #[cold]
    pub(crate) async fn enter_by_state(&self) -> Result<Ticket, Rejection> {
        let max_wait = match self.ask_or_queue().await {
            Ok(answer) => return answer,
            Err(max_wait) => max_wait,
        };
        let wait = async {
            loop {
                let mut freed = pin!(self.freed.notified());
                freed.as_mut().enable(); // a place freed from here on is not missed
                match self.ask_or_queue().await {
                    Ok(answer) => return answer,
                    Err(_) => freed.await,
                }
            }
        };
        match tokio::time::timeout(max_wait, wait).await {
            Ok(Ok(ticket)) => Ok(ticket),
            Ok(Err(rejection)) => {
                self.freed.notify_one(); // the place we were woken for is still free
                Err(rejection)
            }
            Err(_) => self.ask_at_last(),
        }
    }

    /// The answer of the state, after asking the store where the state needs that. `Err` if the bulkhead is full and the
    /// call may wait for this long.
    async fn ask_or_queue(&self) -> Result<Result<Ticket, Rejection>, Duration> {
        // Four times, because other callers may be faster each time; then the caller is rejected and may come back.
        for _ in 0..4 {
            match self.ask_once() {
                Ok(ticket) => return Ok(Ok(ticket)),
                Err(Blocked::Rejected(rejection)) => return Ok(Err(rejection)),
                Err(Blocked::Queue { max_wait }) => return Err(max_wait),
                // In a box: it is rare, and every call would carry its size.
                Err(Blocked::AskStore(question)) => Box::pin(self.ask_store(question)).await,
            }
        }
        Ok(self.ask_at_last())
    }

    /// The answer of the state, and a rejection where it has to wait for something.
    pub(super) fn ask_at_last(&self) -> Result<Ticket, Rejection> {
        self.ask().map_err(|(refusal, locked)| self.reject(refusal, &locked.state.policy))
    }

    /// The answer of the state, or what it needs to know first.
    pub(crate) fn ask_once(&self) -> Result<Ticket, Blocked> {
        let (refusal, guarded) = match self.ask() {
            Ok(ticket) => return Ok(ticket),
            Err(refused) => refused,
        };
        let can_wait = tokio::runtime::Handle::try_current().is_ok();
        let max_wait = guarded.state.policy.bulkhead.map_or(Duration::ZERO, |b| b.max_wait);
        Err(match refusal {
            NotAdmitted::Ask(question) if can_wait => Blocked::AskStore(question),
            NotAdmitted::Rejected(RejectReason::BulkheadFull, _) if can_wait && !max_wait.is_zero() => {
                Blocked::Queue { max_wait }
            }
            _ => Blocked::Rejected(self.reject(refusal, &guarded.state.policy)),
        })
    }

    /// Asks the state. A refusal comes with the lock still held, so that it is announced in its turn.
    fn ask(&self) -> Result<Ticket, (NotAdmitted, MutexGuard<'_, Guarded>)> {
        let attempt = CallContext::with_current(|c| c.attempt).unwrap_or(1);
        let (mut guarded, now) = self.lock_all_now();
        let change_marker = self.prepare(&mut guarded.state);
        let (answer, state_change) = guarded.state.admit(now, attempt);
        self.publish(&guarded.state, now);
        self.note(change_marker, &guarded.state);
        let ticket = match answer {
            Ok(ticket) => ticket,
            Err(refusal) => return Err((refusal, guarded)),
        };
        self.counters.count(Counter::Admitted);
        self.announce(&mut guarded.state, now, state_change);
        if self.shared.announcer.wants_calls {
            let probe = ticket.admission == Admission::Probe;
            self.shared.announcer.announce(&self.name, now, EventKind::Admitted { probe });
        }
        Ok(ticket)
    }

    /// Counts and announces a rejection; under the lock.
    fn reject(&self, refusal: NotAdmitted, policy: &Policy) -> Rejection {
        let (reason, retry_in) = match refusal {
            NotAdmitted::Rejected(reason, retry_in) => (reason, retry_in),
            NotAdmitted::Ask(question) => {
                // The answer is on its way.
                self.ask_store_later(question);
                (question.reject_reason(), Some(ASK))
            }
        };
        match rejected_counter(reason) {
            None => self.counters.count(Counter::RejectedOpen),
            Some(at) => drop(self.refused[at].fetch_add(1, Ordering::Relaxed)),
        }
        let mut rejection = Rejection::new(self.name.clone(), reason, retry_in);
        if reason == RejectReason::BulkheadFull {
            rejection.max_concurrent = policy.bulkhead.map(|bulkhead| bulkhead.max_concurrent.get());
        }
        if self.shared.announcer.wants_calls {
            let kind = EventKind::Rejected(rejection.clone());
            self.shared.announcer.announce(&self.name, self.shared.clock.now(), kind);
        }
        rejection
    }

    /// The time this call gets: what the policy says, and less than what is left of the surrounding work, so that the call ends
    /// and is settled before its caller is given up. `None` without a limit, or without a tokio clock to keep it.
    #[inline]
    pub(crate) fn time_limit(&self, ticket: &Ticket) -> Option<Duration> {
        if ticket.expires.is_none() && !context::in_use() {
            return None;
        }
        let by_policy = ticket.expires.map(|end| end.since(ticket.started.unwrap_or(end)));
        let by_context = CallContext::with_current(|c| c.deadline).flatten().map(|deadline| {
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            left - (left / 10).min(Duration::from_secs(1))
        });
        let limit = match (by_policy, by_context) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        tokio::runtime::Handle::try_current().is_ok().then_some(limit)
    }
}

/// Where a rejection is counted apart from the sharded counters; `None` for an open breaker, which those count.
const fn rejected_counter(reason: RejectReason) -> Option<usize> {
    match reason {
        RejectReason::Open | RejectReason::ForcedOpen => None,
        RejectReason::HalfOpenBusy => Some(0),
        RejectReason::BulkheadFull => Some(1),
        RejectReason::RateLimited => Some(2),
        RejectReason::BudgetExhausted => Some(3),
    }
}
