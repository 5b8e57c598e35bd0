//! A breaker as a tower [`Layer`]: `ServiceBuilder::new().layer(BreakerLayer::new(breaker)).service(client)`.
//!
//! The layer never holds readiness back: a service behind an open breaker is ready, and says no at once, with the time to come
//! back. Put it *inside* of what retries (each attempt must be judged) and *outside* of what waits for connections.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tower_layer::Layer;
use tower_service::Service;

use crate::{Breaker, CallError, Classify, Judgement, breaker::call};

/// How a finished call is judged: its verdict, and how long a failed service asked to be left alone.
type Judge<T, E> = fn(&Result<T, E>) -> Judgement;

/// Wraps services in a breaker whose verdicts come from `J`.
#[derive(Debug, Clone)]
pub struct BreakerLayer<J> {
    breaker: Breaker,
    judge: J,
}

impl<T, E: Classify> BreakerLayer<Judge<T, E>> {
    /// Every answer is a success, and errors classify themselves.
    #[must_use]
    pub fn new(breaker: Breaker) -> Self {
        Self { breaker, judge: call::classified }
    }
}

impl<J> BreakerLayer<J> {
    /// Answers and errors are judged by `judge`, such as one that reads the status of a response.
    #[must_use]
    pub const fn judged_by(breaker: Breaker, judge: J) -> Self {
        Self { breaker, judge }
    }
}

impl<S, J: Clone> Layer<S> for BreakerLayer<J> {
    type Service = BreakerService<S, J>;

    fn layer(&self, inner: S) -> Self::Service {
        BreakerService { inner, breaker: self.breaker.clone(), judge: self.judge.clone() }
    }
}

/// A service behind a breaker.
#[derive(Debug, Clone)]
pub struct BreakerService<S, J> {
    inner: S,
    breaker: Breaker,
    judge: J,
}

impl<S, J, R> Service<R> for BreakerService<S, J>
where
    S: Service<R>,
    S::Future: Send + 'static,
    S::Response: 'static,
    S::Error: 'static,
    J: JudgeCall<S::Response, S::Error> + Clone + Send + 'static,
{
    type Response = S::Response;
    type Error = CallError<S::Error>;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(CallError::Upstream)
    }

    fn call(&mut self, request: R) -> Self::Future {
        // The future exists either way and does nothing until it is polled, which the breaker decides.
        let work = self.inner.call(request);
        let (breaker, judge) = (self.breaker.clone(), self.judge.clone());
        Box::pin(async move { breaker.call_judged(work, move |result| judge.judge(result)).await })
    }
}

/// What can judge a finished call: the layer's own [`Classify`]-based judge, or a function from result to verdict.
pub trait JudgeCall<T, E> {
    /// The verdict, and for a failure how long the service asked to be left alone.
    fn judge(&self, result: &Result<T, E>) -> Judgement;
}

impl<T, E, F: Fn(&Result<T, E>) -> O, O: Into<Judgement>> JudgeCall<T, E> for F {
    fn judge(&self, result: &Result<T, E>) -> Judgement {
        self(result).into()
    }
}
