//! One guarded call, from admission to settlement.
//!
//! In good times a call reads the gate, counts, runs, reads the gate again and counts; that is all of [`Core::call`] that its
//! users pay for. Whatever costs more — probes, limits, timeouts, waiting — is kept out of line. Guards are settled by
//! reference and a call's rejection is built where it is returned: moving either would cost more than deciding.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use pin_project_lite::pin_project;

use crate::{
    breaker::{Core, Receipt, Way},
    clock::Tick,
    context,
    gate::Word,
    lanes::Counter,
    outcome::{CallError, Rejection, Verdict},
};

/// What a finished call says: its verdict, and for a failure how long the service asked to be left alone.
pub(crate) type Said = (Verdict, Option<Duration>);

impl Core {
    /// Runs `work` behind the breaker; `judge` says what its outcome means.
    #[inline]
    pub(crate) async fn call<T, E, F>(
        &self,
        work: F,
        judge: impl FnOnce(&Result<T, E>) -> Said,
    ) -> Result<T, CallError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let mut work = pin!(work);
        let word = self.gate().read();
        if !word.admits() || context::in_use() {
            if let Some(retry_in) = self.refused_by_gate(word) {
                let service = self.name.clone();
                return Err(CallError::Rejected(Rejection::Open { service, retry_in, forced: false }));
            }
            return Aside { work: self.call_booked(work, judge) }.await;
        }
        self.count(Counter::Admitted);
        let started = if word.is_timed() { self.now() } else { Tick::ZERO };
        let mut passing = Passing { core: self, word, started, doing: Doing::Waiting };
        let result = poll_fn(|cx| passing.poll(work.as_mut(), cx)).await;
        passing.end(judge(&result));
        result.map_err(CallError::Upstream)
    }

    /// A call with everything that can be asked of one.
    async fn call_booked<T, E, F>(
        &self,
        mut work: Pin<&mut F>,
        judge: impl FnOnce(&Result<T, E>) -> Said,
    ) -> Result<T, CallError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let receipt = self.enter().await?;
        let limit = self.time_limit(&receipt);
        let mut running = Running { core: self, receipt, doing: Doing::Waiting };
        let work = poll_fn(|cx| running.doing.poll(work.as_mut(), cx));
        let result = match limit {
            None => work.await,
            Some(after) => match tokio::time::timeout(after, work).await {
                Ok(result) => result,
                Err(_) => {
                    self.count(Counter::TimedOut);
                    running.end((Verdict::Failure, None));
                    return Err(CallError::TimedOut { service: self.name.clone(), after });
                }
            },
        };
        running.end(judge(&result));
        result.map_err(CallError::Upstream)
    }
}

/// What a call is doing, and so what it means if it is dropped now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// Between two polls: the caller gave it up.
    Waiting,
    /// Polling the protected future: that panicked.
    Polling,
    /// It has ended; nothing is left to settle.
    Ended,
}

impl Doing {
    #[inline]
    fn poll<F: Future>(&mut self, work: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
        *self = Self::Polling;
        let poll = work.poll(cx);
        *self = Self::Waiting;
        poll
    }
}

/// A call that passed the gate: as little as its end needs to know.
struct Passing<'a> {
    core: &'a Core,
    word: Word,
    /// When it began, if the word says that calls are timed.
    started: Tick,
    doing: Doing,
}

impl Passing<'_> {
    #[inline]
    fn poll<F: Future>(&mut self, work: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.doing.poll(work, cx)
    }

    #[inline]
    fn end(&mut self, (verdict, not_before): Said) {
        if verdict == Verdict::Success && self.word.lets_success_pass() && self.core.gate().read() == self.word {
            // Nothing has failed in this generation: there is nothing for a success to change.
            self.core.count(Counter::Success);
        } else {
            self.settle(verdict, not_before);
        }
        self.doing = Doing::Ended;
    }

    #[cold]
    fn settle(&self, verdict: Verdict, not_before: Option<Duration>) {
        let started = self.word.is_timed().then_some(self.started);
        let receipt = Receipt { way: Way::Gate(self.word), started, expires: None };
        self.core.settle(&receipt, verdict, not_before);
    }
}

impl Drop for Passing<'_> {
    #[inline]
    fn drop(&mut self) {
        match self.doing {
            Doing::Ended => {}
            Doing::Waiting => self.settle(Verdict::Neutral, None),
            Doing::Polling => self.settle(Verdict::Failure, None),
        }
    }
}

/// A call that the books admitted.
struct Running<'a> {
    core: &'a Core,
    receipt: Receipt,
    doing: Doing,
}

impl Running<'_> {
    fn end(&mut self, (verdict, not_before): Said) {
        self.doing = Doing::Ended;
        self.core.settle(&self.receipt, verdict, not_before);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        match self.doing {
            Doing::Ended => {}
            Doing::Waiting => self.end((self.core.dropped(&self.receipt), None)),
            Doing::Polling => self.end((Verdict::Failure, None)),
        }
    }
}

pin_project! {
    /// A future that is polled out of line, so that what is rare does not weigh on what is not.
    struct Aside<F> {
        #[pin]
        work: F,
    }
}

impl<F: Future> Future for Aside<F> {
    type Output = F::Output;

    #[cold]
    #[inline(never)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().work.poll(cx)
    }
}
