//! How a call gets in: by the gate, by the books, or after waiting for a place or for the store.

use std::{pin::pin, time::Duration};

use super::{Behind, Core, NotNow, Receipt, Way};
use crate::{
    books::{Books, Entry, Mark, Refusal},
    context::{self, CallContext},
    event::EventKind,
    fleet::{
        ask,
        share::{ASK, Question},
    },
    gate::Word,
    lanes::Counter,
    outcome::Rejection,
    store::StoreError,
    sync::{MutexGuard, Ordering},
};

impl Core {
    /// The answer of the gate, if it can give one.
    #[inline]
    fn enter_by_gate(&self) -> Option<Result<Receipt, Rejection>> {
        let word = self.gate.read();
        if word.admits() {
            self.lanes.count(Counter::Admitted);
            let started = if word.is_timed() { Some(self.hub.clock.now()) } else { None };
            return Some(Ok(Receipt { way: Way::Gate(word), started, expires: None }));
        }
        let retry_in = self.refused_by_gate(word)?;
        Some(Err(Rejection::Open { service: self.name.clone(), retry_in, forced: false }))
    }

    /// The time until the probe, if the gate alone can tell that a call is rejected; the rejection is counted.
    #[inline]
    pub(crate) fn refused_by_gate(&self, word: Word) -> Option<Duration> {
        if !word.rejects() {
            return None;
        }
        let deadline = self.gate.deadline_of(word)?;
        let now = self.hub.clock.now();
        if now >= deadline {
            return None; // a probe is due: that is for the books
        }
        self.lanes.count(Counter::RejectedOpen);
        Some(deadline.since(now))
    }

    pub(crate) fn try_enter(&self) -> Result<Receipt, Rejection> {
        match self.enter_by_gate() {
            Some(answer) => answer,
            None => self.ask().map_err(|(refusal, _locked)| self.reject(refusal)),
        }
    }

    pub(crate) async fn enter(&self) -> Result<Receipt, Rejection> {
        match self.enter_by_gate() {
            Some(answer) => answer,
            None => self.enter_booked().await,
        }
    }

    /// Asks the books; where the bulkhead is full, waits as long as the policy says and asks again from the first step.
    #[cold]
    pub(crate) async fn enter_booked(&self) -> Result<Receipt, Rejection> {
        let max_wait = match self.ask_or_queue().await {
            Ok(receipt) => return Ok(receipt),
            Err(NotNow::Rejected(rejection)) => return Err(rejection),
            Err(NotNow::Queue { max_wait }) => max_wait,
        };
        let wait = async {
            loop {
                let mut freed = pin!(self.freed.notified());
                freed.as_mut().enable(); // a place freed from here on is not missed
                match self.ask_or_queue().await {
                    Ok(receipt) => return Ok(receipt),
                    Err(NotNow::Rejected(rejection)) => return Err(rejection),
                    Err(NotNow::Queue { .. }) => freed.await,
                }
            }
        };
        match tokio::time::timeout(max_wait, wait).await {
            Ok(Ok(receipt)) => Ok(receipt),
            Ok(Err(rejection)) => {
                self.freed.notify_one(); // the place we were woken for is still free
                Err(rejection)
            }
            Err(_) => self.ask().map_err(|(refusal, _locked)| self.reject(refusal)),
        }
    }

    /// Asks the books, and the store first where they need to know what it says.
    async fn ask_or_queue(&self) -> Result<Receipt, NotNow> {
        // Some times, because others may be faster; then the caller is told to come back.
        for _ in 0..4 {
            match self.ask_once() {
                Ok(answer) => return answer,
                // In a box: it is rare, and every call would carry its size.
                Err(question) => Box::pin(self.ask_store(question)).await,
            }
        }
        self.ask().map_err(|(refusal, _locked)| NotNow::Rejected(self.reject(refusal)))
    }

    /// The answer of the books, or what they need to know first.
    pub(crate) fn ask_once(&self) -> Result<Result<Receipt, NotNow>, Question> {
        let (refusal, behind) = match self.ask() {
            Ok(receipt) => return Ok(Ok(receipt)),
            Err(refused) => refused,
        };
        let can_wait = tokio::runtime::Handle::try_current().is_ok();
        let max_wait = behind.books.policy.bulkhead.map_or(Duration::ZERO, |b| b.max_wait);
        match refusal {
            Refusal::Ask(question) if can_wait => Err(question),
            Refusal::BulkheadFull { .. } if can_wait && !max_wait.is_zero() => Ok(Err(NotNow::Queue { max_wait })),
            _ => Ok(Err(NotNow::Rejected(self.reject(refusal)))),
        }
    }

