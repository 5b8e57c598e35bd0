//! What users hold: a handle on a breaker, and permission for one call.

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    breaker::{
        call::{Call, classified},
        inner::BreakerInner,
    },
    error::{CallError, Classify, Rejection},
    outcome::{ServiceName, Settlement, Verdict},
    policy::{Mode, Policy},
    state::{Admission, Ticket, overrides::Override},
    store::StoreError,
    view::BreakerView,
};

/// A handle on one service's breaker. Clones are handles on the same breaker.
#[derive(Clone)]
pub struct Breaker {
    inner: Arc<BreakerInner>,
}

impl Breaker {
    pub(crate) const fn new(inner: Arc<BreakerInner>) -> Self {
        Self { inner }
    }

    /// The protected service's name.
    #[must_use]
    pub fn name(&self) -> &ServiceName {
        &self.inner.name
    }

    /// Runs `work` if the breaker lets it, and takes its outcome into account: `Ok` is a success, an error says itself what it
    /// means.
    ///
    /// If the returned future is dropped, the call is neutral, unless it had outlived its timeout. If `work` panics,
    /// that is a failure, and the panic goes on.
    ///
    /// # Errors
    /// [`CallError::Rejected`] if it never ran, [`CallError::TimedOut`] if it took longer than the policy or the surrounding
    /// [`CallContext`](crate::CallContext) allows, [`CallError::Upstream`] with its own error otherwise.
    #[inline(always)] // see `call`
    pub fn call<T, E, F>(&self, work: F) -> impl Future<Output = Result<T, CallError<E>>>
    where
        F: Future<Output = Result<T, E>>,
        E: Classify,
    {
        Call::new(&*self.inner, work, classified)
    }

    /// Like [`call`](Self::call), with the verdict given by `judge`: for errors that do not classify themselves, and for
    /// answers that look well and are not.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    #[inline(always)] // see `call`
    pub fn call_with<T, E, F>(
        &self,
        work: F,
        judge: impl FnOnce(&Result<T, E>) -> Verdict,
    ) -> impl Future<Output = Result<T, CallError<E>>>
    where
        F: Future<Output = Result<T, E>>,
    {
        Call::new(&*self.inner, work, |result: &Result<T, E>| (judge(result), None))
    }

    /// Like [`call_with`](Self::call_with), where a failure may also say how long to stay away.
    #[cfg(feature = "tower")]
    pub(crate) fn call_judged<T, E, F>(
        &self,
        work: F,
        judge: impl FnOnce(&Result<T, E>) -> crate::breaker::call::Judgement,
    ) -> impl Future<Output = Result<T, CallError<E>>>
    where
        F: Future<Output = Result<T, E>>,
    {
        Call::new(&*self.inner, work, judge)
    }

    /// Asks for one call to start; waits for a place in the bulkhead as long as the policy says.
    ///
    /// # Errors
    /// The reason why it may not, with the time to come back.
    pub async fn acquire(&self) -> Result<Permit, Rejection> {
        let ticket = self.inner.enter().await?;
        Ok(Permit { inner: self.inner.clone(), ticket: Some(ticket) })
    }

    /// Asks for one call to start, now or not at all.
    ///
    /// # Errors
    /// The reason why it may not, with the time to come back.
    pub fn try_acquire(&self) -> Result<Permit, Rejection> {
        let ticket = self.inner.try_enter()?;
        Ok(Permit { inner: self.inner.clone(), ticket: Some(ticket) })
    }

    /// What the breaker looks like now. Looking changes nothing.
    #[must_use]
    pub fn view(&self) -> BreakerView {
        self.inner.view()
    }

    /// The policy it goes by now.
    #[must_use]
    pub fn policy(&self) -> Arc<Policy> {
        self.inner.policy()
    }

    /// Rejects every call until `order` is released or ends, whatever timers and verdicts say. Calls in flight are late when they
    /// end.
    pub fn force_open(&self, order: Override) {
        self.inner.hold(Mode::ForceOpen, order);
    }

    /// Lets every call pass until `order` is released or ends. Their verdicts are counted and change nothing.
    pub fn force_closed(&self, order: Override) {
        self.inner.hold(Mode::ForceClosed, order);
    }

    /// Lets every call pass, and tells observers when it would have opened, until `order` is released or ends.
    pub fn observe_only(&self, order: Override) {
        self.inner.hold(Mode::Observe, order);
    }

    /// Releases every override, whoever holds it: the breaker decides again.
    pub fn auto(&self) {
        self.inner.release(None);
    }

    /// Releases the overrides that `who` holds; those of others stay. Whether there were any.
    pub fn release(&self, who: &str) -> bool {
        self.inner.release(Some(who))
    }

    /// Closes it and forgets failures, evidence and the growth of its open time. Overrides stay.
    pub fn reset(&self) {
        self.inner.operate(|state, now, _| (state.reset(now), None));
        self.inner.note_all();
    }

    /// Waits until what was said to this breaker so far — overrides, releases, a reset — is in the store: it survives a restart,
    /// and where the breaker is shared it holds in the whole fleet.
    ///
    /// ```
    /// # use circuit_registry::{CircuitRegistry, Override, store::{MemoryStore, StoreError}};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), StoreError> {
    /// # let registry = CircuitRegistry::builder().store(MemoryStore::new()).build();
    /// # tokio::spawn(registry.restore().await.run(std::future::pending()));
    /// let breaker = registry.breaker("northdata");
    /// breaker.force_open(Override::new("alice", "announced maintenance"));
    /// breaker.stored().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If there is no store or no [`StoreSync`](crate::StoreSync), or it could not be stored within five seconds. It is in force in this
    /// process all the same, and is stored as soon as that is possible.
    pub async fn stored(&self) -> Result<(), StoreError> {
        self.inner.stored().await
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.view(), f)
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
    /// Ends the call.
    pub fn settle(mut self, verdict: Verdict) -> Settlement {
        self.end(verdict, None)
    }

    /// Ends the call with what its error says, Retry-After included.
    pub fn settle_error(mut self, error: &impl Classify) -> Settlement {
        self.end(error.verdict(), error.retry_after())
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

    fn end(&mut self, verdict: Verdict, not_before: Option<Duration>) -> Settlement {
        match self.ticket.take() {
            Some(ticket) => self.inner.settle(&ticket, verdict, not_before),
            None => Settlement::Late,
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let verdict = if std::thread::panicking() { Verdict::Failure } else { self.inner.dropped(&ticket) };
            self.inner.settle(&ticket, verdict, None);
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("service", &self.inner.name).field("ticket", &self.ticket).finish()
    }
}
