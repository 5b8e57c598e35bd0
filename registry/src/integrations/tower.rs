//! A breaker as a tower [`Layer`]: `ServiceBuilder::new().layer(BreakerLayer::new(breaker)).service(client)`.
//!
//! The layer does not delay readiness: a service behind an open breaker is ready, and refuses a call at once with the time until the
//! next probe. A refused request never reaches the inner service's `call`, so nothing is sent even where the inner service sends at
//! once, such as a `Buffer`. For that the inner service is cloned for each call, as tower's own layers do. Put the layer *inside* a
//! layer that retries, so that each attempt is judged, and *outside* a layer that waits for connections.

use std::{
    mem::replace,
    pin::Pin,
    task::{Context, Poll},
};

use tower_layer::Layer;
use tower_service::Service;

use crate::{Breaker, CallError, Classify, Judgement, breaker::call};

/// Wraps services in a breaker whose verdicts come from `J`.
#[derive(Debug, Clone)]
pub struct BreakerLayer<J = Classified> {
    breaker: Breaker,
    judge: J,
}

impl BreakerLayer {
    /// Every answer is a success, and errors classify themselves.
    #[must_use]
    pub const fn new(breaker: Breaker) -> Self {
        Self { breaker, judge: Classified }
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
pub struct BreakerService<S, J = Classified> {
    inner: S,
    breaker: Breaker,
    judge: J,
}

impl<S, J, R> Service<R> for BreakerService<S, J>
where
    S: Service<R> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Response: 'static,
    S::Error: 'static,
    R: Send + 'static,
    J: JudgeCall<S::Response, S::Error> + Clone + Send + 'static,
{
    type Response = S::Response;
    type Error = CallError<S::Error>;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(CallError::Upstream)
    }

    fn call(&mut self, request: R) -> Self::Future {
        // The service that is ready answers this call; a clone takes its place.
        let clone = self.inner.clone();
        let mut inner = replace(&mut self.inner, clone);
        let (breaker, judge) = (self.breaker.clone(), self.judge.clone());
        Box::pin(async move {
            // The breaker polls this only if it admits the call.
            let work = async { inner.call(request).await };
            breaker.call_judged(work, move |result| judge.judge(result)).await
        })
    }
}

/// The judge of [`BreakerLayer::new`]: every answer is a success, and errors classify themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Classified;

impl<T, E: Classify> JudgeCall<T, E> for Classified {
    fn judge(&self, result: &Result<T, E>) -> Judgement {
        call::classified(result)
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
