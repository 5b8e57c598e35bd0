//! What users hold: a handle on one breaker.

use std::{fmt, sync::Arc};

use super::{
    call::{Call, classified},
    inner::BreakerInner,
    permit::Permit,
};
use crate::{
    error::{CallError, Classify, Rejection},
    outcome::{ServiceName, Verdict},
    policy::{Mode, Policy},
    state::overrides::Override,
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

    /// Runs `work` if the breaker lets it, and counts its outcome: `Ok` is a success, and an error classifies itself.
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
        Call::new(&*self.inner, work, |result: &Result<T, E>| judge(result).into())
    }

    /// Like [`call_with`](Self::call_with), where a failure may also say how long to stay away.
    #[cfg(feature = "tower")]
    pub(crate) fn call_judged<T, E, F>(
        &self,
        work: F,
        judge: impl FnOnce(&Result<T, E>) -> crate::failure::Judgement,
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
        Permit::acquire(&self.inner).await
    }

    /// Asks for one call to start, now or not at all.
    ///
    /// # Errors
    /// The reason why it may not, with the time to come back.
    pub fn try_acquire(&self) -> Result<Permit, Rejection> {
        Permit::try_acquire(&self.inner)
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

    /// Rejects every call until `order` is released or ends, whatever the timers and verdicts are. Calls in flight are late when they
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

    /// Releases every override of every holder: the breaker decides again.
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

    /// Waits until the overrides, releases and resets of this breaker so far are in the store: it survives a restart,
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
