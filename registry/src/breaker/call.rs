//! One guarded call, from admission to settlement.
//!
//! While the breaker is closed and healthy, a poll reads the state word, counts, polls the protected future, reads the word
//! again and counts. Users pay for nothing else. The future is written by hand so that this much is inlined where it is awaited: a result that
//! comes back from a call out of line is copied through memory, which costs more than deciding did. Everything that costs more anyway (probes,
//! limits, timeouts, waiting) stays out of line.

use std::{
    ops::Deref,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use pin_project_lite::pin_project;
use tokio::time::Sleep;

use crate::{
    breaker::{
        context,
        fast_path::{Counter, StateWord},
        inner::{Blocked, BreakerInner},
    },
    clock::Tick,
    error::{CallError, Classify, Rejection},
    failure::{Failure, FailureKind, Judgement},
    outcome::Verdict,
    state::Ticket,
};

/// The judgement of a result that classifies itself.
#[inline]
pub(crate) fn classified<T, E: Classify>(result: &Result<T, E>) -> Judgement {
    match result {
        Ok(_) => Verdict::Success.into(),
        Err(error) => error.judgement(),
    }
}

/// An admission that takes time.
type Admitting<'a> = Pin<Box<dyn Future<Output = Result<Ticket, Rejection>> + Send + 'a>>;

pin_project! {
    /// `work` behind the breaker `inner`; `judge` says what its outcome means. Nothing happens until it is polled.
    #[must_use = "futures do nothing unless they are awaited"]
    pub(crate) struct Call<'a, C: Deref<Target = BreakerInner>, F, J> {
        inner: C,
        phase: Phase,
        // The word that admitted the call, and when that was, if the word says that calls are timed.
        word: StateWord,
        started: Tick,
        judge: Option<J>,
        slow: Option<Slow<'a>>,
        #[pin]
        work: F,
        #[pin]
        alarm: Option<Sleep>,
    }

    impl<C: Deref<Target = BreakerInner>, F, J> PinnedDrop for Call<'_, C, F, J> {
        #[inline]
        fn drop(this: Pin<&mut Self>) {
            if this.phase != Phase::Over {
                this.give_up();
            }
        }
    }
}

/// How far a call has come: what it means if it is dropped now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Not polled yet.
    Start,
    /// Admitted or waiting for it, and between two polls: the caller gave it up.
    Idle,
    /// The protected future is being polled: that panicked.
    Polling,
    /// Settled, or never admitted.
    Over,
}

/// A call that needs more than the fast path.
enum Slow<'a> {
    /// It waits to be admitted.
    Waiting(Admitting<'a>),
    /// It was admitted by the state.
    Running { ticket: Ticket, limit: Option<Duration> },
}

impl<C: Deref<Target = BreakerInner>, F, J> Call<'_, C, F, J> {
    #[inline(always)]
    pub(crate) fn new(inner: C, work: F, judge: J) -> Self {
        let (word, started) = (StateWord::new(0), Tick::ZERO);
        Self { inner, phase: Phase::Start, word, started, judge: Some(judge), slow: None, work, alarm: None }
    }
}

impl<'a, C, F, J, T, E> Future for Call<'a, C, F, J>
where
    C: Deref<Target = BreakerInner> + Clone + Send + 'a,
    F: Future<Output = Result<T, E>>,
    J: FnOnce(&Result<T, E>) -> Judgement,
{
    type Output = Result<T, CallError<E>>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.phase == Phase::Start {
            let word = self.inner.fast_path().read();
            if word.admits() && !context::matters() {
                self.inner.count(Counter::Admitted);
                let this = self.as_mut().project();
                *this.word = word;
                if word.is_timed() {
                    *this.started = this.inner.now();
                }
            } else if let Some(retry_in) = self.inner.rejected_by_fast_path(word) {
                *self.as_mut().project().phase = Phase::Over;
                return Poll::Ready(Err(CallError::Rejected(self.inner.rejected_open(retry_in))));
            } else {
                if let Err(rejection) = ready!(self.as_mut().enter(cx)) {
                    return Poll::Ready(Err(CallError::Rejected(rejection)));
                }
            }
        } else if self.slow.is_some()
            && let Err(rejection) = ready!(self.as_mut().enter(cx))
        {
            return Poll::Ready(Err(CallError::Rejected(rejection)));
        }
        let this = self.as_mut().project();
        *this.phase = Phase::Polling;
        let poll = this.work.poll(cx);
        *this.phase = Phase::Idle;
        let Poll::Ready(result) = poll else {
            let after = ready!(self.as_mut().out_of_time(cx));
            return Poll::Ready(Err(CallError::TimedOut { service: self.inner.name.clone(), after }));
        };
        let judgement = match this.judge.take() {
            Some(judge) => judge(&result),
            None => Verdict::Neutral.into(), // polled after its end, which futures may answer as they like
        };
        if judgement.verdict == Verdict::Success
            && this.word.lets_success_pass()
            && this.inner.fast_path().read() == *this.word
        {
            // Nothing has failed in this generation: there is nothing for a success to change.
            this.inner.count(Counter::Success);
            *this.phase = Phase::Over;
        } else {
            self.settle(judgement);
        }
        Poll::Ready(result.map_err(CallError::Upstream))
    }
}