    /// Asks the books. A refusal comes with the lock still held, so that it is announced in its turn.
    fn ask(&self) -> Result<Receipt, (Refusal, MutexGuard<'_, Behind>)> {
        let attempt = CallContext::with_current(|c| c.attempt).unwrap_or(1);
        let (mut behind, now) = self.lock_all_now();
        let mark = self.prepare(&mut behind.books);
        let (answer, notice) = behind.books.admit(now, attempt);
        self.publish(&behind.books, now);
        self.note(mark, &behind.books);
        let ticket = match answer {
            Ok(ticket) => ticket,
            Err(refusal) => return Err((refusal, behind)),
        };
        self.lanes.count(Counter::Admitted);
        self.announce(now, notice);
        if self.hub.announcer.wants_calls {
            let probe = ticket.entry == Entry::Probe;
            self.hub.announcer.announce(&self.name, now, EventKind::Admitted { probe });
        }
        let expires = behind.books.policy.timeout.map(|time| now.after(time));
        Ok(Receipt { way: Way::Booked(ticket), started: Some(now), expires })
    }

    /// Counts and announces a refusal; under the lock.
    fn reject(&self, refusal: Refusal) -> Rejection {
        let service = self.name.clone();
        if let Refusal::Ask(question) = refusal {
            self.ask_later(question);
        }
        let counted = match refusal {
            Refusal::Open { .. } | Refusal::Ask(Question::Probe) => None,
            Refusal::HalfOpenBusy { .. } => Some(0),
            Refusal::BulkheadFull { .. } => Some(1),
            Refusal::RateLimited { .. } | Refusal::Ask(Question::Token) => Some(2),
            Refusal::BudgetExhausted => Some(3),
        };
        match counted {
            None => self.lanes.count(Counter::RejectedOpen),
            Some(at) => drop(self.refused[at].fetch_add(1, Ordering::Relaxed)),
        }
        let rejection = match refusal {
            Refusal::Open { retry_in, forced } => Rejection::Open { service, retry_in, forced },
            Refusal::HalfOpenBusy { retry_in } => Rejection::HalfOpenBusy { service, retry_in },
            Refusal::BulkheadFull { max_concurrent } => Rejection::BulkheadFull { service, max_concurrent },
            Refusal::RateLimited { retry_in } => Rejection::RateLimited { service, retry_in },
            Refusal::BudgetExhausted => Rejection::BudgetExhausted { service },
            // The answer is on its way.
            Refusal::Ask(Question::Probe) => Rejection::Open { service, retry_in: ASK, forced: false },
            Refusal::Ask(Question::Token) => Rejection::RateLimited { service, retry_in: ASK },
        };
        if self.hub.announcer.wants_calls {
            let kind = EventKind::Rejected(rejection.clone());
            self.hub.announcer.announce(&self.name, self.hub.clock.now(), kind);
        }
        rejection
    }

    /// The time this call gets: what the policy says, and less than what is left of the surrounding work, so that the call ends
    /// and is settled before its caller is given up. `None` without a limit, or without a tokio clock to keep it.
    #[inline]
    pub(crate) fn time_limit(&self, receipt: &Receipt) -> Option<Duration> {
        if receipt.expires.is_none() && !context::in_use() {
            return None;
        }
        let by_policy = receipt.expires.map(|end| end.since(receipt.started.unwrap_or(end)));
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

    // ── asking the fleet ───────────────────────────────────────────────────────────────────────────────────────────────

    pub(crate) async fn ask_store(&self, question: Question) {
        let Some(link) = &self.hub.link else { return };
        match question {
            Question::Probe => ask::probe(self, link).await,
            Question::Token => ask::token(self, link).await,
        }
    }

    /// For a caller that cannot wait: the next one will find the answer.
    fn ask_later(&self, question: Question) {
        let Some(link) = &self.hub.link else { return };
        match question {
            Question::Probe => link.probes.push(&self.name),
            Question::Token => link.tokens.push(&self.name),
        }
    }

    /// Tells the books whether the store is there; and how they stand, for [`note`](Self::note).
    fn prepare(&self, books: &mut Books) -> Mark {
        if let Some(link) = &self.hub.link {
            if let Some(share) = &mut books.share {
                share.up = link.is_up();
            }
            if let Some(quota) = &mut books.quota {
                quota.up = link.is_up();
                quota.shared_by(link.processes());
            }
        }
        books.mark()
    }

    /// Leaves a note for the keeper if the books have changed in a way that others have to hear of.
    pub(super) fn note(&self, before: Mark, books: &Books) {
        let Some(link) = &self.hub.link else { return };
        let after = books.mark();
        if before == after {
            return;
        }
        match (before.generation != after.generation, books.share.is_some()) {
            (true, true) => link.shared.push(&self.name),
            (true, false) => link.snapshots.push(&self.name),
            (false, true) => link.failing.push(&self.name),
            (false, false) => {}
        }
    }

    /// Waits until what was said to this breaker is in the store.
    pub(crate) async fn stored(&self) -> Result<(), StoreError> {
        let link = self.hub.link.as_ref().ok_or_else(StoreError::absent)?;
        let shared = self.lock().share.is_some();
        link.stored(&self.name, if shared { &link.shared } else { &link.snapshots }).await
    }

    /// Leaves a note for the keeper whatever has changed.
    pub(crate) fn note_all(&self) {
        let Some(link) = &self.hub.link else { return };
        let shared = self.lock().share.is_some();
        if shared { &link.shared } else { &link.snapshots }.push(&self.name);
    }
}
