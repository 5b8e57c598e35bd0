//! HTTP requests with reqwest: one call that sends a request and judges the answer by its status.
//!
//! For reqwest an answer with status 503 is `Ok`. So `registry.call("northdata", client.get(url).send())` counts it as a success.
//! [`CircuitRegistry::send`] and [`Breaker::send`] judge the status, and they heed what only they can know:
//!
//! | what | how it is judged |
//! |---|---|
//! | a status | the policy's `status:` entry; without one the table of [`http`](crate::http) |
//! | `Retry-After` | with a throttled answer or a failure, as seconds or as a date |
//! | no answer | as [`Classify`](crate::Classify) for `reqwest::Error` says: our own mistakes and redirect loops are neutral |
//!
//! The answer comes back as it is, whatever its verdict. An error of `error_for_status` has lost its `Retry-After`, so judge first.

use std::time::{Duration, SystemTime};

use reqwest::{Error, RequestBuilder, Response, header::RETRY_AFTER};

use super::http::parse_retry_after;
use crate::{Breaker, CallError, CircuitRegistry, Failure, FailureKind, Judgement, breaker::call, policy::Policy};

impl CircuitRegistry {
    /// Sends `request` through the breaker of `service`; see [`Breaker::send`].
    ///
    /// # Errors
    /// As [`Breaker::send`].
    pub async fn send(&self, service: &str, request: RequestBuilder) -> Result<Response, CallError<Error>> {
        self.breaker(service).send(request).await
    }
}

impl Breaker {
    /// Sends `request` if the breaker lets it, and judges the answer by its status, the policy's `status:` entries and
    /// `Retry-After`. The answer comes back whatever its status is.
    ///
    /// ```no_run
    /// # use circuit_registry::{BreakersConfig, CircuitRegistry};
    /// # async fn ask() -> Result<(), Box<dyn std::error::Error>> {
    /// let registry = CircuitRegistry::new(BreakersConfig::default());
    /// let client = reqwest::Client::new();
    /// let answer = registry.send("northdata", client.get("https://northdata.example/company")).await?;
    /// println!("{}", answer.status());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`call`](Self::call). A status is not an error.
    pub async fn send(&self, request: RequestBuilder) -> Result<Response, CallError<Error>> {
        let policy = self.policy();
        self.call_judged(request.send(), move |result| judge(result, &policy)).await
    }
}

fn judge(result: &Result<Response, Error>, policy: &Policy) -> Judgement {
    let (status, retry_after) = match result {
        Ok(answer) => (answer.status().as_u16(), retry_after(answer)),
        Err(error) => match error.status() {
            Some(status) => (status.as_u16(), None),
            None => return call::classified(result),
        },
    };
    let failure = Failure::new(FailureKind::Status).saying(&format!("HTTP {status}"));
    Judgement { verdict: policy.status_verdict(status, retry_after), retry_after, failure: Some(failure) }
}

#[expect(clippy::disallowed_methods, reason = "a date in a header is wall time")]
fn retry_after(answer: &Response) -> Option<Duration> {
    parse_retry_after(answer.headers().get(RETRY_AFTER)?.to_str().ok()?, SystemTime::now())
}