impl<'a, C, F, J> Call<'a, C, F, J>
where
    C: Deref<Target = BreakerInner> + Clone + Send + 'a,
{
    /// Asks the state, or goes on waiting for them.
    #[cold]
    #[inline(never)]
    fn enter(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Rejection>> {
        let mut this = self.project();
        let answer = match this.slow {
            Some(Slow::Running { .. }) => return Poll::Ready(Ok(())),
            Some(Slow::Waiting(admission)) => ready!(admission.as_mut().poll(cx)),
            None => match this.inner.ask_once() {
                Ok(ticket) => Ok(ticket),
                Err(Blocked::Rejected(rejection)) => Err(rejection),
                // The bulkhead is full, or the store must be asked first. A call that was not admitted took nothing, and asks again.
                Err(blocked) => {
                    let inner = this.inner.clone();
                    let mut admission: Admitting<'a> = Box::pin(async move {
                        if let Blocked::AskStore(question) = blocked {
                            inner.ask_store(question).await;
                        }
                        inner.enter_by_state().await
                    });
                    let poll = admission.as_mut().poll(cx);
                    *this.slow = Some(Slow::Waiting(admission));
                    *this.phase = Phase::Idle;
                    ready!(poll)
                }
            },
        };
        match answer {
            Ok(mut ticket) => {
                let limit = this.inner.time_limit(&ticket);
                if let (Some(started), Some(limit)) = (ticket.started, limit) {
                    // A call that is dropped after this has failed, whether its alarm was polled or not.
                    ticket.expires = Some(started.after(limit));
                }
                this.alarm.set(limit.map(tokio::time::sleep));
                *this.slow = Some(Slow::Running { ticket, limit });
                *this.phase = Phase::Idle;
                Poll::Ready(Ok(()))
            }
            Err(rejection) => {
                *this.phase = Phase::Over;
                Poll::Ready(Err(rejection))
            }
        }
    }
}

impl<C: Deref<Target = BreakerInner>, F, J> Call<'_, C, F, J> {
    /// The protected future is not ready. Ready when its time is up, and then settled.
    #[inline(never)]
    fn out_of_time(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Duration> {
        let this = self.as_mut().project();
        let Some(alarm) = this.alarm.as_pin_mut() else { return Poll::Pending };
        ready!(alarm.poll(cx));
        let after = match this.slow {
            Some(Slow::Running { limit: Some(limit), .. }) => *limit,
            _ => Duration::ZERO,
        };
        this.inner.count(Counter::TimedOut);
        let failure = Failure::new(FailureKind::Timeout).saying(&format!("no answer within {after:?}"));
        self.settle(Judgement::failed(failure));
        Poll::Ready(after)
    }

    #[cold]
    #[inline(never)]
    fn settle(self: Pin<&mut Self>, judgement: Judgement) {
        let this = self.project();
        *this.phase = Phase::Over;
        match this.slow.take() {
            None => {
                let started = this.word.is_timed().then_some(*this.started);
                let ticket = Ticket::fast(this.word.generation(), started);
                this.inner.settle(&ticket, judgement);
            }
            Some(Slow::Running { ticket, .. }) => drop(this.inner.settle(&ticket, judgement)),
            Some(Slow::Waiting(_)) => {}
        }
    }

    /// Dropped before its end.
    #[cold]
    #[inline(never)]
    fn give_up(self: Pin<&mut Self>) {
        let judgement = match (self.phase, &self.slow) {
            (Phase::Start | Phase::Over, _) => return,
            (Phase::Polling, _) => Judgement::failed(FailureKind::Panic),
            (Phase::Idle, Some(Slow::Running { ticket, .. })) => self.inner.dropped(ticket),
            (Phase::Idle, _) => Verdict::Neutral.into(),
        };
        self.settle(judgement);
    }
}
